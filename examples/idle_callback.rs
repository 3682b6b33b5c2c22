//! A user interface that has a loop of its own and an idle callback: `pump` with a timeout of zero serves it, without
//! a thread and without a wait.
//!
//! `idle_callback PROGRAM [ARG…]` starts the runtime; without arguments it talks to the command `cat`, which echoes.

use std::error::Error;
use std::time::Duration;

use dsh_wire::client::{Delivery, Filter, Policy};
use dsh_wire::stdio::{HarnessClient, Launch, Subscription};

/// What a window shows.
struct Window {
    client: HarnessClient,
    /// Bounded, so that a window that is not looked at does not grow.
    events: Subscription,
    lines: Vec<String>,
}

impl Window {
    /// Called by the toolkit whenever it has nothing else to do. Returns at once.
    fn on_idle(&mut self) -> Result<(), dsh_wire::stdio::Error> {
        // A frame of 16 ms is not to be missed, so no more than a few turns at a time.
        for _ in 0..8 {
            if self.client.pump(Duration::ZERO)?.is_nothing() {
                break;
            }
        }
        while let Some(delivery) = self.events.try_next(&mut self.client) {
            self.lines.push(match delivery {
                Delivery::Notification(notification) => notification.method.to_string(),
                Delivery::Lagged(n) => format!("({n} more)"),
            });
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().unwrap_or_else(|| "cat".into());
    let mut client = HarnessClient::spawn(&Launch::new(program).args(args))?;
    // Before anything is sent, or an answer could come before it.
    let events = client.subscribe(Filter::all(), Policy::bounded(100));
    client.notify("hello", &["from the window"])?;
    let mut window = Window { client, events, lines: Vec::new() };
    // The loop of a toolkit: it draws, and is idle in between.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(16));
        window.on_idle()?;
    }
    println!("{}", window.lines.join("\n"));
    println!("{}", window.client.close());
    Ok(())
}

//! A user interface that has a loop of its own and an idle callback: `pump` with a timeout of zero serves it, without
//! a thread and without a wait.
//!
//! `idle_callback PROGRAM [ARG…]` starts the runtime, `idle_callback dsh-wire serve` the embedded one. Without arguments it
//! talks to a parrot in the same process (`examples/common`).

mod common;

use std::error::Error;
use std::time::Duration;

use dsh_wire::client::{Delivery, Filter, Policy};
use dsh_wire::stdio::{CallOptions, HarnessClient, PendingCall, Subscription};
use dsh_wire::wire::{Method, Prompt, PromptParams, PromptResult, Status};

/// What a window shows.
struct Window {
    client: HarnessClient,
    /// Bounded, so that a window that is not looked at does not grow.
    events: Subscription,
    lines: Vec<String>,
    idle: bool,
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
                Delivery::Notification(notification) => {
                    let Ok(notification) = notification.view() else { continue };
                    self.idle |= notification.status() == Some(Status::Idle);
                    notification.event().map_or(notification.method, |event| event.kind).to_string()
                }
                Delivery::Lagged(n) => format!("({n} more)"),
            });
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut client = common::client()?;
    // Before anything is sent, or an answer could come before it.
    let events = client.subscribe(Filter::all(), Policy::bounded(100));
    let limit = CallOptions::default().timeout(Duration::from_secs(60));
    let prompt: PendingCall<PromptResult> =
        client.start_call(Prompt::NAME, &PromptParams::text("s", "hello"), &limit)?;
    let mut window = Window { client, events, lines: Vec::new(), idle: false };
    // The loop of a toolkit: it draws, and is idle in between.
    while !window.idle {
        std::thread::sleep(Duration::from_millis(16));
        window.on_idle()?;
    }
    window.client.finish(prompt)?;
    println!("{}", window.lines.join("\n"));
    println!("{}", window.client.close());
    Ok(())
}

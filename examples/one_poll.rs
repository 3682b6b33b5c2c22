//! One poll loop that serves a runtime, a timer and a socket.
//!
//! A line that comes on the socket is a prompt; what the runtime tells goes back on it, until the session is idle again.
//! `one_poll PROGRAM [ARG…]` starts the runtime, `one_poll dsh-wire serve` the embedded one. Without arguments it talks to
//! a parrot in the same process (`examples/common`).

mod common;

use std::error::Error;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dsh_wire::stdio::mio::unix::SourceFd;
use dsh_wire::stdio::mio::{Events, Interest, Poll, Token};
use dsh_wire::stdio::{CallOptions, PendingCall};
use dsh_wire::wire::{Method, Notification, Prompt, PromptParams, PromptResult, Status};

const RUNTIME: Token = Token(0);
const SOCKET: Token = Token(1);
const TICK: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let mut client = common::client()?;
    // In a real program the other end is a user's.
    let (mut socket, mut user) = UnixStream::pair()?;
    user.write_all(b"hello\n")?;
    socket.set_nonblocking(true)?;

    let mut poll = Poll::new()?;
    poll.registry().register(&mut client, RUNTIME, Interest::READABLE)?;
    poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), SOCKET, Interest::READABLE)?;
    let mut events = Events::with_capacity(16);
    let mut tick = Instant::now() + TICK;
    let (mut ticks, mut idle) = (0, false);
    let mut prompts: Vec<PendingCall<PromptResult>> = Vec::new();
    while !idle || !prompts.is_empty() {
        poll.poll(&mut events, Some(tick.saturating_duration_since(Instant::now())))?;
        if events.iter().any(|event| event.token() == SOCKET) {
            let mut line = [0; 4096];
            while let Ok(len @ 1..) = socket.read(&mut line) {
                let text = String::from_utf8_lossy(line.get(..len).unwrap_or_default()).into_owned();
                let params = PromptParams::text("s", &*text);
                let options = CallOptions::default().timeout(Duration::from_secs(60));
                prompts.push(client.start_call(Prompt::NAME, &params, &options)?);
            }
        }
        // Also when only the timer has come: what was queued above is written, and deadlines are kept.
        let mut show = |text: String| socket.write_all(text.as_bytes());
        let mut told = Vec::new();
        let mut note = |notification: &Notification<'_>| {
            idle |= notification.status() == Some(Status::Idle);
            told.push(match notification.event() {
                Some(event) => format!("{}\n", event.kind),
                None => format!("{}\n", notification.method),
            });
        };
        while !client.pump_with(Duration::ZERO, &mut note)?.is_nothing() {}
        told.into_iter().try_for_each(&mut show)?;
        for call in std::mem::take(&mut prompts) {
            match client.try_finish(&call) {
                Some(receipt) => drop(receipt?),
                None => prompts.push(call),
            }
        }
        if Instant::now() >= tick {
            tick += TICK;
            ticks += 1;
        }
    }
    drop(socket);
    let mut told = String::new();
    user.read_to_string(&mut told)?;
    print!("{told}");
    println!("{} bytes from the runtime, {ticks} ticks", client.bytes().read);
    println!("{}", client.close());
    Ok(())
}

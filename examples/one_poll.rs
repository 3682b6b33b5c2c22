//! One poll loop that serves a runtime, a timer and a socket.
//!
//! A line that comes on the socket is a prompt; what the runtime tells goes back on it. `one_poll PROGRAM [ARG…]`
//! starts the runtime, or the first argument may be missing: then it talks to the command `cat`, which echoes frames.

use std::error::Error;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dsh_wire::stdio::mio::unix::SourceFd;
use dsh_wire::stdio::mio::{Events, Interest, Poll, Token};
use dsh_wire::stdio::{CallOptions, HarnessClient, Launch, PendingCall};
use dsh_wire::wire::{Method, Prompt, PromptParams, PromptResult};

const RUNTIME: Token = Token(0);
const SOCKET: Token = Token(1);
const TICK: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let program = args.next().unwrap_or_else(|| "cat".into());
    let mut client = HarnessClient::spawn(&Launch::new(program).args(args))?;
    // In a real program the other end is a user's.
    let (mut socket, mut user) = UnixStream::pair()?;
    user.write_all(b"hello\n")?;
    socket.set_nonblocking(true)?;

    let mut poll = Poll::new()?;
    poll.registry().register(&mut client, RUNTIME, Interest::READABLE)?;
    poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), SOCKET, Interest::READABLE)?;
    let mut events = Events::with_capacity(16);
    let mut tick = Instant::now() + TICK;
    let mut ticks = 0;
    let mut prompts: Vec<PendingCall<PromptResult>> = Vec::new();
    while ticks < 5 {
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
        while !client.pump_with(Duration::ZERO, &mut |n| told.push(format!("{}\n", n.method)))?.is_nothing() {}
        told.into_iter().try_for_each(&mut show)?;
        prompts.retain(|call| match client.try_finish(call) {
            Some(Ok(_)) => false,
            Some(Err(error)) => {
                eprintln!("{error}");
                false
            }
            None => true,
        });
        if Instant::now() >= tick {
            tick += TICK;
            ticks += 1;
        }
    }
    println!("{} ticks, {} bytes from the runtime, {} prompts open", ticks, client.bytes().read, prompts.len());
    println!("{}", client.close());
    Ok(())
}

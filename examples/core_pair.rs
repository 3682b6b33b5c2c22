//! Both ends of the protocol as state machines in one loop of our own, over a pair of sockets that do not block. No part
//! of the crate that knows descriptors is used, and the clock is ours.
//!
//! A loop over epoll or io_uring has the same three calls for each end: `read` in, what it means, `write` out.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dsh_wire::client::{Call, Client, Event, Limits};
use dsh_wire::peer::Output;
use dsh_wire::server::{NewEvent, Server, Task};
use dsh_wire::wire::{Initialize, InitializeParams, InitializeResult, Prompt, PromptParams, PromptResult};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut left, mut right) = UnixStream::pair()?;
    left.set_nonblocking(true)?;
    right.set_nonblocking(true)?;
    let (mut client, mut server) = (Client::new(), Server::new());
    let origin = Instant::now();
    let deadline = Limits::until(Duration::from_secs(10));
    let ready: Call<InitializeResult> = client.call::<Initialize>(&InitializeParams::new("/", "p", "m"), &deadline)?;
    let mut prompt: Option<Call<PromptResult>> = None;
    loop {
        write(&mut left, client.outgoing())?;
        read(&mut right, |bytes| server.push(bytes))?;
        while let Some(task) = server.next_task() {
            work(&mut server, task)?;
        }
        write(&mut right, server.outgoing())?;
        read(&mut left, |bytes| client.push(bytes))?;
        client.expire(origin.elapsed());
        while let Some(event) = client.next_event() {
            match event {
                Event::Notification { notification, .. } => println!("{} {}", notification.method, notification.params),
                Event::Dropped(line) => println!("line {} is no frame: {}", line.number, line.why),
                _ => {}
            }
        }
        match &prompt {
            None if client.has_ended(ready.id()) => {
                prompt = Some(client.call::<Prompt>(&PromptParams::text("s", "hello"), &deadline)?);
            }
            Some(call) if client.has_ended(call.id()) => break,
            _ => {}
        }
    }
    if let Some(answer) = prompt.and_then(|call| client.take(&call)) {
        println!("the prompt was answered: {:?}", answer?);
    }
    Ok(())
}

/// The host behind the server.
fn work(server: &mut Server, task: Task) -> Result<(), Box<dyn Error>> {
    match task {
        Task::Route { reply, .. } => server.routed(reply, Ok(())),
        Task::Open { session, .. } => server.opened(&session, Ok(())),
        Task::Prompt { session, content_blocks, reply } => {
            server.session_event(&session, &NewEvent::new("parrot/says", &content_blocks), 1_700_000_000_000)?;
            server.prompted(reply, Ok("message".into()));
        }
        Task::WorkingDirectory { reply, .. } => server.directory(reply, Ok("/".into())),
        Task::Release { session } => server.released(&session, Ok(())),
        Task::Answered { .. } => {}
    }
    Ok(())
}

/// As much as there is room for.
fn write(stream: &mut UnixStream, output: Output<'_>) -> io::Result<()> {
    if output.is_empty() {
        return Ok(());
    }
    match stream.write(output.bytes()) {
        Ok(len) => output.consume(len),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// As much as there is.
fn read(stream: &mut UnixStream, mut push: impl FnMut(&[u8])) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => push(bytes.get(..len).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

//! The DeepSeek Harness SDK wire protocol without async: newline-delimited JSON-RPC 2.0 over the stdin and stdout of
//! a child process, from the bytes up to a typed client and server. The [`guide`] has a page for each use.
//!
//! A client starts a runtime, runs prompts, and ends it in order:
//!
//! ```no_run
//! # #[cfg(feature = "stdio")]
//! # fn drive() -> Result<(), dsh_wire::stdio::Error> {
//! use dsh_wire::stdio::{DeepSeekHarness, HarnessOptions, Launch, RunOptions};
//! use dsh_wire::wire::InitializeParams;
//!
//! let route = InitializeParams::new("/work", "deepseek-official", "deepseek-v4-flash");
//! let mut harness = DeepSeekHarness::start(&HarnessOptions::new(Launch::discover(None, "sdk"), route))?;
//! let result = harness.run("What is in this directory?", RunOptions::new())?;
//! println!("{}", result.final_response);
//! harness.close();
//! # Ok(())
//! # }
//! ```
//!
//! A runtime, which the official clients drive too:
//!
//! ```no_run
//! # #[cfg(feature = "stdio")]
//! # fn serve() -> std::io::Result<()> {
//! use dsh_wire::stdio::turns::Turns;
//! use dsh_wire::stdio::{ServeOptions, serve_stdio};
//!
//! let parrot = Turns::from_fn(|step| Ok(format!("You said: {}", step.prompt_text()).into()));
//! let served = serve_stdio(parrot, ServeOptions::default())?;
//! std::process::exit(served.exit_code().into())
//! # }
//! ```
//!
//! # Layers
//!
//! Each layer uses only those above it. Everything above `stdio` is `no_std` with `alloc` and names no file
//! descriptor, thread, process or clock; where time matters it is an argument.
//!
//! | layer | job |
//! |---|---|
//! | [`json`] | one pass over one text: is it JSON, and where are its members; text repair |
//! | [`line`](mod@line) | bytes → lines: split at `\n`, resumable, bounded, lending |
//! | [`frame`] | one line ↔ one frame: request, response or notification; total and pure |
//! | [`peer`] | one connection as a state machine: calls in flight, abort tokens, replies owed, output bytes |
//! | [`wire`] | the SDK's methods, notifications and payloads, typed; open at the edges |
//! | [`server`] | the SDK server as a state machine: handshake, lazy single-flight sessions, shutdown |
//! | [`client`] | the SDK client as a state machine: calls with deadlines, subscriptions, runs, the teardown ladder |
//! | [`recording`] | a conversation in a file: what went over the pipes, line by line, with its times |
//! | [`replay`] | such a conversation as a runtime, for tests of clients |
//! | [`stdio`] | mio: one poll loop, pipes, child process, signals; the blocking clients, `serve` |
//!
//! # The drive loop
//!
//! The core does no input or output. This is a whole runtime for one connection, over any pair of streams; a program
//! with an event loop of its own does the same when its streams are ready.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use dsh_wire::peer::{Event, Peer};
//!
//! fn serve(mut input: impl Read, mut output: impl Write) -> std::io::Result<()> {
//!     let mut peer: Peer<()> = Peer::new();
//!     loop {
//!         if peer.read_from(&mut input)? == 0 {
//!             peer.end_input();
//!         }
//!         let (mut incoming, mut outgoing) = peer.split();
//!         while let Some(event) = incoming.next_event() {
//!             match event {
//!                 Event::Request { method, params, reply } if method == "echo" => {
//!                     outgoing.answer(reply, &params).expect("the connection is open and JSON is JSON");
//!                 }
//!                 Event::Request { method, reply, .. } => {
//!                     outgoing.refuse_method(reply, method).expect("the connection is open");
//!                 }
//!                 Event::Dropped(line) => eprintln!("line {}: {}", line.number, line.why),
//!                 _ => {}
//!             }
//!         }
//!         while !peer.outgoing().is_empty() {
//!             let waiting = peer.outgoing();
//!             let n = output.write(waiting.bytes())?;
//!             waiting.consume(n);
//!         }
//!         if peer.input_ended() {
//!             return output.flush();
//!         }
//!     }
//! }
//!
//! let input = &b"{\"id\":1,\"method\":\"echo\",\"params\":{\"n\":1.0}}\nno frame\n{\"id\":2,\"method\":\"other\"}\n"[..];
//! let mut output = Vec::new();
//! serve(input, &mut output)?;
//! let mut lines = output.split(|byte| *byte == b'\n');
//! assert_eq!(lines.next(), Some(&br#"{"jsonrpc":"2.0","id":1,"result":{"n":1.0}}"#[..]));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What holds
//!
//! - Frames and events are the same for every way of cutting the bytes.
//! - A line is accepted exactly when the reference transport would dispatch it, and ids are echoed byte for byte.
//! - Every call ends exactly once; ids never repeat; a frame with a method is never a response.
//! - Nothing is lost in silence: a dropped line, a late response, an overflow is an event with a reason.
//! - Bytes of the peer never reach a panic or a recursion; memory is bounded by the line limit.
//!
//! # Features
//!
//! | feature | what is lost without it |
//! |---|---|
//! | `stdio` (default; implies `std`; Unix) | child processes, pipes; the blocking clients |
//! | `serve` (default; implies `stdio`) | the other end: `stdio::serve`, signals, agents (and the crates `serde_derive`, `signal-hook`) |
//! | `simd` (default; implies `std`) | decoding with the vector instructions that the machine turns out to have: half of the speed |
//! | `std` | `read_from` on buffers and peers, ids from random bits of the system; without it ids start from a seed of the caller's |
//! | `arbitrary` (implies `std`) | structured frames and streams for fuzzers of your own, in `fuzz` |
//! | `log` | what a client meets, in the `log` of the program, target `dsh_wire`: dropped lines, late answers, the exit, the rungs of the ladder; never what frames carry |
//! | `cli` (implies `serve`) | the command `dsh-wire`; the library never needs it |
#![cfg_attr(
    not(all(feature = "serve", feature = "arbitrary")),
    allow(rustdoc::broken_intra_doc_links, reason = "they name what needs a feature")
)]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic"))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod base64;
pub mod client;
pub mod frame;
#[cfg(feature = "arbitrary")]
pub mod fuzz;
pub mod guide;
pub mod json;
pub mod line;
pub mod peer;
pub mod recording;
pub mod replay;
pub mod server;
#[cfg(feature = "stdio")]
pub mod stdio;
pub mod wire;

/// The examples of the README, as tests.
#[cfg(all(doctest, feature = "serve"))]
#[doc = include_str!("../README.md")]
struct Readme;

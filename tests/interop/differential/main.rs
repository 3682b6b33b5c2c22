//! Our half of the differential test against the reference transport; `run` beside this file is the whole.
//!
//!     differential generate SEED LINES    odd lines, on stdout
//!     differential trace SEED             what our core makes of the bytes on stdin, cut by the seed
//!
//! The trace is in the form of `dsh-wire inspect --json`, without dropped lines and the summary.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../properties/mod.rs"]
mod properties;
#[allow(dead_code, reason = "shared with tests/it")]
#[path = "../../it/recording.rs"]
mod recording;

use std::io::{self, BufWriter, Read, Write};

use dsh_wire::json::JsonStr;
use dsh_wire::peer::{Event, Peer};
use properties::choices::Random;
use properties::odd::Odd;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments[index].parse().expect("a number");
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    match arguments.first().map(String::as_str) {
        Some("generate") => {
            let real = recording::all().into_iter().flat_map(|recording| recording.rows).map(|row| row.bytes).collect();
            let mut odd = Odd::new(number(1), real);
            for _ in 0..number(2) {
                out.write_all(&odd.line())?;
                out.write_all(b"\n")?;
            }
            // So that a difference in the last line shows, too.
            out.write_all(b"{\"method\":\"the end\"}\n")?;
        }
        Some("trace") => trace(Random::new(number(1)), &mut out)?,
        _ => panic!("usage: differential generate SEED LINES | differential trace SEED"),
    }
    out.flush()
}

fn trace(mut cuts: Random, out: &mut impl Write) -> io::Result<()> {
    let mut stream = Vec::new();
    io::stdin().lock().read_to_end(&mut stream)?;
    let mut peer: Peer<()> = Peer::with_seed(0);
    let mut rest = &*stream;
    while !rest.is_empty() {
        // Single bytes, pieces of a line, and pieces of many lines.
        let len = [1, 16, 300, 65_536][cuts.below(4)];
        let len = (1 + cuts.below(len)).min(rest.len());
        peer.push(&rest[..len]);
        rest = &rest[len..];
        while step(&mut peer, out)? {}
    }
    peer.end_input();
    while step(&mut peer, out)? {}
    Ok(())
}

/// Prints one event; false when there is none.
fn step(peer: &mut Peer<()>, out: &mut impl Write) -> io::Result<bool> {
    let text = |string: JsonStr<'_>| string.to_buf();
    let mut row = Vec::new();
    match peer.next_event() {
        None => return Ok(false),
        Some(Event::Request { method, params, reply }) => {
            write!(row, r#""kind":"request","id":{:?},"method":{:?},"params":{params}}}"#, reply.id(), text(method))?
        }
        Some(Event::Notification { method, params }) => {
            write!(row, r#""kind":"notification","method":{:?},"params":{params}}}"#, text(method))?;
        }
        Some(Event::Unmatched { id, outcome: Ok(result) }) => {
            write!(row, r#""kind":"response","id":{id:?},"result":{result}}}"#)?;
        }
        Some(Event::Unmatched { id, outcome: Err(error) }) => {
            write!(row, r#""kind":"response","id":{id:?},"error":{{"message":"#)?;
            match error.message() {
                Some(message) => write!(row, "{:?}", text(message))?,
                None => write!(row, r#""JSON-RPC error""#)?,
            }
            for (name, value) in [("code", error.code()), ("data", error.data())] {
                if let Some(value) = value {
                    write!(row, r#","{name}":{value}"#)?;
                }
            }
            write!(row, "}}}}")?;
        }
        Some(Event::Dropped(_)) => return Ok(true),
        Some(other) => panic!("{other:?}"),
    }
    write!(out, "{{\"line\":{},", peer.lines().lines())?;
    out.write_all(&row)?;
    out.write_all(b"\n")?;
    Ok(true)
}

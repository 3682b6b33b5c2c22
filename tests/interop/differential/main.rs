//! Our half of the differential test against the reference transport; `run` beside this file is the whole.
//!
//!     differential generate SEED LINES    odd lines, on stdout
//!     differential trace SEED             what our core makes of the bytes on stdin, cut by the seed
//!
//! `tests/mutants/run` needs one program for all that may see a fault, so it does this as well:
//!
//!     differential exhaustive LENGTH     all short texts, against the oracle
//!     differential property NAME CASES   one property on seeded input
//!
//! The trace is in the form of `dsh-wire inspect --json`, without dropped lines and the summary.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../properties/mod.rs"]
mod properties;
#[allow(dead_code, reason = "shared with tests/it")]
#[path = "../../it/recording.rs"]
mod recording;
mod row;

use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;

use dsh_wire::peer::Peer;
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
        Some("exhaustive") => writeln!(out, "{} texts", properties::exhaustive::check(number(1) as usize))?,
        Some("property") => properties::holds(&arguments[1], number(2) as usize, Duration::MAX),
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
    let Some(event) = peer.next_event() else { return Ok(false) };
    let mut row = String::new();
    if row::write(&mut row, event) {
        writeln!(out, "{{\"line\":{},{row}", peer.lines().lines())?;
    }
    Ok(true)
}

//! What must hold of the library, as ordinary functions from bytes: each reads its input and its choices from them and
//! panics where the property fails.
//!
//! They stand here once. `tests/it` includes this file and runs them on seeded random bytes and on the committed
//! corpora; each fuzz target in `fuzz/fuzz_targets` includes it too and hands in the fuzzer's bytes; the differential
//! test takes its generator from here. They use the public interface only, and judge by [`oracle`], which shares no
//! code with the library.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a property fails by panicking")]
#![allow(dead_code, reason = "each of those who include this uses a part of it")]

pub(crate) mod choices;
pub(crate) mod client;
pub(crate) mod exhaustive;
pub(crate) mod frame;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod odd;
pub(crate) mod oracle;
pub(crate) mod pair;
pub(crate) mod peer;
pub(crate) mod server;
pub(crate) mod teardown;
pub(crate) mod typed;

use std::path::Path;
use std::time::{Duration, Instant};

use choices::Random;
use odd::Odd;

pub(crate) type Property = fn(&[u8]);

/// Each property under the name of its fuzz target and corpus.
pub(crate) const ALL: [(&str, Property); 7] = [
    ("json", json::check),
    ("frame", frame::check),
    ("lines", lines::check),
    ("peer", peer::check),
    ("pair", pair::check),
    ("server", server::check),
    ("client", client::check),
];

/// The property of this name on the corpus of its fuzz target and on so many random inputs, odd lines among them; on
/// fewer where the time is up before.
pub(crate) fn holds(name: &str, cases: usize, time: Duration) {
    let (_, check) = ALL.into_iter().find(|(of, _)| *of == name).expect("the name of a property");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut seeds = 0;
    // Packaged sources come without it.
    for entry in corpus.read_dir().into_iter().flatten() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        seeds += 1;
    }
    assert!(seeds > 0 || !corpus.exists(), "the corpus of {name} is empty");
    let mut odd = Odd::new(0x0dd, Vec::new());
    let mut random = Random::new(0x5eed);
    // A sequence of operations takes as long as many lines.
    let operations = ["peer", "pair", "server", "client"].contains(&name);
    let cases = cases / if operations { 10 } else { 1 };
    let start = Instant::now();
    for case in 0..cases {
        if start.elapsed() > time {
            println!("{name}: {case} of {cases} cases in {time:?}");
            break;
        }
        let mut input = if case % 2 == 0 { odd.line() } else { Vec::new() };
        if input.is_empty() || operations {
            let len = random.below(300);
            input = random.bytes(len);
        } else if name == "lines" {
            let mut head = random.bytes(6);
            head.extend(input);
            head.extend(b"\n".repeat(random.below(3)));
            head.extend(odd.line());
            input = head;
        }
        // On a failure the input is what one wants to see.
        let shown = input.clone();
        if let Err(panic) = std::panic::catch_unwind(|| check(&input)) {
            eprintln!("case {case} of {name}: {:?}", String::from_utf8_lossy(&shown));
            eprintln!("its bytes: {shown:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

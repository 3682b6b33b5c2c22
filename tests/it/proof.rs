//! The properties of `tests/properties` on seeded input and on the fuzz targets' corpora.
//!
//! `DSH_WIRE_CASES=n` runs n random cases a property; `DSH_WIRE_EXHAUSTIVE=n` sets the length of the texts that are all
//! tried. Both are for release builds, with which `.ci/run` raises them.

use std::path::Path;

use crate::properties::choices::Random;
use crate::properties::odd::Odd;
use crate::properties::{self, exhaustive};

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// The property of one fuzz target, on random bytes, on odd lines, and on the corpus of the target.
fn holds(name: &str) {
    let (_, check) = properties::ALL.into_iter().find(|(of, _)| *of == name).unwrap();
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
    for case in 0..setting("DSH_WIRE_CASES", 4000) / if operations { 10 } else { 1 } {
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

#[test]
fn the_scanner_agrees_with_the_oracle() {
    holds("json");
}

#[test]
fn a_frame_is_what_the_reference_makes_of_the_line_and_comes_back() {
    holds("frame");
}

#[test]
fn lines_do_not_depend_on_the_cuts() {
    holds("lines");
}

#[test]
fn a_peer_does_what_its_model_does() {
    holds("peer");
}

#[test]
fn two_peers_lose_nothing() {
    holds("pair");
}

#[test]
fn a_server_answers_everything_once_whatever_client_and_host_do() {
    holds("server");
}

#[test]
fn a_client_does_what_its_model_does_whatever_the_runtime_says() {
    holds("client");
}

#[test]
fn every_short_text_is_judged_as_by_the_oracle() {
    let length = setting("DSH_WIRE_EXHAUSTIVE", 4);
    let count = exhaustive::check(length);
    println!("{count} texts, all of up to {length} symbols");
    assert!(count > 100_000);
}

//! The properties of `tests/properties` on seeded input and on the fuzz targets' corpora.
//!
//! `DSH_WIRE_CASES=n` runs n random cases a property, or as many as half a minute has room for; `DSH_WIRE_EXHAUSTIVE=n`
//! sets the length of the texts that are all tried. Both are for release builds, with which `.ci/run` raises them.

use std::time::Duration;

use crate::properties::{self, exhaustive};

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// A slow machine does fewer random cases; it does not wait for them.
const TIME: Duration = Duration::from_secs(30);

/// The property of one fuzz target.
fn holds(name: &str) {
    properties::holds(name, setting("DSH_WIRE_CASES", 4000), TIME);
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

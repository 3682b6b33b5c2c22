//! Allocations per frame in steady state: fails where there are any, but for nesting beyond 63 levels. A program of its own, because the allocator that
//! counts takes time.

use std::alloc::System;
use std::hint::black_box;

use dsh_wire::peer::{Event, Peer};
use dsh_wire_bench::{corpus, decode, typed};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let mut most = 0.0_f64;
    println!("allocations per frame  {:>8} {:>8} {:>8}  (must 0, aim 0)", "decode", "typed", "peer");
    for name in corpus::NAMES {
        let corpus = corpus::generate(name, 4 << 20);
        let lines = corpus.lines();
        let mut peer: Peer<()> = Peer::with_seed(1);
        let frames = lines.len() as f64;
        let [decode, typed, peer] = [
            count(|| decode::dsh_wire(&lines)),
            count(|| typed::typed(&lines)),
            count(|| read(&mut peer, &corpus.bytes)),
        ]
        .map(|count| count as f64 / frames);
        println!("{name:21} {decode:8.3} {typed:8.3} {peer:8.3}");
        // More than 63 levels are remembered in words on the heap.
        if name != "deep" {
            most = most.max(decode).max(typed).max(peer);
        }
    }
    if most > 0.0 {
        std::process::exit(1);
    }
}

/// Allocations and moves of allocations in the second run.
fn count<T>(mut run: impl FnMut() -> T) -> usize {
    black_box(run());
    let region = Region::new(ALLOCATOR);
    black_box(run());
    let change = region.change();
    change.allocations + change.reallocations
}

fn read(peer: &mut Peer<()>, bytes: &[u8]) {
    for read in bytes.chunks(decode::READ) {
        peer.push(read);
        while let Some(event) = peer.next_event() {
            assert!(!matches!(event, Event::Dropped(_)));
        }
    }
}

//! A fuzz target of one's own, for a host on top of [`Server`]: whatever a client sends, in whatever pieces, the host
//! panics nowhere, and every request is answered once.
//!
//!     cargo run --release --features arbitrary --example fuzz_server [INPUTS]
//!
//! With cargo-fuzz, `main` goes, and this line comes instead:
//!
//!     libfuzzer_sys::fuzz_target!(|traffic: dsh_wire::fuzz::Traffic| target(traffic));

use std::hash::{BuildHasher, RandomState};

use arbitrary::{Arbitrary, Unstructured};
use dsh_wire::fuzz::Traffic;
use dsh_wire::server::{Phase, Server, Task};

fn target(traffic: Traffic) {
    let mut server = Server::with_seed(7);
    for piece in traffic.pieces() {
        server.push(piece);
        work(&mut server);
    }
    server.end_input();
    work(&mut server);
    assert_eq!((server.phase(), server.replies_owed()), (Phase::Released, 0));
}

/// The host that is tested. This one agrees to everything.
fn work(server: &mut Server) {
    while let Some(task) = server.next_task() {
        match task {
            Task::Route { reply, .. } => server.routed(reply, Ok(())),
            Task::Open { session, .. } => server.opened(&session, Ok(())),
            Task::Prompt { reply, .. } => server.prompted(reply, Ok("message".into())),
            Task::WorkingDirectory { reply, .. } => server.directory(reply, Ok("/".into())),
            Task::Release { session } => server.released(&session, Ok(())),
            Task::Answered { .. } => {}
        }
    }
}

fn main() {
    let inputs = std::env::args().nth(1).map_or(20_000, |text| text.parse().expect("a number of inputs"));
    let random = RandomState::new();
    for input in 0..inputs {
        let bytes: Vec<u8> = (0..64).flat_map(|word| random.hash_one((input, word)).to_le_bytes()).collect();
        target(Traffic::arbitrary(&mut Unstructured::new(&bytes)).expect("there are bytes enough"));
    }
    println!("{inputs} inputs");
}

//! A server peer on a Cortex-M4 with 96 KiB of flash and 16 KiB of heap.
//!
//! It replays the client's side of a recording of the official runtime, answers each request with the result that the
//! runtime gave, and checks that its own frames are the runtime's, byte for byte. Then it takes and answers a request of
//! 4 KiB. Ends with code 0 and what it used. `.ci/no-std` builds it and runs it in an emulator:
//!
//!     qemu-system-arm -M mps2-an386 -nographic -semihosting-config enable=on -kernel …/dsh-wire-firmware
#![no_std]
#![no_main]

extern crate alloc;

mod board;

use alloc::vec::Vec;

use board::{print, print_number};
use dsh_wire::json::{Json, JsonStr};
use dsh_wire::peer::{Event, Peer};

/// JSON lines: `{"t": …, "dir": "c2s" | "s2c", "frame": "…"}`.
const RECORDING: &str = include_str!("../../../tests/fixtures/handshake-plain.jsonl");

fn main() {
    let answered = replay();
    print("recording: ");
    print_number(answered);
    print(" requests answered as the official runtime did; heap peak ");
    print_number(board::heap_peak());
    print(" bytes\n");
    large();
    let heap = board::heap_peak();
    print("a request of 4 KiB and its answer: heap peak ");
    print_number(heap);
    print(" bytes\nflash: ");
    print_number(board::flash());
    print(" bytes, ");
    print_number(RECORDING.len());
    print(" of them the recording; RAM: ");
    print_number(heap + board::stack_peak());
    print(" bytes, ");
    print_number(board::stack_peak());
    print(" of them stack\n");
}

/// The lines of one direction, with what they hold.
fn rows(direction: &'static str) -> impl Iterator<Item = JsonStr<'static>> {
    RECORDING.lines().filter_map(move |row| {
        let row = Json::new(row).expect("a recording is JSON lines");
        let wanted = row.member("dir")?.as_str()? == direction;
        row.member("frame")?.as_str().filter(|_| wanted)
    })
}

/// The runtime's answer to a request of this id: its line, if there is one.
fn recorded_answer(id: &str) -> Option<JsonStr<'static>> {
    rows("s2c").find(|frame| {
        let line = frame.to_string_lossy();
        Json::new(&line).is_ok_and(|frame| frame.member("id").is_some_and(|theirs| theirs.get() == id))
    })
}

fn replay() -> usize {
    let mut peer: Peer<()> = Peer::with_seed_and_limit(1, 8 << 10);
    let mut answered = 0;
    for frame in rows("c2s") {
        let line = frame.to_string_lossy();
        // As it would come from a serial line.
        for piece in line.as_bytes().chunks(7).chain([&b"\n"[..]]) {
            peer.push(piece);
        }
        let expected = {
            let (mut incoming, mut outgoing) = peer.split();
            let Some(Event::Request { reply, .. }) = incoming.next_event() else { panic!("the client sends requests") };
            let expected = recorded_answer(reply.id().get()).expect("every request was answered").to_string_lossy();
            let result = Json::new(&expected).ok().and_then(|frame| frame.member("result")).expect("none was refused");
            outgoing.answer(reply, &result).expect("the output is open");
            expected
        };
        assert!(peer.next_event().is_none() && peer.replies_owed() == 0);
        let output = peer.outgoing();
        assert!(output.bytes().strip_suffix(b"\n") == Some(expected.as_bytes()), "the same frame as the runtime's");
        let len = output.len();
        output.consume(len);
        answered += 1;
    }
    answered
}

/// A request whose line is 4 KiB long.
fn large() {
    let mut peer: Peer<()> = Peer::with_seed_and_limit(1, 8 << 10);
    let start = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/prompt\",\"params\":{\"text\":\"";
    let end = b"\"}}\n";
    let text = [b'x'; 64];
    let mut left = 4096 - start.len() - end.len();
    peer.push(start);
    while left > 0 {
        let piece = &text[..left.min(text.len())];
        peer.push(piece);
        left -= piece.len();
    }
    peer.push(end);
    let (mut incoming, mut outgoing) = peer.split();
    let Some(Event::Request { params, reply, .. }) = incoming.next_event() else { panic!("a request") };
    outgoing.answer(reply, &params).expect("the output is open");
    let (mut sent, mut out) = (0, Vec::new());
    while !peer.outgoing().is_empty() {
        let output = peer.outgoing();
        let piece = &output.bytes()[..output.bytes().len().min(64)];
        // What a serial line would take.
        out.clear();
        out.extend_from_slice(piece);
        let taken = piece.len();
        output.consume(taken);
        sent += taken;
    }
    assert!(out.ends_with(b"xxx\"}}\n") && sent > 4000);
}

//! One notification from a struct, against `serde_json::to_vec` of the same.

use dsh_wire::frame;
use serde::Serialize;

use crate::measure::{Subject, take_turns};

#[derive(Serialize)]
struct Params<'a> {
    #[serde(rename = "sessionId")]
    session: &'a str,
    event: Event<'a>,
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'a str,
    seq: u64,
    time: u64,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    turn: u64,
    kind: &'a str,
    delta: &'a str,
}

#[derive(Serialize)]
struct Frame<'a> {
    jsonrpc: &'a str,
    method: &'a str,
    params: &'a Params<'a>,
}

const FRAMES: u64 = 20_000;

fn params(text: &str, seq: u64) -> Params<'_> {
    let data = Data { turn: 3, kind: "text", delta: text };
    Params { session: "session-1", event: Event { r#type: "assistant/chunk", seq, time: 1_796_028_532_947, data } }
}

/// Into a buffer that goes out every 64 KiB, as a peer's does.
fn dsh_wire(text: &str) -> usize {
    let mut out = Vec::new();
    let mut sum = 0;
    for seq in 0..FRAMES {
        sum += frame::encode_notification(&mut out, "session.event", &params(text, seq)).expect("it has a JSON form");
        if out.len() > 64 << 10 {
            out.clear();
        }
    }
    sum
}

fn serde_json_vec(text: &str) -> usize {
    let mut sum = 0;
    for seq in 0..FRAMES {
        let frame = Frame { jsonrpc: "2.0", method: "session.event", params: &params(text, seq) };
        let out = serde_json::to_vec(&frame).expect("it has a JSON form");
        sum += std::hint::black_box(&out).len() + 1;
    }
    sum
}

pub fn table() {
    println!("\nencode one notification, speed ÷ serde_json::to_vec  (must 0.9, aim 1)");
    let long = "let x = 1;\n".repeat(100);
    for (name, text) in [
        ("short", "the session ends"),
        ("a line", "the session ends when its input does, and every frame is whole: \"a reader waits\"\n"),
        ("1 KB", &*long),
    ] {
        assert_eq!(dsh_wire(text), serde_json_vec(text));
        let mut subjects: Vec<Subject<'_>> =
            vec![("dsh-wire", Box::new(|| dsh_wire(text))), ("to_vec", Box::new(|| serde_json_vec(text)))];
        let times = take_turns(31, &mut subjects);
        println!(
            "{name:9} {:6.0} ns  {:5.2}",
            times.seconds("dsh-wire") * 1e9 / FRAMES as f64,
            times.ratio("to_vec", "dsh-wire")
        );
    }
}

//! One request and its response through two peers in memory, against the usual way: a `HashMap` of ids and `Value`s.

use std::collections::HashMap;

use dsh_wire::peer::{Event, Peer};
use serde::Serialize;
use serde_json::{Value, json};

use crate::measure::{Subject, take_turns};

const CALLS: u64 = 2000;

#[derive(Serialize)]
struct Prompt<'a> {
    #[serde(rename = "sessionId")]
    session: &'a str,
    #[serde(rename = "contentBlocks")]
    blocks: [Block<'a>; 1],
}

#[derive(Serialize)]
struct Block<'a> {
    r#type: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Receipt<'a> {
    #[serde(rename = "messageId")]
    message: &'a str,
}

const PROMPT: Prompt<'_> = Prompt {
    session: "session-1",
    blocks: [Block { r#type: "text", text: "Read the file and tell me what it does." }],
};
const RECEIPT: Receipt<'_> = Receipt { message: "fdabd8f0-3956-44a4-adf5-200bb43c4302" };

fn two_peers() -> usize {
    let mut client: Peer<u64> = Peer::with_seed(1);
    let mut server: Peer<()> = Peer::with_seed(2);
    let mut sum = 0;
    for number in 0..CALLS {
        client.request("session/prompt", &PROMPT, number, None).expect("the connection is open");
        let output = client.outgoing();
        server.push(output.bytes());
        let len = output.len();
        output.consume(len);
        let Some(Event::Request { method, params, reply }) = server.next_event() else { panic!("no request") };
        assert!(method == "session/prompt");
        sum += params.get().len();
        server.answer(reply, &RECEIPT).expect("the connection is open");
        let output = server.outgoing();
        client.push(output.bytes());
        let len = output.len();
        output.consume(len);
        let Some(Event::Response { tag, outcome: Ok(result), .. }) = client.next_event() else { panic!("no response") };
        assert_eq!(tag, number);
        sum += result.get().len();
    }
    sum
}

fn map_and_values() -> usize {
    let mut pending: HashMap<String, u64> = HashMap::new();
    let mut sum = 0;
    for number in 0..CALLS {
        let id = format!("req_{number:032x}");
        let params = serde_json::to_value(PROMPT).expect("it has a JSON form");
        let mut line = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}).to_string();
        line.push('\n');
        pending.insert(id, number);

        let request: Value = serde_json::from_str(line.trim()).expect("a frame");
        assert_eq!(request["method"], "session/prompt");
        sum += request["params"].as_object().map_or(0, serde_json::Map::len);
        let result = serde_json::to_value(RECEIPT).expect("it has a JSON form");
        let mut line = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        line.push('\n');

        let response: Value = serde_json::from_str(line.trim()).expect("a frame");
        let tag = response["id"].as_str().and_then(|id| pending.remove(id));
        assert_eq!(tag, Some(number));
        sum += response["result"].as_object().map_or(0, serde_json::Map::len);
    }
    sum
}

pub fn table() {
    let mut subjects: Vec<Subject<'_>> = vec![("peers", Box::new(two_peers)), ("map", Box::new(map_and_values))];
    let times = take_turns(41, &mut subjects);
    println!(
        "\nround trip: {:.0} ns; × HashMap + Value {:.2}  (must 5, aim 10)",
        times.seconds("peers") * 1e9 / CALLS as f64,
        times.ratio("map", "peers")
    );
}

/// For a profiler.
pub fn run() -> usize {
    two_peers()
}

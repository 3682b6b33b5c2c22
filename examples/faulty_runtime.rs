//! A small runtime with faults to choose from, for the tests of the client.
//!
//! `--wire=2026-07|0.1.1|0.2.1` chooses the revision; every other flag is one fault, and `METHOD` in it says at which
//! request it strikes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a fault of its own may end it")]

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, Read, Write};
use std::process::{Command, Stdio, exit};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use dsh_wire::frame::{self, Frame, Id};
use dsh_wire::json::Json;
use serde::Serialize;
use serde_json::{Value, json};

fn main() {
    let flags = Flags(std::env::args().skip(1).collect());
    flags.at_start();
    let mut runtime = Runtime { flags, out: Vec::new(), prompts: 0, asked: VecDeque::new() };
    // With this flag it waits for a notification `flood`, by which time the client has subscribed.
    if !runtime.flags.has("hold-flood") {
        runtime.flood();
    }
    let slow = SlowReader { left: runtime.flags.number("slow-read") };
    for line in io::BufReader::with_capacity(64 << 10, slow).split(b'\n') {
        let Ok(line) = line else { break };
        let mut scratch = String::new();
        match Frame::decode(&line, &mut scratch) {
            Ok(Frame::Request { id, method, params }) => runtime.serve(id, &method.to_string(), params),
            Ok(Frame::Response { id, outcome }) => runtime.answered(id, outcome),
            Ok(Frame::Notification { method, .. }) if method == "flood" => runtime.flood(),
            Ok(Frame::Notification { method, .. }) => runtime.notify("got.notification", json!({ "method": method })),
            Err(_) => {}
        }
    }
    runtime.flags.linger();
}

/// Reads a number of bytes one by one, a millisecond each, and then as usual.
struct SlowReader {
    left: usize,
}

impl Read for SlowReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return io::stdin().lock().read(buf);
        }
        self.left -= 1;
        thread::sleep(Duration::from_millis(1));
        // Past the buffer of std, so that the pipe is emptied one by one as well.
        Ok(rustix::io::read(rustix::stdio::stdin(), &mut buf[..1])?)
    }
}

struct Flags(Vec<String>);

impl Flags {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|flag| flag.strip_prefix("--") == Some(name))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|flag| flag.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
    }

    fn number(&self, name: &str) -> usize {
        self.value(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Whether the fault strikes at this method.
    fn at(&self, name: &str, method: &str) -> bool {
        self.value(name) == Some(method)
    }

    /// What comes between the wish that it may end and its end.
    fn linger(&self) {
        while self.has("ignore-eof") {
            thread::park();
        }
        thread::sleep(Duration::from_millis(self.number("slow-exit") as u64));
    }

    fn at_start(&self) {
        if self.has("ignore-term") {
            signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::new(AtomicBool::new(false))).unwrap();
        }
        if self.has("banner") {
            println!("Welcome to the runtime\n{{\"level\":\"info\"}}\n\n}}\n42\nContent-Length: 20\n[{{}}]");
        }
        for n in 0..self.number("stderr-lines") {
            eprintln!("stderr line {n} {}", "x".repeat(80));
        }
        let unbroken = self.number("stderr-bytes");
        if unbroken > 0 {
            io::stderr().write_all(&[b'x', 0xff].repeat(unbroken / 2)).unwrap();
        }
        if self.has("exit-at-start") {
            eprintln!("cannot even start");
            exit(7);
        }
        if self.has("close-stdin") {
            // Descriptor 0 becomes another file, so the pipe has no reader any more.
            let null = std::fs::File::open("/dev/null").unwrap();
            rustix::stdio::dup2_stdin(&null).unwrap();
            println!(r#"{{"method":"stdin.closed"}}"#);
            thread::sleep(Duration::from_secs(60));
        }
        if self.has("never-read") {
            thread::sleep(Duration::from_secs(60));
        }
    }
}

struct Runtime {
    flags: Flags,
    /// Frames that have not been written.
    out: Vec<u8>,
    prompts: u64,
    /// The ids and the params of the prompts that go on as the client answers, in order.
    asked: VecDeque<(String, String)>,
}

impl Runtime {
    fn notify(&mut self, method: &str, params: impl Serialize) {
        frame::encode_notification(&mut self.out, method, &params).unwrap();
        self.flush();
    }

    fn answer(&mut self, id: Id<'_>, result: impl Serialize) {
        frame::encode_result(&mut self.out, id, &result).unwrap();
        self.flush();
    }

    fn flush(&mut self) {
        let mut stdout = io::stdout().lock();
        if self.flags.has("cut") {
            for byte in self.out.drain(..) {
                let _ = stdout.write_all(&[byte]).and_then(|()| stdout.flush());
            }
        }
        if stdout.write_all(&self.out).and_then(|()| stdout.flush()).is_err() {
            exit(1);
        }
        self.out.clear();
    }

    /// What is sent before the first request is read.
    fn flood(&mut self) {
        for n in 0..self.flags.number("ask-first") {
            let id = n.to_string();
            let id = Id::new(Json::new(&id).unwrap()).unwrap();
            frame::encode_request(&mut self.out, id, "runtime/ask", &json!({ "n": n })).unwrap();
            self.flush();
        }
        for n in 0..self.flags.number("flood") {
            self.notify("tick", json!({ "n": n, "text": "x".repeat(self.flags.number("flood-text")) }));
        }
    }

    fn serve(&mut self, id: Id<'_>, method: &str, params: Json<'_>) {
        self.strike(id, method);
        match method {
            _ if self.flags.at("silent", method) => {}
            // One of the other clients wants to hear this name.
            "initialize" => {
                let info = json!({ "name": "deepseek-harness-sdk-runtime", "version": "0.0.1" });
                self.answer(id, json!({ "serverInfo": info }));
            }
            "session/prompt" if self.flags.has("ask-in-turn") => {
                let own = Id::new(Json::new("\"asked\"").unwrap()).unwrap();
                frame::encode_request(&mut self.out, own, "approval/request", &params).unwrap();
                self.flush();
                self.asked.push_back((id.get().to_owned(), params.get().to_owned()));
            }
            "session/prompt" => self.prompt(id, params),
            "session/wait" if self.flags.value("wire") == Some("0.1.1") => self.unknown(id, method),
            "session/wait" | "session/resume" => self.answer(id, json!({})),
            "session/working-directory/get" => self.answer(id, json!({ "cwd": "/somewhere" })),
            "session/working-directory/set" => self.answer(id, json!({ "cwd": params.member("path") })),
            "echo" => self.answer(id, params),
            "ask" => self.say(id),
            "env" => self.answer(id, std::env::vars().collect::<BTreeMap<_, _>>()),
            "shutdown" => {
                self.answer(id, json!({}));
                if !self.flags.has("ignore-eof") {
                    self.flags.linger();
                    exit(0);
                }
            }
            _ => self.unknown(id, method),
        }
    }

    /// Tells what the client has answered, and to what, and goes on with the prompt that waited for it.
    fn answered(&mut self, id: Id<'_>, outcome: frame::Outcome<'_>) {
        let said = match outcome {
            Ok(result) => ("result", result),
            Err(error) => ("error", error.raw()),
        };
        self.notify("got.response", BTreeMap::from([("id", Json::new(id.get()).unwrap()), said]));
        if let Some((id, params)) = self.asked.pop_front() {
            self.prompt(Id::new(Json::new(&id).unwrap()).unwrap(), Json::new(&params).unwrap());
        }
    }

    /// Answers `ask` with the bytes that the flags give: `%XX` in them is a byte, `@ID@` the id of the request.
    fn say(&mut self, id: Id<'_>) {
        let (len, depth) = (self.flags.number("answer-text"), self.flags.number("answer-depth"));
        if let Some(text) = self.flags.value("answer") {
            let said = percent_decoded(&text.replace("@ID@", id.get()));
            self.out.extend_from_slice(&said);
        } else if depth > 0 {
            let result = "[".repeat(depth) + &"]".repeat(depth);
            self.out.extend_from_slice(format!("{{\"id\":{},\"result\":{result}}}\n", id.get()).as_bytes());
        } else {
            return self.answer(id, json!({ "text": "x".repeat(len) }));
        }
        self.flush();
    }

    fn unknown(&mut self, id: Id<'_>, method: &str) {
        let message = format!("unknown DeepSeek Harness SDK runtime method: {method}");
        frame::encode_error(&mut self.out, id, -32603, &message, None::<&()>).unwrap();
        self.flush();
    }

    /// The faults that strike at a request.
    fn strike(&mut self, id: Id<'_>, method: &str) {
        if self.flags.at("exit", method) {
            eprintln!("something went wrong\nlast words");
            exit(3);
        }
        if self.flags.at("kill", method) {
            eprintln!("about to be killed");
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        if self.flags.at("close-stdout", method) {
            rustix::stdio::dup2_stdout(std::fs::File::open("/dev/null").unwrap()).unwrap();
        }
        if self.flags.at("grandchild", method) {
            // It keeps our stdout and stderr, in our group.
            Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
            exit(0);
        }
        if self.flags.at("spawn", method) {
            // In our group, with nothing of ours.
            let mut sleep = Command::new("sleep");
            #[expect(clippy::zombie_processes, reason = "it is the client's to end")]
            sleep.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        }
        if self.flags.at("big-answer", method) {
            self.answer(id, json!({ "text": "x".repeat(1 << 20) }));
            exit(0);
        }
        if self.flags.at("cut-answer", method) {
            self.out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            self.flush();
            exit(0);
        }
        if self.flags.at("twice", method) {
            self.answer(id, json!({ "n": 1 }));
        }
        if self.flags.at("odd", method) {
            self.answer(id, json!([1]));
        }
        if self.flags.at("late", method) {
            thread::sleep(Duration::from_millis(150));
        }
    }

    fn event(&mut self, session: &Value, kind: &str, data: Value) {
        let event = json!({ "type": kind, "seq": 0, "time": 0, "data": data });
        self.notify("session.event", json!({ "sessionId": session, "event": event }));
    }

    /// One plain turn, in the order in which the revision has it.
    fn prompt(&mut self, id: Id<'_>, params: Json<'_>) {
        self.prompts += 1;
        let message_id = format!("message-{}", self.prompts);
        let session = params.member("sessionId").map_or(Value::Null, |id| id.parse().unwrap());
        let blocks: Value = params.member("contentBlocks").map_or(Value::Null, |blocks| blocks.parse().unwrap());
        let text = format!("echo: {}", blocks[0]["text"].as_str().unwrap_or_default());
        let wire = self.flags.value("wire").unwrap_or("0.2.1").to_owned();
        let message = json!({ "role": "user", "content": blocks, "source": { "kind": "user" }, "id": message_id });
        if wire != "2026-07" {
            let splice = json!({ "target": "next-turn", "start": 0, "inserted": [message] });
            self.event(&session, "agent/inbox/spliced", splice);
            self.notify("session.status", json!({ "sessionId": session, "status": "running" }));
        }
        self.event(&session, "turn/start", json!({ "turn": 1 }));
        if wire != "2026-07" {
            self.answer(id, json!({ "messageId": message_id }));
        }
        if wire != "0.2.1" {
            for piece in ["echo: ", text.trim_start_matches("echo: ")] {
                let chunk = json!({ "type": "text-delta", "index": 0, "text": piece });
                self.event(&session, "assistant/chunk", json!({ "turn": 1, "step": 1, "chunk": chunk }));
            }
        }
        for n in 0..self.flags.number("events") {
            self.event(&session, "todo/write", json!({ "todos": [], "n": n }));
        }
        if self.flags.has("dies-in-turn") {
            eprintln!("died in mid-turn");
            exit(9);
        }
        let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] });
        self.event(&session, "assistant/message", json!({ "turn": 1, "step": 1, "message": message }));
        if self.flags.has("never-idle") {
            return;
        }
        self.event(&session, "turn/end", json!({ "turn": 1, "reason": { "kind": "completed" } }));
        if wire == "2026-07" {
            self.notify("session.finished", json!({ "sessionId": session, "status": "ok" }));
            self.answer(id, json!({ "accepted": true }));
        } else {
            self.notify("session.status", json!({ "sessionId": session, "status": "idle" }));
        }
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match hex.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    bytes
}

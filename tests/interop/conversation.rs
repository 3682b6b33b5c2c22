//! Drives a runtime over raw pipes, frame by frame, so that a comparison sees what is on the wire and nothing else.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything here takes: on a busy machine the official runtime needs 20 s to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// One running runtime and all frames it has sent.
pub(crate) struct Conversation {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Frames in wire order.
    frames: Vec<Value>,
    /// How many of `frames` a step has looked at.
    seen: usize,
    calls: usize,
}

impl Conversation {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { process, stdin, lines, frames: Vec::new(), seen: 0, calls: 0 }
    }

    /// Sends a request and waits for its answer; what comes before stays to be looked at.
    pub(crate) fn call(&mut self, method: &str, params: Value) {
        let id = self.send(method, params);
        self.until(|frame| frame["id"] == id);
    }

    /// Sends a request without waiting; returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = json!(format!("call-{}", self.calls));
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let stdin = self.stdin.as_mut().expect("stdin is still open");
        stdin.write_all(format!("{frame}\n").as_bytes()).unwrap();
        id
    }

    /// Prompts a session and waits until it is idle again.
    pub(crate) fn turn(&mut self, session: &str, text: &str) {
        self.send("session/prompt", prompt(session, text));
        self.idle(session);
    }

    pub(crate) fn idle(&mut self, session: &str) {
        self.until(|frame| frame["params"]["sessionId"] == session && frame["params"]["status"] == "idle");
    }

    /// Waits for a frame that no step has looked at yet.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Value) -> bool) {
        loop {
            while let Some(frame) = self.frames.get(self.seen) {
                self.seen += 1;
                if wanted(frame) {
                    return;
                }
            }
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("the awaited frame did not come ({error}); last: {:?}", self.frames.last())
            });
            self.frames.push(serde_json::from_str(&line).unwrap());
        }
    }

    /// Ends the input, and returns all frames and how the process ended.
    pub(crate) fn finish(mut self) -> (Vec<Value>, ExitStatus) {
        self.stdin = None;
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.frames.push(serde_json::from_str(&line).unwrap());
        }
        let status = self.process.wait().unwrap();
        (std::mem::take(&mut self.frames), status)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "contentBlocks": [{"type": "text", "text": text}]})
}

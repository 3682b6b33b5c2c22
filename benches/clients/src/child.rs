//! The fake runtime that everything is measured against: it answers as fast as it can, and blasts frames that were
//! prepared before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use dsh_wire::line::{Line, LineBuffer};
use memchr::memmem::Finder;

use crate::corpus;

/// One session for all events, so that every client sees them as those of one run.
pub const SESSION: &str = "session-0";

/// At least one frame of the corpus, and at most about so many bytes of them.
pub fn frames(name: &str, bytes: usize) -> Vec<u8> {
    let name = corpus::NAMES.into_iter().find(|known| *known == name).expect("the name of a corpus");
    let text = String::from_utf8(corpus::generate(name, bytes.min(8 << 20)).bytes).expect("text");
    // Only notifications count as received.
    let lines = text.lines().filter(|line| line.contains("\"session.event\""));
    let frames: String = lines.flat_map(|line| [line, "\n"]).collect();
    let frames = frames.replace("session-1", SESSION).replace("session-2", SESSION);
    frames.repeat((bytes / frames.len()).max(1)).into_bytes()
}

/// Serves until the end of the input: blasts of `bytes`, of which `prepared` are prepared and written again and again.
pub fn serve(name: &str, bytes: usize, prepared: usize) {
    let frames = frames(name, prepared.min(bytes));
    // Without the buffer of `io::stdout`, which looks for line ends.
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned().expect("a descriptor"));
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().expect("a descriptor"));
    let (id_name, method_name) = (Finder::new(b"\"id\":"), Finder::new(b"\"method\":"));
    let (mut lines, mut answer) = (LineBuffer::new(), Vec::new());
    loop {
        let Some(line) = lines.next_line() else {
            match lines.read_from(&mut stdin) {
                Ok(1..) => continue,
                _ => return,
            }
        };
        let Line::Whole { bytes: line, .. } = line else { continue };
        let Some(id) = value(line, &id_name) else { continue };
        let method = value(line, &method_name).unwrap_or_default();
        answer.clear();
        answer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        answer.extend_from_slice(id);
        let result: &[u8] = match method {
            b"\"blast\"" => {
                (0..(bytes / frames.len()).max(1)).for_each(|_| stdout.write_all(&frames).expect("a reader"));
                b",\"result\":{}}\n"
            }
            b"\"initialize\"" => {
                b",\"result\":{\"serverInfo\":{\"name\":\"deepseek-harness-sdk-runtime\",\"version\":\"0.0.1\"}}}\n"
            }
            b"\"session/prompt\"" => {
                turn(&mut stdout, &frames, &answer);
                continue;
            }
            _ => b",\"result\":{}}\n",
        };
        answer.extend_from_slice(result);
        if stdout.write_all(&answer).is_err() || method == b"\"shutdown\"" {
            return;
        }
    }
}

/// A prompt: its receipt, a million events, each hundred-thousandth of 1 MiB, and idle.
fn turn(stdout: &mut impl Write, frames: &[u8], answer: &[u8]) {
    let receipt = format!(
        r#"{{"jsonrpc":"2.0","method":"session.event","params":{{"sessionId":"{SESSION}","event":{{"type":"agent/inbox/spliced","seq":1,"time":1,"data":{{"target":"next-turn","start":0,"inserted":[{{"id":"m"}}]}}}}}}}}"#
    );
    let large = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session.event\",\"params\":{{\"sessionId\":\"{SESSION}\",\"event\":{{\"type\":\"tool/result\",\"seq\":1,\"time\":1,\"data\":{{\"text\":\"{}\"}}}}}}}}\n",
        "x".repeat((1 << 20) - 200)
    );
    let mut send = |bytes: &[u8]| stdout.write_all(bytes).expect("a reader");
    send(receipt.as_bytes());
    send(b"\n");
    send(answer);
    send(b",\"result\":{\"messageId\":\"m\"}}\n");
    let lines = memchr::memchr_iter(b'\n', frames).count();
    let mut sent = 0;
    for round in 0.. {
        if sent >= 1_000_000 {
            break;
        }
        if round % 10 == 0 {
            send(large.as_bytes());
        }
        send(frames);
        sent += lines;
    }
    send(
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session.status\",\"params\":{{\"sessionId\":\"{SESSION}\",\"status\":\"idle\"}}}}\n")
            .as_bytes(),
    );
}

/// The JSON text of a member that is a number or a plain string.
fn value<'l>(line: &'l [u8], name: &Finder<'_>) -> Option<&'l [u8]> {
    // Other clients put a space behind the colon.
    let start = name.find(line)? + name.needle().len();
    let rest = line.get(start..)?.trim_ascii_start();
    let len = match rest.first()? {
        b'"' => memchr::memchr(b'"', &rest[1..])? + 2,
        _ => rest.iter().position(|byte| matches!(byte, b',' | b'}'))?,
    };
    rest.get(..len)
}

/// The other end of a raw ping-pong.
pub fn pong() {
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().expect("a descriptor"));
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned().expect("a descriptor"));
    let mut bytes = [0; 4096];
    while let Ok(len @ 1..) = stdin.read(&mut bytes) {
        stdout.write_all(&bytes[..len]).and_then(|()| stdout.flush()).expect("a reader");
    }
}

//! The serving end: notifications out of `serve` through a pipe, and requests through it and back, against what the
//! pipe alone can do; beside it the transport of the reference server, under node. Pin it: `taskset -c 0,1
//! dsh-wire-bench serve`; on one processor (`taskset -c 0`) a hand-over to another thread costs the least.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::{NewEvent, Opening, Refusal};
use dsh_wire::stdio::{Agent, AgentHost, PromptResponder, ServeOptions, Sink, serve};
use dsh_wire::wire::InitializeParams;
use serde::Serialize;

use crate::measure::{Pass, Times, take_turns_of_threads};

/// Notifications in one turn.
const EVENTS: usize = 20_000;

/// Round trips in one turn.
const TRIPS: usize = 3_000;

/// Data of an event, as one of the medium ones of a session.
#[derive(Serialize)]
struct Data {
    turn: u64,
    step: u64,
    #[serde(rename = "callId")]
    call_id: &'static str,
    name: &'static str,
    arguments: &'static str,
}

const DATA: Data = Data {
    turn: 1,
    step: 2,
    call_id: "toolu_0123456789abcdef",
    name: "bash",
    arguments: "{\"command\": \"cargo test --features cli --test it -- server 2>&1 | tail -40\"}",
};

/// Tells events when told to, on a thread of its own.
struct Teller {
    go: Arc<Mutex<Receiver<()>>>,
}

struct Quiet(JsonString);

impl AgentHost for Teller {
    type Agent = Quiet;

    fn open(&self, _: Opening, route: &InitializeParams, sink: Sink) -> Result<Quiet, Refusal> {
        let go = self.go.clone();
        std::thread::spawn(move || {
            let go = go.lock().expect("one session");
            while go.recv().is_ok() {
                for _ in 0..EVENTS {
                    sink.session_event(&NewEvent::new("tool/call", &DATA)).expect("room");
                }
            }
        });
        Ok(Quiet(route.cwd.clone()))
    }
}

impl Agent for Quiet {
    fn prompt(&mut self, _: Json<'_>, reply: PromptResponder) {
        reply.accept("00000000-0000-4000-8000-000000000000");
    }

    fn working_directory(&mut self, _: Option<&JsonString>) -> Result<JsonString, Refusal> {
        Ok(self.0.clone())
    }
}

struct Served {
    requests: PipeWriter,
    answers: BufReader<PipeReader>,
    go: Sender<()>,
}

impl Served {
    fn start() -> Self {
        let (input, requests) = pipe().expect("a pipe");
        let (answers, output) = pipe().expect("a pipe");
        // As the loop of a real runtime has them: of its own, and not blocking.
        let (go, told) = channel();
        let host = Teller { go: Arc::new(Mutex::new(told)) };
        std::thread::spawn(move || {
            let (input, output) = (reopened(&input, false), reopened(&output, true));
            serve(host, input, output, ServeOptions::default()).expect("a poll")
        });
        let mut served = Self { requests, answers: BufReader::with_capacity(1 << 16, answers), go };
        served.trip(r#"{"id":0,"method":"initialize","params":{"cwd":"/","provider":"p","model":"m"}}"#);
        served.trip(r#"{"id":1,"method":"session/prompt","params":{"sessionId":"s","contentBlocks":[]}}"#);
        served
    }

    fn trip(&mut self, request: &str) -> usize {
        trip(&mut self.requests, &mut self.answers, request)
    }
}

/// One request and its answer.
fn trip(requests: &mut impl Write, answers: &mut impl BufRead, request: &str) -> usize {
    let mut line = Vec::with_capacity(256);
    line.extend_from_slice(request.as_bytes());
    line.push(b'\n');
    requests.write_all(&line).expect("it reads");
    line.clear();
    answers.read_until(b'\n', &mut line).expect("it answers")
}

/// The transport of the reference server.
struct Node {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Node {
    /// `None` where node or the package is not installed.
    fn start() -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let package = here.join("../../target/interop/node/node_modules/@deepseek-ai/dsh-sdk-protocol");
        if !package.exists() {
            return None;
        }
        let mut child = Command::new("node")
            .args([&here.join("src/serve.mjs"), &package])
            .arg(EVENTS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (requests, answers) = (child.stdin.take()?, BufReader::with_capacity(1 << 16, child.stdout.take()?));
        Some(Self { child, requests, answers })
    }

    fn tell(&mut self) -> usize {
        self.requests.write_all(b"{\"method\":\"tell\"}\n").expect("it reads");
        drain(&mut self.answers, EVENTS)
    }

    fn trip(&mut self, request: &str) -> usize {
        trip(&mut self.requests, &mut self.answers, request)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request that is handed to another thread, which answers: what one that goes through an agent cannot go below.
fn handing_over() -> (PipeWriter, PipeReader) {
    let (mut input, ping) = pipe().expect("a pipe");
    let (pong, mut output) = pipe().expect("a pipe");
    let (hand, handed) = channel::<Vec<u8>>();
    std::thread::spawn(move || handed.iter().all(|bytes| output.write_all(&bytes).is_ok()));
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = input.read(&mut buffer) {
            if hand.send(buffer[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    (ping, pong)
}

fn ping_pong(ping: &mut PipeWriter, pong: &mut PipeReader) -> usize {
    let mut buffer = [0; 256];
    ping.write_all(&[b'x'; 64]).expect("it reads");
    pong.read(&mut buffer).expect("it answers")
}

/// The same pipe as a description of its own in non-blocking mode, as [`dsh_wire::stdio::OwnStdio`] makes it.
fn reopened(fd: &impl std::os::fd::AsRawFd, write: bool) -> std::os::fd::OwnedFd {
    use std::os::unix::fs::OpenOptionsExt;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let mut options = std::fs::OpenOptions::new();
    options.read(!write).write(write).custom_flags(O_NONBLOCK).open(path).expect("a pipe can be opened anew").into()
}

const O_NONBLOCK: i32 = 0o4000;

/// Reads until so many lines have come; returns the bytes.
fn drain(from: &mut impl BufRead, lines: usize) -> usize {
    let (mut seen, mut bytes) = (0, 0);
    while seen < lines {
        let buffer = from.fill_buf().expect("a pipe");
        seen += memchr::memchr_iter(b'\n', buffer).count();
        let len = buffer.len();
        bytes += len;
        from.consume(len);
    }
    bytes
}

/// Notifications alone, for a profiler.
pub fn tell(turns: usize) {
    let mut served = Served::start();
    let start = std::time::Instant::now();
    for _ in 0..turns {
        served.go.send(()).expect("it tells");
        drain(&mut served.answers, EVENTS);
    }
    println!("{:.3} µs each", start.elapsed().as_secs_f64() * 1e6 / (turns * EVENTS) as f64);
}

pub fn table() {
    let mut served = Served::start();
    // What one turn of the teller sends, to be written again by a loop that does nothing else.
    served.go.send(()).expect("it tells");
    let mut prepared = Vec::new();
    for _ in 0..EVENTS {
        served.answers.read_until(b'\n', &mut prepared).expect("events");
    }
    let (raw, mut raw_writer) = pipe().expect("a pipe");
    let mut raw = BufReader::with_capacity(1 << 16, raw);
    let (write, written) = channel::<()>();
    let bytes = prepared.clone();
    let line = bytes.len() / EVENTS;
    std::thread::spawn(move || {
        while written.recv().is_ok() {
            bytes.chunks(1 << 16).for_each(|chunk| raw_writer.write_all(chunk).expect("it is read"));
        }
    });
    let (mut ping, mut pong) = echo();
    let (mut handed_ping, mut handed_pong) = handing_over();
    let node = Node::start().map(std::cell::RefCell::new);
    let served = std::cell::RefCell::new(served);
    let get = r#"{"id":7,"method":"session/working-directory/get","params":{"sessionId":"s"}}"#;
    let wait = r#"{"id":7,"method":"session/wait","params":{"sessionId":"s"}}"#;
    let mut subjects: Vec<Pass<'_>> = vec![
        (
            "notifications",
            Box::new(|| {
                let mut served = served.borrow_mut();
                served.go.send(()).expect("it tells");
                drain(&mut served.answers, EVENTS)
            }),
        ),
        (
            "prepared bytes",
            Box::new(|| {
                write.send(()).expect("it writes");
                drain(&mut raw, EVENTS)
            }),
        ),
        ("session/wait", Box::new(|| (0..TRIPS).map(|_| served.borrow_mut().trip(wait)).sum())),
        ("through an agent", Box::new(|| (0..TRIPS).map(|_| served.borrow_mut().trip(get)).sum())),
        ("ping-pong", Box::new(|| (0..TRIPS).map(|_| ping_pong(&mut ping, &mut pong)).sum())),
        ("hand-over", Box::new(|| (0..TRIPS).map(|_| ping_pong(&mut handed_ping, &mut handed_pong)).sum())),
    ];
    if let Some(node) = &node {
        subjects.push(("node: events", Box::new(|| node.borrow_mut().tell())));
        subjects.push(("node: request", Box::new(|| (0..TRIPS).map(|_| node.borrow_mut().trip(wait)).sum())));
    }
    let (wall, process) = take_turns_of_threads(15, &mut subjects);
    println!("{EVENTS} notifications of {line} bytes, {TRIPS} round trips; medians");
    report("wall clock", &wall);
    // That of node is another process's.
    report("processor time of all threads", &process);
}

fn report(clock: &str, times: &Times) {
    println!("{clock}:");
    for (names, count) in [
        (&["notifications", "prepared bytes", "node: events"][..], EVENTS),
        (&["session/wait", "through an agent", "ping-pong", "hand-over", "node: request"], TRIPS),
    ] {
        for name in names {
            println!("  {name:18} {:8.3} µs each", times.seconds(name) * 1e6 / count as f64);
        }
    }
    for (of, by) in [
        ("notifications", "prepared bytes"),
        ("session/wait", "ping-pong"),
        ("through an agent", "ping-pong"),
        ("through an agent", "hand-over"),
        ("node: events", "notifications"),
        ("node: request", "session/wait"),
    ] {
        println!("  {of} ÷ {by}: {:.2}", times.ratio(of, by));
    }
}

/// A thread that sends back whatever it reads.
fn echo() -> (PipeWriter, PipeReader) {
    let (mut input, ping) = pipe().expect("a pipe");
    let (pong, mut output) = pipe().expect("a pipe");
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(len @ 1..) = input.read(&mut buffer) {
            if output.write_all(&buffer[..len]).is_err() {
                return;
            }
        }
    });
    (ping, pong)
}

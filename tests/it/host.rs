//! Hosts of many kinds behind `serve`, on pipes in this process.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::{NewEvent, Opening, Refusal};
use dsh_wire::stdio::{
    Agent, AgentHost, OwnStdio, PromptResponder, RequestError, ServeOptions, Served, Sink, SinkError, WhenFull,
    serve_stdio,
};
use dsh_wire::wire::InitializeParams;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::connection::Connection;

type Behaviour = dyn Fn(&Sink, Json<'_>, PromptResponder) + Send + Sync;

/// A host whose agents all behave alike.
struct Host(Arc<Behaviour>);

struct Puppet(Arc<Behaviour>, Sink);

impl AgentHost for Host {
    type Agent = Puppet;

    fn open(&self, _: Opening, _: &InitializeParams, sink: Sink) -> Result<Puppet, Refusal> {
        assert_ne!(sink.session(), &"bad".into(), "a bad session");
        Ok(Puppet(self.0.clone(), sink))
    }
}

impl Agent for Puppet {
    fn prompt(&mut self, content_blocks: Json<'_>, reply: PromptResponder) {
        (self.0)(&self.1, content_blocks, reply);
    }

    fn working_directory(&mut self, _: Option<&JsonString>) -> Result<JsonString, Refusal> {
        panic!("no directory {}", "here");
    }

    fn release(self) -> Result<(), Refusal> {
        if self.1.session() == &"stuck".into() { Err("the disk is full".into()) } else { Ok(()) }
    }
}

fn connect(
    options: ServeOptions,
    behaviour: impl Fn(&Sink, Json<'_>, PromptResponder) + Send + Sync + 'static,
) -> Connection {
    Connection::new(Host(Arc::new(behaviour)), options)
}

fn prompt(id: u32, session: &str) -> String {
    let params = format!(r#"{{"sessionId":"{session}","contentBlocks":[]}}"#);
    format!(r#"{{"id":{id},"method":"session/prompt","params":{params}}}"#)
}

/// Lets a handler wait for the test.
fn gate() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
    let (open, gate) = channel();
    (open, Arc::new(Mutex::new(gate)))
}

#[test]
fn a_slow_handler_holds_up_nobody_else() {
    let (open, gate) = gate();
    let mut client = connect(ServeOptions::default(), move |sink, _, reply| {
        if sink.session() == &"slow".into() {
            gate.lock().unwrap().recv().unwrap();
        }
        reply.accept("m");
    });
    client.says(&prompt(1, "slow"));
    client.says(&prompt(2, "fast"));
    assert!(client.hears().contains(r#""id":2,"result""#));
    client.says(r#"{"id":3,"method":"session/wait","params":{"sessionId":"fast"}}"#);
    assert!(client.hears().contains(r#""id":3,"result""#));
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""id":1,"result""#));
    assert!(matches!(client.ends().1, Served::InputEnded));
}

#[test]
fn panics_and_dropped_responders_are_answered() {
    let mut client = connect(ServeOptions::default(), |sink, _, reply| {
        if sink.session() == &"drop".into() {
            return drop(reply);
        }
        panic!("on purpose");
    });
    for (id, session, message) in [
        (1, "drop", "the agent dropped the prompt without an answer"),
        (2, "panic", "the agent panicked while it took the prompt"),
        (3, "bad", "the agent panicked: assertion `left != right` failed: a bad session"),
        (4, "panic", "the agent panicked while it took the prompt"),
    ] {
        client.says(&prompt(id, session));
        let answer = client.hears();
        assert!(answer.contains(&format!(r#""id":{id},"error":{{"code":-32603,"message":"{message}"#)), "{answer}");
    }
    client.says(r#"{"id":5,"method":"session/working-directory/get","params":{"sessionId":"drop"}}"#);
    assert!(client.hears().contains("the agent panicked: no directory here"));
    client.says(r#"{"id":6,"method":"shutdown"}"#);
    assert!(client.hears().contains(r#""id":6,"result":{}"#));
    assert!(matches!(client.served(), Served::Shutdown));
}

#[test]
fn a_release_that_fails_is_the_answer_to_shutdown() {
    let mut client = connect(ServeOptions::default(), |_, _, reply| reply.accept("m"));
    client.says(&prompt(1, "stuck"));
    assert!(client.hears().contains(r#""id":1,"result""#));
    client.says(r#"{"id":2,"method":"shutdown"}"#);
    assert!(client.hears().contains(r#""id":2,"error":{"code":-32603,"message":"the disk is full"}"#));
    // It lives on until the input ends.
    client.says(r#"{"id":3,"method":"nope"}"#);
    assert!(client.hears().contains(r#""id":3,"error""#));
    assert_eq!(client.ends().1.exit_code(), 0);
}

#[test]
fn prompts_accepted_before_the_end_of_input_are_answered() {
    let (open, gate) = gate();
    let mut client = connect(ServeOptions::default(), move |_, _, reply| {
        gate.lock().unwrap().recv().unwrap();
        reply.accept("m");
    });
    client.says(&prompt(1, "a"));
    client.says(&prompt(2, "a"));
    client.requests = None;
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""id":1,"result""#));
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""id":2,"result""#));
    assert_eq!(client.hears_any(), None);
    assert_eq!(client.ends().1.exit_code(), 0);
}

#[test]
fn the_end_is_bounded() {
    let bound = Duration::from_millis(50);
    let mut options = ServeOptions::default();
    (options.finish_within, options.release_within) = (bound, bound);
    options.max_backlog = 4 << 20;
    // Neither answers nor lets go, and a third one sends without being read.
    let (_open, gate) = gate();
    let (told, all_told) = channel();
    let told = Mutex::new(told);
    let mut client = connect(options, move |sink, _, reply| {
        (0..3).for_each(|_| _ = sink.session_event(&NewEvent::new("flood", &"x".repeat(1 << 20))));
        reply.accept("m");
        told.lock().unwrap().send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
    });
    client.says(&prompt(1, "a"));
    all_told.recv().unwrap();
    let started = Instant::now();
    // What was not read is told.
    let served = client.ends_unread();
    assert!(matches!(served, Served::CutShort { unanswered: 0, unread: 1_900_000.. }), "{served:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// A prompt that is never answered is told of, not forgotten.
#[test]
fn what_is_not_answered_is_told() {
    let mut options = ServeOptions::default();
    // The agents are released when the time for the answers is up, and then nothing is waited for.
    (options.finish_within, options.release_within) = (Duration::from_millis(50), Duration::from_secs(60));
    let kept = Mutex::new(Vec::new());
    let mut client = connect(options, move |_, _, reply| kept.lock().unwrap().push(reply));
    client.says(&prompt(1, "a"));
    client.says(&prompt(2, "b"));
    let started = Instant::now();
    let (lines, served) = client.ends();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(lines, [""; 0]);
    assert!(matches!(served, Served::CutShort { unanswered: 2, unread: 0 }), "{served:?}");
    assert_eq!(served.exit_code(), 1);
}

/// Writes requests until no more are taken; returns how many bytes were written of the last one.
fn writes_until_held_up(client: &Connection, method: &str) -> (usize, usize) {
    let mut requests = client.requests.as_ref().unwrap();
    let (mut id, mut sent) = (0, 0);
    let flags = rustix::fs::fcntl_getfl(requests).unwrap();
    rustix::fs::fcntl_setfl(requests, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    loop {
        let line = format!("{{\"id\":{id},\"method\":\"{method}\"}}\n");
        match requests.write(&line.as_bytes()[sent..]) {
            Ok(written) if sent + written < line.len() => sent += written,
            Ok(_) => (id, sent) = (id + 1, 0),
            // A quarter of a second without room: nobody reads.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let patience = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
                if poll(&mut [PollFd::new(requests, PollFlags::OUT)], Some(&patience)).unwrap() == 0 {
                    rustix::fs::fcntl_setfl(requests, flags).unwrap();
                    return (id, line.len() - sent);
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(id < 100_000, "it takes everything");
    }
}

/// Answers are never refused, so whoever asks without reading is not heard any more at some point; nothing is lost.
#[test]
fn a_client_that_asks_and_does_not_read_is_held_up() {
    let mut options = ServeOptions::default();
    (options.max_unread, options.finish_within, options.release_within) =
        (1 << 20, Duration::from_secs(9), Duration::ZERO);
    let method = "m".repeat(1000);
    let mut client = connect(options.clone(), |_, _, reply| reply.accept("m"));
    let (whole, missing) = writes_until_held_up(&client, &method);
    // The bound, what the two pipes hold, and one read.
    assert!(whole < ((1 << 20) + (256 << 10)) / 1000, "{whole} requests");
    // Heard again once it reads.
    for id in 0..whole / 2 {
        assert!(client.hears().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error""#)));
    }
    let line = format!("{{\"id\":{whole},\"method\":\"{method}\"}}");
    client.says(&line[line.len() + 1 - missing..]);
    let (lines, served) = client.ends();
    assert!(matches!(served, Served::InputEnded), "{served:?}");
    assert_eq!(lines.len(), whole - whole / 2 + 1);

    // One that goes away unread is noticed all the same.
    options.finish_within = Duration::from_millis(50);
    let client = connect(options, |_, _, reply| reply.accept("m"));
    writes_until_held_up(&client, &method);
    let started = Instant::now();
    let served = client.ends_unread();
    assert!(matches!(served, Served::CutShort { unanswered: 0, unread: 1_000_000.. }), "{served:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// 3000 requests to the client, and as many of the client's, before it reads: each gets its own answer.
#[test]
fn both_ask_before_the_client_reads() {
    const EACH: usize = 3000;
    let (told, outcomes) = channel();
    let mut client = connect(ServeOptions::default(), move |sink, _, reply| {
        for number in 0..EACH {
            let (sink, told) = (sink.clone(), told.clone());
            let ask = move || {
                let outcome = sink.request("ask", &[number], Duration::from_secs(20));
                told.send((number, outcome.map(|result| result.as_json().get().to_owned()))).unwrap();
            };
            std::thread::Builder::new().stack_size(128 << 10).spawn(ask).unwrap();
        }
        reply.accept("m");
    });
    client.says(&prompt(1, "s"));
    (0..EACH).for_each(|id| client.says(&format!(r#"{{"id":{id},"method":"nope"}}"#)));
    let (mut asked, mut answered) = (Vec::new(), 0);
    while asked.len() < EACH || answered < EACH {
        let line = client.hears();
        let frame = Json::new(&line).unwrap();
        answered += usize::from(frame.member("error").is_some());
        if frame.member("method").is_some() {
            asked.push([frame.member("id").unwrap().to_buf(), frame.member("params").unwrap().to_buf()]);
        }
    }
    // In an order of its own.
    for [id, params] in asked.iter().rev() {
        client.says(&format!(r#"{{"id":{},"result":{}}}"#, id.as_json().get(), params.as_json().get()));
    }
    for _ in 0..EACH {
        let (number, outcome) = outcomes.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(outcome.unwrap(), format!("[{number}]"));
    }
    client.ends();
}

/// Data whose form is made by code that takes its time and tells events itself.
struct Winding<'a>(&'a Sink, &'a Mutex<Receiver<()>>);

impl serde::Serialize for Winding<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.session_event(&NewEvent::new("inner", &1)).unwrap();
        self.1.lock().unwrap().recv().unwrap();
        serializer.serialize_str("outer")
    }
}

#[test]
fn data_that_is_slow_to_write_holds_up_nobody() {
    let (open, gate) = gate();
    let mut client = connect(ServeOptions::default(), move |sink, _, reply| {
        reply.accept("m");
        sink.session_event(&NewEvent::new("told", &Winding(sink, &gate))).unwrap();
        assert!(matches!(sink.request("ask", &Winding(sink, &gate), Duration::ZERO), Err(RequestError::TimedOut)));
    });
    client.says(&prompt(1, "s"));
    client.hears_up_to("inner");
    client.says(r#"{"id":2,"method":"nope"}"#);
    assert!(client.hears().contains(r#""id":2,"error""#));
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""type":"told","seq":1"#));
    client.hears_up_to("inner");
    open.send(()).unwrap();
    client.ends();
}

/// After the end of the input what was accepted goes on being told, up to the last answer and not beyond it.
#[test]
fn events_end_with_the_last_answer_after_the_end_of_input() {
    let (open, gate) = gate();
    let (told, last) = channel();
    let mut client = connect(ServeOptions::default(), move |sink, _, reply| {
        sink.session_event(&NewEvent::new("begun", &1)).unwrap();
        gate.lock().unwrap().recv().unwrap();
        sink.session_event(&NewEvent::new("before", &1)).unwrap();
        reply.accept("m");
        sink.session_event(&NewEvent::new("after", &1)).unwrap();
        told.send(()).unwrap();
    });
    client.says(&prompt(1, "s"));
    client.hears_up_to("begun");
    client.says(r#"{"id":2,"method":"session/wait","params":{"sessionId":"s"}}"#);
    client.requests = None;
    // The end has been seen.
    assert!(client.hears().contains(r#""id":2,"result""#));
    open.send(()).unwrap();
    let (lines, served) = client.ends();
    last.recv().unwrap();
    assert!(matches!(served, Served::InputEnded), "{served:?}");
    assert!(lines[0].contains("before") && lines[1].contains(r#""id":1,"result""#) && lines.len() == 2, "{lines:?}");
}

#[test]
fn a_slow_reader_pushes_back() {
    const EVENTS: usize = 2000;
    for when_full in [WhenFull::Block, WhenFull::Fail] {
        let mut options = ServeOptions::default();
        (options.max_backlog, options.when_full) = (64 << 10, when_full);
        let (told, full) = channel();
        let mut client = connect(options, move |sink, _, reply| {
            reply.accept("m");
            let text = "x".repeat(1000);
            let sent = (0..EVENTS).take_while(|_| match sink.session_event(&NewEvent::new("flood", &text)) {
                Ok(_) => true,
                Err(error) => {
                    assert!(matches!(error, SinkError::Full), "{error}");
                    false
                }
            });
            told.send(sent.count()).unwrap();
        });
        client.says(&prompt(1, "a"));
        // Requests are read and answered though the output is full.
        client.says(r#"{"id":2,"method":"nope"}"#);
        let sent = match when_full {
            WhenFull::Fail => {
                let sent = full.recv().unwrap();
                assert!(sent < 400, "{sent} events in memory and pipe");
                sent
            }
            WhenFull::Block => EVENTS,
        };
        let mut next = 0;
        while next < sent {
            let line = client.hears();
            if line.contains("flood") {
                assert!(line.contains(&format!(r#""seq":{next},"#)), "event {next}: {line:.200}");
                next += 1;
            }
        }
        assert!(matches!(client.ends().1, Served::InputEnded));
    }
}

/// Many sessions tell at once: each keeps its order, every line is a frame, every prompt is answered.
#[test]
fn many_sessions_at_once() {
    const SESSIONS: usize = 20;
    const PROMPTS: usize = 25;
    let mut client = connect(ServeOptions::default(), |sink, _, reply| {
        sink.session_event(&NewEvent::new("before", &1)).unwrap();
        reply.accept("m");
        sink.session_event(&NewEvent::new("after", &1)).unwrap();
    });
    let mut requests = client.requests.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 0..SESSIONS * PROMPTS {
            let params = format!(r#"{{"sessionId":"s{}","contentBlocks":[]}}"#, id % SESSIONS);
            writeln!(requests, r#"{{"id":{id},"method":"session/prompt","params":{params}}}"#).unwrap();
        }
        requests
    });
    let mut seqs = [0; SESSIONS];
    let mut answered = 0;
    while answered < SESSIONS * PROMPTS || seqs.iter().any(|seq| *seq < PROMPTS as u64 * 2) {
        let line = client.hears();
        let frame = Json::new(&line).unwrap();
        let Some(params) = frame.member("params") else {
            assert!(frame.member("result").is_some(), "{line}");
            answered += 1;
            continue;
        };
        let session = params.member("sessionId").unwrap().as_str().unwrap().to_string();
        let seq = params.member("event").unwrap().member("seq").unwrap().as_u64().unwrap();
        let next = &mut seqs[session[1..].parse::<usize>().unwrap()];
        assert_eq!(seq, *next);
        *next += 1;
    }
    client.requests = Some(writer.join().unwrap());
    assert!(matches!(client.ends().1, Served::InputEnded));
}

/// Eight threads tell large events of one session: each line is whole, and the numbers are in order.
#[test]
fn large_events_do_not_mix() {
    const THREADS: usize = 8;
    const EVENTS: usize = 25;
    let mut client = connect(ServeOptions::default(), |sink, _, reply| {
        reply.accept("m");
        for letter in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let (sink, text) = (sink.clone(), letter.repeat(200_000));
            std::thread::spawn(move || {
                (0..EVENTS).for_each(|_| _ = sink.session_event(&NewEvent::new("large", &text)).unwrap());
            });
        }
    });
    client.says(&prompt(1, "s"));
    let mut seen = BTreeMap::new();
    let mut next = 0;
    while next < THREADS * EVENTS {
        let line = client.hears();
        let frame = Json::new(&line).unwrap();
        let Some(params) = frame.member("params") else { continue };
        let event = params.member("event").unwrap();
        assert_eq!(event.member("seq").unwrap().as_u64(), Some(next as u64));
        let text = event.member("data").unwrap().as_str().unwrap().to_string();
        assert!(text.len() == 200_000 && text.bytes().all(|byte| text.starts_with(char::from(byte))), "{text:.20}");
        *seen.entry(text.as_bytes()[0]).or_insert(0) += 1;
        next += 1;
    }
    assert!(seen.len() == THREADS && seen.values().all(|events| *events == EVENTS), "{seen:?}");
    client.ends();
}

/// Not a test: what `stray_output_goes_to_stderr` starts in a process of its own.
#[test]
#[ignore = "runs as a child of another test"]
fn polluting_child() {
    let host = Host(Arc::new(|_, _, reply| {
        // The test harness would catch `println!`.
        let _ = std::io::stdout().write_all(b"stray line\n");
        let status = std::process::Command::new("echo").arg("stray child").status();
        assert!(status.is_ok_and(|status| status.success()));
        assert!(OwnStdio::take().is_err(), "taken twice");
        reply.accept("m");
    }));
    assert!(matches!(serve_stdio(host, ServeOptions::default()).unwrap(), Served::InputEnded));
    std::io::stdout().write_all(b"stdout is back\n").unwrap();
}

#[test]
fn stray_output_goes_to_stderr() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "host::polluting_child", "--ignored", "--nocapture", "--test-threads=1"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    writeln!(stdin, r#"{{"id":0,"method":"initialize","params":{{"cwd":"/","provider":"p","model":"m"}}}}"#).unwrap();
    let mut text = String::new();
    while !text.contains("serverInfo") {
        assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{text}");
    }
    writeln!(stdin, r#"{{"id":1,"method":"session/prompt","params":{{"sessionId":"s","contentBlocks":[]}}}}"#).unwrap();
    drop(stdin);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut stdout, &mut rest).unwrap();
    let rest = String::from_utf8(rest).unwrap();
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut stderr).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}\n{stderr}");
    assert!(
        rest.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"messageId\":\"m\"}}\nstdout is back\n"),
        "{rest}"
    );
    assert!(stderr.contains("stray line") && stderr.contains("stray child"), "{stderr}");
}

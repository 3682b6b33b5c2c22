//! Hosts of many kinds behind `serve`, on pipes in this process.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::{NewEvent, Opening, Refusal};
use dsh_wire::stdio::{
    Agent, AgentHost, OwnStdio, PromptResponder, ServeOptions, Served, Sink, SinkError, WhenFull, serve, serve_stdio,
};
use dsh_wire::wire::InitializeParams;

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

struct Connection {
    requests: Option<PipeWriter>,
    answers: BufReader<PipeReader>,
    server: Option<JoinHandle<Served>>,
}

impl Connection {
    fn new(
        options: ServeOptions,
        behaviour: impl Fn(&Sink, Json<'_>, PromptResponder) + Send + Sync + 'static,
    ) -> Self {
        let (input, requests) = pipe().unwrap();
        let (answers, output) = pipe().unwrap();
        let host = Host(Arc::new(behaviour));
        let server = std::thread::spawn(move || serve(host, input.into(), output.into(), options).unwrap());
        let answers = BufReader::new(answers);
        let mut connection = Self { requests: Some(requests), answers, server: Some(server) };
        connection.says(r#"{"id":0,"method":"initialize","params":{"cwd":"/","provider":"p","model":"m"}}"#);
        assert!(connection.hears().contains("serverInfo"));
        connection
    }

    fn says(&mut self, line: &str) {
        writeln!(self.requests.as_mut().unwrap(), "{line}").unwrap();
    }

    fn prompts(&mut self, id: u32, session: &str) {
        let params = format!(r#"{{"sessionId":"{session}","contentBlocks":[]}}"#);
        self.says(&format!(r#"{{"id":{id},"method":"session/prompt","params":{params}}}"#));
    }

    fn hears(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }

    fn ends(mut self) -> Served {
        self.requests = None;
        self.server.take().unwrap().join().unwrap()
    }
}

/// Lets a handler wait for the test.
fn gate() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
    let (open, gate) = channel();
    (open, Arc::new(Mutex::new(gate)))
}

#[test]
fn a_slow_handler_holds_up_nobody_else() {
    let (open, gate) = gate();
    let mut client = Connection::new(ServeOptions::default(), move |sink, _, reply| {
        if sink.session() == &"slow".into() {
            gate.lock().unwrap().recv().unwrap();
        }
        reply.accept("m");
    });
    client.prompts(1, "slow");
    client.prompts(2, "fast");
    assert!(client.hears().contains(r#""id":2,"result""#));
    client.says(r#"{"id":3,"method":"session/wait","params":{"sessionId":"fast"}}"#);
    assert!(client.hears().contains(r#""id":3,"result""#));
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""id":1,"result""#));
    assert!(matches!(client.ends(), Served::InputEnded));
}

#[test]
fn panics_and_dropped_responders_are_answered() {
    let mut client = Connection::new(ServeOptions::default(), |sink, _, reply| {
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
        client.prompts(id, session);
        let answer = client.hears();
        assert!(answer.contains(&format!(r#""id":{id},"error":{{"code":-32603,"message":"{message}"#)), "{answer}");
    }
    client.says(r#"{"id":5,"method":"session/working-directory/get","params":{"sessionId":"drop"}}"#);
    assert!(client.hears().contains("the agent panicked: no directory here"));
    client.says(r#"{"id":6,"method":"shutdown"}"#);
    assert!(client.hears().contains(r#""id":6,"result":{}"#));
    assert!(matches!(client.server.take().unwrap().join().unwrap(), Served::Shutdown));
}

#[test]
fn a_release_that_fails_is_the_answer_to_shutdown() {
    let mut client = Connection::new(ServeOptions::default(), |_, _, reply| reply.accept("m"));
    client.prompts(1, "stuck");
    assert!(client.hears().contains(r#""id":1,"result""#));
    client.says(r#"{"id":2,"method":"shutdown"}"#);
    assert!(client.hears().contains(r#""id":2,"error":{"code":-32603,"message":"the disk is full"}"#));
    // It lives on until the input ends.
    client.says(r#"{"id":3,"method":"nope"}"#);
    assert!(client.hears().contains(r#""id":3,"error""#));
    assert_eq!(client.ends().exit_code(), 0);
}

#[test]
fn prompts_accepted_before_the_end_of_input_are_answered() {
    let (open, gate) = gate();
    let mut client = Connection::new(ServeOptions::default(), move |_, _, reply| {
        gate.lock().unwrap().recv().unwrap();
        reply.accept("m");
    });
    client.prompts(1, "a");
    client.prompts(2, "a");
    client.requests = None;
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""id":1,"result""#));
    open.send(()).unwrap();
    assert!(client.hears().contains(r#""id":2,"result""#));
    assert_eq!(client.hears(), "");
    assert_eq!(client.ends().exit_code(), 0);
}

#[test]
fn the_end_is_bounded() {
    let bound = Duration::from_millis(50);
    let mut options = ServeOptions::default();
    (options.finish_within, options.release_within) = (bound, bound);
    // Neither answers nor lets go, and a third one sends without being read.
    let (_open, gate) = gate();
    let mut client = Connection::new(options, move |sink, _, reply| {
        reply.accept("m");
        let _ = sink.session_event(&NewEvent::new("flood", &"x".repeat(1 << 20)));
        let _ = gate.lock().unwrap().recv();
    });
    client.prompts(1, "a");
    let started = Instant::now();
    assert!(matches!(client.ends(), Served::InputEnded));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_slow_reader_pushes_back() {
    const EVENTS: usize = 2000;
    for when_full in [WhenFull::Block, WhenFull::Fail] {
        let mut options = ServeOptions::default();
        (options.max_backlog, options.when_full) = (64 << 10, when_full);
        let (told, full) = channel();
        let mut client = Connection::new(options, move |sink, _, reply| {
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
        client.prompts(1, "a");
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
        assert!(matches!(client.ends(), Served::InputEnded));
    }
}

/// Many sessions tell at once: each keeps its order, every line is a frame, every prompt is answered.
#[test]
fn many_sessions_at_once() {
    const SESSIONS: usize = 20;
    const PROMPTS: usize = 25;
    let mut client = Connection::new(ServeOptions::default(), |sink, _, reply| {
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
    assert!(matches!(client.ends(), Served::InputEnded));
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

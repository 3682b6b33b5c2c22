//! Agents that take turns behind `serve`, on pipes in this process.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dsh_wire::json::Json;
use dsh_wire::server::{NewEvent, Opening, Refusal};
use dsh_wire::stdio::turns::{
    Answer, NewSession, Step, SubAgent, ToolError, ToolOutput, ToolUse, TurnAgent, TurnError, TurnHost, Turns,
};
use dsh_wire::stdio::{RequestError, ServeOptions, Served, Sink};
use dsh_wire::wire::InitializeParams;

use crate::connection::Connection;

fn connect(answer: impl Fn(&mut Step<'_>) -> Result<Answer, TurnError> + Send + Sync + 'static) -> Connection {
    Connection::new(Turns::from_fn(answer), ServeOptions::default())
}

fn prompt(id: usize, session: &str, text: &str) -> String {
    let blocks = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    let params = format!(r#"{{"sessionId":"{session}","contentBlocks":{blocks}}}"#);
    format!(r#"{{"id":{id},"method":"session/prompt","params":{params}}}"#)
}

/// The types of the events, and what is between them.
fn words(lines: &[String]) -> Vec<String> {
    let word = |line: &String| {
        let frame = Json::new(line).unwrap();
        let text = |of: Option<Json<'_>>| of.and_then(Json::as_str).map(|text| text.to_string());
        let params = frame.member("params");
        let event = params.and_then(|params| params.member("event"));
        text(event.and_then(|event| event.member("type")))
            .or_else(|| text(params.and_then(|params| params.member("status"))))
            .unwrap_or_else(|| frame.member("id").map_or("?", |_| "answer").to_string())
    };
    lines.iter().map(word).collect()
}

#[test]
fn a_closure_gets_the_official_order() {
    let mut client = connect(|step| Ok(format!("you said {}", step.prompt_text()).into()));
    client.says(&prompt(1, "s", "hi \\ud83d"));
    let lines = client.hears_up_to("idle");
    let expected = [
        "agent/inbox/spliced",
        "running",
        "turn/start",
        "agent/inbox/spliced",
        "answer",
        "step/start",
        "user/message",
        "assistant/message",
        "step/end",
        "turn/end",
        "idle",
    ];
    assert_eq!(words(&lines), expected);
    // The receipt is known by its id.
    let id = Json::new(&lines[4]).unwrap().member("result").unwrap().member("messageId").unwrap().get().to_owned();
    assert!(lines[0].contains(&format!(r#""id":{id}"#)) && lines[6].contains(&format!(r#""id":{id}"#)));
    assert!(lines[7].contains(r#""content":[{"type":"text","text":"you said hi "#), "{}", lines[7]);
    client.says(r#"{"id":2,"method":"session/resume","params":{"sessionId":"t"}}"#);
    assert!(client.hears().contains("not found"));
    assert!(matches!(client.ends(), (_, Served::InputEnded)));
}

#[test]
fn prompts_queue_and_are_answered_at_once() {
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let mut client = connect(move |step| {
        gate.lock().unwrap().recv().unwrap();
        Ok(step.prompt_text().into())
    });
    for id in 1..=3 {
        client.says(&prompt(id, "s", &format!("p{id}")));
        client.hears_up_to(&format!(r#""id":{id},"result""#));
    }
    (0..3).for_each(|_| go.send(()).unwrap());
    let lines = client.hears_up_to("idle");
    assert_eq!(lines.iter().filter(|line| line.contains("running")).count(), 0);
    let answers: Vec<_> = lines.iter().filter(|line| line.contains("assistant/message")).collect();
    assert!(answers.iter().zip(1..).all(|(line, n)| line.contains(&format!(r#""text":"p{n}""#))), "{answers:?}");
    client.ends();
}

struct Tooled;

impl TurnAgent for Tooled {
    fn begin_step(&mut self, step: &mut Step<'_>) {
        step.tell(&NewEvent::new("mine", &step.number()));
    }

    fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
        if step.number() == 1 {
            let answer = ["add", "panic", "none"].into_iter().map(|name| ToolUse::new(name, r#"{"n":2}"#));
            return Ok(answer.fold(Answer::new(), Answer::tool));
        }
        let mut answer = Answer::new();
        let now = step.now();
        answer.push_thinking(now, "o");
        answer.push_thinking(now + 5, "k");
        Ok(answer.text("done").cut_at_max_tokens())
    }

    fn use_tool(&mut self, _: &mut Step<'_>, call: &ToolUse) -> Result<ToolOutput, ToolError> {
        match call.name() {
            "add" => Ok(call.argument("n").unwrap().as_json().get().into()),
            "panic" => panic!("in the tool"),
            _ => Err(ToolError::unknown(call)),
        }
    }
}

#[test]
fn tools_thinking_and_limits() {
    let mut client = Connection::new(Turns::each(|| Tooled), ServeOptions::default());
    client.says(&prompt(1, "s", "go"));
    let lines = client.hears_up_to("idle");
    let step = |more: &[&'static str]| [&["step/start", "mine"], more, &["step/end"]].concat();
    let tools = ["user/message", "assistant/message", "tool/call", "tool/call", "tool/call"];
    let expected = [
        vec!["agent/inbox/spliced", "running", "turn/start", "agent/inbox/spliced", "answer"],
        step(&[&tools[..], &["tool/result"; 3]].concat()),
        step(&["assistant/message"]),
        vec!["turn/end", "idle"],
    ];
    assert_eq!(words(&lines), expected.concat());
    let text = lines.concat();
    assert!(text.contains(r#""isError":true,"id":"#) && text.contains("the tool panicked: in the tool"), "{text}");
    assert!(text.contains(r#"{"type":"reasoning","text":"ok"}"#) && text.contains(r#""dt":[5]"#), "{text}");
    assert!(text.contains(r#""reason":{"kind":"max-tokens"}"#), "{text}");
    client.ends();
}

#[test]
fn failures_and_panics_leave_the_session_usable() {
    let mut client = connect(|step| match &*step.prompt_text().to_string() {
        "fail" => Err("not today".into()),
        "panic" => panic!("on purpose"),
        text => Ok(text.into()),
    });
    for (text, expected) in [
        ("fail", r#"{"kind":"error","error":{"message":"not today","code":"UNKNOWN"}}"#),
        ("panic", r#"{"kind":"error","error":{"message":"the agent panicked: on purpose","code":"UNKNOWN"}}"#),
        ("fine", r#"{"kind":"completed"}"#),
    ] {
        client.says(&prompt(1, "s", text));
        let lines = client.hears_up_to("idle");
        let end = lines.iter().find(|line| line.contains("turn/end")).unwrap();
        assert!(end.contains(&format!(r#""reason":{expected}"#)), "{end}");
    }
    client.ends();
}

struct Echo;

impl TurnAgent for Echo {
    fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
        Ok(step.prompt_text().into())
    }
}

/// Its logs panic at events of this type; how often, is counted.
struct Unkept(&'static str, Arc<AtomicUsize>);

impl TurnHost for Unkept {
    fn open(&self, _: Opening, _: &InitializeParams, _: &Sink) -> Result<NewSession, Refusal> {
        let (kind, panics) = (format!(r#""type":"{}""#, self.0), self.1.clone());
        let mut new = NewSession::new(Echo);
        new.keep = Some(Box::new(move |event| {
            if event.contains(&kind) {
                panics.fetch_add(1, Ordering::SeqCst);
                panic!("disk full");
            }
        }));
        Ok(new)
    }
}

#[test]
fn a_log_that_panics_leaves_the_session_usable() {
    let failed =
        r#"{"kind":"error","error":{"message":"the log of the session panicked: disk full","code":"UNKNOWN"}}"#;
    let completed = r#"{"kind":"completed"}"#;
    for (kind, first) in [
        ("agent/inbox/spliced", failed),
        ("turn/start", failed),
        ("step/start", failed),
        ("user/message", failed),
        ("assistant/message", failed),
        ("step/end", failed),
        ("turn/end", completed),
    ] {
        let panics = Arc::new(AtomicUsize::new(0));
        let mut client = Connection::new(Turns::new(Unkept(kind, panics.clone())), ServeOptions::default());
        for (id, expected) in [(1, first), (2, completed)] {
            client.says(&prompt(id, "s", "hi"));
            let lines = client.hears_up_to("idle");
            let end = lines.iter().find(|line| line.contains("turn/end")).unwrap();
            assert!(end.contains(&format!(r#""reason":{expected}"#)), "{kind}: {end}");
        }
        client.says(r#"{"id":3,"method":"shutdown"}"#);
        assert!(client.hears().contains(r#""id":3,"result""#), "{kind}");
        assert_eq!(panics.load(Ordering::SeqCst), 1, "{kind}");
    }
}

struct Old;

impl TurnHost for Old {
    fn open(&self, _: Opening, _: &InitializeParams, _: &Sink) -> Result<NewSession, Refusal> {
        let mut new = NewSession::new(Echo);
        new.turns = u64::MAX;
        Ok(new)
    }
}

#[test]
fn turns_that_cannot_be_counted_are_refused() {
    let mut client = Connection::new(Turns::new(Old), ServeOptions::default());
    client.says(&prompt(1, "s", "hi"));
    assert!(client.hears().contains("too many to count"));
    client.ends();
}

#[test]
fn the_client_may_be_slow_to_answer_or_gone() {
    let (told, heard) = channel();
    let told = Mutex::new(told);
    let mut client = connect(move |step| {
        let within =
            if step.prompt_text() == "quick".into() { Duration::from_millis(50) } else { Duration::from_secs(60) };
        let started = Instant::now();
        let outcome = step.request("approval/ask", &["x"], within);
        told.lock().unwrap().send((outcome, started.elapsed())).unwrap();
        Ok("asked".into())
    });
    client.says(&prompt(1, "s", "quick"));
    let request = client.hears_up_to("approval/ask").pop().unwrap();
    let (outcome, took) = heard.recv().unwrap();
    assert!(matches!(outcome, Err(RequestError::TimedOut)), "{outcome:?}");
    assert!(took < Duration::from_secs(5));
    client.hears_up_to("idle");
    // A late answer is dropped.
    let id = Json::new(&request).unwrap().member("id").unwrap().get().to_owned();
    client.says(&format!(r#"{{"id":{id},"result":1}}"#));
    // The input ends while it waits.
    client.says(&prompt(2, "s", "slow"));
    client.hears_up_to("approval/ask");
    let started = Instant::now();
    client.ends();
    assert!(started.elapsed() < Duration::from_secs(5));
    let (outcome, _) = heard.recv().unwrap();
    assert!(matches!(outcome, Err(RequestError::Closed)), "{outcome:?}");
}

#[test]
fn a_sub_agent_wakes_its_parent() {
    struct Child;
    impl TurnAgent for Child {
        fn answer(&mut self, step: &mut Step<'_>) -> Result<Answer, TurnError> {
            Ok(format!("child at {}", step.prompt_text()).into())
        }
    }
    let mut client = connect(|step| {
        if step.id().0 == 1 {
            step.start(SubAgent::new(Child, "work").label("a child").head_start(Duration::from_secs(5)));
        }
        Ok(format!("turn {}", step.id().0).into())
    });
    client.says(&prompt(1, "s", "go"));
    let mut lines = client.hears_up_to(r#""id":1,"result""#);
    client.says(r#"{"id":2,"method":"session/wait","params":{"sessionId":"s"}}"#);
    lines.extend(client.hears_up_to(r#""id":2,"result""#));
    let text = lines.concat();
    assert!(text.contains(r#""lastAssistantMessage":[{"type":"text","text":"child at work"}]"#), "{text}");
    let finished = lines.iter().position(|line| line.contains("subagent.finished")).unwrap();
    assert!(lines[finished..].iter().any(|line| line.contains("turn 2")), "{text}");
    client.ends();
}

#[test]
fn no_more_turns_at_once_than_allowed() {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let turns = Turns::from_fn(|step| {
        MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        step.pause(Duration::from_millis(10))?;
        RUNNING.fetch_sub(1, Ordering::SeqCst);
        Ok("".into())
    });
    let mut client = Connection::new(turns.at_once(3), ServeOptions::default());
    (0..12).for_each(|id| client.says(&prompt(id, &format!("s{id}"), "go")));
    (0..12).for_each(|_| drop(client.hears_up_to("idle")));
    assert_eq!(MOST.load(Ordering::SeqCst), 3);
    client.ends();
}

/// Many prompts from many sessions, eight turns at a time, a client that reads slowly, and a shutdown in mid-stream:
/// every request is answered, every line is a frame, and the events of each session keep their order.
#[test]
fn shutdown_in_a_storm() {
    const SESSIONS: usize = 100;
    const PROMPTS: usize = 5000;
    let text = Arc::new("x".repeat(300));
    let turns = Turns::from_fn(move |_| Ok(text.as_str().into())).at_once(8);
    let mut options = ServeOptions::default();
    (options.max_threads, options.max_backlog) = (Some(8), 256 << 10);
    let mut client = Connection::new(turns, options);
    let mut requests = client.requests.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 1..=PROMPTS {
            writeln!(requests, "{}", prompt(id, &format!("s{}", id % SESSIONS), "go")).unwrap();
        }
        writeln!(requests, r#"{{"id":"bye","method":"shutdown"}}"#).unwrap();
        requests
    });
    let started = Instant::now();
    let mut seqs = BTreeMap::<String, u64>::new();
    let (mut answered, mut refused, mut bye) = (0, 0, false);
    for (number, line) in std::iter::from_fn(|| client.hears_any()).enumerate() {
        let frame = Json::new(&line).unwrap();
        if let Some(params) = frame.member("params") {
            assert!(!bye, "a notification after shutdown: {line}");
            if let Some(event) = params.member("event") {
                let session = params.member("sessionId").unwrap().get().to_owned();
                let next = seqs.entry(session).or_default();
                assert_eq!(event.member("seq").unwrap().as_u64(), Some(*next));
                *next += 1;
            }
        } else if frame.member("id").unwrap().as_str().is_some() {
            bye = true;
        } else {
            match frame.member("error").and_then(|error| error.member("message")) {
                None => answered += 1,
                Some(message) => {
                    assert_eq!(message.as_str().unwrap().to_string(), "SDK server is shutting down");
                    refused += 1;
                }
            }
        }
        if number % 500 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    drop(writer.join().unwrap());
    assert!(bye && answered > 0);
    assert_eq!(answered + refused, PROMPTS);
    assert!(matches!(client.served(), Served::Shutdown));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

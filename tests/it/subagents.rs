//! Sub-agents of the embedded runtime, held against the recordings of the official one.

use dsh_wire::json::Json;

use crate::recording::{self, Direction};
use crate::runtime::{Runtime, prompt, shape};

/// What the profile `sdk` tells of its permissions, which ours does not have.
const PERMISSIONS: [&str; 3] = ["permission/preset", "sandbox/mode", "approval/policy"];

/// A notification without values that differ from run to run: who it is about, and its shape.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    /// `parent`, or `child` and its number.
    session: String,
    /// The type of the event, or the method and status.
    what: String,
    shape: String,
}

/// The notifications among the frames, sessions named by the order in which they come.
fn told(frames: &[String]) -> Vec<Told> {
    let mut sessions: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for frame in frames {
        let frame = Json::new(frame).unwrap();
        let Some(params) = frame.member("params") else { continue };
        let text = |of: Json<'_>, name: &str| of.member(name).and_then(Json::as_str).map(|text| text.to_string());
        let session = text(params, "sessionId").or_else(|| text(params, "childSessionId")).unwrap();
        let index = sessions.iter().position(|known| *known == session).unwrap_or_else(|| {
            sessions.push(session);
            sessions.len() - 1
        });
        let session = if index == 0 { "parent".into() } else { format!("child {index}") };
        let event = params.member("event");
        let what = event.and_then(|event| text(event, "type"));
        if what.as_ref().is_some_and(|what| PERMISSIONS.contains(&what.as_str())) {
            continue;
        }
        let what = what.unwrap_or_else(|| {
            let method = text(frame, "method").unwrap();
            let status = text(params, "status").unwrap_or_default();
            format!("{method} {status} {}", text(params, "stopReason").unwrap_or_default())
        });
        // The surroundings and the tools are each runtime's own; the numbers are off by the permissions.
        let shape = match what.as_str() {
            "user/message" | "system/message" => String::new(),
            "request/header" => {
                let header = event.and_then(|event| event.member("data")?.member("header")).unwrap();
                ["config", "adapterDefaults"].map(|name| shape(header.member(name).unwrap(), name)).concat()
            }
            _ => numberless(&shape(event.map_or(params, |event| event.member("data").unwrap()), "")),
        };
        all.push(Told { session, what, shape });
    }
    all
}

/// How many text blocks tell of a title or an end is each runtime's own too.
fn numberless(shape: &str) -> String {
    shape.replace("messageSeqs:[Number],", "")
}

fn official(name: &str) -> (String, Vec<Told>) {
    let recording = recording::named(name);
    let prompt = recording.lines(Direction::ClientToServer).find_map(|row| {
        let frame = String::from_utf8(row.bytes.clone()).unwrap();
        let frame = Json::new(&frame).unwrap().to_buf();
        let blocks = frame.as_json().member("params")?.member("contentBlocks")?.to_buf();
        let text = blocks.as_json().elements().next()?.member("text")?.as_str()?.to_string();
        Some(text)
    });
    let lines = recording.lines(Direction::ServerToClient);
    let frames: Vec<_> = lines.map(|row| String::from_utf8(row.bytes.clone()).unwrap()).collect();
    (prompt.unwrap(), told(&frames))
}

fn ours(text: &str) -> Vec<String> {
    let mut runtime = Runtime::ready();
    runtime.says(&prompt("p", "s", &text.replace('"', "\\\"")));
    let mut frames = runtime.hears_up_to(r#""id":"p""#);
    runtime.says(r#"{"id":"w","method":"session/wait","params":{"sessionId":"s"}}"#);
    frames.extend(runtime.hears_up_to(r#""id":"w""#));
    runtime.says(r#"{"id":"bye","method":"shutdown"}"#);
    assert_eq!(runtime.ends_well().len(), 1);
    frames
}

fn of<'a>(told: &'a [Told], session: &str) -> Vec<&'a Told> {
    told.iter().filter(|told| told.session == session).collect()
}

fn position(told: &[Told], session: &str, what: &str) -> usize {
    told.iter().position(|told| told.session == session && told.what == what).unwrap_or_else(|| panic!("{what}"))
}

/// One sub-agent, which ends in one way or another: the order of all notifications is that of the recording.
#[test]
fn one_sub_agent_is_told_as_recorded() {
    for name in ["subagent-ok", "subagent-error", "subagent-max-tokens"] {
        let (prompt, official) = official(name);
        let ours = told(&ours(&prompt));
        for (index, (theirs, mine)) in official.iter().zip(&ours).enumerate() {
            assert_eq!(theirs, mine, "{name}: notification {index}");
        }
        assert_eq!(official.len(), ours.len(), "{name}");
    }
}

/// Two sub-agents: each session's notifications up to its first rest are those of the recording. What the parent does
/// about the two ends depends on how close they are.
#[test]
fn two_sub_agents() {
    let (prompt, official) = official("subagent-two");
    let ours = told(&ours(&prompt));
    for child in ["child 1", "child 2"] {
        assert_eq!(of(&official, child), of(&ours, child));
    }
    let ends = |told: &[Told]| told.iter().filter(|told| told.what.starts_with("subagent.finished ok")).count();
    assert_eq!((ends(&official), ends(&ours)), (2, 2));
    let up_to_idle = |told: &[Told], results: bool| {
        let idle = position(told, "parent", "session.status idle ");
        let parent = of(&told[..idle], "parent").into_iter();
        parent.filter(|told| (told.what == "tool/result") == results).cloned().collect::<Vec<_>>()
    };
    // Tools that run side by side tell their results at any time, all else has its order.
    for results in [false, true] {
        assert_eq!(up_to_idle(&official, results), up_to_idle(&ours, results));
    }
}

/// A sub-agent may not have sub-agents; its tool says so.
#[test]
fn no_deeper() {
    let frames = ours("@agent @agent @say x");
    let refused = frames.iter().find(|frame| frame.contains("exceeds maxDepth 1")).unwrap();
    assert!(refused.contains(r#""isError":true"#), "{refused}");
    assert_eq!(frames.iter().filter(|frame| frame.contains("subagent.started")).count(), 1);
}

/// A sub-agent that is at work when the session is shut down is ended; nothing is told of it.
#[test]
fn shutdown_ends_sub_agents() {
    let mut runtime = Runtime::ready();
    runtime.says(&prompt("p", "s", "@agent @slow 60 never"));
    runtime.hears_from("idle");
    runtime.hears_from("session/title");
    runtime.says(r#"{"id":"w","method":"session/wait","params":{"sessionId":"s"}}"#);
    runtime.says(r#"{"id":"bye","method":"shutdown"}"#);
    assert_eq!(runtime.ends_well().len(), 2);
}

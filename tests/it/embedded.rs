//! The embedded runtime as a stand-in in tests: its directives, scripts, and counted ids and times.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use dsh_wire::json::Json;

use crate::runtime::{Folder, Runtime, prompt};

/// What comes after the prompt until the session rests.
#[track_caller]
fn turn(runtime: &mut Runtime, text: &str) -> Vec<String> {
    runtime.says(&prompt("p", "s", text));
    runtime.hears_up_to(r#""status":"idle""#)
}

#[test]
fn deaths() {
    for (text, code, signal) in [("@die 3", Some(3), None), ("@die", Some(1), None), ("@kill", None, Some(9))] {
        let started = Instant::now();
        let mut runtime = Runtime::ready();
        runtime.says(&prompt("p", "s", text));
        let (_, status, stderr) = runtime.ends();
        assert_eq!((status.code(), status.signal(), &*stderr), (code, signal, ""), "{text}");
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_panic_ends_the_turn_only() {
    let mut runtime = Runtime::ready();
    let lines = turn(&mut runtime, "@panic");
    let end = lines.iter().find(|line| line.contains("turn/end")).unwrap();
    assert!(end.contains(r#""kind":"error","error":{"message":"the agent panicked: as the prompt says""#), "{end}");
    assert!(turn(&mut runtime, "@say still here").iter().any(|line| line.contains("still here")));
    runtime.stdin = None;
    let (_, status, stderr) = runtime.ends();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("as the prompt says"), "{stderr}");
}

#[test]
fn floods_come_whole() {
    let mut runtime = Runtime::ready();
    let lines = turn(&mut runtime, "@flood 5000 300");
    let flood: Vec<_> = lines.iter().filter(|line| line.contains("dsh-wire/flood")).collect();
    assert_eq!(flood.len(), 5000);
    assert!(flood.iter().all(|line| Json::new(line).is_ok() && line.len() > 300));
    assert!(lines.iter().any(|line| line.contains("The flood is over.")));
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

#[test]
fn an_empty_answer_is_tried_again() {
    let mut runtime = Runtime::ready();
    runtime.says(&prompt("p", "s", "@empty"));
    let retry = runtime.hears_from("llm/retry");
    assert!(retry.contains(r#""code":"EMPTY_RESPONSE""#) && retry.contains(r#""retry":1,"maxRetries":5"#), "{retry}");
    runtime.says(r#"{"id":"bye","method":"shutdown"}"#);
    runtime.ends_well();
}

#[test]
fn the_client_is_asked() {
    let mut runtime = Runtime::ready();
    for (answer, expected) in [
        (r#""result":{"outcome":"allowed"}"#, r#"the client answered: {\"outcome\":\"allowed\"}"#),
        (r#""error":{"code":-32601,"message":"no"}"#, "the client refused: no (code -32601)"),
    ] {
        runtime.says(&prompt("p", "s", r#"@ask approval/ask {\"n\":1.0}"#));
        let request = runtime.hears_from(r#""method":"approval/ask","params":{"n":1.0}"#);
        let id = Json::new(&request).unwrap().member("id").unwrap().get().to_owned();
        // Others are served meanwhile.
        runtime.says(r#"{"id":"x","method":"nope"}"#);
        runtime.hears_from(r#""id":"x","error""#);
        runtime.says(&format!(r#"{{"id":{id},{answer}}}"#));
        let message = runtime.hears_from("assistant/message");
        assert!(message.contains(expected), "{message}");
        runtime.hears_from("idle");
    }
    runtime.says(&prompt("p", "s", "@ask approval/ask"));
    runtime.hears_from(r#""method":"approval/ask""#);
    // It does not wait for the answer.
    let started = Instant::now();
    runtime.says(r#"{"id":"bye","method":"shutdown"}"#);
    runtime.ends_well();
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn scripts_choose_the_answers() {
    let folder = Folder::new();
    let script = folder.0.join("rules.json");
    let rules = r#"[
        {"match": "^what", "replies": [{"tools": [{"name": "bash", "input": {"command": "echo from the tool"}}]},
            {"text": "It said so.", "thinking": "hm"}]},
        {"match": "too long", "replies": [{"text": "cut", "stop_reason": "max_tokens"}]},
        {"match": "boom", "replies": [{"die": 7}]}
    ]"#;
    std::fs::write(&script, rules).unwrap();
    let mut runtime = Runtime::ready_with(&["--script".as_ref(), script.as_os_str()]);
    let lines = turn(&mut runtime, "what is it?").concat();
    assert!(lines.contains("from the tool\\n[Command finished with exit code 0]"), "{lines}");
    assert!(lines.contains("It said so.") && lines.contains(r#"{"type":"reasoning","text":"hm"}"#), "{lines}");
    assert!(turn(&mut runtime, "too long").concat().contains(r#""reason":{"kind":"max-tokens"}"#));
    assert!(turn(&mut runtime, "@say as ever").concat().contains(r#""text":"as ever""#));
    runtime.says(&prompt("p", "s", "boom"));
    assert_eq!(runtime.ends().1.code(), Some(7));

    std::fs::write(&script, "[{}]").unwrap();
    let mut command = crate::runtime::command(None);
    let output = command.arg("--script").arg(&script).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("rules.json: rule 1: it has no \"match\""), "{stderr}");
}

#[test]
fn commands_can_be_switched_off() {
    let mut runtime = Runtime::ready_with(&["--no-shell"]);
    let folder = Folder::new();
    let file = folder.0.join("made");
    let lines = turn(&mut runtime, &format!("@bash touch {}", file.display())).concat();
    assert!(lines.contains(r#""text":"Error: commands are switched off (--no-shell)""#), "{lines}");
    assert!(!file.exists());
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

#[test]
fn ids_and_times_are_counted_on_request() {
    let run = || {
        let mut runtime = Runtime::ready_with(&["--deterministic"]);
        let mut lines = Vec::new();
        for text in ["hello", "@think a | b", r#"@tool nonesuch {\"a\":1}"#, "@error 400", "@drip 0.01"] {
            lines.extend(turn(&mut runtime, text));
        }
        runtime.says(&prompt("p", "s", "@agent @say x"));
        lines.extend(runtime.hears_up_to("subagent.finished"));
        lines.extend(runtime.hears_up_to(r#""status":"idle""#));
        runtime.stdin = None;
        runtime.ends_well();
        lines
    };
    let (one, two) = (run(), run());
    assert_eq!(one, two);
    assert!(one.len() > 60);
    assert!(one.iter().any(|line| line.contains(r#""seq":7,"time":1704067200007,"#)), "{one:?}");
}

#[test]
fn everything_is_in_the_help() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dsh-wire")).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in [
        "@agents",
        "@flood",
        "@die",
        "@kill",
        "@empty",
        "@ask",
        "--script",
        "--deterministic",
        "--no-shell",
        "\"delta_delay\"",
    ] {
        assert!(help.contains(word), "{word}");
    }
}

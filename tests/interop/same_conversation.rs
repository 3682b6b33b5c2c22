//! The same conversation on the official runtime and on `dsh-wire serve`: the frames must be of the same kinds, in
//! the same order, with the same members and the same values, but for what no two runs share.

use serde_json::{Value, json};

use crate::conversation::{Conversation, prompt};
use crate::environment::{Model, Place, Which, runtime};

/// Holds one conversation on both runtimes and compares what they sent, session by session where several run at once.
#[track_caller]
fn same(hold: impl Fn(&mut Conversation, &Place)) {
    let model = Model::start();
    let [official, ours] = [Which::Official, Which::Ours].map(|which| {
        let place = Place::new();
        let mut conversation = Conversation::start(runtime(which, &model, &place));
        let workspace = place.workspace().display().to_string();
        conversation.call(
            "initialize",
            json!({"cwd": workspace, "provider": "deepseek-official", "model": "deepseek-v4-flash"}),
        );
        hold(&mut conversation, &place);
        conversation.call("shutdown", json!({}));
        let (frames, status) = conversation.finish();
        assert!(status.success(), "{which:?}: {status}");
        let root = place.workspace().parent().unwrap().display().to_string();
        frames.into_iter().map(|frame| shape(frame, "", &root)).collect::<Vec<_>>()
    });
    for (index, (theirs, mine)) in official.iter().zip(&ours).enumerate() {
        assert_eq!(text(theirs), text(mine), "frame {index} differs; the official runtime's is on the left");
    }
    assert_eq!(official.len(), ours.len(), "one of them sent more: {:?} / {:?}", official.last(), ours.last());
}

fn text(frame: &Value) -> String {
    serde_json::to_string_pretty(frame).unwrap()
}

/// A frame without what differs from run to run or depends on the model: ids, times, how a text was cut into deltas,
/// the texts and tools that a runtime gives its model.
fn shape(value: Value, name: &str, root: &str) -> Value {
    match (name, value) {
        ("time" | "time0" | "delayMs" | "startedAt" | "finishedAt", Value::Number(_)) => json!("time"),
        ("dt" | "texts", Value::Array(_)) => json!("deltas"),
        ("tools", Value::Array(_)) => json!("tools"),
        ("usage", Value::Object(members)) => json!(members.keys().collect::<Vec<_>>()),
        ("policyKey" | "retryId" | "callId" | "toolCallId", Value::String(_)) => json!("id"),
        (_, Value::String(text)) if is_uuid(&text) => json!("uuid"),
        (_, Value::String(text)) => json!(text.replace(root, "ROOT")),
        (_, Value::Array(items)) => items.into_iter().map(|item| shape(item, "", root)).collect(),
        (_, Value::Object(members)) => {
            let hide = members.get("role") == Some(&json!("system"))
                || members.get("source").is_some_and(|source| source["kind"] == "runtime-context");
            members
                .into_iter()
                .map(|(name, value)| {
                    let value = if hide && name == "content" || name == "sections" {
                        json!(["text of the runtime's own"])
                    } else {
                        shape(value, &name, root)
                    };
                    (name, value)
                })
                .collect()
        }
        (_, other) => other,
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[test]
fn two_turns() {
    same(|runtime, _| {
        runtime.turn("s", "hello");
        runtime.turn("s", "and again: 你好 \u{2028} \u{1f600}");
    });
}

#[test]
fn content_blocks() {
    same(|runtime, _| {
        let blocks =
            json!([{"type": "text", "text": "one"}, {"zeta": 1, "type": "text", "text": "two", "alpha": null}]);
        runtime.send("session/prompt", json!({"sessionId": "s/../ ", "contentBlocks": blocks}));
        runtime.idle("s/../ ");
    });
}

#[test]
fn queued_prompts() {
    same(|runtime, _| {
        // The first turn is known to run when the next prompts are sent, one at a time.
        runtime.send("session/prompt", prompt("s", "@slow 0.7 first"));
        runtime.until(|frame| frame["params"]["event"]["type"] == "session/title");
        runtime.call("session/prompt", prompt("s", "second"));
        runtime.call("session/prompt", prompt("s", "third"));
        runtime.call("session/wait", json!({"sessionId": "s"}));
    });
}

#[test]
fn working_directory() {
    same(|runtime, place| {
        std::fs::create_dir_all(place.workspace().join("sub")).unwrap();
        let set = |path: &str| json!({"sessionId": "s", "path": path});
        runtime.call("session/working-directory/get", json!({"sessionId": "s"}));
        runtime.call("session/working-directory/set", set("sub/"));
        runtime.call("session/working-directory/set", set("."));
        runtime.turn("s", "hello");
        runtime.call("session/working-directory/set", set(".."));
        runtime.call("session/working-directory/set", set("missing"));
        runtime.call("session/working-directory/set", set(""));
        runtime.call("session/working-directory/set", json!({"sessionId": "s"}));
        runtime.call("session/working-directory/get", json!({"sessionId": ""}));
        runtime.turn("s", "hello again");
    });
}

#[test]
fn refusals() {
    same(|runtime, _| {
        for params in [
            json!({"cwd": "/", "provider": "nobody", "model": "m"}),
            json!({"cwd": "/", "provider": "deepseek-official", "model": ""}),
            json!({"cwd": "/", "provider": "deepseek-official", "model": "deepseek-v4-flash", "maxTokens": 0}),
            json!({"cwd": "/", "provider": "deepseek-official", "model": "deepseek-v4-flash", "maxTokens": 1.5}),
            json!({"cwd": "/", "provider": "deepseek-official", "model": "deepseek-v4-flash", "reasoningEffort": ""}),
            json!({"cwd": "/", "provider": "deepseek-official", "model": "deepseek-v4-flash", "reasoningEffort": "bogus"}),
            json!({"cwd": "/", "provider": "deepseek-official", "model": "deepseek-v4-flash", "maxTokens": 7}),
        ] {
            runtime.call("initialize", params);
        }
        runtime.call("nope", json!({}));
        runtime.call("", json!({}));
        runtime.call("Initialize", json!({}));
        runtime.call("session/wait", json!({"sessionId": "ghost"}));
        runtime.call("session/wait", json!({}));
        runtime.call("session/resume", json!({}));
        runtime.call("session/resume", json!({"sessionId": "never-seen"}));
        runtime.turn("s", "hello");
        runtime.call("session/resume", json!({"sessionId": "s"}));
        runtime.call("session/wait", json!({"sessionId": "s"}));
    });
}

#[test]
fn max_tokens_and_model_error() {
    same(|runtime, _| {
        runtime.turn("s", "@maxtokens cut here");
        runtime.turn("s", "@error 400");
        runtime.turn("s", "@think I ponder | Done.");
        runtime.turn("s", "after all that");
    });
}

#[test]
fn tool_calls() {
    same(|runtime, _| {
        runtime.turn("s", "@bash echo hi; pwd");
        runtime.turn("s", r#"@tool nonesuch {"a": 1}"#);
        runtime.turn("s", r#"@tool bash {"command": 5}"#);
    });
}

#[test]
fn model_calls_that_fail_or_break_off() {
    same(|runtime, _| {
        runtime.turn("s", "@error 500 1");
        runtime.turn("s", "@cut");
        runtime.turn("s", "@garbage");
        let blocks = json!([{"type": "mystery", "x": 1}]);
        runtime.send("session/prompt", json!({"sessionId": "t", "contentBlocks": blocks}));
        runtime.idle("t");
        runtime.turn("t", "and nothing works any more");
    });
}

//! The same conversation on the official runtime and on `dsh-wire serve`: the frames must be of the same kinds, in
//! the same order, with the same members and the same values, but for what no two runs share.

use serde_json::{Value, json};

use crate::conversation::{Conversation, prompt};
use crate::environment::{Model, Place, Which, runtime};

/// Holds one conversation on both runtimes and compares what they sent, frame by frame.
#[track_caller]
fn same(hold: impl Fn(&mut Conversation, &Place)) {
    let [official, ours] = both(|stage| {
        let mut conversation = stage.open();
        hold(&mut conversation, &stage.place);
        stage.close(conversation).into_iter().map(|frame| shape(frame, "", &stage.root())).collect::<Vec<_>>()
    });
    compare(&official, &ours);
}

/// The same where several sessions run at once: session by session, and the answers by themselves.
#[track_caller]
fn same_by_session(hold: impl Fn(&mut Conversation, &Place)) {
    let [official, ours] = both(|stage| {
        let mut conversation = stage.open();
        hold(&mut conversation, &stage.place);
        by_session(stage.close(conversation), |frame| shape(frame, "", &stage.root()))
    });
    compare(&official, &ours);
}

/// Puts what is about each session together, the order in it kept; sessions in the order in which they come.
fn by_session(frames: Vec<Value>, shape: impl Fn(Value) -> Value) -> Vec<Value> {
    let session = |frame: &Value| match &frame["params"] {
        Value::Null => frame["id"].clone(),
        params => {
            [&params["sessionId"], &params["childSessionId"]].into_iter().find(|id| !id.is_null()).cloned().unwrap()
        }
    };
    let mut order: Vec<Value> = Vec::new();
    let mut frames: Vec<_> = frames
        .into_iter()
        .map(|frame| {
            let session = session(&frame);
            let place = order.iter().position(|known| *known == session).unwrap_or_else(|| {
                order.push(session);
                order.len() - 1
            });
            // Answers to several requests at once may come in any order.
            (frame["params"].is_null(), if frame["params"].is_null() { 0 } else { place }, frame)
        })
        .collect();
    let name = |frame: &Value| frame["id"].as_str().map_or(0, |id| id.trim_start_matches("call-").parse().unwrap());
    frames.sort_by_key(|(answer, place, frame)| (*answer, *place, if *answer { name(frame) } else { 0 }));
    frames.into_iter().map(|(.., frame)| shape(frame)).collect()
}

/// Where a conversation is held.
struct Stage<'m> {
    which: Which,
    profile: &'static str,
    model: &'m Model,
    place: Place,
}

impl Stage<'_> {
    /// A runtime that has been initialized.
    fn open(&self) -> Conversation {
        let mut conversation = Conversation::start(runtime(self.profile, self.which, self.model, &self.place));
        let workspace = self.place.workspace().display().to_string();
        conversation.call(
            "initialize",
            json!({"cwd": workspace, "provider": "deepseek-official", "model": "deepseek-v4-flash"}),
        );
        conversation
    }

    /// Shuts it down; all frames.
    #[track_caller]
    fn close(&self, mut conversation: Conversation) -> Vec<Value> {
        conversation.call("shutdown", json!({}));
        let (frames, status) = conversation.finish();
        assert!(status.success(), "{:?}: {status}", self.which);
        frames
    }

    fn root(&self) -> String {
        self.place.workspace().parent().unwrap().display().to_string()
    }
}

/// What comes of it on the official runtime, and on ours.
fn both<T>(hold: impl Fn(&Stage<'_>) -> T) -> [T; 2] {
    both_in("sdk-minimal", hold)
}

fn both_in<T>(profile: &'static str, hold: impl Fn(&Stage<'_>) -> T) -> [T; 2] {
    let model = Model::start();
    [Which::Official, Which::Ours].map(|which| hold(&Stage { which, profile, model: &model, place: Place::new() }))
}

#[track_caller]
fn compare(official: &[Value], ours: &[Value]) {
    for (index, (theirs, mine)) in official.iter().zip(ours).enumerate() {
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

#[test]
fn two_sessions() {
    same_by_session(|runtime, _| {
        // The first one's turn lasts until long after the second one's has begun.
        runtime.call("session/prompt", prompt("one", "@slow 0.7 the first"));
        runtime.call("session/prompt", prompt("two", "@drip 0.02 the second"));
        runtime.call("session/wait", json!({"sessionId": "one"}));
        runtime.call("session/wait", json!({"sessionId": "two"}));
    });
}

#[test]
fn resume() {
    let [official, ours] = both(|stage| {
        let mut first = stage.open();
        first.turn("keep", "hello");
        first.turn("keep", "@bash echo kept");
        let mut frames = stage.close(first);
        let mut second = stage.open();
        second.call("session/prompt", prompt("keep", "not resumed"));
        second.call("session/resume", json!({"sessionId": "keep"}));
        second.call("session/resume", json!({"sessionId": "keep"}));
        second.call("session/wait", json!({"sessionId": "keep"}));
        second.turn("keep", "and again");
        frames.extend(stage.close(second));
        frames.into_iter().map(|frame| shape(frame, "", &stage.root())).collect::<Vec<_>>()
    });
    compare(&official, &ours);
}

/// What the profile `sdk` tells of its permissions, which ours does not have.
const PERMISSIONS: [&str; 3] = ["permission/preset", "sandbox/mode", "approval/policy"];

/// Types and the names of members, in their order; of lists, the forms of their elements.
fn names(value: Value, name: &str) -> Value {
    match (name, value) {
        ("type" | "kind" | "status" | "method" | "stopReason" | "target" | "role" | "id", value) => {
            // The ids of tool calls are the model's, which counts its calls.
            let is_id = |text: &&str| is_uuid(text) || text.starts_with("toolu_");
            json!(value.as_str().filter(|text| !is_id(text)).unwrap_or("id"))
        }
        // Each runtime's own.
        ("tools" | "sections" | "stream", _) => json!("its own"),
        (_, Value::Array(items)) => {
            let mut forms: Vec<_> = items.into_iter().map(|item| names(item, "")).collect();
            forms.dedup();
            json!(forms)
        }
        (_, Value::Object(members)) => {
            json!(members.into_iter().map(|(name, value)| json!([name, names(value, &name)])).collect::<Vec<_>>())
        }
        (_, Value::String(_)) => json!("string"),
        (_, other) => json!(if other.is_number() { "number" } else { "other" }),
    }
}

/// What is told of sub-agents, in the profile `sdk`: the types and the names of members, session by session. When a parent
/// rests depends on how fast each is.
#[track_caller]
fn same_with_sub_agents(pick: impl Fn(Vec<Value>) -> Vec<Value>, hold: impl Fn(&mut Conversation)) {
    let [official, ours] = both_in("sdk", |stage| {
        let mut runtime = stage.open();
        hold(&mut runtime);
        let mut frames = stage.close(runtime);
        frames.retain(|frame| !PERMISSIONS.iter().any(|permission| frame["params"]["event"]["type"] == *permission));
        by_session(pick(frames), |frame| names(frame, ""))
    });
    compare(&official, &ours);
}

#[test]
fn a_sub_agent() {
    same_with_sub_agents(all, |runtime| {
        runtime.send("session/prompt", prompt("s", "@agent @say from the child"));
        runtime.idle("s");
        runtime.call("session/wait", json!({"sessionId": "s"}));
    });
}

/// The second starts later and ends first; each end wakes the parent.
#[test]
fn two_sub_agents_that_end_apart() {
    same_with_sub_agents(all, |runtime| {
        runtime.turn("s", "@agent @slow 12 from the first");
        runtime.turn("s", "@agent @slow 2 from the second");
        runtime.until(|frame| frame["method"] == "subagent.finished");
        runtime.call("session/wait", json!({"sessionId": "s"}));
    });
}

/// What the parent does about two ends depends on how close they are, so it is compared up to its first rest; and tools
/// that run side by side tell of their results at any time.
#[test]
fn two_sub_agents_at_once() {
    let of_parent = |frame: &Value| frame["params"]["sessionId"] == "s";
    let pick = |frames: Vec<Value>| {
        let rest = frames.iter().position(|frame| of_parent(frame) && frame["params"]["status"] == "idle").unwrap();
        let frames = frames.into_iter().enumerate().filter(|(at, frame)| !of_parent(frame) || *at <= rest);
        let (results, others): (Vec<_>, Vec<_>) =
            frames.map(|(_, frame)| frame).partition(|frame| frame["params"]["event"]["type"] == "tool/result");
        [others, results].concat()
    };
    same_with_sub_agents(pick, |runtime| {
        runtime.turn("s", "@agents 2 @slow 3 from a child");
        runtime.call("session/wait", json!({"sessionId": "s"}));
    });
}

fn all(frames: Vec<Value>) -> Vec<Value> {
    frames
}

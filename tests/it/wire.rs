//! The layer `wire`: what the official runtime sends decodes to typed values and encodes back to the same JSON, and
//! what is odd is read as the rules say.

use dsh_wire::json::{Json, JsonBuf, JsonStr, Kind};
use dsh_wire::wire::stream::StreamRecord;
use dsh_wire::wire::turn::{AssistantAttempt, AssistantMessage, TurnStart};
use dsh_wire::wire::*;
use serde::Serialize;

use crate::recording::{self, Direction, Recording};

// ---- what the official runtime sends ----

/// Members that a client of the recordings made up, inside its own content blocks; the runtime passes them on.
const MADE_UP: &[&str] = &["deep"];

/// Objects whose members the runtime itself writes in more than one order: a sub-agent's header has another.
const FREE_ORDER: &[&str] = &[".config"];

#[test]
fn every_notification_decodes_and_encodes_back() {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    each_frame(Direction::ServerToClient, |context, frame| {
        let Some(method) = frame.member("method").and_then(Json::as_str) else { return };
        let params = frame.member("params").expect("notifications of the runtime have params");
        let notification = Notification::decode(method, params).unwrap_or_else(|e| panic!("{context}: {e}"));
        assert!(notification.session_id().is_some(), "{context}");
        let NotificationBody::SessionEvent(SessionEventParams { event, .. }) = &notification.body else {
            assert_ne!(notification.body, NotificationBody::Unknown, "{context}");
            *seen.entry(method.to_string()).or_default() += 1;
            return assert_same(context, params, &notification.body);
        };
        // The envelope keeps its data raw; the data goes through its own type.
        assert_same(context, params, &notification.body);
        let data = event.decode_data().unwrap_or_else(|e| panic!("{context}: {e}"));
        assert_eq!(data.kind().map(str::to_owned), Some(event.kind.to_string()), "{context}");
        *seen.entry(event.kind.to_string()).or_default() += 1;
        assert!(!matches!(event.surface_op, Some(SurfaceOp::Other(_))), "{context}");
        assert_known_words(context, &data);
        assert_same(context, event.data, &data);
    });
    // 4 notifications less session.event, and every type of event that the runtime was seen to send.
    assert_eq!(seen.len(), 3 + EVENT_TYPES_SENT, "{seen:#?}");
    assert!(seen.values().sum::<usize>() > 2300, "{seen:#?}");
}

const EVENT_TYPES_SENT: usize = 28;

#[test]
fn every_request_and_result_decodes_and_encodes_back() {
    let mut counts = [0; 2];
    for recording in recording::all() {
        let mut methods = Vec::new();
        each_frame_of(&recording, Direction::ClientToServer, |_, frame| {
            let (Some(id), Some(method)) = (frame.member("id"), frame.member("method").and_then(Json::as_str)) else {
                return;
            };
            let params = frame.member("params").unwrap_or(Json::EMPTY_OBJECT);
            counts[0] += usize::from(round_trip_params(&method.to_string(), params));
            methods.push((id.to_buf(), method.to_string()));
        });
        each_frame_of(&recording, Direction::ServerToClient, |context, frame| {
            let (Some(id), Some(result)) = (frame.member("id"), frame.member("result")) else { return };
            // Ids come back as JavaScript writes them; those that are not the same text belong to `initialize` or
            // to methods of the same result, and are covered by the others.
            let Some((_, method)) = methods.iter().find(|(sent, _)| sent.as_json() == id) else { return };
            counts[1] += 1;
            match &**method {
                Initialize::NAME => round_trip_result::<Initialize>(context, result),
                Prompt::NAME => round_trip_result::<Prompt>(context, result),
                Resume::NAME => round_trip_result::<Resume>(context, result),
                Wait::NAME => round_trip_result::<Wait>(context, result),
                WorkingDirectoryGet::NAME => round_trip_result::<WorkingDirectoryGet>(context, result),
                WorkingDirectorySet::NAME => round_trip_result::<WorkingDirectorySet>(context, result),
                Shutdown::NAME => round_trip_result::<Shutdown>(context, result),
                _ => panic!("{context}: a result for {method}"),
            }
        });
    }
    assert!(counts[0] > 200 && counts[1] > 300, "{counts:?}");
}

/// Whether the params are well-formed; then they encode back, less what the type does not know.
fn round_trip_params(method: &str, params: Json<'_>) -> bool {
    fn go<M: Method>(params: Json<'_>) -> bool {
        let Ok(decoded) = M::Params::decode(params) else { return false };
        let written = JsonBuf::from_serialize(&decoded).expect("params encode");
        let again = M::Params::decode(written.as_json()).expect("params that we wrote decode");
        assert_eq!(JsonBuf::from_serialize(&again).expect("params encode"), written);
        for (name, value) in written.as_json().members() {
            let sent = params.member(&name.to_string()).expect("nothing is added");
            if let Err(at) = same(sent, value) {
                panic!("{}: {at}: {params}", M::NAME);
            }
        }
        true
    }
    match method {
        Initialize::NAME => go::<Initialize>(params),
        Prompt::NAME => go::<Prompt>(params),
        Resume::NAME => go::<Resume>(params),
        Wait::NAME => go::<Wait>(params),
        WorkingDirectoryGet::NAME => go::<WorkingDirectoryGet>(params),
        WorkingDirectorySet::NAME => go::<WorkingDirectorySet>(params),
        Shutdown::NAME => go::<Shutdown>(params),
        _ => false,
    }
}

fn round_trip_result<M: Method>(context: &str, result: Json<'_>) {
    let decoded = M::Result::decode(result).unwrap_or_else(|e| panic!("{context}: {e}"));
    assert_same(context, result, &decoded);
}

/// Words and tags that no type knows are kept as `Other(` with the text, so they show in the debug form.
fn assert_known_words(context: &str, data: &EventData<'_>) {
    let debug = format!("{data:?}");
    assert!(!debug.contains("Other("), "{context}: {debug}");
    let lists = match data {
        EventData::AssistantMessage(AssistantMessage { stream, message, .. }) => {
            (stream.as_ref().map(List::json), Some(message.content))
        }
        EventData::AssistantAttempt(AssistantAttempt { stream, .. }) => (Some(stream.json()), None),
        EventData::UserMessage(message) => (None, Some(message.content)),
        EventData::ToolResult(result) => (None, Some(result.message.content)),
        EventData::InboxSpliced(spliced) => {
            for message in spliced.inserted {
                let message = message.unwrap_or_else(|e| panic!("{context}: {e}"));
                assert_known_words(context, &EventData::UserMessage(message));
            }
            (None, None)
        }
        _ => (None, None),
    };
    for record in lists.0.into_iter().flat_map(Json::elements) {
        let record = format!("{:?}", StreamRecord::decode(record));
        assert!(!record.contains("Other("), "{context}: {record}");
    }
    for block in lists.1.iter().flat_map(List::iter) {
        let block = format!("{block:?}");
        assert!(block.starts_with("Ok(") && !block.contains("Other("), "{context}: {block}");
    }
}

#[test]
fn a_run_is_read_with_the_accessors() {
    let recording = recording::named("tool-call");
    let (mut text, mut finish, mut receipts, mut statuses) = (None, None, Vec::new(), Vec::new());
    each_frame_of(&recording, Direction::ServerToClient, |_, frame| {
        let Some(method) = frame.member("method").and_then(Json::as_str) else { return };
        let notification = Notification::decode(method, frame.member("params").unwrap()).unwrap();
        statuses.extend(notification.status().map(|status| status.to_string()));
        match notification.event().map(|event| event.decode_data().unwrap()) {
            Some(EventData::AssistantMessage(message)) => text = Some(message.text().to_string()),
            Some(EventData::TurnEnd(end)) => finish = end.finish_reason().map(|kind| kind.to_string()),
            Some(EventData::InboxSpliced(spliced)) => receipts.extend(spliced.inserted_ids().map(JsonStr::to_buf)),
            _ => {}
        }
    });
    assert!(text.is_some_and(|text| !text.is_empty()));
    assert_eq!(finish.as_deref(), Some("completed"));
    assert_eq!(statuses, ["running", "idle"]);
    let mut answered = Vec::new();
    each_frame_of(&recording, Direction::ServerToClient, |_, frame| {
        let result = frame.member("result").and_then(|result| PromptResult::decode(result).ok());
        answered.extend(result.and_then(|result| result.message_id().cloned()));
    });
    assert_eq!(receipts, answered);
}

#[test]
fn what_is_kept_says_the_same() {
    each_frame(Direction::ServerToClient, |context, frame| {
        let Some(method) = frame.member("method").and_then(Json::as_str) else { return };
        let view = Notification::decode(method, frame.member("params").unwrap()).unwrap();
        let kept = view.to_buf();
        assert_eq!(kept.view().as_ref(), Ok(&view), "{context}");
    });
}

// ---- the other revisions, and what is odd ----

#[track_caller]
fn event<'a>(kind: &'a str, data: &'a str) -> Result<EventData<'a>, DecodeError> {
    let kind = Json::new(kind).unwrap().as_str().unwrap();
    EventData::decode(kind, Json::new(data).unwrap())
}

/// That data decodes to the type, and encodes back to the same.
#[track_caller]
fn check_event(kind: &str, data: &str) {
    let kind = format!("\"{kind}\"");
    let decoded = event(&kind, data).unwrap_or_else(|e| panic!("{kind}: {e}"));
    assert!(decoded.kind().is_some(), "{kind} is unknown");
    assert!(!format!("{decoded:?}").contains("Other("), "{decoded:?}");
    assert_same(&kind, Json::new(data).unwrap(), &decoded);
}

#[test]
fn event_types_that_are_in_no_recording() {
    for (kind, data) in UNSEEN_EVENTS {
        check_event(kind, data);
    }
}

/// From the runtime's type catalogue, and from 0.1.1.
const UNSEEN_EVENTS: &[(&str, &str)] = &[
    (
        "developer/message",
        r#"{"turn":1,"step":1,"message":{"role":"developer","content":[],"source":{"kind":"tool-registry"},"id":"m"},"headerSeq":4}"#,
    ),
    (
        "assistant/message",
        r#"{"turn":1,"step":1,"message":{"role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"},"id":"m"},"stream":[],"interrupted":true}"#,
    ),
    ("turn/end", r#"{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"hook","reason":"no"}}}"#),
    ("turn/end", r#"{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"disposed"}}}"#),
    ("turn/end", r#"{"turn":1,"reason":{"kind":"interrupted"}}"#),
    ("compaction/start", r#"{"compactionId":"c","turn":null}"#),
    ("compaction/end", r#"{"compactionId":"c","sourceCommandId":"d","turn":3,"error":"e"}"#),
    (
        "compaction/summary",
        r#"{"compactionId":"c","summary":[{"type":"text","text":"t"}],"shadowedRange":{"start":1,"end":2},"shadowedSeqs":[1,2],"shadowedTokenCount":9,"provider":"p","model":"m","maxTokens":5,"usage":{"inputTokens":1,"outputTokens":2},"rawOutput":[],"llmStreamCall":true}"#,
    ),
    ("compaction/prune", r#"{"shadowedRange":{"start":1,"end":2},"shadowedSeqs":[1,2],"shadowedTokenCount":9}"#),
    ("command/run", r#"{"commandId":"c","name":"compact","args":"a","source":{"kind":"user"}}"#),
    ("command/done", r#"{"commandId":"c","kind":"success","text":"t","sourceEventSeq":3}"#),
    ("image/offload", r#"{"targets":[{"seq":3,"imageIndexes":[0,1]}]}"#),
    ("model/selection", r#"{"provider":"p","model":"m","reasoningEffort":"high"}"#),
    ("plan/mode", r#"{"active":true}"#),
    ("agent-preset/selected", r#"{"agentPreset":"a"}"#),
    (
        "tool/ptc-dispatch-start",
        r#"{"rootCallId":"a","parentCallId":"b","subCallId":"c","name":"n","arguments":{"x":null}}"#,
    ),
    (
        "tool/ptc-dispatch",
        r#"{"rootCallId":"a","parentCallId":"b","subCallId":"c","name":"n","arguments":null,"isError":false,"content":[],"meta":null,"error":{"name":"n","code":"c","reason":"r"}}"#,
    ),
    ("feedback/record", r#"{"text":"t","category":"other"}"#),
    (
        "feedback/message-put",
        r#"{"sessionId":"s","item":{"messageId":"m","rating":"positive","note":"n","category":"other","version":"v","createdAt":1,"updatedAt":2}}"#,
    ),
    ("feedback/message-delete", r#"{"sessionId":"s","messageId":"m"}"#),
    (
        "team/member",
        r#"{"version":2,"teamId":"t","member":{"id":"i","name":"n","description":"d","provider":"p","context":"fork","phase":"active","error":"e"}}"#,
    ),
    (
        "team/task",
        r#"{"version":2,"teamId":"t","task":{"id":"i","revision":1,"subject":"s","description":"d","status":"in_progress","ownerId":"o","blockedBy":["x"],"writeScopes":[]}}"#,
    ),
    (
        "team/message/queued",
        r#"{"version":2,"teamId":"t","message":{"id":"i","senderId":"s","senderName":"n","targetId":"t","content":[]}}"#,
    ),
    ("team/message/delivered", r#"{"version":2,"teamId":"t","messageId":"m","targetId":"x"}"#),
    ("workspace/changes", r#"{"turn":2}"#),
    ("subagent/model-selection-policy", r#"{"allowedModels":[{"provider":"p","model":"m"}]}"#),
    (
        "subagent/descriptor",
        r#"{"version":3,"mode":"continuable","provider":"spawn","label":"l","agentProvider":"p","agentModel":"m","agentReasoningEffort":"e","toolFilter":{"allow":["a"],"deny":[]}}"#,
    ),
    ("session/end-seed", r#"{"inherited":true}"#),
    (
        "session/title",
        r#"{"title":"t","messageSeqs":[1],"source":{"kind":"provider","provider":"p","model":{"provider":"p","model":"m"}}}"#,
    ),
    (
        "session/title-llm-request",
        r#"{"titleProvider":"t","messageSeqs":[1],"route":{"provider":"p","model":"m"},"system":"s","messages":[],"maxTokens":9}"#,
    ),
    ("hook/invoked", r#"{"turn":1,"point":"p","dialect":"codex","matcher":"m","handlerId":"h"}"#),
    (
        "hook/result",
        r#"{"turn":1,"point":"p","handlerId":"h","decision":"d","durationMs":1.5,"exitCode":-1,"stderrSummary":"s"}"#,
    ),
    (
        "schedule/change",
        r#"{"version":1,"operation":"create","schedule":{"id":"i","kind":"every","title":"t","prompt":"p","everySeconds":300,"scheduledAt":"2026-01-01T00:00:00.000Z"}}"#,
    ),
    ("schedule/change", r#"{"version":1,"operation":"dispatch","id":"i","acceptedAt":"2026-01-01T00:00:00.000Z"}"#),
    (
        "goal/change",
        r#"{"kind":"goal/change","version":1,"operation":"clear","cleared":{"id":"g","revision":2},"clearedAt":5}"#,
    ),
    ("tool-workflow/run-start", r#"{"runId":"r","name":"n"}"#),
    ("tool-workflow/run-end", r#"{"runId":"r","stopReason":"completed"}"#),
    ("tool-workflow/agent-start", r#"{"runId":"r","seq":1,"label":"l","phase":"p","childId":"c"}"#),
    ("tool-workflow/agent-end", r#"{"runId":"r","seq":1,"outcome":"failed"}"#),
    ("web/deepseek-search-llm-request", r#"{"endpoint":"e","apiVersion":"v","body":{"any":[1]}}"#),
    // 0.1.1 and 2026-07
    ("assistant/chunk", r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"a"}}"#),
    (
        "assistant/chunk",
        r#"{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c","name":"n","argumentsDelta":"{"}}"#,
    ),
    (
        "assistant/chunk",
        r#"{"turn":1,"step":1,"chunk":{"type":"finish","reason":{"kind":"aborted","failure":{"message":"m","code":"c"}}}}"#,
    ),
    (
        "assistant/message",
        r#"{"turn":1,"step":1,"message":{"role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"},"id":"m"}}"#,
    ),
    (
        "request/header",
        r#"{"header":{"config":{"provider":"p","model":"m","temperature":0.5,"stop":["x"]},"system":"be good","tools":[]},"reason":"change","startsSeries":true}"#,
    ),
    ("tool/code-dispatch-start", r#"{"rootCallId":"a","parentCallId":"b","subCallId":"c","name":"n","arguments":"x"}"#),
    (
        "tool/code-dispatch",
        r#"{"rootCallId":"a","parentCallId":"b","subCallId":"c","name":"n","arguments":[],"isError":true,"content":[{"type":"text","text":"t"}]}"#,
    ),
    (
        "tool/result",
        r#"{"turn":1,"step":1,"message":{"role":"user","source":{"kind":"tool","callId":"c"},"content":[{"type":"tool-result","toolCallId":"c","content":[{"type":"text","text":"t"}],"isError":true}],"id":"m"}}"#,
    ),
    ("session-log-deepseek/delivery-accepted", r#"{"sessionId":"s","throughSeq":4}"#),
    (
        "user/message",
        r#"{"content":[{"type":"file","attachment":{"attachmentId":"a","name":"n","bytes":3}},{"type":"tool-addition","toolName":"t"},{"type":"tool-removal","toolName":"t"},{"type":"image","attachment":{"attachmentId":"a","mediaType":"image/png","width":1,"height":2,"bytes":3,"name":"n","originalDimensions":{"width":1,"height":2}},"offloaded":true}],"source":{"kind":"plugin","plugin":"p","form":"notice","summary":"s"},"role":"user","id":"m"}"#,
    ),
    (
        "user/message",
        r#"{"content":[],"source":{"kind":"webhook","provider":"p","source":"s","deliveryId":"d","ruleId":"r","form":"notice","summary":"s"},"role":"user","id":"m"}"#,
    ),
    (
        "user/message",
        r#"{"content":[],"source":{"kind":"session-reference","form":"recall","version":1,"references":[{"sessionId":"s","label":"l","capturedFormatVersion":4,"capturedThroughSeq":null,"compacted":false,"originalMessages":1,"retainedMessages":1,"omittedMessages":0,"omittedBytes":0,"truncated":false,"inputIndex":0}]},"role":"user","id":"m"}"#,
    ),
];

#[test]
fn notifications_of_the_first_revision() {
    let finished = notification("session.finished", r#"{"sessionId":"s","status":"error","reason":"boom"}"#);
    let NotificationBuf { method, params } = &finished;
    let view = Notification::decode(method.as_json_str(), params.as_json()).unwrap();
    let NotificationBody::SessionFinished(body) = view.body else { panic!("{view:?}") };
    assert_eq!((body.status, body.reason.unwrap().to_string()), (FinishStatus::Error, "boom".to_owned()));
    assert_same("session.finished", params.as_json(), &view.body);
}

#[test]
fn the_answer_to_a_prompt_in_all_revisions() {
    let check = |text: &str, expected: Result<PromptResult, &str>| {
        let found = PromptResult::decode(Json::new(text).unwrap()).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    };
    let enqueued = |id: &str| Ok(PromptResult::Enqueued { message_id: id.into() });
    check(r#"{"messageId":"m"}"#, enqueued("m"));
    check(r#"{"messageId":"m","accepted":true}"#, enqueued("m"));
    check(r#"{"messageId":7,"messageId":"m","later":[]}"#, enqueued("m"));
    check(r#"{"accepted":true}"#, Ok(PromptResult::Accepted));
    check(r#"{"messageId":null,"accepted":true}"#, Ok(PromptResult::Accepted));
    check(
        r#"{"accepted":false}"#,
        Err(r#"cannot read member "accepted" of PromptResult: expected true, found a boolean"#),
    );
    check("{}", Err(r#"cannot read member "messageId" of PromptResult: it is missing"#));
    check(
        r#"{"messageId":7}"#,
        Err(r#"cannot read member "messageId" of PromptResult: expected a string, found a number"#),
    );
    check("[]", Err("cannot read PromptResult: expected an object, found an array"));
}

#[test]
fn surface_ops_in_both_spellings() {
    let check = |text: &str, expected: SurfaceOp<'_>, replaced| {
        let op = SurfaceOp::decode(Json::new(text).unwrap()).unwrap();
        assert_eq!((op, op.replaced()), (expected, replaced));
        assert_same(text, Json::new(text).unwrap(), &op);
    };
    check(r#""append""#, SurfaceOp::Append, None);
    check(r#"{"op":"replace","startSeq":1,"endSeq":2}"#, SurfaceOp::Replace { start_seq: 1, end_seq: 2 }, Some((1, 2)));
    check(r#"{"op":"replace","start":1,"end":2}"#, SurfaceOp::ReplaceOld { start: 1, end: 2 }, Some((1, 2)));
    for odd in [r#""prepend""#, r#"{"op":"replace"}"#, r#"{"op":"drop","seq":1}"#, "7"] {
        let json = Json::new(odd).unwrap();
        check(odd, SurfaceOp::Other(json), None);
    }
}

#[test]
fn what_is_odd_but_right() {
    let end = |data| match event(r#""turn/end""#, data).unwrap() {
        EventData::TurnEnd(end) => (end.turn, end.finish_reason().map(|kind| kind.to_string())),
        other => panic!("{other:?}"),
    };
    let reason = |kind: &str| Some(kind.to_owned());
    // The last duplicate wins, also written with escapes; the others are not looked at.
    assert_eq!(
        end(r#"{"turn":[],"turn":2,"reason":7,"re\u0061son":{"kind":"a","kind":"completed"}}"#),
        (2, reason("completed"))
    );
    // Whole numbers, however written.
    assert_eq!(end(r#"{"turn":1.0,"reason":{"kind":"completed"}}"#).0, 1);
    assert_eq!(end(r#"{"turn":3e0,"reason":{"kind":"completed"}}"#).0, 3);
    // Unknown members and an unknown kind, even one that is none.
    assert_eq!(end(r#"{"new":{"turn":9},"turn":1,"reason":{"kind":"tired","why":1}}"#), (1, reason("tired")));
    assert_eq!(end(r#"{"turn":1,"reason":{"kind":5}}"#), (1, None));
    // An escaped name of a type is the same type.
    assert!(matches!(event(r#""turn\/start""#, r#"{"turn":1}"#), Ok(EventData::TurnStart(TurnStart { turn: 1, .. }))));
    // null where a member may be absent.
    let data = r#"{"target":"next-turn","start":0,"removedCount":null,"inserted":[]}"#;
    let Ok(EventData::InboxSpliced(spliced)) = event(r#""agent/inbox/spliced""#, data) else { panic!() };
    assert_eq!(spliced.removed_count, None);
    // Words that are not on the list are kept, lone surrogates too.
    let data = r#"{"target":"later \ud83d","start":0,"inserted":[]}"#;
    let Ok(EventData::InboxSpliced(spliced)) = event(r#""agent/inbox/spliced""#, data) else { panic!() };
    assert_eq!(spliced.target.as_json_str().get(), r#""later \ud83d""#);
    assert_same("lone", Json::new(data).unwrap(), &spliced);
    // Unknown types keep their data.
    assert_eq!(event(r#""brand/new""#, "[1]"), Ok(EventData::Unknown(Json::new("[1]").unwrap())));
}

#[test]
fn what_is_wrong_says_where() {
    let check = |kind: &str, data: &str, expected: &str| {
        let kind = format!("\"{kind}\"");
        assert_eq!(event(&kind, data).expect_err(data).to_string(), expected);
    };
    check("turn/start", "{}", r#"cannot read member "turn" of TurnStart: it is missing"#);
    check("turn/start", "[]", "cannot read TurnStart: expected an object, found an array");
    check(
        "turn/start",
        r#"{"turn":1,"turn":null}"#,
        r#"cannot read member "turn" of TurnStart: expected a whole number from 0, found null"#,
    );
    check(
        "turn/start",
        r#"{"turn":1.5}"#,
        r#"cannot read member "turn" of TurnStart: expected a whole number from 0, found a number"#,
    );
    check(
        "turn/start",
        r#"{"turn":-1}"#,
        r#"cannot read member "turn" of TurnStart: expected a whole number from 0, found a number"#,
    );
    check(
        "turn/end",
        r#"{"turn":1,"reason":{"kind":"error","error":{"message":"m"}}}"#,
        r#"cannot read member "code" of Failure: it is missing"#,
    );
    check(
        "agent/inbox/spliced",
        r#"{"target":"next-turn","start":0,"removedCount":"1","inserted":[]}"#,
        r#"cannot read member "removedCount" of InboxSpliced: expected a whole number from 0, found a string"#,
    );
    check(
        "llm/retry-started",
        r#"{"retryId":7,"turn":1,"step":1,"retry":1}"#,
        r#"cannot read member "retryId" of LlmRetryStarted: expected a string, found a number"#,
    );
}

#[test]
fn notifications_that_are_odd_or_wrong() {
    let decode = |method: &str, params: &str| {
        let kept = notification(method, params);
        kept.view().map(|view| (view.body == NotificationBody::Unknown, view.session_id().map(JsonStr::to_buf)))
    };
    assert_eq!(decode("session.status", r#"{"sessionId":"s","status":"napping"}"#), Ok((false, Some("s".into()))));
    assert_eq!(decode("session.renamed", r#"{"sessionId":"s"}"#), Ok((true, Some("s".into()))));
    assert_eq!(decode("session.renamed", "[]"), Ok((true, None)));
    let lone = decode("session.status", r#"{"sessionId":"s\ud83d","status":"idle"}"#).unwrap().1.unwrap();
    assert_eq!(lone.as_json_str().get(), r#""s\ud83d""#);
    let error = decode("session.status", r#"{"sessionId":"s","status":7}"#).unwrap_err();
    assert_eq!((error.of(), error.member()), ("SessionStatusParams", Some("status")));
    assert_eq!(error.problem(), Problem::Unexpected { expected: Expected::String, found: Kind::Number });
    let error = decode("session.event", r#"{"sessionId":"s","event":{"type":"x","seq":1,"time":1}}"#).unwrap_err();
    assert_eq!((error.of(), error.member(), error.problem()), ("SessionEvent", Some("data"), Problem::Missing));
    let error = decode("session.event", r#"{"sessionId":"s"}"#).unwrap_err();
    assert_eq!((error.of(), error.member(), error.problem()), ("SessionEventParams", Some("event"), Problem::Missing));
    assert!(decode("session.event", "null").is_err());
}

/// The params of `session.event` are read by hand, in one walk, so what surrounds the event matters.
#[test]
fn an_event_is_read_where_it_stands() {
    let check = |params: &str, expected: Result<(&str, u64, &str), &str>| {
        let kept = notification("session.event", params);
        let found = kept.view().map_err(|error| error.to_string()).map(|view| {
            let event = view.event().unwrap();
            (view.session_id().unwrap().to_string(), event.seq, event.data.get().to_owned())
        });
        let expected = expected.map_err(str::to_owned).map(|(id, seq, data)| (id.to_owned(), seq, data.to_owned()));
        assert_eq!(found, expected, "{params}");
    };
    let event = r#"{"type":"x","seq":1,"time":1,"data":{"a":[{"}":"]"}]}}"#;
    let data = r#"{"a":[{"}":"]"}]}"#;
    check(&format!(r#"{{"sessionId":"s","event":{event}}}"#), Ok(("s", 1, data)));
    check(&format!(r#"{{"event":{event},"sessionId":"s"}}"#), Ok(("s", 1, data)));
    check(&format!("{{ \"event\" :\t{event} ,\r\"later\" : [ ] , \"sessionId\" : \"s\" }}"), Ok(("s", 1, data)));
    check(&format!(r#"{{"ev\u0065nt":{event},"sessionId":"s"}}"#), Ok(("s", 1, data)));
    // Of two the last one counts, whichever of them is malformed.
    check(&format!(r#"{{"event":{{}},"sessionId":7,"sessionId":"s","event":{event}}}"#), Ok(("s", 1, data)));
    check(&format!(r#"{{"event":[1,{event}],"sessionId":"s","event":{event}}}"#), Ok(("s", 1, data)));
    let missing = r#"cannot read member "type" of SessionEvent: it is missing"#;
    check(&format!(r#"{{"sessionId":"s","event":{event},"event":{{}}}}"#), Err(missing));
    check(r#"{"sessionId":"s","event":{ }}"#, Err(missing));
    let kind = "cannot read SessionEvent: expected an object, found a string";
    check(r#"{"sessionId":"s","event":"{}"}"#, Err(kind));
    check(r#"{"event":{"type":"x","seq":1.0,"time":1,"data":null,"seq":2},"sessionId":"s"}"#, Ok(("s", 2, "null")));
}

#[test]
fn blocks_of_any_shape_pass_through() {
    let text = r#"[{"type":"text","text":"a\ud83d"},null,"hi",{"no":"type"},{"type":"hologram","x":1},{"type":"text"},{"type":"text","text":"\ude00b"}]"#;
    let blocks = Blocks::decode(Json::new(text).unwrap()).unwrap();
    let others = blocks.iter().filter(|block| matches!(block, Ok(Block::Other(_)))).count();
    let errors = blocks.iter().filter(Result::is_err).count();
    assert_eq!((others, errors), (4, 1));
    // The halves of the pair stood in two blocks.
    assert_eq!(blocks.text().to_string(), "a\u{1f600}b");
    let blocks: Vec<ContentBlock> = Decode::decode(Json::new(text).unwrap()).unwrap();
    assert_same("raw blocks", Json::new(text).unwrap(), &blocks);
}

#[test]
fn requests_are_written_in_order_and_without_what_is_absent() {
    let check = |value: &str, expected: &str| assert_eq!(value, expected);
    let mut params = InitializeParams::new("/w", "p", String::from("m\n"));
    check(&write(&params), r#"{"cwd":"/w","provider":"p","model":"m\n"}"#);
    params.max_tokens = Some(5);
    params.reasoning_effort = Some("high".into());
    check(&write(&params), r#"{"cwd":"/w","provider":"p","model":"m\n","reasoningEffort":"high","maxTokens":5}"#);
    let lone = Json::new(r#""s\ud83d""#).unwrap().as_str().unwrap();
    let mut params = PromptParams::text(lone, "hi");
    params.content_blocks.push(ContentBlock::image("AAAA", "image/png"));
    params.content_blocks.push(ContentBlock::raw(JsonBuf::new(r#"{"zeta":1}"#).unwrap()));
    check(
        &write(&params),
        r#"{"sessionId":"s\ud83d","contentBlocks":[{"type":"text","text":"hi"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"zeta":1}]}"#,
    );
    check(&write(&Empty), "{}");
}

// ---- helpers ----

fn notification(method: &str, params: &str) -> NotificationBuf {
    NotificationBuf { method: method.into(), params: JsonBuf::new(params).unwrap() }
}

fn write(value: &impl Serialize) -> String {
    JsonBuf::from_serialize(value).unwrap().as_json().get().to_owned()
}

fn each_frame(dir: Direction, mut check: impl FnMut(&str, Json<'_>)) {
    for recording in recording::all() {
        each_frame_of(&recording, dir, &mut check);
    }
}

/// Calls `check` for each line that is JSON, with what to say when it fails.
fn each_frame_of(recording: &Recording, dir: Direction, mut check: impl FnMut(&str, Json<'_>)) {
    for row in recording.lines(dir) {
        let Ok(text) = std::str::from_utf8(&row.bytes) else { continue };
        match Json::new(text) {
            Ok(json) => check(&format!("{} at {}: {text:.200}", recording.name, row.t), json),
            Err(error) => assert_eq!(dir, Direction::ClientToServer, "{}: {error}", recording.name),
        }
    }
}

#[track_caller]
fn assert_same(context: &str, wire: Json<'_>, value: &impl Serialize) {
    let written = JsonBuf::from_serialize(value).unwrap_or_else(|e| panic!("{context}: {e}"));
    if let Err(difference) = same(wire, written.as_json()) {
        panic!("{difference}\nin {context}\nwritten: {:.2000}", written.as_json());
    }
}

/// Whether two values are the same: members in the same order, numbers by value, strings by what they say.
fn same(wire: Json<'_>, written: Json<'_>) -> Result<(), String> {
    let mut open = vec![(wire, written, String::new())];
    while let Some((a, b, path)) = open.pop() {
        let equal = a.kind() == b.kind()
            && match a.kind() {
                Kind::Null | Kind::Bool => a == b,
                Kind::Number => a.as_f64() == b.as_f64(),
                Kind::String => a.as_str() == b.as_str(),
                Kind::Array => {
                    let pairs = a.elements().zip(b.elements()).enumerate();
                    open.extend(pairs.map(|(index, (a, b))| (a, b, format!("{path}[{index}]"))));
                    a.elements().count() == b.elements().count()
                }
                Kind::Object => {
                    let kept = |(name, _): &(JsonStr<'_>, Json<'_>)| {
                        let made_up = MADE_UP.contains(&&*name.to_string_lossy());
                        !made_up || b.member(&name.to_string_lossy()).is_some()
                    };
                    let mut came: Vec<_> = a.members().filter(kept).collect();
                    let mut written: Vec<_> = b.members().collect();
                    if FREE_ORDER.iter().any(|end| path.ends_with(end)) {
                        came.sort_by_key(|(name, _)| *name);
                        written.sort_by_key(|(name, _)| *name);
                    }
                    let names = |members: &[(JsonStr<'_>, _)]| members.iter().map(|m| m.0.to_buf()).collect::<Vec<_>>();
                    if names(&came) != names(&written) {
                        return Err(format!("{path}: {:?} came, {:?} were written", names(&came), names(&written)));
                    }
                    open.extend(came.iter().zip(&written).map(|(a, b)| (a.1, b.1, format!("{path}.{}", a.0))));
                    true
                }
            };
        if !equal {
            return Err(format!("{path}: {a:.200?} came, {b:.200?} was written"));
        }
    }
    Ok(())
}

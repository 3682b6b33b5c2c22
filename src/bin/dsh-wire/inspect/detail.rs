//! What tells one line from another of the same name, in a few words.

use dsh_wire::json::{Json, JsonStr};
use dsh_wire::wire::{Blocks, Decode};

use super::facts::Event;

/// Longer texts are of no use in a row, and need not be copied.
const LONG: usize = 1000;

/// Of a request: what a prompt says, the route of a handshake.
pub(crate) fn of_request(params: Json<'_>) -> Option<String> {
    blocks(params.member("contentBlocks")).or_else(|| joined(params, ["provider", "model"], " "))
}

/// Of a notification that is no event: the status, the sub-agent.
pub(crate) fn of_notification(params: Json<'_>) -> Option<String> {
    joined(params, ["status", "childSessionId", "stopReason"], "  ")
}

/// Of an event: the text of a message, the tool, the reason of an end, the number of a turn or step.
pub(crate) fn of_event(event: &Event<'_>) -> Option<String> {
    let data = event.data;
    let text = |name| data.member(name).and_then(short);
    match &*event.kind {
        "user/message" | "assistant/message" | "system/message" | "developer/message" => {
            blocks(data.member("message").unwrap_or(data).member("content"))
        }
        "assistant/chunk" => data.member("chunk").and_then(|chunk| joined(chunk, ["type", "text"], "  ")),
        "tool/call" => joined(data, ["name", "arguments"], "  "),
        "tool/result" => blocks(data.member("message").and_then(|message| message.member("content"))),
        "turn/start" => text("turn"),
        "turn/end" => data.member("reason").and_then(|reason| {
            let error = reason.member("error").and_then(|error| error.member("message")).and_then(short);
            Some([short(reason.member("kind")?)?, error.unwrap_or_default()].join("  "))
        }),
        "step/start" | "step/end" => joined(data, ["turn", "step"], "."),
        "llm/retry" => data.member("failure").and_then(|failure| failure.member("message")).and_then(short),
        "session/title" => text("title"),
        _ => None,
    }
}

/// The members that there are.
fn joined<const N: usize>(json: Json<'_>, names: [&str; N], between: &str) -> Option<String> {
    let parts: Vec<_> = names.into_iter().filter_map(|name| json.member(name).and_then(short)).collect();
    (!parts.is_empty()).then(|| parts.join(between))
}

/// What blocks say; the kinds of those that say nothing.
fn blocks(content: Option<Json<'_>>) -> Option<String> {
    let content = content?;
    let text = Blocks::decode(content).ok()?.text();
    let text = text.as_json_str();
    if text.get() != "\"\"" {
        return short(text.as_json());
    }
    let kinds = content.elements().filter_map(|block| {
        let (kind, name) = (block.member("type").and_then(short)?, block.member("name").and_then(short));
        Some(name.map_or_else(|| format!("[{kind}]"), |name| format!("[{kind} {name}]")))
    });
    Some(kinds.take(10).collect::<Vec<_>>().join(" "))
}

/// A string without quotes, or another value as it is.
fn short(json: Json<'_>) -> Option<String> {
    let text = json.as_str().map_or_else(|| json.get().into(), JsonStr::to_string_lossy);
    Some(text.get(..text.floor_char_boundary(LONG)).unwrap_or_default().to_owned())
}

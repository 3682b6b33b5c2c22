//! The data of the events, member by member as the official runtime writes them; the texts are ours.

use dsh_wire::json::{Json, JsonBuf, JsonString};
use dsh_wire::stdio::turns::{Failure, Message};
use dsh_wire::wire::InitializeParams;

use super::model::Reply;
use super::value::{Value, object};

/// What the official runtime takes where the client says nothing.
const MAX_TOKENS: u64 = 256_000;
const EFFORT: &str = "high";
const CONTEXT_WINDOW: u64 = 1_000_000;

const SYSTEM_PROMPT: &str = "You are an offline stand-in for an agent. You answer by directives and echo the rest.";

/// The blocks that a user message may have for the model.
const SUPPORTED: [&str; 3] = ["text", "reasoning", "image"];

/// Identifies the retry policy in `llm/retry`.
const RETRY_POLICY: &str =
    r#"["normal",5,["EMPTY_RESPONSE","RATE_LIMIT","SERVER","TIMEOUT","TRANSPORT"],500,10000,0.1]"#;

/// The type of a block of the message that no model can be given, if there is one.
pub(super) fn unsupported(message: &Message) -> Option<String> {
    let kind = |block: Json<'_>| match block.member("type") {
        None => "undefined".into(),
        Some(kind) => kind.as_str().map_or_else(|| kind.get().into(), |kind| kind.to_string_lossy().into_owned()),
    };
    message.content().elements().map(kind).find(|kind| !SUPPORTED.contains(&kind.as_str()))
}

/// Whether a title can be made of it: all but notes about the surroundings.
pub(super) fn is_for_title(message: &Message) -> bool {
    let source = message.json().member("source").and_then(|source| source.member("kind")).and_then(Json::as_str);
    source.is_none_or(|kind| kind != "runtime-context")
}

/// What the model is told of its surroundings, first and when they change.
pub(super) fn context(id: String, cwd: &str) -> Message {
    let current = format!("Current working directory: {}.", JsonString::from(cwd).as_json_str().get());
    let text = format!("Current runtime context. This one replaces the ones before.\n\n{current}");
    let section = object! { "name" => "working-directory:current", "text" => &current };
    let source = object! { "kind" => "runtime-context", "form" => "snapshot", "sections" => [section] };
    Message::note(id, &[&text], &source)
}

/// The directory that a context note names, if the message is one.
pub(super) fn context_of(message: Json<'_>) -> Option<JsonString> {
    let section = message.member("source")?.member("sections")?.elements().next()?;
    let text = section.member("text").and_then(Json::as_str)?.to_string_lossy().into_owned();
    let quoted = text.strip_prefix("Current working directory: ")?.strip_suffix('.')?;
    Json::new(quoted).ok()?.as_str().map(|cwd| cwd.to_buf())
}

/// `system/message`.
pub(super) fn system((turn, step): (u64, u64), id: &str) -> Value {
    let message = object! {
        "role" => "system", "content" => [object! { "type" => "text", "text" => SYSTEM_PROMPT }],
        "source" => object! { "kind" => "system-prompt" }, "id" => id,
    };
    object! { "turn" => turn, "step" => step, "message" => message }
}

pub(super) fn header(route: &InitializeParams, effort_is_given: bool, reason: &str) -> Value {
    let max_tokens = route.max_tokens.unwrap_or(MAX_TOKENS);
    let effort = route.reasoning_effort.clone().unwrap_or_else(|| EFFORT.into());
    let (provider, model) = (&route.provider, &route.model);
    let config = match effort_is_given {
        false => object! {
            "provider" => provider, "model" => model, "maxTokens" => max_tokens, "reasoningEffort" => effort,
        },
        true => object! {
            "provider" => provider, "model" => model, "reasoningEffort" => effort, "maxTokens" => max_tokens,
        },
    };
    let defaults = (route.max_tokens.is_none() || !effort_is_given).then(|| {
        object! {
            "reasoningEffort" => (!effort_is_given).then_some(true),
            "maxTokens" => route.max_tokens.is_none().then_some(true),
        }
    });
    let header = object! { "config" => config, "adapterDefaults" => defaults, "tools" => tools() };
    object! { "header" => header, "reason" => reason }
}

fn tools() -> Value {
    let parameter = |text: &str| object! { "type" => "string", "description" => text };
    let bash = object! {
        "type" => "object", "properties" => object! { "command" => parameter("The command line to run.") },
        "required" => ["command"],
    };
    let read_image = object! {
        "type" => "object", "properties" => object! { "file_path" => parameter("The image file to look at.") },
        "required" => ["file_path"],
    };
    let working_directory = object! {
        "type" => "object", "properties" => object! { "cd" => parameter("The directory to change to.") },
    };
    let tool = |name: &str, description: &str, parameters| {
        object! { "name" => name, "description" => description, "parameters" => parameters }
    };
    [
        tool("bash", "Runs a command with sh and gives back what it prints.", bash),
        tool("read_image", "Shows an image file to the model.", read_image),
        tool("working_directory", "Says or changes where the session works.", working_directory),
    ]
    .into()
}

pub(super) fn request_context(route: &InitializeParams) -> Value {
    object! { "provider" => &route.provider, "model" => &route.model, "contextWindow" => CONTEXT_WINDOW }
}

pub(super) fn title(title: &JsonString, message: u64) -> Value {
    object! { "title" => title, "messageSeqs" => [message], "source" => object! { "kind" => "fallback" } }
}

pub(super) fn delivered(session: &JsonString, through: u64) -> Value {
    object! { "sessionId" => session, "sessionFormatVersion" => 4_u64, "throughSeq" => through }
}

/// What the provider wants back with the next call.
pub(super) fn replay_state(route: &InitializeParams, reply: &Reply) -> JsonBuf {
    let thinking = reply.thinking.as_ref().map(|_| object! { "type" => "reasoning", "signature" => "fake-signature" });
    let text = (reply.text.as_json_str() != "").then(|| object! { "type" => "text" });
    let tools = reply.tools.iter().map(|_| object! { "type" => "tool-call" });
    let blocks: Vec<Value> = thinking.into_iter().chain(text).chain(tools).collect();
    let response = object! { "kind" => "deepseek-messages", "version" => 1_u64, "model" => &route.model };
    let state = object! { "response" => response, "blocks" => blocks };
    // It has a JSON form like all we make.
    JsonBuf::from_serialize(&state).unwrap_or_else(|_| Json::EMPTY_OBJECT.to_buf())
}

/// The data of the events of a flood, this large.
pub(super) fn flood(bytes: usize) -> Value {
    object! { "filler" => "x".repeat(bytes) }
}

/// One of the retries of a model call.
pub(super) fn retry(
    id: &str,
    (turn, step): (u64, u64),
    route: &InitializeParams,
    number: u32,
    delay: f64,
    failure: &Failure,
) -> Value {
    object! {
        "retryId" => id, "turn" => turn, "step" => step, "provider" => &route.provider, "mode" => "normal",
        "policyKey" => RETRY_POLICY, "retry" => u64::from(number), "maxRetries" => 5_u64, "delayMs" => delay,
        "failure" => JsonBuf::from_serialize(failure).ok(),
    }
}

pub(super) fn retry_started(id: &str, (turn, step): (u64, u64), number: u32) -> Value {
    object! { "retryId" => id, "turn" => turn, "step" => step, "retry" => u64::from(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_note_names_its_directory() {
        let note = context("id".into(), "/a \"b\"");
        assert_eq!(context_of(note.json()), Some("/a \"b\"".into()));
        let other = Message::note("id".into(), &["x"], &object! { "kind" => "user" });
        assert_eq!(context_of(other.json()), None);
        assert!(is_for_title(&other) && !is_for_title(&note));
    }
}

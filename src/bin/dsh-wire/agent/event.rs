//! The data of the events, member by member as the official runtime writes them; the texts are ours.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use dsh_wire::json::{Json, JsonString};
use dsh_wire::wire::InitializeParams;

use super::model::{Reply, ToolUse};
use super::text;
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

/// A message that waits for its turn or step.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) id: String,
    /// As it is told.
    pub(super) value: Value,
    /// What its text blocks say.
    pub(super) texts: Vec<JsonString>,
    /// The type of a block that no model can be given, if there is one.
    pub(super) unsupported: Option<String>,
}

/// A new id: a random UUID.
pub(super) fn new_id() -> String {
    static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = HASHERS.each_ref().map(|hasher| hasher.hash_one(next));
    // Version 4 and its variant (RFC 9562).
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    let (time_low, time_mid, time_high) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
    format!("{time_low:08x}-{time_mid:04x}-{time_high:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}

/// A message in the inbox of a user's making: the blocks of a prompt.
pub(super) fn prompt(content_blocks: Json<'_>) -> Message {
    let text = |block: Json<'_>| {
        block.member("type").and_then(Json::as_str).filter(|kind| *kind == "text")?;
        block.member("text").and_then(Json::as_str).map(|text| text.to_buf())
    };
    let kind = |block: Json<'_>| match block.member("type") {
        None => "undefined".into(),
        Some(kind) => kind.as_str().map_or_else(|| kind.get().into(), |kind| kind.to_string_lossy().into_owned()),
    };
    let texts = content_blocks.elements().filter_map(text).collect();
    let unsupported = content_blocks.elements().map(kind).find(|kind| !SUPPORTED.contains(&kind.as_str()));
    Message { unsupported, ..message(content_blocks.into(), object! { "kind" => "user" }, texts) }
}

/// A note of the runtime's own.
pub(super) fn note(text: &str) -> Message {
    message(text_blocks(text), object! { "kind" => "working-directory" }, [text.into()].into())
}

/// What the model is told of its surroundings, first and when they change.
pub(super) fn context(cwd: &str) -> Message {
    let current = format!("Current working directory: {}.", JsonString::from(cwd).as_json_str().get());
    let text = format!("Current runtime context. This one replaces the ones before.\n\n{current}");
    let section = object! { "name" => "working-directory:current", "text" => &current };
    let source = object! { "kind" => "runtime-context", "form" => "snapshot", "sections" => [section] };
    message(text_blocks(&text), source, [text.as_str().into()].into())
}

/// The directory that a context note names, if the message is one.
pub(super) fn context_of(message: Json<'_>) -> Option<JsonString> {
    let section = message.member("source")?.member("sections")?.elements().next()?;
    let text = section.member("text").and_then(Json::as_str)?.to_string_lossy().into_owned();
    let quoted = text.strip_prefix("Current working directory: ")?.strip_suffix('.')?;
    Json::new(quoted).ok()?.as_str().map(|cwd| cwd.to_buf())
}

fn message(content: Value, source: Value, texts: Vec<JsonString>) -> Message {
    let id = new_id();
    let value = object! { "content" => content, "source" => source, "role" => "user", "id" => &id };
    Message { id, value, texts, unsupported: None }
}

fn text_blocks(text: &str) -> Value {
    [object! { "type" => "text", "text" => text }].into()
}

pub(super) fn inserted(target: &str, start: usize, message: &Message) -> Value {
    object! { "target" => target, "start" => start as u64, "inserted" => [message.value.clone()] }
}

pub(super) fn removed(target: &str, count: usize) -> Value {
    object! {
        "target" => target, "start" => 0_u64, "removedCount" => count as u64, "inserted" => Vec::<Value>::new(),
    }
}

pub(super) fn step(turn: u64, step: u64) -> Value {
    object! { "turn" => turn, "step" => step }
}

pub(super) fn turn_end(turn: u64, reason: Value) -> Value {
    object! { "turn" => turn, "reason" => reason }
}

pub(super) fn system(turn: u64, step: u64) -> Value {
    let message = object! {
        "role" => "system", "content" => text_blocks(SYSTEM_PROMPT), "source" => object! { "kind" => "system-prompt" },
        "id" => new_id(),
    };
    object! { "turn" => turn, "step" => step, "message" => message }
}

pub(super) fn header(route: &InitializeParams, reason: &str) -> Value {
    let max_tokens = route.max_tokens.unwrap_or(MAX_TOKENS);
    let effort = route.reasoning_effort.clone().unwrap_or_else(|| EFFORT.into());
    let (provider, model) = (&route.provider, &route.model);
    let config = match route.reasoning_effort {
        None => object! {
            "provider" => provider, "model" => model, "maxTokens" => max_tokens, "reasoningEffort" => effort,
        },
        Some(_) => object! {
            "provider" => provider, "model" => model, "reasoningEffort" => effort, "maxTokens" => max_tokens,
        },
    };
    let defaults = (route.max_tokens.is_none() || route.reasoning_effort.is_none()).then(|| {
        object! {
            "reasoningEffort" => route.reasoning_effort.is_none().then_some(true),
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

fn usage() -> Value {
    object! {
        "inputTokens" => 100_u64, "outputTokens" => 20_u64, "cacheReadTokens" => 0_u64, "cacheWriteTokens" => 0_u64,
        "totalTokens" => 120_u64,
    }
}

/// What the model has said, as it came and as a whole.
pub(super) struct Answer {
    content: Vec<Value>,
    /// The blocks as they are replayed to the model.
    replay: Vec<Value>,
    stream: Vec<Value>,
    time: u64,
}

impl Answer {
    /// An answer that comes at this time, Unix time in milliseconds.
    pub(super) fn new(time: u64) -> Self {
        Self { content: Vec::new(), replay: Vec::new(), stream: Vec::new(), time }
    }

    fn chunk(&mut self, chunk: Value) {
        self.stream.push(object! { "type" => "chunk", "time" => self.time, "chunk" => chunk });
    }

    /// A block that comes in pieces, this far apart in milliseconds; `whole` is left out where the stream breaks.
    fn block(&mut self, kind: &str, records: Vec<Value>, whole: Option<Value>) {
        let index = self.content.len() as u64;
        self.chunk(object! { "type" => "block-start", "index" => index, "blockType" => kind });
        self.stream.extend(records);
        if let Some(block) = whole {
            self.chunk(object! { "type" => "block-end", "index" => index, "block" => block.clone() });
            self.content.push(block);
        }
    }

    fn texts(&self, kind: &str, gap: u64, texts: Vec<JsonString>) -> Vec<Value> {
        let gaps: Vec<Value> = texts.iter().skip(1).map(|_| gap.into()).collect();
        let texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
        let index = self.content.len() as u64;
        [object! { "type" => kind, "time0" => self.time, "index" => index, "dt" => gaps, "texts" => texts }].into()
    }

    pub(super) fn thinking(&mut self, thinking: &str, pieces: usize) {
        let texts = text::pieces(JsonString::from(thinking).as_json_str(), pieces);
        let records = self.texts("reasoning-chunks", 0, texts);
        self.block("reasoning", records, Some(object! { "type" => "reasoning", "text" => thinking }));
        self.replay.push(object! { "type" => "reasoning", "signature" => "fake-signature" });
    }

    pub(super) fn text(&mut self, reply: &Reply) {
        let gap = u64::try_from(reply.piece_delay.as_millis()).unwrap_or(0);
        let records = self.texts("text-chunks", gap, text::pieces(reply.text.as_json_str(), reply.pieces));
        let whole = reply.fault.is_none().then(|| object! { "type" => "text", "text" => &reply.text });
        self.block("text", records, whole);
        self.replay.push(object! { "type" => "text" });
    }

    pub(super) fn tool(&mut self, id: &str, tool: &ToolUse, pieces: usize) {
        let index = self.content.len() as u64;
        let record = |name: Option<&str>, args: Vec<JsonString>| {
            let gaps: Vec<Value> = args.iter().skip(1).map(|_| 0_u64.into()).collect();
            let args: Vec<Value> = args.into_iter().map(Value::from).collect();
            object! {
                "type" => "tool-call-chunks", "time0" => self.time, "index" => index, "dt" => gaps, "id" => id,
                "name" => name, "args" => args,
            }
        };
        let arguments = text::pieces(JsonString::from(tool.arguments.as_str()).as_json_str(), pieces);
        let records = [record(Some(&tool.name), ["".into()].into()), record(None, arguments)].into();
        let whole = object! {
            "type" => "tool-call", "id" => id, "name" => &tool.name, "arguments" => &tool.arguments,
        };
        self.block("tool-call", records, Some(whole));
        self.replay.push(object! { "type" => "tool-call" });
    }

    /// `assistant/message`.
    pub(super) fn message(mut self, (turn, step): (u64, u64), route: &InitializeParams, finish: &str) -> Value {
        let response = object! { "kind" => "deepseek-messages", "version" => 1_u64, "model" => &route.model };
        let replay = object! { "response" => response, "blocks" => std::mem::take(&mut self.replay) };
        self.chunk(object! { "type" => "usage", "usage" => usage() });
        let reason = object! { "kind" => finish };
        self.chunk(object! { "type" => "finish", "reason" => reason, "replayState" => replay.clone() });
        let source = object! {
            "kind" => "model", "provider" => &route.provider, "model" => &route.model, "replayState" => replay,
        };
        let message = object! {
            "role" => "assistant", "content" => self.content, "source" => source, "id" => new_id(),
        };
        object! {
            "turn" => turn, "step" => step, "message" => message, "usage" => usage(), "stream" => self.stream,
        }
    }

    /// `assistant/attempt`: the call has given no message.
    pub(super) fn attempt(mut self, (turn, step): (u64, u64), failure: &Value) -> Value {
        let reason = object! { "kind" => "error", "failure" => failure.clone() };
        self.chunk(object! { "type" => "finish", "reason" => reason });
        object! { "turn" => turn, "step" => step, "stream" => self.stream }
    }
}

/// One of the retries of a model call.
pub(super) fn retry(
    id: &str,
    (turn, step): (u64, u64),
    route: &InitializeParams,
    number: u32,
    delay: f64,
    failure: &Value,
) -> Value {
    object! {
        "retryId" => id, "turn" => turn, "step" => step, "provider" => &route.provider, "mode" => "normal",
        "policyKey" => RETRY_POLICY, "retry" => u64::from(number), "maxRetries" => 5_u64, "delayMs" => delay,
        "failure" => failure.clone(),
    }
}

pub(super) fn retry_started(id: &str, (turn, step): (u64, u64), number: u32) -> Value {
    object! { "retryId" => id, "turn" => turn, "step" => step, "retry" => u64::from(number) }
}

pub(super) fn tool_call((turn, step): (u64, u64), id: &str, tool: &ToolUse) -> Value {
    object! {
        "turn" => turn, "step" => step, "callId" => id, "name" => &tool.name, "arguments" => &tool.arguments,
    }
}

/// The outcome of a tool; `error` is the name and the code of what went wrong.
pub(super) fn tool_result((turn, step): (u64, u64), id: &str, text: &str, error: Option<(&str, &str)>) -> Value {
    let message = object! {
        "role" => "tool", "source" => object! { "kind" => "tool", "callId" => id }, "toolCallId" => id,
        "content" => text_blocks(text), "isError" => error.is_some(), "id" => new_id(),
    };
    let error = error.map(|(name, code)| object! { "name" => name, "code" => code });
    object! { "turn" => turn, "step" => step, "message" => message, "error" => error }
}

/// Why a model call failed.
pub(super) fn failure(message: &str, code: &str, status: Option<u16>) -> Value {
    object! { "message" => message, "code" => code, "status" => status.map(u64::from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(value: &Value) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn ids_are_random_uuids() {
        let (one, two) = (new_id(), new_id());
        assert_ne!(one, two);
        assert_eq!(one.len(), 36);
        assert_eq!((&one[14..15], &one[8..9]), ("4", "-"));
        assert!("89ab".contains(&one[19..20]));
    }

    #[test]
    fn a_context_note_names_its_directory() {
        let note = text_of(&context("/a \"b\"").value);
        assert_eq!(context_of(Json::new(&note).unwrap()), Some("/a \"b\"".into()));
        let prompt = text_of(&prompt(Json::new(r#"[{"type":"text","text":"x"}]"#).unwrap()).value);
        assert_eq!(context_of(Json::new(&prompt).unwrap()), None);
    }
}

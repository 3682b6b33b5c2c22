//! What an agent answers: [`Answer`], piece by piece, and what goes wrong.

use std::borrow::ToOwned;
use std::boxed::Box;
use std::fmt;
use std::string::String;
use std::vec::Vec;

use serde::Serialize;

use super::message::TextBlock;
use super::tool::ToolUse;
use crate::json::{Json, JsonBuf, JsonStr, JsonString};
use crate::wire::InitializeParams;
use crate::wire::stream::TokenUsage;

/// One answer of an agent: thinking, text and tool calls, in the order in which they were put in. Its pieces may say
/// when they came, which clients find in the `stream` of the message.
///
/// ```
/// use dsh_wire::stdio::turns::{Answer, ToolUse};
///
/// let plain: Answer = "hello".into();
/// let rich = Answer::new().thinking("Is it a greeting?").text("It is.").tool(ToolUse::new("wave", "{}"));
/// # let _ = (plain, rich);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Answer {
    blocks: Vec<Block>,
    usage: Option<TokenUsage>,
    replay: Option<JsonBuf>,
    cut: bool,
}

#[derive(Debug, Clone)]
struct Block {
    kind: Kind,
    /// With the time at which they came; the time of the telling, if `None`.
    pieces: Vec<(Option<u64>, JsonString)>,
    /// Where it is a tool call.
    tool: Option<ToolUse>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reasoning,
    Text,
    ToolCall,
}

impl Answer {
    /// With nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds thinking.
    #[must_use]
    pub fn thinking(mut self, thinking: impl Into<JsonString>) -> Self {
        self.push(Kind::Reasoning, None, thinking.into(), true);
        self
    }

    /// Adds a text block.
    #[must_use]
    pub fn text(mut self, text: impl Into<JsonString>) -> Self {
        self.push(Kind::Text, None, text.into(), true);
        self
    }

    /// Adds a piece of thinking that came at this time ([`Step::now`](super::Step::now)). Pieces in a row are one block.
    pub fn push_thinking(&mut self, time: u64, piece: impl Into<JsonString>) {
        self.push(Kind::Reasoning, Some(time), piece.into(), false);
    }

    /// Adds a piece of text that came at this time. Pieces in a row are one block.
    pub fn push_text(&mut self, time: u64, piece: impl Into<JsonString>) {
        self.push(Kind::Text, Some(time), piece.into(), false);
    }

    /// Asks for a tool to be run. The next step sees its result.
    #[must_use]
    pub fn tool(mut self, call: ToolUse) -> Self {
        self.blocks.push(Block { kind: Kind::ToolCall, pieces: Vec::new(), tool: Some(call) });
        self
    }

    /// Says that it was cut at the limit of tokens: the turn ends, with the reason `max-tokens`.
    #[must_use]
    pub fn cut_at_max_tokens(mut self) -> Self {
        self.cut = true;
        self
    }

    /// Says how many tokens it took.
    #[must_use]
    pub fn usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Adds what the provider wants back with the next call.
    #[must_use]
    pub fn replay_state(mut self, state: JsonBuf) -> Self {
        self.replay = Some(state);
        self
    }

    /// The tools that it asks for.
    pub fn tools(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| block.tool.as_ref())
    }

    pub(super) fn tools_mut(&mut self) -> impl Iterator<Item = &mut ToolUse> {
        self.blocks.iter_mut().filter_map(|block| block.tool.as_mut())
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    fn push(&mut self, kind: Kind, time: Option<u64>, piece: JsonString, whole: bool) {
        match self.blocks.last_mut() {
            Some(last) if last.kind == kind && !whole => last.pieces.push((time, piece)),
            _ => self.blocks.push(Block { kind, pieces: [(time, piece)].into(), tool: None }),
        }
    }

    /// The content of the message.
    pub(super) fn content(&self) -> Vec<JsonBuf> {
        self.blocks.iter().map(Block::whole).collect()
    }

    /// The records of the stream. `failure` says that it broke off, in its last block.
    pub(super) fn stream(&self, now: u64, failure: Option<&Failure>) -> Vec<JsonBuf> {
        let mut records = Vec::new();
        let mut time = self.blocks.iter().flat_map(|block| &block.pieces).find_map(|piece| piece.0).unwrap_or(now);
        for (index, block) in self.blocks.iter().enumerate() {
            records.push(chunk(time, &BlockStart { kind: "block-start", index, block_type: block.kind.name() }));
            block.records(index, &mut time, &mut records);
            if failure.is_none() || index + 1 < self.blocks.len() {
                records.push(chunk(time, &BlockEnd { kind: "block-end", index, block: block.whole() }));
            }
        }
        if let (Some(usage), None) = (self.usage, failure) {
            records.push(chunk(time, &Usage { kind: "usage", usage }));
        }
        let kind = match failure {
            Some(_) => "error",
            None if self.cut => "max-tokens",
            None if self.tools().next().is_some() => "tool-calls",
            None => "stop",
        };
        let reason = FinishReason { kind, failure };
        let replay_state = self.replay.as_ref().filter(|_| failure.is_none());
        records.push(chunk(time, &Finish { kind: "finish", reason, replay_state }));
        records
    }

    /// The data of `assistant/message`.
    pub(super) fn message(
        &self,
        (turn, step): (u64, u64),
        id: &str,
        route: &InitializeParams,
        now: u64,
    ) -> impl Serialize + use<> {
        let InitializeParams { provider, model, .. } = route;
        let replay_state = self.replay.as_ref();
        let source = Source { kind: "model", provider, model, replay_state };
        let message = Message { role: "assistant", content: self.content(), source, id };
        Told { turn, step, message: buf(&message), usage: self.usage, stream: self.stream(now, None) }
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

impl From<JsonString> for Answer {
    fn from(text: JsonString) -> Self {
        Self::new().text(text)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Text => "text",
            Self::ToolCall => "tool-call",
        }
    }
}

impl Block {
    fn whole(&self) -> JsonBuf {
        match &self.tool {
            Some(tool) => {
                buf(&ToolBlock { kind: "tool-call", id: &tool.id, name: &tool.name, arguments: &tool.arguments })
            }
            None if self.kind == Kind::Reasoning => buf(&Reasoning { kind: "reasoning", text: self.text() }),
            None => buf(&TextBlock::new(self.text())),
        }
    }

    /// The pieces in one. Joined as escaped text, because halves of a surrogate pair may stand in different pieces.
    fn text(&self) -> JsonString {
        let mut text = String::from("\"");
        for (_, piece) in &self.pieces {
            let piece = piece.as_json_str().get();
            text.push_str(piece.get(1..piece.len().saturating_sub(1)).unwrap_or_default());
        }
        text.push('"');
        Json::new(&text).ok().and_then(Json::as_str).map_or_else(|| "".into(), JsonStr::to_buf)
    }

    /// Adds its pieces; `time` moves on with them.
    fn records(&self, index: usize, time: &mut u64, records: &mut Vec<JsonBuf>) {
        if let Some(tool) = &self.tool {
            let (kind, id) = ("tool-call-chunks", &tool.id);
            let (time0, dt) = (*time, Vec::new());
            let first = ToolPieces { kind, time0, index, dt, id, name: Some(&tool.name), args: &["".into()] };
            records.push(buf(&first));
            let dt = tool.pieces.iter().skip(1).map(|_| 0).collect();
            records.push(buf(&ToolPieces { kind, time0, index, dt, id, name: None, args: &tool.pieces }));
            return;
        }
        let kind = if self.kind == Kind::Reasoning { "reasoning-chunks" } else { "text-chunks" };
        let times: Vec<u64> = self.pieces.iter().map(|piece| piece.0.unwrap_or(*time)).collect();
        let (time0, last) = (times.first().copied().unwrap_or(*time), times.last().copied().unwrap_or(*time));
        let dt = times.iter().zip(times.iter().skip(1)).map(|(one, next)| next.saturating_sub(*one)).collect();
        let texts = self.pieces.iter().map(|piece| &piece.1).collect();
        records.push(buf(&TextPieces { kind, time0, index, dt, texts }));
        *time = last;
    }
}

/// Why an answer failed, for the client to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    message: String,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

impl Failure {
    /// With a message for people, and a code such as `SERVER`, `RATE_LIMIT` or `UNKNOWN`.
    #[must_use]
    pub fn new(message: impl Into<String>, code: impl Into<String>) -> Self {
        Self { message: message.into(), code: code.into(), status: None }
    }

    /// Adds the HTTP status that led to it.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Why a step has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum TurnError {
    /// The turn ends with this failure.
    Failed {
        /// What went wrong.
        failure: Failure,
        /// What had come before it did.
        partial: Box<Answer>,
    },
    /// The session is being released.
    Released,
}

impl From<Failure> for TurnError {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, partial: Box::new(Answer::new()) }
    }
}

impl From<String> for TurnError {
    fn from(message: String) -> Self {
        Failure::new(message, "UNKNOWN").into()
    }
}

impl From<&str> for TurnError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { failure, .. } => f.write_str(&failure.message),
            Self::Released => f.write_str("the session is being released"),
        }
    }
}

impl std::error::Error for TurnError {}

/// Everything here has a JSON form.
pub(super) fn buf(value: &(impl Serialize + ?Sized)) -> JsonBuf {
    JsonBuf::from_serialize(value).unwrap_or_else(|_| Json::EMPTY_OBJECT.to_buf())
}

fn chunk(time: u64, chunk: &impl Serialize) -> JsonBuf {
    buf(&Chunk { kind: "chunk", time, chunk })
}

/// Payloads, their members in the order of the official runtime.
macro_rules! objects {
    ($($name:ident<$($lt:lifetime),*; $($param:ident),*> { $($(#[$meta:meta])* $field:ident: $ty:ty,)* })*) => {
        $(#[derive(Serialize)] struct $name<$($lt,)* $($param),*> { $($(#[$meta])* $field: $ty,)* })*
    };
}

objects! {
    Told<;> {
        turn: u64,
        step: u64,
        message: JsonBuf,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
        stream: Vec<JsonBuf>,
    }
    Message<'a;> {
        role: &'a str,
        content: Vec<JsonBuf>,
        source: Source<'a>,
        id: &'a str,
    }
    Source<'a;> {
        kind: &'a str,
        provider: &'a JsonString,
        model: &'a JsonString,
        #[serde(rename = "replayState", skip_serializing_if = "Option::is_none")]
        replay_state: Option<&'a JsonBuf>,
    }
    ToolBlock<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        id: &'a str,
        name: &'a str,
        arguments: &'a JsonString,
    }
    Reasoning<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        text: JsonString,
    }
    Chunk<'a; C> {
        #[serde(rename = "type")]
        kind: &'a str,
        time: u64,
        chunk: C,
    }
    BlockStart<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        index: usize,
        #[serde(rename = "blockType")]
        block_type: &'a str,
    }
    BlockEnd<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        index: usize,
        block: JsonBuf,
    }
    Usage<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        usage: TokenUsage,
    }
    Finish<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        reason: FinishReason<'a>,
        #[serde(rename = "replayState", skip_serializing_if = "Option::is_none")]
        replay_state: Option<&'a JsonBuf>,
    }
    FinishReason<'a;> {
        kind: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<&'a Failure>,
    }
    TextPieces<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        time0: u64,
        index: usize,
        dt: Vec<u64>,
        texts: Vec<&'a JsonString>,
    }
    ToolPieces<'a;> {
        #[serde(rename = "type")]
        kind: &'a str,
        time0: u64,
        index: usize,
        dt: Vec<u64>,
        id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        args: &'a [JsonString],
    }
}

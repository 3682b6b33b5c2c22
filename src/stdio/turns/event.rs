//! The data of the events around an answer, member by member as the official runtime writes them.

use serde::Serialize;
use std::vec::Vec;

use super::answer::Failure;
use crate::json::{Json, JsonBuf, JsonString};

/// `agent/inbox/spliced`.
#[derive(Serialize)]
pub(super) struct Spliced<'a> {
    target: &'a str,
    start: usize,
    #[serde(rename = "removedCount", skip_serializing_if = "Option::is_none")]
    removed_count: Option<usize>,
    inserted: Vec<Json<'a>>,
}

impl<'a> Spliced<'a> {
    pub(super) fn inserted(target: &'a str, start: usize, message: Json<'a>) -> Self {
        Self { target, start, removed_count: None, inserted: [message].into() }
    }

    pub(super) fn removed(target: &'a str, count: usize) -> Self {
        Self { target, start: 0, removed_count: Some(count), inserted: Vec::new() }
    }
}

#[derive(Serialize)]
pub(super) struct TurnStart {
    pub(super) turn: u64,
}

#[derive(Serialize)]
pub(super) struct TurnEnd<'a> {
    pub(super) turn: u64,
    pub(super) reason: &'a Reason,
}

/// Why a turn is over.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Reason {
    Completed,
    MaxTokens,
    Error { error: Failure },
    Aborted { reason: Disposed },
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Disposed {
    pub(super) kind: &'static str,
}

impl Reason {
    pub(super) const RELEASED: Self = Self::Aborted { reason: Disposed { kind: "disposed" } };
}

#[derive(Serialize)]
pub(super) struct StepId {
    pub(super) turn: u64,
    pub(super) step: u64,
}

#[derive(Serialize)]
pub(super) struct Attempt {
    pub(super) turn: u64,
    pub(super) step: u64,
    pub(super) stream: Vec<JsonBuf>,
}

#[derive(Serialize)]
pub(super) struct ToolCall<'a> {
    pub(super) turn: u64,
    pub(super) step: u64,
    #[serde(rename = "callId")]
    pub(super) call_id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a JsonString,
}

#[derive(Serialize)]
pub(super) struct ToolResult<'a> {
    pub(super) turn: u64,
    pub(super) step: u64,
    pub(super) message: ToolMessage<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ToolFailure<'a>>,
}

#[derive(Serialize)]
pub(super) struct ToolMessage<'a> {
    pub(super) role: &'a str,
    pub(super) source: ToolSource<'a>,
    #[serde(rename = "toolCallId")]
    pub(super) tool_call_id: &'a str,
    pub(super) content: &'a JsonBuf,
    #[serde(rename = "isError")]
    pub(super) is_error: bool,
    pub(super) id: &'a str,
}

#[derive(Serialize)]
pub(super) struct ToolSource<'a> {
    pub(super) kind: &'a str,
    #[serde(rename = "callId")]
    pub(super) call_id: &'a str,
}

#[derive(Serialize)]
pub(super) struct ToolFailure<'a> {
    pub(super) name: &'a str,
    pub(super) code: &'a str,
}

/// `working-directory/change`.
#[derive(Serialize)]
pub(super) struct DirectoryChange<'a> {
    pub(super) cwd: &'a str,
}

/// The source of a note that has no more to say of itself.
#[derive(Serialize)]
pub(super) struct PlainSource<'a> {
    pub(super) kind: &'a str,
}

/// The source of a note about the end of a sub-agent.
#[derive(Serialize)]
pub(super) struct Settled<'a> {
    pub(super) kind: &'a str,
    pub(super) form: &'a str,
    pub(super) summary: &'a str,
    #[serde(rename = "senderSessionId")]
    pub(super) sender_session_id: &'a JsonString,
}

/// `subagent/catalog`.
#[derive(Serialize)]
pub(super) struct Catalog<'a> {
    pub(super) version: u64,
    #[serde(rename = "childId")]
    pub(super) child_id: &'a JsonString,
    #[serde(rename = "childCreatedAt")]
    pub(super) child_created_at: u64,
    pub(super) mode: &'a str,
    pub(super) label: &'a str,
}

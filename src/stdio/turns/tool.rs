//! Tools: what an answer asks for ([`ToolUse`]), and what comes of it.

use std::borrow::ToOwned;
use std::string::String;
use std::vec::Vec;

use super::answer::buf;
use super::message::TextBlock;
use crate::json::{Json, JsonBuf, JsonString};

/// A tool that an answer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// Given when the answer is told, unless it has one.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: JsonString,
    /// The arguments as they came.
    pub(super) pieces: Vec<JsonString>,
}

impl ToolUse {
    /// With the name of the tool, and its arguments as a JSON text.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: impl Into<JsonString>) -> Self {
        let arguments = arguments.into();
        Self { id: String::new(), name: name.into(), pieces: [arguments.clone()].into(), arguments }
    }

    /// With an id of one's own; it has to differ from all others in the session.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Says in which pieces the arguments came.
    #[must_use]
    pub fn in_pieces(mut self, pieces: Vec<JsonString>) -> Self {
        self.pieces = pieces;
        self
    }

    /// The id of the call; empty before the answer was told, unless it was set.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments; meant to be a JSON object.
    #[must_use]
    pub fn arguments(&self) -> &JsonString {
        &self.arguments
    }

    /// One of the arguments.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<JsonBuf> {
        let arguments = self.arguments.as_json_str().to_string_lossy();
        Json::new(&arguments).ok()?.member(name).map(Json::to_buf)
    }
}

/// What a tool gives back: content blocks.
#[derive(Debug, Clone)]
pub struct ToolOutput(pub(super) JsonBuf);

impl ToolOutput {
    /// Content blocks, an array.
    #[must_use]
    pub fn blocks(blocks: JsonBuf) -> Self {
        Self(blocks)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self(buf(&[TextBlock::new(text.into())]))
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// Why a tool gives nothing back. The turn goes on: the agent gets to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub(super) text: String,
    /// The name and the code of the kind of error, if it is one that has them.
    pub(super) kind: Option<(String, String)>,
}

impl ToolError {
    /// With what the agent gets to read, and the name and the code of the kind of error.
    #[must_use]
    pub fn new(text: impl Into<String>, name: impl Into<String>, code: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Some((name.into(), code.into())) }
    }

    /// There is no such tool: `UNKNOWN_TOOL`.
    #[must_use]
    pub fn unknown(call: &ToolUse) -> Self {
        let text = std::format!("Error: unknown tool {}", JsonString::from(&call.name).as_json_str().get());
        Self::new(text, "ToolNotFoundError", "UNKNOWN_TOOL")
    }

    /// The arguments are not what the tool takes: `INVALID_ARGS`.
    #[must_use]
    pub fn bad_arguments() -> Self {
        Self::new("Error: invalid arguments", "ToolArgsError", "INVALID_ARGS")
    }

    pub(super) fn aborted() -> Self {
        Self::new("Error: aborted", "AbortError", "ABORTED")
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self { text, kind: None }
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

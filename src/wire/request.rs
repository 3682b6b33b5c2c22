//! The methods that a client calls: their names, params and results.

use alloc::vec::Vec;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{ContentBlock, Decode, DecodeError, Expected, Problem};
use crate::json::{Json, JsonString};

/// A method of the protocol: ties the name to what goes in and what comes out.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// What the client sends.
    type Params: Serialize + for<'a> Decode<'a>;
    /// What the runtime answers.
    type Result: Serialize + for<'a> Decode<'a>;
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $wire:literal: $params:ty => $result:ty,)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name;

            impl Method for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Result = $result;
            }
        )*
    };
}

methods! {
    /// Sets the route for new sessions, and answers when the runtime is ready. May be repeated.
    Initialize = "initialize": InitializeParams => InitializeResult,
    /// Puts a message into the inbox of a session, which it creates if need be.
    Prompt = "session/prompt": PromptParams => PromptResult,
    /// Restores a stored session. From 0.2.1.
    Resume = "session/resume": SessionParams => Empty,
    /// Answers when the session is idle and its sub-agents have finished. From 0.2.1.
    Wait = "session/wait": SessionParams => Empty,
    /// The directory that a session works in. From 0.2.1.
    WorkingDirectoryGet = "session/working-directory/get": SessionParams => WorkingDirectoryResult,
    /// Moves a session to another directory. From 0.2.1.
    WorkingDirectorySet = "session/working-directory/set": WorkingDirectorySetParams => WorkingDirectoryResult,
    /// Ends all sessions, then the runtime.
    Shutdown = "shutdown": Empty => Empty,
}

payload! {
    /// Params of [`Initialize`].
    #[derive(Eq)]
    pub struct InitializeParams {
        /// Where new sessions work.
        cwd: JsonString = "cwd",
        /// The model provider, such as `deepseek-official`.
        provider: JsonString = "provider",
        /// The model.
        model: JsonString = "model",
        /// Such as `low`, `high`, `max`. From 0.2.1.
        reasoning_effort: Option<JsonString> = "reasoningEffort",
        /// Limit of the tokens that one model call may write; a positive safe integer.
        max_tokens: Option<u64> = "maxTokens",
    }
}

impl InitializeParams {
    /// Params with nothing optional in them.
    pub fn new(cwd: impl Into<JsonString>, provider: impl Into<JsonString>, model: impl Into<JsonString>) -> Self {
        Self {
            cwd: cwd.into(),
            provider: provider.into(),
            model: model.into(),
            reasoning_effort: None,
            max_tokens: None,
        }
    }
}

payload! {
    /// Result of [`Initialize`]. As for the official clients, nothing in it is required.
    #[derive(Default, Eq)]
    pub struct InitializeResult {
        /// Who serves.
        server_info: Option<ServerInfo> = "serverInfo",
    }
}

impl InitializeResult {
    /// Of a runtime that says who it is.
    #[must_use]
    pub fn new(server_info: ServerInfo) -> Self {
        Self { server_info: Some(server_info) }
    }
}

payload! {
    /// Who serves. It says nothing about the revision of the protocol.
    #[derive(Default, Eq)]
    pub struct ServerInfo {
        /// Name of the runtime.
        name: Option<JsonString> = "name",
        /// A constant of the runtime, not its product version.
        version: Option<JsonString> = "version",
    }
}

impl ServerInfo {
    /// A runtime of this name and version.
    pub fn new(name: impl Into<JsonString>, version: impl Into<JsonString>) -> Self {
        Self { name: Some(name.into()), version: Some(version.into()) }
    }
}

payload! {
    /// Params of [`Prompt`].
    #[derive(Eq)]
    pub struct PromptParams {
        /// The session; one that is not known is created.
        session_id: JsonString = "sessionId",
        /// The message.
        content_blocks: Vec<ContentBlock> = "contentBlocks",
    }
}

impl PromptParams {
    /// A message of any content blocks.
    pub fn new(session_id: impl Into<JsonString>, content_blocks: Vec<ContentBlock>) -> Self {
        Self { session_id: session_id.into(), content_blocks }
    }

    /// A message of one text.
    pub fn text(session_id: impl Into<JsonString>, text: impl Into<JsonString>) -> Self {
        Self { session_id: session_id.into(), content_blocks: [ContentBlock::text(text)].into() }
    }
}

/// Result of [`Prompt`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptResult {
    /// The message is in the inbox: `{"messageId": …}`, from 0.1.1.
    Enqueued {
        /// The `id` of the message in the events.
        message_id: JsonString,
    },
    /// The turn is over: `{"accepted": true}`, before 0.1.1.
    Accepted,
}

impl PromptResult {
    /// The id that the message has in the events, where the runtime says so.
    #[must_use]
    pub const fn message_id(&self) -> Option<&JsonString> {
        match self {
            Self::Enqueued { message_id } => Some(message_id),
            Self::Accepted => None,
        }
    }
}

impl Decode<'_> for PromptResult {
    fn decode(json: Json<'_>) -> Result<Self, DecodeError> {
        const OF: &str = "PromptResult";
        if json.kind() != crate::json::Kind::Object {
            return Err(DecodeError::unexpected(Expected::Object, json).within(OF, ""));
        }
        read_members!(json.members(), OF, message_id: Option<JsonString> = "messageId", accepted: Option<Json<'_>> = "accepted");
        match (message_id, accepted) {
            (Some(message_id), _) => Ok(Self::Enqueued { message_id }),
            (None, Some(accepted)) => match accepted.as_bool() {
                Some(true) => Ok(Self::Accepted),
                _ => Err(DecodeError::unexpected(Expected::True, accepted).within(OF, "accepted")),
            },
            (None, None) => Err(DecodeError::new(Problem::Missing).within(OF, "messageId")),
        }
    }
}

impl Serialize for PromptResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Enqueued { message_id } => map.serialize_entry("messageId", message_id)?,
            Self::Accepted => map.serialize_entry("accepted", &true)?,
        }
        map.end()
    }
}

payload! {
    /// Params that name a session and nothing more.
    #[derive(Eq)]
    pub struct SessionParams {
        /// The session.
        session_id: JsonString = "sessionId",
    }
}

impl SessionParams {
    /// Names a session.
    pub fn new(session_id: impl Into<JsonString>) -> Self {
        Self { session_id: session_id.into() }
    }
}

payload! {
    /// Params of [`WorkingDirectorySet`].
    #[derive(Eq)]
    pub struct WorkingDirectorySetParams {
        /// The session.
        session_id: JsonString = "sessionId",
        /// Where to; relative to where it is.
        path: JsonString = "path",
    }
}

impl WorkingDirectorySetParams {
    /// Of a session, to a path.
    pub fn new(session_id: impl Into<JsonString>, path: impl Into<JsonString>) -> Self {
        Self { session_id: session_id.into(), path: path.into() }
    }
}

payload! {
    /// Result of [`WorkingDirectoryGet`] and [`WorkingDirectorySet`].
    #[derive(Eq)]
    pub struct WorkingDirectoryResult {
        /// The absolute path.
        cwd: JsonString = "cwd",
    }
}

impl WorkingDirectoryResult {
    /// Of a session that works there.
    pub fn new(cwd: impl Into<JsonString>) -> Self {
        Self { cwd: cwd.into() }
    }
}

/// Params or a result with nothing to say: written `{}`; nothing is read, so anything will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Empty;

impl Decode<'_> for Empty {
    fn decode(_: Json<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn decode_member(_: Option<Json<'_>>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

impl Serialize for Empty {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_map(Some(0))?.end()
    }
}

//! The requests, as the official runtime reads them: what is checked, in which order, and in which words.

use super::Refusal;
use crate::json::{Json, JsonBuf, JsonString, Kind};
use crate::wire::InitializeParams;

/// `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Params of `initialize`. The model route is the host's to judge; all else is judged here.
pub(super) fn initialize(params: Json<'_>) -> Result<InitializeParams, Refusal> {
    let reasoning_effort = match params.member("reasoningEffort") {
        None => None,
        Some(effort) => match effort.as_str() {
            Some(effort) if effort != "" => Some(effort.to_buf()),
            _ => return Err("initialize reasoningEffort must be a non-empty string".into()),
        },
    };
    let max_tokens = match params.member("maxTokens") {
        None => None,
        Some(max) => match max.as_u64() {
            Some(max @ 1..=MAX_SAFE_INTEGER) => Some(max),
            _ => return Err("initialize maxTokens must be a positive safe integer".into()),
        },
    };
    let cwd = string(params, "cwd").ok_or_else(|| Refusal::new("initialize requires a cwd string"))?;
    let (provider, model) = (in_words(params.member("provider")), in_words(params.member("model")));
    Ok(InitializeParams { cwd, provider, model, reasoning_effort, max_tokens })
}

/// The session of `session/prompt`.
pub(super) fn prompt_session(params: Json<'_>) -> Result<JsonString, Refusal> {
    string(params, "sessionId").ok_or_else(|| "session/prompt requires a sessionId string".into())
}

/// The content blocks of `session/prompt`. The official runtime looks at them when the session is there.
pub(super) fn content_blocks(params: Json<'_>) -> Result<JsonBuf, Refusal> {
    match params.member("contentBlocks") {
        Some(blocks) if blocks.kind() == Kind::Array => {
            if blocks.elements().any(Json::is_null) {
                return Err("session/prompt requires content blocks that are not null".into());
            }
            Ok(blocks.to_buf())
        }
        _ => Err("session/prompt requires a contentBlocks array".into()),
    }
}

/// The session of `session/resume`.
pub(super) fn resume_session(params: Json<'_>) -> Result<JsonString, Refusal> {
    non_empty_session(params).ok_or_else(|| "session/resume requires a non-empty sessionId string".into())
}

/// The session of `session/wait`.
pub(super) fn wait_session(params: Json<'_>) -> Result<JsonString, Refusal> {
    string(params, "sessionId").ok_or_else(|| "session/wait requires a sessionId string".into())
}

/// The session of the working-directory methods.
pub(super) fn directory_session(params: Json<'_>) -> Result<JsonString, Refusal> {
    non_empty_session(params).ok_or_else(|| "working-directory requests require a non-empty sessionId".into())
}

/// The path of `session/working-directory/set`.
pub(super) fn directory_path(params: Json<'_>) -> Result<JsonString, Refusal> {
    string(params, "path").ok_or_else(|| "working-directory set requires a path string".into())
}

fn string(params: Json<'_>, name: &str) -> Option<JsonString> {
    params.member(name).and_then(Json::as_str).map(|text| text.to_buf())
}

fn non_empty_session(params: Json<'_>) -> Option<JsonString> {
    string(params, "sessionId").filter(|session| session.as_json_str() != "")
}

/// The value as JavaScript puts it into a text.
fn in_words(value: Option<Json<'_>>) -> JsonString {
    match value {
        None => "undefined".into(),
        Some(value) => value.as_str().map_or_else(|| value.get().into(), |text| text.to_buf()),
    }
}

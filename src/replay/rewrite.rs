//! Recorded lines with the ids of another client.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use crate::json::{self, Json, JsonStr, JsonString, Token, TokenKind, Tokens};

/// A line of the runtime for the client that is here: the id of an answer, and all ids of sessions. A line that is not
/// JSON stays as it is.
pub(super) fn for_client(line: Vec<u8>, id: Option<&str>, sessions: &BTreeMap<JsonString, JsonString>) -> Vec<u8> {
    let Ok(text) = core::str::from_utf8(&line) else { return line };
    let trimmed = json::trim(text);
    let Ok(json) = Json::new(trimmed) else { return line };
    let start = trimmed.as_ptr().addr() - text.as_ptr().addr();
    let mut out = Vec::with_capacity(line.len());
    let mut copied = 0;
    for token in Tokens::new(json) {
        let new = if is_id(&token) {
            id
        } else if is_session(&token) {
            sessions.get(&string(&token)).map(|session| session.as_json_str().get())
        } else {
            None
        };
        let Some(new) = new else { continue };
        let quote = usize::from(token.kind == TokenKind::String);
        out.extend_from_slice(line.get(copied..start + token.range.start - quote).unwrap_or_default());
        out.extend_from_slice(new.as_bytes());
        copied = start + token.range.end + quote;
    }
    out.extend_from_slice(line.get(copied..).unwrap_or_default());
    out
}

/// Whether two params say the same, token by token, however their strings are written, where sessions may have other ids: each recorded one always the
/// same, and no two of them one.
pub(super) fn same(recorded: &str, heard: &str, sessions: &BTreeMap<JsonString, JsonString>) -> bool {
    let (Ok(recorded), Ok(heard)) = (Json::new(recorded), Json::new(heard)) else { return recorded == heard };
    let (mut recorded, mut heard) = (Tokens::new(recorded), Tokens::new(heard));
    loop {
        match (recorded.next(), heard.next()) {
            (None, None) => return true,
            (Some(recorded), Some(heard)) if recorded.kind == heard.kind && recorded.depth == heard.depth => {
                let same = if is_session(&recorded) {
                    let heard = string(&heard);
                    match sessions.get(&string(&recorded)) {
                        Some(session) => *session == heard,
                        None => sessions.values().all(|session| *session != heard),
                    }
                } else {
                    let strings = recorded.kind == TokenKind::String;
                    recorded.text == heard.text || strings && string(&recorded) == string(&heard)
                };
                if !same || recorded.member != heard.member {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// A string by its value.
fn string(token: &Token<'_>) -> JsonString {
    JsonStr::from_proved(&format!("\"{}\"", token.text)).to_buf()
}

/// The id of the frame.
fn is_id(token: &Token<'_>) -> bool {
    token.depth == 1 && token.member == Some("id") && token.kind != TokenKind::Name
}

fn is_session(token: &Token<'_>) -> bool {
    let named = |member: &str| member == "sessionId" || member.ends_with("SessionId");
    token.kind == TokenKind::String && token.member.is_some_and(named)
}

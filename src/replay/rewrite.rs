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

/// Whether recorded params say the same as what was heard, token by token, however strings are written. `written` is what
/// the recorder would have made of it: the same, or the same redacted. Sessions may have other ids: each recorded one
/// always the same, and no two of them one.
pub(super) fn same(recorded: &str, heard: &str, written: &str, sessions: &BTreeMap<JsonString, JsonString>) -> bool {
    let (Ok(old), Ok(new), Ok(written)) = (Json::new(recorded), Json::new(heard), Json::new(written)) else {
        return recorded == written;
    };
    let (mut old, mut new, mut written) = (Tokens::new(old), Tokens::new(new), Tokens::new(written));
    loop {
        match (old.next(), new.next(), written.next()) {
            (None, None, None) => return true,
            (Some(old), Some(new), Some(written)) if old.kind == written.kind && old.depth == written.depth => {
                let same = if is_session(&old) {
                    let new = string(&new);
                    match sessions.get(&string(&old)) {
                        Some(session) => *session == new,
                        None => sessions.values().all(|session| *session != new),
                    }
                } else {
                    let strings = old.kind == TokenKind::String;
                    let blank =
                        |token: &Token<'_>| !token.text.is_empty() && token.text.bytes().all(|byte| byte == b'*');
                    old.text == written.text
                        || strings && string(&old) == string(&written)
                        || strings && old.member == Some("cwd") && blank(&old) && blank(&written)
                };
                if !same || old.member != written.member {
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

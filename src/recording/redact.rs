//! Recordings that can be shown: what people and models said is blanked, byte for byte.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use super::Direction;
use crate::json::{self, Json, JsonStr, Token, TokenKind, Tokens};

/// What stands in the place of a blanked byte.
const BLANK: u8 = b'*';

/// Members whose strings are names that the protocol or the runtime has made. The strings of all others are blanked.
const KEPT: [&str; 38] = [
    "agentId",
    "blockType",
    "callId",
    "cause",
    "childId",
    "childSessionId",
    "code",
    "form",
    "goalId",
    "id",
    "jobId",
    "jsonrpc",
    "kind",
    "mediaType",
    "messageId",
    "method",
    "mimeType",
    "mode",
    "model",
    "name",
    "operation",
    "parentSessionId",
    "phase",
    "policy",
    "preset",
    "provider",
    "reasoningEffort",
    "requestId",
    "retryId",
    "role",
    "rootCallId",
    "senderSessionId",
    "sessionId",
    "status",
    "stopReason",
    "surfaceOp",
    "target",
    "type",
];

/// Members in which names and numbers say as much as strings: what tools are given, and what they give back.
const OPAQUE: [&str; 7] = ["args", "arguments", "details", "input", "metadata", "output", "structuredContent"];

/// A name that is longer, in bytes, is none.
const LONGEST_NAME: usize = 200;

/// Blanks, in one line of a recording, what people and models said and thought, what tools were given and gave back,
/// paths, descriptions, the runtime's stderr, and what looks like a key. The line keeps its length; a frame stays a frame
/// with the same members, ids, methods, types and numbers, so that tools which look at these see the same.
///
/// It keeps what it knows, and blanks the rest: a string stays only as the value of a member such as `sessionId` or
/// `type`. Member names stay, except inside the arguments of tools.
///
/// ```
/// use dsh_wire::recording::{Direction, redact};
///
/// let mut line = br#"{"id":1,"method":"m","params":{"type":"text","text":"hello"}}"#.to_vec();
/// redact(Direction::ClientToServer, &mut line);
/// assert_eq!(line, br#"{"id":1,"method":"m","params":{"type":"text","text":"*****"}}"#);
/// ```
pub fn redact(direction: Direction, line: &mut [u8]) {
    blank_broken(line);
    let text = core::str::from_utf8(line).unwrap_or_default();
    let trimmed = json::trim(text);
    let start = trimmed.as_ptr().addr() - text.as_ptr().addr();
    match Json::new(trimmed) {
        Ok(json) if direction != Direction::Stderr => {
            for (blank, range) in secrets(json) {
                let range = start + range.start..start + range.end;
                line.get_mut(range).unwrap_or_default().iter_mut().for_each(|byte| *byte = blank(*byte));
            }
        }
        // Punctuation shows what kind of line it is.
        _ => line
            .iter_mut()
            .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
            .for_each(|byte| *byte = BLANK),
    }
}

/// What is to stand in the place of a byte.
type Blank = fn(u8) -> u8;

fn secrets(json: Json<'_>) -> Vec<(Blank, Range<usize>)> {
    let mut secrets: Vec<(Blank, Range<usize>)> = Vec::new();
    // The depth of the member that is opaque.
    let mut opaque = None;
    for Token { kind, range, text, member, depth } in Tokens::new(json) {
        if opaque.is_some_and(|of| depth < of || kind == TokenKind::Name && depth == of) {
            opaque = None;
        }
        let blank: Option<Blank> = match kind {
            TokenKind::Name if opaque.is_some() || looks_like_key(text) => Some(|_| BLANK),
            TokenKind::Name => {
                opaque = OPAQUE.contains(&&*meant(text)).then_some(depth);
                None
            }
            TokenKind::String => {
                let known =
                    opaque.is_none() && member.is_some_and(|member| KEPT.binary_search(&&*meant(member)).is_ok());
                let kept = known && text.len() <= LONGEST_NAME && !looks_like_key(text);
                (!kept).then_some(|_| BLANK)
            }
            // Still a number.
            TokenKind::Number if opaque.is_some() => Some(|byte| if byte.is_ascii_digit() { b'1' } else { byte }),
            TokenKind::Number | TokenKind::Word => None,
        };
        secrets.extend(blank.map(|blank| (blank, range)));
    }
    secrets
}

/// A name without its escapes.
fn meant(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    let quoted = format!("\"{written}\"");
    Cow::Owned(JsonStr::from_proved(&quoted).to_string_lossy().into_owned())
}

/// Blanks bytes that are not UTF-8.
fn blank_broken(line: &mut [u8]) {
    let mut rest = line;
    while let Err(error) = core::str::from_utf8(rest) {
        let from = error.valid_up_to();
        let until = error.error_len().map_or(rest.len(), |len| from + len);
        rest = rest.split_at_mut(from).1;
        let (broken, behind) = rest.split_at_mut(until - from);
        broken.fill(BLANK);
        rest = behind;
    }
}

/// Whether a text holds what services give out as keys: a known beginning with enough behind it, or a long word of small
/// and capital letters and digits. Ids of this protocol are hexadecimal.
fn looks_like_key(text: &str) -> bool {
    const BEGINNINGS: [&str; 10] =
        ["sk-", "pk-", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "AKIA", "eyJ", "glpat-"];
    let word = |c: char| c.is_ascii_alphanumeric() || "_-+/=.".contains(c);
    text.split(|c| !word(c)).any(|word| {
        let begins =
            BEGINNINGS.iter().any(|beginning| word.len() >= beginning.len() + 8 && word.starts_with(beginning));
        let any = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
        let mixed = any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase) && any(u8::is_ascii_digit);
        begins || word.len() >= 20 && mixed
    })
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;

    #[track_caller]
    fn check(direction: Direction, line: &[u8], expected: &str) {
        let mut redacted = line.to_owned();
        redact(direction, &mut redacted);
        assert_eq!(core::str::from_utf8(&redacted), Ok(expected));
        assert_eq!(redacted.len(), line.len());
    }

    #[test]
    fn members_that_are_kept_are_sorted() {
        assert!(KEPT.is_sorted());
    }

    #[test]
    fn names_stay_and_texts_go() {
        let ours = Direction::ClientToServer;
        check(
            ours,
            br#"{"id":"a","params":{"text":"a\nb","seq":12,"x":[true,"y"]}}"#,
            r#"{"id":"a","params":{"text":"****","seq":12,"x":[true,"*"]}}"#,
        );
        check(
            ours,
            br#"{"arguments":{"path":"p","n":-12.5e3,"type":{"id":"x"}},"id":7,"input":"{}","type":"t"}"#,
            r#"{"arguments":{"****":"*","*":-11.1e1,"****":{"**":"*"}},"id":7,"input":"**","type":"t"}"#,
        );
        check(ours, br#"[{"input":1},"x",{"type":"t"}]"#, r#"[{"input":1},"*",{"type":"t"}]"#);
        check(ours, br#"{"\u0061rgs":{"type":"x"},"type":"t"}"#, r#"{"\u0061rgs":{"****":"*"},"type":"t"}"#);
        check(ours, br#"{"\u0069d":"x","te\u0078t":"t"}"#, r#"{"\u0069d":"x","te\u0078t":"*"}"#);
    }

    #[test]
    fn keys_go_wherever_they_stand() {
        let ours = Direction::ServerToClient;
        check(ours, br#"{"id":"sk-0123456789abcdef"}"#, r#"{"id":"*******************"}"#);
        check(ours, br#"{"sk-0123456789abcdef":1}"#, r#"{"*******************":1}"#);
        check(ours, br#"{"model":"x AbCdEfGhIjKlMnOpQr0123"}"#, r#"{"model":"************************"}"#);
        let uuid =
            r#"{"id":"req_0123456789abcdef0123456789abcdef","sessionId":"3AEA129F-504F-4F87-8F78-D23C4C420F65"}"#;
        check(ours, uuid.as_bytes(), uuid);
    }

    #[test]
    fn what_is_no_frame_keeps_its_shape() {
        let ours = Direction::ServerToClient;
        check(ours, br#"{"id":1,"text":"half"#, r#"{"**":*,"****":"****"#);
        check(ours, b"\xef\xbb\xbf{\"text\":\"a\xff\xfeb\"} ", "\u{feff}{\"text\":\"****\"} ");
        check(ours, "naïve, sk-1".as_bytes(), "******, **-*");
        check(Direction::Stderr, br#"{"id":"s"}"#, r#"{"**":"*"}"#);
    }
}

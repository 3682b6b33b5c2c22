//! Recordings that can be shown: what people and models said is blanked, byte for byte.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use super::Direction;
use crate::json::{self, Json, JsonStr, Token, TokenKind, Tokens};

/// What stands in the place of a blanked byte.
const BLANK: u8 = b'*';

/// Members whose strings are ids: they tell what belongs together, whatever they look like.
const IDS: [&str; 15] = [
    "agentId",
    "callId",
    "childId",
    "childSessionId",
    "goalId",
    "id",
    "jobId",
    "messageId",
    "parentSessionId",
    "requestId",
    "retryId",
    "rootCallId",
    "senderSessionId",
    "sessionId",
    "toolCallId",
];

/// Members whose strings are names that the protocol or the runtime has made, where they look like names.
const NAMES: [&str; 24] = [
    "blockType",
    "cause",
    "code",
    "form",
    "jsonrpc",
    "kind",
    "mediaType",
    "method",
    "mimeType",
    "mode",
    "model",
    "name",
    "operation",
    "phase",
    "policy",
    "preset",
    "provider",
    "reasoningEffort",
    "role",
    "status",
    "stopReason",
    "surfaceOp",
    "target",
    "type",
];

/// The members among them whose names are made of parts.
const PATHS: [&str; 6] = ["kind", "mediaType", "method", "mimeType", "model", "type"];

/// Members in which names and numbers say as much as strings: what tools are given, and what they give back.
const OPAQUE: [&str; 7] = ["args", "arguments", "details", "input", "metadata", "output", "structuredContent"];

/// Members in which numbers may say as much as strings: what people and models say.
const CONTENT: [&str; 2] = ["content", "contentBlocks"];

/// A name that is longer, in bytes, is none.
const LONGEST_NAME: usize = 64;

/// An id at the top that is longer, in bytes, says too much.
const LONGEST_ID: usize = 200;

/// Blanks, in one line of a recording, what people and models said and thought, what tools were given and gave back,
/// paths, descriptions, the runtime's stderr, and what looks like a key. The line keeps its length; a frame stays a frame
/// with the same members, methods, types and numbers, so that tools which look at these see the same.
///
/// It keeps what it knows, and blanks the rest: a string stays only as the value of a member such as `sessionId` or
/// `type`, and only if it looks like a name: no spaces, no path, no address. The names of members stay where they are made
/// of letters, digits, `_`, `-` and `$`, except inside the arguments of tools; numbers stay, except there and inside
/// contents. An id or a method that does not look like a name, or does like a key, becomes letters that are always the
/// same for the same one, so that answers, calls and sessions still find together. They are no secret from somebody who
/// has a guess at it.
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
                blank.fill(line.get_mut(start + range.start..start + range.end).unwrap_or_default());
            }
        }
        // Nothing but white space, as JavaScript has it.
        Err(_) if trimmed.is_empty() => {}
        // Punctuation shows what kind of line it is.
        _ => line
            .iter_mut()
            .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
            .for_each(|byte| *byte = BLANK),
    }
}

/// What is to stand in the place of a text.
#[derive(Clone, Copy)]
enum Blank {
    Stars,
    /// Still a number.
    Ones,
    /// Letters made from the text: others for each.
    Pseudonym,
}

impl Blank {
    fn fill(self, text: &mut [u8]) {
        match self {
            Self::Stars => text.fill(BLANK),
            Self::Ones => text.iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = b'1'),
            Self::Pseudonym => {
                // FNV-1a, and then numbers from that by a generator of 64 bits (xorshift).
                let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
                let mut state = text.iter().fold(0xcbf2_9ce4_8422_2325, hash).max(1);
                for byte in text {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    *byte = b'a' + ((state >> 32) % 26) as u8;
                }
            }
        }
    }
}

fn secrets(json: Json<'_>) -> Vec<(Blank, Range<usize>)> {
    let mut secrets = Vec::new();
    // What the depth of the member is whose value this is a part of.
    let (mut opaque, mut content) = (None, None);
    for Token { kind, range, text, member, depth } in Tokens::new(json) {
        for of in [&mut opaque, &mut content] {
            of.take_if(|of| depth < *of || kind == TokenKind::Name && depth == *of);
        }
        let blank = match kind {
            TokenKind::Name if opaque.is_some() => Some(Blank::Stars),
            TokenKind::Name => {
                let name = meant(text);
                opaque = OPAQUE.contains(&&*name).then_some(depth);
                content = content.or(CONTENT.contains(&&*name).then_some(depth));
                (!looks_like_member(&name) || looks_like_key(&name)).then_some(Blank::Stars)
            }
            TokenKind::String if opaque.is_some() => Some(Blank::Stars),
            TokenKind::String => {
                member.map_or(Some(Blank::Stars), |member| blank_of(&meant(member), &meant(text), depth == 1))
            }
            TokenKind::Number if opaque.is_some() || content.is_some() => Some(Blank::Ones),
            TokenKind::Number | TokenKind::Word => None,
        };
        secrets.extend(blank.map(|blank| (blank, range)));
    }
    secrets
}

/// What is to stand in the place of a string that is the value of a member.
fn blank_of(member: &str, text: &str, at_top: bool) -> Option<Blank> {
    let key = looks_like_key(text);
    if IDS.binary_search(&member).is_ok() {
        let kept = looks_like_name(text) || at_top && text.len() <= LONGEST_ID;
        return (key || !kept).then_some(Blank::Pseudonym);
    }
    // Another method is another method, whatever it is called.
    if at_top && member == "method" {
        return (key || !looks_like_name(text)).then_some(Blank::Pseudonym);
    }
    let name = NAMES.binary_search(&member).is_ok()
        && looks_like_name(text)
        && (PATHS.contains(&member) || !text.contains('/'));
    (key || !name).then_some(Blank::Stars)
}

/// Whether a text is made as the names of members are.
fn looks_like_member(text: &str) -> bool {
    text.len() <= LONGEST_NAME && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c))
}

/// Whether a text is made as the protocol makes names: words, and parts of them between marks.
fn looks_like_name(text: &str) -> bool {
    let mark = |c: char| c.is_ascii_alphanumeric() || "_-.:/+".contains(c);
    text.len() <= LONGEST_NAME
        && text.chars().all(mark)
        && !text.starts_with(['/', '.'])
        && !["//", "..", ":/"].iter().any(|mark| text.contains(mark))
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
        // Behind a mark, a key may begin in the middle of a word.
        let starts = word.match_indices(|c: char| !c.is_ascii_alphanumeric()).map(|(mark, _)| mark + 1).chain([0]);
        let begins = starts.filter_map(|start| word.get(start..)).any(|rest| {
            BEGINNINGS.iter().any(|beginning| rest.len() >= beginning.len() + 8 && rest.starts_with(beginning))
        });
        let any = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
        let mixed = any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase) && any(u8::is_ascii_digit);
        begins || word.len() >= 20 && mixed
    })
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::String;

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
        assert!(IDS.is_sorted() && NAMES.is_sorted());
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
        check(ours, br#"{"text":"sk-0123456789abcdef"}"#, r#"{"text":"*******************"}"#);
        // In the middle of what would be a name.
        check(ours, br#"{"model":"x/sk-01234567"}"#, r#"{"model":"*************"}"#);
        check(ours, br#"{"sk-0123456789abcdef":1}"#, r#"{"*******************":1}"#);
        check(ours, br#"{"model":"x AbCdEfGhIjKlMnOpQr0123"}"#, r#"{"model":"************************"}"#);
        let uuid =
            r#"{"id":"req_0123456789abcdef0123456789abcdef","sessionId":"3AEA129F-504F-4F87-8F78-D23C4C420F65"}"#;
        check(ours, uuid.as_bytes(), uuid);
    }

    fn redacted(line: &str) -> String {
        let mut line = line.as_bytes().to_owned();
        redact(Direction::ServerToClient, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn ids_that_say_too_much_stay_different() {
        let ids = |a: &str, b: &str| redacted(&format!(r#"{{"params":{{"callId":"{a}","toolCallId":"{b}"}}}}"#));
        let values = |line: &str| line.split('"').skip(5).step_by(4).take(2).map(String::from).collect::<Vec<_>>();
        for (one, other) in [
            ("toolu_01A09q90AbCdEfGhIjKl", "toolu_01A09q90AbCdEfGhIjKm"),
            ("/home/alice/secret", "/home/alice/plans!"),
            ("sk-0123456789abcdef", "sk-0123456789abcdee"),
        ] {
            let [same, different] = [values(&ids(one, one)), values(&ids(one, other))];
            assert_eq!((same[0].len(), &same[0]), (one.len(), &same[1]));
            assert_eq!(same[0], different[0]);
            assert_ne!(different[0], different[1]);
            assert!(same[0].bytes().all(|byte| byte.is_ascii_lowercase()), "{same:?}");
        }
        let line = ids("toolu_fake_0001_0", "toolu_fake_0001_1");
        assert_eq!(values(&line), ["toolu_fake_0001_0", "toolu_fake_0001_1"]);
        // An id of a request is kept, whatever it is, unless it is a key; then it still finds its answer.
        assert_eq!(redacted(r#"{"id":"a b"}"#), r#"{"id":"a b"}"#);
        let key = redacted(r#"{"id":"sk-0123456789abcdef"}"#);
        assert!(!key.contains("sk-") && !key.contains('*'), "{key}");
    }

    #[test]
    fn names_stay_only_where_they_look_like_names() {
        let ours = Direction::ServerToClient;
        check(
            ours,
            br#"{"a":{"code":"print(\"hunter2\")","name":"/home/alice/secret plans.pdf","target":"https://corp.internal/x"}}"#,
            r#"{"a":{"code":"******************","name":"****************************","target":"***********************"}}"#,
        );
        check(ours, br#"{"a":{"name":"alice/plans","type":"C:/x"}}"#, r#"{"a":{"name":"***********","type":"****"}}"#);
        let kept =
            r#"{"a":{"name":"bash","target":"next-turn","type":"agent/inbox/spliced","mimeType":"image/svg+xml"}}"#;
        check(ours, kept.as_bytes(), kept);
        let frame = redacted(r#"{"jsonrpc":"2.0","method":"no such: thing"}"#);
        let method = frame.split('"').nth(7).unwrap();
        assert!(frame.starts_with(r#"{"jsonrpc":"2.0","#) && method.len() == 14, "{frame}");
        assert!(method.bytes().all(|byte| byte.is_ascii_lowercase()), "{frame}");
    }

    #[test]
    fn escapes_hide_nothing() {
        let ours = Direction::ServerToClient;
        check(
            ours,
            br#"{"\u0073k-0123456789abcdef":1,"model":"\u0073k-0123456789abcdef"}"#,
            r#"{"************************":1,"model":"************************"}"#,
        );
        check(ours, br#"{"a":{"name":"\u0062ash"}}"#, r#"{"a":{"name":"\u0062ash"}}"#);
    }

    #[test]
    fn members_that_nobody_knows_keep_their_names_if_they_are_names() {
        let ours = Direction::ServerToClient;
        check(
            ours,
            br#"{"params":{"newThing_2":1,"my secret plan":2,"/home/alice":{"id":"x"},"caf\u00e9":3}}"#,
            r#"{"params":{"newThing_2":1,"**************":2,"***********":{"id":"x"},"*********":3}}"#,
        );
    }

    #[test]
    fn numbers_in_contents_say_nothing() {
        let ours = Direction::ClientToServer;
        check(
            ours,
            br#"{"params":{"contentBlocks":[{"type":"place","lat":-52.5,"at":{"x":7}}],"seq":42}}"#,
            r#"{"params":{"contentBlocks":[{"type":"place","lat":-11.1,"at":{"x":1}}],"seq":42}}"#,
        );
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

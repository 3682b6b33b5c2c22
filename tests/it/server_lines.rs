//! Requests in every form in which they may come, and what is answered to each, each with a bound on the time.

use std::io::Write;

use dsh_wire::json::Json;

use crate::faulty::{SECOND, within};
use crate::runtime::{Runtime, prompt};

/// Writes bytes as they are, in pieces of this size, and a request that is always answered; what was answered to the
/// bytes.
fn answers(runtime: &mut Runtime, bytes: &[u8], piece: usize) -> Vec<String> {
    let stdin = runtime.stdin.as_mut().unwrap();
    bytes.chunks(piece).for_each(|piece| stdin.write_all(piece).unwrap());
    runtime.says(r#"{"id":"next","method":"nope"}"#);
    let mut lines = runtime.hears_up_to(r#""id":"next","error""#);
    lines.pop();
    lines
}

/// An answer to an unknown method, under this id.
fn unknown(id: &str, method: &str) -> String {
    let message = format!("unknown DeepSeek Harness SDK runtime method: {method}");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"{message}"}}}}"#)
}

/// The same, whole and byte by byte.
#[test]
fn odd_lines_that_are_requests() {
    let rows: &[(&str, &[u8], &str, &str)] = &[
        ("as usual", br#"{"id":1,"method":"a"}"#, "1", "a"),
        ("BOM", b"\xef\xbb\xbf{\"id\":1,\"method\":\"a\"}", "1", "a"),
        ("CRLF", b"{\"id\":1,\"method\":\"a\"}\r", "1", "a"),
        ("blanks of JavaScript", "\u{a0}\u{2028}\u{3000}\u{b}{\"id\":1,\"method\":\"a\"}\u{c}\t".as_bytes(), "1", "a"),
        ("lone CR inside", b"{\"id\":1,\r\"method\":\"a\"}", "1", "a"),
        ("line ends of Unicode inside", "{\"id\":1,\"method\":\"a\u{2028}\u{85}\"}".as_bytes(), "1", "a\u{2028}\u{85}"),
        ("characters to be cut", "{\"id\":1,\"method\":\"\u{4f60}\u{1f600}\"}".as_bytes(), "1", "\u{4f60}\u{1f600}"),
        ("escapes to be cut", br#"{"id":1,"method":"\ud83d\ude00\n"}"#, "1", r"\ud83d\ude00\n"),
        ("broken UTF-8", b"{\"id\":\"\xff\xfe\",\"method\":\"\xe4\xbda\"}", "\"\u{fffd}\u{fffd}\"", "\u{fffd}a"),
        ("lone surrogates", br#"{"id":"\ud83d","method":"a\ude00"}"#, r#""\ud83d""#, "a\u{fffd}"),
        ("duplicate members", br#"{"id":1,"id":2,"method":"a","m\u0065thod":"b"}"#, "2", "b"),
        ("no version", br#"{"jsonrpc":1.0,"x":[],"params":5,"method":"a","id":1}"#, "1", "a"),
        ("method, id and result", br#"{"id":1,"method":"a","result":{},"error":null}"#, "1", "a"),
        ("an empty string", br#"{"id":"","method":""}"#, r#""""#, ""),
        ("a fraction", br#"{"id":1.0,"method":"a"}"#, "1.0", "a"),
        ("minus nought", br#"{"id":-0,"method":"a"}"#, "-0", "a"),
        (
            "thirty digits",
            br#"{"id":123456789012345678901234567890,"method":"a"}"#,
            "123456789012345678901234567890",
            "a",
        ),
        ("infinite", br#"{"id":1e400,"method":"a"}"#, "1e400", "a"),
    ];
    let mut runtime = Runtime::ready();
    for (what, line, id, method) in rows {
        for piece in [1, line.len() + 1] {
            let lines = within(SECOND * 5, || answers(&mut runtime, &[line, &b"\n"[..]].concat(), piece));
            // What JSON.stringify would write: a pair of surrogates raw, a lone one escaped.
            let [ours, expected] =
                [&lines.concat(), &unknown(id, method)].map(|text| Json::new(text).unwrap().to_buf());
            let member = |json: &Json<'_>, name: &str| json.member(name).unwrap().to_buf();
            assert_eq!(lines.len(), 1, "{what}: {lines:?}");
            assert_eq!(member(&ours.as_json(), "id").as_json().get(), *id, "{what}");
            let message =
                |json: Json<'_>| json.member("error").unwrap().member("message").unwrap().as_str().unwrap().to_buf();
            assert_eq!(message(ours.as_json()), message(expected.as_json()), "{what}");
        }
    }
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

/// An id of another kind makes it no request, and no notification is answered.
#[test]
fn ids_that_make_no_request() {
    let mut runtime = Runtime::ready();
    for id in ["null", "true", "[]", "{}", "[1]", r#"{"id":1}"#] {
        let line = format!("{{\"id\":{id},\"method\":\"shutdown\"}}\n");
        let lines = within(SECOND * 5, || answers(&mut runtime, line.as_bytes(), 7));
        assert_eq!(lines, [""; 0], "{id}");
    }
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

/// Every shape of an answer ends what the agent asked, by the rule of the reference transport; a second answer, one to
/// nothing, and a request under the id of ours change nothing.
#[test]
fn answers_to_requests_of_the_agent() {
    let mut runtime = Runtime::ready();
    for (answer, expected) in [
        (r#""result":1,"error":null"#, "the client answered: 1"),
        (r#""error":null"#, "the client answered: null"),
        ("\"x\":1", "the client answered: null"),
        (r#""result":1,"error":{"code":5,"message":"both"}"#, "the client refused: both (code 5)"),
        (r#""error":"x""#, "the client answered: null"),
        (r#""error":[]"#, "the client refused: "),
        (r#""result":"a\ud83d""#, r#"the client answered: \"a\\ud83d\""#),
    ] {
        within(SECOND * 5, || {
            runtime.says(&prompt("p", "s", "@ask approval/ask"));
            let request = runtime.hears_from(r#""method":"approval/ask""#);
            let id = Json::new(&request).unwrap().member("id").unwrap().get().to_owned();
            // A request is one, whatever its id.
            runtime.says(&format!(r#"{{"id":{id},"method":"nope","result":"stolen"}}"#));
            assert_eq!(runtime.hears_from(r#""error""#), unknown(&id, "nope"));
            runtime.says(r#"{"id":"req_0","result":"to nothing"}"#);
            runtime.says(&format!("{{\"id\":{id},{answer}}}"));
            runtime.says(&format!(r#"{{"id":{id},"result":"again"}}"#));
            let message = runtime.hears_from("assistant/message");
            assert!(message.contains(expected), "{answer}: {message}");
            runtime.hears_from(r#""status":"idle""#);
        });
    }
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

/// What stands in a prompt comes back as it was written: surrogates, unknown blocks, nesting without a limit.
#[test]
fn odd_prompts() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut runtime = Runtime::ready();
    for (what, block) in [
        ("lone surrogate", r#"{"type":"text","text":"a\ud83d"}"#),
        ("high surrogate before a raw pair", "{\"type\":\"text\",\"text\":\"\\ud83d\u{1f600}\"}"),
        ("unknown members", r#"{"zeta":1e400,"type":"text","text":"","a":{"b":[]}}"#),
        ("no type", r#"{"x":-0}"#),
        ("no object", r#""hi""#),
        ("nesting", &format!(r#"{{"type":"text","text":"x","deep":{deep}}}"#)),
    ] {
        within(SECOND * 10, || {
            let params = format!(r#"{{"sessionId":"{what}","contentBlocks":[{block}]}}"#);
            runtime.says(&format!(r#"{{"id":"p","method":"session/prompt","params":{params}}}"#));
            let message = runtime.hears_from("user/message");
            assert!(message.contains(&format!(r#""content":[{block}],"source":{{"kind":"user"}}"#)), "{what}");
            runtime.hears_from(r#""status":"idle""#);
        });
    }
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

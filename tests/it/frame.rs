//! The dispatch table of the wire, and what is written.

use std::error::Error;

use dsh_wire::frame::{self, Frame, Id, NotAFrame, RpcError};
use dsh_wire::json::{Json, Kind, SyntaxErrorKind};
use serde_json::value::RawValue;

/// Writes a frame in a form to compare with: kind, id, method, params or outcome.
fn shown(frame: Frame<'_>) -> String {
    match frame {
        Frame::Request { id, method, params } => format!("request {id:?} {method:?} {params:?}"),
        Frame::Notification { method, params } => format!("notification {method:?} {params:?}"),
        Frame::Response { id, outcome: Ok(result) } => format!("response {id:?} ok {result:?}"),
        Frame::Response { id, outcome: Err(error) } => {
            let [code, data] = [error.code(), error.data()].map(|member| member.map_or("-", Json::get));
            format!("response {id:?} error {code} {} {data}", error.message().map_or("-", |text| text.get()))
        }
    }
}

#[track_caller]
fn check(line: &str, expected: &str) {
    let frame = Frame::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(shown(frame), expected, "{line}");
    let mut out = Vec::new();
    frame.encode(&mut out);
    assert_eq!(out.pop(), Some(b'\n'));
    let again = String::from_utf8(out).unwrap();
    assert!(!again.contains(['\n', '\r']));
    assert_eq!(shown(Frame::parse(&again).unwrap()), expected.replace(['\r', '\n'], " "), "{line}");
}

#[track_caller]
fn drops(line: &str, why: NotAFrame) {
    assert_eq!(Frame::parse(line), Err(why), "{line}");
}

#[test]
fn id_and_method_decide() {
    check(r#"{"id":"a","method":"m"}"#, r#"request "a" "m" {}"#);
    check(r#"{"id":1,"method":""}"#, r#"request 1 "" {}"#);
    check(r#"{"id":"","method":"m","result":1}"#, r#"request "" "m" {}"#);
    check(r#"{"id":1e400,"method":"m"}"#, r#"request 1e400 "m" {}"#);
    check(r#"{"id":1.0}"#, "response 1.0 ok null");
    check(r#"{"id":-0,"method":null,"result":[1]}"#, "response -0 ok [1]");
    check(r#"{"id":"a","method":7,"error":{}}"#, r#"response "a" error - - -"#);
    for id in ["null", "true", "[1]", "{}"] {
        check(&format!(r#"{{"id":{id},"method":"m"}}"#), r#"notification "m" {}"#);
        drops(&format!(r#"{{"id":{id}}}"#), NotAFrame::NoMethodNoId);
    }
    check(r#"{"method":"m"}"#, r#"notification "m" {}"#);
    drops(r#"{"method":["m"]}"#, NotAFrame::NoMethodNoId);
    drops("{}", NotAFrame::NoMethodNoId);
    drops(r#"{"__proto__":{"id":1,"method":"m"}}"#, NotAFrame::NoMethodNoId);
    check(r#"{"id":"\ud83d","method":"\u0000"}"#, r#"request "\ud83d" "\u0000" {}"#);
}

#[test]
fn only_an_object_is_params() {
    for params in ["null", "[1]", "5", "\"x\"", "true"] {
        check(&format!(r#"{{"id":1,"method":"m","params":{params}}}"#), r#"request 1 "m" {}"#);
    }
    check(r#"{"method":"m","params":{ "a":1 }}"#, r#"notification "m" { "a":1 }"#);
    check("{\"method\":\"m\",\"params\":{\r\"a\":1}}", "notification \"m\" {\r\"a\":1}");
}

#[test]
fn the_last_duplicate_decides() {
    check(r#"{"id":"a","id":"b","method":"m"}"#, r#"request "b" "m" {}"#);
    check(r#"{"id":"a","\u0069d":null,"method":"m"}"#, r#"notification "m" {}"#);
    check(r#"{"id":1,"m\u0065thod":"m","params":{"x":1},"params":[]}"#, r#"request 1 "m" {}"#);
    check(r#"{"method":"m","params":{},"p\u0061rams":{"x":1}}"#, r#"notification "m" {"x":1}"#);
    check(r#"{"id":1,"result":1,"r\u0065sult":2}"#, "response 1 ok 2");
    check(r#"{"id":1,"result":1,"\u0065rror":{"code":2}}"#, "response 1 error 2 - -");
    check(r#"{"id":1,"error":{"code":1},"error":null,"result":2}"#, "response 1 ok 2");
    check(r#"{"id":1,"error":{"code":1,"code":"x","message":"a","message":"b"}}"#, r#"response 1 error - "b" -"#);
}

#[test]
fn errors_are_read_by_the_reference_rule() {
    for error in ["null", "0", "false", "\"x\"", "\"\"", "1"] {
        check(&format!(r#"{{"id":1,"error":{error},"result":2}}"#), "response 1 ok 2");
        check(&format!(r#"{{"id":1,"error":{error}}}"#), "response 1 ok null");
    }
    check(r#"{"id":1,"error":[],"result":2}"#, "response 1 error - - -");
    check(r#"{"id":1,"error":{"code":-32603,"message":"no","data":[1]}}"#, r#"response 1 error -32603 "no" [1]"#);
    check(r#"{"id":1,"error":{"code":"1","message":5,"data":null}}"#, "response 1 error - - null");
    check(r#"{"id":1,"error":{"code":1e400}}"#, "response 1 error 1e400 - -");
    let Ok(Frame::Response { outcome: Err(error), .. }) = Frame::parse(r#"{"id":1,"error":[{"code":1}]}"#) else {
        panic!()
    };
    let error = RpcError::from(error);
    assert_eq!(
        (error.code, error.message.as_str(), error.raw.as_json().get()),
        (None, "JSON-RPC error", r#"[{"code":1}]"#)
    );
    assert_eq!(error.to_string(), "JSON-RPC error");
    let Ok(Frame::Response { outcome: Err(error), .. }) =
        Frame::parse(r#"{"id":1,"error":{"code":-32601,"message":"no such method: m"}}"#)
    else {
        panic!()
    };
    let error = RpcError::from(error);
    assert_eq!(
        (error.code, error.to_string().as_str()),
        (Some(frame::METHOD_NOT_FOUND), "no such method: m (code -32601)")
    );
}

#[test]
fn around_the_frame_javascript_trims() {
    for blank in ["\u{feff}", "\u{a0}", "\u{2028}", "\u{b}", "\u{c}", "\r", "\u{3000}", "\u{feff}\u{feff} "] {
        check(&format!("{blank}{{\"id\":1}}{blank}"), "response 1 ok null");
    }
    let at = |at, kind| NotAFrame::Syntax(dsh_wire::json::SyntaxError { at, kind });
    drops("\u{a0}{\u{a0}}", at(3, SyntaxErrorKind::ExpectedName));
    drops("{\"id\":1}\u{85}", at(8, SyntaxErrorKind::TrailingText));
    drops("\r", NotAFrame::Blank);
    drops("", NotAFrame::Blank);
}

#[test]
fn a_line_that_is_no_frame_is_named() {
    drops("[]", NotAFrame::NotAnObject(Kind::Array));
    drops(r#"[{"id":1,"method":"m"}]"#, NotAFrame::NotAnObject(Kind::Array));
    drops("42", NotAFrame::NotAnObject(Kind::Number));
    drops("null", NotAFrame::NotAnObject(Kind::Null));
    drops("Content-Length: 20", NotAFrame::HeaderFraming);
    drops(" content-length:20\r", NotAFrame::HeaderFraming);
    drops(
        r#"{"id":1}{"id":2}"#,
        NotAFrame::Syntax(dsh_wire::json::SyntaxError { at: 8, kind: SyntaxErrorKind::TrailingText }),
    );
}

#[test]
fn broken_utf8_is_delivered_repaired() {
    let mut scratch = String::new();
    let frame = Frame::decode(b"{\"id\":\"\xff\xfe\",\"method\":\"\xe4\xbd\"}", &mut scratch).unwrap();
    assert_eq!(shown(frame), "request \"\u{fffd}\u{fffd}\" \"\u{fffd}\" {}");
}

#[test]
fn encoding_writes_one_line_whatever_the_value_holds() {
    let Ok(Frame::Response { id, .. }) = Frame::parse(r#"{"id":1.0}"#) else { panic!() };
    let write = |write: &dyn Fn(&mut Vec<u8>, Id<'_>) -> usize| {
        let mut out = b"before".to_vec();
        let len = write(&mut out, id);
        assert_eq!(len + 6, out.len());
        String::from_utf8(out.split_off(6)).unwrap()
    };
    let raw: &RawValue = serde_json::from_str("{\n\"a\" :\r\n\"b\\n\"}").unwrap();
    assert_eq!(
        write(&|out, _| frame::encode_notification(out, "m\n\"", raw).unwrap()),
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\\n\\\"\",\"params\":{ \"a\" :  \"b\\n\"}}\n"
    );
    assert_eq!(
        write(&|out, id| frame::encode_request(out, id, "m", &()).unwrap()),
        "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"m\"}\n"
    );
    assert_eq!(
        write(&|out, id| frame::encode_result(out, id, &()).unwrap()),
        "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":null}\n"
    );
    assert_eq!(
        write(&|out, id| frame::encode_error(out, id, frame::INTERNAL_ERROR, "no", None::<&()>).unwrap()),
        "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"error\":{\"code\":-32603,\"message\":\"no\"}}\n"
    );
    assert_eq!(
        write(&|out, id| frame::encode_error(out, id, 1, "no", Some(&[1])).unwrap()),
        "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"error\":{\"code\":1,\"message\":\"no\",\"data\":[1]}}\n"
    );
}

#[test]
fn a_value_that_is_no_json_changes_nothing() {
    let mut out = b"before".to_vec();
    let bad = std::collections::BTreeMap::from([([1u8, 2], 3)]);
    let error = frame::encode_notification(&mut out, "m", &bad).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the value as JSON");
    assert_eq!(error.source().unwrap().to_string(), "key must be a string");
    assert!(
        frame::encode_request(&mut out, Id::new(Json::new("1").unwrap()).unwrap(), "m", &("a long enough value", bad))
            .is_err()
    );
    assert_eq!(out, b"before");
}

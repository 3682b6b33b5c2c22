//! A line and its frame: the same as the reference transport makes of it, and back again.

use dsh_wire::frame::{self, Frame, NotAFrame};
use dsh_wire::json::{self, Json, JsonStr, Kind};

use super::oracle::{self, Dispatch, Judged, Node, Value};

/// The line in `bytes`.
pub(crate) fn check(bytes: &[u8]) {
    let mut scratch = String::new();
    let text = json::repair(bytes, &mut scratch);
    let judged = oracle::judge(bytes);
    let parsed = Frame::parse(text);
    agrees(text, parsed, &judged);
    if let Ok(frame) = parsed {
        round_trips(text, frame);
    }
    if let Ok(Frame::Notification { method, params }) = parsed {
        super::typed::check(method, params);
    }
}

/// The same kind of frame with the same members, or dropped for the same reason.
pub(crate) fn agrees(text: &str, parsed: Result<Frame<'_>, NotAFrame>, judged: &Judged) {
    let json_is = |json: Json<'_>, node: Option<&Node>, absent: &str| {
        assert_eq!(json.get(), node.map_or_else(|| absent.into(), |node| judged.text(node)), "in {text:?}");
    };
    match (parsed, &judged.dispatch) {
        (_, Dispatch::TooDeep) | (Err(NotAFrame::Blank), Dispatch::Blank) => {}
        (Err(NotAFrame::Syntax(error)), Dispatch::Syntax(at)) => {
            let ours = text.get(..error.at).map(|before| before.encode_utf16().count());
            assert_eq!(ours, Some(*at), "{error} in {text:?}");
        }
        (Err(NotAFrame::HeaderFraming), Dispatch::Syntax(_)) => {
            assert!(json::trim(text).to_ascii_lowercase().starts_with("content-length:"), "{text:?}");
        }
        (Err(NotAFrame::NotAnObject(kind)), Dispatch::NotAnObject(value)) => {
            let theirs = match value {
                Value::Null => Kind::Null,
                Value::Bool(_) => Kind::Bool,
                Value::Number => Kind::Number,
                Value::String(_) => Kind::String,
                Value::Array(_) => Kind::Array,
                Value::Object(_) => Kind::Object,
            };
            assert_eq!(kind, theirs, "{text:?}");
        }
        (Err(NotAFrame::NoMethodNoId), Dispatch::Ignored) => {}
        (Ok(Frame::Request { id, method, params }), Dispatch::Request { id: their_id, method: name, params: node }) => {
            json_is(id.as_json(), Some(their_id), "");
            says(method, name);
            json_is(params, node.as_ref(), "{}");
        }
        (Ok(Frame::Notification { method, params }), Dispatch::Notification { method: name, params: node }) => {
            says(method, name);
            json_is(params, node.as_ref(), "{}");
        }
        (Ok(Frame::Response { id, outcome: Ok(value) }), Dispatch::Result { id: their_id, result }) => {
            json_is(id.as_json(), Some(their_id), "");
            json_is(value, result.as_ref(), "null");
        }
        (
            Ok(Frame::Response { id, outcome: Err(error) }),
            Dispatch::Error { id: their_id, raw, code, message, data },
        ) => {
            json_is(id.as_json(), Some(their_id), "");
            json_is(error.raw(), Some(raw), "");
            assert_eq!(error.code().map(Json::get).map(String::from), code.as_ref().map(|code| judged.text(code)));
            assert_eq!(error.data().map(Json::get).map(String::from), data.as_ref().map(|data| judged.text(data)));
            assert_eq!(error.message().is_some(), message.is_some());
            if let (Some(ours), Some(theirs)) = (error.message(), message) {
                says(ours, theirs);
            }
        }
        (ours, theirs) => panic!("{text:?} is {ours:?}, by the oracle {theirs:?}"),
    }
}

pub(crate) fn says(ours: JsonStr<'_>, theirs: &[u16]) {
    assert_eq!(ours.to_buf().as_json_str().get(), oracle::quote(theirs));
}

/// What [`Frame::encode`] and the `encode_…` functions write is one line, and parses to the same frame.
fn round_trips(text: &str, frame: Frame<'_>) {
    // White space between tokens may be a line end, which no encoded frame may hold.
    let one_line = text.replace(['\n', '\r'], " ");
    let same = Frame::parse(&one_line).unwrap();
    let mut out = b"before".to_vec();
    frame.encode(&mut out);
    assert_eq!(one_frame(&out), same);

    let mut out = b"before".to_vec();
    let written = match frame {
        Frame::Request { id, method, params } => {
            frame::encode_request(&mut out, id, &method.to_string_lossy(), &params)
        }
        Frame::Notification { method, params } => {
            frame::encode_notification(&mut out, &method.to_string_lossy(), &params)
        }
        Frame::Response { id, outcome: Ok(result) } => frame::encode_result(&mut out, id, &result),
        Frame::Response { id, outcome: Err(error) } => {
            let code = error.code().and_then(Json::as_i64).unwrap_or(-32603);
            let message = error.message().map(|message| message.to_string_lossy()).unwrap_or_default();
            frame::encode_error(&mut out, id, code, &message, error.data().as_ref())
        }
    }
    .expect("every value that was parsed has a JSON form");
    assert_eq!(b"before".len() + written, out.len());
    match (one_frame(&out), same) {
        // A lone surrogate in a method is lost on the way through a Rust string, and only that.
        (
            Frame::Request { id, method, params },
            Frame::Request { id: same_id, method: same_method, params: same_params },
        ) => {
            assert_eq!((id, params), (same_id, same_params));
            assert_eq!(method.to_string_lossy(), same_method.to_string_lossy());
        }
        (Frame::Notification { method, params }, Frame::Notification { method: same_method, params: same_params }) => {
            assert_eq!(params, same_params);
            assert_eq!(method.to_string_lossy(), same_method.to_string_lossy());
        }
        (Frame::Response { id, outcome: Err(error) }, Frame::Response { id: same_id, outcome: Err(same) }) => {
            assert_eq!((id, error.data()), (same_id, same.data()));
            assert!(error.code().is_some() && error.message().is_some());
            if let Some(message) = same.message() {
                assert_eq!(error.message().unwrap().to_string_lossy(), message.to_string_lossy());
            }
        }
        (ours, same) => assert_eq!(ours, same),
    }
}

/// The frame behind `before` in `out`, which holds nothing else.
fn one_frame(out: &[u8]) -> Frame<'_> {
    let line = out.strip_prefix(b"before").expect("what was there stays");
    let (last, line) = line.split_last().unwrap();
    assert!(*last == b'\n' && !line.contains(&b'\n') && !line.contains(&b'\r'), "one line end, the last byte");
    Frame::parse(core::str::from_utf8(line).unwrap()).unwrap()
}

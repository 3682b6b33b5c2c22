//! The scanner and the views over what it has proved, against the oracle.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use dsh_wire::json::{self, Json, JsonBuf, JsonStr, Kind, SyntaxErrorKind};

use super::oracle::{self, Fail, Node, Value};

/// The text in `bytes`, broken UTF-8 repaired: by itself, and where one of its tokens lies at the edge of a block.
pub(crate) fn check(bytes: &[u8]) {
    let mut scratch = String::new();
    let text = json::repair(bytes, &mut scratch);
    let units = oracle::decode(bytes);
    assert!(text.encode_utf16().eq(units.iter().copied()), "the repair of {bytes:?} is {text:?}");
    let (cut, trimmed) = oracle::trim(&units);
    assert!(json::trim(text).encode_utf16().eq(trimmed.iter().copied()), "the trim of {text:?}, {cut} off the front");
    text_agrees(text, &units);
    if let Some(moved) = at_an_edge(text) {
        text_agrees(&moved, &moved.encode_utf16().collect::<Vec<_>>());
    }
}

/// The text as a member of an object whose name is so long that one of the text's tokens is the last byte of a block of
/// the scanner's fast path: such blocks begin behind the first bracket. `None` where it has no token.
fn at_an_edge(text: &str) -> Option<String> {
    let tokens: Vec<usize> =
        text.bytes().enumerate().filter(|(_, byte)| br#"\u",:[]{}"#.contains(byte)).map(|at| at.0).collect();
    let token = tokens.get(text.len() % tokens.len().max(1))?;
    let before = br#"{"":"#.len() + token;
    Some(format!(r#"{{"{}":{text}}}"#, "x".repeat(before.next_multiple_of(64) - before)))
}

/// Accepted or refused by both, at the same place; the same values if accepted.
pub(crate) fn text_agrees(text: &str, units: &[u16]) {
    match (Json::new(text), oracle::parse(units, &mut |_, _| {})) {
        (Ok(json), Ok(node)) => value_agrees(json, &node, units),
        (Err(error), Err(Fail::At(at))) => {
            let ours = text.get(..error.at).map(|before| before.encode_utf16().count());
            assert_eq!(ours, Some(at), "{error} in {text:?}");
            assert_eq!(error.kind == SyntaxErrorKind::UnexpectedEnd, at == units.len(), "{error} in {text:?}");
        }
        // Ours must still come to an end.
        (_, Err(Fail::TooDeep)) => {}
        (ours, theirs) => panic!("{text:?} is {ours:?}, by the oracle {theirs:?}"),
    }
}

/// Every accessor of every value in the tree.
pub(crate) fn value_agrees(json: Json<'_>, node: &Node, units: &[u16]) {
    assert!(json.get().encode_utf16().eq(units[node.span.clone()].iter().copied()), "{json:?} is not {node:?}");
    let (kind, boolean) = match node.value {
        Value::Null => (Kind::Null, None),
        Value::Bool(value) => (Kind::Bool, Some(value)),
        Value::Number => (Kind::Number, None),
        Value::String(_) => (Kind::String, None),
        Value::Array(_) => (Kind::Array, None),
        Value::Object(_) => (Kind::Object, None),
    };
    assert_eq!((json.kind(), json.as_bool(), json.is_null()), (kind, boolean, kind == Kind::Null));
    assert_eq!(json.as_str().is_some(), kind == Kind::String);
    assert_eq!(json.as_f64().is_some(), kind == Kind::Number);
    let (mut members, mut elements) = (json.members(), json.elements());
    match &node.value {
        Value::String(units) => string_agrees(json.as_str().unwrap(), units),
        Value::Number => number_agrees(json),
        Value::Array(nodes) => {
            for node in nodes {
                value_agrees(elements.next().expect("an element for each of the oracle's"), node, units);
            }
        }
        Value::Object(nodes) => {
            for (name, node) in nodes {
                let (ours, value) = members.next().expect("a member for each of the oracle's");
                value_agrees(ours.as_json(), name, units);
                value_agrees(value, node, units);
            }
            if let Some((name, _)) = nodes.first() {
                let plain = String::from_utf16_lossy(name.string().unwrap());
                if !plain.contains(char::REPLACEMENT_CHARACTER) {
                    let theirs = json_node(node, &plain);
                    assert!(json.member(&plain).unwrap().get().encode_utf16().eq(units[theirs].iter().copied()));
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    assert!(members.next().is_none() && elements.next().is_none(), "{json:?} holds more than {node:?}");
    let copy = json.to_buf();
    assert_eq!(copy.as_json(), json);
    assert_eq!(JsonBuf::new(json.get()).unwrap(), copy);
}

fn json_node(node: &Node, name: &str) -> std::ops::Range<usize> {
    node.member(name).unwrap().span.clone()
}

fn string_agrees(string: JsonStr<'_>, units: &[u16]) {
    let lossy = String::from_utf16_lossy(units);
    assert_eq!(string.to_string_lossy(), lossy, "{string:?}");
    if let Some(plain) = string.as_plain() {
        assert_eq!(plain, lossy);
    }
    let whole = String::from_utf16(units).is_ok();
    assert_eq!(string == *lossy, whole, "a string equals its text unless it has lone surrogates: {string:?}");
    let canonical = string.to_buf();
    assert_eq!(canonical.as_json_str().get(), oracle::quote(units));
    assert_eq!(canonical.as_json_str(), string);
    assert_eq!(canonical.as_json_str().cmp(&string), core::cmp::Ordering::Equal);
    let hash = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(hash.hash_one(canonical.as_json_str()), hash.hash_one(string));
    // And the canonical text says the same to the oracle.
    let again: Vec<u16> = canonical.as_json_str().get().encode_utf16().collect();
    assert_eq!(oracle::parse(&again, &mut |_, _| {}).unwrap().string(), Some(units));
}

fn number_agrees(json: Json<'_>) {
    let double = json.as_f64().unwrap();
    let whole = double % 1.0 == 0.0;
    if let Some(n) = json.as_u64() {
        assert!(n as f64 == double, "{json:?} read as {n}");
    } else {
        assert!(!whole || double < 0.0 || double >= u64::MAX as f64, "{json:?} fits u64");
    }
    if let Some(n) = json.as_i64() {
        assert!(n as f64 == double, "{json:?} read as {n}");
    } else {
        assert!(!whole || double < i64::MIN as f64 || double >= i64::MAX as f64, "{json:?} fits i64");
    }
}

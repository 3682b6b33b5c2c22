use alloc::string::String;
use alloc::vec::Vec;

use super::*;

#[track_caller]
fn check(what: What, text: &str) {
    let entry = Entry { at: Duration::new(3, 14_159_999), direction: Direction::ServerToClient, what };
    let mut out = String::new();
    entry.encode(&mut out);
    assert_eq!(out, alloc::format!("{{\"t\": 3.014159, \"dir\": \"s2c\", {text}}}\n"));
    let read = Entry::parse(out.trim_end()).unwrap();
    assert_eq!(read, Entry { at: Duration::from_micros(3_014_159), ..entry });
}

fn line(bytes: &[u8], eol: bool) -> What {
    What::Line { bytes: bytes.to_vec(), eol }
}

#[test]
fn what_is_written_is_read() {
    check(line(br#"{"id":1}"#, true), r#""frame": "{\"id\":1}""#);
    check(line(b"", true), r#""frame": """#);
    check(line("\\ é \u{2028} 🦀 \0\r".as_bytes(), true), "\"frame\": \"\\\\ é \u{2028} 🦀 \\u0000\\r\"");
    check(line(b"half", false), r#""frame": "half", "eol": false"#);
    check(line(b"\xff", true), r#""frame_b64": "/w==""#);
    check(line(b"\xff\xfe", true), r#""frame_b64": "//4=""#);
    check(line(b"\xff\xfe\xfd", false), r#""frame_b64": "//79", "eol": false"#);
    check(What::Lost(70_000), r#""lost": 70000"#);
}

#[test]
fn every_run_of_bytes_comes_back() {
    let all: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    for len in 0..all.len() {
        let entry =
            Entry { at: Duration::ZERO, direction: Direction::Stderr, what: line(&all[all.len() - len..], true) };
        let mut out = String::new();
        entry.encode(&mut out);
        assert_eq!(Entry::parse(out.trim_end()), Ok(entry));
    }
}

#[test]
fn other_recorders() {
    let entry = Entry::parse(r#"{"v":2,"frame":"\ud83d\ude00 \ud800","eol":true,"dir":"err","t":1e-3}"#).unwrap();
    assert_eq!((entry.at, entry.direction), (Duration::from_millis(1), Direction::Stderr));
    assert_eq!(entry.wire_bytes(), "😀 \u{fffd}\n".as_bytes());
}

#[test]
fn what_is_no_entry() {
    let kind = Kind::Array;
    for (text, why) in [
        ("[]", NotAnEntry::NotAnObject(kind)),
        (r#"{"dir":"c2s","frame":""}"#, NotAnEntry::NoTime),
        (r#"{"t":-1,"dir":"c2s","frame":""}"#, NotAnEntry::NoTime),
        (r#"{"t":1e400,"dir":"c2s","frame":""}"#, NotAnEntry::NoTime),
        (r#"{"t":0,"dir":"up","frame":""}"#, NotAnEntry::NoDirection),
        (r#"{"t":0,"dir":"c2s"}"#, NotAnEntry::NoLine),
        (r#"{"t":0,"dir":"c2s","lost":-1}"#, NotAnEntry::NoLine),
        (r#"{"t":0,"dir":"c2s","frame_b64":"/w"}"#, NotAnEntry::Base64),
        (r#"{"t":0,"dir":"c2s","frame_b64":"/x=="}"#, NotAnEntry::Base64),
        (r#"{"t":0,"dir":"c2s","frame_b64":"/w==AAAA"}"#, NotAnEntry::Base64),
        (r#"{"t":0,"dir":"c2s","frame_b64":"===="}"#, NotAnEntry::Base64),
        (r#"{"t":0,"dir":"c2s","frame_b64":"é*"}"#, NotAnEntry::Base64),
        (r#"{"t":0,"dir":"c2s","frame":"{}\n{}"}"#, NotAnEntry::LineFeed),
        (r#"{"t":0,"dir":"c2s","frame":"\u000a"}"#, NotAnEntry::LineFeed),
        (r#"{"t":0,"dir":"c2s","frame_b64":"Cg=="}"#, NotAnEntry::LineFeed),
    ] {
        assert_eq!(Entry::parse(text), Err(why), "{text}");
    }
    assert!(matches!(Entry::parse(r#"{"t":0,"dir":"c2s","fra"#), Err(NotAnEntry::Syntax(_))));
}

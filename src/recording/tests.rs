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

/// What is read in one pass is what the parser makes of it, also where something else stands in one place.
#[test]
fn own_lines_are_read_as_any() {
    let text = "a\"\\ /é \u{2028} 🦀 \0\r\t\u{8}\u{c}\u{7f} longer than eight bytes";
    let mut own = 0;
    for (seconds, direction, eol) in
        [(0, Direction::ClientToServer, true), (1_234, Direction::ServerToClient, false), (10, Direction::Stderr, true)]
    {
        let what = line(text.as_bytes(), eol);
        let mut written = String::new();
        Entry { at: Duration::new(seconds, 14_159_000), direction, what }.encode(&mut written);
        let written = written.trim_end();
        assert_eq!(super::own::read(written).map(Ok), Some(Entry::parse_any(written)));
        for at in (0..written.len()).filter(|at| written.is_char_boundary(*at)) {
            let (before, from) = written.split_at(at);
            let mut behind = from.chars();
            behind.next();
            let behind = behind.as_str();
            for other in [
                "", "\"", "\\", "\\n", "\\u000a", "\\ud83d", "\\u+041", "\\u0041", "0", ".", ",", " ", "}", "\t", "x",
                "é",
            ] {
                let other = [before, other, behind].concat();
                if let Some(entry) = super::own::read(&other) {
                    own += 1;
                    assert_eq!(Ok(entry), Entry::parse_any(&other), "{other}");
                }
            }
        }
    }
    assert!(own > 1000, "{own}");
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

/// However the bytes are cut: numbers, entries and faults.
#[test]
fn entries_of_bytes() {
    let entry = |n: usize| alloc::format!("{{\"t\":{n},\"dir\":\"err\",\"frame\":\"{n}\"}}");
    let long = "x".repeat(2000);
    let text = alloc::format!("\u{feff}{}\n\n{}\r\nnoise\n{long}\n{}", entry(1), entry(2), entry(3));
    for (end, last) in [("", Ok(3)), ("\n{\"t\"", Err(NotAnEntry::CutOff)), (long.as_str(), Err(NotAnEntry::TooLong))] {
        let text = [&*text, end].concat();
        for piece in [1, 7, text.len()] {
            let mut entries = EntryBuffer::with_limit(100);
            let mut found = Vec::new();
            let mut take = |entries: &mut EntryBuffer| {
                while let Some(Found { number, entry, .. }) = entries.next_entry() {
                    found.push((
                        number,
                        entry.map(|entry| entry.at.as_secs()).map_err(|why| match why {
                            NotAnEntry::Syntax(_) => "syntax",
                            NotAnEntry::TooLong => "too long",
                            NotAnEntry::CutOff => "cut off",
                            _ => "else",
                        }),
                    ));
                }
            };
            for piece in text.as_bytes().chunks(piece) {
                entries.push(piece);
                take(&mut entries);
            }
            entries.end_input();
            take(&mut entries);
            assert_eq!(found[..4], [(1, Ok(1)), (3, Ok(2)), (4, Err("syntax")), (5, Err("too long"))], "{end}");
            let ends: &[_] = match last {
                Ok(_) => &[(6, Ok(3))],
                Err(NotAnEntry::CutOff) => &[(6, Ok(3)), (7, Err("cut off"))],
                Err(_) => &[(6, Err("too long"))],
            };
            assert_eq!(&found[4..], ends, "{end}");
        }
    }
}

#[test]
fn lines_of_pieces() {
    let mut pieces = Pieces::default();
    let mut number = 0;
    let mut joined = Vec::new();
    let mut push = |pieces: &mut Pieces, direction, what| {
        number += 1;
        joined.extend(pieces.join(number, Entry { at: Duration::from_secs(number), direction, what }));
    };
    let (ours, theirs) = (Direction::ClientToServer, Direction::ServerToClient);
    push(&mut pieces, ours, line(b"a", false));
    push(&mut pieces, theirs, line(b"whole", true));
    push(&mut pieces, ours, line(b"b", false));
    push(&mut pieces, ours, line(b"c", true));
    push(&mut pieces, theirs, line(b"torn", false));
    push(&mut pieces, theirs, What::Lost(3));
    push(&mut pieces, theirs, line(b"last", false));
    push(&mut pieces, ours, line(b"", false));
    joined.extend(pieces.finish());
    let joined: Vec<_> = joined.into_iter().map(|(number, entry)| (number, entry.at.as_secs(), entry.what)).collect();
    let expected = [
        (2, 2, line(b"whole", true)),
        (4, 4, line(b"abc", true)),
        (5, 5, line(b"torn", false)),
        (6, 6, What::Lost(3)),
        (7, 7, line(b"last", false)),
        (8, 8, line(b"", false)),
    ];
    assert_eq!(joined, expected);
}

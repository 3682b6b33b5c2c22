//! `timeline`: what it writes into the page. What the page makes of it is shown by `tests/timeline` in a browser.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Folder, dsh_wire, exits, stderr, stdout};
use crate::recording;

/// The picture inside the page of this recording.
pub(super) fn picture(recording: &str) -> Value {
    let output = dsh_wire(["timeline", recording, "-o", "-"]).output().unwrap();
    exits(&output, 0);
    let page = String::from_utf8(output.stdout).unwrap();
    let (_, data) = page.split_once("<script type=\"application/json\"").unwrap();
    let (_, data) = data.split_once(">\n").unwrap();
    serde_json::from_str(data.split_once("\n</script>").unwrap().0).unwrap()
}

/// The spans of a picture: kind, name, first line, last line, end.
fn spans(picture: &Value) -> Vec<(u64, &str, u64, i64, u64)> {
    let column = |name: &str| picture["spans"][name].as_array().unwrap();
    let number = |name, span: usize| column(name)[span].as_u64().unwrap();
    (0..column("kind").len())
        .map(|span| {
            let name = picture["names"][number("name", span) as usize].as_str().unwrap();
            (
                number("kind", span),
                name,
                number("first", span),
                column("last")[span].as_i64().unwrap(),
                number("end", span),
            )
        })
        .collect()
}

fn entries(frames: &[(&str, Value)]) -> String {
    let entry = |(at, (way, frame)): (usize, &(&str, Value))| {
        let frame = frame.as_str().map_or_else(|| frame.to_string(), str::to_owned);
        format!("{}\n", json!({"t": at, "dir": way, "frame": frame}))
    };
    frames.iter().enumerate().map(entry).collect()
}

fn event(kind: &str, data: Value) -> (&'static str, Value) {
    let event = json!({"type": kind, "seq": 1, "time": 1, "data": data});
    ("s2c", json!({"method": "session.event", "params": {"sessionId": "s", "event": event}}))
}

#[test]
fn spans_begin_and_end_with_their_lines() {
    let folder = Folder::new();
    let frames = [
        ("c2s", json!({"id": 1, "method": "session/prompt", "params": {"sessionId": "s"}})),
        event("turn/start", json!({"turn": 1})),
        event("step/start", json!({"turn": 1, "step": 1})),
        event("tool/call", json!({"turn": 1, "step": 1, "callId": "a", "name": "bash"})),
        event("tool/call", json!({"turn": 1, "step": 1, "callId": "b", "name": "read"})),
        event("tool/result", json!({"turn": 1, "step": 1, "message": {"toolCallId": "b", "isError": true}})),
        ("s2c", json!({"id": 1, "result": {}})),
        ("s2c", json!("noise")),
        ("c2s", json!({"id": 1, "method": "again"})),
        ("c2s", json!({"id": 1, "method": "twice"})),
        event("turn/end", json!({"turn": 1, "reason": {"kind": "error"}})),
        ("s2c", json!({"id": 1, "error": {}})),
        event("turn/start", json!({"turn": 2})),
        event("step/end", json!({"turn": 7, "step": 1})),
    ];
    let picture = picture(&folder.file("r.jsonl", entries(&frames).as_bytes()));
    let expected = [
        (0, "session/prompt", 0, 6, 0),
        (1, "turn 1", 1, 10, 1),
        // Cut short by the end of the turn.
        (2, "step 1", 2, 10, 2),
        (3, "bash", 3, 10, 2),
        (3, "read", 4, 5, 1),
        // Of the same id, the oldest is answered.
        (0, "again", 8, 11, 1),
        (0, "twice", 9, -1, 2),
        (1, "turn 2", 12, -1, 2),
    ];
    assert_eq!(spans(&picture), expected);
    assert_eq!(picture["spans"]["track"], json!([0, 0, 0, 0, 1, 0, 1, 0]));
    assert_eq!(picture["lanes"], json!({"name": ["", "s"], "depth": [0, 0]}));
    assert_eq!(picture["lines"]["lane"], json!([1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1]));
    assert_eq!(picture["lines"]["kind"], json!([0, 3, 3, 3, 3, 3, 1, 4, 0, 0, 3, 2, 3, 3]));
    assert_eq!(picture["lines"]["at"][13], json!(13_000_000));
}

/// Every request of the official runtime's recordings is a span, and every line is there.
#[test]
fn every_fixture_is_drawn() {
    for recording in recording::all() {
        let path = recording::fixtures().join(&recording.name).with_extension("jsonl");
        let picture = picture(path.to_str().unwrap());
        // Pieces of a line stand as one.
        let (mut begun, mut lines) = ([const { Vec::new() }; 3], Vec::new());
        let text = |bytes: &mut Vec<u8>| String::from_utf8_lossy(&std::mem::take(bytes)).into_owned();
        for row in &recording.rows {
            let begun = &mut begun[row.dir as usize];
            begun.extend_from_slice(&row.bytes);
            lines.extend(row.eol.then(|| text(begun)));
        }
        lines.extend(begun.iter_mut().map(text));
        // White space as JavaScript has it is not all of Rust's.
        let rows = lines.iter().filter(|text| !dsh_wire::json::trim(text).is_empty());
        let shown = picture["lines"]["text"].as_array().unwrap().iter();
        for (row, shown) in rows.clone().zip(shown) {
            let shown = shown.as_str().unwrap();
            let kept =
                shown.rsplit_once("… ").filter(|_| shown.ends_with(" more bytes")).map_or(shown, |(kept, _)| kept);
            assert!(*row == shown || row.starts_with(kept.trim_end_matches('\u{fffd}')), "{}: {shown}", recording.name);
        }
        assert_eq!(rows.count(), picture["lines"]["text"].as_array().unwrap().len(), "{}", recording.name);
    }
}

#[test]
fn a_page_holds_text_of_the_peer_as_text() {
    let folder = Folder::new();
    let hostile = "</script><!--<script>\u{2028}{{data}}";
    let frames =
        [("c2s", json!({"id": 1, "method": hostile, "params": {"sessionId": hostile}})), ("s2c", json!(hostile))];
    let recording = folder.file("<script>.jsonl", entries(&frames).as_bytes());
    let output = dsh_wire(["timeline", &recording, "-o", "-"]).output().unwrap();
    let page = stdout(&output);
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    assert!(!page.contains("<!--") && !page.contains('\u{2028}'));
    assert_eq!(picture(&recording)["lanes"]["name"][1], hostile);
}

#[test]
fn long_lines_are_cut_and_say_so() {
    let folder = Folder::new();
    let recording = folder.file("r.jsonl", entries(&[("c2s", json!("é".repeat(10)))]).as_bytes());
    let output = dsh_wire(["timeline", &recording, "-o", "-", "--line-bytes", "5"]).output().unwrap();
    assert!(stdout(&output).contains("\"éé\u{fffd}… 15 more bytes\""));
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_written() {
    let folder = Folder::new();
    let page = folder.0.join("page.html");
    let check = |recording: &str, output: &str, message: &str| {
        let output = dsh_wire(["timeline", recording, "-o", output]).output().unwrap();
        exits(&output, 2);
        assert!(stderr(&output).starts_with(&format!("error: {message}")), "{}", stderr(&output));
        assert!(!page.exists());
    };
    let raw = folder.file("raw", b"{\"id\":1}\n");
    let good = folder.file("good", b"");
    let to = page.to_str().unwrap();
    check(&raw, to, &format!("'{raw}' is no recording: "));
    check("/no/such/file", to, "cannot open '/no/such/file': ");
    check("/", to, "cannot read '/': ");
    check(&good, "/no/such/folder/page", "cannot create '/no/such/folder/page': ");
    exits(&dsh_wire(["timeline", &good, "-o", to]).output().unwrap(), 0);
    let mode = page.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "as the recording: what is said is for nobody else");
}

#[test]
fn a_recording_is_not_overwritten() {
    let folder = Folder::new();
    let text = entries(&[("c2s", json!({"id": 1, "method": "m"}))]);
    let recording = folder.file("r.jsonl", text.as_bytes());
    let (hard, soft) = (folder.0.join("hard"), folder.0.join("soft"));
    std::fs::hard_link(&recording, &hard).unwrap();
    std::os::unix::fs::symlink(&recording, &soft).unwrap();
    for page in [&recording, hard.to_str().unwrap(), soft.to_str().unwrap()] {
        for (from, stdin) in [(recording.as_str(), Stdio::null()), ("-", File::open(&recording).unwrap().into())] {
            let output = dsh_wire(["timeline", from, "-o", page]).stdin(stdin).output().unwrap();
            exits(&output, 2);
            assert_eq!(
                stderr(&output),
                format!("error: '{page}' is the recording itself: give the page another name\n")
            );
            assert_eq!(std::fs::read_to_string(&recording).unwrap(), text);
        }
    }
}

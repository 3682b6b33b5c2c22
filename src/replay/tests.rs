use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;

const START: Duration = Duration::ZERO;

/// A script of lines that are marked `>` from the client, `<` from the runtime, one a second.
fn script(lines: &[&str], matching: Matching, timing: Timing) -> Script {
    let entries = lines.iter().zip(0..).map(|(line, second)| {
        let (mark, bytes) = line.split_at(1);
        let direction = if mark == ">" { Direction::ClientToServer } else { Direction::ServerToClient };
        let what = What::Line { bytes: bytes.as_bytes().to_vec(), eol: true };
        Entry { at: Duration::from_secs(second), direction, what }
    });
    Script::new(entries, matching, timing)
}

/// What it says to a line.
fn say(script: &mut Script, line: &str, now: Duration) -> Vec<String> {
    script.push(line.as_bytes(), now);
    script.push(b"\n", now);
    spoken(script, now)
}

fn spoken(script: &mut Script, now: Duration) -> Vec<String> {
    let lines = core::iter::from_fn(|| script.next_line(now));
    lines.map(|line| String::from_utf8(line.bytes).unwrap().trim_end().to_string()).collect()
}

const TWO_SESSIONS: [&str; 8] = [
    r#">{"id":1,"method":"prompt","params":{"sessionId":"a","x":1}}"#,
    r#">{"id":2,"method":"prompt","params":{"sessionId":"b","x":2}}"#,
    r#"<{"method":"started","params":{"sessionId":"c","parentSessionId":"a","childSessionId":"c"}}"#,
    r#"<{"id":2,"result":"b"}"#,
    r#"<{"method":"event","params":{"sessionId":"c"}}"#,
    r#"<{"method":"event","params":{"sessionId":"b"}}"#,
    r#"<{"id":1,"result":"a"}"#,
    r#"<not for anybody"#,
];

#[test]
fn strict_waits_for_all_before_except_with_answers() {
    let mut script = script(&TWO_SESSIONS, Matching::Strict, Timing::Dropped);
    let said = say(&mut script, r#"{"id":11,"method":"prompt","params":{"sessionId":"A"}}"#, START);
    assert_eq!(said, [r#"{"id":11,"result":"a"}"#]);
    let all = say(&mut script, r#"{"id":12,"method":"prompt","params":{"sessionId":"B"}}"#, START);
    let expected = [
        r#"{"method":"started","params":{"sessionId":"c","parentSessionId":"A","childSessionId":"c"}}"#,
        r#"{"id":12,"result":"b"}"#,
        r#"{"method":"event","params":{"sessionId":"c"}}"#,
        r#"{"method":"event","params":{"sessionId":"B"}}"#,
        "not for anybody",
    ];
    assert_eq!(all, expected);
    script.end_input();
    assert!(script.departures().is_empty(), "{:?}", script.departures());
}

#[test]
fn loose_goes_by_params_and_session() {
    let mut script = script(&TWO_SESSIONS, Matching::Loose, Timing::Dropped);
    let said = say(&mut script, r#"{"id":12,"method":"prompt","params":{"sessionId":"B","x":2}}"#, START);
    let expected = [r#"{"id":12,"result":"b"}"#, r#"{"method":"event","params":{"sessionId":"B"}}"#, "not for anybody"];
    assert_eq!(said, expected);
    // A session that stands for another one already.
    let said = say(&mut script, r#"{"id":13,"method":"prompt","params":{"sessionId":"B","x":1}}"#, START);
    assert!(said.len() == 1 && said[0].contains("error"), "{said:?}");
    let said = say(&mut script, r#"{"id":11,"method":"prompt","params":{"sessionId":"A","x":1}}"#, START);
    assert_eq!(said.len(), 3, "{said:?}");
    script.end_input();
    assert_eq!(script.departures().len(), 1, "{:?}", script.departures());
}

#[test]
fn who_comes_too_early_is_served_and_told() {
    let lines = [
        r#">{"id":1,"method":"one"}"#,
        r#"<{"id":1,"result":1}"#,
        r#">{"id":2,"method":"two"}"#,
        r#"<{"id":2,"result":2}"#,
        r#">{"id":3,"method":"shutdown"}"#,
        r#"<{"id":3,"result":3}"#,
    ];
    let mut script = script(&lines, Matching::Strict, Timing::Dropped);
    assert_eq!(say(&mut script, r#"{"id":"x","method":"two"}"#, START), [r#"{"id":"x","result":2}"#]);
    assert_eq!(say(&mut script, r#"{"id":"y","method":"one"}"#, START), [r#"{"id":"y","result":1}"#]);
    assert!(!script.has_ended());
    assert_eq!(say(&mut script, r#"{"id":"z","method":"shutdown"}"#, START), [r#"{"id":"z","result":3}"#]);
    assert!(script.has_ended());
    script.end_input();
    let told: Vec<_> = script.departures().iter().map(Departure::to_string).collect();
    assert_eq!(
        told,
        [
            "the client sent the request `two` (line 3 of the recording) before the request `one` (line 1 of the recording)"
        ]
    );
}

#[test]
fn times_count_from_the_line_that_was_waited_for() {
    let lines = [r#"<hello"#, r#">{"id":1,"method":"one"}"#, r#"<a"#, r#"<{"id":1,"result":1}"#];
    let mut script = script(&lines, Matching::Strict, Timing::Kept);
    assert_eq!(spoken(&mut script, START), ["hello"]);
    assert_eq!(script.next_at(), None);
    let second = Duration::from_secs(1);
    assert!(say(&mut script, r#"{"id":1,"method":"one"}"#, 10 * second).is_empty());
    assert_eq!(script.next_at(), Some(11 * second));
    assert_eq!(spoken(&mut script, 11 * second), ["a"]);
    assert_eq!(spoken(&mut script, 12 * second), [r#"{"id":1,"result":1}"#]);
    assert_eq!(script.next_at(), None);
}

#[test]
fn requests_of_the_runtime_are_answered_by_their_id() {
    let lines = [r#"<{"id":"q","method":"ask"}"#, r#">{"id":"q","result":true}"#, "<thanks"];
    let mut script = script(&lines, Matching::Strict, Timing::Dropped);
    assert_eq!(spoken(&mut script, START), [r#"{"id":"q","method":"ask"}"#]);
    assert!(say(&mut script, r#"{"id":"other","result":true}"#, START).is_empty());
    assert_eq!(say(&mut script, r#"{"id":"q","result":false}"#, START), ["thanks"]);
    assert_eq!(script.departures().len(), 1);
}

/// As the reference answers: numbers and strings in a spelling of its own.
#[test]
fn ids_match_by_value() {
    let lines = [
        r#">{"id":1.0,"method":"one"}"#,
        r#"<{"id":1,"result":1}"#,
        r#">{"id":"\u0061","method":"two"}"#,
        r#"<{"id":"a","result":2}"#,
        r#"<{"id":"\u0071","method":"ask"}"#,
        r#">{"id":"q","result":3}"#,
        "<thanks",
    ];
    for matching in [Matching::Strict, Matching::Loose] {
        let mut script = script(&lines, matching, Timing::Dropped);
        assert_eq!(say(&mut script, r#"{"id":7,"method":"one"}"#, START), [r#"{"id":7,"result":1}"#]);
        let said = say(&mut script, r#"{"id":8,"method":"two"}"#, START);
        assert_eq!(said, [r#"{"id":8,"result":2}"#, r#"{"id":"\u0071","method":"ask"}"#]);
        assert_eq!(say(&mut script, r#"{"id":"q","result":3}"#, START), ["thanks"]);
        script.end_input();
        assert!(script.departures().is_empty(), "{:?}", script.departures());
    }
}

#[test]
fn sessions_are_known_however_they_are_written() {
    let lines = [
        r#">{"id":1,"method":"prompt","params":{"sessionId":"\u00e9","text":"\u00e8"}}"#,
        r#"<{"method":"event","params":{"sessionId":"é"}}"#,
        r#">{"id":2,"method":"prompt","params":{"sessionId":"é","text":"è"}}"#,
        r#"<{"method":"event","params":{"sessionId":"\u00E9"}}"#,
    ];
    for matching in [Matching::Strict, Matching::Loose] {
        let mut script = script(&lines, matching, Timing::Dropped);
        for session in ["ü", r"\u00fc"] {
            let line =
                alloc::format!(r#"{{"id":3,"method":"prompt","params":{{"sessionId":"{session}","text":"è"}}}}"#);
            assert_eq!(say(&mut script, &line, START), [r#"{"method":"event","params":{"sessionId":"ü"}}"#]);
        }
        script.end_input();
        assert!(script.departures().is_empty(), "{:?}", script.departures());
    }
}

/// The recorded client asked twice at once; this one asks again when it has been answered.
#[test]
fn an_answer_waits_for_its_request_only() {
    let lines = [
        r#">{"id":1,"method":"one"}"#,
        r#">{"id":2,"method":"two"}"#,
        r#"<{"id":1,"result":1}"#,
        r#"<event"#,
        r#"<{"id":2,"result":2}"#,
    ];
    for matching in [Matching::Strict, Matching::Loose] {
        let mut script = script(&lines, matching, Timing::Dropped);
        assert_eq!(say(&mut script, r#"{"id":1,"method":"one"}"#, START), [r#"{"id":1,"result":1}"#]);
        assert_eq!(say(&mut script, r#"{"id":2,"method":"two"}"#, START), ["event", r#"{"id":2,"result":2}"#]);
        script.end_input();
        assert!(script.departures().is_empty(), "{:?}", script.departures());
    }
    // One that asks faster than the recorded one hears the event after the answer all the same.
    let mut script = script(&lines, Matching::Strict, Timing::Kept);
    script.push(b"{\"id\":1,\"method\":\"one\"}\n{\"id\":2,\"method\":\"two\"}\n", START);
    let second = Duration::from_secs(1);
    assert_eq!(script.next_at(), Some(2 * second));
    assert_eq!(spoken(&mut script, 2 * second), [r#"{"id":1,"result":1}"#, "event"]);
    assert_eq!(spoken(&mut script, 3 * second), [r#"{"id":2,"result":2}"#]);
}

#[test]
fn a_call_that_was_given_up_is_no_end() {
    let lines = [r#">{"id":1,"method":"one"}"#, r#">{"id":2,"method":"two"}"#, r#"<{"id":2,"result":2}"#];
    let mut given_up = script(&lines, Matching::Strict, Timing::Dropped);
    assert!(say(&mut given_up, r#"{"id":1,"method":"one"}"#, START).is_empty());
    assert_eq!(say(&mut given_up, r#"{"id":2,"method":"two"}"#, START).len(), 1);
    assert!(!given_up.has_ended());
    // As when the runtime has died.
    let mut died = script(&lines[..1], Matching::Strict, Timing::Dropped);
    assert!(!died.has_ended());
    assert!(say(&mut died, r#"{"id":1,"method":"one"}"#, START).is_empty());
    assert!(died.has_ended());
}

#[test]
fn what_a_recording_says_it_misses_may_be_any_number() {
    let entry = || Entry { at: START, direction: Direction::Stderr, what: What::Lost(u64::MAX) };
    let script = Script::new([entry(), entry()], Matching::Strict, Timing::Dropped);
    assert_eq!(script.lost(), u64::MAX);
}

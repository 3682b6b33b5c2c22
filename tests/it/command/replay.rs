//! `replay`: a recording in the place of the runtime.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use super::{Folder, dsh_wire, exits, stderr, stdout, with_stdin};
use crate::recording::{self, Direction};

fn replayed(file: &str, options: &[&str], input: &[u8]) -> Output {
    with_stdin(dsh_wire(["replay", file].iter().chain(options)), input, 1 << 20)
}

#[test]
fn every_recording_answers_its_own_client_as_then() {
    for recording in recording::all() {
        let path = recording::fixtures().join(&recording.name).with_extension("jsonl");
        let asked = recording.stream(Direction::ClientToServer);
        let answered = recording.stream(Direction::ServerToClient);
        let strict = replayed(path.to_str().unwrap(), &[], &asked);
        exits(&strict, 0);
        assert!(strict.stdout == answered, "{}: {}", recording.name, stdout(&strict));
        let loose = replayed(path.to_str().unwrap(), &["--loose"], &asked);
        exits(&loose, 0);
        let lines = |bytes: &[u8]| {
            let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            lines.sort();
            lines
        };
        assert!(lines(&loose.stdout) == lines(&answered), "{}", recording.name);
    }
}

/// Recorded with the embedded runtime; then the same client with the recording, which knows neither the ids that it will
/// ask with nor its session.
#[test]
fn a_run_gives_the_same_result() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let this = env!("CARGO_BIN_EXE_dsh-wire");
    for prompt in ["hello", "@bash echo hi", "@think hm | so", "@agent @say done", "@error 400"] {
        let recorded =
            dsh_wire(["run", prompt, "--", this, "tap", "--log", &log, "--", this, "serve"]).output().unwrap();
        for options in [&[][..], &["--loose"], &["--timing"]] {
            let replay = ["run", prompt, "--", this, "replay", &log];
            let again = dsh_wire(replay.iter().chain(options)).output().unwrap();
            assert_eq!(again, recorded, "{prompt} {options:?}: {}{}", stdout(&again), stderr(&again));
        }
    }
    // Every notification and the result, in the same order.
    let json = |runtime: &[&str]| {
        let command = ["run", "@tools 3 true", "--json", "--session", "s", "--"];
        dsh_wire(command.iter().chain(runtime)).output().unwrap()
    };
    let recorded = json(&[this, "tap", "--log", &log]);
    exits(&recorded, 0);
    assert!(stdout(&recorded).lines().count() > 10);
    assert_eq!(stdout(&json(&[this, "replay", &log])), stdout(&recorded));
}

const TWO: &str = r#"{"t":0.0,"dir":"err","frame":"starting"}
{"t":0.1,"dir":"c2s","frame":"{\"id\":1,\"method\":\"initialize\"}"}
{"t":0.5,"dir":"s2c","frame":"{\"id\":1,\"result\":{}}"}
{"t":0.6,"dir":"c2s","frame":"{\"id\":2,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"x\":1}}"}
{"t":0.7,"dir":"s2c","frame":"{\"method\":\"session.status\",\"params\":{\"sessionId\":\"s\"}}","eol":true}
{"t":0.8,"dir":"s2c","frame":"{\"id\":2,\"result\":{\"messageId\":\"m\"}}"}
"#;

#[test]
fn ids_and_sessions_are_those_of_the_client() {
    let folder = Folder::new();
    let file = folder.file("two", TWO.as_bytes());
    let asked = br#"{"id":"first","method":"initialize"}
{"id":7.0,"method":"session/prompt","params":{"sessionId":"\u0061b","x":2}}
"#;
    let output = replayed(&file, &["--profile", "sdk"], asked);
    exits(&output, 0);
    let expected = r#"{"id":"first","result":{}}
{"method":"session.status","params":{"sessionId":"ab"}}
{"id":7.0,"result":{"messageId":"m"}}
"#;
    assert_eq!(stdout(&output), expected);
    assert_eq!(stderr(&output), "starting\n");
}

#[test]
fn departures_are_told_and_end_in_5() {
    let folder = Folder::new();
    let file = folder.file("two", TWO.as_bytes());
    let output = replayed(&file, &[], b"{\"id\":1,\"method\":\"initialize\"}\n{\"id\":9,\"method\":\"nope\"}\n");
    exits(&output, 5);
    let refused =
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"this request is not in the recording"}}"#;
    assert!(stdout(&output).lines().any(|line| line == refused), "{}", stdout(&output));
    let expected = "starting
dsh-wire replay: the client sent the request `nope`, which the recording does not have here; it goes on with the request `session/prompt` (line 4 of the recording)
dsh-wire replay: the client has never sent the request `session/prompt` (line 4 of the recording)
error: the client departed from the recording 2 times
";
    assert_eq!(stderr(&output), expected);
    // By its params, this prompt is not the one recorded.
    let asked = br#"{"id":1,"method":"initialize"}
{"id":2,"method":"session/prompt","params":{"sessionId":"s","x":2}}
"#;
    exits(&replayed(&file, &["--loose"], asked), 5);
    exits(&replayed(&file, &[], asked), 0);
}

#[test]
fn timing_is_kept_where_wanted() {
    let folder = Folder::new();
    let file = folder.file("two", TWO.as_bytes());
    let start = Instant::now();
    let output = replayed(&file, &["--timing"], b"{\"id\":1,\"method\":\"initialize\"}\n");
    assert!(start.elapsed() >= Duration::from_millis(400), "{:?}", start.elapsed());
    assert!(stdout(&output).contains(r#"{"id":1,"result":{}}"#));
}

#[test]
fn what_is_no_recording_is_told() {
    let folder = Folder::new();
    let file = folder.file("bad", b"{\"t\":0,\"dir\":\"c2s\",\"frame\":\"\"}\nnoise\n");
    let output = replayed(&file, &[], b"");
    exits(&output, 2);
    assert!(stderr(&output).contains("line 2 is no entry of a recording: "), "{}", stderr(&output));
    fs::remove_file(&file).unwrap();
    let output = replayed(&file, &[], b"");
    exits(&output, 2);
    assert!(stderr(&output).starts_with("error: cannot open '"), "{}", stderr(&output));
}

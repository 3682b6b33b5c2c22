//! `replay`: a recording in the place of the runtime.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use super::{Folder, Running, dsh_wire, exits, stderr, stdout, with_stdin};
use crate::faulty::within;
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

/// Nobody is there to hear what comes in a minute.
#[test]
fn a_client_that_is_gone_is_not_waited_for() {
    let folder = Folder::new();
    let file = folder.file("two", TWO.replace("\"t\":0.5", "\"t\":60").as_bytes());
    let mut child =
        Running(dsh_wire(["replay", "--timing", &file]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    child.0.stdin.take().unwrap().write_all(b"{\"id\":1,\"method\":\"initialize\"}\n").unwrap();
    assert!(child.0.try_wait().unwrap().is_none());
    drop(child.0.stdout.take());
    let status = within(Duration::from_secs(20), || child.0.wait().unwrap());
    assert_eq!(status.code(), Some(5), "it has not asked all");
}

#[test]
fn a_recording_that_breaks_off_is_told_and_replayed() {
    let folder = Folder::new();
    let file = folder.file("torn", format!("\u{feff}{TWO}{{\"t\":0.9,\"dir\":\"s2").as_bytes());
    let asked = br#"{"id":1,"method":"initialize"}
{"id":2,"method":"session/prompt","params":{"sessionId":"s","x":1}}
"#;
    let output = replayed(&file, &[], asked);
    exits(&output, 0);
    assert_eq!(stdout(&output).lines().count(), 3);
    let told =
        "dsh-wire replay: line 7 is no entry of a recording: the last line breaks off: it is left out\nstarting\n";
    assert_eq!(stderr(&output), told);
}

/// A line that the recorder has in pieces is one line, for either side.
#[test]
fn pieces_of_lines_are_joined() {
    let folder = Folder::new();
    let pieces = r#"{"t":0,"dir":"c2s","frame":"{\"id\":1,","eol":false}
{"t":0,"dir":"s2c","frame":"{\"id\":1","eol":false}
{"t":0,"dir":"c2s","frame":"\"method\":\"initialize\"}"}
{"t":0,"dir":"s2c","frame":",\"result\":{}}"}
{"t":0,"dir":"s2c","frame":"half","eol":false}
"#;
    let file = folder.file("pieces", pieces.as_bytes());
    let output = replayed(&file, &[], b"{\"id\":\"mine\",\"method\":\"initialize\"}\n");
    exits(&output, 0);
    assert_eq!(stdout(&output), "{\"id\":\"mine\",\"result\":{}}\nhalf");
}

#[test]
fn a_redacted_recording_is_matched_by_what_is_left() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let this = env!("CARGO_BIN_EXE_dsh-wire");
    let tap = [
        "run",
        "my secret",
        "--session",
        "/home/me",
        "--",
        this,
        "tap",
        "--redact",
        "--log",
        &log,
        "--",
        this,
        "serve",
    ];
    exits(&dsh_wire(tap).output().unwrap(), 0);
    assert!(!fs::read_to_string(&log).unwrap().contains("my secret"));
    let again = |prompt: &str, options: &[&str]| {
        let mut run =
            dsh_wire(["run", prompt, "--session", "/home/you/or/me", "--cwd", "/", "--", this, "replay", &log]);
        run.args(options).output().unwrap()
    };
    for options in [&[][..], &["--loose"]] {
        let output = again("mysecret!", options);
        exits(&output, 0);
        assert_eq!(stderr(&output), "", "{options:?}");
        assert_eq!(stdout(&output), format!("{}\n", "*".repeat("echo: my secret".len())));
    }
    // One of another length is another prompt.
    exits(&again("no secret at all", &["--loose"]), 1);
    exits(&again("no secret at all", &[]), 0);
}

#[test]
fn departures_are_seen_in_a_run_that_went_well() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let this = env!("CARGO_BIN_EXE_dsh-wire");
    exits(&dsh_wire(["run", "hello", "--", this, "tap", "--log", &log, "--", this, "serve"]).output().unwrap(), 0);
    let mut recording = fs::read_to_string(&log).unwrap();
    recording.insert_str(0, "{\"t\":0,\"dir\":\"c2s\",\"frame\":\"{\\\"method\\\":\\\"hi\\\"}\"}\n");
    fs::write(&log, recording).unwrap();
    let output = dsh_wire(["run", "hello", "--", this, "replay", &log]).output().unwrap();
    exits(&output, 0);
    assert_eq!(stdout(&output), "echo: hello\n");
    assert!(stderr(&output).contains("note: the runtime exited with code 5\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("the client has never sent the notification `hi`"), "{}", stderr(&output));
}

#[test]
fn why_there_is_no_replay_is_told_once() {
    let this = env!("CARGO_BIN_EXE_dsh-wire");
    let output = dsh_wire(["run", "hello", "--", this, "replay", "/no/such/file"]).output().unwrap();
    exits(&output, 3);
    assert_eq!(stderr(&output).matches("cannot open '/no/such/file'").count(), 1, "{}", stderr(&output));
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

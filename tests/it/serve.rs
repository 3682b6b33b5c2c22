//! The embedded runtime as a process: what it sends, and how it ends.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use dsh_wire::json::Json;
use rustix::process::Signal;

use crate::recording::{self, Direction};
use crate::runtime::{Folder, INITIALIZE, Runtime, command, prompt, shape};

/// The runtime sends what the official one was recorded to send, frame by frame, when the client does what it did.
#[test]
fn the_frames_of_the_recordings() {
    for name in [
        "handshake-plain",
        "before-initialize",
        "content-blocks-multi",
        "thinking-two-turns",
        "max-tokens",
        "model-error-400",
        "model-error-500-once",
        "model-cut",
        "tool-call",
        "tool-unknown",
        "unicode-answer",
        "u2028",
        "crlf",
        "initialize-failed-after-good",
        "initialize-twice-second-route",
        "session-id-dots",
        "unknown-method",
        "wait-calls",
        "client-notification",
    ] {
        let folder = Folder::new();
        let mut runtime = Runtime::start();
        let workspace = folder.0.display().to_string();
        // Lines that were written together are written together.
        let mut requests = String::new();
        for (index, row) in recording::named(name).rows.iter().enumerate() {
            let frame = String::from_utf8(row.bytes.clone()).unwrap();
            if row.dir == Direction::ClientToServer {
                requests += &frame.replace("/workspace", &workspace);
                requests.push('\n');
                continue;
            }
            runtime.writes(&std::mem::take(&mut requests));
            let ours = runtime.hears();
            let [official, ours] = [&*frame, &ours].map(|frame| shape(Json::new(frame).unwrap(), ""));
            assert_eq!(official, ours, "{name}: line {}", index + 1);
        }
        assert_eq!(runtime.ends_well(), [""; 0], "{name}");
    }
}

/// An image is taken in by its hash, or refused in the words of the recording.
#[test]
fn images_are_looked_at() {
    let mut runtime = Runtime::ready();
    let recording = recording::named("prompt-image");
    let rows: Vec<_> =
        recording.rows.iter().map(|row| (row.dir, String::from_utf8(row.bytes.clone()).unwrap())).collect();
    let answer = |id: &str| {
        let is_it = |json: Json<'_>| json.member("id").is_some_and(|own| own.get() == id);
        rows.iter()
            .find(|(dir, text)| *dir == Direction::ServerToClient && is_it(Json::new(text).unwrap()))
            .unwrap()
            .1
            .clone()
    };
    let mut compared = 0;
    for (_, text) in
        rows.iter().filter(|(dir, text)| *dir == Direction::ClientToServer && text.contains("session/prompt"))
    {
        runtime.says(text);
        let id = Json::new(text).unwrap().member("id").unwrap().get().to_owned();
        let official = answer(&id);
        if official.contains("\"result\"") {
            let receipt = runtime.hears();
            // A PNG is kept as it is by the official runtime too.
            let theirs = rows.iter().find(|(_, text)| text.contains("\"inserted\":[{")).unwrap().1.clone();
            let [theirs, ours] = [&theirs, &receipt].map(|text| {
                let data =
                    Json::new(text).unwrap().member("params").unwrap().member("event").unwrap().member("data").unwrap();
                data.member("inserted").unwrap().elements().next().unwrap().member("content").unwrap().to_buf()
            });
            assert_eq!(theirs.as_json().get(), ours.as_json().get());
            runtime.hears_from("idle");
        } else if official.contains("The first argument must be") {
            assert!(runtime.hears().contains("Image data must be a string, not a number."));
        } else {
            assert_eq!(runtime.hears(), official);
        }
        compared += 1;
    }
    assert!(compared >= 6, "{compared}");
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

#[test]
fn a_prompt_in_a_turn_waits_for_the_next() {
    let mut runtime = Runtime::ready();
    runtime.says(&prompt("1", "s", "@slow 60 never"));
    runtime.hears_from("session/title");
    for (id, start) in [("2", 0), ("3", 1)] {
        runtime.says(&prompt(id, "s", "queued"));
        let receipt = runtime.hears();
        assert!(receipt.contains(&format!(r#""target":"next-turn","start":{start},"inserted""#)), "{receipt}");
        assert!(runtime.hears().contains(&format!(r#""id":"{id}","result""#)));
    }
    // Shutdown in mid-turn: no further notification.
    runtime.says(r#"{"id":"w","method":"session/wait","params":{"sessionId":"s"}}"#);
    runtime.says(r#"{"id":"bye","method":"shutdown"}"#);
    let lines = runtime.ends_well();
    assert_eq!(lines, [r#"{"jsonrpc":"2.0","id":"w","result":{}}"#, r#"{"jsonrpc":"2.0","id":"bye","result":{}}"#]);
}

#[test]
fn the_end_of_input() {
    // What was read is answered, then it ends; a line without its end is no line.
    let mut runtime = Runtime::start();
    runtime.says(INITIALIZE);
    runtime.says(r#"{"id":1,"method":"nope"}"#);
    write!(runtime.stdin.as_mut().unwrap(), r#"{{"id":2,"method":"nope"}}"#).unwrap();
    runtime.stdin = None;
    assert_eq!(runtime.ends_well().len(), 2);

    let mut runtime = Runtime::ready();
    runtime.says(&prompt("1", "s", "@slow 60 never"));
    runtime.hears_from(r#""id":"1""#);
    runtime.says(r#"{"id":"w","method":"session/wait","params":{"sessionId":"s"}}"#);
    runtime.stdin = None;
    assert_eq!(runtime.ends_well().last().unwrap(), r#"{"jsonrpc":"2.0","id":"w","result":{}}"#);
}

#[test]
fn signals() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        for text in ["hello", "@slow 60 never", "@bash sleep 60"] {
            let mut runtime = Runtime::ready();
            runtime.says(&prompt("1", "s", text));
            runtime.hears_from(match text {
                "hello" => "idle",
                "@slow 60 never" => "session/title",
                _ => "tool/call",
            });
            runtime.signal(signal);
            let (lines, status, stderr) = runtime.ends();
            assert_eq!((lines.len(), status.code(), &*stderr), (0, Some(code), ""), "{text}: {status} {lines:?}");
        }
    }
}

#[test]
fn a_client_that_closes_the_output() {
    let mut child = command(None).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{INITIALIZE}").unwrap();
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), status.signal()), (Some(1), None));
    assert!(stderr.starts_with("error: cannot write to the client: ") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn files_and_sockets_serve_as_well() {
    let folder = Folder::new();
    let (input, output) = (folder.0.join("in"), folder.0.join("out"));
    std::fs::write(&input, format!("{INITIALIZE}\n")).unwrap();
    let mut from_file = command(None);
    from_file.stdin(File::open(&input).unwrap()).stdout(File::create(&output).unwrap());
    assert_eq!(from_file.status().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_to_string(&output).unwrap().lines().count(), 1);

    let mut from_null = command(None);
    from_null.stdin(Stdio::null()).stdout(Stdio::null());
    assert_eq!(from_null.status().unwrap().code(), Some(0));

    let mut from_folder = command(None);
    from_folder.stdin(File::open(&folder.0).unwrap());
    let output = from_folder.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.starts_with("error: cannot read from the client: "), "{stderr}");

    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut on_socket = command(None);
    on_socket.stdin(std::os::fd::OwnedFd::from(theirs.try_clone().unwrap()));
    on_socket.stdout(std::os::fd::OwnedFd::from(theirs.try_clone().unwrap()));
    let mut child = on_socket.spawn().unwrap();
    drop(on_socket);
    writeln!(&ours, "{INITIALIZE}").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // Blocking again, as it was.
    let flags = rustix::fs::fcntl_getfl(&theirs).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    drop(theirs);
    let mut answer = String::new();
    (&ours).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("serverInfo"), "{answer}");
}

#[test]
fn sessions_are_kept_and_resumed() {
    let home = Folder::new();
    let resume = r#"{"id":"r","method":"session/resume","params":{"sessionId":"keep/ \ud83d"}}"#;
    let mut first = Runtime::start_at(Some(&home.0));
    first.says(INITIALIZE);
    first.hears_from(r#""id":"i""#);
    first.says(resume);
    assert!(first.hears().contains("not found"));
    first.says(&prompt("1", r"keep/ \ud83d", "hello"));
    let last = first.hears_from("turn/end");
    assert!(last.contains(r#""seq":13"#), "{last}");

    let mut second = Runtime::start_at(Some(&home.0));
    second.says(INITIALIZE);
    second.hears_from(r#""id":"i""#);
    second.says(resume);
    assert!(second.hears().contains("is already owned by an active write handle"));
    second.says(&prompt("1", r"keep/ \ud83d", "hello"));
    assert!(second.hears().contains("already exists"));

    // Killed in mid-turn: what was told is kept.
    first.hears_from("idle");
    first.says(&prompt("2", r"keep/ \ud83d", "@slow 60 never"));
    first.hears_from("step/start");
    first.signal(Signal::KILL);
    first.child.wait().unwrap();
    second.says(resume);
    assert!(second.hears().contains(r#""id":"r","result":{}"#));
    second.says(resume);
    assert!(second.hears().contains("already open"));
    second.says(&prompt("3", r"keep/ \ud83d", "after"));
    assert!(second.hears_from("turn/start").contains(r#""data":{"turn":3}"#));
    assert!(second.hears_from("request/header").contains(r#""reason":"resume""#));
    assert!(second.hears_from("assistant/message").contains("echo: after"));
}

/// A stored session that cannot be counted on from is refused, and its file left as it was.
#[test]
fn corrupt_sessions_are_not_resumed() {
    let home = Folder::new();
    let sessions = home.0.join("dsh-wire").join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let file = sessions.join("sold.jsonl");
    let event = |seq: &str, time: &str, turn: &str| {
        format!(r#"{{"type":"turn/start","seq":{seq},"time":{time},"data":{{"turn":{turn}}}}}"#) + "\n"
    };
    let mut runtime = Runtime::start_at(Some(&home.0));
    runtime.says(INITIALIZE);
    runtime.hears_from(r#""id":"i""#);
    let resume = r#"{"id":"r","method":"session/resume","params":{"sessionId":"old"}}"#;
    for (line, what) in [
        (event("1", "5", "18446744073709551615"), r#"\"turn\" is not a whole number from 0 to 9007199254740991"#),
        (event("1", "5", "9007199254740992"), r#"\"turn\" is not"#),
        (event("1", "5", r#""2""#), r#"\"turn\" is not"#),
        (event("18446744073709551615", "5", "2"), r#"\"seq\" is not"#),
        (event("18446744073709551613", "5", "2"), r#"\"seq\" is not"#),
        (event("-1", "5", "2"), r#"\"seq\" is not"#),
        (event("1", "1e300", "2"), r#"\"time\" is not"#),
        ("{}\n".to_owned(), "no event"),
    ] {
        // The second line is one that a crash has cut.
        let log = event("0", "5", "1") + "{\"type\":\"turn\n" + &line;
        std::fs::write(&file, &log).unwrap();
        runtime.says(resume);
        let answer = runtime.hears();
        let expected = format!("{} is corrupt: line 3: {what}", file.display());
        assert!(answer.contains(&expected), "{line}: {answer}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), log);
    }
    std::fs::write(&file, event("9007199254740991", "5", "9007199254740991")).unwrap();
    runtime.says(resume);
    assert!(runtime.hears().contains(r#""id":"r","result":{}"#));
    runtime.says(&prompt("1", "old", "after"));
    assert!(runtime.hears_from("turn/start").contains(r#""data":{"turn":9007199254740992}"#));
}

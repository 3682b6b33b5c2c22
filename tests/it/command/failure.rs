//! Every exit code, each from a runtime that deserves it.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Folder, RUNTIME, Running, dsh_wire, exits, ready, stderr, stdout, with_runtime};
use crate::faulty::slack;

/// The first line of stderr is one of ours, and nothing went to stdout.
#[track_caller]
fn fails(args: &[&str], script: &str, code: i32, error: &str) -> String {
    let output = with_runtime(args, script).output().unwrap();
    exits(&output, code);
    assert_eq!(stdout(&output), "");
    let text = stderr(&output);
    assert_eq!(text.lines().next(), Some(error), "{text}");
    text
}

#[test]
fn a_turn_that_ends_in_an_error_is_1() {
    let output = dsh_wire(["run", "@error 400"]).output().unwrap();
    exits(&output, 1);
    let expected = "error: the turn ended in an error
  code: INVALID_REQUEST
  message: fake error 400
  status: 400
";
    assert_eq!((&*stdout(&output), &*stderr(&output)), ("", expected));
    // What came of it is shown all the same.
    let script = ready(
        r#"take; receipt; say partly; finish '{"kind":"error","error":{"message":"no","code":"X"}}'; cat > /dev/null"#,
    );
    let output = with_runtime(&["run", "x"], &script).output().unwrap();
    exits(&output, 1);
    assert_eq!(stdout(&output), "partly\n");
}

#[test]
fn the_oldest_revision_can_fail_too() {
    let script = ready(
        r#"take; say partly; tell session.finished '"status":"error","reason":"no more"';
           answer '"result":{"accepted":true}'; cat > /dev/null"#,
    );
    let output = with_runtime(&["run", "x"], &script).output().unwrap();
    exits(&output, 1);
    assert_eq!(stderr(&output), "error: the turn ended in an error\n  message: no more\n");
}

#[test]
fn a_turn_that_ends_early_is_0_with_a_note() {
    let output = dsh_wire(["run", "@maxtokens cut off"]).output().unwrap();
    exits(&output, 0);
    let note = "note: the answer was cut at the limit of tokens\n";
    assert_eq!((&*stdout(&output), &*stderr(&output)), ("cut off\n", note));
    let script = ready(r#"take; receipt; finish '{"kind":"blocked"}'; cat > /dev/null"#);
    let output = with_runtime(&["run", "x"], &script).output().unwrap();
    exits(&output, 0);
    assert_eq!(stderr(&output), "note: the turn did not complete: blocked\n");
}

#[test]
fn an_answer_with_an_error_is_1() {
    let output = dsh_wire(["run", "--provider", "nobody", "x"]).output().unwrap();
    exits(&output, 1);
    let expected = "error: cannot call initialize: the runtime answered with an error
  code: -32603
  message: no adapter registered for provider \"nobody\"
";
    assert_eq!(stderr(&output), expected);
}

#[test]
fn misuse_is_2() {
    let folder = Folder::new();
    let text = folder.file("text.png", b"no image");
    let (missing, directory) = ("/no/such/image", "/");
    for args in [
        &["run"][..],
        &["run", "x", "y"],
        &["run", "x", "--max-tokens", "0"],
        &["run", "x", "--max-tokens", "9007199254740992"],
        &["run", "x", "--reasoning-effort", ""],
        &["run", "x", "--timeout", "-1"],
        &["run", "x", "--timeout", "nan"],
        &["run", "--no-such-option"],
        &["run", "-x"],
        &["run", "x", "--timeout", "soon"],
        &["run", "x", "--resume"],
        &["run", "x", "--pass-env", "A"],
        &["run", "x", "--env", "A"],
        &["run", "x", "--env", "=A"],
        &["run", "x", "--image", &text],
        &["run", "x", "--image", missing],
        &["run", "x", "--image", directory],
        &["run", "x", "--", "no-such-runtime-anywhere"],
        &["run", "x", "--", "/"],
        &["call", "m", "{"],
        &["call", "m", "--", "/etc/passwd"],
        &["call"],
        &["inspect", "--limit", "x"],
        &["nope"],
        &[],
    ] {
        let output = dsh_wire(args).output().unwrap();
        exits(&output, 2);
        assert_eq!(stdout(&output), "", "{args:?}");
        assert!(!stderr(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn a_runtime_that_cannot_be_started_is_named() {
    let output = dsh_wire(["run", "x", "--", "no-such-runtime-anywhere"]).output().unwrap();
    assert_eq!(stderr(&output), "error: cannot start \"no-such-runtime-anywhere\": there is no such program on PATH\n");
}

#[test]
fn a_runtime_that_is_gone_is_3() {
    let text = fails(
        &["run", "x"],
        &format!("{RUNTIME} take; echo one >&2; echo two >&2; exit 7"),
        3,
        "error: cannot call initialize: the runtime exited with code 7, and last said: two",
    );
    assert!(text.ends_with("  stderr of the runtime:\n    one\n    two\n"), "{text}");
    fails(
        &["run", "x", "--session", "s"],
        &ready("take; receipt; kill -9 $$"),
        3,
        "error: cannot finish the run on session \"s\": the runtime was killed by signal 9 (SIGKILL)",
    );
    fails(&["call", "m"], "exec >&-; cat > /dev/null", 3, "error: cannot call m: the runtime has closed its output");
}

#[test]
fn what_a_dead_runtime_said_cannot_command_the_terminal() {
    let text = fails(
        &["call", "m"],
        r"printf '\033[31mred\n' >&2; exit 1",
        3,
        r"error: cannot call m: the runtime exited with code 1, and last said: \u{1b}[31mred",
    );
    assert!(!text.contains('\x1b'));
}

#[test]
fn a_time_that_is_up_is_4() {
    let start = Instant::now();
    let ends_at_eof = "cat > /dev/null";
    let text = with_runtime(&["run", "x", "--timeout", "0.2"], ends_at_eof).output().unwrap();
    exits(&text, 4);
    assert!(stderr(&text).starts_with("error: cannot call initialize: timed out after 200ms\n"), "{}", stderr(&text));
    let text =
        with_runtime(&["run", "x", "--timeout", "0.2"], &ready("take; receipt; cat > /dev/null")).output().unwrap();
    exits(&text, 4);
    assert!(stderr(&text).starts_with("error: cannot finish the run on session "), "{}", stderr(&text));
    assert!(stderr(&text).contains(": timed out after 200ms\n"), "{}", stderr(&text));
    exits(&with_runtime(&["call", "m", "--timeout", "0"], ends_at_eof).output().unwrap(), 4);
    // Each waits a second for the answer to `shutdown`.
    assert!(start.elapsed() < Duration::from_secs(8) * slack());
}

/// The writer of a pipe is there and never writes, or never comes.
#[test]
fn a_time_that_is_up_while_the_input_is_read_is_4() {
    let folder = Folder::new();
    let pipe = folder.0.join("pipe").into_os_string().into_string().unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (input, _writer) = std::io::pipe().unwrap();
    for (args, attempted) in [
        (&["run", "look", "--image", &pipe][..], format!("read the image '{pipe}'")),
        (&["run", "-"], "read stdin".into()),
        (&["call", "m", "-"], "read stdin".into()),
    ] {
        let mut command = dsh_wire(args.iter().chain(&["--timeout", "0.2"]));
        let mut command = Running(command.stdin(input.try_clone().unwrap()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(command.ends("it ends").code(), Some(4));
        let said = io::read_to_string(command.0.stderr.take().unwrap()).unwrap();
        assert_eq!(said, format!("error: cannot {attempted}: timed out after 200ms\n"));
    }
}

/// Its writer goes on until nobody reads it any more.
#[test]
fn an_input_that_has_no_end_is_2() {
    for args in [&["run", "-"][..], &["call", "m", "-"]] {
        let mut command = dsh_wire(args);
        let mut command = Running(command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut stdin = command.0.stdin.take().unwrap();
        let writer = thread::spawn(move || std::iter::from_fn(|| stdin.write(&[b'x'; 4096]).ok()).sum::<usize>());
        assert_eq!(command.ends("it ends").code(), Some(2));
        let said = io::read_to_string(command.0.stderr.take().unwrap()).unwrap();
        assert_eq!(said, "error: cannot read stdin: it is larger than 16 MiB\n");
        let written = writer.join().unwrap();
        assert!((16 << 20..17 << 20).contains(&written), "{written}");
    }
}

#[test]
fn a_timeout_that_cannot_be_counted_to_is_none() {
    for timeout in ["1e19", "1e300", "1e400", "inf"] {
        let output = dsh_wire(["run", "x", "--timeout", timeout]).output().unwrap();
        exits(&output, 0);
    }
}

#[test]
fn a_broken_protocol_is_5() {
    let text = fails(
        &["run", "x"],
        &format!(r#"{RUNTIME} take; answer '"result":7'; cat > /dev/null"#),
        5,
        "error: cannot call initialize: the runtime broke the protocol",
    );
    assert!(text.ends_with("  came: 7\n"), "{text}");
    fails(
        &["run", "x", "--session", "s"],
        &ready(r#"take; answer '"result":{"messageId":5}'; cat > /dev/null"#),
        5,
        "error: cannot call session/prompt on session \"s\": the runtime broke the protocol",
    );
}

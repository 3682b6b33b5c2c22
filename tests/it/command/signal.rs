//! Ctrl-C, SIGTERM and SIGHUP.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

use super::{Folder, RUNTIME, dsh_wire, exits, ready, stderr, stdout, wait_until, with_runtime};
use crate::faulty::slack;

/// Runs the command in a process group of its own, whose members get `signals` one after the other, the first when the
/// runtime has written its process id. Returns how long the end took from then.
#[track_caller]
fn interrupted(make: impl FnOnce(&str) -> Command, signals: &[(Signal, Duration)]) -> (Output, Duration) {
    let folder = Folder::new();
    let file = folder.file("pid", b"");
    let child = make(&file).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pid = None;
    wait_until("the runtime starts", || {
        pid = fs::read_to_string(&file).unwrap().strip_suffix('\n').and_then(|pid| Pid::from_raw(pid.parse().unwrap()));
        pid.is_some()
    });
    let start = Instant::now();
    for (signal, after) in signals {
        std::thread::sleep(*after);
        kill_process_group(Pid::from_child(&child), *signal).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let took = start.elapsed();
    assert!(test_kill_process(pid.unwrap()).is_err(), "the runtime is left behind");
    (output, took)
}

const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn ctrl_c_ends_the_runtime_in_order() {
    let log = Folder::new();
    let log = log.file("log", b"");
    let (output, took) = interrupted(
        |file| {
            with_runtime(
                &["run", "x", "--session", "s"],
                &ready(&format!(
                    r#"take; receipt; echo $$ > {file}; take; echo "$line" > {log}; answer '"result":{{}}'
                       cat > /dev/null; echo end of input >> {log}"#
                )),
            )
        },
        &[(Signal::INT, AT_ONCE)],
    );
    exits(&output, 130);
    assert_eq!(stdout(&output), "");
    // The answer to the prompt may have been read by then, or not.
    let (attempted, reason) = ("error: cannot ", " on session \"s\": aborted: interrupted\n");
    assert!(stderr(&output).starts_with(attempted) && stderr(&output).ends_with(reason), "{}", stderr(&output));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains(r#""method":"shutdown""#) && log.ends_with("end of input\n"), "{log}");
    assert!(took < Duration::from_secs(5) * slack(), "{took:?}");
}

#[test]
fn ctrl_c_in_the_handshake() {
    let (output, took) = interrupted(
        |file| with_runtime(&["call", "m"], &format!("{RUNTIME} take; echo $$ > {file}; cat > /dev/null")),
        &[(Signal::INT, AT_ONCE)],
    );
    exits(&output, 130);
    assert_eq!(stderr(&output), "error: cannot call m: aborted: interrupted\n");
    assert!(took < Duration::from_secs(5) * slack(), "{took:?}");
}

#[test]
fn a_second_ctrl_c_ends_what_does_not_listen() {
    let (output, took) = interrupted(
        |file| {
            with_runtime(&["run", "x"], &format!("trap '' TERM INT; echo $$ > {file}; while :; do sleep 0.05; done"))
        },
        &[(Signal::INT, AT_ONCE), (Signal::INT, Duration::from_millis(300))],
    );
    exits(&output, 130);
    assert!(took < Duration::from_secs(3) * slack(), "the ladder has 12 s: {took:?}");
}

#[test]
fn sigterm_is_an_orderly_end_too() {
    let (output, _) = interrupted(
        |file| with_runtime(&["run", "x"], &format!("echo $$ > {file}; cat > /dev/null")),
        &[(Signal::TERM, AT_ONCE)],
    );
    exits(&output, 143);
}

/// As where the terminal's window is closed.
#[test]
fn sighup_leaves_no_runtime_that_ignores_everything() {
    let (output, _) = interrupted(
        |file| {
            let script = format!("trap '' HUP TERM INT; echo $$ > {file}; while :; do sleep 0.05; done");
            with_runtime(&["run", "x"], &script)
        },
        &[(Signal::HUP, AT_ONCE), (Signal::HUP, Duration::from_millis(300))],
    );
    exits(&output, 129);
}

#[test]
fn sighup_stays_ignored() {
    let output = Command::new("sh")
        .args(["-c", r#"trap '' HUP; "$0" run hello -- sh -c 'kill -HUP $PPID; exec "$0" serve' "$0""#])
        .arg(env!("CARGO_BIN_EXE_dsh-wire"))
        .output()
        .unwrap();
    exits(&output, 0);
    assert_eq!(stdout(&output), "echo: hello\n");
}

#[test]
fn three_in_one_moment_leave_no_runtime() {
    let (output, _) = interrupted(
        |file| {
            with_runtime(&["run", "x"], &format!("trap '' TERM INT; echo $$ > {file}; while :; do sleep 0.05; done"))
        },
        &[(Signal::INT, AT_ONCE), (Signal::INT, Duration::from_millis(10)), (Signal::INT, Duration::from_millis(10))],
    );
    // By the third itself, or by the second one where that was done first.
    assert!(output.status.signal() == Some(2) || output.status.code() == Some(130), "{output:?}");
}

#[test]
fn the_embedded_runtime_ends_with_the_command() {
    let (output, took) = interrupted(
        |file| dsh_wire(["run", &format!("@bash echo $$ > {file}; exec sleep 60")]),
        &[(Signal::INT, AT_ONCE)],
    );
    exits(&output, 130);
    assert!(took < Duration::from_secs(10) * slack(), "{took:?}");
}

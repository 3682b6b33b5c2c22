//! The command as a process among processes: what it prints, and the code that it exits with.

mod inspect;

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn dsh_wire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dsh-wire"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it with these bytes on stdin, in writes of `piece` bytes at most.
fn with_stdin(mut command: Command, bytes: &[u8], piece: usize) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || bytes.chunks(piece).try_for_each(|piece| stdin.write_all(piece)));
        child.wait_with_output().unwrap()
    })
}

#[track_caller]
fn exits(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(output), stderr(output));
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

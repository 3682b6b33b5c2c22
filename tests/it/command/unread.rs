//! Output that nobody reads: one signal, or the timeout, ends the command all the same.

use std::fs;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::termios::{Action, OptionalActions, tcflow, tcgetattr, tcsetattr};

use super::{Folder, Running, catches, dsh_wire, ready, wait_until, with_runtime};
use crate::faulty::slack;

/// A command that writes more than a pipe holds.
fn flood(args: &[&str]) -> Command {
    dsh_wire(["run", "--json", "@flood 300 1000"].iter().chain(args))
}

/// Starts a command with its output to a pipe that nobody reads; stderr goes there, too, where told.
fn unread(mut command: Command, stderr_too: bool) -> (Running, PipeReader) {
    let (output, input) = io::pipe().unwrap();
    if stderr_too {
        command.stderr(input.try_clone().unwrap());
    } else {
        command.stderr(Stdio::piped());
    }
    (Running(command.stdout(input).spawn().unwrap()), output)
}

/// Until this much waits to be read, and does not get more.
#[track_caller]
fn wait_until_full(output: impl AsFd, least: u64) {
    let (mut waiting, mut since) = (0, Instant::now());
    wait_until("what nobody reads is full", || {
        let before = std::mem::replace(&mut waiting, rustix::io::ioctl_fionread(&output).unwrap());
        if before != waiting {
            since = Instant::now();
        }
        before >= least && since.elapsed() > Duration::from_millis(50)
    });
}

/// Fills what nobody reads.
fn fill(to: impl AsFd) {
    let moment = Timespec::try_from(Duration::from_millis(50)).unwrap();
    rustix::io::ioctl_fionbio(&to, true).unwrap();
    while rustix::event::poll(&mut [PollFd::new(&to, PollFlags::OUT)], Some(&moment)).unwrap() > 0 {
        while rustix::io::write(&to, &[b'x'; 4096]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(&to, false).unwrap();
}

fn full_pipe() -> (PipeReader, io::PipeWriter) {
    let (output, input) = io::pipe().unwrap();
    fill(&input);
    (output, input)
}

/// Both ends of a terminal that passes on every byte as it is.
fn raw_terminal() -> (OwnedFd, OwnedFd) {
    let (ours, theirs) = crate::faulty::terminal();
    let mut modes = tcgetattr(&theirs).unwrap();
    modes.make_raw();
    tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
    (ours, theirs)
}

fn signal(command: &Running, signal: Signal) {
    kill_process(Pid::from_child(&command.0), signal).unwrap();
}

#[track_caller]
fn ends_soon(command: &mut Running, code: i32) {
    let start = Instant::now();
    assert_eq!(command.ends("it ends").code(), Some(code));
    assert!(start.elapsed() < Duration::from_secs(10) * slack(), "{:?}", start.elapsed());
}

const INTERRUPTED: &str = "error: cannot write the output: interrupted while nobody read it\n";

#[track_caller]
fn said(command: &mut Running) -> String {
    io::read_to_string(command.0.stderr.take().unwrap()).unwrap()
}

#[test]
fn one_signal_ends_a_command_whose_output_nobody_reads() {
    for (number, stderr_too, code) in [(Signal::INT, false, 130), (Signal::TERM, true, 143)] {
        let (mut command, output) = unread(flood(&["-v"]), stderr_too);
        wait_until_full(&output, 40_000);
        signal(&command, number);
        ends_soon(&mut command, code);
        if !stderr_too {
            let said = said(&mut command);
            assert!(said.ends_with(INTERRUPTED), "{said}");
        }
    }
}

/// Of which there are more than fit in what is left of a full pipe.
#[test]
fn one_signal_ends_all_notes_that_nobody_reads() {
    let script = ready(
        r#"take; receipt; n=0; while [ $n -lt 100 ]; do event flood "\"$(printf %01000d $n)\""; n=$((n+1)); done
           while read -r line; do case $line in *shutdown*) break;; esac; done
           while [ $n -lt 200 ]; do printf '%0100d\n' $n >&2; n=$((n+1)); done; exit 3"#,
    );
    let (mut command, output) = unread(with_runtime(&["run", "-v", "--json", "x"], &script), true);
    wait_until_full(&output, 40_000);
    signal(&command, Signal::TERM);
    ends_soon(&mut command, 143);
}

#[test]
fn the_timeout_ends_a_command_whose_output_nobody_reads() {
    let timeout = (2 * slack()).to_string();
    let (mut command, _output) = unread(flood(&["--timeout", &timeout]), false);
    assert_eq!(command.ends("it ends").code(), Some(4));
    let said = said(&mut command);
    assert!(said.starts_with("error: cannot write the output: timed out after "), "{said}");
}

/// A reader that is late gets whole lines.
#[test]
fn the_line_that_is_being_written_at_a_signal_is_finished() {
    let (mut command, output) = unread(flood(&[]), false);
    wait_until_full(&output, 40_000);
    signal(&command, Signal::INT);
    let text = io::read_to_string(output).unwrap();
    assert_eq!(command.ends("it ends").code(), Some(130));
    assert!(text.lines().count() > 30 && text.ends_with("}\n"), "{:?}", text.lines().last());
}

#[test]
fn the_timeout_ends_a_report_that_nobody_reads() {
    let timeout = slack().to_string();
    for (args, code) in [(&["--", "sh", "-c", "exit 7"][..], 3), (&["--", "/"], 2)] {
        let (_output, input) = full_pipe();
        let mut command = dsh_wire(["call", "m", "--timeout", &timeout].iter().chain(args));
        ends_soon(&mut Running(command.stderr(input).spawn().unwrap()), code);
    }
}

#[test]
fn one_signal_ends_a_report_that_nobody_reads() {
    let folder = Folder::new();
    let file = folder.file("pid", b"");
    let (_output, input) = full_pipe();
    let script = format!("echo $$ > {file}; exit 7");
    let mut command = Running(with_runtime(&["call", "m"], &script).stderr(input).spawn().unwrap());
    wait_until("the runtime is gone, and the command knows", || {
        let pid = fs::read_to_string(&file).unwrap();
        let pid = pid.strip_suffix('\n').and_then(|pid| Pid::from_raw(pid.parse().unwrap()));
        pid.is_some_and(|pid| test_kill_process(pid).is_err())
    });
    signal(&command, Signal::INT);
    ends_soon(&mut command, 3);
}

/// No signal interrupts a write to a terminal that waits for room.
#[test]
fn the_timeout_ends_a_command_whose_terminal_nobody_reads() {
    let timeout = (2 * slack()).to_string();
    // Where both ends are one device, a terminal cannot be opened once more.
    for by_its_other_end in [false, true] {
        let (mut ours, mut theirs) = raw_terminal();
        if by_its_other_end {
            (ours, theirs) = (theirs, ours);
        }
        let mut command = flood(&["--timeout", &timeout]);
        command.stdout(theirs.try_clone().unwrap()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        assert_eq!(running.ends("it ends").code(), Some(4));
        assert!(rustix::io::ioctl_fionread(&ours).unwrap() > 1000, "{by_its_other_end}");
        let said = said(&mut running);
        assert!(said.starts_with("error: cannot write the output: timed out after "), "{said}");
    }
}

/// Ctrl-S.
#[test]
fn a_terminal_that_is_stopped_keeps_nobody_from_the_end() {
    let timeout = (2 * slack()).to_string();
    for number in [None, Some(Signal::TERM)] {
        let (_ours, theirs) = raw_terminal();
        tcflow(&theirs, Action::OOff).unwrap();
        let mut command = dsh_wire(["run", "-v", "hello"]);
        if number.is_none() {
            command.args(["--timeout", &timeout]);
        }
        let mut running = Running(command.stderr(theirs).stdout(Stdio::null()).spawn().unwrap());
        if let Some(number) = number {
            wait_until("it listens", || catches(running.0.id(), number.as_raw()));
            signal(&running, number);
        }
        ends_soon(&mut running, if number.is_some() { 143 } else { 4 });
    }
}

/// Where it has no room, it is not shown.
#[test]
fn the_status_line_keeps_nobody() {
    for stopped in [false, true] {
        let (_ours, theirs) = raw_terminal();
        if stopped {
            tcflow(&theirs, Action::OOff).unwrap();
        } else {
            fill(&theirs);
        }
        let mut command = dsh_wire(["run", "@slow 1 late"]);
        command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(theirs);
        let mut running = Running(command.spawn().unwrap());
        ends_soon(&mut running, 0);
        assert_eq!(io::read_to_string(running.0.stdout.take().unwrap()).unwrap(), "late\n");
    }
}

/// Its first line does not fit.
#[test]
fn a_doctor_whom_nobody_reads_ends() {
    let runtime = ["--", env!("CARGO_BIN_EXE_dsh-wire"), "serve"];
    let (_output, input) = full_pipe();
    let start = |args: &[&str]| {
        let mut command = dsh_wire(["doctor"].iter().chain(args).chain(&runtime));
        Running(command.stdout(input.try_clone().unwrap()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let mut timed = start(&["--timeout", "0.1"]);
    ends_soon(&mut timed, 4);
    assert_eq!(said(&mut timed), "error: cannot write the output: timed out after 100ms\n");
    let mut interrupted = start(&[]);
    wait_until("it listens", || catches(interrupted.0.id(), Signal::INT.as_raw()));
    signal(&interrupted, Signal::INT);
    ends_soon(&mut interrupted, 130);
    assert_eq!(said(&mut interrupted), INTERRUPTED);
}

//! `tap`: whatever goes through it comes out the same, and what the log holds.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dsh_wire::recording::{Direction, Entry, Reader, What, redact};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::timeline::picture;
use super::{Folder, Running, catches, dsh_wire, exits, stderr, stdout, wait_until, with_stdin};
use crate::faulty::within;
use crate::properties::choices::Random;
use crate::recording;

/// The tap with a shell script as the runtime.
fn tapped(log: &str, script: &str) -> Command {
    dsh_wire(["tap", "--log", log, "--", "sh", "-c", script])
}

fn entries(log: &str) -> Vec<Entry> {
    Reader::new(File::open(log).unwrap()).map(|entry| entry.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// What the log has of one stream.
fn recorded(entries: &[Entry], direction: Direction) -> Vec<u8> {
    entries.iter().filter(|entry| entry.direction == direction).flat_map(Entry::wire_bytes).collect()
}

fn lost(entries: &[Entry], direction: Direction) -> u64 {
    let of = |entry: &&Entry| entry.direction == direction;
    entries.iter().filter(of).map(|entry| if let What::Lost(bytes) = entry.what { bytes } else { 0 }).sum()
}

#[test]
fn all_three_streams_pass_and_are_recorded() {
    let folder = Folder::new();
    let log = folder.file("log", b"old");
    let script = "read -r line; printf 'got %s\\n' \"$line\"; printf 'oops\\n' >&2; cat; exit 7";
    let output = with_stdin(tapped(&log, script), b"{\"id\":1}\nb\xff\nhalf", 3);
    exits(&output, 7);
    assert_eq!(output.stdout, b"got {\"id\":1}\nb\xff\nhalf");
    assert_eq!(stderr(&output), "oops\n");
    let entries = entries(&log);
    assert_eq!(recorded(&entries, Direction::ClientToServer), b"{\"id\":1}\nb\xff\nhalf");
    assert_eq!(recorded(&entries, Direction::ServerToClient), output.stdout);
    assert_eq!(recorded(&entries, Direction::Stderr), output.stderr);
    // An answer never stands before its question.
    let place = |bytes: &[u8]| entries.iter().position(|entry| entry.wire_bytes() == bytes).unwrap();
    assert!(place(b"{\"id\":1}\n") < place(b"got {\"id\":1}\n"));
}

/// Bytes that are lines, and are not.
fn noise(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| if random.below(40) == 0 { b'\n' } else { random.below(256) as u8 }).collect()
}

/// Writes in pieces of all sizes, with stalls.
fn write_unevenly(mut to: ChildStdin, bytes: &[u8], seed: u64) {
    let mut random = Random::new(seed);
    let mut left = bytes;
    while !left.is_empty() {
        let most = if random.below(4) == 0 { 200_000 } else { 3000 };
        let (piece, rest) = left.split_at((1 + random.below(most)).min(left.len()));
        if to.write_all(piece).is_err() {
            return;
        }
        left = rest;
        if random.below(8) == 0 {
            thread::sleep(Duration::from_millis(random.below(4) as u64));
        }
    }
}

#[test]
fn bytes_are_the_same_however_they_are_cut() {
    for seed in 0..6 {
        let folder = Folder::new();
        let log = folder.file("log", b"");
        let sent = noise(&mut Random::new(seed), 1_000_000);
        let mut child = tapped(&log, "tee /dev/stderr")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let output = thread::scope(|scope| {
            scope.spawn(|| write_unevenly(stdin, &sent, seed));
            child.wait_with_output().unwrap()
        });
        exits(&output, 0);
        assert!(output.stdout == sent && output.stderr == sent, "seed {seed}");
        let entries = entries(&log);
        for direction in [Direction::ClientToServer, Direction::ServerToClient, Direction::Stderr] {
            let lost = lost(&entries, direction);
            let recorded = recorded(&entries, direction);
            assert_eq!(recorded.len() as u64 + lost, sent.len() as u64, "seed {seed}: {direction:?}");
            assert!(lost > 0 || recorded == sent, "seed {seed}: {direction:?}");
        }
    }
}

#[test]
fn what_a_killed_runtime_had_written_arrives() {
    for seed in 0..8 {
        let folder = Folder::new();
        let log = folder.file("log", b"");
        let sent = noise(&mut Random::new(seed), 500_000);
        let mut child = tapped(&log, "echo $$; exec cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut came = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| write_unevenly(stdin, &sent, seed));
            let (mut piece, mut killed) = ([0; 5000], false);
            loop {
                let len = stdout.read(&mut piece).unwrap();
                came.extend_from_slice(&piece[..len]);
                if len == 0 {
                    break;
                }
                let pid = came.iter().position(|byte| *byte == b'\n').map(|end| String::from_utf8_lossy(&came[..end]));
                if let Some(pid) = pid.filter(|_| !killed && came.len() > 30_000 * seed as usize) {
                    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
                    killed = true;
                }
            }
        });
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let passed = came.splitn(2, |byte| *byte == b'\n').nth(1).unwrap();
        assert!(sent.starts_with(passed), "seed {seed}");
        assert_eq!(recorded(&entries(&log), Direction::ServerToClient), came, "seed {seed}");
    }
}

#[test]
fn a_killed_tap_leaves_a_whole_recording_and_no_runtime() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let mut child =
        Running(tapped(&log, "echo $$; exec cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut stdout = child.0.stdout.take().unwrap();
    let mut pid = [0; 20];
    let len = stdout.read(&mut pid).unwrap();
    let pid = Pid::from_raw(String::from_utf8_lossy(&pid[..len]).trim().parse().unwrap()).unwrap();
    wait_until("the log is written", || fs::read(&log).unwrap().ends_with(b"\n"));
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(recorded(&entries(&log), Direction::ServerToClient).len(), len);
    wait_until("the runtime ends", || has_ended(pid));
}

#[test]
fn exit_codes_and_signals_are_those_of_the_runtime() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    for code in [0, 1, 3, 126, 255] {
        exits(&tapped(&log, &format!("exit {code}")).output().unwrap(), code);
    }
    for signal in [Signal::KILL, Signal::TERM, Signal::INT, Signal::SEGV, Signal::ABORT, Signal::PIPE, Signal::HUP] {
        let number = signal.as_raw();
        let output = tapped(&log, &format!("kill -{number} $$")).output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{}", stderr(&output));
    }
}

#[test]
fn signals_are_passed_on() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
        let number = signal.as_raw();
        // The shell ends itself after the second one, with the count.
        let script = format!(
            "n=0; trap 'n=$((n+1)); echo got {number}' {number}; echo ready; while [ $n -lt 2 ]; do sleep 0.02; done; exit 40"
        );
        let mut child = Running(tapped(&log, &script).stdout(Stdio::piped()).spawn().unwrap());
        let mut stdout = child.0.stdout.take().unwrap();
        let mut seen = String::new();
        let mut read_until = |text: &str| {
            let mut bytes = [0; 100];
            while !seen.ends_with(text) {
                let len = stdout.read(&mut bytes).unwrap();
                assert!(len > 0, "{seen}");
                seen.push_str(&String::from_utf8_lossy(&bytes[..len]));
            }
        };
        read_until("ready\n");
        wait_until("the tap listens", || catches(child.0.id(), number));
        for _ in 0..2 {
            kill_process(Pid::from_child(&child.0), signal).unwrap();
            read_until(&format!("got {number}\n"));
        }
        assert_eq!(child.0.wait().unwrap().code(), Some(40), "{signal:?}");
    }
}

/// Whether a process is gone, or would be if somebody asked for its status.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z"))
}

#[test]
fn ends_of_streams_are_passed_on_one_by_one() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    // The runtime closes its stdout, lives on, and hears what comes then.
    let script = "exec >&-; cat >&2; exit 5";
    let mut child = Running(
        tapped(&log, script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
    );
    assert_eq!(child.0.stdout.take().unwrap().read(&mut [0]).unwrap(), 0);
    let mut stdin = child.0.stdin.take().unwrap();
    stdin.write_all(b"still here\n").unwrap();
    drop(stdin);
    let mut heard = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "still here\n");
    assert_eq!(child.0.wait().unwrap().code(), Some(5));
}

#[test]
fn who_writes_learns_that_nobody_reads() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    // A runtime that closes its stdin: the client's next write fails, or the one after.
    let mut child = Running(
        tapped(&log, "exec <&-; echo closed; exec sleep 60")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    child.0.stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
    let mut stdin = child.0.stdin.take().unwrap();
    wait_until("the write fails", || stdin.write_all(b"x\n").is_err());
    // A client that closes its stdout: the runtime dies of SIGPIPE, though it has nothing to say for long.
    let log = folder.file("another", b"");
    let mut child = tapped(&log, "while :; do echo x; sleep 0.02; done").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(13) || status.code() == Some(1), "{status:?}");
}

#[test]
fn backpressure_passes_through() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let progress = folder.file("progress", b"");
    // 1000 writes of 64 KiB; each is noted once it is done.
    let script = format!(
        "block=$(printf '%65535s' x); n=0; while [ $n -lt 1000 ]; do echo \"$block\"; echo >> {progress}; n=$((n+1)); done"
    );
    let mut child = Running(tapped(&log, &script).stdout(Stdio::piped()).spawn().unwrap());
    let written = || fs::metadata(&progress).unwrap().len();
    let mut last = (0, Instant::now());
    wait_until("the writer is stuck", || {
        let now = written();
        if now != last.0 {
            last = (now, Instant::now());
        }
        now > 0 && last.1.elapsed() > Duration::from_millis(500)
    });
    assert!(written() < 10, "two pipes and a piece: {}", written());
    let mut all = 0;
    let mut bytes = vec![0; 1 << 20];
    loop {
        match child.0.stdout.as_mut().unwrap().read(&mut bytes).unwrap() {
            0 => break,
            len => all += len,
        }
    }
    assert_eq!(all, 1000 * 65536);
    assert!(child.0.wait().unwrap().success());
}

#[test]
fn a_full_disk_is_told_once_and_changes_nothing() {
    let sent = noise(&mut Random::new(1), 3_000_000);
    let output = with_stdin(tapped("/dev/full", "cat; exit 3"), &sent, 10_000);
    exits(&output, 3);
    assert!(output.stdout == sent);
    let said = stderr(&output);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("dsh-wire tap: cannot write the log '/dev/full': No space left on device"), "{said}");
    let len = sent.len();
    assert!(lines[1].contains(&format!("misses {len} bytes of the client, {len} of the runtime")), "{said}");
}

#[test]
fn a_log_over_the_size_of_a_file_is_told_and_changes_nothing() {
    let folder = Folder::new();
    let log = folder.0.join("log");
    let sent = noise(&mut Random::new(4), 300_000);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8; exec \"$0\" tap --log \"$1\" -- cat", env!("CARGO_BIN_EXE_dsh-wire")]).arg(&log);
    let output = with_stdin(limited, &sent, 10_000);
    exits(&output, 0);
    assert!(output.stdout == sent);
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_log_that_nobody_reads_changes_nothing() {
    let folder = Folder::new();
    let fifo = folder.0.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let sent = noise(&mut Random::new(2), 1_000_000).repeat(40);
    let output = with_stdin(tapped(fifo.to_str().unwrap(), "cat; exit 3"), &sent, 1 << 20);
    exits(&output, 3);
    assert!(output.stdout == sent);
    assert!(stderr(&output).ends_with("is too slow: its end is missing\n"), "{}", stderr(&output));
}

#[test]
fn a_log_that_is_read_late_tells_what_is_missing() {
    let folder = Folder::new();
    let fifo = folder.0.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let line = b"a line of some length, so that there are not too many\n";
    let sent = line.repeat(1_000_000);
    let go = folder.0.join("go");
    let script = format!("cat > /dev/null; echo done; until [ -e {} ]; do sleep 0.02; done", go.display());
    let mut command = tapped(fifo.to_str().unwrap(), &script);
    let mut child = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    // All has passed before the first byte of the log is read.
    let mut stdin = child.0.stdin.take().unwrap();
    stdin.write_all(&sent).unwrap();
    drop(stdin);
    child.0.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    let (mut kept, mut lost) = (Vec::new(), 0);
    for entry in Reader::new(File::open(&fifo).unwrap()).map(Result::unwrap) {
        match entry.what {
            What::Lost(bytes) => lost += bytes,
            _ if entry.direction == Direction::ClientToServer => kept.extend(entry.wire_bytes()),
            _ => {}
        }
        if kept.len() as u64 + lost >= sent.len() as u64 {
            File::create(&go).unwrap();
        }
    }
    assert!(child.0.wait().unwrap().success());
    assert!(lost > 0 && kept.len() as u64 + lost == sent.len() as u64, "{} kept, {lost} lost", kept.len());
    assert!(kept.chunks(line.len()).all(|kept| kept == line), "only whole lines are lost");
}

#[test]
fn a_runtime_that_leaves_somebody_behind_ends_all_the_same() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    for left in ["exec sleep 60", "while :; do echo x; echo y >&2; sleep 0.1; done"] {
        let script = format!("sh -c '{left}' & echo $!; exit 4");
        let output = within(Duration::from_secs(10), || tapped(&log, &script).output().unwrap());
        exits(&output, 4);
        assert!(
            stderr(&output).contains("holds its stdout: what it says from now on goes nowhere\n"),
            "{}",
            stderr(&output)
        );
        let pid = stdout(&output).lines().find_map(|pid| Pid::from_raw(pid.parse().ok()?));
        // It may have died of the closed pipe.
        let _ = kill_process(pid.unwrap(), Signal::KILL);
    }
}

/// Runs it with a client that reads stdout only.
fn without_a_reader_of_stderr(mut command: Command) -> (ExitStatus, Vec<u8>) {
    let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut came = Vec::new();
    child.0.stdout.take().unwrap().read_to_end(&mut came).unwrap();
    let status = child.ends("the tap exits");
    (status, came)
}

#[test]
fn a_stderr_that_nobody_reads_holds_up_nothing() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    // More than one pipe holds, and no more than two do: beyond that it is as without the tap.
    let (status, came) = without_a_reader_of_stderr(tapped(&log, "head -c 120000 /dev/zero >&2; echo done; exit 6"));
    assert_eq!((status.code(), &*came), (Some(6), &b"done\n"[..]));
    assert_eq!(
        recorded(&entries(&log), Direction::Stderr).len(),
        120_000,
        "what the client does not read, the log has"
    );
    // With the view there is no such bound.
    let script = "yes '{\"method\":\"m\",\"params\":{}}' | head -n 20000; yes | head -c 2000000 >&2; echo done; exit 6";
    let (status, came) =
        without_a_reader_of_stderr(dsh_wire(["tap", "--print", "--log", &log, "--", "sh", "-c", script]));
    assert_eq!(status.code(), Some(6));
    assert_eq!(came.iter().filter(|byte| **byte == b'\n').count(), 20_001);
    assert!(came.ends_with(b"done\n"));
}

/// It takes longer in all than a reader may take nothing.
#[test]
fn a_stderr_that_is_read_slowly_arrives() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let mut child = Running(tapped(&log, "head -c 200000 /dev/zero >&2").stderr(Stdio::piped()).spawn().unwrap());
    let mut stderr = child.0.stderr.take().unwrap();
    let (mut came, mut piece) = (0, vec![0; 30_000]);
    loop {
        match stderr.read(&mut piece).unwrap() {
            0 => break,
            len => came += len,
        }
        // The rest is in the last pipe.
        thread::sleep(if came < 140_000 { Duration::from_millis(1400) } else { Duration::ZERO });
    }
    assert_eq!(came, 200_000);
    assert!(child.0.wait().unwrap().success());
}

#[test]
fn a_signal_after_the_end_of_the_runtime_ends_the_waiting() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let script = "echo $$; head -c 110000 /dev/zero; exit 4";
    let mut command = tapped(&log, script);
    let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut stdout = child.0.stdout.take().unwrap();
    let mut came = Vec::new();
    while !came.ends_with(b"\n") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        came.extend(byte);
    }
    let pid = String::from_utf8_lossy(&came).trim().to_owned();
    // Its status has been taken: signals are for the tap.
    wait_until("the runtime is gone", || !Path::new(&format!("/proc/{pid}")).exists());
    assert!(child.0.try_wait().unwrap().is_none(), "it waits for the client");
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    let status = child.ends("the tap ends");
    assert_eq!(status.code(), Some(4), "as the runtime did");
    stdout.read_to_end(&mut came).unwrap();
    let all = recorded(&entries(&log), Direction::ServerToClient);
    assert_eq!(all.len(), 110_000 + pid.len() + 1, "the log has all of it");
    assert!(all.starts_with(&came) && came.len() < all.len());
    let mut said = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let left = all.len() - came.len();
    assert_eq!(
        said,
        format!(
            "dsh-wire tap: the last {left} bytes of the runtime's stdout were not passed on, and went to the log only\n"
        )
    );
}

#[test]
fn a_signal_at_the_very_beginning_leaves_no_runtime() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    for delay in 0..30 {
        let name = folder.0.join(format!("pid-{delay}"));
        let script = format!("echo $$ > {}; exec sleep 60", name.display());
        let mut child = tapped(&log, &script).stdout(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_micros(delay * 200));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = within(Duration::from_secs(10), || child.wait().unwrap());
        assert_eq!(status.signal(), Some(15), "after {delay}");
        let pid = fs::read_to_string(&name).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
            wait_until("the runtime ends", || has_ended(pid));
        }
    }
}

/// Who asks for the end and waits for it need not read.
#[test]
fn a_signal_ends_the_tap_though_nobody_reads() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let mut command = tapped(&log, "exec yes");
    let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let stdout = child.0.stdout.take().unwrap();
    wait_until("it has much to say", || rustix::io::ioctl_fionread(&stdout).unwrap() > 40_000);
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    let status = child.ends("the tap ends");
    assert_eq!(status.signal(), Some(15));
    let mut told = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("of the runtime's stdout were not passed on, and went to the log only"), "{told}");
}

/// As under `nohup`.
#[cfg(target_os = "linux")]
#[test]
fn what_is_ignored_stays_ignored() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let script =
        "trap '' HUP; grep SigIgn /proc/self/status; exec \"$0\" tap --log \"$1\" -- grep SigIgn /proc/self/status";
    let output = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_dsh-wire"), &log]).output().unwrap();
    exits(&output, 0);
    let said = stdout(&output);
    let (without, with) = said.split_once('\n').unwrap();
    assert_eq!(without, with.trim_end());
    assert!(without.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']), "HUP is among them: {without}");
}

#[test]
fn two_taps_do_not_share_a_log() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let mut first = Running(tapped(&log, "cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut stdin = first.0.stdin.take().unwrap();
    stdin.write_all(b"one\n").unwrap();
    first.0.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
    let second = tapped(&log, "echo started").output().unwrap();
    exits(&second, 2);
    assert_eq!(stdout(&second), "");
    assert_eq!(stderr(&second), format!("error: cannot write the log '{log}': another tap is writing it\n"));
    drop(stdin);
    assert!(first.0.wait().unwrap().success());
    assert_eq!(recorded(&entries(&log), Direction::ClientToServer), b"one\n");
    // And now it is free.
    exits(&tapped(&log, "exit 3").output().unwrap(), 3);
}

#[test]
fn a_log_goes_through_our_own_links_only() {
    let folder = Folder::new();
    let file = folder.file("file", b"");
    let link = folder.0.join("link");
    symlink(&file, &link).unwrap();
    exits(&tapped(link.to_str().unwrap(), "echo x").output().unwrap(), 0);
    assert_eq!(recorded(&entries(&file), Direction::ServerToClient), b"x\n");
    if lchown(&link, Some(65_534), None).is_err() {
        eprintln!("only root can make a link of another user's, so this is not tested");
        return;
    }
    let output = tapped(link.to_str().unwrap(), "echo y").output().unwrap();
    exits(&output, 2);
    assert!(stderr(&output).contains("a link that belongs to another user"), "{}", stderr(&output));
    assert_eq!(recorded(&entries(&file), Direction::ServerToClient), b"x\n");
}

#[test]
fn the_environment_of_the_runtime_is_as_asked() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let args = ["tap", "--log", &log, "--env", "A=b", "--env-clean", "--pass-env", "SECOND", "--", "/usr/bin/env"];
    let output = dsh_wire(args).env("FIRST", "1").env("SECOND", "2").output().unwrap();
    exits(&output, 0);
    let names = stdout(&output);
    let mut names: Vec<_> = names.lines().filter(|line| !line.starts_with("_=")).collect();
    names.sort_unstable();
    assert_eq!(names, ["A=b", "SECOND=2"]);
}

#[test]
fn what_the_runtime_had_written_waits_for_a_client_that_reads_late() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    // Somebody who goes on writing is left behind, and the client reads after the time that he is given.
    let script = "head -c 120000 /dev/zero; sh -c 'while :; do echo x; sleep 0.1; done' & exit 4";
    let mut child = Running(tapped(&log, script).stdout(Stdio::piped()).spawn().unwrap());
    thread::sleep(Duration::from_millis(2500));
    let mut came = Vec::new();
    child.0.stdout.take().unwrap().read_to_end(&mut came).unwrap();
    assert!(came.len() >= 120_000 && came[..120_000].iter().all(|byte| *byte == 0), "{}", came.len());
    assert_eq!(child.0.wait().unwrap().code(), Some(4));
}

#[test]
fn sockets_as_streams_keep_their_mode() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let shared = theirs.try_clone().unwrap();
    let (input, output) = (OwnedFd::from(theirs.try_clone().unwrap()), OwnedFd::from(theirs));
    let sent = noise(&mut Random::new(3), 3_000_000);
    let mut child = Running(tapped(&log, "cat").stdin(input).stdout(output).spawn().unwrap());
    let came = thread::scope(|scope| {
        scope.spawn(|| {
            (&ours).write_all(&sent).unwrap();
            ours.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = vec![0; sent.len()];
        (&ours).read_exact(&mut came).unwrap();
        came
    });
    assert!(came == sent);
    assert!(child.0.wait().unwrap().success());
    let flags = rustix::fs::fcntl_getfl(&shared).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK), "left as it was");
}

#[test]
fn what_cannot_be_started_or_written_is_told_before() {
    let folder = Folder::new();
    let log = folder.0.join("none/log");
    let output = tapped(log.to_str().unwrap(), "echo started").output().unwrap();
    exits(&output, 2);
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).starts_with("error: cannot write the log '"), "{}", stderr(&output));
    let log = folder.file("log", b"of yesterday");
    let output = dsh_wire(["tap", "--log", &log, "--", "/no/such/runtime"]).output().unwrap();
    exits(&output, 2);
    assert_eq!(fs::read(&log).unwrap(), b"of yesterday", "it stays where nothing was recorded");
    assert!(stderr(&output).contains("/no/such/runtime"), "{}", stderr(&output));
    // Though `setpriv` is what starts it.
    let script = folder.file("script", b"#!/no/such/shell\n");
    for (mode, why) in [(0o644, "is not executable"), (0o755, "the interpreter of the program does not exist")] {
        fs::set_permissions(&script, fs::Permissions::from_mode(mode)).unwrap();
        let output = dsh_wire(["tap", "--log", &log, "--", &script]).output().unwrap();
        exits(&output, 2);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn the_view_shows_the_rows_of_inspect() {
    let folder = Folder::new();
    let log = folder.file("log", b"");
    let answer = r#"{"id":"a","result":{}}"#;
    let status = r#"{"method":"session.status","params":{"sessionId":"s","status":"idle"}}"#;
    let mut command = dsh_wire(["tap", "--print", "--log", &log, "--", "sh", "-c"]);
    command.arg(format!("read -r line; echo hm >&2; read -r line; echo '{answer}'; echo '{status}'; echo noise"));
    let mut child =
        Running(command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    let (mut stdin, mut stderr) = (child.0.stdin.take().unwrap(), child.0.stderr.take().unwrap());
    stdin.write_all(b"{\"id\":\"a\",\"method\":\"initialize\"}\n").unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"hm\n") {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
    stdin.write_all(b"\n").unwrap();
    stderr.read_to_end(&mut seen).unwrap();
    assert!(child.0.wait().unwrap().success());
    let seen = String::from_utf8(seen).unwrap();
    let (said, shown): (Vec<_>, Vec<_>) = seen.lines().partition(|line| *line == "hm");
    assert_eq!(said, ["hm"], "{seen}");
    let inspected = dsh_wire(["inspect", &log]).output().unwrap();
    let rows = stdout(&inspected);
    // All but the line of the runtime's stderr, and the figures at the end.
    let rows: Vec<_> = rows.lines().filter(|row| !row.ends_with("hm") && !row.contains("bytes: ")).collect();
    assert_eq!(shown, rows);
    assert_eq!(shown.len(), 5, "{seen}");
}

/// Every recording through a redacting tap: nothing of the prompts, answers and arguments is left, and every line has its
/// length.
#[test]
fn a_redacted_log_keeps_lengths_and_no_secrets() {
    let folder = Folder::new();
    for recording in recording::all() {
        let log = folder.file("log", b"");
        let answers = folder.file("answers", &recording.stream(Direction::ServerToClient));
        let asked = recording.stream(Direction::ClientToServer);
        let mut command = dsh_wire(["tap", "--redact", "--log", &log, "--", "sh", "-c"]);
        command.arg(format!("cat {answers}; echo 'sk-0123456789abcdef0123' >&2; cat > /dev/null"));
        let output = with_stdin(command, &asked, 1 << 20);
        exits(&output, 0);
        assert_eq!(output.stdout, recording.stream(Direction::ServerToClient), "the wire is as it was");
        let entries = entries(&log);
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let lengths = |bytes: Vec<u8>| bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>();
            assert_eq!(
                lengths(recorded(&entries, direction)),
                lengths(recording.stream(direction)),
                "{}",
                recording.name
            );
        }
        let text = fs::read_to_string(&log).unwrap();
        for secret in
            ["echo:", "@bash", "echo hi", "placeholder", "sk-0123", "/workspace", "The tool has", "fake child", "iVBOR"]
        {
            assert!(!text.contains(secret), "{}: {secret}", recording.name);
        }
        // What tools look at is there.
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let [old, new] = [recording.stream(direction), recorded(&entries, direction)];
            let [old, new] = [&old, &new].map(|bytes| {
                let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                lines.map(kind).collect::<Vec<_>>()
            });
            assert_eq!(old.len(), new.len(), "{}", recording.name);
            for ((old, old_method), (new, method)) in old.iter().zip(new) {
                assert_eq!(*old, new, "{}", recording.name);
                // One that is no name is another one.
                let name = old_method.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
                assert!(*old_method == method || !name, "{}: {method}", recording.name);
            }
        }
    }
}

/// What kind of line it is, with its id, and its method.
fn kind(line: &[u8]) -> (String, String) {
    use dsh_wire::frame::Frame;
    // One that is longer than any name is blanked.
    let named = |id: String| if id.len() > 200 { format!("of {} bytes", id.len()) } else { id };
    let (kind, method) = match Frame::decode(line, &mut String::new()) {
        Ok(Frame::Request { id, method, .. }) => (format!("request {}", named(format!("{id:?}"))), method.to_string()),
        Ok(Frame::Response { id, outcome }) => {
            (format!("response {} {}", named(format!("{id:?}")), outcome.is_ok()), String::new())
        }
        Ok(Frame::Notification { method, .. }) => ("notification".into(), method.to_string()),
        Err(_) => ("no frame".into(), String::new()),
    };
    // So are bytes that are not UTF-8.
    (kind.replace('\u{fffd}', "*"), method)
}

/// What `timeline` makes of a recording does not change, but for the texts.
#[test]
fn a_redacted_recording_has_the_same_spans() {
    let folder = Folder::new();
    // An id that is not UTF-8 is answered with U+FFFD in it, which is longer: it cannot keep both its length and its answer.
    for recording in recording::all().into_iter().filter(|recording| recording.name != "invalid-utf8") {
        let file = recording::fixtures().join(format!("{}.jsonl", recording.name));
        let mut redacted = String::new();
        for mut entry in Reader::new(File::open(&file).unwrap()).map(Result::unwrap) {
            if let What::Line { bytes, .. } = &mut entry.what {
                redact(entry.direction, bytes);
            }
            entry.encode(&mut redacted);
        }
        let redacted = folder.file("redacted", redacted.as_bytes());
        let [(before, names), (after, others)] = [file.to_str().unwrap(), &redacted].map(spans);
        assert_eq!(before, after, "{}", recording.name);
        for (name, other) in names.into_iter().zip(others) {
            // A method that is no name has become another one.
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            assert!(name == other || !plain, "{}: {name} is {other}", recording.name);
        }
    }
}

/// The spans of a recording as the page has them: kinds, lanes, first and last lines, ends; and their names.
fn spans(file: &str) -> (Vec<Value>, Vec<String>) {
    let picture = picture(file);
    let columns = ["kind", "lane", "track", "first", "last", "end"].map(|name| picture["spans"][name].clone());
    let names = picture["spans"]["name"].as_array().unwrap().iter();
    let names = names.map(|name| picture["names"][name.as_u64().unwrap() as usize].as_str().unwrap().to_owned());
    (columns.into(), names.collect())
}

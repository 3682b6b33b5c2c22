//! The one tool that does something: a command line for `sh`.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The most of a command's output that is kept, in bytes.
const MOST_OUTPUT: u64 = 1 << 20;

/// How often a command that runs is asked whether it may go on.
const POLL: Duration = Duration::from_millis(20);

/// The commands that run, each the leader of a process group and not reaped; `None` once no more may be started. It is
/// the process's, since what it guards is the end of the process.
static RUNNING: Mutex<Option<Vec<Pid>>> = Mutex::new(Some(Vec::new()));

/// Kills what runs, with its children, and lets nothing new begin: the process is about to end.
pub(crate) fn end_all() {
    for group in running().take().into_iter().flatten() {
        // Not reaped yet, so the number is still its own. It fails where nothing is left of the group.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn running() -> MutexGuard<'static, Option<Vec<Pid>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a command that [`end_all`] knows of.
fn start(command: &mut Command) -> io::Result<Child> {
    // Held while it starts, so that none comes too late to be known.
    let mut running = running();
    let known = running.as_mut().ok_or_else(|| io::Error::other("the runtime is ending"))?;
    let child = command.spawn()?;
    known.push(Pid::from_child(&child));
    Ok(child)
}

/// Takes the status of a command that has ended or is about to. Its number may be another's from then on.
fn reap(child: &mut Child) -> io::Result<ExitStatus> {
    let mut running = running();
    running.iter_mut().for_each(|known| known.retain(|known| *known != Pid::from_child(child)));
    child.wait()
}

/// Runs a command line and gives back what it printed and how it ended. When `go_on` says no, the command and its
/// children are killed.
pub(super) fn run(line: &str, cwd: &Path, mut go_on: impl FnMut(Duration) -> bool) -> io::Result<String> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(cwd).process_group(0);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = start(&mut command)?;
    // It holds the write ends, which keep the reader from its end.
    drop(command);
    let pid = Pid::from_child(&child);
    let (done, finished) = channel();
    std::thread::Builder::new().name("dsh-wire shell".into()).spawn(move || {
        let mut output = Vec::new();
        let kept = (&mut reader).take(MOST_OUTPUT).read_to_end(&mut output);
        // What is too much is read all the same, so that the command can go on.
        let read = kept.and_then(|_| io::copy(&mut reader, &mut io::sink()));
        // It may live on without its output. Its status is left for whoever started it.
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        // Nobody listens any more once the command was killed.
        let _ = done.send(read.map(|left_out| {
            if left_out > 0 {
                output.extend_from_slice(format!("\n[{left_out} more bytes]\n").as_bytes());
            }
            output
        }));
    })?;
    let output = loop {
        match finished.recv_timeout(Duration::ZERO) {
            Ok(output) => break output?,
            Err(RecvTimeoutError::Disconnected) => break Vec::new(),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !go_on(POLL) {
            // Not reaped yet, so the number is still its own.
            let _ = kill_process_group(pid, Signal::KILL);
            break Vec::new();
        }
    };
    let status = reap(&mut child)?;
    Ok(format!("{}[Command finished with {}]", String::from_utf8_lossy(&output), how(status)))
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn output_and_exit_code_are_told() {
        let pause = |time| {
            std::thread::sleep(time);
            true
        };
        let run = |line: &str| run(line, Path::new("/"), pause).unwrap();
        assert_eq!(run("echo hi; pwd; echo err >&2"), "hi\n/\nerr\n[Command finished with exit code 0]");
        assert_eq!(run("exit 3"), "[Command finished with exit code 3]");
        let long = run("yes | head -c 3000000");
        assert!(
            long.len() < 1_100_000 && long.ends_with("\n[1951424 more bytes]\n[Command finished with exit code 0]")
        );
    }

    #[test]
    fn a_command_is_killed_with_its_children() {
        for line in ["sleep 60 & sleep 60", "exec >/dev/null 2>&1; sleep 60"] {
            let started = Instant::now();
            let text = run(line, Path::new("/"), |_| false).unwrap();
            assert_eq!(text, "[Command finished with signal 9]", "{line}");
            assert!(started.elapsed() < Duration::from_secs(10));
        }
    }
}

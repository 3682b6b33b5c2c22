//! The one tool that does something: a command line for `sh`.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use std::os::unix::process::{CommandExt, ExitStatusExt};

/// The most of a command's output that is kept, in bytes.
const MOST_OUTPUT: u64 = 1 << 20;

/// How often a command that runs is asked whether it may go on.
const POLL: Duration = Duration::from_millis(20);

/// Runs a command line and gives back what it printed and how it ended. When `go_on` says no, the command and its
/// children are killed.
pub(super) fn run(line: &str, cwd: &Path, mut go_on: impl FnMut(Duration) -> bool) -> io::Result<String> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(cwd).process_group(0);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // It holds the write ends, which keep the reader from its end.
    drop(command);
    let (done, finished) = channel();
    std::thread::Builder::new().name("dsh-wire shell".into()).spawn(move || {
        let mut output = Vec::new();
        let kept = (&mut reader).take(MOST_OUTPUT).read_to_end(&mut output);
        // What is too much is read all the same, so that the command can go on.
        let read = kept.and_then(|_| io::copy(&mut reader, &mut io::sink()));
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
            let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(group) = group {
                // Not reaped yet, so the number is still its own.
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            break Vec::new();
        }
    };
    let status = child.wait()?;
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
        let started = Instant::now();
        let text = run("sleep 60 & sleep 60", Path::new("/"), |_| false).unwrap();
        assert_eq!(text, "[Command finished with signal 9]");
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}

//! Ends in the middle of things: of the client, of its streams, by signals. Each with a bound on the time; nothing is
//! left behind, and what was not said is told.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;

use crate::faulty::{SECOND, within};
use crate::runtime::{BOUND, Folder, INITIALIZE, Runtime, command, prompt};

/// A named pipe that a command of the runtime's holds open: what it says, and the end when it and its children are gone.
struct Witness {
    path: PathBuf,
    lines: Receiver<String>,
}

impl Witness {
    fn new(folder: &Folder) -> Self {
        let path = folder.0.join("witness");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (heard, lines) = channel();
        let name = path.clone();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(File::open(name).unwrap()).lines().map_while(Result::ok);
            lines.try_for_each(|line| heard.send(line))
        });
        Self { path, lines }
    }

    /// A prompt that has a command run for ever.
    fn prompt(&self) -> String {
        prompt("w", "w", &format!("@bash exec >{}; echo begun; sleep 600 & sleep 600", self.path.display()))
    }

    #[track_caller]
    fn begins(&self) {
        assert_eq!(self.lines.recv_timeout(BOUND).as_deref(), Ok("begun"));
    }

    #[track_caller]
    fn has_ended(self) {
        assert_eq!(self.lines.recv_timeout(BOUND), Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }
}

/// However close the second signal is, no command outlives the runtime.
#[test]
fn one_signal_and_two() {
    for signals in [
        &[Signal::TERM][..],
        &[Signal::INT],
        &[Signal::HUP],
        &[Signal::INT, Signal::INT],
        &[Signal::TERM, Signal::TERM],
        &[Signal::TERM, Signal::INT],
        &[Signal::HUP, Signal::TERM],
    ] {
        within(SECOND * 5, || {
            let folder = Folder::new();
            let witness = Witness::new(&folder);
            let mut runtime = Runtime::ready();
            runtime.says(&witness.prompt());
            witness.begins();
            signals.iter().for_each(|signal| runtime.signal(*signal));
            let (_, status, stderr) = runtime.ends();
            // Which one of two is seen last is a matter of their order in time.
            let ends = [(Some(0), None), (Some(130), None), (None, Some(1))];
            let expected = match signals {
                [Signal::TERM] => &ends[..1],
                [Signal::INT] => &ends[1..2],
                [Signal::HUP] => &ends[2..],
                _ => &ends,
            };
            assert!(expected.contains(&(status.code(), status.signal())), "{signals:?}: {status}");
            assert_eq!(stderr, "", "{signals:?}");
            witness.has_ended();
        });
    }
}

/// A terminal that is closed sends SIGHUP; a socket is left as it was found.
#[test]
fn a_hangup_leaves_the_streams_as_they_were() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut on_socket = command(None);
    on_socket.stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs.try_clone().unwrap()));
    let mut child = on_socket.spawn().unwrap();
    drop(on_socket);
    writeln!(&ours, "{INITIALIZE}").unwrap();
    let mut line = String::new();
    BufReader::new(&ours).read_line(&mut line).unwrap();
    let is_blocking = || !rustix::fs::fcntl_getfl(&theirs).unwrap().contains(OFlags::NONBLOCK);
    assert!(!is_blocking());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::HUP).unwrap();
    let status = within(SECOND * 5, || child.wait().unwrap());
    assert_eq!(status.signal(), Some(1));
    assert!(is_blocking());
}

/// By hand, on a terminal, which is left as it was found: by the end of the input and by signals.
#[test]
fn a_terminal_serves_as_well() {
    for signal in [None, Some(Signal::TERM), Some(Signal::HUP)] {
        let (mut ours, theirs) = crate::command::terminal::terminal();
        let mut on_terminal = command(None);
        on_terminal.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        let mut child = on_terminal.spawn().unwrap();
        drop(on_terminal);
        let before = rustix::fs::fcntl_getfl(&theirs).unwrap();
        writeln!(ours, "{INITIALIZE}").unwrap();
        let mut seen = Vec::new();
        within(SECOND * 5, || {
            while !String::from_utf8_lossy(&seen).contains("serverInfo") {
                let mut bytes = [0; 4096];
                let len = ours.read(&mut bytes).unwrap();
                seen.extend(&bytes[..len]);
            }
            match signal {
                // Ctrl-D.
                None => ours.write_all(b"\x04").unwrap(),
                Some(signal) => {
                    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap()
                }
            }
            let status = child.wait().unwrap();
            assert_eq!((status.code().unwrap_or(0), status.signal().is_some()), (0, signal == Some(Signal::HUP)));
        });
        assert_eq!(rustix::fs::fcntl_getfl(&theirs).unwrap(), before);
    }
}

#[test]
fn nohup_is_heeded() {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("trap '' HUP; exec '{}' serve", env!("CARGO_BIN_EXE_dsh-wire"))]);
    let mut runtime = Runtime::spawn(shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    runtime.says(INITIALIZE);
    runtime.hears_from("serverInfo");
    runtime.signal(Signal::HUP);
    runtime.says(r#"{"id":"next","method":"nope"}"#);
    runtime.hears_from(r#""id":"next""#);
    runtime.stdin = None;
    assert_eq!(runtime.ends_well(), [""; 0]);
}

/// The whole answer is there, though it is read only after the process has done all it can.
#[test]
fn a_large_answer_before_the_end() {
    for last in [r#"{"id":"bye","method":"shutdown"}"#, ""] {
        let mut child = command(None).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let method = "m".repeat(1 << 20);
        writeln!(stdin, "{INITIALIZE}\n{{\"id\":1,\"method\":\"{method}\"}}\n{last}").unwrap();
        drop(stdin);
        let output = within(SECOND * 5, || child.wait_with_output().unwrap());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text.contains(&format!("runtime method: {method}\"")) && text.ends_with("}\n"));
        assert_eq!(text.contains(r#""id":"bye","result":{}"#), !last.is_empty());
    }
}

/// What the client never reads is told on stderr and by the exit code.
#[test]
fn answers_that_nobody_reads() {
    let mut child = command(None).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let method = "m".repeat(1 << 20);
    writeln!(stdin, "{INITIALIZE}\n{{\"id\":1,\"method\":\"{method}\"}}").unwrap();
    drop(stdin);
    let status = within(SECOND * 15, || child.wait().unwrap());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{stderr}");
    let expected = "error: the time for the end was up: 0 requests were not answered, ";
    assert!(stderr.starts_with(expected) && stderr.ends_with(" bytes of output were not read\n"), "{stderr}");
}

/// The client dies in the middle of a flood: both pipes close at once.
#[test]
fn the_client_is_gone() {
    let folder = Folder::new();
    let witness = Witness::new(&folder);
    let mut runtime = Runtime::ready();
    runtime.says(&witness.prompt());
    witness.begins();
    runtime.says(&prompt("f", "s", "@flood 1000000 1000"));
    runtime.hears_from("dsh-wire/flood");
    runtime.stdin = None;
    // The thread that reads goes, and with it the pipe.
    drop(std::mem::replace(&mut runtime.lines, channel().1));
    // Which of the two it sees first is a matter of their order in time.
    let code = within(SECOND * 5, || runtime.child.wait().unwrap().code());
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    witness.has_ended();
}

/// Commands have none of the protocol's descriptors: its streams end with the runtime, whatever it has started.
#[test]
fn commands_do_not_hold_the_protocol() {
    let list = "ls /proc/self/fd | tr '\\n' ' '";
    let mut runtime = Runtime::ready();
    runtime.says(&prompt("1", "s", &format!("@bash {}", list.replace('\\', r"\\"))));
    let result = runtime.hears_from("tool/result");
    // No other descriptors than those that any child of this process has.
    let ours = Command::new("sh").args(["-c", list]).stdin(Stdio::null()).output().unwrap();
    let ours = String::from_utf8(ours.stdout).unwrap();
    assert!(result.contains(&format!(r#""text":"{ours}"#)), "{ours}: {result}");
    runtime.says(&prompt("2", "s", "@bash setsid sleep 20 >/dev/null 2>&1 & echo begun"));
    assert!(runtime.hears_from("tool/result").contains("begun"));
    within(SECOND * 5, || {
        runtime.signal(Signal::KILL);
        assert_eq!(runtime.ends().1.signal(), Some(9));
    });
}

/// 5 000 prompts from 100 sessions, eight turns at a time, a client that begins to read when it has written all of them,
/// and a shutdown in mid-stream.
#[test]
fn a_storm_in_bounded_memory() {
    const SESSIONS: usize = 100;
    const PROMPTS: usize = 5000;
    let mut child = command(None).args(["--threads", "8"]).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::with_capacity(512, stdout).lines().map(Result::unwrap);
    writeln!(stdin, "{INITIALIZE}").unwrap();
    assert!(lines.next().unwrap().contains("serverInfo"));
    for id in 0..PROMPTS {
        writeln!(stdin, "{}", prompt(&format!("p{id}"), &format!("s{}", id % SESSIONS), "@flood 5 1000")).unwrap();
    }
    let mut storm = Storm::default();
    let mut first: Vec<_> = (0..20_000).filter_map(|_| lines.next()).collect();
    // Everything has been asked for, and most of it is still to come.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    writeln!(stdin, r#"{{"id":"bye","method":"shutdown"}}"#).unwrap();
    first.drain(..).chain(lines).for_each(|line| storm.line(&line));
    within(BOUND, || assert_eq!(child.wait().unwrap().code(), Some(0)));
    drop(stdin);
    assert!(storm.bye);
    assert_eq!((storm.answers.len(), storm.sequences.len()), (PROMPTS, SESSIONS));
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse().ok());
    println!("{most:?} kB at most, {} events", storm.sequences.values().sum::<u64>());
    // 4 MiB of output may wait; the rest is the program, its threads, and the prompts.
    assert!(most.is_none_or(|kilobytes: u64| kilobytes < 40_000), "{most:?} kB");
}

#[derive(Default)]
struct Storm {
    answers: std::collections::BTreeSet<String>,
    /// The next number of each session.
    sequences: std::collections::BTreeMap<String, u64>,
    bye: bool,
}

impl Storm {
    fn line(&mut self, line: &str) {
        use dsh_wire::json::Json;
        assert!(!self.bye, "after the answer to shutdown: {line}");
        let frame = Json::new(line).unwrap();
        if let Some(params) = frame.member("params") {
            let Some(event) = params.member("event") else { return };
            let session = params.member("sessionId").unwrap().get().to_owned();
            let next = self.sequences.entry(session).or_default();
            assert_eq!(event.member("seq").unwrap().as_u64(), Some(*next), "{line:.200}");
            *next += 1;
            return;
        }
        let id = frame.member("id").unwrap().get().to_owned();
        self.bye = id == "\"bye\"";
        if id.starts_with("\"p") {
            assert!(frame.member("result").is_some_and(|result| result.member("messageId").is_some()), "{line}");
            assert!(self.answers.insert(id), "answered twice: {line}");
        }
    }
}

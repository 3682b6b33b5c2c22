//! The command as a process among processes: what it prints, and the code that it exits with.

mod call;
mod doctor;
mod documents;
mod failure;
mod inspect;
mod replay;
mod run;
mod signal;
mod tap;
pub(crate) mod terminal;
mod timeline;
mod unread;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::faulty::slack;

/// Nothing that these tests wait for takes so long.
fn bound() -> Duration {
    Duration::from_secs(20) * slack()
}

fn dsh_wire(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dsh-wire"));
    command.args(args).stdin(Stdio::null()).env_remove("DSH_HOME").env_remove("NO_COLOR");
    command
}

/// With a shell script as the runtime.
fn with_runtime<'a>(args: &[&'a str], script: &'a str) -> Command {
    dsh_wire(args.iter().copied().chain(["--", "sh", "-c", script]))
}

/// Runs it with these bytes on stdin, in writes of `piece` bytes at most.
fn with_stdin(mut command: Command, bytes: &[u8], piece: usize) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
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

#[track_caller]
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < bound(), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process has a handler for a signal.
fn catches(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}

/// Shell functions for runtimes: `take` reads a request, `answer` answers it with the member given, `tell` writes the
/// params of a `session.event` whose event is given; `$id`, `$session` are those of the last request that had one.
const RUNTIME: &str = r#"
    member() { rest=${line#*\"$1\":\"}; echo "${rest%%\"*}"; }
    take() {
        read -r line || exit 9
        id=$(member id)
        case $line in *sessionId*) session=$(member sessionId);; esac
    }
    answer() { printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",$1}"; }
    tell() { printf '%s\n' "{\"method\":\"$1\",\"params\":{\"sessionId\":\"$session\",$2}}"; }
    event() { tell session.event "\"event\":{\"type\":\"$1\",\"seq\":1,\"time\":1,\"data\":$2}"; }
    receipt() {
        event agent/inbox/spliced \
            '{"target":"next-turn","start":0,"inserted":[{"content":[],"source":{"kind":"user"},"role":"user","id":"m"}]}'
        answer '"result":{"messageId":"m"}'
    }
    say() {
        event assistant/message "{\"turn\":1,\"step\":1,\"message\":{\"role\":\"assistant\",\
            \"content\":[{\"type\":\"text\",\"text\":\"$1\"}],\"source\":{\"kind\":\"model\"},\"id\":\"a\"}}"
    }
    finish() { event turn/end "{\"turn\":1,\"reason\":$1}"; tell session.status '"status":"idle"'; }
"#;

/// A runtime that has answered the handshake.
fn ready(script: &str) -> String {
    format!("{RUNTIME}\ntake; answer '\"result\":{{}}'; {script}")
}

/// A folder of its own; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("dsh-wire-command-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.into_os_string().into_string().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command that runs, killed when dropped.
struct Running(Child);

impl Running {
    #[track_caller]
    fn ends(&mut self, what: &str) -> ExitStatus {
        let mut status = None;
        wait_until(what, || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

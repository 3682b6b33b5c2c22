//! The embedded runtime as a process, spoken to line by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use dsh_wire::json::{Json, Kind};
use rustix::process::{Pid, Signal, kill_process};

use crate::connection::up_to;

/// Nothing that these tests wait for takes so long.
pub(crate) const BOUND: Duration = Duration::from_secs(10);

pub(crate) const INITIALIZE: &str = concat!(
    r#"{"id":"i","method":"initialize","#,
    r#""params":{"cwd":"/tmp","provider":"deepseek-official","model":"deepseek-v4-flash"}}"#,
);

pub(crate) fn prompt(id: &str, session: &str, text: &str) -> String {
    let blocks = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    format!(
        r#"{{"id":"{id}","method":"session/prompt","params":{{"sessionId":"{session}","contentBlocks":{blocks}}}}}"#
    )
}

/// A folder of its own; removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("dsh-wire-it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn command(home: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dsh-wire"));
    command.args(["serve", "--profile", "sdk-minimal"]).env_remove("DSH_HOME");
    home.into_iter().for_each(|home| _ = command.env("DSH_HOME", home));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running runtime.
pub(crate) struct Runtime {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) lines: Receiver<String>,
}

impl Runtime {
    pub(crate) fn start() -> Self {
        Self::start_at(None)
    }

    pub(crate) fn start_at(home: Option<&Path>) -> Self {
        Self::spawn(&mut command(home))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sent, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sent.send(line)));
        Self { stdin: child.stdin.take(), child, lines }
    }

    pub(crate) fn ready() -> Self {
        Self::start().initialized()
    }

    /// With more arguments, and initialized.
    pub(crate) fn ready_with<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Self {
        Self::spawn(command(None).args(arguments)).initialized()
    }

    fn initialized(mut self) -> Self {
        let runtime = &mut self;
        runtime.says(INITIALIZE);
        runtime.hears_from(r#""id":"i""#);
        self
    }

    pub(crate) fn says(&mut self, line: &str) {
        self.writes(&format!("{line}\n"));
    }

    /// In one piece, so that all of it is read at once.
    pub(crate) fn writes(&mut self, lines: &str) {
        self.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }

    #[track_caller]
    pub(crate) fn hears(&mut self) -> String {
        self.lines.recv_timeout(BOUND).expect("a line in time")
    }

    /// The next line with this in it.
    #[track_caller]
    pub(crate) fn hears_from(&mut self, part: &str) -> String {
        loop {
            let line = self.hears();
            if line.contains(part) {
                return line;
            }
        }
    }

    /// All lines up to the next one with this in it.
    #[track_caller]
    pub(crate) fn hears_up_to(&mut self, part: &str) -> Vec<String> {
        up_to(part, || self.hears())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The lines left, how it ended, and its stderr.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (Vec<String>, ExitStatus, String) {
        let until = Instant::now() + BOUND;
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            lines.push(line);
        }
        assert!(Instant::now() < until, "it goes on: {lines:?}");
        let status = self.child.wait().unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (lines, status, stderr)
    }

    #[track_caller]
    pub(crate) fn ends_well(self) -> Vec<String> {
        let (lines, status, stderr) = self.ends();
        assert_eq!((status.code(), &*stderr), (Some(0), ""), "{status}");
        lines
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A frame without its values, but for the words that say what it is.
pub(crate) fn shape(json: Json<'_>, name: &str) -> String {
    match json.kind() {
        Kind::Object => {
            let member = |(key, value): (_, Json<'_>)| format!("{key}:{}", shape(value, &format!("{key}")));
            format!("{{{}}}", json.members().map(member).collect::<Vec<_>>().join(","))
        }
        Kind::Array => format!("[{}]", json.elements().map(|item| shape(item, "")).collect::<Vec<_>>().join(",")),
        _ if ["type", "kind", "status", "target", "role", "name", "code", "seq", "turn", "step"].contains(&name) => {
            json.get().into()
        }
        kind => format!("{kind:?}"),
    }
}

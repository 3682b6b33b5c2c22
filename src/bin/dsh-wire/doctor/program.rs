//! The program: which one it is, and why it does not start.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use dsh_wire::stdio::{self, ErrorKind, HarnessClient, Launch, RUNTIME_VARIABLE, SpawnError, SpawnFault};
use rustix::io::Errno;
use serde_json::json;

use super::Args;
use super::report::Finding;
use crate::console::Console;
use crate::failure::{Exit, Failure};

const NAME: &str = "program";

/// How long the program may take to tell its version.
const VERSION: Duration = Duration::from_secs(5);

/// A program that was chosen.
pub(super) struct Found {
    pub(super) launch: Launch,
    from: From,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Given,
    Variable,
    Path,
}

/// In the order of [`Launch::discover`].
pub(super) fn find(args: &Args) -> Result<Found, Failure> {
    let given = args.runtime.given();
    let from = match (&given, std::env::var_os(RUNTIME_VARIABLE).filter(|value| !value.is_empty())) {
        (Some(_), _) => From::Given,
        (None, Some(_)) => From::Variable,
        (None, None) => From::Path,
    };
    let launch = args.runtime.equip(given.unwrap_or_else(|| Launch::discover(None, &args.profile)))?;
    Ok(Found { launch, from })
}

impl Found {
    pub(super) fn finding(&self, version: Option<&str>) -> Finding {
        let Some(path) = self.launch.resolve() else { return self.missing() };
        if path.is_dir() {
            return directory(&path);
        }
        let path = path.display();
        let from = match self.from {
            From::Given => "as given",
            From::Variable => "named by DSH_RUNTIME_BIN",
            From::Path => "found on PATH",
        };
        let told = version.map_or_else(String::new, |version| format!(", version {version}"));
        let finding = Finding::well(NAME, format!("{path} ({from}){told}"));
        finding.with("path", json!(path.to_string())).with("from", json!(from)).with("version", json!(version))
    }

    fn missing(&self) -> Finding {
        let program = self.launch.program().display();
        let (text, advice) = match self.from {
            From::Given => (
                format!("there is no program {program}"),
                "check the name; one without a slash is looked for on PATH, a relative path counts from here".into(),
            ),
            From::Variable => (
                format!("{RUNTIME_VARIABLE} names {program}, and there is no such program"),
                format!("correct {RUNTIME_VARIABLE}, or unset it to take `dsh` on PATH"),
            ),
            From::Path => (
                format!("{RUNTIME_VARIABLE} is not set, and there is no `dsh` on PATH"),
                format!(
                    "install the runtime (`pip install deepseek-harness-sdk` brings `dsh`), set {RUNTIME_VARIABLE}, or \
                     name it: dsh-wire doctor -- /path/to/dsh --profile sdk"
                ),
            ),
        };
        Finding::fault(NAME, Exit::USAGE, text).advise(advice)
    }

    /// What it answers to `--version`. Only a program that is started as `dsh` is may be asked that; if it answers, it is
    /// taken for the official runtime, which the handshake does not tell from others.
    pub(super) fn version(&self, args: &Args, console: &Console) -> Result<Option<String>, Failure> {
        if !args.runtime.is_started_as_dsh() {
            return Ok(None);
        }
        let launch = args.runtime.equip(Launch::new(self.launch.program()).arg("--version"))?;
        // Why it does not start is told when it matters.
        let Ok(mut client) = HarnessClient::spawn(&launch) else { return Ok(None) };
        let start = Instant::now();
        while start.elapsed() < VERSION && !console.time.is_up() && !console.interrupts.stop.is_aborted() {
            if client.pump(Duration::from_millis(100)).is_err() {
                break;
            }
        }
        let line = client.last_dropped().map(|line| String::from_utf8_lossy(line.prefix).trim().to_owned());
        Ok(line.filter(|line| line.len() < 80 && line.contains(|c: char| c.is_ascii_digit())))
    }
}

fn directory(path: &Path) -> Finding {
    Finding::fault(NAME, Exit::USAGE, format!("{} is a directory", path.display())).advise("name the program in it")
}

/// A program that is there and does not start.
pub(super) fn not_started(launch: &Launch, error: &stdio::Error) -> Finding {
    let ErrorKind::Spawn(spawn) = error.kind() else {
        return Finding::fault(NAME, Exit::FAILED, format!("{error:#}"));
    };
    let path = launch.resolve().unwrap_or_else(|| launch.program().to_owned());
    let finding = |text: &str| Finding::fault(NAME, Exit::USAGE, format!("{} {text}", path.display()));
    match spawn.fault() {
        SpawnFault::ProgramIsDirectory => directory(&path),
        SpawnFault::NotExecutable => finding("may not be executed").advise(format!("chmod +x '{}'", path.display())),
        SpawnFault::InterpreterMissing => match Kind::of(&path) {
            Kind::Script(line) => finding(&format!("is a script, and what its first line names is missing: {line}"))
                .advise("install that, or correct the line"),
            _ => finding("needs a loader that is not here: it was built for another C library or system")
                .advise("install the runtime for this system"),
        },
        SpawnFault::System if is_no_program(spawn) => match Kind::of(&path) {
            Kind::Program(of) => {
                finding(&format!("is a program for {of}, and this machine is {}", std::env::consts::ARCH))
                    .advise("install the runtime for this machine")
            }
            _ => finding("is neither a program for this machine nor a script with a first line like #!/bin/sh")
                .advise("check that it is whole: a download may have broken off, or be a page that says so"),
        },
        _ => Finding::fault(NAME, Exit::USAGE, format!("{error:#}")),
    }
}

fn is_no_program(error: &SpawnError) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.and_then(std::io::Error::raw_os_error) == Some(Errno::NOEXEC.raw_os_error())
}

/// What a file is, by its first bytes.
enum Kind {
    /// With its first line.
    Script(String),
    /// With the machine or system that it is for.
    Program(Cow<'static, str>),
    Other,
}

impl Kind {
    fn of(path: &Path) -> Self {
        let mut head = Vec::new();
        // What cannot be read is nothing that we know.
        let _ = File::open(path).and_then(|file| file.take(128).read_to_end(&mut head));
        match *head.as_slice() {
            [b'#', b'!', ref rest @ ..] => {
                let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
                Self::Script(format!("#!{}", String::from_utf8_lossy(line)))
            }
            [0x7f, b'E', b'L', b'F', _, 2, ..] => Self::Program(machine(head.get(18..20), u16::from_be_bytes)),
            [0x7f, b'E', b'L', b'F', ..] => Self::Program(machine(head.get(18..20), u16::from_le_bytes)),
            [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => Self::Program("macOS".into()),
            [b'M', b'Z', ..] => Self::Program("Windows".into()),
            _ => Self::Other,
        }
    }
}

/// The field `e_machine` of an ELF header.
fn machine(bytes: Option<&[u8]>, number: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let Some(&[first, second]) = bytes else { return "an unknown machine".into() };
    match number([first, second]) {
        3 => "x86".into(),
        8 => "mips".into(),
        21 => "powerpc64".into(),
        22 => "s390x".into(),
        40 => "arm".into(),
        62 => "x86_64".into(),
        183 => "aarch64".into(),
        243 => "riscv".into(),
        258 => "loongarch".into(),
        other => format!("machine {other}").into(),
    }
}

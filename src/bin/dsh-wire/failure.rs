//! How a command fails: one line for people, details below it, and an exit code for scripts.

use std::error::Error;
use std::fmt;
use std::io::{self, LineWriter, Write};
use std::process::ExitCode;

use dsh_wire::json::{Json, JsonStr, Kind};
use dsh_wire::stdio::{self, ErrorKind};

use crate::output::Output;
use crate::terminal::Visible;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// The runtime answered with an error, the turn ended in one, or something of our own went wrong.
    pub(crate) const FAILED: Self = Self(1);
    /// The command was not used rightly, or what it names cannot be read or started.
    pub(crate) const USAGE: Self = Self(2);
    /// The runtime is gone.
    pub(crate) const GONE: Self = Self(3);
    /// The time was up.
    pub(crate) const TIMED_OUT: Self = Self(4);
    /// The runtime broke the protocol, or the client did not keep to the recording.
    pub(crate) const PROTOCOL: Self = Self(5);

    /// A signal asked us to end; 130 for Ctrl-C.
    pub(crate) fn signal(number: u8) -> Self {
        Self(128 | number)
    }

    /// By who is to blame.
    pub(crate) fn of(error: &stdio::Error) -> Self {
        match error.kind() {
            ErrorKind::Spawn(_) => Self::USAGE,
            ErrorKind::Closed(_) => Self::GONE,
            ErrorKind::TimedOut { .. } => Self::TIMED_OUT,
            ErrorKind::Protocol { .. } | ErrorKind::TooLong { .. } => Self::PROTOCOL,
            _ => Self::FAILED,
        }
    }

    pub(crate) fn code(self) -> u8 {
        self.0
    }
}

/// Why a command ends early.
pub(crate) enum Failure {
    /// Whoever reads our output has seen enough. Nothing is said and nothing is wrong.
    OutputClosed,
    /// To be told.
    Failed(Exit, Box<dyn Error>),
}

impl Failure {
    /// A misuse or an input that cannot be read.
    pub(crate) fn usage(error: impl Into<Box<dyn Error>>) -> Self {
        Self::Failed(Exit::USAGE, error.into())
    }

    /// What became of a write to stdout.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(Exit::FAILED, format!("cannot write the output: {error}").into()),
        }
    }

    /// Prints `error: …` and the details; returns the exit code.
    pub(crate) fn report(self, stderr: Output) -> ExitCode {
        let Self::Failed(exit, error) = self else { return ExitCode::SUCCESS };
        // Where stderr is closed there is nobody to tell.
        let _ = write_report(&mut LineWriter::new(stderr), &*error);
        ExitCode::from(exit.0)
    }
}

impl From<stdio::Error> for Failure {
    fn from(error: stdio::Error) -> Self {
        Self::Failed(Exit::of(&error), error.into())
    }
}

/// The turn of a run ended in an error of the model or the agent.
#[derive(Debug, Default)]
pub(crate) struct TurnFailed {
    code: Option<String>,
    message: Option<String>,
    /// HTTP status.
    status: Option<u64>,
}

impl TurnFailed {
    /// Reads the error, as much of it as there is.
    pub(crate) fn new(error: Json<'_>) -> Self {
        let text = |name| error.member(name).and_then(Json::as_str).map(|text| text.to_string());
        let status = error.member("status").and_then(Json::as_u64);
        Self { code: text("code"), message: text("message"), status }
    }

    /// With what a runtime from before 0.1.1 says.
    pub(crate) fn said(reason: Option<JsonStr<'_>>) -> Self {
        Self { message: reason.map(|reason| reason.to_string()), ..Self::default() }
    }
}

impl fmt::Display for TurnFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the turn ended in an error")
    }
}

impl Error for TurnFailed {}

impl From<TurnFailed> for Failure {
    fn from(failed: TurnFailed) -> Self {
        Self::Failed(Exit::FAILED, failed.into())
    }
}

fn write_report(out: &mut impl Write, error: &(dyn Error + 'static)) -> io::Result<()> {
    let known = error.downcast_ref::<stdio::Error>();
    writeln!(out, "error: {}", Visible(&error.to_string()))?;
    if let Some(answer) = known.and_then(stdio::Error::rpc) {
        // As it came: it may be a number that no integer holds.
        write_detail(out, "code", answer.raw.as_json().member("code").filter(|code| code.kind() != Kind::Null))?;
        write_detail(out, "message", Some(&answer.message))?;
        return write_detail(out, "data", answer.data.as_ref().map(|data| data.as_json().get()));
    }
    if let Some(turn) = error.downcast_ref::<TurnFailed>() {
        write_detail(out, "code", turn.code.as_ref())?;
        write_detail(out, "message", turn.message.as_ref())?;
        return write_detail(out, "status", turn.status);
    }
    let mut source = error.source();
    while let Some(cause) = source {
        write_detail(out, "cause", Some(cause))?;
        source = cause.source();
    }
    if let Some(ErrorKind::Protocol { came, .. }) = known.map(stdio::Error::kind) {
        write_detail(out, "came", Some(came.as_json()))?;
    }
    // Of a single line, the error has told.
    let tail = known.and_then(stdio::Error::stderr);
    if let Some(tail) = tail.filter(|tail| tail.last_line().is_none_or(|line| line != tail.text().trim())) {
        writeln!(out, "  stderr of the runtime:")?;
        tail.text().lines().try_for_each(|line| writeln!(out, "    {}", Visible(line)))?;
    }
    Ok(())
}

fn write_detail(out: &mut impl Write, name: &str, value: Option<impl fmt::Display>) -> io::Result<()> {
    match value {
        Some(value) => writeln!(out, "  {name}: {}", Visible(&value.to_string())),
        None => Ok(()),
    }
}

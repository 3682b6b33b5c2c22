//! How a command fails: one line for people, details below it, and an exit code for scripts.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::terminal::Visible;

/// The exit codes, by who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The output could not be written, as with a full disk.
    Output = 1,
    /// The command was not used rightly, or its input cannot be read.
    Usage = 2,
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
        Self::Failed(Exit::Usage, error.into())
    }

    /// What became of a write to stdout.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(Exit::Output, format!("cannot write the output: {error}").into()),
        }
    }

    /// Prints `error: …` and the chain of its sources; returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let Self::Failed(exit, error) = self else { return ExitCode::SUCCESS };
        // Where stderr is closed there is nobody to tell.
        let _ = write_report(&mut io::stderr().lock(), &*error);
        ExitCode::from(exit as u8)
    }
}

fn write_report(out: &mut impl Write, error: &dyn Error) -> io::Result<()> {
    writeln!(out, "error: {}", Visible(&error.to_string()))?;
    let mut source = error.source();
    while let Some(cause) = source {
        writeln!(out, "  caused by: {}", Visible(&cause.to_string()))?;
        source = cause.source();
    }
    Ok(())
}

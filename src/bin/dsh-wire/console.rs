//! The command as a process: its time, the signals that it gets, and its output.

use std::io::{self, LineWriter};
use std::process::ExitCode;
use std::time::Duration;

use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::output::{GivenUp, Output};
use crate::time::Time;

#[derive(Clone)]
pub(crate) struct Console {
    pub(crate) time: Time,
    pub(crate) interrupts: Interrupts,
    pub(crate) stderr: Output,
}

impl Console {
    /// The time runs from now on. Signals end the process, until they are caught.
    pub(crate) fn start(limit: Option<Duration>) -> Self {
        let (time, interrupts) = (Time::start(limit), Interrupts::new());
        let stderr = Output::new(rustix::stdio::stderr(), time, &interrupts);
        Self { time, interrupts, stderr }
    }

    /// Our stdout, line by line.
    pub(crate) fn stdout(&self) -> LineWriter<Output> {
        LineWriter::new(Output::new(rustix::stdio::stdout(), self.time, &self.interrupts))
    }

    /// Why the output could not be written.
    pub(crate) fn output_failure(&self, error: io::Error) -> Failure {
        match (GivenUp::of(&error), self.interrupts.signal()) {
            (Some(GivenUp::TimedOut), _) => self.time.failure("write the output"),
            (Some(given_up), Some(signal)) => {
                Failure::Failed(Exit::signal(signal), format!("cannot write the output: {given_up}").into())
            }
            _ => Failure::output(error),
        }
    }

    /// Says why the command failed, if it did; returns its exit code.
    pub(crate) fn conclude(&self, outcome: Result<(), Failure>) -> ExitCode {
        outcome.map_or_else(|failure| failure.report(self.stderr.clone()), |()| ExitCode::SUCCESS)
    }
}

//! The end of a connection by our own decision: the ladder, walked with real time and a real process.

use std::fmt;
use std::time::{Duration, Instant};
use std::vec::Vec;

use rustix::process::Signal;

use super::child::{Child, Exit};
use super::connection::{Connection, QUIET, TOKENS};
use super::error::Cause;
use super::journal;
use super::pump::Aim;
use super::tail::Tail;
use crate::client::{Call, Graces, Limits, Rung, RungReport, Step, Teardown};
use crate::peer::AbortToken;
use crate::wire::{Empty, Shutdown};

/// What a rung of the ladder gets, where there is no patience left for it.
const HURRIED: Duration = Duration::from_millis(100);

/// What the kernel gets at least for SIGKILL, so that the report can say how the process ended.
const SHORTEST_KILL: Duration = Duration::from_millis(100);

/// What [`close`](super::HarnessClient::close) did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CloseReport {
    /// Each rung of the ladder that was needed, with how long it took.
    pub rungs: Vec<RungReport>,
    /// How long it all took.
    pub took: Duration,
    /// How the process ended; `None` where there is no process, or it outlived SIGKILL.
    pub exit: Option<Exit>,
    /// How many processes of its group the runtime had left behind at its exit, where the system tells. They got
    /// SIGTERM, and 250 ms later SIGKILL.
    pub left_behind: usize,
    /// What it last wrote to stderr.
    pub stderr: Tail,
}

/// The rungs one a line, then the exit.
impl fmt::Display for CloseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rungs.iter().try_for_each(|rung| writeln!(f, "{rung}"))?;
        match self.exit {
            Some(exit) => write!(f, "the runtime {exit}")?,
            None => f.write_str("the connection is closed")?,
        }
        match self.left_behind {
            0 => Ok(()),
            n => write!(f, ", and {n} processes that it had left were ended"),
        }
    }
}

/// A ladder that is being walked.
#[derive(Debug)]
pub(super) struct Closing {
    teardown: Teardown,
    graces: Graces,
    /// The request of the first rung, while it waits.
    shutdown: Option<Call<Empty>>,
    since: Instant,
}

/// What is left of a connection at the end of the ladder. To take the status of the process may last a moment, and
/// concerns nobody else.
#[derive(Debug)]
pub(super) struct Ending {
    child: Option<Child>,
    graces: Graces,
    rungs: Vec<RungReport>,
    since: Instant,
}

impl Connection {
    /// Walks the ladder to its end, fast once the token is set, or says again how that went.
    pub(super) fn close(&mut self, graces: Graces, hurry: Option<&AbortToken>) -> CloseReport {
        if let Some(report) = &self.report {
            return report.clone();
        }
        self.begin_close(graces);
        loop {
            let hurried = hurry.is_some_and(AbortToken::is_aborted);
            let Some(until) = self.close_step(hurried) else { break };
            let now = self.now();
            let look = hurry.filter(|_| !hurried).map_or(until, |_| now + TOKENS);
            let until = until.min(look);
            if self.turn(now, Some(until), Aim::Output, &mut |_, _| {}).is_err() {
                // Without a poll the exit can still be waited for.
                let left = until.saturating_sub(self.now());
                self.child.as_mut().map(|child| child.wait(left));
            }
        }
        let ending = self.end_close();
        let report = ending.finish();
        self.closed_with(report)
    }

    /// Puts the ladder up. Subscriptions end now.
    pub(super) fn begin_close(&mut self, graces: Graces) {
        if self.is_closing() || self.report.is_some() {
            return;
        }
        self.client.unsubscribe_all();
        let since = Instant::now();
        let graces = Graces { kill: graces.kill.max(SHORTEST_KILL), ..graces };
        self.closing = Some(Closing { teardown: Teardown::new(graces), graces, shutdown: None, since });
    }

    /// Whether the ladder is being walked.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Goes on with the ladder: says until when there is nothing to do but to take turns; `None` at its end.
    pub(super) fn close_step(&mut self, hurried: bool) -> Option<Duration> {
        let mut closing = self.closing.take()?;
        let until = self.climb(&mut closing, hurried);
        self.closing = Some(closing);
        until
    }

    fn climb(&mut self, closing: &mut Closing, hurried: bool) -> Option<Duration> {
        let Closing { teardown, shutdown, .. } = closing;
        if hurried {
            teardown.hurry(HURRIED);
        }
        loop {
            self.expire();
            if let Some(end) = shutdown.as_ref().and_then(|call| self.client.take(call)) {
                teardown.shutdown_settled(end.is_ok());
                *shutdown = None;
            }
            if self.is_gone() {
                teardown.exited();
            }
            match teardown.step(self.now()) {
                Step::Do(Rung::RequestShutdown) => {
                    *shutdown = self.client.call::<Shutdown>(&Empty, &Limits::default()).ok();
                    if shutdown.is_none() {
                        teardown.shutdown_settled(false);
                    }
                }
                Step::Do(Rung::CloseStdin) => self.pump.close_output(self.client.peer_mut()),
                Step::Do(Rung::Terminate) => self.signal(Signal::TERM),
                Step::Do(Rung::Kill) => self.signal(Signal::KILL),
                Step::WaitUntil(until) => return Some(until),
                Step::Finished => return None,
            }
        }
    }

    /// Ends everything that is ours, and hands out what is left to be waited for.
    pub(super) fn end_close(&mut self) -> Ending {
        self.fail(Cause::ClosedHere);
        self.drain(&mut |_, _| {});
        let (graces, rungs, since) = match self.closing.take() {
            Some(Closing { teardown, graces, since, .. }) => (graces, teardown.report().to_vec(), since),
            None => (Graces::default(), Vec::new(), Instant::now()),
        };
        Ending { child: self.child.take(), graces, rungs, since }
    }

    /// Keeps the report for those who ask again.
    pub(super) fn closed_with(&mut self, report: CloseReport) -> CloseReport {
        report.rungs.iter().for_each(journal::rung);
        self.report.get_or_insert(report).clone()
    }

    /// Whether there is nobody left to be ended.
    fn is_gone(&self) -> bool {
        match &self.child {
            Some(child) => child.exit().is_some(),
            None => !self.pump.input_open(),
        }
    }

    fn signal(&mut self, signal: Signal) {
        match &self.child {
            Some(child) => child.signal(signal),
            // Without a process all that can be done is to hang up.
            None => self.pump.close_input(self.client.peer_mut()),
        }
    }
}

impl Ending {
    /// Ends what is left of the group and takes the status of the process.
    pub(super) fn finish(self) -> CloseReport {
        let Self { child, graces, rungs, since } = self;
        let mut report = CloseReport { rungs, ..CloseReport::default() };
        if let Some(mut child) = child {
            report.left_behind = child.end_group();
            child.reap(graces.kill);
            child.finish_stderr(QUIET);
            report.exit = child.exit();
            report.stderr = child.tail().clone();
        }
        report.took = since.elapsed();
        report
    }

    /// As dropping the process does: gives it a moment, then kills its group.
    pub(super) fn abandon(self) -> CloseReport {
        let Self { child, rungs, since, .. } = self;
        let mut report = CloseReport { rungs, ..CloseReport::default() };
        if let Some(mut child) = child {
            child.abandon();
            report.exit = child.exit();
            report.stderr = child.tail().clone();
        }
        report.took = since.elapsed();
        report
    }
}

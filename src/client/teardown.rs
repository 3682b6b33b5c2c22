//! The ladder that ends a runtime, as pure steps.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// What is done to end a runtime, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// The request `shutdown` is sent.
    RequestShutdown,
    /// Its stdin is closed.
    CloseStdin,
    /// Its process group gets SIGTERM.
    Terminate,
    /// Its process group gets SIGKILL.
    Kill,
}

impl Rung {
    fn next(self) -> Option<Self> {
        match self {
            Self::RequestShutdown => Some(Self::CloseStdin),
            Self::CloseStdin => Some(Self::Terminate),
            Self::Terminate => Some(Self::Kill),
            Self::Kill => None,
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestShutdown => "request shutdown",
            Self::CloseStdin => "close stdin",
            Self::Terminate => "terminate",
            Self::Kill => "kill",
        })
    }
}

/// How long each rung may take before the next.
///
/// The defaults fit the official runtime, which needs 6.2 s after the end of its stdin where its shell was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graces {
    /// For the answer to `shutdown`; 1 s.
    pub shutdown: Duration,
    /// For the exit after the end of stdin; 8 s.
    pub stdin: Duration,
    /// For the exit after SIGTERM; 3 s.
    pub terminate: Duration,
    /// For the exit after SIGKILL, which only the kernel can delay; 2 s. The blocking clients give no less than 100 ms,
    /// as nothing is gained by leaving before.
    pub kill: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self {
            shutdown: Duration::from_secs(1),
            stdin: Duration::from_secs(8),
            terminate: Duration::from_secs(3),
            kill: Duration::from_secs(2),
        }
    }
}

impl Graces {
    fn of(&self, rung: Rung) -> Duration {
        match rung {
            Rung::RequestShutdown => self.shutdown,
            Rung::CloseStdin => self.stdin,
            Rung::Terminate => self.terminate,
            Rung::Kill => self.kill,
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Do this, then ask again.
    Do(Rung),
    /// Wait until this time, or until there is something to tell; then ask again.
    WaitUntil(Duration),
    /// The ladder is at its end. Whether the runtime is, [`Teardown::has_exited`] says.
    Finished,
}

/// How a rung ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RungEnd {
    /// The runtime exited.
    Exited,
    /// The runtime answered the request.
    Answered,
    /// The request could not be made, or was answered with an error.
    Failed,
    /// Its time was up.
    TimedOut,
}

/// What one rung did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RungReport {
    /// Which one.
    pub rung: Rung,
    /// How long it lasted.
    pub took: Duration,
    /// How it ended.
    pub end: RungEnd,
}

impl fmt::Display for RungReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            RungEnd::Exited => "exited",
            RungEnd::Answered => "answered",
            RungEnd::Failed => "failed",
            RungEnd::TimedOut => "timed out",
        };
        write!(f, "{}: {end} after {:?}", self.rung, self.took)
    }
}

/// The ladder: each rung once, in order, none before the one above it has failed or had its time.
///
/// ```
/// use core::time::Duration;
/// use dsh_wire::client::{Graces, Rung, RungEnd, Step, Teardown};
///
/// let at = Duration::from_millis;
/// let mut teardown = Teardown::new(Graces::default());
/// assert_eq!(teardown.step(at(0)), Step::Do(Rung::RequestShutdown));
/// teardown.shutdown_settled(true);
/// assert_eq!(teardown.step(at(30)), Step::Do(Rung::CloseStdin));
/// assert_eq!(teardown.step(at(31)), Step::WaitUntil(at(8030)));
/// teardown.exited();
/// assert_eq!(teardown.step(at(50)), Step::Finished);
/// assert_eq!(teardown.report()[1].end, RungEnd::Exited);
/// ```
#[derive(Debug, Clone)]
pub struct Teardown {
    graces: Graces,
    /// The rung that has been begun, with the time.
    current: Option<(Rung, Duration)>,
    /// How the current rung has ended, before [`step`](Self::step) has heard of it.
    end: Option<RungEnd>,
    exited: bool,
    /// Strictly ascending by rung.
    report: Vec<RungReport>,
}

impl Teardown {
    /// A ladder that has not begun.
    #[must_use]
    pub fn new(graces: Graces) -> Self {
        Self { graces, current: None, end: None, exited: false, report: Vec::new() }
    }

    /// What to do at the time `now`, which must not go back.
    pub fn step(&mut self, now: Duration) -> Step {
        let next = match self.current {
            None if self.exited => return Step::Finished,
            None if self.report.is_empty() => Some(Rung::RequestShutdown),
            None => None,
            Some((rung, since)) => {
                let deadline = since.saturating_add(self.graces.of(rung));
                let end = match self.end.take() {
                    _ if self.exited => RungEnd::Exited,
                    Some(end) => end,
                    None if now < deadline => return Step::WaitUntil(deadline),
                    None => RungEnd::TimedOut,
                };
                self.report.push(RungReport { rung, took: now.saturating_sub(since), end });
                if self.exited { None } else { rung.next() }
            }
        };
        self.current = next.map(|rung| (rung, now));
        next.map_or(Step::Finished, Step::Do)
    }

    /// Leaves every rung but the last, also the one that has begun, no more than this time.
    pub fn hurry(&mut self, most: Duration) {
        let Graces { shutdown, stdin, terminate, kill: _ } = &mut self.graces;
        for grace in [shutdown, stdin, terminate] {
            *grace = most.min(*grace);
        }
    }

    /// Tells that the request `shutdown` was answered with a result, or else that it failed in any way.
    pub fn shutdown_settled(&mut self, answered: bool) {
        if matches!(self.current, Some((Rung::RequestShutdown, _))) {
            self.end = Some(if answered { RungEnd::Answered } else { RungEnd::Failed });
        }
    }

    /// Tells that the runtime has exited.
    pub fn exited(&mut self) {
        self.exited = true;
    }

    /// Whether the runtime has exited.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// The rungs that are over.
    #[must_use]
    pub fn report(&self) -> &[RungReport] {
        &self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the ladder against a runtime that exits some time after a rung; returns the report and the total.
    fn run(graces: Graces, answers: bool, exits: Option<(Rung, u64)>) -> (Vec<(Rung, u128, RungEnd)>, Duration) {
        let (mut now, mut exit_at) = (Duration::ZERO, None);
        let mut teardown = Teardown::new(graces);
        loop {
            match teardown.step(now) {
                Step::Do(rung) => {
                    if rung == Rung::RequestShutdown && answers {
                        teardown.shutdown_settled(true);
                    }
                    if let Some((last, after)) = exits.filter(|(last, _)| *last == rung) {
                        exit_at = Some(now + Duration::from_millis(after)).filter(|_| last == rung);
                    }
                }
                Step::WaitUntil(until) => match exit_at.filter(|at| *at <= until) {
                    Some(at) => {
                        now = at;
                        teardown.exited();
                    }
                    None => now = until,
                },
                Step::Finished => break,
            }
        }
        assert_eq!(teardown.step(now), Step::Finished);
        (teardown.report().iter().map(|rung| (rung.rung, rung.took.as_millis(), rung.end)).collect(), now)
    }

    #[test]
    fn each_rung_once_in_order_within_its_time() {
        use Rung::*;
        use RungEnd::*;
        let graces = Graces::default();
        let orderly = [(RequestShutdown, 0, Answered), (CloseStdin, 50, Exited)];
        assert_eq!(run(graces, true, Some((CloseStdin, 50))).0, orderly);
        let deaf = [(RequestShutdown, 1000, TimedOut), (CloseStdin, 8000, TimedOut), (Terminate, 10, Exited)];
        assert_eq!(run(graces, false, Some((Terminate, 10))).0, deaf);
        let (report, total) = run(graces, false, None);
        assert_eq!(report.last(), Some(&(Kill, 2000, TimedOut)));
        assert_eq!((report.len(), total), (4, Duration::from_secs(14)));
    }

    #[test]
    fn a_grace_may_be_zero_or_endless() {
        let none = Duration::ZERO;
        let graces = Graces { shutdown: none, stdin: none, terminate: none, kill: Duration::MAX };
        let (report, total) = run(graces, false, Some((Rung::Kill, 7)));
        assert_eq!((report.len(), total), (4, Duration::from_millis(7)));
    }

    #[test]
    fn a_ladder_that_is_hurried_is_short_from_then_on() {
        let at = Duration::from_millis;
        let mut teardown = Teardown::new(Graces::default());
        assert_eq!(teardown.step(at(0)), Step::Do(Rung::RequestShutdown));
        assert_eq!(teardown.step(at(500)), Step::WaitUntil(at(1000)));
        teardown.hurry(at(100));
        assert_eq!(teardown.step(at(500)), Step::Do(Rung::CloseStdin));
        assert_eq!(teardown.step(at(500)), Step::WaitUntil(at(600)));
        assert_eq!(teardown.step(at(600)), Step::Do(Rung::Terminate));
        assert_eq!(teardown.step(at(700)), Step::Do(Rung::Kill));
        assert_eq!(teardown.step(at(700)), Step::WaitUntil(at(2700)));
    }

    #[test]
    fn a_runtime_that_is_gone_needs_no_rung() {
        let mut teardown = Teardown::new(Graces::default());
        teardown.exited();
        assert_eq!(teardown.step(Duration::ZERO), Step::Finished);
        assert!(teardown.report().is_empty() && teardown.has_exited());
    }
}

//! The time that a command was given.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Exit, Failure};

/// How long a command may take, from its start.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// What was asked for.
    limit: Option<Duration>,
    deadline: Option<Instant>,
}

impl Time {
    /// It runs from now on. A time that cannot be counted to is none.
    pub(crate) fn start(limit: Option<Duration>) -> Self {
        Self { limit, deadline: limit.and_then(|limit| Instant::now().checked_add(limit)) }
    }

    /// What is left of it, in whole milliseconds.
    pub(crate) fn left(self) -> Option<Duration> {
        let left = self.deadline?.saturating_duration_since(Instant::now());
        Some(Duration::from_millis(left.as_millis().try_into().unwrap_or(u64::MAX)))
    }

    /// What was asked for, for people; nobody waits for a time without end.
    pub(crate) fn limit(self) -> Duration {
        self.limit.unwrap_or(Duration::MAX)
    }

    pub(crate) fn is_up(self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// How a command fails that could not do this in time.
    pub(crate) fn failure(self, attempted: &str) -> Failure {
        let after = self.limit.map(|limit| format!(" after {limit:?}")).unwrap_or_default();
        Failure::Failed(Exit::TIMED_OUT, format!("cannot {attempted}: timed out{after}").into())
    }

    /// Does what may wait for others without end, such as to open or read a pipe. Where the time is up before that, the
    /// thread that does it is left to the end of the process.
    pub(crate) fn bound<T: Send + 'static>(
        self,
        attempted: &str,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let Some(left) = self.left() else { return Ok(act()) };
        let (tell, told) = mpsc::channel();
        thread::Builder::new()
            .name("input".into())
            .spawn(move || {
                // Nobody hears it where the time is up.
                let _ = tell.send(catch_unwind(AssertUnwindSafe(act)));
            })
            .map_err(|error| Failure::Failed(Exit::FAILED, format!("cannot start a thread: {error}").into()))?;
        match told.recv_timeout(left) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => resume_unwind(panic),
            // It says what became of it before it ends.
            Err(_) => Err(self.failure(attempted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_timeout() {
        let time = Time::start(Some(Duration::from_secs(60)));
        let caught = std::panic::catch_unwind(|| time.bound("do it", || panic!("a fault of ours")));
        let said = caught.err().and_then(|panic| panic.downcast::<&str>().ok());
        assert_eq!(said.as_deref(), Some(&"a fault of ours"));
    }
}

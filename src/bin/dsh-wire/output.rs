//! What is written for somebody who may have stopped reading.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

/// How long a reader may take nothing, once there is a reason to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked for a reason.
const LOOK: Duration = Duration::from_millis(20);

/// Why a write was given up: nobody read what it wrote, and there was a reason to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenUp {
    Interrupted,
    TimedOut,
}

impl GivenUp {
    /// Whether a write has failed for this.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "interrupted while nobody read it",
            Self::TimedOut => "timed out while nobody read it",
        })
    }
}

impl std::error::Error for GivenUp {}

/// A stream of ours. A write waits for room as long as it takes; once `reason` has one to end, until the reader has taken
/// nothing for [`PATIENCE`]. From then on every write fails.
pub(crate) struct Output<R> {
    to: File,
    /// A write that finds no room says so.
    never_waits: bool,
    reason: R,
    given_up: Option<GivenUp>,
}

impl<R: Fn() -> Option<GivenUp>> Output<R> {
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn new(stream: &impl AsFd, reason: R) -> io::Result<Self> {
        let to = File::from(stream.as_fd().try_clone_to_owned()?);
        let is_file = to.metadata().is_ok_and(|metadata| metadata.is_file());
        let (to, never_waits) = never_waiting(to);
        Ok(Self { to, never_waits: never_waits || is_file, reason, given_up: None })
    }

    fn wait_for_room(&mut self) -> io::Result<()> {
        let tick = Timespec::try_from(LOOK).unwrap_or_default();
        let mut since = None;
        loop {
            let reason = (self.reason)();
            match rustix::event::poll(&mut [PollFd::new(&self.to, PollFlags::OUT)], Some(&tick)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if let Some(reason) = reason
                && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
            {
                self.given_up = Some(reason);
                return Err(io::Error::other(reason));
            }
        }
    }
}

impl<R: Fn() -> Option<GivenUp>> Write for Output<R> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(reason) = self.given_up {
            return Err(io::Error::other(reason));
        }
        // Where there is room, it is for so much.
        let most = if self.never_waits { bytes.len() } else { PIPE_BUF };
        let mut ask = !self.never_waits;
        loop {
            if ask {
                self.wait_for_room()?;
            }
            match self.to.write(bytes.get(..most).unwrap_or(bytes)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ask = true,
                outcome => return outcome,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe, opened once more in a mode of our own: that of a descriptor may be shared with others, and stays as it is.
/// Returns whether that could be done.
pub(crate) fn never_waiting(to: File) -> (File, bool) {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let again =
        || File::options().write(true).custom_flags(nonblocking).open(format!("/proc/self/fd/{}", to.as_raw_fd()));
    let pipe = to.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
    match pipe.then(again) {
        Some(Ok(again)) => (again, true),
        _ => (to, false),
    }
}

//! What is written for somebody who may have stopped reading.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use crate::interrupt::Interrupts;
use crate::time::Time;

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

/// A stream of ours. A write waits for room as long as it takes; once the time is up or a signal has come, until the
/// reader has taken nothing for [`PATIENCE`]. From then on every write fails, that of every clone too.
#[derive(Clone)]
pub(crate) struct Output {
    to: BorrowedFd<'static>,
    /// The same, opened once more so that a write that finds no room says so.
    again: Option<Arc<File>>,
    /// How much may be written without waiting where there is room.
    piece: usize,
    time: Time,
    interrupts: Interrupts,
    given_up: Arc<OnceLock<GivenUp>>,
}

impl Output {
    pub(crate) fn new(to: BorrowedFd<'static>, time: Time, interrupts: &Interrupts) -> Self {
        let again = opened_again(to).map(Arc::new);
        let kind = rustix::fs::fstat(to).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let piece = match kind {
            _ if again.is_some() => usize::MAX,
            Ok(FileType::RegularFile) => usize::MAX,
            Ok(FileType::CharacterDevice) if to.is_terminal() => 1,
            _ => PIPE_BUF,
        };
        Self { to, again, piece, time, interrupts: interrupts.clone(), given_up: Arc::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.again.as_ref().map_or(self.to, |again| again.as_fd())
    }

    /// Why nobody has to wait for a reader any more.
    fn reason(&self) -> Option<GivenUp> {
        match self.interrupts.signal() {
            Some(_) => Some(GivenUp::Interrupted),
            None => self.time.is_up().then_some(GivenUp::TimedOut),
        }
    }

    /// Whether there is room, or will be within this time.
    fn has_room(&self, within: Duration) -> io::Result<bool> {
        let within = Timespec::try_from(within).unwrap_or_default();
        match rustix::event::poll(&mut [PollFd::new(&self.fd(), PollFlags::OUT)], Some(&within)) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }

    fn wait_for_room(&self) -> io::Result<()> {
        let mut since = None;
        loop {
            let reason = self.reason();
            if self.has_room(LOOK)? {
                return Ok(());
            }
            if let Some(reason) = reason
                && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
            {
                return Err(io::Error::other(*self.given_up.get_or_init(|| reason)));
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(reason) = self.given_up.get() {
            return Err(io::Error::other(*reason));
        }
        let piece = bytes.get(..self.piece).unwrap_or(bytes);
        let mut ask = self.piece < usize::MAX;
        loop {
            if ask {
                self.wait_for_room()?;
            }
            match rustix::io::write(self.fd(), piece) {
                Err(Errno::AGAIN) => ask = true,
                outcome => return Ok(outcome?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe, opened once more in a mode of our own: that of a descriptor may be shared with others, and stays as it is.
pub(crate) fn opened_again(to: BorrowedFd<'_>) -> Option<File> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(to).ok()?.st_mode);
    let again = || {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        File::options().write(true).custom_flags(nonblocking).open(format!("/proc/self/fd/{}", to.as_raw_fd())).ok()
    };
    (kind == FileType::Fifo).then(again)?
}

//! What is written for somebody who may have stopped reading.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags, major, minor};
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
    /// How much may be written without waiting where there is room; all that there is where it need not be asked for.
    piece: usize,
    time: Time,
    interrupts: Interrupts,
    given_up: Arc<OnceLock<GivenUp>>,
}

impl Output {
    pub(crate) fn new(to: BorrowedFd<'static>, time: Time, interrupts: &Interrupts) -> Self {
        let again = pipe_again(to).or_else(|| terminal_again(to)).map(Arc::new);
        let piece = match file_type(to) {
            _ if again.is_some() => usize::MAX,
            Some(FileType::RegularFile) => usize::MAX,
            Some(FileType::CharacterDevice) if to.is_terminal() => 1,
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

    /// Writes what there is room for now. Returns how much that is; `None` where there is no room.
    fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        if self.piece < usize::MAX && !self.has_room(Duration::ZERO)? {
            return Ok(None);
        }
        match rustix::io::write(self.fd(), bytes.get(..self.piece).unwrap_or(bytes)) {
            Err(Errno::AGAIN) => Ok(None),
            outcome => Ok(Some(outcome?)),
        }
    }

    /// Writes as much as there is room for now. Returns whether anything was written.
    pub(crate) fn write_without_waiting(&self, mut bytes: &[u8]) -> bool {
        let all = bytes.len();
        while self.given_up.get().is_none()
            && let Ok(Some(len @ 1..)) = self.try_write(bytes)
        {
            bytes = bytes.get(len..).unwrap_or_default();
        }
        bytes.len() < all
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(reason) = self.given_up.get() {
            return Err(io::Error::other(*reason));
        }
        let (mut since, mut had_room) = (None, false);
        loop {
            if let Some(len) = self.try_write(bytes)? {
                return Ok(len);
            }
            if let Some(reason) = self.reason()
                && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
            {
                return Err(io::Error::other(*self.given_up.get_or_init(|| reason)));
            }
            if had_room {
                // A terminal says so of room that is too small for a line end, which takes two bytes there.
                thread::sleep(LOOK);
            }
            had_room = self.has_room(LOOK)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe, opened once more in a mode of our own: that of a descriptor may be shared with others, and stays as it is.
pub(crate) fn pipe_again(to: BorrowedFd<'_>) -> Option<File> {
    (file_type(to)? == FileType::Fifo).then(|| opened_again(to))?
}

/// The same for a terminal. The end of a pseudo-terminal that makes it one cannot be opened once more: that makes another.
fn terminal_again(to: BorrowedFd<'_>) -> Option<File> {
    let device = rustix::fs::fstat(to).ok()?.st_rdev;
    // The numbers of /dev/ptmx.
    let makes_terminals = (major(device), minor(device)) == (5, 2);
    (to.is_terminal() && !makes_terminals).then(|| opened_again(to))?
}

fn opened_again(to: BorrowedFd<'_>) -> Option<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    File::options().write(true).custom_flags(flags).open(format!("/proc/self/fd/{}", to.as_raw_fd())).ok()
}

fn file_type(of: BorrowedFd<'_>) -> Option<FileType> {
    Some(FileType::from_raw_mode(rustix::fs::fstat(of).ok()?.st_mode))
}

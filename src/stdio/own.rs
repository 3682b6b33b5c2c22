//! The process's own stdin and stdout, taken for the protocol.

use std::format;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// Whether an [`OwnStdio`] exists; it is about the process, so it is the process's.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The lowest descriptor that is none of the three standard ones.
const FIRST_FREE: i32 = 3;

/// `statfs` type of anonymous pipes.
const PIPEFS_MAGIC: u64 = 0x5049_5045;

/// The process's stdin and stdout while they belong to the protocol: private descriptors of both, and in their places
/// `/dev/null` as stdin and stderr as stdout. So a stray `println!`, a C library that writes to descriptor 1, or a
/// child that inherits the standard descriptors cannot touch the stream. Undone on drop.
///
/// The blocking mode that the parent process sees is never changed, except where stdin or stdout is a socket: then it
/// is set for the time, since a socket cannot be opened anew.
///
/// ```no_run
/// use dsh_wire::stdio::{OwnStdio, Pump};
///
/// let stdio = OwnStdio::take()?;
/// let pump = Pump::new(stdio.reader()?, stdio.writer()?)?;
/// println!("this goes to stderr");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct OwnStdio {
    /// Before `input`, since it is dropped first: where both are one socket, `input` has seen its flags first.
    output: Taken,
    input: Taken,
}

/// A duplicate of a standard descriptor, close-on-exec.
#[derive(Debug)]
struct Taken {
    fd: OwnedFd,
    /// Flags to be set again.
    restore: Option<OFlags>,
}

impl OwnStdio {
    /// Takes both.
    ///
    /// # Errors
    /// They are taken already, one of them is closed, or the system refuses a step; nothing has changed then.
    pub fn take() -> io::Result<Self> {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Err(io::Error::other("cannot take stdin and stdout: they are taken already"));
        }
        let taken = Self::divert();
        if taken.is_err() {
            TAKEN.store(false, Ordering::Release);
        }
        taken
    }

    fn divert() -> io::Result<Self> {
        let null = File::options().read(true).write(true).open("/dev/null").map_err(about("open /dev/null"))?;
        let input = Taken::new(stdin()).map_err(about("take stdin"))?;
        let output = Taken::new(stdout()).map_err(about("take stdout"))?;
        // From here on the drop undoes it.
        let taken = Self { input, output };
        dup2_stdin(&null).map_err(about("point stdin at /dev/null"))?;
        match dup2_stdout(stderr()) {
            Err(Errno::BADF) => dup2_stdout(&null),
            done => done,
        }
        .map_err(about("point stdout at stderr"))?;
        Ok(taken)
    }

    /// A descriptor of what was stdin, in non-blocking mode where that is nobody else's concern.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn reader(&self) -> io::Result<OwnedFd> {
        self.input.open(OFlags::RDONLY)
    }

    /// A descriptor of what was stdout, in non-blocking mode where that is nobody else's concern.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn writer(&self) -> io::Result<OwnedFd> {
        self.output.open(OFlags::WRONLY)
    }
}

impl Drop for OwnStdio {
    fn drop(&mut self) {
        // If one fails nothing better is left to do.
        let _ = dup2_stdin(&self.input.fd);
        let _ = dup2_stdout(&self.output.fd);
        TAKEN.store(false, Ordering::Release);
    }
}

impl Taken {
    fn new(standard: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut taken = Self { fd: rustix::io::fcntl_dupfd_cloexec(standard, FIRST_FREE)?, restore: None };
        if file_type(&taken.fd)? == FileType::Socket {
            let flags = rustix::fs::fcntl_getfl(&taken.fd)?;
            rustix::fs::fcntl_setfl(&taken.fd, flags | OFlags::NONBLOCK)?;
            taken.restore = Some(flags);
        }
        Ok(taken)
    }

    /// Opens a pipe or terminal anew, so that non-blocking mode is ours alone. Where that cannot be done, a duplicate
    /// in the mode it has will do: the pump asks before it reads or writes.
    fn open(&self, access: OFlags) -> io::Result<OwnedFd> {
        if self.can_be_reopened() {
            let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
            let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            if let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) {
                return Ok(fd);
            }
        }
        Ok(rustix::io::fcntl_dupfd_cloexec(&self.fd, FIRST_FREE)?)
    }

    /// A file would start again from its beginning, and a named pipe that is opened when its last writer has left
    /// never reports its end.
    fn can_be_reopened(&self) -> bool {
        match file_type(&self.fd) {
            Ok(FileType::Fifo) => rustix::fs::fstatfs(&self.fd).is_ok_and(|fs| fs.f_type as u64 == PIPEFS_MAGIC),
            Ok(FileType::CharacterDevice) => rustix::termios::isatty(&self.fd),
            _ => false,
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(flags) = self.restore {
            let _ = rustix::fs::fcntl_setfl(&self.fd, flags);
        }
    }
}

fn file_type(fd: impl AsFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// Names what was attempted.
fn about<E: Into<io::Error>>(attempt: &str) -> impl FnOnce(E) -> io::Error + '_ {
    move |error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("cannot {attempt}: {error}"))
    }
}

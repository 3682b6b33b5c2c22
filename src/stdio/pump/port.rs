//! One direction of a pump: a descriptor, and what is known about it.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::vec::Vec;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::line::READ;
use crate::peer::{Output, Peer};

/// Segments that go into one write.
const PIECES: usize = 32;

/// What a pipe takes without blocking once it polls as writable (`PIPE_BUF`).
const BLOCKING_WRITE: usize = 4096;

/// One direction.
#[derive(Debug)]
pub(super) enum Side {
    Open(Port),
    /// On loan to a thread that writes; meanwhile it was ended, or not, and the system told of room, or not.
    Lent {
        ended: bool,
        told: bool,
    },
    /// With the error that ended it; none after an orderly end.
    Ended(Option<io::Error>),
}

/// One descriptor and what is known about it.
#[derive(Debug)]
pub(super) struct Port {
    file: File,
    mode: Mode,
    /// Whether a read or write may get somewhere. Set by the system's events, cleared when one did not.
    ready: bool,
    /// The other end has hung up: no event will come any more, so only the end itself clears `ready`.
    hung_up: bool,
    /// A pipe without oddities: a read that comes back short has emptied it.
    short_is_empty: bool,
    /// A terminal, or what is like one.
    is_device: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Events come, reads and writes do not block.
    NonBlocking,
    /// Events come, but reads and writes block: ask before each.
    Blocking,
    /// No events come: always ready.
    Unpollable,
}

impl Side {
    /// Notes what the system has told.
    pub(super) fn note(&mut self, hung_up: bool) {
        match self {
            Self::Open(port) => {
                port.ready = true;
                port.hung_up |= hung_up;
            }
            Self::Lent { told, .. } => *told = true,
            Self::Ended(_) => {}
        }
    }

    /// Whether a read or write may get somewhere.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self, Self::Open(port) if port.ready)
    }

    /// Whether the other end has hung up, though not all may have been read.
    #[cfg(feature = "serve")]
    pub(super) fn has_hung_up(&self) -> bool {
        matches!(self, Self::Open(port) if port.hung_up)
    }

    pub(super) fn error(&self) -> Option<&io::Error> {
        match self {
            Self::Ended(error) => error.as_ref(),
            Self::Open(_) | Self::Lent { .. } => None,
        }
    }

    /// Closes the descriptor; an end told before stays as it was.
    pub(super) fn end(&mut self, registry: &Registry, error: Option<io::Error>) {
        if let Self::Lent { ended, .. } = self {
            *ended = true;
        } else if let Self::Open(port) = self {
            if port.mode != Mode::Unpollable {
                // Closing is not enough while another process holds the same open file description. It can only fail
                // where the descriptor is not registered, and then nothing is left to do.
                let _ = SourceFd(&port.file.as_raw_fd()).deregister(registry);
            }
            *self = Self::Ended(error);
        }
    }

    /// Takes the port out, where a write may get somewhere now.
    pub(super) fn lend(&mut self) -> Option<Port> {
        let Self::Open(port) = self else { return None };
        if !port.may_write() {
            return None;
        }
        match std::mem::replace(self, Self::Lent { ended: false, told: false }) {
            Self::Open(port) => Some(port),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Puts it back; says whether the direction was ended meanwhile.
    pub(super) fn give_back(&mut self, mut port: Port) -> bool {
        let (ended, told) = match self {
            Self::Lent { ended, told } => (*ended, *told),
            Self::Open(_) | Self::Ended(_) => (false, false),
        };
        port.ready |= told;
        *self = Self::Open(port);
        ended
    }
}

impl Port {
    pub(super) fn new(fd: OwnedFd, registry: &Registry, token: Token, interest: Interest) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        let mode = match SourceFd(&fd.as_raw_fd()).register(registry, token, interest) {
            Ok(()) if flags.contains(OFlags::NONBLOCK) => Mode::NonBlocking,
            Ok(()) => Mode::Blocking,
            Err(error) => match Errno::from_io_error(&error) {
                // epoll says the first, kqueue one of the others.
                Some(Errno::PERM | Errno::NODEV | Errno::INVAL) => Mode::Unpollable,
                _ => return Err(error),
            },
        };
        // A pipe in packet mode (O_DIRECT) gives one packet a read.
        let plain = flags.difference(OFlags::RWMODE | OFlags::NONBLOCK).is_empty();
        let short_is_empty = kind == FileType::Fifo && plain && mode == Mode::NonBlocking;
        let is_device = kind == FileType::CharacterDevice;
        Ok(Self { file: fd.into(), mode, ready: true, hung_up: false, short_is_empty, is_device })
    }

    /// One read, as far as it goes without waiting; `None` is the end of the input.
    pub(super) fn read<T>(&mut self, peer: &mut Peer<T>) -> io::Result<Option<usize>> {
        if !self.check(PollFlags::IN) {
            return Ok(Some(0));
        }
        let read = match peer.read_from(&mut self.file) {
            Ok(0) => return Ok(None),
            result => self.outcome(result)?,
        };
        if read < READ && self.short_is_empty && !self.hung_up {
            self.ready = false;
        }
        Ok(Some(read))
    }

    /// Whether a write may get somewhere now.
    pub(super) fn may_write(&mut self) -> bool {
        self.check(PollFlags::OUT)
    }

    /// One write, as far as it goes without waiting.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = match self.mode {
            Mode::Blocking if self.is_device => return self.write_bytewise(bytes),
            Mode::Blocking => bytes.get(..BLOCKING_WRITE).unwrap_or(bytes),
            Mode::NonBlocking | Mode::Unpollable => bytes,
        };
        let result = self.file.write(piece);
        self.written(result)
    }

    /// A terminal that polls as writable takes one byte without blocking, and may not take a second.
    fn write_bytewise(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        for byte in bytes.iter().take(BLOCKING_WRITE) {
            if !self.may_write() {
                break;
            }
            let result = self.file.write(std::slice::from_ref(byte));
            match self.written(result) {
                Ok(0) => break,
                Ok(len) => done += len,
                // The next write meets it again.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// One write of what waits, as far as it goes without waiting.
    pub(super) fn write_from(&mut self, output: &Output<'_>) -> io::Result<usize> {
        if self.mode == Mode::Blocking || output.bytes().len() == output.len() {
            return self.write(output.bytes());
        }
        let pieces: Vec<_> = output.chunks().take(PIECES).map(IoSlice::new).collect();
        let result = self.file.write_vectored(&pieces);
        self.written(result)
    }

    /// Whether a read or write may be tried now.
    fn check(&mut self, flags: PollFlags) -> bool {
        if self.ready && self.mode == Mode::Blocking {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            // An error here will be the read's or write's own.
            self.ready = rustix::event::poll(&mut [PollFd::new(&self.file, flags)], Some(&now)) != Ok(0);
        }
        self.ready
    }

    fn written(&mut self, result: io::Result<usize>) -> io::Result<usize> {
        match result {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            result => self.outcome(result),
        }
    }

    /// Sorts the result of a read or write: how far it got, or the error that ends the direction.
    fn outcome(&mut self, result: io::Result<usize>) -> io::Result<usize> {
        match result {
            Ok(len) => Ok(len),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // An unpollable one stays ready: nothing would ever say so again.
                self.ready = self.mode == Mode::Unpollable;
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}

//! [`Pump`]: the one loop that moves bytes between a peer and two descriptors.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use mio::event::{Event, Source};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::line::READ;
use crate::peer::Peer;

const WAKER: Token = Token(0);
const READER: Token = Token(1);
const WRITER: Token = Token(2);

/// Segments that go into one write.
const PIECES: usize = 32;

/// Bytes that are staged at once: what a pipe holds.
const STAGE: usize = 64 << 10;

/// What a pipe takes without blocking once it polls as writable (`PIPE_BUF`).
const BLOCKING_WRITE: usize = 4096;

/// Turns that move bytes without asking the system for events: other sources wait no longer than this.
const TURNS_WITHOUT_POLL: u32 = 16;

/// The longest time that one question to the system takes.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// One `mio::Poll`, a reader, a writer and a waker: moves bytes between a [`Peer`] and two descriptors, on the thread
/// that calls [`turn`](Self::turn).
///
/// Any descriptor will do. One that cannot be polled (a file, `/dev/null`) counts as always ready. One that is in
/// blocking mode is asked before each read or write, so that neither ever blocks; better is to hand in one in
/// non-blocking mode where its open file description belongs to nobody else.
///
/// A turn never reads only or writes only: both sides are served, so that two ends that send to each other at once
/// cannot block each other.
///
/// Further sources (signals, a pidfd, the stderr of a child) register with [`registry`](Self::registry) under tokens
/// from [`FREE_TOKEN`](Self::FREE_TOKEN) up and are read from [`events`](Self::events) after each turn. The pump is itself a
/// [`Source`], for a program with a `Poll` of its own: whenever that one reports it readable, take turns with a wait
/// of zero until one [moves nothing](Moved::is_nothing).
///
/// ```
/// use std::time::Duration;
/// use dsh_wire::peer::{Event, Peer};
/// use dsh_wire::stdio::Pump;
///
/// let (reader, writer) = std::io::pipe()?;
/// let mut pump = Pump::new(reader.into(), writer.into())?;
/// let mut peer: Peer<()> = Peer::new();
/// peer.notify("echo", &["hello"])?;
/// loop {
///     pump.turn(&mut peer, Some(Duration::from_secs(5)))?;
///     if let Some(Event::Notification { method, .. }) = peer.next_event() {
///         assert_eq!(method, "echo");
///         break;
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pump {
    /// `None` while a thread waits with it elsewhere.
    poller: Option<Poller>,
    /// That of the poller, to be had at any time.
    registry: Registry,
    waker: Waker,
    reader: Side,
    writer: Side,
    reading: bool,
    /// Turns since the system was last asked for events; at most [`TURNS_WITHOUT_POLL`].
    unasked: u32,
    total: Moved,
    /// Output that has left its peer: at most [`STAGE`] bytes, of which `written` have been written.
    staged: Vec<u8>,
    written: usize,
}

/// What to do after a turn that did not ask the system for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Take another turn.
    Turn,
    /// Ask without waiting, for other sources wait for their turn as well.
    Glance,
    /// Ask and wait: nothing can be moved.
    Wait,
}

/// A writer on loan, with a copy of what is to be written.
#[derive(Debug)]
pub(super) struct Loan {
    port: Port,
    bytes: Vec<u8>,
    result: io::Result<usize>,
}

impl Loan {
    /// One write, which does not block.
    pub(super) fn write(&mut self) {
        self.result = self.port.file.write(&self.bytes);
    }
}

/// The part of a [`Pump`] that waits. It can be taken out, so that others may use the rest meanwhile.
#[derive(Debug)]
pub(super) struct Poller {
    poll: Poll,
    /// What the last wait was told; empty if there was none since the last turn.
    events: Events,
}

impl Poller {
    /// Asks the system for events.
    pub(super) fn wait(&mut self, wait: Option<Duration>) -> io::Result<()> {
        // The system counts milliseconds in 32 bits; whoever waits for longer asks again.
        match self.poll.poll(&mut self.events, wait.map(|wait| wait.min(LONGEST_WAIT))) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }
}

/// One direction.
#[derive(Debug)]
enum Side {
    Open(Port),
    /// Lent to a thread that writes; it was ended meanwhile, or not.
    Lent {
        ended: bool,
    },
    /// With the error that ended it; none after an orderly end.
    Ended(Option<io::Error>),
}

/// One descriptor and what is known about it.
#[derive(Debug)]
struct Port {
    file: File,
    mode: Mode,
    /// Whether a read or write may get somewhere. Set by the system's events, cleared when one did not.
    ready: bool,
    /// The other end has hung up: no event will come any more, so only the end itself clears `ready`.
    hung_up: bool,
    /// A pipe without oddities: a read that comes back short has emptied it.
    short_is_empty: bool,
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

/// How many bytes were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes that came in.
    pub read: u64,
    /// Bytes that went out.
    pub written: u64,
}

impl Moved {
    /// Whether no byte was moved.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// Ends the wait of a [`Pump`] from any thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// Makes the turn that waits, or else the next one that would, return at once.
    pub fn wake(&self) {
        // It can only fail where the system is out of memory; a turn ends at its deadline then.
        let _ = self.0.wake();
    }
}

impl Pump {
    /// The first token that other sources may have.
    pub const FREE_TOKEN: Token = Token(3);

    /// A pump that reads from one descriptor and writes to another. Two ends of one socket have to be two
    /// descriptors; [`OwnedFd::try_clone`] makes the second.
    ///
    /// # Errors
    /// What the system reports when the poll is made or a descriptor cannot be looked at.
    pub fn new(reader: OwnedFd, writer: OwnedFd) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker(Arc::new(mio::Waker::new(poll.registry(), WAKER)?));
        let registry = poll.registry().try_clone()?;
        Ok(Self {
            reader: Side::Open(Port::new(reader, &registry, READER, Interest::READABLE)?),
            writer: Side::Open(Port::new(writer, &registry, WRITER, Interest::WRITABLE)?),
            poller: Some(Poller { poll, events: Events::with_capacity(32) }),
            registry,
            waker,
            reading: true,
            unasked: 0,
            total: Moved::default(),
            staged: Vec::new(),
            written: 0,
        })
    }

    /// Where further sources register.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// A handle that ends the wait from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Moves what can be moved now. If that is nothing, waits until something happens (bytes, room, a further source,
    /// the waker) but no longer than `wait`, and moves again. `None` waits for ever.
    ///
    /// One turn moves a bounded number of bytes; take the peer's events out before the next, or its memory grows.
    /// The end of a direction is told to the peer, and counts as nothing moved.
    ///
    /// # Errors
    /// What the system reports of the poll itself. An error of a read or write ends that direction instead; see
    /// [`input_error`](Self::input_error) and [`output_error`](Self::output_error).
    pub fn turn<T>(&mut self, peer: &mut Peer<T>, wait: Option<Duration>) -> io::Result<Moved> {
        self.forget_events();
        let open = (self.input_open(), self.output_open());
        let mut moved = self.transfer(peer);
        let ended = open != (self.input_open(), self.output_open());
        if moved.is_nothing() && !ended {
            self.ask(wait)?;
            moved = self.transfer(peer);
        } else if self.unasked >= TURNS_WITHOUT_POLL {
            self.ask(Some(Duration::ZERO))?;
        } else {
            self.unasked += 1;
        }
        Ok(moved)
    }

    /// What the last turn heard of further sources.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        let events = self.poller.iter().flat_map(|poller| &poller.events);
        events.filter(|event| event.token() >= Self::FREE_TOKEN)
    }

    /// Stops or resumes reading. What waits in the pipe stays there, and the other end feels it once the pipe is full.
    pub fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading
    }

    /// Whether more input may come.
    #[must_use]
    pub fn input_open(&self) -> bool {
        matches!(self.reader, Side::Open(_))
    }

    /// Whether the other end has closed the input: what is left of it is what the system holds.
    pub(super) fn input_hung_up(&self) -> bool {
        matches!(&self.reader, Side::Open(port) if port.hung_up)
    }

    /// Whether output can still be sent.
    #[must_use]
    pub fn output_open(&self) -> bool {
        matches!(self.writer, Side::Open(_) | Side::Lent { ended: false })
    }

    /// The error that ended the input, if one did.
    #[must_use]
    pub fn input_error(&self) -> Option<&io::Error> {
        self.reader.error()
    }

    /// The error that ended the output, if one did: of kind [`BrokenPipe`](ErrorKind::BrokenPipe) where the other end
    /// has closed it.
    #[must_use]
    pub fn output_error(&self) -> Option<&io::Error> {
        self.writer.error()
    }

    /// Ends the input: closes the descriptor and tells the peer.
    pub fn close_input<T>(&mut self, peer: &mut Peer<T>) {
        self.reader.end(&self.registry, None);
        peer.end_input();
    }

    /// Ends the output: closes the descriptor, drops what waits to be written, and tells the peer.
    pub fn close_output<T>(&mut self, peer: &mut Peer<T>) {
        self.writer.end(&self.registry, None);
        peer.end_output();
    }

    /// All bytes moved so far.
    #[must_use]
    pub fn total(&self) -> Moved {
        self.total
    }

    /// Asks the system for events and notes what they say about our two descriptors.
    pub(super) fn ask(&mut self, wait: Option<Duration>) -> io::Result<()> {
        let Some(poller) = &mut self.poller else { return Ok(()) };
        let result = poller.wait(wait);
        self.note_events();
        result
    }

    /// Whether the last question was answered with anything.
    #[cfg(test)]
    pub(super) fn has_heard(&self) -> bool {
        self.poller.as_ref().is_some_and(|poller| !poller.events.is_empty())
    }

    /// Takes out the part that waits; until it is back, nothing is heard of the descriptors.
    pub(super) fn take_poller(&mut self) -> Option<Poller> {
        self.poller.take()
    }

    /// Brings it back, and notes what it was told.
    pub(super) fn put_poller(&mut self, poller: Poller) {
        self.poller = Some(poller);
        self.note_events();
    }

    fn note_events(&mut self) {
        self.unasked = 0;
        for event in self.poller.iter().flat_map(|poller| &poller.events) {
            match event.token() {
                READER => self.reader.note(event.is_read_closed() || event.is_error()),
                WRITER => self.writer.note(event.is_write_closed() || event.is_error()),
                _ => {}
            }
        }
    }

    /// Forgets what the last wait was told, once everybody has seen it.
    pub(super) fn forget_events(&mut self) {
        if let Some(poller) = &mut self.poller {
            poller.events.clear();
        }
    }

    /// As [`turn`](Self::turn), but neither waits nor asks the system; [`next`](Self::next) says what to do then.
    pub(super) fn turn_at_once<T>(&mut self, peer: &mut Peer<T>) -> Moved {
        self.unasked += 1;
        self.transfer(peer)
    }

    /// What to do after a turn that did not ask.
    pub(super) fn next<T>(&self, peer: &mut Peer<T>) -> Next {
        let may_read = self.reading && self.reader.is_ready();
        let may_write = self.writer.is_ready() && !peer.outgoing().is_empty();
        match (may_read || may_write, self.unasked > TURNS_WITHOUT_POLL) {
            (false, _) => Next::Wait,
            (true, true) => Next::Glance,
            (true, false) => Next::Turn,
        }
    }

    /// Lends the writer out with what is to be written next, so that it can be written while others use the pump.
    /// `None` where there is nothing to write, or no room for it, or the writer may block.
    pub(super) fn lend_writer<T>(&mut self, peer: &mut Peer<T>) -> Option<Loan> {
        let ready = |port: &Port| port.ready && port.mode == Mode::NonBlocking;
        if peer.outgoing().is_empty() || !matches!(&self.writer, Side::Open(port) if ready(port)) {
            return None;
        }
        match std::mem::replace(&mut self.writer, Side::Lent { ended: false }) {
            Side::Open(port) => Some(Loan { port, bytes: peer.outgoing().commit().to_vec(), result: Ok(0) }),
            other => {
                self.writer = other;
                None
            }
        }
    }

    /// Whether it is lent out.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.writer, Side::Lent { .. })
    }

    /// Takes it back.
    pub(super) fn return_writer<T>(&mut self, peer: &mut Peer<T>, loan: Loan) {
        let Loan { mut port, result, .. } = loan;
        let result = port.written(result);
        // What the system has told meanwhile was told to nobody.
        port.ready = true;
        let ended = matches!(self.writer, Side::Lent { ended: true });
        self.writer = Side::Open(port);
        match result {
            Ok(written) => {
                self.total.written += written as u64;
                peer.outgoing().consume(written);
                if ended {
                    self.close_output(peer);
                }
            }
            Err(error) => {
                self.writer.end(&self.registry, Some(error));
                peer.end_output();
            }
        }
    }

    /// Writes what can be written now.
    pub(super) fn flush<T>(&mut self, peer: &mut Peer<T>) {
        loop {
            let written = self.write(peer);
            self.total.written += written;
            if written == 0 || peer.outgoing().is_empty() {
                break;
            }
        }
    }

    /// One write and one read, as far as they go without waiting.
    pub(super) fn transfer<T>(&mut self, peer: &mut Peer<T>) -> Moved {
        let moved = Moved { written: self.write(peer), read: if self.reading { self.read(peer) } else { 0 } };
        self.total.written += moved.written;
        self.total.read += moved.read;
        moved
    }

    /// Takes output from the peer, as much as one write may move, to be written with [`write_staged`](Self::write_staged)
    /// when the peer may be anybody's again.
    pub(super) fn stage<T>(&mut self, peer: &mut Peer<T>) {
        if !self.output_open() {
            peer.end_output();
        }
        if self.staged.len() == self.written {
            self.staged.clear();
            self.written = 0;
        }
        while self.staged.len() < STAGE {
            let output = peer.outgoing();
            let bytes = output.bytes();
            let taken = bytes.len().min(STAGE - self.staged.len());
            if taken == 0 {
                return;
            }
            self.staged.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            output.consume(taken);
        }
    }

    /// How much of what was staged has not been written.
    pub(super) fn staged(&self) -> usize {
        self.staged.len() - self.written
    }

    /// Whether a write of what was staged may get somewhere.
    pub(super) fn can_write_staged(&mut self) -> bool {
        match &mut self.writer {
            Side::Open(port) => self.staged.len() > self.written && port.check(PollFlags::OUT),
            Side::Lent { .. } | Side::Ended(_) => false,
        }
    }

    /// One write of what was staged, as far as it goes without waiting. An error ends the output, and the next
    /// [`stage`](Self::stage) tells the peer.
    pub(super) fn write_staged(&mut self) {
        let Side::Open(port) = &mut self.writer else { return };
        let bytes = self.staged.get(self.written..).unwrap_or_default();
        let bytes = match port.mode {
            Mode::Blocking => bytes.get(..BLOCKING_WRITE).unwrap_or(bytes),
            Mode::NonBlocking | Mode::Unpollable => bytes,
        };
        let result = match port.file.write(bytes) {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            result => port.outcome(result),
        };
        match result {
            Ok(written) => {
                self.written += written;
                self.total.written += written as u64;
            }
            Err(error) => {
                self.writer.end(&self.registry, Some(error));
                self.staged.clear();
                self.written = 0;
            }
        }
    }

    /// One read, as far as it goes without waiting; returns how much came.
    pub(super) fn read_once<T>(&mut self, peer: &mut Peer<T>) -> u64 {
        let read = if self.reading { self.read(peer) } else { 0 };
        self.total.read += read;
        read
    }

    fn write<T>(&mut self, peer: &mut Peer<T>) -> u64 {
        let Side::Open(port) = &mut self.writer else { return 0 };
        let output = peer.outgoing();
        if output.is_empty() || !port.check(PollFlags::OUT) {
            return 0;
        }
        let result = match port.mode {
            Mode::Blocking => port.file.write(output.bytes().get(..BLOCKING_WRITE).unwrap_or(output.bytes())),
            Mode::NonBlocking | Mode::Unpollable if output.bytes().len() == output.len() => {
                port.file.write(output.bytes())
            }
            Mode::NonBlocking | Mode::Unpollable => {
                let pieces: Vec<_> = output.chunks().take(PIECES).map(IoSlice::new).collect();
                port.file.write_vectored(&pieces)
            }
        };
        match port.written(result) {
            Ok(written) => {
                output.consume(written);
                written as u64
            }
            Err(error) => {
                self.writer.end(&self.registry, Some(error));
                peer.end_output();
                0
            }
        }
    }

    fn read<T>(&mut self, peer: &mut Peer<T>) -> u64 {
        let Side::Open(port) = &mut self.reader else { return 0 };
        if !port.check(PollFlags::IN) {
            return 0;
        }
        let end = match peer.read_from(&mut port.file) {
            Ok(0) => None,
            result => match port.outcome(result) {
                Ok(read) => {
                    if read < READ && port.short_is_empty && !port.hung_up {
                        port.ready = false;
                    }
                    return read as u64;
                }
                Err(error) => Some(error),
            },
        };
        self.reader.end(&self.registry, end);
        peer.end_input();
        0
    }
}

impl Pump {
    fn poll_fd(&self) -> io::Result<RawFd> {
        self.poller.as_ref().map(|poller| poller.poll.as_raw_fd()).ok_or_else(|| ErrorKind::ResourceBusy.into())
    }
}

/// Becomes readable whenever a turn would have something to do, where the last turns with a wait of zero left nothing
/// undone.
impl Source for Pump {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        SourceFd(&self.poll_fd()?).register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        SourceFd(&self.poll_fd()?).reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.poll_fd()?).deregister(registry)
    }
}

impl Side {
    fn note(&mut self, hung_up: bool) {
        if let Self::Open(port) = self {
            port.ready = true;
            port.hung_up |= hung_up;
        }
    }

    /// Whether a read or write may get somewhere.
    fn is_ready(&self) -> bool {
        matches!(self, Self::Open(port) if port.ready)
    }

    fn error(&self) -> Option<&io::Error> {
        match self {
            Self::Ended(error) => error.as_ref(),
            Self::Open(_) | Self::Lent { .. } => None,
        }
    }

    /// Closes the descriptor; an end told before stays as it was.
    fn end(&mut self, registry: &Registry, error: Option<io::Error>) {
        if let Self::Lent { ended } = self {
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
}

impl Port {
    fn new(fd: OwnedFd, registry: &Registry, token: Token, interest: Interest) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        let is_pipe = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::Fifo;
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
        let short_is_empty = is_pipe && plain && mode == Mode::NonBlocking;
        Ok(Self { file: fd.into(), mode, ready: true, hung_up: false, short_is_empty })
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

#[cfg(test)]
mod tests;

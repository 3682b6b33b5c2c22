//! [`Pump`]: the one loop that moves bytes between a peer and two descriptors.

mod port;

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use mio::event::{Event, Source};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};

use crate::peer::{Lent, Peer};
use port::{Port, Side};

const WAKER: Token = Token(0);
const READER: Token = Token(1);
const WRITER: Token = Token(2);

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
}

/// What a turn is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// For whatever can be moved.
    Anything,
    /// To write what waits.
    Output,
    /// To hear something: once all is written, the same turn waits.
    Input,
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

/// A writer on loan, with what is to be written next.
#[derive(Debug)]
pub(super) struct Loan {
    port: Port,
    output: Lent,
    written: io::Result<usize>,
}

impl Loan {
    /// One write, as far as it goes without waiting.
    pub(super) fn write(&mut self) {
        self.written = self.port.write(self.output.bytes());
    }

    /// Bytes to write, and how many of them were.
    #[cfg(all(test, feature = "serve"))]
    pub(super) fn progress(&self) -> (usize, Option<usize>) {
        (self.output.bytes().len(), self.written.as_ref().ok().copied())
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
        self.turn_for(Aim::Anything, peer, wait)
    }

    /// As [`turn`](Self::turn), with an aim.
    pub(super) fn turn_for<T>(&mut self, aim: Aim, peer: &mut Peer<T>, wait: Option<Duration>) -> io::Result<Moved> {
        self.forget_events();
        let open = (self.input_open(), self.output_open());
        let mut moved = self.transfer(peer);
        let ended = open != (self.input_open(), self.output_open());
        let all_written = aim == Aim::Input && moved.read == 0 && peer.outgoing().is_empty();
        if (moved.is_nothing() || all_written) && !ended {
            self.ask(wait)?;
            let more = self.transfer(peer);
            moved = Moved { read: moved.read + more.read, written: moved.written + more.written };
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
    #[cfg(feature = "serve")]
    pub(super) fn input_hung_up(&self) -> bool {
        self.reader.has_hung_up()
    }

    /// Whether output can still be sent.
    #[must_use]
    pub fn output_open(&self) -> bool {
        matches!(self.writer, Side::Open(_) | Side::Lent { ended: false, .. })
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
    #[cfg(all(test, feature = "serve"))]
    pub(super) fn has_heard(&self) -> bool {
        self.poller.as_ref().is_some_and(|poller| !poller.events.is_empty())
    }

    /// Whether a read and a write may get somewhere, and whether the system has told so of a writer on loan.
    #[cfg(all(test, feature = "serve"))]
    pub(super) fn readiness(&self) -> [bool; 3] {
        [self.reader.is_ready(), self.writer.is_ready(), matches!(self.writer, Side::Lent { told: true, .. })]
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

    /// Lends the writer out with what is to be written next, so that it can be written while others use the pump and
    /// the peer. `None` where there is nothing to write, or no room for it, or the writer is lent out.
    pub(super) fn lend_writer<T>(&mut self, peer: &mut Peer<T>) -> Option<Loan> {
        let mut output = peer.outgoing();
        if output.is_empty() {
            return None;
        }
        let port = self.writer.lend()?;
        Some(Loan { port, output: output.lend(), written: Ok(0) })
    }

    /// Whether it is lent out.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.writer, Side::Lent { .. })
    }

    /// Takes it back, and tells the peer how much was written.
    pub(super) fn return_writer<T>(&mut self, peer: &mut Peer<T>, loan: Loan) {
        let Loan { port, output, written } = loan;
        let ended = self.writer.give_back(port);
        match written {
            Ok(written) => {
                self.total.written += written as u64;
                peer.outgoing().give_back(output, written);
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

    /// One read, as far as it goes without waiting; returns how much came.
    #[cfg(feature = "serve")]
    pub(super) fn read_once<T>(&mut self, peer: &mut Peer<T>) -> u64 {
        let read = if self.reading { self.read(peer) } else { 0 };
        self.total.read += read;
        read
    }

    fn write<T>(&mut self, peer: &mut Peer<T>) -> u64 {
        let Side::Open(port) = &mut self.writer else { return 0 };
        let output = peer.outgoing();
        if output.is_empty() || !port.may_write() {
            return 0;
        }
        match port.write_from(&output) {
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
        let end = match port.read(peer) {
            Ok(Some(read)) => return read as u64,
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.reader.end(&self.registry, end);
        peer.end_input();
        0
    }

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

#[cfg(test)]
mod tests;

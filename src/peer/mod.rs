//! One connection as a state machine: bytes in, events out; calls, answers and notifications in, bytes out.
//!
//! A [`Peer`] does no input or output and keeps no time. There is no law of the order in which its methods have to
//! be called: each only does what it says, and what is left undone waits.
//!
//! - **Input**: [`push`](Peer::push), `read_from` (std), [`end_input`](Peer::end_input).
//! - **Events**: [`next_event`](Peer::next_event). Changes its answer after input and after
//!   [`poll_aborts`](Peer::poll_aborts).
//! - **Sending**: [`request`](Peer::request), [`notify`](Peer::notify), [`answer`](Peer::answer),
//!   [`refuse`](Peer::refuse), [`abort`](Peer::abort). An `Err` is for what we did wrong, and changes nothing; what the
//!   peer does wrong is an event.
//! - **Output**: [`outgoing`](Peer::outgoing), [`sent_mark`](Peer::sent_mark), [`is_flushed`](Peer::is_flushed).
//!
//! Every call ends exactly once: with [`Event::Response`], [`Event::Aborted`] or [`Event::Lost`], or by
//! [`abort`](Peer::abort), which hands its tag back.
//!
//! ```
//! use dsh_wire::peer::{Event, Peer};
//!
//! let mut client: Peer<&str> = Peer::with_seed(1);
//! let mut server: Peer<()> = Peer::with_seed(2);
//!
//! client.request("add", &[1, 2], "our sum", None)?;
//! server.push(client.outgoing().bytes());
//!
//! let (mut incoming, mut outgoing) = server.split();
//! while let Some(event) = incoming.next_event() {
//!     match event {
//!         Event::Request { method, reply, .. } if method == "add" => outgoing.answer(reply, &3)?,
//!         Event::Request { method, reply, .. } => outgoing.refuse_method(reply, method)?,
//!         other => panic!("{other:?}"),
//!     }
//! }
//! client.push(server.outgoing().bytes());
//! let Some(Event::Response { tag: "our sum", outcome: Ok(sum), .. }) = client.next_event() else { panic!() };
//! assert_eq!(sum.as_u64(), Some(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_has_atomic = "ptr")]
mod abort;
#[cfg(not(target_has_atomic = "ptr"))]
#[path = "abort_unavailable.rs"]
mod abort;
mod call;
mod event;
mod id;
mod incoming;
mod outgoing;
mod output;

use serde::Serialize;

pub use abort::{AbortReason, AbortToken};
pub use event::{DropReason, Dropped, Event, LostReason, Reply};
pub use id::CallId;
pub use incoming::Incoming;
pub use outgoing::{AnswerError, Outgoing, SendError};
#[cfg(feature = "stdio")]
pub(crate) use output::Lent;
pub use output::{Mark, Output};

use crate::frame;
use crate::line::{DEFAULT_LIMIT, LineBuffer};
use call::End;
use incoming::Inbound;
use outgoing::Outbound;

/// One end of one connection. `T` travels with each call and comes back with its end.
#[derive(Debug)]
pub struct Peer<T> {
    inbound: Inbound<T>,
    outbound: Outbound,
}

impl<T> Peer<T> {
    /// A connection whose ids start from random bits that std provides, with the
    /// [default line limit](crate::line::DEFAULT_LIMIT).
    #[cfg(feature = "std")]
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// As [`new`](Self::new), with another limit on the length of a line, in bytes.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn with_limit(line_limit: usize) -> Self {
        use core::hash::BuildHasher;
        Self::with_seed_and_limit(std::hash::RandomState::new().hash_one(0), line_limit)
    }

    /// A connection whose ids are chosen by `seed`, for tests and for targets without an operating system. Two
    /// connections of one seed use the same ids, and each takes the other's calls for its own.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_seed_and_limit(seed, DEFAULT_LIMIT)
    }

    /// As [`with_seed`](Self::with_seed), with another limit on the length of a line, in bytes.
    #[must_use]
    pub fn with_seed_and_limit(seed: u64, line_limit: usize) -> Self {
        let inbound = Inbound::new(seed, line_limit);
        let outbound = Outbound::new(inbound.calls.ids().connection());
        Self { inbound, outbound }
    }

    /// What tells this connection from others: the random bits of its ids.
    pub(crate) fn connection(&self) -> u64 {
        self.inbound.calls.ids().connection()
    }

    /// Takes bytes that came from the peer.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.inbound.lines.push(bytes);
    }

    /// Reads once from a stream, at most 64 KiB; returns how much came. 0 is its end, to be told by
    /// [`end_input`](Self::end_input).
    ///
    /// # Errors
    /// Those of the read.
    #[cfg(feature = "std")]
    pub fn read_from(&mut self, source: &mut impl std::io::Read) -> std::io::Result<usize> {
        self.inbound.lines.read_from(source)
    }

    /// Declares that no more bytes will come: the stream ended, or failed, or is not read any more. When the lines
    /// received before have been taken, every call left ends as [`Event::Lost`].
    pub fn end_input(&mut self) {
        self.inbound.ended = true;
        self.inbound.lines.end_input();
    }

    /// Declares that no more bytes can go out. Drops those that wait, and sending is an error from now on. Calls go
    /// on waiting: their answers may still come.
    pub fn end_output(&mut self) {
        self.outbound.closed = true;
        self.outbound.queue.clear();
    }

    /// The next event, lent until the next call on the peer.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event<'_, T>> {
        self.inbound.next_event()
    }

    /// Both directions at once, so that an event can be answered while it is lent.
    pub fn split(&mut self) -> (Incoming<'_, T>, Outgoing<'_>) {
        (Incoming(&mut self.inbound), Outgoing(&mut self.outbound))
    }

    /// The bytes that wait to go out.
    pub fn outgoing(&mut self) -> Output<'_> {
        Output(&mut self.outbound.queue)
    }

    /// Makes a call. Params that serialize to `null` are left out. `tag` comes back with the call's end; `token` can
    /// give it up.
    ///
    /// # Errors
    /// [`SendError::Aborted`] where the token is already set, [`SendError::Closed`] after the end of input or output,
    /// [`SendError::Encode`]. Nothing is written then, and `tag` is dropped.
    pub fn request(
        &mut self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        tag: T,
        token: Option<&AbortToken>,
    ) -> Result<CallId, SendError> {
        let set = token.filter(|token| token.is_aborted());
        if let Some(refusal) = set.map(AbortToken::reason).map(SendError::Aborted) {
            return Err(refusal);
        }
        if self.inbound.ended {
            return Err(SendError::Closed);
        }
        let calls = &mut self.inbound.calls;
        let mut id = [0; _];
        let id = calls.ids().write(calls.ids().next(), &mut id);
        let frame = self
            .outbound
            .open()?
            .append_withdrawable(|out| frame::encode_request(out, id, method, params))
            .map_err(SendError::Encode)?;
        Ok(calls.insert(tag, token.cloned(), frame))
    }

    /// Sends a notification. Params that serialize to `null` are left out.
    ///
    /// # Errors
    /// [`SendError::Closed`] after the end of output, [`SendError::Encode`].
    pub fn notify(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), SendError> {
        self.outbound.notify(method, params)
    }

    /// Answers a request with a result.
    ///
    /// # Errors
    /// As for [`notify`](Self::notify); the right to answer comes back in the error.
    pub fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), AnswerError> {
        self.outbound.answer(reply, result)
    }

    /// Answers a request with an error.
    ///
    /// # Errors
    /// As for [`answer`](Self::answer).
    pub fn refuse(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), AnswerError> {
        self.outbound.refuse(reply, code, message, data)
    }

    /// Gives up a call by our own decision: its tag comes back, and no event tells its end. A response that comes
    /// all the same is [`Event::Unmatched`]. A frame of which no byte has left is withdrawn; another is finished.
    /// `None` where the call has ended before.
    pub fn abort(&mut self, call: CallId) -> Option<T> {
        let (tag, frame) = self.inbound.calls.remove(call)?;
        self.outbound.queue.withdraw(frame);
        Some(tag)
    }

    /// Looks at the tokens of all calls; those that have been set end their calls, as with [`abort`](Self::abort),
    /// and [`Event::Aborted`] tells it.
    pub fn poll_aborts(&mut self) {
        let queue = &mut self.outbound.queue;
        self.inbound.calls.poll_tokens(|frame| {
            queue.withdraw(frame);
        });
    }

    /// A call that [`poll_aborts`](Self::poll_aborts) has ended and of which no event has told yet.
    pub(crate) fn next_aborted(&mut self) -> Option<(CallId, T, AbortReason)> {
        match self.inbound.calls.next_ended()? {
            (call, tag, End::Aborted(reason)) => Some((call, tag, reason)),
            // Calls that are lost are told at once.
            (_, _, End::Lost(_)) => None,
        }
    }

    /// The point in the output after everything that has been sent so far.
    #[must_use]
    pub fn sent_mark(&self) -> Mark {
        self.outbound.queue.mark()
    }

    /// Whether every byte before the mark has been consumed (or was withdrawn, or dropped at the end of output).
    #[must_use]
    pub fn is_flushed(&self, mark: Mark) -> bool {
        self.outbound.queue.is_flushed(mark)
    }

    /// Whether the end of input has been declared.
    #[must_use]
    pub fn input_ended(&self) -> bool {
        self.inbound.ended
    }

    /// Calls that wait for their end.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.inbound.calls.len()
    }

    /// Whether a call waits that could be given up through a token.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.inbound.calls.has_tokens()
    }

    /// Requests of the peer's that have not been answered; 0 after the end of output, since no answer can go out.
    #[must_use]
    pub fn replies_owed(&self) -> u64 {
        if self.outbound.closed { 0 } else { self.inbound.requests.saturating_sub(self.outbound.answered) }
    }

    /// Bytes of answers and refusals that wait to be written: what the peer makes us hold by asking and not reading.
    /// Never less than there are, and never more than waits at all.
    #[must_use]
    pub fn answers_waiting(&self) -> usize {
        self.outbound.answers_waiting()
    }

    /// The line buffer, for its counters.
    #[must_use]
    pub fn lines(&self) -> &LineBuffer {
        &self.inbound.lines
    }
}

#[cfg(feature = "std")]
impl<T> Default for Peer<T> {
    fn default() -> Self {
        Self::new()
    }
}

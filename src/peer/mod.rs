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
mod output;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

pub use abort::{AbortReason, AbortToken};
pub use event::{DropReason, Dropped, Event, LostReason, Reply};
pub use id::CallId;
#[cfg(feature = "stdio")]
pub(crate) use output::Lent;
pub use output::{Mark, Output};

use crate::frame::{self, Beginning, EncodeError, Frame, INTERNAL_ERROR, Id, LineWriter, METHOD_NOT_FOUND};
use crate::json::{self, JsonBuf, JsonStr};
use crate::line::{DEFAULT_LIMIT, Line, LineBuffer, Next, PREFIX};
use call::{Calls, End};

/// One end of one connection. `T` travels with each call and comes back with its end.
#[derive(Debug)]
pub struct Peer<T> {
    inbound: Inbound<T>,
    outbound: Outbound,
}

#[derive(Debug)]
struct Inbound<T> {
    lines: LineBuffer,
    /// The repaired text of a line with broken UTF-8, while its event is lent.
    scratch: String,
    calls: Calls<T>,
    /// Requests that have come.
    requests: u64,
    ended: bool,
}

#[derive(Debug, Default)]
struct Outbound {
    queue: output::Queue,
    /// Requests that have been answered; at most as many as have come.
    answered: u64,
    /// Where the last answer ends.
    last_answer: Mark,
    /// Bytes of all answers since the last time that none waited; no less than those that wait.
    answer_bytes: usize,
    closed: bool,
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
    /// connections of one seed use the same ids.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::with_seed_and_limit(seed, DEFAULT_LIMIT)
    }

    /// As [`with_seed`](Self::with_seed), with another limit on the length of a line, in bytes.
    #[must_use]
    pub fn with_seed_and_limit(seed: u64, line_limit: usize) -> Self {
        Self {
            inbound: Inbound {
                lines: LineBuffer::with_limit(line_limit),
                scratch: String::new(),
                calls: Calls::new(seed),
                requests: 0,
                ended: false,
            },
            outbound: Outbound::default(),
        }
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

impl<T> Inbound<T> {
    #[inline]
    fn next_event(&mut self) -> Option<Event<'_, T>> {
        // So it mostly is with a stream in small pieces.
        if !self.calls.has_ended() && self.lines.waits() { None } else { self.advance() }
    }

    fn advance(&mut self) -> Option<Event<'_, T>> {
        if let Some(ended) = self.calls.next_ended() {
            return Some(without_response(ended));
        }
        let next = loop {
            match self.lines.advance() {
                Some(Next::Overflowing) => match self.overflowing() {
                    Some((id, true)) => {
                        if let Some((call, tag)) = self.calls.answered(Id::from_proved(id.as_json())) {
                            let why = LostReason::TooLong { limit: self.lines.limit() };
                            return Some(Event::Lost { call, tag, why });
                        }
                    }
                    Some((_, false)) => break Next::Overflowing,
                    None => {}
                },
                Some(next) => break next,
                None if self.ended => return self.calls.lose_next().map(without_response),
                None => return None,
            }
        };
        let (number, len, prefix, why) = match self.lines.lend(next) {
            Line::Whole { number, bytes } => match Frame::parse(json::repair(bytes, &mut self.scratch)) {
                Ok(frame) => return Some(dispatch(frame, &mut self.calls, &mut self.requests)),
                Err(error) => (number, bytes.len() as u64, bytes, DropReason::NotAFrame(error)),
            },
            Line::TooLong { number, len, prefix } => {
                (number, len, prefix, DropReason::TooLong { limit: self.lines.limit() })
            }
            Line::Unterminated { number, len, prefix } => (number, len, prefix, DropReason::Unterminated),
            Line::Overflowing { prefix, .. } => {
                let Beginning { id, method } = Beginning::of(prefix, &mut self.scratch)?;
                self.requests += 1;
                return Some(Event::RequestTooLong {
                    method: method?,
                    reply: Reply::new(id),
                    limit: self.lines.limit(),
                });
            }
        };
        Some(Event::Dropped(Dropped { number, len, prefix: prefix.get(..PREFIX).unwrap_or(prefix), why }))
    }

    /// The id of the frame that has just passed the limit, and whether it is a response.
    fn overflowing(&mut self) -> Option<(JsonBuf, bool)> {
        let Line::Overflowing { prefix, .. } = self.lines.lend(Next::Overflowing) else { return None };
        let Beginning { id, method } = Beginning::of(prefix, &mut self.scratch)?;
        Some((id.as_json().to_buf(), method.is_none()))
    }
}

fn dispatch<'a, T>(frame: Frame<'a>, calls: &mut Calls<T>, requests: &mut u64) -> Event<'a, T> {
    match frame {
        Frame::Request { id, method, params } => {
            *requests += 1;
            Event::Request { method, params, reply: Reply::new(id) }
        }
        Frame::Notification { method, params } => Event::Notification { method, params },
        Frame::Response { id, outcome } => match calls.answered(id) {
            Some((call, tag)) => Event::Response { call, tag, outcome },
            None => Event::Unmatched { id, outcome },
        },
    }
}

fn without_response<'a, T>((call, tag, end): (CallId, T, End)) -> Event<'a, T> {
    match end {
        End::Aborted(reason) => Event::Aborted { call, tag, reason },
        End::Lost(why) => Event::Lost { call, tag, why },
    }
}

impl Outbound {
    fn open(&mut self) -> Result<&mut output::Queue, SendError> {
        if self.closed { Err(SendError::Closed) } else { Ok(&mut self.queue) }
    }

    fn notify(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), SendError> {
        self.open()?.append(|out| frame::encode_notification(out, method, params)).map_err(SendError::Encode)
    }

    fn notify_with(
        &mut self,
        method: &str,
        params: impl FnOnce(&mut LineWriter<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), SendError> {
        let sent = self.open()?.append(|out| frame::encode_notification_with(out, method, params));
        sent.map_err(SendError::Encode)
    }

    fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), AnswerError> {
        self.reply(reply, |out, id| frame::encode_result(out, id, result))
    }

    fn refuse(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), AnswerError> {
        self.reply(reply, |out, id| frame::encode_error(out, id, code, message, data))
    }

    fn reply(
        &mut self,
        reply: Reply,
        write: impl FnOnce(&mut Vec<u8>, Id<'_>) -> Result<usize, EncodeError>,
    ) -> Result<(), AnswerError> {
        let waiting = self.answers_waiting();
        let before = self.queue.len();
        let sent = self.open().and_then(|queue| queue.append(|out| write(out, reply.id())).map_err(SendError::Encode));
        match sent {
            Ok(()) => {
                self.answered += 1;
                self.answer_bytes = waiting + (self.queue.len() - before);
                self.last_answer = self.queue.mark();
                Ok(())
            }
            Err(why) => Err(AnswerError { reply, why }),
        }
    }

    fn answers_waiting(&self) -> usize {
        if self.queue.is_flushed(self.last_answer) { 0 } else { self.answer_bytes.min(self.queue.len()) }
    }
}

/// The receiving half of a [`Peer`], from [`Peer::split`].
#[derive(Debug)]
pub struct Incoming<'p, T>(&'p mut Inbound<T>);

impl<'p, T> Incoming<'p, T> {
    /// As [`Peer::next_event`].
    pub fn next_event(&mut self) -> Option<Event<'_, T>> {
        self.0.next_event()
    }

    /// One event, lent for as long as the peer itself is.
    #[must_use]
    pub fn into_next_event(self) -> Option<Event<'p, T>> {
        self.0.next_event()
    }
}

/// The half of a [`Peer`] that sends, from [`Peer::split`]. Calls are made on the whole peer.
#[derive(Debug)]
pub struct Outgoing<'p>(&'p mut Outbound);

impl Outgoing<'_> {
    /// As [`Peer::notify`].
    ///
    /// # Errors
    /// As there.
    pub fn notify(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), SendError> {
        self.0.notify(method, params)
    }

    /// The same of a method whose name needs no escapes, with params, an object, that are written piece by piece.
    pub(crate) fn notify_with(
        &mut self,
        method: &str,
        params: impl FnOnce(&mut LineWriter<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), SendError> {
        self.0.notify_with(method, params)
    }

    /// As [`Peer::answer`].
    ///
    /// # Errors
    /// As there.
    pub fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), AnswerError> {
        self.0.answer(reply, result)
    }

    /// As [`Peer::refuse`].
    ///
    /// # Errors
    /// As there.
    pub fn refuse(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), AnswerError> {
        self.0.refuse(reply, code, message, data)
    }

    /// Refuses a request that nobody takes, in the words of the reference transport: code -32601,
    /// `method not found: NAME`.
    ///
    /// # Errors
    /// As [`refuse`](Self::refuse).
    pub fn refuse_method(&mut self, reply: Reply, method: JsonStr<'_>) -> Result<(), AnswerError> {
        let message = format!("method not found: {method}");
        self.0.refuse(reply, METHOD_NOT_FOUND, &message, None::<&()>)
    }

    /// Refuses a request on a line over the limit: code -32603, with a message that names the limit.
    ///
    /// # Errors
    /// As [`refuse`](Self::refuse).
    pub fn refuse_too_long(&mut self, reply: Reply, limit: usize) -> Result<(), AnswerError> {
        let message = format!("the request is longer than the line limit of {limit} bytes");
        self.0.refuse(reply, INTERNAL_ERROR, &message, None::<&()>)
    }
}

/// Why nothing was sent. Nothing has changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SendError {
    /// The token of the call was already set.
    Aborted(AbortReason),
    /// The direction that it needs has ended.
    Closed,
    /// The caller's value has no JSON form.
    Encode(EncodeError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(reason) => write!(f, "the call was aborted before it was sent: {reason}"),
            Self::Closed => f.write_str("cannot send: the connection has ended"),
            Self::Encode(_) => f.write_str("cannot send the frame"),
        }
    }
}

impl core::error::Error for SendError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Encode(error) => Some(error),
            Self::Aborted(_) | Self::Closed => None,
        }
    }
}

/// Why an answer was not sent, with the right to answer.
#[derive(Debug)]
pub struct AnswerError {
    /// To try again with.
    pub reply: Reply,
    /// What went wrong.
    pub why: SendError,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot answer the request with id {:?}", self.reply.id())
    }
}

impl core::error::Error for AnswerError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.why)
    }
}

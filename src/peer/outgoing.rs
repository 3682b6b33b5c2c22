//! What is sent: notifications, answers, refusals, and the frames of calls.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use super::abort::AbortReason;
use super::event::Reply;
use super::output::{Mark, Queue};
use crate::frame::{self, EncodeError, INTERNAL_ERROR, Id, LineWriter, METHOD_NOT_FOUND};
use crate::json::JsonStr;

#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// What the connection is known by.
    connection: u64,
    pub(super) queue: Queue,
    /// Requests that have been answered; at most as many as have come.
    pub(super) answered: u64,
    /// Where the last answer ends.
    last_answer: Mark,
    /// Bytes of all answers since the last time that none waited; no less than those that wait.
    answer_bytes: usize,
    pub(super) closed: bool,
}

impl Outbound {
    pub(super) fn new(connection: u64) -> Self {
        Self { connection, ..Self::default() }
    }

    pub(super) fn open(&mut self) -> Result<&mut Queue, SendError> {
        if self.closed { Err(SendError::Closed) } else { Ok(&mut self.queue) }
    }

    pub(super) fn notify(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), SendError> {
        self.open()?.append(|out| frame::encode_notification(out, method, params)).map_err(SendError::Encode)
    }

    pub(super) fn notify_with(
        &mut self,
        method: &str,
        params: impl FnOnce(&mut LineWriter<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), SendError> {
        let sent = self.open()?.append(|out| frame::encode_notification_with(out, method, params));
        sent.map_err(SendError::Encode)
    }

    pub(super) fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), AnswerError> {
        self.reply(reply, |out, id| frame::encode_result(out, id, result))
    }

    pub(super) fn refuse(
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
        if reply.connection != self.connection {
            return Err(AnswerError { reply, why: SendError::OtherConnection });
        }
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

    pub(super) fn answers_waiting(&self) -> usize {
        if self.queue.is_flushed(self.last_answer) { 0 } else { self.answer_bytes.min(self.queue.len()) }
    }
}

/// The half of a [`Peer`](super::Peer) that sends, from [`Peer::split`](super::Peer::split). Calls are made on the whole peer.
#[derive(Debug)]
pub struct Outgoing<'p>(pub(super) &'p mut Outbound);

impl Outgoing<'_> {
    /// As [`Peer::notify`](super::Peer::notify).
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

    /// As [`Peer::answer`](super::Peer::answer).
    ///
    /// # Errors
    /// As there.
    pub fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), AnswerError> {
        self.0.answer(reply, result)
    }

    /// As [`Peer::refuse`](super::Peer::refuse).
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
    /// The request came on another connection, which still owes its answer.
    OtherConnection,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(reason) => write!(f, "the call was aborted before it was sent: {reason}"),
            Self::Closed => f.write_str("cannot send: the connection has ended"),
            Self::Encode(_) => f.write_str("cannot send the frame"),
            Self::OtherConnection => f.write_str("the request came on another connection: answer it there"),
        }
    }
}

impl core::error::Error for SendError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Encode(error) => Some(error),
            Self::Aborted(_) | Self::Closed | Self::OtherConnection => None,
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

//! Requests of agents to the client: [`Sink::request`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Serialize;

use super::host::Sink;
use crate::frame::{EncodeError, RpcError};
use crate::json::JsonBuf;
use crate::peer::{CallId, LostReason, SendError};
use crate::server::Unanswered;

/// Who waits for which answer.
#[derive(Debug, Default)]
pub(super) struct Asked(BTreeMap<CallId, Sender<Result<JsonBuf, Unanswered>>>);

impl Asked {
    pub(super) fn answered(&mut self, call: CallId, outcome: Result<JsonBuf, Unanswered>) {
        if let Some(waiting) = self.0.remove(&call) {
            // Whoever has given up in this moment does not hear it.
            let _ = waiting.send(outcome);
        }
    }

    fn wait_for(&mut self, call: CallId) -> Receiver<Result<JsonBuf, Unanswered>> {
        let (answer, waiting) = channel();
        self.0.insert(call, answer);
        waiting
    }
}

/// Why a request to the client has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The client answered with an error; with code -32601 where it knows no such method, as the official clients do
    /// unless they were told otherwise.
    Refused(RpcError),
    /// The time was up. The client may still act on the request.
    TimedOut,
    /// The answer is longer than the limit on a line, in bytes.
    TooLong {
        /// That limit.
        limit: usize,
    },
    /// The connection has ended, or the sessions are being released.
    Closed,
    /// The params have no JSON form.
    Encode(EncodeError),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the client refused the request"),
            Self::TimedOut => f.write_str("the client did not answer in time"),
            Self::TooLong { limit } => write!(f, "the client's answer is longer than the limit of {limit} bytes"),
            Self::Closed => f.write_str("cannot ask the client: the connection is ending"),
            Self::Encode(_) => f.write_str("cannot ask the client"),
        }
    }
}

impl std::error::Error for RequestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Encode(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Unanswered> for RequestError {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Refused(error) => Self::Refused(error),
            Unanswered::Lost(LostReason::TooLong { limit }) => Self::TooLong { limit },
            Unanswered::Lost(LostReason::InputEnded) | Unanswered::Closing => Self::Closed,
        }
    }
}

impl Sink {
    /// Makes a request to the client, such as to approve what the agent is about to do, and waits for the answer. It ends
    /// within that time: with the result, with the client's refusal, or with the connection. The protocol reserves this
    /// direction and knows no method in it yet; client and runtime have to agree on one.
    ///
    /// The calling thread waits, and nobody else; from [`Agent::prompt`](super::Agent::prompt) that includes the prompts
    /// that follow in the same session. The thread that moves the
    /// bytes, which runs agents where no other thread is to be had, does not wait: it gets [`RequestError::TimedOut`].
    ///
    /// # Errors
    /// [`RequestError`] says which.
    pub fn request(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        within: Duration,
    ) -> Result<JsonBuf, RequestError> {
        // As with events: code of others runs before anything is locked.
        let params = JsonBuf::from_serialize(params).map_err(|error| RequestError::Encode(error.into()))?;
        let mut hub = self.shared.lock();
        let call = match hub.server.request(method, &params) {
            Ok(call) => call,
            Err(SendError::Encode(error)) => return Err(RequestError::Encode(error)),
            // It has no token.
            Err(SendError::Closed | SendError::Aborted(_) | SendError::OtherConnection) => {
                return Err(RequestError::Closed);
            }
        };
        let answer = hub.asked.wait_for(call);
        self.shared.wake(hub);
        // Nothing would come while the thread that moves the bytes waits.
        let within = if self.shared.moves_the_bytes() { Duration::ZERO } else { within };
        match answer.recv_timeout(within) {
            Ok(outcome) => outcome.map_err(RequestError::from),
            // The loop has gone, and with it those who wait.
            Err(RecvTimeoutError::Disconnected) => Err(RequestError::Closed),
            Err(RecvTimeoutError::Timeout) => {
                let mut hub = self.shared.lock();
                hub.asked.0.remove(&call);
                hub.server.give_up(call);
                self.shared.wake(hub);
                // It may have come between the two.
                answer.try_recv().map_or(Err(RequestError::TimedOut), |outcome| outcome.map_err(RequestError::from))
            }
        }
    }
}

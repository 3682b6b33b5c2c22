//! What can go wrong for a caller, by kind.

use std::borrow::Cow;
use std::boxed::Box;
use std::fmt;
use std::io;
use std::string::String;
use std::sync::Arc;
use std::time::Duration;

use super::child::Exit;
use super::launch::SpawnError;
use super::tail::Tail;
use crate::client::Failure;
use crate::frame::{EncodeError, RpcError};
use crate::json::{JsonBuf, JsonString};
use crate::peer::{AbortReason, LostReason};
use crate::wire::DecodeError;

/// Why something was not done: what was attempted, on which session, and a kind to match on.
///
/// Its text is one line; with `{:#}` its sources follow on the same line, such as the message of an answer with an error
/// or why a program could not be started. What the runtime last wrote to stderr is [`stderr`](Self::stderr).
pub struct Error(Box<Inner>);

struct Inner {
    attempted: Cow<'static, str>,
    session: Option<JsonString>,
    kind: ErrorKind,
}

/// The kinds of [`Error`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The runtime answered with an error.
    Rpc(RpcError),
    /// The time was up.
    TimedOut {
        /// How long it was.
        after: Option<Duration>,
    },
    /// The token was set.
    Aborted(AbortReason),
    /// The connection has ended.
    Closed(Arc<Closed>),
    /// The runtime could not be started.
    Spawn(SpawnError),
    /// The runtime sent what the protocol does not allow there.
    Protocol {
        /// What was expected, and where.
        expected: DecodeError,
        /// What came.
        came: JsonBuf,
    },
    /// The answer is longer than the limit on a line.
    TooLong {
        /// That limit, in bytes.
        limit: usize,
    },
    /// Our own params have no JSON form.
    Encode(EncodeError),
    /// The end of the call or run has been taken before.
    NoSuchCall,
    /// The call, run or subscription was made with another client, or the request came to another.
    OtherClient,
    /// A run on the session has been started and has not been finished.
    SessionBusy,
    /// The predicate of the subscription has panicked, and it gets nothing more.
    PredicatePanicked,
    /// The system refused a poll, a descriptor or the like.
    System(io::Error),
}

/// How a connection ended.
#[derive(Debug)]
pub struct Closed {
    /// What ended it.
    pub cause: Cause,
    /// How the process ended, where there is one and it has.
    pub exit: Option<Exit>,
    /// What it last wrote to stderr.
    pub stderr: Tail,
}

/// What ended a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The runtime ended its output.
    OutputEnded,
    /// The runtime does not read its input any more, or its output cannot be read.
    Broken(io::Error),
    /// The runtime has exited, and something that it started holds its output open.
    Exited,
    /// A queue from which nothing may be dropped was not taken from, while a call waited.
    Backlog {
        /// The name of the subscription.
        name: String,
        /// Bytes that were in the queue.
        held: usize,
    },
    /// The thread of a [`SharedClient`](super::SharedClient) could not go on: its poll failed, or a callback panicked.
    Stopped(io::Error),
    /// We have closed it.
    ClosedHere,
}

impl Error {
    pub(super) fn new(attempted: impl Into<Cow<'static, str>>, kind: ErrorKind) -> Self {
        Self(Box::new(Inner { attempted: attempted.into(), session: None, kind }))
    }

    /// Says on which session it was.
    pub(super) fn on(mut self, session: impl Into<JsonString>) -> Self {
        self.0.session = Some(session.into());
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The kind, by value.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        self.0.kind
    }

    /// What was attempted, as in "cannot …".
    #[must_use]
    pub fn attempted(&self) -> &str {
        &self.0.attempted
    }

    /// The session that it was about, if it was about one.
    #[must_use]
    pub fn session_id(&self) -> Option<&JsonString> {
        self.0.session.as_ref()
    }

    /// What the runtime answered, where that is the error.
    #[must_use]
    pub fn rpc(&self) -> Option<&RpcError> {
        match &self.0.kind {
            ErrorKind::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// How the connection ended, where that is the error.
    #[must_use]
    pub fn closed(&self) -> Option<&Closed> {
        match &self.0.kind {
            ErrorKind::Closed(closed) => Some(closed),
            _ => None,
        }
    }

    /// How the process ended, where that is known.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.closed()?.exit
    }

    /// What the runtime last wrote to stderr, where it is gone and has said anything.
    #[must_use]
    pub fn stderr(&self) -> Option<&Tail> {
        self.closed().map(|closed| &closed.stderr).filter(|tail| !tail.is_empty())
    }

    /// Whether the time was up.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, ErrorKind::TimedOut { .. })
    }
}

impl ErrorKind {
    /// Sorts the end of a call; `closed` is asked where the connection has ended.
    pub(super) fn from_failure(
        failure: Failure,
        timeout: Option<Duration>,
        closed: impl FnOnce() -> Arc<Closed>,
    ) -> Self {
        match failure {
            Failure::Rpc(error) => Self::Rpc(error),
            Failure::TimedOut => Self::TimedOut { after: timeout },
            Failure::Aborted(reason) => Self::Aborted(reason),
            Failure::Lost(LostReason::TooLong { limit }) => Self::TooLong { limit },
            Failure::Lost(LostReason::InputEnded) => Self::Closed(closed()),
            Failure::OtherClient => Self::OtherClient,
            Failure::Unexpected { error, came } => Self::Protocol { expected: error, came },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It names the program and the directory, and so says more of what was attempted.
        if let ErrorKind::Spawn(error) = &self.0.kind {
            fmt::Display::fmt(error, f)?;
        } else {
            write!(f, "cannot {}", self.0.attempted)?;
        }
        if let Some(session) = &self.0.session {
            write!(f, " on session {session:?}")?;
        }
        self.0.kind.fmt(f)?;
        let mut source = std::error::Error::source(self).filter(|_| f.alternate());
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl ErrorKind {
    /// The part of the text that says what happened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(_) => f.write_str(": the runtime answered with an error"),
            Self::TimedOut { after: Some(after) } => write!(f, ": timed out after {after:?}"),
            Self::TimedOut { after: None } => f.write_str(": timed out"),
            Self::Aborted(reason) => write!(f, ": aborted: {reason}"),
            Self::Closed(closed) => write!(f, ": {closed}"),
            Self::Spawn(_) => Ok(()),
            Self::Protocol { .. } => f.write_str(": the runtime broke the protocol"),
            Self::TooLong { limit } => write!(f, ": the answer is longer than the line limit of {limit} bytes"),
            Self::Encode(_) => f.write_str(": the params cannot be sent"),
            Self::NoSuchCall => f.write_str(": its end was taken before"),
            Self::OtherClient => f.write_str(": it belongs to another client, and goes on there"),
            Self::SessionBusy => f.write_str(": a run on it has been started and not finished"),
            Self::PredicatePanicked => f.write_str(": the predicate of the subscription has panicked"),
            Self::System(_) => f.write_str(": the system refused"),
        }
    }
}

/// How many lines of stderr the report of an error has.
const STDERR_LINES: usize = 5;

/// The whole report, which is what `main` shows where it returns the error: what `{:#}` gives, and on lines of their own
/// the last ones of stderr, since the very last one may not be the one that tells.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")?;
        let lines = self.stderr().map(|tail| tail.last_lines(STDERR_LINES)).unwrap_or_default();
        if lines.len() > 1 {
            f.write_str("\n  stderr of the runtime, its end:")?;
            lines.iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Rpc(error) => Some(error),
            ErrorKind::Spawn(error) => std::error::Error::source(error),
            ErrorKind::Protocol { expected, .. } => Some(expected),
            ErrorKind::Encode(error) => Some(error),
            ErrorKind::System(error) => Some(error),
            ErrorKind::Closed(closed) => match (&closed.cause, closed.exit) {
                (Cause::Broken(error), None) | (Cause::Stopped(error), _) => Some(error),
                // That a pipe to a process breaks when it exits is no news.
                _ => None,
            },
            _ => None,
        }
    }
}

/// How the connection ended, on one line, with the last line of stderr.
impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, self.exit) {
            (Cause::ClosedHere, _) => return f.write_str("the client is closed"),
            (Cause::Backlog { name, held }, _) => {
                return write!(f, "nobody takes from the queue \"{name}\", and it holds {held} bytes");
            }
            (Cause::Stopped(_), _) => return f.write_str("the thread that pumps has stopped"),
            (_, Some(exit)) => write!(f, "the runtime {exit}")?,
            (Cause::OutputEnded, None) => f.write_str("the runtime has closed its output")?,
            (Cause::Broken(_) | Cause::Exited, None) => f.write_str("the connection to the runtime is broken")?,
        }
        match self.stderr.last_line() {
            Some(line) => write!(f, ", and last said: {line}"),
            None => Ok(()),
        }
    }
}

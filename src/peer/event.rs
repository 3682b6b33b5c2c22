//! What a connection tells its user.

use core::fmt;

use alloc::boxed::Box;

use super::{AbortReason, CallId};
use crate::frame::{Id, NotAFrame, Outcome, Params};
use crate::json::{Json, JsonStr};

/// One thing that happened, in wire order. Lends from the line buffer of its [`Peer`](super::Peer).
#[derive(Debug)]
pub enum Event<'a, T> {
    /// The peer wants an answer.
    Request {
        /// May be empty.
        method: JsonStr<'a>,
        /// An object.
        params: Params<'a>,
        /// To be handed to [`answer`](super::Peer::answer) or [`refuse`](super::Peer::refuse), now or later.
        reply: Reply,
    },
    /// The peer wants an answer to a request on a line over the limit, judged by the line's first bytes. Its params are
    /// not kept; the line itself is told as [`Dropped`](Event::Dropped) at its end.
    RequestTooLong {
        /// May be empty.
        method: JsonStr<'a>,
        /// To be handed to [`refuse`](super::Peer::refuse).
        reply: Reply,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The peer tells something.
    Notification {
        /// May be empty.
        method: JsonStr<'a>,
        /// An object.
        params: Params<'a>,
    },
    /// A call of ours has been answered. Its end.
    Response {
        /// Which call.
        call: CallId,
        /// What was handed in with the request.
        tag: T,
        /// The result, or the error that the peer reports.
        outcome: Outcome<'a>,
    },
    /// A call of ours was given up through its token. Its end; a response that comes all the same is
    /// [`Unmatched`](Event::Unmatched).
    Aborted {
        /// Which call.
        call: CallId,
        /// What was handed in with the request.
        tag: T,
        /// The token's reason.
        reason: AbortReason,
    },
    /// A call of ours will not be answered. Its end.
    Lost {
        /// Which call.
        call: CallId,
        /// What was handed in with the request.
        tag: T,
        /// Why not.
        why: LostReason,
    },
    /// A response that no call waits for: late, duplicate, or to an id that was never ours.
    Unmatched {
        /// Its id.
        id: Id<'a>,
        /// What it says.
        outcome: Outcome<'a>,
    },
    /// A line that is no frame. Never answered.
    Dropped(Dropped<'a>),
}

/// Why a call will not be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The input has ended.
    InputEnded,
    /// Its response is on a line over the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InputEnded => f.write_str("the peer's output ended before the answer came"),
            Self::TooLong { limit } => write!(f, "the answer is longer than the line limit of {limit} bytes"),
        }
    }
}

/// A line that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped<'a> {
    /// Which line of the stream, from 1.
    pub number: u64,
    /// Its length in bytes, without `\n`.
    pub len: u64,
    /// Its first bytes, at most 256.
    pub prefix: &'a [u8],
    /// Why.
    pub why: DropReason,
}

/// Why a line was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// It is no frame.
    NotAFrame(NotAFrame),
    /// It is longer than the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The stream ended before its `\n`.
    Unterminated,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFrame(reason) => reason.fmt(f),
            Self::TooLong { limit } => write!(f, "longer than the line limit of {limit} bytes"),
            Self::Unterminated => f.write_str("the stream ended before the line did"),
        }
    }
}

/// The right to answer one request, once, on the connection that it came on.
#[derive(PartialEq, Eq)]
#[must_use = "a request waits for its answer"]
pub struct Reply {
    id: IdText,
    /// What its connection is known by.
    pub(super) connection: u64,
}

/// The text of an [`Id`]. The usual ones (`req_` and 32 hex digits, in quotes) need no allocation.
#[derive(PartialEq, Eq)]
enum IdText {
    /// As many of `bytes` as `len` says; the others are zero.
    Short {
        len: u8,
        bytes: [u8; SHORT],
    },
    Long(Box<str>),
}

const SHORT: usize = 46;

impl Reply {
    pub(super) fn new(id: Id<'_>, connection: u64) -> Self {
        let text = id.get();
        let mut bytes = [0; SHORT];
        let id = match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(start), Ok(len)) => {
                start.copy_from_slice(text.as_bytes());
                IdText::Short { len, bytes }
            }
            _ => IdText::Long(text.into()),
        };
        Self { id, connection }
    }

    /// The id of the request.
    #[must_use]
    pub fn id(&self) -> Id<'_> {
        let text = match &self.id {
            IdText::Short { len, bytes } => {
                let bytes = bytes.get(..usize::from(*len)).unwrap_or_default();
                core::str::from_utf8(bytes).expect("it was copied from a string")
            }
            IdText::Long(text) => text,
        };
        Id::from_proved(Json::from_proved(text))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("id", &self.id()).finish()
    }
}

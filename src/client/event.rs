//! What a client tells its user, and what it counts.

use alloc::vec::Vec;

use super::SessionTree;
use crate::frame::{Id, NotAFrame, Outcome};
use crate::json::JsonStr;
use crate::peer::{CallId, DropReason, Dropped};
use crate::wire::Notification;

/// One thing that came, lent.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A notification; it has been put into the queues of its subscriptions.
    Notification {
        /// It. If its params are not as its method's must be, the body is [`NotificationBody::Unknown`](crate::wire::NotificationBody::Unknown).
        notification: Notification<'a>,
        /// All lineage known so far, that of this notification included.
        tree: &'a SessionTree,
    },
    /// A call has ended; [`Client::take`](super::Client::take) gives its end.
    Ended(CallId),
    /// A request of the runtime waits in [`Client::next_request`](super::Client::next_request).
    Request,
    /// A request of the runtime was refused, since nobody takes them.
    Refused {
        /// What it wanted.
        method: JsonStr<'a>,
    },
    /// A response that no call waits for; mostly the late answer to a call that was given up.
    Unmatched {
        /// Its id.
        id: Id<'a>,
        /// What it says.
        outcome: Outcome<'a>,
    },
    /// A line that is no frame.
    Dropped(Dropped<'a>),
}

/// What has come so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Notifications.
    pub notifications: u64,
    /// Of those, the ones whose params were not as their method's must be.
    pub malformed: u64,
    /// Responses to our calls.
    pub responses: u64,
    /// Responses that no call waited for.
    pub unmatched: u64,
    /// Requests of the runtime.
    pub requests: u64,
    /// Of those, the ones that were refused because nobody takes them.
    pub refused: u64,
    /// Lines dropped because they are no JSON.
    pub dropped_no_json: u64,
    /// Lines dropped because they are headers of another framing, `Content-Length: …`.
    pub dropped_header: u64,
    /// Lines dropped because they are JSON, but no object; batches are among them.
    pub dropped_no_object: u64,
    /// Lines dropped because they are objects with neither a method nor an id that counts.
    pub dropped_no_method_no_id: u64,
    /// Lines dropped because they were too long.
    pub dropped_too_long: u64,
    /// 1 if the stream ended in the middle of a line.
    pub dropped_unterminated: u64,
    /// Calls that ended without a response.
    pub calls_failed: u64,
    /// The most calls that ever waited at once.
    pub most_pending: usize,
    /// The most bytes that the queue of one subscription ever held.
    pub most_queued: usize,
    /// The most bytes that the requests of the runtime, waiting to be taken, ever held.
    pub most_requested: usize,
}

impl Counters {
    /// Lines dropped because they are no frame, for whatever reason.
    #[must_use]
    pub fn dropped_no_frame(&self) -> u64 {
        self.dropped_no_json + self.dropped_header + self.dropped_no_object + self.dropped_no_method_no_id
    }

    /// All lines dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_no_frame() + self.dropped_too_long + self.dropped_unterminated
    }

    pub(super) fn count_dropped(&mut self, why: DropReason) {
        *match why {
            DropReason::TooLong { .. } => &mut self.dropped_too_long,
            DropReason::Unterminated => &mut self.dropped_unterminated,
            DropReason::NotAFrame(NotAFrame::HeaderFraming) => &mut self.dropped_header,
            DropReason::NotAFrame(NotAFrame::NotAnObject(_)) => &mut self.dropped_no_object,
            DropReason::NotAFrame(NotAFrame::NoMethodNoId) => &mut self.dropped_no_method_no_id,
            DropReason::NotAFrame(NotAFrame::Blank | NotAFrame::Syntax(_)) => &mut self.dropped_no_json,
        } += 1;
    }
}

/// A copy of the last line that was dropped. Its buffer is used again, so a runtime that writes nothing else costs no
/// allocation a line.
#[derive(Debug, Default)]
pub(super) struct LastDropped {
    number: u64,
    len: u64,
    /// `None` while there was none.
    why: Option<DropReason>,
    prefix: Vec<u8>,
}

impl LastDropped {
    pub(super) fn keep(&mut self, line: &Dropped<'_>) {
        (self.number, self.len, self.why) = (line.number, line.len, Some(line.why));
        self.prefix.clear();
        self.prefix.extend_from_slice(line.prefix);
    }

    pub(super) fn lend(&self) -> Option<Dropped<'_>> {
        Some(Dropped { number: self.number, len: self.len, prefix: &self.prefix, why: self.why? })
    }
}

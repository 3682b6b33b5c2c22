//! The calls of ours that wait for their end.

use alloc::collections::{BTreeMap, VecDeque};

use super::event::LostReason;
use super::id::Ids;
use super::output::FrameId;
use super::{AbortReason, AbortToken, CallId};
use crate::frame::Id;

/// A call that has been sent.
#[derive(Debug)]
struct Pending<T> {
    tag: T,
    token: Option<AbortToken>,
    frame: FrameId,
}

/// How a call ended without a response.
#[derive(Debug)]
pub(super) enum End {
    Aborted(AbortReason),
    Lost(LostReason),
}

/// Every call that was made and has not ended is in `pending` or, with its end, in `ended`; none is in both.
#[derive(Debug)]
pub(super) struct Calls<T> {
    ids: Ids,
    pending: BTreeMap<CallId, Pending<T>>,
    ended: VecDeque<(CallId, T, End)>,
    /// How many of `pending` have a token.
    tokens: usize,
}

impl<T> Calls<T> {
    pub(super) fn new(seed: u64) -> Self {
        Self { ids: Ids::new(seed), pending: BTreeMap::new(), ended: VecDeque::new(), tokens: 0 }
    }

    pub(super) fn ids(&self) -> &Ids {
        &self.ids
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn has_tokens(&self) -> bool {
        self.tokens > 0
    }

    /// Enters the call whose id was [`Ids::next`].
    pub(super) fn insert(&mut self, tag: T, token: Option<AbortToken>, frame: FrameId) -> CallId {
        let call = self.ids.next();
        self.ids.take();
        self.tokens += usize::from(token.is_some());
        self.pending.insert(call, Pending { tag, token, frame });
        call
    }

    /// Takes out the call that a response belongs to.
    pub(super) fn answered(&mut self, id: Id<'_>) -> Option<(CallId, T)> {
        let id = id.as_json().as_str()?;
        // It comes back as it was written, unless somebody escapes what need not be.
        let call = self.ids.read(id.inside()).or_else(|| self.ids.read(&id.to_string_lossy()))?;
        self.remove(call).map(|(tag, _)| (call, tag))
    }

    pub(super) fn remove(&mut self, call: CallId) -> Option<(T, FrameId)> {
        let pending = self.pending.remove(&call)?;
        self.tokens -= usize::from(pending.token.is_some());
        Some((pending.tag, pending.frame))
    }

    /// Ends the calls whose token has been set; hands each one's frame to `withdraw`.
    pub(super) fn poll_tokens(&mut self, mut withdraw: impl FnMut(FrameId)) {
        if self.tokens == 0 {
            return;
        }
        let aborted = |pending: &mut Pending<T>| pending.token.as_ref().is_some_and(AbortToken::is_aborted);
        for (call, pending) in self.pending.extract_if(.., |_, pending| aborted(pending)) {
            withdraw(pending.frame);
            self.tokens -= 1;
            self.ended.extend(pending.token.map(|token| (call, pending.tag, End::Aborted(token.reason()))));
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// A call that has ended without a response and whose end has not been told.
    pub(super) fn next_ended(&mut self) -> Option<(CallId, T, End)> {
        self.ended.pop_front()
    }

    /// Ends the oldest call, since no more input will come.
    pub(super) fn lose_next(&mut self) -> Option<(CallId, T, End)> {
        let (call, pending) = self.pending.pop_first()?;
        self.tokens -= usize::from(pending.token.is_some());
        Some((call, pending.tag, End::Lost(LostReason::InputEnded)))
    }
}

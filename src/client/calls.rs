//! [`Call`], the handle of a call, and how calls end: when they are due, and what their ends are until they are taken.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::marker::PhantomData;
use core::time::Duration;

use super::Failure;
use crate::frame::Outcome;
use crate::json::{Json, JsonBuf};
use crate::peer::{AbortToken, CallId};

/// A call that has been made. The result is read as `R`; [`JsonBuf`] takes any, verbatim.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the end of a call is kept until it is taken or the call is abandoned"]
pub struct Call<R> {
    pub(super) id: CallId,
    pub(super) result: PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    /// Its number on the connection.
    #[must_use]
    pub fn id(&self) -> CallId {
        self.id
    }
}

/// When a call is given up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits<'t> {
    /// When its time is up, since the origin; `None` for never. Covers everything: the wait for room to write, the
    /// write, and the wait for the answer.
    pub deadline: Option<Duration>,
    /// Gives it up from elsewhere.
    pub token: Option<&'t AbortToken>,
}

impl Limits<'_> {
    /// A deadline and no token.
    #[must_use]
    pub fn until(deadline: Duration) -> Self {
        Self { deadline: Some(deadline), token: None }
    }
}

/// The ends of calls, those to come and those that have.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The deadlines of the calls that wait and have one.
    deadlines: BTreeSet<(Duration, CallId)>,
    /// Calls that have ended and whose end has not been taken; none of them waits.
    ended: BTreeMap<CallId, Result<JsonBuf, Failure>>,
    /// The ones that ended by their deadline or token and have not been told.
    given_up: VecDeque<CallId>,
    /// How many ended without a response.
    failed: u64,
}

impl Ends {
    /// A call waits from now on.
    pub(super) fn expect(&mut self, call: CallId, deadline: Option<Duration>) {
        self.deadlines.extend(deadline.map(|deadline| (deadline, call)));
    }

    /// A response has come.
    pub(super) fn answer(&mut self, call: CallId, deadline: Option<Duration>, outcome: Outcome<'_>) {
        self.forget_deadline(call, deadline);
        self.ended.insert(call, outcome.map(Json::to_buf).map_err(|error| Failure::Rpc(error.into())));
    }

    /// No response will come; whoever says so tells it.
    pub(super) fn fail(&mut self, call: CallId, deadline: Option<Duration>, why: Failure) {
        self.forget_deadline(call, deadline);
        self.failed += 1;
        self.ended.insert(call, Err(why));
    }

    /// As [`fail`](Self::fail), to be told with [`next_given_up`](Self::next_given_up).
    pub(super) fn give_up(&mut self, call: CallId, deadline: Option<Duration>, why: Failure) {
        self.fail(call, deadline, why);
        self.given_up.push_back(call);
    }

    /// A call that was given up and whose end has not been told. Nobody wants to hear of one that was taken or
    /// abandoned meanwhile.
    pub(super) fn next_given_up(&mut self) -> Option<CallId> {
        while let Some(call) = self.given_up.pop_front() {
            if self.has(call) {
                return Some(call);
            }
        }
        None
    }

    /// A call does not wait any more.
    pub(super) fn forget_deadline(&mut self, call: CallId, deadline: Option<Duration>) {
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, call));
        }
    }

    /// The call that is due first, with its deadline.
    pub(super) fn first_due(&self) -> Option<(Duration, CallId)> {
        self.deadlines.first().copied()
    }

    pub(super) fn take(&mut self, call: CallId) -> Option<Result<JsonBuf, Failure>> {
        self.ended.remove(&call)
    }

    pub(super) fn has(&self, call: CallId) -> bool {
        self.ended.contains_key(&call)
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }
}

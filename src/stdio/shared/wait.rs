//! The side of the callers: what a thread waits for, and how. A call that waits alone pumps for itself.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use super::core::{Core, State, panicked};
use crate::client::SubscriptionId;
use crate::json::JsonString;
use crate::peer::{AbortToken, CallId, Mark};
use crate::stdio::connection::{Patience, TOKENS};
use crate::stdio::pump::Poller;
use crate::stdio::signal::Signal;

/// What a thread waits for.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    /// The end of a call.
    Call(CallId),
    /// A delivery, or that there will be none.
    Delivery(SubscriptionId),
    /// A delivery, the end of a call, or a request of the runtime where those are answered.
    Run(SubscriptionId, Vec<CallId>, bool),
    /// That everything before has been written, or cannot be.
    Flushed(Mark),
    /// A request of the runtime, or that there will be none.
    Request,
    /// That there is no run on the session.
    Free(JsonString),
    /// That the client is closed.
    Closed,
}

impl Condition {
    pub(super) fn holds(&self, state: &State) -> bool {
        let connection = state.client.connection();
        let machine = &connection.client;
        let delivery = |id: SubscriptionId| machine.has_delivery(id) || machine.is_deaf(id) || connection.has_ended();
        match self {
            Self::Call(call) => machine.has_ended(*call),
            Self::Delivery(id) => delivery(*id),
            Self::Run(id, calls, answers) => {
                delivery(*id) || calls.iter().any(|call| machine.has_ended(*call)) || *answers && machine.has_request()
            }
            Self::Flushed(mark) => machine.is_flushed(*mark) || !connection.pump.output_open(),
            Self::Request => machine.has_request() || connection.has_ended(),
            Self::Free(session) => !state.running.contains(session) || connection.has_ended(),
            Self::Closed => connection.report.is_some(),
        }
    }
}

/// A thread that waits to be told.
#[derive(Debug)]
pub(super) struct Waiting {
    condition: Condition,
    token: Option<AbortToken>,
    signal: Arc<Signal>,
}

impl Waiting {
    pub(super) fn condition_holds(&self, state: &State) -> bool {
        self.condition.holds(state)
    }

    /// Whether it is to be told.
    pub(super) fn is_over(&self, state: &State) -> bool {
        self.token.as_ref().is_some_and(AbortToken::is_aborted) || self.condition_holds(state)
    }

    pub(super) fn into_signal(self) -> Arc<Signal> {
        self.signal
    }
}

/// One wait, from its first look to its last.
pub(super) struct Wait<'w> {
    condition: &'w Condition,
    deadline: Option<Duration>,
    token: Option<&'w AbortToken>,
    /// Made when it first has to be told.
    signal: Option<Arc<Signal>>,
    /// What it brings back of a lead: the poller, and how waiting with it has gone.
    led: Option<(Poller, io::Result<()>)>,
}

/// What there is to do once it has looked.
enum Next<T> {
    Return(Option<T>),
    /// Look again.
    GoOn,
    /// Wait for the descriptors.
    Lead(Patience, Poller),
    /// Wait to be told.
    Follow(Patience),
}

impl<'w> Wait<'w> {
    pub(super) fn new(condition: &'w Condition, deadline: Option<Duration>, token: Option<&'w AbortToken>) -> Self {
        Self { condition, deadline, token, signal: None, led: None }
    }

    /// As [`Core::wait`].
    pub(super) fn run<T>(mut self, core: &Core, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        loop {
            match core.with(|state| self.next(state, &mut look)) {
                Next::Return(found) => return found,
                Next::GoOn => {}
                Next::Lead(patience, mut poller) => {
                    let result = poller.wait(patience);
                    self.led = Some((poller, result));
                }
                Next::Follow(patience) => self.signal.iter().for_each(|signal| signal.wait(patience)),
            }
        }
    }

    fn next<T>(&mut self, state: &mut State, look: &mut impl FnMut(&mut State) -> Option<T>) -> Next<T> {
        self.come_back(state);
        // Also where it need not wait: on one processor the answer may be there before the write returns.
        let is_call = matches!(self.condition, Condition::Call(_));
        state.handover.note_look(is_call && state.waiting.is_empty());
        if let Some(found) = look(state) {
            return Next::Return(Some(found));
        }
        if state.connection().expire()
            && let Some(found) = look(state)
        {
            return Next::Return(Some(found));
        }
        if is_call && let Some(patience) = take_turn(state) {
            if let Some(found) = look(state) {
                return Next::Return(Some(found));
            }
            let Some(patience) = patience else { return Next::GoOn };
            if !state.is_ending()
                && let Some(poller) = state.connection().pump.take_poller()
            {
                state.handover.lead();
                return Next::Lead(patience, poller);
            }
        }
        self.follow(state)
    }

    /// Takes back what stood for this wait while the lock was free.
    fn come_back(&mut self, state: &mut State) {
        if let Some((poller, result)) = self.led.take() {
            state.handover.end_lead();
            state.connection().pump.put_poller(poller);
            if let Err(error) = result {
                state.fail(Some(error));
                state.handover.poke();
            }
        } else if let Some(signal) = &self.signal {
            state.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.signal, signal));
        }
    }

    fn follow<T>(&mut self, state: &mut State) -> Next<T> {
        let now = state.now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Next::Return(None);
        }
        let signal = Arc::clone(self.signal.get_or_insert_default());
        state.waiting.push(Waiting { condition: self.condition.clone(), token: self.token.cloned(), signal });
        // Setting a token wakes nobody, unless it is one of the client's own.
        let look = self.token.map(|_| TOKENS);
        Next::Follow([self.deadline.map(|deadline| deadline - now), look].into_iter().flatten().min())
    }
}

/// Takes a turn in place of the thread, if that rests and no other call leads. As
/// [`HarnessClient::turn_at_once`](crate::stdio::HarnessClient::turn_at_once) then.
fn take_turn(state: &mut State) -> Option<Option<Patience>> {
    if !state.handover.may_lead() || state.is_ending() {
        return None;
    }
    state.handover.begin_turn();
    let wanted = state.hungry > 0;
    let turned = catch_unwind(AssertUnwindSafe(|| state.client.turn_at_once(wanted)));
    // With the lock held: whoever gets it next must not meet a turn that was left half way.
    if let Err(panic) = &turned {
        state.fail(Some(panicked(&**panic)));
    }
    // What follows from the end is the thread's.
    if state.is_ending() {
        state.handover.poke();
    }
    turned.ok()
}

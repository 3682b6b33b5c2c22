//! What the handles of a shared client have in common: the machine behind a lock, those who wait, and the thread that
//! pumps.
//!
//! **No wake-up is lost**, because of one rule: whenever the lock is free, no entry of [`State::waiting`] holds.
//! Whoever gives the lock back through [`Core::release`] sees to that, and whoever waits has made its entry, and looked,
//! under the same lock. And whenever the thread that pumps waits for the descriptors while there is something else for
//! it to do, the one who made that wakes it on giving the lock back.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;

use crate::client::{Graces, SubscriptionId};
use crate::json::JsonString;
use crate::peer::{AbortToken, CallId, Mark};
use crate::stdio::connection::{Connection, TOKENS};
use crate::stdio::error::Cause;
use crate::stdio::harness_client::HarnessClient;
use crate::stdio::pump::{Loan, Poller, Waker};
use crate::stdio::signal::Signal;

std::thread_local! {
    /// The core whose lock this thread holds, by address; 0 for none. Code of the user's that runs then, a predicate
    /// or the callback for stderr, would wait for itself for ever.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
pub(super) struct Core {
    /// Held while the lock of `state` is waited for. The thread that pumps takes it as well, so it cannot take the
    /// lock again and again while others wait.
    gate: Mutex<()>,
    state: Mutex<State>,
    /// Ends the wait for the descriptors.
    waker: Waker,
    /// Set with the lock held, once the client is closed or about to be: what was delivered is not given out any more.
    closed: AtomicBool,
    /// All handles are gone.
    stopped: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) client: HarnessClient,
    /// Threads that wait, each once.
    waiting: Vec<Waiting>,
    /// The sessions that a run is on.
    pub(super) running: BTreeSet<JsonString>,
    /// Runs that wait for notifications just now: input is wanted.
    pub(super) hungry: usize,
    /// Once one of them is set, the ladder is walked fast.
    hurry: Vec<AbortToken>,
    /// The thread that pumps has something to do beside what the descriptors tell.
    poke: bool,
    /// Whether the thread that pumps waits for the descriptors.
    asleep: bool,
}

#[derive(Debug)]
struct Waiting {
    condition: Condition,
    token: Option<AbortToken>,
    signal: Arc<Signal>,
}

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
    fn holds(&self, state: &State) -> bool {
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

impl State {
    pub(super) fn connection(&mut self) -> &mut Connection {
        self.client.connection_mut()
    }

    pub(super) fn now(&self) -> Duration {
        self.client.connection().now()
    }

    /// The writer, for the thread that has just queued something to write it itself. The runtime that reads it may be
    /// let run at once, so this is not done with the lock held. `None` where the pump has to see to it, or the thread
    /// that writes just now will.
    pub(super) fn lend_writer(&mut self) -> Option<Loan> {
        let connection = self.client.connection_mut();
        let loan = connection.pump.lend_writer(connection.client.peer_mut());
        self.poke |= loan.is_none() && !connection.pump.is_lent();
        loan
    }

    /// Writes what is queued; what does not fit is left to the pump.
    fn flush(&mut self) {
        let connection = self.client.connection_mut();
        connection.pump.flush(connection.client.peer_mut());
        self.poke |= !connection.client.outgoing().is_empty() || !connection.pump.output_open();
    }

    /// Whether reading has stopped and should go on.
    fn should_read(&self) -> bool {
        let connection = self.client.connection();
        !connection.pump.is_reading()
            && (self.hungry > 0 || connection.client.pending() > 0 || !connection.is_held_up())
    }

    fn take_ready(&mut self) -> Vec<Arc<Signal>> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let is_ready = |waiting: &mut Waiting| {
            waiting.token.as_ref().is_some_and(AbortToken::is_aborted) || waiting.condition.holds(self)
        };
        let ready = waiting.extract_if(.., is_ready).map(|waiting| waiting.signal).collect();
        self.waiting = waiting;
        ready
    }
}

impl Core {
    pub(super) fn new(client: HarnessClient) -> Self {
        let waker = client.waker();
        let state = State {
            client,
            waiting: Vec::new(),
            running: BTreeSet::new(),
            hungry: 0,
            hurry: Vec::new(),
            poke: false,
            asleep: false,
        };
        Self {
            gate: Mutex::new(()),
            state: Mutex::new(state),
            waker,
            closed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether this thread holds the lock already, further up.
    pub(super) fn is_ours(&self) -> bool {
        HELD.get() == self.address()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn lock(&self) -> Guard<'_> {
        assert!(!self.is_ours(), "a predicate, or the callback for stderr, must not use its own client");
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { state, before: HELD.replace(self.address()) }
    }

    /// Gives the lock back; wakes everybody whose condition holds by now, and the pump if there is work for it.
    fn release(&self, mut state: Guard<'_>) {
        let ready = state.take_ready();
        let wake = state.asleep && (state.poke || state.should_read());
        drop(state);
        ready.iter().for_each(|signal| signal.set());
        if wake {
            self.waker.wake();
        }
    }

    /// Does something with the lock held, which must not block.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = act(&mut state);
        self.release(state);
        result
    }

    /// Writes with the lock free.
    pub(super) fn write(&self, loan: Option<Loan>) {
        let Some(mut loan) = loan else { return };
        loan.write();
        self.with(|state| {
            let connection = state.connection();
            connection.pump.return_writer(connection.client.peer_mut(), loan);
            // The rest, and what others have queued meanwhile.
            state.flush();
        });
    }

    /// Looks, with the lock held, until there is something to return, and in between waits for the condition or the
    /// token. `None` once the deadline has come. Whenever the condition holds, `look` must find something.
    pub(super) fn wait<T>(
        &self,
        condition: &Condition,
        deadline: Option<Duration>,
        token: Option<&AbortToken>,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut signal: Option<Arc<Signal>> = None;
        loop {
            let outcome = self.with(|state| {
                if let Some(signal) = &signal {
                    state.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.signal, signal));
                }
                state.connection().expire();
                if let Some(found) = look(state) {
                    return Ok(Some(found));
                }
                let now = state.now();
                if deadline.is_some_and(|deadline| now >= deadline) {
                    return Ok(None);
                }
                let signal = Arc::clone(signal.get_or_insert_default());
                state.waiting.push(Waiting { condition: condition.clone(), token: token.cloned(), signal });
                // Setting a token wakes nobody, unless it is one of the client's own.
                let look = token.map(|_| TOKENS);
                Err([deadline.map(|deadline| deadline - now), look].into_iter().flatten().min())
            });
            match outcome {
                Ok(found) => return found,
                Err(limit) => signal.iter().for_each(|signal| signal.wait(limit)),
            }
        }
    }

    /// Begins to close, or joins who has begun.
    pub(super) fn begin_close(&self, graces: Graces, hurry: Option<&AbortToken>) {
        self.with(|state| {
            self.closed.store(true, Ordering::Release);
            state.connection().begin_close(graces);
            state.hurry.extend(hurry.cloned());
            state.poke = true;
        });
    }

    /// All handles are gone: the thread that pumps ends the runtime and itself.
    pub(super) fn stop(&self) {
        self.with(|state| {
            self.closed.store(true, Ordering::Release);
            self.stopped.store(true, Ordering::Release);
            state.poke = true;
        });
    }

    /// As [`stop`](Self::stop), where the lock is held further up.
    pub(super) fn stop_later(&self) {
        self.closed.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// The body of the thread that pumps: takes turns until all handles are gone, or one fails.
    pub(super) fn run(&self) {
        let mut state = self.lock();
        let mut why = None;
        while why.is_none() && !self.stopped.load(Ordering::Acquire) {
            state.poke = false;
            // Caught with the lock held: whoever gets it next must not meet a turn that was left half way.
            let turned = catch_unwind(AssertUnwindSafe(|| self.turn(&mut state)));
            state = match turned {
                Ok(Turned::GoOn) => {
                    self.release(state);
                    self.lock()
                }
                Ok(Turned::Wait(wait, poller)) => {
                    let (state, result) = self.sleep(state, wait, poller);
                    why = result.err();
                    state
                }
                Ok(Turned::AtTheEnd) => self.finish_close(state),
                Err(panic) => {
                    why = Some(io::Error::other(text_of(&*panic)));
                    state
                }
            };
        }
        state.connection().client.unsubscribe_all();
        state.connection().fail(why.map_or(Cause::ClosedHere, Cause::Stopped));
        state.connection().drain(&mut |_, _| {});
        let ending = state.connection().end_close();
        self.release(state);
        // Waits a moment for the exit, with the lock free.
        let report = ending.abandon();
        self.with(|state| state.connection().closed_with(report));
    }

    fn turn(&self, state: &mut State) -> Turned {
        state.connection().expire();
        let wanted = state.hungry > 0;
        let wait = state.client.turn_at_once(wanted);
        let mut until = None;
        if state.connection().is_closing() {
            let hurried = state.hurry.iter().any(AbortToken::is_aborted);
            let Some(step) = state.connection().close_step(hurried) else { return Turned::AtTheEnd };
            let now = state.now();
            until = Some(step.saturating_sub(now));
            if !hurried && !state.hurry.is_empty() {
                until = until.min(Some(TOKENS));
            }
            // A rung may have left something to be written, or have ended the output.
            state.flush();
        } else if state.client.connection().has_ended() {
            // The exit and the last of stderr, while nobody needs the lock for anything that could still succeed.
            state.connection().closed();
        }
        let Some(wait) = wait else { return Turned::GoOn };
        match state.connection().pump.take_poller() {
            Some(poller) => Turned::Wait([wait, until].into_iter().flatten().min(), poller),
            None => Turned::GoOn,
        }
    }

    /// Waits for the descriptors with the lock free.
    fn sleep<'c>(
        &'c self,
        mut state: Guard<'c>,
        wait: Option<Duration>,
        mut poller: Poller,
    ) -> (Guard<'c>, io::Result<()>) {
        state.asleep = true;
        self.release(state);
        let result = poller.wait(wait);
        let mut state = self.lock();
        state.asleep = false;
        state.connection().pump.put_poller(poller);
        (state, result)
    }

    /// The ladder is at its end: takes the status of the process with the lock free.
    fn finish_close<'c>(&'c self, mut state: Guard<'c>) -> Guard<'c> {
        let ending = state.connection().end_close();
        self.release(state);
        let report = ending.finish();
        self.with(|state| state.connection().closed_with(report));
        self.lock()
    }
}

/// The lock, and the note that this thread holds it.
struct Guard<'c> {
    state: MutexGuard<'c, State>,
    /// That of another client may be held further up.
    before: usize,
}

impl Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        HELD.set(self.before);
    }
}

/// What there is to do after a turn.
enum Turned {
    GoOn,
    Wait(Option<Duration>, Poller),
    /// The ladder has been walked.
    AtTheEnd,
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    std::format!("a callback has panicked: {}", text.unwrap_or("without a text"))
}

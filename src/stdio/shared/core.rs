//! What the handles of a shared client have in common: the machine behind a lock, those who wait, and the thread that
//! pumps.
//!
//! **No wake-up is lost**, because of three rules, which [`Core::release`] keeps whenever the lock is given back. No
//! entry of [`State::waiting`] holds; whoever waits has made its entry, and looked, under the same lock. Who waits for
//! the descriptors while there is something else to do is woken by the one who made that. And somebody pumps: the
//! thread, or a call.
//!
//! A call that waits for its answer alone pumps for itself, so that the answer need not be handed from thread to thread:
//! it *leads*, and the thread *rests*. The thread is called back as soon as a call ends its lead while others wait, or
//! while there is anything else to do. Where calls follow each other closely it is left to rest in between, for
//! [`REST`] at most.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;

use crate::client::{Graces, SubscriptionId};
use crate::json::JsonString;
use crate::peer::{AbortToken, CallId, Mark};
use crate::stdio::connection::{Connection, Patience, TOKENS};
use crate::stdio::error::Cause;
use crate::stdio::harness_client::HarnessClient;
use crate::stdio::panic;
use crate::stdio::pump::{Loan, Poller, Waker};
use crate::stdio::signal::Signal;

/// The longest time that nobody pumps, after a call: so long the next one can begin to lead.
const REST: Duration = Duration::from_millis(2);

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
    /// Ends the rest of the thread that pumps.
    called_back: Signal,
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
    /// There is something to do for who pumps beside what the descriptors tell.
    poke: bool,
    /// Whether who pumps waits for the descriptors.
    asleep: bool,
    /// What the thread that pumps does.
    thread: Thread,
    /// A call pumps. Only while the thread rests.
    led: bool,
    /// The last to look for something was a call, nobody else waited, and the thread has not rested since.
    alone: bool,
    /// A call that led has failed the connection, as the thread would have: it ends.
    broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Pumps,
    /// Until the time is up.
    RestsBriefly,
    /// Until it is called back.
    Rests,
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

    /// Whether nobody pumps although somebody should.
    fn is_deserted(&self) -> bool {
        match self.thread {
            _ if self.led => false,
            Thread::Pumps => false,
            Thread::Rests => true,
            Thread::RestsBriefly => self.poke || !self.waiting.is_empty() || self.should_read(),
        }
    }

    /// Whether the end has come, or is being brought about: the thread does that alone.
    fn is_ending(&self) -> bool {
        let connection = self.client.connection();
        connection.has_ended() || !connection.pump.output_open()
    }

    /// Whether there is nothing to pump for. Those whose wait is over are told when the lock is given back.
    fn is_idle(&mut self) -> bool {
        self.waiting.iter().all(|waiting| waiting.condition.holds(self))
            && self.connection().client.outgoing().is_empty()
            && !self.is_ending()
    }

    /// Takes a turn in place of the thread, if that rests and no other call leads. As [`HarnessClient::turn_at_once`]
    /// then.
    fn lead(&mut self) -> Option<Option<Patience>> {
        if self.thread == Thread::Pumps || self.led || self.is_ending() {
            return None;
        }
        self.poke = false;
        let wanted = self.hungry > 0;
        let turned = catch_unwind(AssertUnwindSafe(|| self.client.turn_at_once(wanted)));
        // With the lock held: whoever gets it next must not meet a turn that was left half way.
        if let Err(panic) = &turned {
            self.fail(Some(panicked(&**panic)));
        }
        // What follows from the end is the thread's.
        self.poke |= self.is_ending();
        turned.ok()
    }

    /// Ends the connection: a callback has panicked, the poll has failed, or there is no reason but the end.
    fn fail(&mut self, why: Option<io::Error>) {
        self.broken = true;
        let connection = self.connection();
        connection.client.unsubscribe_all();
        connection.fail(why.map_or(Cause::ClosedHere, Cause::Stopped));
        connection.drain(&mut |_, _| {});
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
            thread: Thread::Pumps,
            led: false,
            alone: false,
            broken: false,
        };
        Self {
            gate: Mutex::new(()),
            state: Mutex::new(state),
            waker,
            called_back: Signal::default(),
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

    /// Gives the lock back; wakes everybody whose condition holds by now, and who pumps if there is work.
    fn release(&self, mut state: Guard<'_>) {
        let ready = state.take_ready();
        let wake = state.asleep && (state.poke || state.should_read());
        let deserted = state.is_deserted();
        if deserted {
            state.thread = Thread::Pumps;
        }
        drop(state);
        ready.iter().for_each(|signal| signal.set());
        if wake {
            self.waker.wake();
        }
        if deserted {
            self.called_back.set();
        }
    }

    /// Does something with the lock held, which must not block.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        // A panic in a `Decode` of the caller's must not leave others waiting.
        let result = catch_unwind(AssertUnwindSafe(|| act(&mut state)));
        self.release(state);
        result.unwrap_or_else(|panic| resume_unwind(panic))
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
        let mut lead: Option<(Poller, io::Result<()>)> = None;
        loop {
            let next = self.with(|state| {
                if let Some((poller, result)) = lead.take() {
                    state.asleep = false;
                    state.led = false;
                    state.connection().pump.put_poller(poller);
                    if let Err(error) = result {
                        state.fail(Some(error));
                        state.poke = true;
                    }
                } else if let Some(signal) = &signal {
                    state.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.signal, signal));
                }
                // Also where it need not wait: on one processor the answer may be there before the write returns.
                let is_call = matches!(condition, Condition::Call(_));
                state.alone = is_call && state.waiting.is_empty() && !state.led;
                if let Some(found) = look(state) {
                    return Next::Return(Some(found));
                }
                if state.connection().expire()
                    && let Some(found) = look(state)
                {
                    return Next::Return(Some(found));
                }
                if is_call && let Some(patience) = state.lead() {
                    if let Some(found) = look(state) {
                        return Next::Return(Some(found));
                    }
                    let Some(patience) = patience else { return Next::GoOn };
                    if !state.is_ending()
                        && let Some(poller) = state.connection().pump.take_poller()
                    {
                        state.asleep = true;
                        state.led = true;
                        return Next::Lead(patience, poller);
                    }
                }
                let now = state.now();
                if deadline.is_some_and(|deadline| now >= deadline) {
                    return Next::Return(None);
                }
                let signal = Arc::clone(signal.get_or_insert_default());
                state.waiting.push(Waiting { condition: condition.clone(), token: token.cloned(), signal });
                // Setting a token wakes nobody, unless it is one of the client's own.
                let look = token.map(|_| TOKENS);
                Next::Follow([deadline.map(|deadline| deadline - now), look].into_iter().flatten().min())
            });
            match next {
                Next::Return(found) => return found,
                Next::GoOn => {}
                Next::Lead(patience, mut poller) => {
                    let result = poller.wait(patience);
                    lead = Some((poller, result));
                }
                Next::Follow(limit) => signal.iter().for_each(|signal| signal.wait(limit)),
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
        while why.is_none() && !state.broken && !self.stopped.load(Ordering::Acquire) {
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
                Ok(Turned::Rest) => self.rest(state),
                Ok(Turned::AtTheEnd) => self.finish_close(state),
                Err(panic) => {
                    why = Some(panicked(&*panic));
                    state
                }
            };
        }
        state.fail(why);
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
        if state.alone && state.is_idle() {
            state.alone = false;
            return Turned::Rest;
        }
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

    /// Leaves the descriptors to the calls that wait alone, as long as there are such.
    fn rest<'c>(&'c self, mut state: Guard<'c>) -> Guard<'c> {
        loop {
            let limit = (!state.led).then_some(REST);
            state.thread = if state.led { Thread::Rests } else { Thread::RestsBriefly };
            self.release(state);
            self.called_back.wait(limit);
            state = self.lock();
            let go_on = state.led || std::mem::take(&mut state.alone);
            if state.thread == Thread::Pumps || !go_on {
                state.thread = Thread::Pumps;
                return state;
            }
        }
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
    /// Calls pump for themselves just now.
    Rest,
    /// The ladder has been walked.
    AtTheEnd,
}

/// What there is to do for a thread that waits, once it has looked.
enum Next<T> {
    Return(Option<T>),
    /// Look again.
    GoOn,
    /// Wait for the descriptors.
    Lead(Patience, Poller),
    /// Wait to be told.
    Follow(Patience),
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> io::Error {
    io::Error::other(std::format!("a callback has panicked: {}", panic::text(panic).unwrap_or("without a text")))
}

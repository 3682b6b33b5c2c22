//! What the handles of a shared client have in common: the machine behind a lock, those who wait, and who pumps.
//!
//! **No wake-up is lost**, because of three rules, which [`Core::release`] keeps whenever the lock is given back. No
//! entry of [`State::waiting`] holds; whoever waits has made its entry, and looked, under the same lock. Who waits for
//! the descriptors while there is something else to do is woken by the one who made that. And somebody pumps: the
//! thread, or a call, as [`Handover`] has it.
//!
//! How a caller waits is in [`wait`](super::wait), what the thread does in [`thread`](super::thread).

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::vec::Vec;

use super::handover::Handover;
use super::lock::{Guard, Lock};
use super::wait::{Condition, Wait, Waiting};
use crate::client::Graces;
use crate::json::JsonString;
use crate::peer::AbortToken;
use crate::stdio::connection::Connection;
use crate::stdio::error::Cause;
use crate::stdio::harness_client::HarnessClient;
use crate::stdio::panic;
use crate::stdio::pump::{Loan, Waker};
use crate::stdio::signal::Signal;

#[derive(Debug)]
pub(super) struct Core {
    state: Lock<State>,
    /// Ends the wait for the descriptors.
    waker: Waker,
    /// Ends the rest of the thread that pumps.
    pub(super) called_back: Signal,
    /// Set with the lock held, once the client is closed or about to be: what was delivered is not given out any more.
    closed: AtomicBool,
    /// All handles are gone.
    stopped: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) client: HarnessClient,
    /// Threads that wait, each once.
    pub(super) waiting: Vec<Waiting>,
    /// The sessions that a run is on.
    pub(super) running: BTreeSet<JsonString>,
    /// Runs that wait for notifications just now: input is wanted.
    pub(super) hungry: usize,
    /// Once one of them is set, the ladder is walked fast.
    pub(super) hurry: Vec<AbortToken>,
    pub(super) handover: Handover,
    /// The connection has been failed, by the thread or by a call that led: the thread ends.
    pub(super) broken: bool,
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
        if loan.is_none() && !connection.pump.is_lent() {
            self.handover.poke();
        }
        loan
    }

    /// Writes what is queued; what does not fit is left to the pump.
    pub(super) fn flush(&mut self) {
        let connection = self.client.connection_mut();
        connection.pump.flush(connection.client.peer_mut());
        if !connection.client.outgoing().is_empty() || !connection.pump.output_open() {
            self.handover.poke();
        }
    }

    /// Whether the end has come, or is being brought about: the thread does that alone.
    pub(super) fn is_ending(&self) -> bool {
        let connection = self.client.connection();
        connection.has_ended() || !connection.pump.output_open()
    }

    /// Whether there is nothing to pump for but a call that waits alone. Those whose wait is over are told when the lock
    /// is given back.
    pub(super) fn may_rest(&mut self) -> bool {
        self.handover.is_alone()
            && self.waiting.iter().all(|waiting| waiting.condition_holds(self))
            && self.connection().client.outgoing().is_empty()
            && !self.is_ending()
    }

    /// Ends the connection: a callback has panicked, the poll has failed, or there is no reason but the end.
    pub(super) fn fail(&mut self, why: Option<io::Error>) {
        self.broken = true;
        let connection = self.connection();
        connection.client.unsubscribe_all();
        connection.fail(why.map_or(Cause::ClosedHere, Cause::Stopped));
        connection.drain(&mut |_, _| {});
        // There will be no other turn that does.
        self.client.forget_dropped_calls();
    }

    /// Whether reading has stopped and should go on.
    fn should_read(&self) -> bool {
        let connection = self.client.connection();
        !connection.pump.is_reading()
            && (self.hungry > 0 || connection.client.pending() > 0 || !connection.is_held_up())
    }

    fn take_ready(&mut self) -> Vec<Arc<Signal>> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let is_over = |waiting: &mut Waiting| waiting.is_over(self);
        let ready = waiting.extract_if(.., is_over).map(Waiting::into_signal).collect();
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
            handover: Handover::new(),
            broken: false,
        };
        Self {
            state: Lock::new(state),
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

    /// Whether all handles are gone.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether this thread holds the lock already, further up.
    pub(super) fn is_ours(&self) -> bool {
        self.state.is_ours()
    }

    /// Does something that may run code of the user's with the lock free; that must not use the client either.
    pub(super) fn as_if_locked<T>(&self, act: impl FnOnce() -> T) -> T {
        let _held = self.state.pretend();
        act()
    }

    pub(super) fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Gives the lock back; wakes everybody whose condition holds by now, and who pumps if there is work.
    pub(super) fn release(&self, mut state: Guard<'_, State>) {
        let ready = state.take_ready();
        let should_read = state.should_read();
        let wake = state.handover.wants_waking(should_read);
        let work = should_read || !state.waiting.is_empty();
        let call_back = state.handover.call_back(work);
        drop(state);
        ready.iter().for_each(|signal| signal.set());
        if wake {
            self.waker.wake();
        }
        if call_back {
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
        look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        Wait::new(condition, deadline, token).run(self, look)
    }

    /// Begins to close, or joins who has begun.
    pub(super) fn begin_close(&self, graces: Graces, hurry: Option<&AbortToken>) {
        self.with(|state| {
            self.closed.store(true, Ordering::Release);
            state.connection().begin_close(graces);
            state.hurry.extend(hurry.cloned());
            state.handover.poke();
        });
    }

    /// All handles are gone: the thread that pumps ends the runtime and itself.
    pub(super) fn stop(&self) {
        self.with(|state| {
            self.closed.store(true, Ordering::Release);
            self.stopped.store(true, Ordering::Release);
            state.handover.poke();
        });
    }

    /// As [`stop`](Self::stop), where the lock is held further up.
    pub(super) fn stop_later(&self) {
        self.closed.store(true, Ordering::Release);
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
    }
}

pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> io::Error {
    io::Error::other(std::format!("a callback has panicked: {}", panic::text(panic).unwrap_or("without a text")))
}

//! The side of the thread that pumps, for as long as calls do not for themselves; it alone brings the end about.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::core::{Core, State, panicked};
use super::lock::Guard;
use crate::peer::AbortToken;
use crate::stdio::connection::{Patience, TOKENS};
use crate::stdio::pump::Poller;

/// What there is to do after a turn.
enum Turned {
    GoOn,
    Wait(Patience, Poller),
    /// Calls pump for themselves just now.
    Rest,
    /// The ladder has been walked.
    AtTheEnd,
}

/// The body of the thread: takes turns until all handles are gone, or one fails.
pub(super) fn pump(core: &Core) {
    let mut state = core.lock();
    let mut why = None;
    while why.is_none() && !state.broken && !core.is_stopped() {
        state.handover.begin_turn();
        // Caught with the lock held: whoever gets it next must not meet a turn that was left half way.
        let turned = catch_unwind(AssertUnwindSafe(|| turn(&mut state)));
        state = match turned {
            Ok(Turned::GoOn) => {
                core.release(state);
                core.lock()
            }
            Ok(Turned::Wait(patience, poller)) => {
                let (state, result) = sleep(core, state, patience, poller);
                why = result.err();
                state
            }
            Ok(Turned::Rest) => rest(core, state),
            Ok(Turned::AtTheEnd) => finish_close(core, state),
            Err(panic) => {
                why = Some(panicked(&*panic));
                state
            }
        };
    }
    state.fail(why);
    let ending = state.connection().end_close();
    core.release(state);
    // Waits a moment for the exit, with the lock free.
    let report = ending.abandon();
    core.with(|state| state.connection().closed_with(report));
}

fn turn(state: &mut State) -> Turned {
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
    if state.may_rest() {
        return Turned::Rest;
    }
    match state.connection().pump.take_poller() {
        Some(poller) => Turned::Wait([wait, until].into_iter().flatten().min(), poller),
        None => Turned::GoOn,
    }
}

/// Waits for the descriptors with the lock free.
fn sleep<'c>(
    core: &'c Core,
    mut state: Guard<'c, State>,
    patience: Patience,
    mut poller: Poller,
) -> (Guard<'c, State>, io::Result<()>) {
    state.handover.sleep();
    core.release(state);
    let result = poller.wait(patience);
    let mut state = core.lock();
    state.handover.end_sleep();
    state.connection().pump.put_poller(poller);
    (state, result)
}

/// Leaves the descriptors to the calls that wait alone, as long as there are such.
fn rest<'c>(core: &'c Core, mut state: Guard<'c, State>) -> Guard<'c, State> {
    loop {
        let patience = state.handover.rest();
        core.release(state);
        core.called_back.wait(patience);
        state = core.lock();
        if !state.handover.rests_on() {
            return state;
        }
    }
}

/// The ladder is at its end: takes the status of the process with the lock free.
fn finish_close<'c>(core: &'c Core, mut state: Guard<'c, State>) -> Guard<'c, State> {
    let ending = state.connection().end_close();
    core.release(state);
    // The callback for stderr may run, and a wait of its for this very thread would never end.
    let report = core.as_if_locked(|| ending.finish());
    core.with(|state| state.connection().closed_with(report));
    core.lock()
}

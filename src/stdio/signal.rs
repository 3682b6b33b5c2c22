//! A flag that a thread can wait for.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Set by one thread, waited for by another. Setting it before the wait is not lost.
#[derive(Debug, Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    set: bool,
    /// Somebody waits. To tell nobody would be a system call all the same.
    awaited: bool,
}

impl Signal {
    pub(super) fn set(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.set = true;
        let awaited = state.awaited;
        drop(state);
        if awaited {
            self.changed.notify_one();
        }
    }

    /// Waits until it is set, and takes it back; no longer than `limit`.
    pub(super) fn wait(&self, limit: Option<Duration>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.awaited = true;
        let waits = |state: &mut State| !state.set;
        let mut state = match limit {
            None => self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.changed.wait_timeout_while(state, limit, waits).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        *state = State::default();
    }
}

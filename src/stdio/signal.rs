//! A flag that a thread can wait for.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Set by one thread, waited for by another. Setting it before the wait is not lost.
#[derive(Debug, Default)]
pub(super) struct Signal {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub(super) fn set(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits until it is set, and takes it back; no longer than `limit`.
    pub(super) fn wait(&self, limit: Option<Duration>) {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            None => {
                while !*set {
                    set = self.changed.wait(set).unwrap_or_else(PoisonError::into_inner);
                }
            }
            Some(limit) => {
                let waited = self.changed.wait_timeout_while(set, limit, |set| !*set);
                set = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        *set = false;
    }
}

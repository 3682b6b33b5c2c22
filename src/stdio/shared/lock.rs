//! A lock that knows the thread that holds it, and lets everybody who waits have it in turn.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

std::thread_local! {
    /// The lock that this thread holds, by address; 0 for none. Code of the user's that runs then, a predicate or the
    /// callback for stderr, would wait for itself for ever.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
pub(super) struct Lock<T> {
    /// Held while that of `inner` is waited for, by everybody, so that who takes it again and again does not keep it
    /// from others.
    gate: Mutex<()>,
    inner: Mutex<T>,
}

impl<T> Lock<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { gate: Mutex::new(()), inner: Mutex::new(inner) }
    }

    /// Whether this thread holds it already, further up.
    pub(super) fn is_ours(&self) -> bool {
        HELD.get() == self.address()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Waits for it. A panic of a thread that held it is no reason to stop.
    ///
    /// # Panics
    /// Where this thread holds it already.
    pub(super) fn lock(&self) -> Guard<'_, T> {
        assert!(!self.is_ours(), "a predicate, or the callback for stderr, must not use its own client");
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { inner, _held: self.pretend() }
    }

    /// Notes that this thread holds it, whether or not it does.
    pub(super) fn pretend(&self) -> Held {
        Held { before: HELD.replace(self.address()) }
    }
}

/// The lock, and the note that this thread holds it.
pub(super) struct Guard<'l, T> {
    inner: MutexGuard<'l, T>,
    _held: Held,
}

/// The note that this thread holds a lock.
pub(super) struct Held {
    /// The lock of another client may be held further up.
    before: usize,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(self.before);
    }
}

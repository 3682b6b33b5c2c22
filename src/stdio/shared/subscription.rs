//! The handle of a subscription of a shared client.

use std::collections::VecDeque;
use std::fmt;
use std::string::String;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::core::{Core, State};
use super::wait::Condition;
use crate::client::{Delivery, Filter, Policy};
use crate::stdio::error::{Error, ErrorKind};
use crate::stdio::subscription::Subscription;

const ATTEMPTED: &str = "wait for a notification";

/// So many deliveries are taken from the queue at a time, so that the lock is not taken for each.
const BATCH: usize = 64;

/// A queue of notifications, from [`SharedClient::subscribe`](super::SharedClient::subscribe). Dropping it ends the
/// subscription.
///
/// Several threads may take from it; each delivery goes to one of them. After the end of the connection what is in the
/// queue comes first, then the error; after [`close`](super::SharedClient::close) the error comes at once.
#[must_use = "the subscription ends with its handle"]
pub struct SharedSubscription {
    core: Arc<Core>,
    /// `None` only while this is dropped.
    inner: Option<Subscription>,
    /// Taken out of the queue and not yet given out; older than what is in the queue. At most [`BATCH`].
    batch: Mutex<VecDeque<Delivery>>,
}

impl SharedSubscription {
    pub(super) fn new(core: &Arc<Core>, name: impl Into<String>, filter: Filter, policy: Policy) -> Self {
        let inner = core.with(|state| state.client.subscribe_as(name, filter, policy));
        Self { core: Arc::clone(core), inner: Some(inner), batch: Mutex::default() }
    }

    /// The next delivery; waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] where no more can come, [`ErrorKind::PredicatePanicked`].
    pub fn next(&self) -> Result<Delivery, Error> {
        loop {
            if let Some(delivery) = self.wait(None)? {
                return Ok(delivery);
            }
        }
    }

    /// The next delivery; waits for it, but no longer than that. `None` where the time was up.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_timeout(&self, timeout: Duration) -> Result<Option<Delivery>, Error> {
        self.wait(Some(timeout))
    }

    /// The next delivery, if one waits in the queue.
    #[must_use]
    pub fn try_next(&self) -> Option<Delivery> {
        self.pop_batch().or_else(|| self.core.with(|state| self.refill(state)))
    }

    /// All deliveries from here on, each waited for; ends after the first error.
    pub fn iter(&self) -> SharedDeliveries<'_> {
        SharedDeliveries { subscription: self, failed: false }
    }

    /// The most notifications that ever waited in the queue.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.core.with(|state| self.inner.as_ref().map_or(0, |inner| inner.high_water(&state.client)))
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Option<Delivery>, Error> {
        if let Some(delivery) = self.pop_batch() {
            return Ok(Some(delivery));
        }
        let Some(id) = self.inner.as_ref().map(Subscription::id) else { return Ok(None) };
        let deadline = timeout.and_then(|timeout| self.core.with(|state| state.now()).checked_add(timeout));
        let found = self.core.wait(&Condition::Delivery(id), deadline, None, |state| {
            if let Some(delivery) = self.refill(state) {
                Some(Ok(delivery))
            } else if state.client.connection().has_ended() {
                Some(Err(state.client.closed(ATTEMPTED)))
            } else if state.client.machine().is_deaf(id) {
                Some(Err(Error::new(ATTEMPTED, ErrorKind::PredicatePanicked)))
            } else {
                None
            }
        });
        found.transpose()
    }

    fn pop_batch(&self) -> Option<Delivery> {
        let mut batch = self.batch();
        if self.core.is_closed() {
            batch.clear();
        }
        batch.pop_front()
    }

    /// Takes out what is in the queue, a batch at most, and returns the first of it.
    fn refill(&self, state: &mut State) -> Option<Delivery> {
        let id = self.inner.as_ref()?.id();
        let mut batch = self.batch();
        while batch.len() < BATCH {
            match state.connection().client.next_delivery(id) {
                Some(delivery) => batch.push_back(delivery),
                None => break,
            }
        }
        batch.pop_front()
    }

    pub(super) fn id(&self) -> Option<crate::client::SubscriptionId> {
        self.inner.as_ref().map(Subscription::id)
    }

    fn batch(&self) -> MutexGuard<'_, VecDeque<Delivery>> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSubscription").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Drop for SharedSubscription {
    fn drop(&mut self) {
        let inner = self.inner.take();
        // On the thread that pumps the next turn sees to it.
        if !self.core.is_ours() {
            self.core.with(|state| {
                drop(inner);
                state.client.forget_dropped_subscriptions();
            });
        }
    }
}

/// What a subscription gives out, one by one, from [`SharedSubscription::iter`].
#[derive(Debug)]
pub struct SharedDeliveries<'s> {
    subscription: &'s SharedSubscription,
    failed: bool,
}

impl Iterator for SharedDeliveries<'_> {
    type Item = Result<Delivery, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let delivery = self.subscription.next();
        self.failed = delivery.is_err();
        Some(delivery)
    }
}

impl<'s> IntoIterator for &'s SharedSubscription {
    type Item = Result<Delivery, Error>;
    type IntoIter = SharedDeliveries<'s>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

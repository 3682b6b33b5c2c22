//! [`Subscription`], the handle of a subscription of a blocking client, and what the client knows of those given out.

use std::sync::{Arc, Weak};
use std::time::Duration;
use std::vec::Vec;

use super::error::{Error, ErrorKind};
use super::harness_client::HarnessClient;
use super::pump::Aim;
use crate::client::{Client, Delivery, SubscriptionId};

/// A queue of notifications, from [`HarnessClient::subscribe`]. Dropping it ends the subscription.
///
/// Since nothing happens behind the caller's back, the methods that may have to read take the client. After the end
/// of the connection what is in the queue comes first, then the error; after [`HarnessClient::close`] the error comes
/// at once.
#[derive(Debug)]
#[must_use = "the subscription ends with its handle"]
pub struct Subscription {
    id: SubscriptionId,
    /// Gone with this handle, which the client sees.
    _alive: Arc<()>,
}

impl Subscription {
    pub(super) fn id(&self) -> SubscriptionId {
        self.id
    }

    /// The next delivery; waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] where no more can come, [`ErrorKind::PredicatePanicked`], [`ErrorKind::System`],
    /// [`ErrorKind::OtherClient`].
    pub fn next(&self, client: &mut HarnessClient) -> Result<Delivery, Error> {
        loop {
            if let Some(delivery) = self.wait(client, None)? {
                return Ok(delivery);
            }
        }
    }

    /// The next delivery; waits for it, but no longer than that. `None` where the time was up.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_timeout(&self, client: &mut HarnessClient, timeout: Duration) -> Result<Option<Delivery>, Error> {
        let deadline = client.connection().now().checked_add(timeout);
        self.wait(client, deadline)
    }

    /// The next delivery, if one waits in the queue; never one of another client's. Reads nothing.
    pub fn try_next(&self, client: &mut HarnessClient) -> Option<Delivery> {
        client.connection_mut().client.next_delivery(self.id)
    }

    /// All deliveries from here on, each waited for; ends after the first error.
    pub fn iter<'c>(&'c self, client: &'c mut HarnessClient) -> Deliveries<'c> {
        Deliveries { subscription: self, client, failed: false }
    }

    /// The most notifications that ever waited in the queue; 0 where the client is another.
    #[must_use]
    pub fn high_water(&self, client: &HarnessClient) -> usize {
        client.machine().high_water(self.id).unwrap_or_default()
    }

    /// Whether it was made with that client.
    pub(super) fn is_of(&self, client: &HarnessClient) -> bool {
        client.machine().has_made(self.id)
    }

    fn wait(&self, client: &mut HarnessClient, deadline: Option<Duration>) -> Result<Option<Delivery>, Error> {
        const ATTEMPTED: &str = "wait for a notification";
        if !self.is_of(client) {
            return Err(Error::new(ATTEMPTED, ErrorKind::OtherClient));
        }
        loop {
            if let Some(delivery) = self.try_next(client) {
                return Ok(Some(delivery));
            }
            if client.connection().has_ended() {
                return Err(client.closed(ATTEMPTED));
            }
            if client.machine().is_deaf(self.id) {
                return Err(Error::new(ATTEMPTED, ErrorKind::PredicatePanicked));
            }
            let now = client.connection().now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(None);
            }
            client.turn(now, deadline, Aim::Input, &mut |_, _| {})?;
        }
    }
}

/// What a subscription gives out, one by one, from [`Subscription::iter`].
#[derive(Debug)]
pub struct Deliveries<'c> {
    subscription: &'c Subscription,
    client: &'c mut HarnessClient,
    failed: bool,
}

impl Iterator for Deliveries<'_> {
    type Item = Result<Delivery, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let delivery = self.subscription.next(self.client);
        self.failed = delivery.is_err();
        Some(delivery)
    }
}

/// The subscriptions of a client. Each lasts as long as its handle.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Vec<(SubscriptionId, Weak<()>)>);

impl Subscriptions {
    /// The handle of one that has just been made.
    pub(super) fn keep(&mut self, id: SubscriptionId) -> Subscription {
        let alive = Arc::new(());
        self.0.push((id, Arc::downgrade(&alive)));
        Subscription { id, _alive: alive }
    }

    /// Ends those whose handle is gone.
    pub(super) fn forget_dropped(&mut self, client: &mut Client) {
        self.0.retain(|(id, alive)| {
            let is_alive = alive.strong_count() > 0;
            if !is_alive {
                client.unsubscribe(*id);
            }
            is_alive
        });
    }

    /// Ends all, whatever their handles say.
    pub(super) fn end_all(&mut self, client: &mut Client) {
        self.0.clear();
        client.unsubscribe_all();
    }
}

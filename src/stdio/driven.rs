//! A run on the client that its own thread drives.

use std::sync::Arc;
use std::time::Duration;

use super::connection::TOKENS;
use super::error::Error;
use super::harness_client::{HarnessClient, PendingCall};
use super::options::CallOptions;
use super::pump::Aim;
use super::run::{Answer, HELD, Host, Progress};
use super::subscription::Subscription;
use crate::client::{RuntimeRequest, SessionTree};
use crate::peer::{CallId, Reply};
use crate::wire::{Decode, Method, Notification};

/// A client whose thread is that of the run.
pub(super) struct Driven<'c> {
    client: &'c mut HarnessClient,
    /// Where the notifications of the run are queued; where they are not, it sees them as they come.
    events: Option<&'c Subscription>,
    /// Held while the run answers requests of the runtime.
    _answering: Option<Arc<()>>,
}

impl<'c> Driven<'c> {
    /// For a run that nothing else comes between.
    pub(super) fn new(client: &'c mut HarnessClient, progress: &Progress<'_>) -> Self {
        let answering = progress.answers().then(|| client.answering());
        Self { client, events: None, _answering: answering }
    }

    /// For one of several runs, with the queue of its notifications.
    pub(super) fn queued(client: &'c mut HarnessClient, events: &'c Subscription) -> Self {
        Self { client, events: Some(events), _answering: None }
    }

    /// Shows the run what is in its queue.
    pub(super) fn show_queued(&mut self, progress: &mut Progress<'_>) {
        let Some(events) = self.events else { return };
        while let Some(delivery) = events.try_next(self.client) {
            if let Some(notification) = delivery.notification() {
                progress.observe_own(&notification);
            }
            // What comes behind the end of a run is another's.
            if progress.is_finished() {
                break;
            }
        }
    }
}

impl Host for Driven<'_> {
    fn now(&self) -> Duration {
        self.client.connection().now()
    }

    fn start<M: Method>(&mut self, params: &M::Params, options: &CallOptions) -> Result<PendingCall<M::Result>, Error> {
        self.client.start_call(M::NAME, params, options)
    }

    fn take<R: for<'a> Decode<'a>>(&mut self, call: &PendingCall<R>) -> Option<Result<R, Error>> {
        self.client.try_finish(call)
    }

    fn next_request(&mut self) -> Option<RuntimeRequest> {
        self.client.next_request()
    }

    fn answer(&mut self, reply: Reply, answer: &Answer) {
        self.client.queue_answer_of_run(reply, answer);
    }

    fn note_held(&mut self, held: usize) {
        self.client.connection_mut().fail_over_backlog(HELD, held);
    }

    fn is_over(&mut self) -> bool {
        // Calls that wait are ended by the connection, with the same cause.
        let waits = self.events.is_some_and(|events| self.client.machine().has_delivery(events.id()));
        self.client.connection().has_ended() && self.client.pending_calls() == 0 && !waits
    }

    fn closed(&mut self, attempted: &'static str) -> Error {
        self.client.closed(attempted)
    }

    fn turn(
        &mut self,
        until: Option<Duration>,
        _: &[Option<CallId>],
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        // The token is not that of a call that waits once the prompt has been answered, so the connection does not see
        // to it.
        let now = self.now();
        let look = progress.token().map(|_| now + TOKENS);
        let until = [until, look].into_iter().flatten().min();
        if self.events.is_none() {
            let observe =
                &mut |notification: &Notification<'_>, tree: &SessionTree| progress.observe(notification, tree);
            return self.client.turn(now, until, Aim::Input, observe).map(drop);
        }
        self.client.turn(now, until, Aim::Input, &mut |_, _| {})?;
        self.show_queued(progress);
        Ok(())
    }
}

//! [`PendingCall`], the handle of a call, and what the client knows of the handles that it has given out.

use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::string::String;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::client::{Call, Client, Failure, Limits};
use crate::peer::{AbortToken, CallId};
use crate::wire::Decode;

/// A call that has been made, from [`HarnessClient::start_call`](super::HarnessClient::start_call). Several may be in
/// flight. Dropping it leaves the call to itself: its answer is thrown away when it comes.
#[derive(Debug)]
#[must_use = "the answer is thrown away"]
pub struct PendingCall<R> {
    call: Call<R>,
    method: String,
    timeout: Option<Duration>,
    /// By the clock of the connection.
    deadline: Option<Duration>,
    token: Option<AbortToken>,
    /// Gone with this handle, so that the answer is not kept for nobody.
    alive: Arc<()>,
}

impl<R> PendingCall<R> {
    pub(in crate::stdio) fn id(&self) -> CallId {
        self.call.id()
    }

    pub(in crate::stdio) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(in crate::stdio) fn token(&self) -> Option<&AbortToken> {
        self.token.as_ref()
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// The handles of the calls that have not been finished. The end of a call is kept for its handle, and no longer than
/// that lives.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<CallId, Weak<()>>);

impl Calls {
    /// The handle of a call that has just been made.
    pub(super) fn keep<R>(
        &mut self,
        call: Call<R>,
        method: &str,
        timeout: Option<Duration>,
        limits: &Limits<'_>,
    ) -> PendingCall<R> {
        let alive = Arc::new(());
        self.0.insert(call.id(), Arc::downgrade(&alive));
        let Limits { deadline, token } = *limits;
        PendingCall { call, method: method.to_owned(), timeout, deadline, token: token.cloned(), alive }
    }

    /// Whether the call was made here and has not been finished. Call ids are numbers that count from 0 on each
    /// connection, so only the handle tells.
    pub(super) fn have<R>(&self, call: &PendingCall<R>) -> bool {
        self.0.get(&call.id()).is_some_and(|alive| alive.as_ptr() == Arc::as_ptr(&call.alive))
    }

    /// The end of a call, if it has come.
    pub(super) fn take<R: for<'a> Decode<'a>>(
        &mut self,
        call: &PendingCall<R>,
        client: &mut Client,
    ) -> Option<Result<R, Failure>> {
        let end = client.take(&call.call)?;
        self.0.remove(&call.id());
        Some(end)
    }

    pub(super) fn abandon<R>(&mut self, call: &PendingCall<R>, client: &mut Client) {
        client.abandon(call.id());
        self.0.remove(&call.id());
    }

    /// Lets go of those among the calls that have ended whose handle is gone.
    pub(super) fn forget_dropped(&mut self, ended: impl Iterator<Item = CallId>, client: &mut Client) {
        for call in ended {
            if self.0.get(&call).is_some_and(|alive| alive.strong_count() == 0) {
                client.abandon(call);
                self.0.remove(&call);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

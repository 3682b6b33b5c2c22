//! [`PendingCall`], the handle of a call, and what the client knows of the handles that it has given out.

use std::borrow::ToOwned;
use std::collections::BTreeSet;
use std::string::String;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;

use crate::client::{Call, Client, Failure, Limits};
use crate::peer::{AbortToken, CallId};
use crate::stdio::error::ErrorKind;
use crate::stdio::pump::Waker;
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
    /// Those of its connection. It tells them when it goes, so that the answer is not kept for nobody.
    handles: Arc<Mutex<Handles>>,
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

impl<R> Drop for PendingCall<R> {
    fn drop(&mut self) {
        let mut handles = lock(&self.handles);
        if handles.alive.remove(&self.call.id()) {
            handles.dropped.push(self.call.id());
            handles.waker.iter().for_each(Waker::wake);
        }
    }
}

/// The calls of one connection that have been made with a handle and have not been finished.
#[derive(Debug, Default)]
struct Handles {
    /// The handle is there.
    alive: BTreeSet<CallId>,
    /// The handle has gone since this was last looked at.
    dropped: Vec<CallId>,
    /// Brings on the turn that looks, where it would not come of itself.
    waker: Option<Waker>,
}

fn lock(handles: &Mutex<Handles>) -> MutexGuard<'_, Handles> {
    handles.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the client knows of the handles that it has given out. The end of a call is kept for its handle, and let go with
/// the first turn after that has gone.
#[derive(Debug, Default)]
pub(super) struct Calls {
    handles: Arc<Mutex<Handles>>,
    /// Calls that wait and whose handle is gone.
    orphans: BTreeSet<CallId>,
}

impl Calls {
    /// The handle of a call that has just been made.
    pub(super) fn keep<R>(
        &mut self,
        call: Call<R>,
        method: &str,
        timeout: Option<Duration>,
        limits: &Limits<'_>,
    ) -> PendingCall<R> {
        lock(&self.handles).alive.insert(call.id());
        let Limits { deadline, token } = *limits;
        let handles = Arc::clone(&self.handles);
        PendingCall { call, method: method.to_owned(), timeout, deadline, token: token.cloned(), handles }
    }

    /// Whether the call was made here and has not been finished.
    ///
    /// # Errors
    /// [`ErrorKind::OtherClient`], [`ErrorKind::NoSuchCall`].
    pub(super) fn check<R>(&self, call: &PendingCall<R>) -> Result<(), ErrorKind> {
        if !Arc::ptr_eq(&self.handles, &call.handles) {
            return Err(ErrorKind::OtherClient);
        }
        if lock(&self.handles).alive.contains(&call.id()) { Ok(()) } else { Err(ErrorKind::NoSuchCall) }
    }

    /// Whenever a handle goes, there is a turn.
    pub(super) fn wake_at_drop(&self, waker: Waker) {
        lock(&self.handles).waker = Some(waker);
    }

    /// The end of a call, if it has come.
    pub(super) fn take<R: for<'a> Decode<'a>>(
        &mut self,
        call: &PendingCall<R>,
        client: &mut Client,
    ) -> Option<Result<R, Failure>> {
        if !client.has_ended(call.id()) {
            return None;
        }
        // First, since the `Decode` of the caller's may panic.
        lock(&self.handles).alive.remove(&call.id());
        client.take(&call.call)
    }

    pub(super) fn abandon<R>(&mut self, call: &PendingCall<R>, client: &mut Client) {
        client.abandon(call.id());
        lock(&self.handles).alive.remove(&call.id());
    }

    /// Looks at which handles have gone, and lets go of the calls among theirs that have ended.
    pub(super) fn forget_dropped(&mut self, client: &mut Client) {
        for call in std::mem::take(&mut lock(&self.handles).dropped) {
            if client.has_ended(call) {
                client.abandon(call);
            } else {
                self.orphans.insert(call);
            }
        }
    }

    /// Lets go of those among the calls that have ended whose handle had gone before.
    pub(super) fn forget_ended(&mut self, ended: impl Iterator<Item = CallId>, client: &mut Client) {
        for call in ended {
            if self.orphans.remove(&call) {
                client.abandon(call);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        let handles = lock(&self.handles);
        handles.alive.len() + handles.dropped.len() + self.orphans.len()
    }
}

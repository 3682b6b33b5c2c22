//! [`SharedClient`]: one client for many threads.

mod core;
mod handover;
mod lock;
mod session;
mod subscription;
#[cfg(test)]
mod tests;
mod thread;
mod wait;

use std::borrow::Cow;
use std::fmt;
use std::format;
use std::string::String;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::close::CloseReport;
use super::error::{Error, ErrorKind};
use super::harness::DeepSeekHarness;
use super::harness_client::{HarnessClient, PendingCall};
use super::launch::Launch;
use super::methods::protocol_methods;
use super::options::{CallOptions, ClientOptions};
use super::pump::Moved;
use crate::client::{Counters, Filter, Policy, RuntimeRequest};
use crate::json::{JsonBuf, JsonString};
use crate::peer::{AbortToken, Reply};
use crate::wire::{
    ContentBlock, Decode, Initialize, InitializeParams, InitializeResult, Method, Prompt, PromptParams, PromptResult,
    Resume, SessionParams, Wait, WorkingDirectoryGet, WorkingDirectorySet, WorkingDirectorySetParams,
};
use core::Core;
use wait::Condition;

pub use session::SharedSession;
pub use subscription::{SharedDeliveries, SharedSubscription};

/// A [`HarnessClient`] for many threads: clone it, call it from anywhere, close it from anywhere.
///
/// One thread behind it moves the bytes, but while a call waits alone its own thread does, so that the answer need not
/// be handed over. A call writes its request on the thread of the caller and waits for the answer there, so calls of
/// many threads are in flight together. Input is always read, but for backpressure: while a
/// [lossless](Policy::Lossless) subscription holds more than 1 MiB, the runtime is held up until that has been taken
/// from, unless a call or a run waits. A subscription that waits does not count there: another thread is expected to
/// take from the full one.
///
/// All of it ends as with [`HarnessClient`], and dropping the last clone ends the runtime the same way, and waits for the
/// thread. Handles of subscriptions and sessions of other threads do not keep a client alive that has no clone left;
/// their waits end with [`Cause::ClosedHere`](super::Cause::ClosedHere).
///
/// The predicate of a filter, and the callback for stderr, run on the thread that moves the bytes, one at a time. They
/// must not use the client that they belong to: that is a panic.
///
/// ```no_run
/// use dsh_wire::stdio::{Launch, SharedClient, RunOptions};
/// use dsh_wire::wire::InitializeParams;
///
/// let client = SharedClient::spawn(&Launch::discover(None, "sdk"))?;
/// client.initialize(&InitializeParams::new("/work", "deepseek-official", "deepseek-v4-flash"))?;
/// std::thread::scope(|scope| {
///     for question in ["What is in this directory?", "And in the one above?"] {
///         let client = client.clone();
///         scope.spawn(move || match client.start_session().run(question, RunOptions::new()) {
///             Ok(result) => println!("{question} {}", result.final_response),
///             Err(error) => eprintln!("{error:#}"),
///         });
///     }
/// });
/// println!("{}", client.close());
/// # Ok::<(), dsh_wire::stdio::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedClient(Arc<Owner>);

/// What all clones own together.
struct Owner {
    core: Arc<Core>,
    /// The timeout of calls that say nothing else, and the rest that never changes.
    options: ClientOptions,
    process_id: Option<u32>,
    /// Taken by the drop.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SharedClient {
    /// Starts a runtime. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Spawn`], [`ErrorKind::System`].
    pub fn spawn(launch: &Launch) -> Result<Self, Error> {
        HarnessClient::spawn(launch)?.into_shared()
    }

    /// As [`spawn`](Self::spawn), with options.
    ///
    /// # Errors
    /// As there.
    pub fn spawn_with(launch: &Launch, options: ClientOptions) -> Result<Self, Error> {
        HarnessClient::spawn_with(launch, options)?.into_shared()
    }

    /// Makes a call and does not wait for its end; several may be in flight.
    ///
    /// # Errors
    /// [`ErrorKind::Aborted`] where the token is set already, [`Closed`](ErrorKind::Closed),
    /// [`Encode`](ErrorKind::Encode). Nothing is sent then.
    pub fn start_call<R: for<'a> Decode<'a>>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        options: &CallOptions,
    ) -> Result<PendingCall<R>, Error> {
        self.core().start_call(method, params, options)
    }

    /// Waits for the end of a call.
    ///
    /// # Errors
    /// Those of any call.
    pub fn finish<R: for<'a> Decode<'a>>(&self, call: PendingCall<R>) -> Result<R, Error> {
        self.core().finish(&call)
    }

    /// The end of a call if it has come; `None` while it waits.
    #[must_use]
    pub fn try_finish<R: for<'a> Decode<'a>>(&self, call: &PendingCall<R>) -> Option<Result<R, Error>> {
        self.core().with(|state| state.client.try_finish(call))
    }

    /// Gives up a call, as [`HarnessClient::abandon`] does.
    pub fn abandon<R>(&self, call: PendingCall<R>) {
        self.core().with(|state| state.client.abandon(call));
    }

    /// Tells the runtime something, and waits until that is written or the client's timeout has passed.
    ///
    /// # Errors
    /// As [`HarnessClient::notify`].
    pub fn notify(&self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.send(format!("notify {method}"), |client| client.queue_notification(method, params))
    }

    /// Whether requests of the runtime are kept for [`next_request`](Self::next_request). Otherwise, and at first,
    /// they are refused with -32601, also those that have been kept and not taken. A run can answer them as well, see
    /// [`RunOptions::on_request`](super::RunOptions::on_request); each goes to whoever takes it first.
    pub fn take_requests(&self, take: bool) {
        self.core().with(|state| state.client.take_requests(take));
    }

    /// The oldest request of the runtime that has not been taken, if there is one.
    #[must_use]
    pub fn next_request(&self) -> Option<RuntimeRequest> {
        self.core().with(|state| state.client.next_request())
    }

    /// As [`next_request`](Self::next_request), but waits for one, no longer than `timeout`; `None` where that was up.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] where no more can come.
    pub fn wait_for_request(&self, timeout: Duration) -> Result<Option<RuntimeRequest>, Error> {
        let deadline = self.core().with(|state| state.now()).checked_add(timeout);
        let found = self.core().wait(&Condition::Request, deadline, None, |state| {
            if let Some(request) = state.client.next_request() {
                return Some(Ok(request));
            }
            let ended = state.client.connection().has_ended();
            ended.then(|| Err(state.client.closed("wait for a request of the runtime")))
        });
        found.transpose()
    }

    /// Answers a request of the runtime.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn answer(&self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.send("answer a request of the runtime", |client| client.queue_answer(reply, result))
    }

    /// Answers a request of the runtime with an error.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn refuse(
        &self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Error> {
        self.send("refuse a request of the runtime", |client| client.queue_refusal(reply, code, message, data))
    }

    /// Queues something and waits until it is written.
    fn send(
        &self,
        attempted: impl Into<Cow<'static, str>>,
        queue: impl FnOnce(&mut HarnessClient) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let queued = self.core().with(|state| {
            queue(&mut state.client)?;
            let mark = state.client.machine().sent_mark();
            Ok((mark, state.now(), state.lend_writer()))
        });
        let (mark, now, loan) = queued?;
        self.core().write(loan);
        let timeout = self.0.options.timeout;
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        let written = self.core().wait(&Condition::Flushed(mark), deadline, None, |state| {
            match (state.client.connection().pump.output_open(), state.client.machine().is_flushed(mark)) {
                (true, false) => None,
                (true, true) => Some(Ok(())),
                (false, _) => Some(Err(state.client.closed_cause())),
            }
        });
        match written {
            Some(Ok(())) => Ok(()),
            Some(Err(closed)) => Err(Error::new(attempted, ErrorKind::Closed(closed))),
            None => Err(Error::new(attempted, ErrorKind::TimedOut { after: timeout })),
        }
    }

    /// Queues the notifications that pass a filter, from now on. Dropping the handle ends it.
    pub fn subscribe(&self, filter: Filter, policy: Policy) -> SharedSubscription {
        self.subscribe_as("a subscription", filter, policy)
    }

    /// As [`subscribe`](Self::subscribe), with a name for error texts.
    pub fn subscribe_as(&self, name: impl Into<String>, filter: Filter, policy: Policy) -> SharedSubscription {
        SharedSubscription::new(&self.0.core, name, filter, policy)
    }

    /// Everything about a session and those that come from it; nothing is lost, as long as the
    /// [`SessionTree`](crate::client::SessionTree) remembers where they come from: beyond 16 384 sub-agents of one
    /// connection it forgets the oldest.
    pub fn subscribe_session_tree(&self, session_id: impl Into<JsonString>) -> SharedSubscription {
        self.subscribe(Filter::all().session_tree(session_id), Policy::Lossless)
    }

    /// A token that ends what it was given to at once when it is set. Other tokens are seen within 20 ms.
    #[must_use]
    pub fn abort_token(&self, reason: impl Into<Arc<str>>) -> AbortToken {
        let waker = self.core().waker();
        AbortToken::waking(reason, move || waker.wake())
    }

    /// Ends the runtime, as [`HarnessClient::close`] does, from any thread and at any time. Subscriptions end and new
    /// calls fail at once; calls in flight may still be answered. Who closes while another does gets the same report.
    #[must_use = "the report says how it ended"]
    pub fn close(&self) -> CloseReport {
        self.close_as(None)
    }

    /// As [`close`](Self::close), but once the token is set, no rung before SIGKILL gets more than 100 ms.
    pub fn close_with(&self, hurry: &AbortToken) -> CloseReport {
        self.close_as(Some(hurry))
    }

    fn close_as(&self, hurry: Option<&AbortToken>) -> CloseReport {
        self.core().begin_close(self.0.options.graces, hurry);
        let report = |state: &mut core::State| state.connection().report.clone();
        self.core().wait(&Condition::Closed, None, None, report).unwrap_or_default()
    }

    /// The process id of the runtime, as long as there is one, or has been.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.0.process_id
    }

    /// What has come so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core().with(|state| state.client.counters())
    }

    /// Bytes that were read and written so far.
    #[must_use]
    pub fn bytes(&self) -> Moved {
        self.core().with(|state| state.client.bytes())
    }

    /// Calls that wait for their answer.
    #[must_use]
    pub fn pending_calls(&self) -> usize {
        self.core().with(|state| {
            state.connection().expire();
            state.client.pending_calls()
        })
    }

    /// Calls whose [`PendingCall`] has not been finished, or was dropped and has not ended.
    #[must_use]
    pub fn kept_calls(&self) -> usize {
        self.core().with(|state| {
            state.client.forget_dropped_calls();
            state.client.kept_calls()
        })
    }

    fn core(&self) -> &Core {
        &self.0.core
    }
}

protocol_methods!(SharedClient, self, &self);

impl SharedClient {
    fn call_at_once<R: for<'a> Decode<'a>>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        options: &CallOptions,
    ) -> Result<R, Error> {
        let call = self.start_call(method, params, options)?;
        self.finish(call)
    }
}

impl Core {
    fn start_call<R: for<'a> Decode<'a>>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        options: &CallOptions,
    ) -> Result<PendingCall<R>, Error> {
        let (call, loan) = self.with(|state| {
            let call = state.client.start_call(method, params, options);
            (call, state.lend_writer())
        });
        self.write(loan);
        call
    }

    fn finish<R: for<'a> Decode<'a>>(&self, call: &PendingCall<R>) -> Result<R, Error> {
        let condition = Condition::Call(call.id());
        loop {
            let end = self.wait(&condition, call.deadline(), call.token(), |state| state.client.take(call));
            // At the deadline itself, the next look ends the call.
            if let Some(end) = end {
                return end;
            }
        }
    }
}

impl HarnessClient {
    /// The same client for many threads, with a thread of its own. Handles made before, of calls and subscriptions,
    /// go with this client: calls can be finished on the shared one, subscriptions are ended.
    ///
    /// # Errors
    /// [`ErrorKind::System`] where no thread can be started; the runtime is ended then.
    pub fn into_shared(mut self) -> Result<SharedClient, Error> {
        self.end_subscriptions();
        self.tell_of_dropped_calls();
        let (options, process_id) = (self.options().clone(), self.process_id());
        let core = Arc::new(Core::new(self));
        let pumped = Arc::clone(&core);
        let thread = std::thread::Builder::new().name("dsh-wire".into()).spawn(move || thread::pump(&pumped));
        match thread {
            Ok(thread) => {
                let thread = Mutex::new(Some(thread));
                Ok(SharedClient(Arc::new(Owner { core, options, process_id, thread })))
            }
            Err(error) => Err(Error::new("start the thread of the client", ErrorKind::System(error))),
        }
    }
}

impl DeepSeekHarness {
    /// The same runtime for many threads.
    ///
    /// # Errors
    /// As [`HarnessClient::into_shared`].
    pub fn into_shared(self) -> Result<SharedClient, Error> {
        self.into_client().into_shared()
    }
}

impl fmt::Debug for SharedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClient").field("process_id", &self.0.process_id).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The last clone may be one that a predicate, or the callback for stderr, had captured.
        if self.core.is_ours() {
            return self.core.stop_later();
        }
        self.core.stop();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|handle| handle.thread().id() != std::thread::current().id()) {
            // It has caught the panics there are.
            let _ = thread.join();
        }
    }
}

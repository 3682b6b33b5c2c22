//! [`HarnessClient`]: the protocol, method by method, driven by the caller's thread.

mod calls;
mod requests;

use std::borrow::Cow;
use std::format;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::string::String;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::child::Child;
use super::close::CloseReport;
use super::connection::{Connection, Observer, Patience};
use super::error::{Closed, Error, ErrorKind};
use super::launch::Launch;
use super::methods::protocol_methods;
use super::options::{CallOptions, ClientOptions};
use super::pending_run::BusySessions;
use super::pump::{Aim, Moved, Pump, Waker};
use super::run::START;
use super::subscription::{Subscription, Subscriptions};
use crate::client::{Call, Client, Counters, Failure, Filter, Limits, Policy, Run, SessionTree};
use crate::json::{JsonBuf, JsonString};
use crate::peer::{AbortToken, Dropped, SendError};
use crate::wire::{
    ContentBlock, Decode, Initialize, InitializeParams, InitializeResult, Method, Notification, Prompt, PromptParams,
    PromptResult, Resume, SessionParams, Wait, WorkingDirectoryGet, WorkingDirectorySet, WorkingDirectorySetParams,
};
use calls::Calls;
use requests::Requests;

pub use calls::PendingCall;

/// One runtime and the connection to it: every method of the protocol, notifications, requests of the runtime.
///
/// There is no thread behind it. Input is read while a call waits, while a subscription waits for its next item, and
/// in [`pump`](Self::pump); between these, what the runtime sends waits in the pipe. While a call waits, whatever
/// else comes goes into the queues of the subscriptions.
///
/// Every method ends: with its result, or with an [`Error`] of some [`ErrorKind`] when the deadline has come, the
/// token was set, or the runtime is gone (within a second of its exit, whoever else holds its pipe open).
///
/// Dropping it ends the runtime: its stdin is closed, it gets 250 ms, then its process group is killed.
/// [`close`](Self::close) is the orderly way.
///
/// ```no_run
/// use dsh_wire::client::{Filter, Policy};
/// use dsh_wire::stdio::{HarnessClient, Launch};
/// use dsh_wire::wire::{ContentBlock, InitializeParams, Status};
///
/// let mut client = HarnessClient::spawn(&Launch::discover(None, "sdk"))?;
/// client.initialize(&InitializeParams::new("/work", "deepseek-official", "deepseek-v4-flash"))?;
/// let events = client.subscribe(Filter::all().session_tree("s1"), Policy::Lossless);
/// client.prompt("s1", &[ContentBlock::text("hello")])?;
/// loop {
///     let delivery = events.next(&mut client)?;
///     println!("{delivery}");
///     if delivery.notification().is_some_and(|n| n.status() == Some(Status::Idle)) {
///         break;
///     }
/// }
/// for rung in client.close().rungs {
///     println!("{rung}");
/// }
/// # Ok::<(), dsh_wire::stdio::Error>(())
/// ```
#[derive(Debug)]
pub struct HarnessClient {
    connection: Connection,
    options: ClientOptions,
    calls: Calls,
    subscriptions: Subscriptions,
    busy: BusySessions,
    requests: Requests,
}

impl HarnessClient {
    /// Starts a runtime. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Spawn`], which names program and directory and which of them failed; [`ErrorKind::System`].
    pub fn spawn(launch: &Launch) -> Result<Self, Error> {
        Self::spawn_with(launch, ClientOptions::default())
    }

    /// As [`spawn`](Self::spawn), with options.
    ///
    /// # Errors
    /// As there.
    pub fn spawn_with(launch: &Launch, options: ClientOptions) -> Result<Self, Error> {
        let (child, (stdin, stdout)) =
            Child::spawn(launch).map_err(|error| Error::new("start the runtime", ErrorKind::Spawn(error)))?;
        Self::new(stdout, stdin, Some(child), options)
    }

    /// Speaks to a runtime that somebody else has started, over any two descriptors: `reader` is where it writes.
    ///
    /// # Errors
    /// [`ErrorKind::System`].
    pub fn connect(reader: OwnedFd, writer: OwnedFd, options: ClientOptions) -> Result<Self, Error> {
        Self::new(reader, writer, None, options)
    }

    fn new(reader: OwnedFd, writer: OwnedFd, child: Option<Child>, options: ClientOptions) -> Result<Self, Error> {
        let client = Client::with_limit(options.line_limit);
        let connection = Pump::new(reader, writer)
            .and_then(|pump| Connection::new(client, pump, child, options.max_backlog))
            .map_err(|error| Error::new("poll the pipes of the runtime", ErrorKind::System(error)))?;
        Ok(Self {
            connection,
            options,
            calls: Calls::default(),
            subscriptions: Subscriptions::default(),
            busy: BusySessions::default(),
            requests: Requests::default(),
        })
    }

    /// Makes a call and does not wait for its end; several may be in flight. It is written, and its deadline kept,
    /// while the client is pumped by whatever waits next.
    ///
    /// # Errors
    /// [`ErrorKind::Aborted`] where the token is set already, [`Closed`](ErrorKind::Closed),
    /// [`Encode`](ErrorKind::Encode). Nothing is sent then.
    pub fn start_call<R: for<'a> Decode<'a>>(
        &mut self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        options: &CallOptions,
    ) -> Result<PendingCall<R>, Error> {
        let limits = self.limits(options, self.connection.now());
        let call = self.send_call(method, params, &limits)?;
        Ok(self.calls.keep(call, method, options.timeout_within(&self.options), &limits))
    }

    /// A call that is waited for where it is made needs no handle.
    fn call_at_once<R: for<'a> Decode<'a>>(
        &mut self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        options: &CallOptions,
    ) -> Result<R, Error> {
        let mut now = self.connection.now();
        let call = self.send_call(method, params, &self.limits(options, now))?;
        loop {
            // The callback for stderr may panic, and nobody asks for the end of this call any more then.
            let turned = catch_unwind(AssertUnwindSafe(|| self.turn(now, None, Aim::Input, &mut |_, _| {})));
            if !matches!(turned, Ok(Ok(_))) {
                self.connection.client.abandon(call.id());
            }
            turned.unwrap_or_else(|panic| resume_unwind(panic))?;
            if let Some(end) = self.connection.client.take(&call) {
                return end.map_err(|failure| self.failed(method, options.timeout_within(&self.options), failure));
            }
            now = self.connection.now();
        }
    }

    /// When a call that is made now is given up.
    fn limits<'o>(&self, options: &'o CallOptions, now: Duration) -> Limits<'o> {
        let timeout = options.timeout_within(&self.options);
        // A time that cannot be counted to is none.
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        Limits { deadline, token: options.abort_token() }
    }

    fn send_call<R: for<'a> Decode<'a>>(
        &mut self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        limits: &Limits<'_>,
    ) -> Result<Call<R>, Error> {
        if self.connection.is_closing() {
            return Err(self.closed(format!("call {method}")));
        }
        let sent = self.connection.client.start(method, params, limits);
        sent.map_err(|error| self.not_sent(format!("call {method}"), error))
    }

    fn failed(&mut self, method: &str, timeout: Option<Duration>, failure: Failure) -> Error {
        let kind = ErrorKind::from_failure(failure, timeout, || self.connection.closed());
        Error::new(format!("call {method}"), kind)
    }

    /// Waits for the end of a call.
    ///
    /// # Errors
    /// Those of any call; [`ErrorKind::NoSuchCall`], [`OtherClient`](ErrorKind::OtherClient).
    pub fn finish<R: for<'a> Decode<'a>>(&mut self, call: PendingCall<R>) -> Result<R, Error> {
        loop {
            if let Some(end) = self.take(&call) {
                return end;
            }
            self.turn(self.connection.now(), None, Aim::Input, &mut |_, _| {})?;
        }
    }

    /// The end of a call if it has come; `None` while it waits. Reads nothing, so [`pump`](Self::pump) goes with it.
    pub fn try_finish<R: for<'a> Decode<'a>>(&mut self, call: &PendingCall<R>) -> Option<Result<R, Error>> {
        self.connection.expire();
        self.take(call)
    }

    pub(super) fn take<R: for<'a> Decode<'a>>(&mut self, call: &PendingCall<R>) -> Option<Result<R, Error>> {
        if let Err(kind) = self.calls.check(call) {
            return Some(Err(Error::new(format!("call {}", call.method()), kind)));
        }
        let end = self.calls.take(call, &mut self.connection.client)?;
        Some(end.map_err(|failure| self.failed(call.method(), call.timeout(), failure)))
    }

    /// Gives up a call. There is no cancel on the wire: the runtime may still do what was asked. A request that has
    /// not begun to be written is withdrawn. The call of another client is left alone.
    pub fn abandon<R>(&mut self, call: PendingCall<R>) {
        if self.calls.check(&call).is_ok() {
            self.calls.abandon(&call, &mut self.connection.client);
        }
    }

    /// Tells the runtime something, and waits until that is written or the client's timeout has passed.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`], [`Encode`](ErrorKind::Encode), [`TimedOut`](ErrorKind::TimedOut), in which case it may
    /// still be written later.
    pub fn notify(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.queue_notification(method, params)?;
        self.flush(format!("notify {method}"))
    }

    pub(super) fn queue_notification(&mut self, method: &str, params: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let queued = self.connection.client.notify(method, params);
        queued.map_err(|error| self.not_sent(format!("notify {method}"), error))
    }

    /// Waits until everything that has been sent is written, or the client's timeout has passed.
    fn flush(&mut self, attempted: impl Into<Cow<'static, str>>) -> Result<(), Error> {
        let mark = self.connection.client.sent_mark();
        let deadline = self.options.timeout.and_then(|timeout| self.connection.now().checked_add(timeout));
        while !self.connection.client.is_flushed(mark) {
            let now = self.connection.now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::new(attempted, ErrorKind::TimedOut { after: self.options.timeout }));
            }
            self.turn(now, deadline, Aim::Output, &mut |_, _| {})?;
        }
        match self.connection.pump().output_open() {
            true => Ok(()),
            false => Err(self.closed(attempted)),
        }
    }

    /// Queues the notifications that pass a filter, from now on. Dropping the handle ends it.
    pub fn subscribe(&mut self, filter: Filter, policy: Policy) -> Subscription {
        self.subscribe_as("a subscription", filter, policy)
    }

    /// As [`subscribe`](Self::subscribe), with a name for error texts.
    pub fn subscribe_as(&mut self, name: impl Into<String>, filter: Filter, policy: Policy) -> Subscription {
        let id = self.connection.client.subscribe(name, filter, policy);
        self.subscriptions.keep(id)
    }

    /// Everything about a session and those that come from it; nothing is lost, as long as the [`SessionTree`] remembers
    /// where they come from: beyond 16 384 sub-agents of one connection it forgets the oldest.
    pub fn subscribe_session_tree(&mut self, session_id: impl Into<JsonString>) -> Subscription {
        self.subscribe(Filter::all().session_tree(session_id), Policy::Lossless)
    }

    /// Reads, writes and keeps deadlines: waits for something to happen, but no longer than `timeout`, and handles
    /// that. Returns how much was moved. With [`Duration::ZERO`] it does not wait at all, for the idle callback of a
    /// user interface.
    ///
    /// Input is not read while a lossless subscription holds more than 1 MiB, unless a call waits.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] once the runtime is gone, [`ErrorKind::System`].
    pub fn pump(&mut self, timeout: Duration) -> Result<Moved, Error> {
        self.pump_with(timeout, &mut |_| {})
    }

    /// As [`pump`](Self::pump), and shows every notification as it comes, without a copy.
    ///
    /// # Errors
    /// As [`pump`](Self::pump).
    pub fn pump_with(&mut self, timeout: Duration, observe: &mut dyn FnMut(&Notification<'_>)) -> Result<Moved, Error> {
        if self.connection.has_ended() {
            self.forget_dropped_calls();
            return Err(self.closed("read what the runtime sends"));
        }
        let now = self.connection.now();
        self.turn(now, now.checked_add(timeout), Aim::Anything, &mut |notification, _| observe(notification))
    }

    /// One turn of the connection, with a look at which handles are gone.
    pub(super) fn turn(
        &mut self,
        now: Duration,
        until: Option<Duration>,
        aim: Aim,
        observe: Observer<'_>,
    ) -> Result<Moved, Error> {
        self.before_turn();
        let moved = self.connection.turn(now, until, aim, observe)?;
        self.forget_ended_calls();
        Ok(moved)
    }

    /// As [`turn`](Self::turn), but does not wait: says how long there is nothing to do but to wait.
    pub(super) fn turn_at_once(&mut self, wanted: bool) -> Option<Patience> {
        self.before_turn();
        let wait = self.connection.turn_at_once(wanted, &mut |_, _| {});
        self.forget_ended_calls();
        wait
    }

    fn before_turn(&mut self) {
        self.calls.forget_dropped(&mut self.connection.client);
        self.forget_dropped_subscriptions();
        self.choose_requests();
    }

    fn forget_ended_calls(&mut self) {
        let Connection { client, ended_calls, .. } = &mut self.connection;
        self.calls.forget_ended(ended_calls.drain(..), client);
    }

    /// Lets go of all calls that have ended and whose handle is gone, where that is not left to a turn.
    pub(super) fn forget_dropped_calls(&mut self) {
        self.calls.forget_dropped(&mut self.connection.client);
        self.forget_ended_calls();
    }

    pub(super) fn forget_dropped_subscriptions(&mut self) {
        self.subscriptions.forget_dropped(&mut self.connection.client);
    }

    /// Ends a token's or a deadline's wait at once, from any thread: the call that waits looks at both.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.connection.pump().waker()
    }

    /// A token that ends the wait at once when it is set, for calls and runs of this client.
    #[must_use]
    pub fn abort_token(&self, reason: impl Into<Arc<str>>) -> AbortToken {
        let waker = self.waker();
        AbortToken::waking(reason, move || waker.wake())
    }

    /// Ends the runtime: asks it to shut down, closes its stdin, sends SIGTERM, then SIGKILL, each only if the one
    /// before did not do, and takes its status. What is left of its process group is killed. Subscriptions end at
    /// once. The second time nothing is done, and the report is the same.
    pub fn close(&mut self) -> CloseReport {
        self.close_as(None)
    }

    /// As [`close`](Self::close), but once the token is set, no rung before SIGKILL gets more than 100 ms.
    pub fn close_with(&mut self, hurry: &AbortToken) -> CloseReport {
        self.close_as(Some(hurry))
    }

    fn close_as(&mut self, hurry: Option<&AbortToken>) -> CloseReport {
        let report = self.connection.close(self.options.graces, hurry);
        self.forget_dropped_calls();
        report
    }

    /// The process id of the runtime, while there is a process.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.connection.child().map(Child::id)
    }

    /// What has come so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.connection.client.counters()
    }

    /// The last line of the runtime's output that was no frame.
    #[must_use]
    pub fn last_dropped(&self) -> Option<Dropped<'_>> {
        self.connection.client.last_dropped()
    }

    /// Bytes that were read and written so far.
    #[must_use]
    pub fn bytes(&self) -> Moved {
        self.connection.pump().total()
    }

    /// Calls that wait for their answer.
    #[must_use]
    pub fn pending_calls(&self) -> usize {
        self.connection.client.pending()
    }

    /// Calls whose [`PendingCall`] has not been finished, or was dropped and has not ended. Those that have are let go
    /// with the next turn.
    #[must_use]
    pub fn kept_calls(&self) -> usize {
        self.calls.len()
    }

    /// The lineage of all sessions so far.
    #[must_use]
    pub fn session_tree(&self) -> &SessionTree {
        self.connection.client.session_tree()
    }

    /// A run on a session that no started run is on.
    pub(super) fn run_on(&mut self, session: &JsonString) -> Result<Run, Error> {
        match self.busy.contains(session) {
            true => Err(Error::new(START, ErrorKind::SessionBusy)),
            false => Ok(self.connection.client.run(session.clone())),
        }
    }

    /// Keeps others off the session for as long as the handle lives.
    pub(super) fn occupy(&mut self, session: &JsonString) -> Arc<JsonString> {
        self.busy.occupy(session)
    }

    /// Has the thread that pumps told of calls whose handles go, so that what is kept for them goes as well.
    pub(super) fn tell_of_dropped_calls(&self) {
        self.calls.wake_at_drop(self.waker());
    }

    pub(super) fn machine(&self) -> &Client {
        &self.connection.client
    }

    pub(super) fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Ends all subscriptions, whatever their handles say.
    pub(super) fn end_subscriptions(&mut self) {
        self.subscriptions.end_all(&mut self.connection.client);
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(super) fn closed(&mut self, attempted: impl Into<Cow<'static, str>>) -> Error {
        Error::new(attempted, ErrorKind::Closed(self.closed_cause()))
    }

    pub(super) fn closed_cause(&mut self) -> Arc<Closed> {
        self.connection.closed()
    }

    fn not_sent(&mut self, attempted: impl Into<Cow<'static, str>>, error: SendError) -> Error {
        match error {
            SendError::Aborted(reason) => Error::new(attempted, ErrorKind::Aborted(reason)),
            SendError::Encode(error) => Error::new(attempted, ErrorKind::Encode(error)),
            SendError::OtherConnection => Error::new(attempted, ErrorKind::OtherClient),
            SendError::Closed => self.closed(attempted),
        }
    }
}

protocol_methods!(HarnessClient, self, &mut self);

//! [`HarnessClient`]: the protocol, method by method, driven by the caller's thread.

use std::borrow::{Cow, ToOwned};
use std::collections::BTreeMap;
use std::format;
use std::os::fd::OwnedFd;
use std::string::String;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::vec::Vec;

use serde::Serialize;

use super::child::Child;
use super::close::CloseReport;
use super::connection::{Connection, Observer, Patience};
use super::error::{Closed, Error, ErrorKind};
use super::launch::Launch;
use super::methods::protocol_methods;
use super::options::{CallOptions, ClientOptions};
use super::pump::{Aim, Moved, Pump, Waker};
use super::run::{Answer, START};
use super::subscription::Subscription;
use crate::client::{
    Call, Client, Counters, Failure, Filter, Limits, Policy, Run, RuntimeRequest, SessionTree, SubscriptionId,
};
use crate::frame::INTERNAL_ERROR;
use crate::json::{JsonBuf, JsonString};
use crate::peer::{AbortToken, CallId, Dropped, Reply, SendError};
use crate::wire::{
    ContentBlock, Decode, Initialize, InitializeParams, InitializeResult, Method, Notification, Prompt, PromptParams,
    PromptResult, Resume, SessionParams, Wait, WorkingDirectoryGet, WorkingDirectorySet, WorkingDirectorySetParams,
};

const ANSWER: &str = "answer a request of the runtime";
const REFUSE: &str = "refuse a request of the runtime";

/// A call that has been made, from [`HarnessClient::start_call`]. Several may be in flight. Dropping it leaves the
/// call to itself: its answer is thrown away when it comes.
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
    pub(super) fn id(&self) -> CallId {
        self.call.id()
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(super) fn token(&self) -> Option<&AbortToken> {
        self.token.as_ref()
    }
}

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
    /// The handles of the calls that have not been finished.
    calls: BTreeMap<CallId, Weak<()>>,
    /// The handles of the subscriptions.
    subscriptions: Vec<(SubscriptionId, Weak<()>)>,
    /// The sessions of the runs that have been started and not finished.
    runs: Vec<Weak<JsonString>>,
    /// Whether the user takes the requests of the runtime.
    takes_requests: bool,
    /// Held by each run that answers requests of the runtime as well.
    answering: Arc<()>,
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
            calls: BTreeMap::new(),
            subscriptions: Vec::new(),
            runs: Vec::new(),
            takes_requests: false,
            answering: Arc::default(),
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
        let alive = Arc::new(());
        self.calls.insert(call.id(), Arc::downgrade(&alive));
        Ok(PendingCall {
            call,
            method: method.to_owned(),
            timeout: options.timeout_within(&self.options),
            deadline: limits.deadline,
            token: limits.token.cloned(),
            alive,
        })
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
            if let Err(error) = self.turn(now, None, Aim::Input, &mut |_, _| {}) {
                self.connection.client.abandon(call.id());
                return Err(error);
            }
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
    /// Those of any call.
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
        // Call ids are numbers that count from 0 on each connection, so only the handle tells whose a call is.
        let ours = self.calls.get(&call.call.id()).is_some_and(|alive| alive.as_ptr() == Arc::as_ptr(&call.alive));
        if !ours {
            return Some(Err(Error::new(format!("call {}", call.method), ErrorKind::NoSuchCall)));
        }
        let end = self.connection.client.take(&call.call)?;
        self.calls.remove(&call.call.id());
        Some(end.map_err(|failure| self.failed(&call.method, call.timeout, failure)))
    }

    /// Gives up a call. There is no cancel on the wire: the runtime may still do what was asked. A request that has
    /// not begun to be written is withdrawn.
    pub fn abandon<R>(&mut self, call: PendingCall<R>) {
        self.connection.client.abandon(call.call.id());
        self.calls.remove(&call.call.id());
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

    /// Whether requests of the runtime are kept for [`next_request`](Self::next_request). Otherwise, and at first,
    /// they are refused with -32601, also those that have been kept and not taken.
    ///
    /// A runtime may well wait for the answer before it goes on, so during a run that blocks it is
    /// [`RunOptions::on_request`](super::RunOptions::on_request) that answers.
    pub fn take_requests(&mut self, take: bool) {
        self.takes_requests = take;
        self.choose_requests();
    }

    /// Requests are taken until this is dropped.
    pub(super) fn answering(&mut self) -> Arc<()> {
        let answering = Arc::clone(&self.answering);
        self.choose_requests();
        answering
    }

    /// Has requests of the runtime taken while the user or a run will answer them, and refused otherwise.
    pub(super) fn choose_requests(&mut self) {
        let take = self.takes_requests || Arc::strong_count(&self.answering) > 1;
        let client = &mut self.connection.client;
        client.take_requests(take);
        while !take && let Some(request) = client.next_request() {
            let (_, mut outgoing) = client.peer_mut().split();
            // It fails only where the output has ended.
            let _ = outgoing.refuse_method(request.reply, request.method.as_json_str());
        }
    }

    /// The oldest request of the runtime that has not been taken. Reads nothing, so [`pump`](Self::pump) goes with it.
    pub fn next_request(&mut self) -> Option<RuntimeRequest> {
        self.connection.client.next_request()
    }

    /// Answers a request of the runtime.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.queue_answer(reply, result)?;
        self.flush(ANSWER)
    }

    pub(super) fn queue_answer(&mut self, reply: Reply, result: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let queued = self.connection.client.answer(reply, result);
        queued.map_err(|error| self.not_sent(ANSWER, error.why))
    }

    /// Answers a request of the runtime with an error.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn refuse(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Error> {
        self.queue_refusal(reply, code, message, data)?;
        self.flush(REFUSE)
    }

    /// The answer of a run to a request of the runtime.
    pub(super) fn queue_answer_of_run(&mut self, reply: Reply, answer: &Answer) {
        // Either fails only where the output has ended, which the run will find out.
        let _ = match answer {
            Ok(result) => self.queue_answer(reply, result),
            Err(error) => {
                let code = error.code.unwrap_or(INTERNAL_ERROR);
                self.queue_refusal(reply, code, &error.message, error.data.as_ref())
            }
        };
    }

    pub(super) fn queue_refusal(
        &mut self,
        reply: Reply,
        code: i64,
        message: &str,
        data: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Error> {
        let queued = self.connection.client.refuse(reply, code, message, data);
        queued.map_err(|error| self.not_sent(REFUSE, error.why))
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
        let alive = Arc::new(());
        self.subscriptions.push((id, Arc::downgrade(&alive)));
        Subscription::new(id, alive)
    }

    /// Everything about a session and those that come from it; nothing is lost.
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
            return Err(self.closed("read what the runtime sends"));
        }
        let now = self.connection.now();
        self.turn(now, now.checked_add(timeout), Aim::Anything, &mut |notification, _| observe(notification))
    }

    /// One turn of the connection, after a look at which handles are gone.
    pub(super) fn turn(
        &mut self,
        now: Duration,
        until: Option<Duration>,
        aim: Aim,
        observe: Observer<'_>,
    ) -> Result<Moved, Error> {
        self.forget_dropped_subscriptions();
        self.choose_requests();
        let moved = self.connection.turn(now, until, aim, observe)?;
        self.forget_dropped_calls();
        Ok(moved)
    }

    /// As [`turn`](Self::turn), but does not wait: says how long there is nothing to do but to wait.
    pub(super) fn turn_at_once(&mut self, wanted: bool) -> Option<Patience> {
        self.forget_dropped_subscriptions();
        self.choose_requests();
        let wait = self.connection.turn_at_once(wanted, &mut |_, _| {});
        self.forget_dropped_calls();
        wait
    }

    pub(super) fn forget_dropped_subscriptions(&mut self) {
        let client = &mut self.connection.client;
        self.subscriptions.retain(|(id, alive)| {
            let is_alive = alive.strong_count() > 0;
            if !is_alive {
                client.unsubscribe(*id);
            }
            is_alive
        });
    }

    fn forget_dropped_calls(&mut self) {
        for call in self.connection.ended_calls.drain(..) {
            if self.calls.get(&call).is_some_and(|alive| alive.strong_count() == 0) {
                self.connection.client.abandon(call);
                self.calls.remove(&call);
            }
        }
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
        self.connection.close(self.options.graces, None)
    }

    /// As [`close`](Self::close), but once the token is set, no rung before SIGKILL gets more than 100 ms.
    pub fn close_with(&mut self, hurry: &AbortToken) -> CloseReport {
        self.connection.close(self.options.graces, Some(hurry))
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

    /// Calls whose [`PendingCall`] has not been finished, or was dropped and has not ended.
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
        self.runs.retain(|run| run.strong_count() > 0);
        match self.runs.iter().filter_map(Weak::upgrade).any(|busy| *busy == *session) {
            true => Err(Error::new(START, ErrorKind::SessionBusy)),
            false => Ok(self.connection.client.run(session.clone())),
        }
    }

    /// Keeps others off the session for as long as the handle lives.
    pub(super) fn occupy(&mut self, session: &JsonString) -> Arc<JsonString> {
        let session = Arc::new(session.clone());
        self.runs.push(Arc::downgrade(&session));
        session
    }

    pub(super) fn machine(&self) -> &Client {
        &self.connection.client
    }

    pub(super) fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Ends all subscriptions, whatever their handles say.
    pub(super) fn end_subscriptions(&mut self) {
        self.subscriptions.clear();
        self.connection.client.unsubscribe_all();
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
            SendError::Closed => self.closed(attempted),
        }
    }
}

protocol_methods!(HarnessClient, self, &mut self);

//! One run over a blocking client: what is asked, what comes of it, and the loop between.

use std::boxed::Box;
use std::fmt;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use serde::Serialize;

use super::error::{Error, ErrorKind};
use super::harness_client::PendingCall;
use super::options::CallOptions;
use crate::client::{Observed, Run, RuntimeRequest, SessionTree};
use crate::frame::{INTERNAL_ERROR, RpcError};
use crate::json::{JsonBuf, JsonString};
use crate::peer::{AbortToken, CallId, Reply};
use crate::wire::{
    ContentBlock, Decode, Empty, Method, Notification, NotificationBuf, Prompt, PromptParams, PromptResult,
    SessionEvent, SessionParams, Wait,
};

/// What a prompt is made of: a text, or content blocks.
#[derive(Debug, Clone)]
pub struct Input(Vec<ContentBlock>);

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self([ContentBlock::text(text)].into())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<Vec<ContentBlock>> for Input {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self(blocks)
    }
}

/// What holds too much, where a run does.
pub(super) const HELD: &str = "a run that waits for its receipt";

/// What a run that fails was doing.
pub(super) const START: &str = "start a run";
pub(super) const FINISH: &str = "finish the run";

type OnNotification<'r> = Box<dyn FnMut(&Notification<'_>) + 'r>;

/// What is said to a request of the runtime: a result, or an error.
pub(super) type Answer = Result<JsonBuf, RpcError>;

type OnRequest<'r> = Box<dyn FnMut(&RuntimeRequest) -> Answer + 'r>;

/// What one run is made with.
#[derive(Default)]
#[must_use]
pub struct RunOptions<'r> {
    on_notification: Option<OnNotification<'r>>,
    on_request: Option<OnRequest<'r>>,
    pub(super) timeout: Option<Duration>,
    token: Option<AbortToken>,
    discard: bool,
    until_settled: bool,
}

impl<'r> RunOptions<'r> {
    /// No callback, no timeout, everything collected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls this for each notification of the run as it comes, those of sub-agents included;
    /// [`text_delta`](crate::client::text_delta) finds the text that old runtimes stream.
    pub fn on_notification(mut self, callback: impl FnMut(&Notification<'_>) + 'r) -> Self {
        self.on_notification = Some(Box::new(callback));
        self
    }

    /// Answers the requests that the runtime makes during the run with what this returns: a result, or an error. Without
    /// it they are refused, or wait for [`HarnessClient::next_request`](super::HarnessClient::next_request) where they are
    /// taken. Nothing is read while it thinks.
    ///
    /// ```
    /// use dsh_wire::frame::{METHOD_NOT_FOUND, RpcError};
    /// use dsh_wire::stdio::RunOptions;
    /// use serde_json::json;
    ///
    /// let options = RunOptions::new().on_request(|request| match &*request.method.to_string() {
    ///     "approval/request" => Ok(json!({ "decision": "approved" })),
    ///     other => Err(RpcError::new(METHOD_NOT_FOUND, format!("method not found: {other}"), None)),
    /// });
    /// # let _ = options;
    /// ```
    pub fn on_request<A: Serialize>(
        mut self,
        mut callback: impl FnMut(&RuntimeRequest) -> Result<A, RpcError> + 'r,
    ) -> Self {
        self.on_request = Some(Box::new(move |request| {
            let answer = callback(request)?;
            JsonBuf::from_serialize(&answer).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string(), None))
        }));
        self
    }

    /// The time that the whole run may take. Unless it is set, only the deadlines of the client's calls hold, and a run whose
    /// receipt has come is waited for as long as the runtime lives.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives the run up once the token is set, within 20 ms.
    pub fn token(mut self, token: &AbortToken) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// Whether the notifications are kept for [`RunResult`]; they are unless told otherwise. Without, a run takes no
    /// memory however long it is.
    pub fn collect(mut self, collect: bool) -> Self {
        self.discard = !collect;
        self
    }

    /// Goes on after the session is idle until its sub-agents have finished as well, by `session/wait`. A runtime
    /// from before 0.2.1 does not know that, and the run ends as it otherwise would.
    pub fn until_settled(mut self, until_settled: bool) -> Self {
        self.until_settled = until_settled;
        self
    }

    /// Whether requests of the runtime are answered.
    pub(super) fn answers(&self) -> bool {
        self.on_request.is_some()
    }

    pub(super) fn token_set(&self) -> Option<&AbortToken> {
        self.token.as_ref()
    }

    fn calls(&self) -> CallOptions {
        let mut calls = CallOptions::default();
        if let Some(timeout) = self.timeout {
            calls = calls.timeout(timeout);
        }
        match &self.token {
            Some(token) => calls.token(token),
            None => calls,
        }
    }
}

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("on_notification", &self.on_notification.is_some())
            .field("on_request", &self.on_request.is_some())
            .field("timeout", &self.timeout)
            .field("token", &self.token)
            .field("collect", &!self.discard)
            .field("until_settled", &self.until_settled)
            .finish()
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunResult {
    /// The session.
    pub session_id: JsonString,
    /// The text blocks of the last message of the model, in one; empty where there was no message. A lone surrogate,
    /// which Rust's strings cannot hold, is U+FFFD here and whole in [`events`](Self::events).
    pub final_response: String,
    /// Why the last turn ended: `completed`, `max-tokens`, `error` and so on; `None` where none did.
    pub finish_reason: Option<String>,
    /// Every notification of the run in wire order, those of sub-agents included; empty where they were not collected.
    pub notifications: Vec<NotificationBuf>,
}

impl RunResult {
    /// A result without a finish reason and notifications, for tests of what handles results.
    pub fn new(session_id: impl Into<JsonString>, final_response: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            final_response: final_response.into(),
            finish_reason: None,
            notifications: Vec::new(),
        }
    }

    /// The events of the session itself, in wire order.
    pub fn events(&self) -> impl Iterator<Item = SessionEvent<'_>> {
        let views = self.notifications.iter().filter_map(|buf| buf.view().ok());
        views
            .filter(|view| view.session_id().is_some_and(|session| session == self.session_id.as_json_str()))
            .filter_map(|view| view.event().cloned())
    }
}

/// What a run needs of the client that it goes through.
pub(super) trait Host {
    /// The time as the connection counts it.
    fn now(&self) -> Duration;
    fn start<M: Method>(&mut self, params: &M::Params, options: &CallOptions) -> Result<PendingCall<M::Result>, Error>;
    /// The end of a call, if it has come.
    fn take<R: for<'a> Decode<'a>>(&mut self, call: &PendingCall<R>) -> Option<Result<R, Error>>;
    /// A request of the runtime that nobody has taken.
    fn next_request(&mut self) -> Option<RuntimeRequest>;
    /// Queues the answer to one. It fails only where the connection has ended.
    fn answer(&mut self, reply: Reply, answer: &Answer);
    /// Ends the connection if the run holds more than may be held.
    fn note_held(&mut self, held: usize);
    /// Whether nothing more can come, neither notifications nor the ends of calls.
    fn is_over(&mut self) -> bool;
    fn closed(&mut self, attempted: &'static str) -> Error;
    /// Waits for notifications, for the end of one of the calls, or for the token of the run, but no longer than
    /// `until`; shows what came to the run.
    fn turn(
        &mut self,
        until: Option<Duration>,
        calls: &[Option<CallId>],
        progress: &mut Progress<'_>,
    ) -> Result<(), Error>;
}

/// Sends the prompt and goes on to the end of the run, or until the deadline.
pub(super) fn drive(
    host: &mut impl Host,
    session: &JsonString,
    input: Input,
    progress: Progress<'_>,
    deadline: Option<Duration>,
) -> Result<RunResult, Error> {
    let mut going = Going::start(host, session, input, progress, deadline)?;
    loop {
        if let Some(result) = going.step(host)? {
            return Ok(result);
        }
        let waits_for = going.waits_for();
        host.turn(deadline, &waits_for, &mut going.progress)?;
    }
}

/// A run whose prompt has been sent. It moves when it is shown notifications and asked to [`step`](Self::step).
pub(super) struct Going<'r> {
    session: JsonString,
    pub(super) progress: Progress<'r>,
    calls: CallOptions,
    pub(super) deadline: Option<Duration>,
    /// While it has not been answered.
    prompt: Option<PendingCall<PromptResult>>,
    /// The call of `session/wait`, while there is one.
    settled: Option<PendingCall<Empty>>,
}

impl<'r> Going<'r> {
    /// Sends the prompt.
    pub(super) fn start(
        host: &mut impl Host,
        session: &JsonString,
        input: Input,
        progress: Progress<'r>,
        deadline: Option<Duration>,
    ) -> Result<Self, Error> {
        let calls = progress.options.calls();
        let params = PromptParams { session_id: session.clone(), content_blocks: input.0 };
        let prompt = Some(host.start::<Prompt>(&params, &calls)?);
        Ok(Self { session: session.clone(), progress, calls, deadline, prompt, settled: None })
    }

    /// The calls whose ends it waits for.
    pub(super) fn waits_for(&self) -> [Option<CallId>; 2] {
        [self.prompt.as_ref().map(PendingCall::id), self.settled.as_ref().map(PendingCall::id)]
    }

    /// Takes what has come of its calls, and answers the runtime. The result, once it is over.
    pub(super) fn step(&mut self, host: &mut impl Host) -> Result<Option<RunResult>, Error> {
        let progress = &mut self.progress;
        progress.answer_requests(host);
        if let Some(end) = self.prompt.as_ref().and_then(|call| host.take(call)) {
            self.prompt = None;
            progress.run.answered(&end?);
            progress.take_held();
        }
        if let Some(end) = self.settled.as_ref().and_then(|call| host.take(call)) {
            self.settled = None;
            progress.settled(end)?;
        }
        if progress.run.is_finished() {
            return Ok(Some(progress.take_result(self.session.clone())));
        }
        let waits = self.prompt.is_some() || self.settled.is_some();
        if !waits && progress.options.until_settled && progress.run.is_idle() {
            let params = SessionParams::new(self.session.clone());
            self.settled = Some(host.start::<Wait>(&params, &self.calls)?);
        }
        progress.check(host, self.deadline)?;
        Ok(None)
    }
}

/// A run and what is made of it.
pub(super) struct Progress<'r> {
    run: Run,
    options: RunOptions<'r>,
    notifications: Vec<NotificationBuf>,
}

impl<'r> Progress<'r> {
    pub(super) fn new(run: Run, options: RunOptions<'r>) -> Self {
        let run = if options.until_settled { run.until_finished() } else { run };
        Self { run, options, notifications: Vec::new() }
    }

    pub(super) fn token(&self) -> Option<&AbortToken> {
        self.options.token_set()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.run.is_finished()
    }

    /// Whether it answers the requests of the runtime.
    pub(super) fn answers(&self) -> bool {
        self.options.answers()
    }

    fn answer_requests(&mut self, host: &mut impl Host) {
        let Some(callback) = &mut self.options.on_request else { return };
        while let Some(request) = host.next_request() {
            let answer = callback(&request);
            host.answer(request.reply, &answer);
        }
    }

    /// Whether there is a point in waiting on.
    fn check(&self, host: &mut impl Host, deadline: Option<Duration>) -> Result<(), Error> {
        if let Some(token) = self.token().filter(|token| token.is_aborted()) {
            return Err(Error::new(FINISH, ErrorKind::Aborted(token.reason())));
        }
        if deadline.is_some_and(|deadline| host.now() >= deadline) {
            return Err(Error::new(FINISH, ErrorKind::TimedOut { after: self.options.timeout }));
        }
        host.note_held(self.run.held());
        if host.is_over() { Err(host.closed(FINISH)) } else { Ok(()) }
    }

    /// Shows the run a notification, whatever it is about.
    pub(super) fn observe(&mut self, notification: &Notification<'_>, tree: &SessionTree) {
        let place = self.run.observe(notification, tree);
        self.observed(place, notification);
    }

    /// Shows the run a notification about its session or one that comes from it.
    pub(super) fn observe_own(&mut self, notification: &Notification<'_>) {
        let place = self.run.observe_own(notification);
        self.observed(place, notification);
    }

    fn observed(&mut self, place: Observed, notification: &Notification<'_>) {
        match place {
            Observed::Unrelated => {}
            Observed::Held => self.take_held(),
            Observed::Related | Observed::Last => {
                self.show(notification);
                if !self.options.discard {
                    self.notifications.push(notification.to_buf());
                }
            }
        }
    }

    fn take_held(&mut self) {
        while let Some((buf, _)) = self.run.next_held() {
            self.show(&crate::client::read(buf.method.as_json_str(), buf.params.as_json()));
            if !self.options.discard {
                self.notifications.push(buf);
            }
        }
    }

    fn show(&mut self, notification: &Notification<'_>) {
        if let Some(callback) = &mut self.options.on_notification {
            callback(notification);
        }
    }

    /// Takes the answer to `session/wait`.
    fn settled(&mut self, end: Result<Empty, Error>) -> Result<(), Error> {
        match end {
            // A wake-up may have come between; the next idle asks again.
            Ok(Empty) if !self.run.is_idle() => {}
            Ok(Empty) => self.run.finish(),
            // A runtime that does not know the method.
            Err(error) if error.rpc().is_some() => self.run.finish(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn take_result(&mut self, session_id: JsonString) -> RunResult {
        RunResult {
            session_id,
            final_response: self.run.final_response().map(|text| text.to_string()).unwrap_or_default(),
            finish_reason: self.run.finish_reason().map(|reason| reason.to_string()),
            notifications: std::mem::take(&mut self.notifications),
        }
    }
}

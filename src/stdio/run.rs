//! One run over a blocking client: what is asked, what comes of it, and the loop between.

use std::boxed::Box;
use std::fmt;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use super::error::{Error, ErrorKind};
use super::harness_client::PendingCall;
use super::options::CallOptions;
use crate::client::{Place, Run, SessionTree};
use crate::json::JsonString;
use crate::peer::{AbortToken, CallId};
use crate::wire::{
    ContentBlock, Decode, Empty, Method, Notification, NotificationBuf, Prompt, PromptParams, SessionEvent,
    SessionParams, Wait,
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
pub(super) const FINISH: &str = "finish the run";

type OnNotification<'r> = Box<dyn FnMut(&Notification<'_>) + 'r>;

/// What one run is made with.
#[derive(Default)]
#[must_use]
pub struct RunOptions<'r> {
    on_notification: Option<OnNotification<'r>>,
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

    /// The time that the whole run may take.
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
    mut progress: Progress<'_>,
    deadline: Option<Duration>,
) -> Result<RunResult, Error> {
    let calls = progress.options.calls();
    let params = PromptParams { session_id: session.clone(), content_blocks: input.0 };
    let mut prompt = Some(host.start::<Prompt>(&params, &calls)?);
    drop(params);
    let mut settled: Option<PendingCall<Empty>> = None;
    loop {
        if let Some(end) = prompt.as_ref().and_then(|call| host.take(call)) {
            prompt = None;
            progress.run.answered(&end?);
            progress.take_held();
        }
        if let Some(end) = settled.as_ref().and_then(|call| host.take(call)) {
            settled = None;
            progress.settled(end)?;
        }
        if progress.run.is_finished() {
            return Ok(progress.into_result(session.clone()));
        }
        if prompt.is_none() && settled.is_none() && progress.options.until_settled && progress.run.is_idle() {
            settled = Some(host.start::<Wait>(&SessionParams::new(session.clone()), &calls)?);
        }
        progress.check(host, deadline)?;
        let waits_for = [prompt.as_ref().map(PendingCall::id), settled.as_ref().map(PendingCall::id)];
        host.turn(deadline, &waits_for, &mut progress)?;
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

    fn observed(&mut self, place: Place, notification: &Notification<'_>) {
        match place {
            Place::Outside => {}
            Place::Held => self.take_held(),
            Place::Inside | Place::Last => {
                self.show(notification);
                if !self.options.discard {
                    self.notifications.push(notification.to_buf());
                }
            }
        }
    }

    fn take_held(&mut self) {
        while let Some((buf, _)) = self.run.next_held() {
            self.show(&crate::client::read(buf.method.as_json_str(), buf.params.as_json()).0);
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

    fn into_result(self, session_id: JsonString) -> RunResult {
        RunResult {
            session_id,
            final_response: self.run.final_response().map(|text| text.to_string()).unwrap_or_default(),
            finish_reason: self.run.finish_reason().map(|reason| reason.to_string()),
            notifications: self.notifications,
        }
    }
}

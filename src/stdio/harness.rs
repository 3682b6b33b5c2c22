//! [`DeepSeekHarness`] and [`Session`]: prompts in, answers out.

use std::boxed::Box;
use std::fmt;
use std::format;
use std::hash::BuildHasher;
use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use super::connection::{CloseReport, TOKENS};
use super::error::{Error, ErrorKind};
use super::harness_client::{HarnessClient, PendingCall};
use super::launch::Launch;
use super::options::{CallOptions, ClientOptions};
use crate::client::{Place, Run, SessionTree};
use crate::json::JsonString;
use crate::peer::AbortToken;
use crate::wire::{
    ContentBlock, Empty, InitializeParams, Method, Notification, NotificationBuf, Prompt, PromptParams, PromptResult,
    SessionEvent, SessionParams, Wait,
};

/// What a [`DeepSeekHarness`] is set up with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HarnessOptions {
    /// How the runtime is started.
    pub launch: Launch,
    /// The handshake: where sessions work, and which model answers.
    pub initialize: InitializeParams,
    /// The connection.
    pub client: ClientOptions,
}

impl HarnessOptions {
    /// With the defaults for the connection.
    #[must_use]
    pub fn new(launch: Launch, initialize: InitializeParams) -> Self {
        Self { launch, initialize, client: ClientOptions::default() }
    }
}

/// A runtime that is ready, for any number of sessions.
///
/// ```no_run
/// use dsh_wire::stdio::{DeepSeekHarness, HarnessOptions, Launch, RunOptions};
/// use dsh_wire::wire::InitializeParams;
///
/// let launch = Launch::discover(None, "sdk");
/// let route = InitializeParams::new("/work", "deepseek-official", "deepseek-v4-flash");
/// let mut harness = DeepSeekHarness::start(&HarnessOptions::new(launch, route))?;
/// let mut session = harness.start_session();
/// let result = session.run("What is in this directory?", RunOptions::new())?;
/// println!("{}", result.final_response);
/// let result = session.run("And in the one above?", RunOptions::new())?;
/// println!("{} ({})", result.final_response, result.finish_reason.unwrap_or_default());
/// harness.close();
/// # Ok::<(), dsh_wire::stdio::Error>(())
/// ```
#[derive(Debug)]
pub struct DeepSeekHarness {
    client: HarnessClient,
}

impl DeepSeekHarness {
    /// Starts a runtime and waits until it is ready.
    ///
    /// # Errors
    /// As [`HarnessClient::spawn`] and [`HarnessClient::initialize`]; the runtime is ended then.
    pub fn start(options: &HarnessOptions) -> Result<Self, Error> {
        let mut client = HarnessClient::spawn_with(&options.launch, options.client.clone())?;
        client.initialize(&options.initialize)?;
        Ok(Self { client })
    }

    /// On top of a client whose handshake is done.
    #[must_use]
    pub fn with_client(client: HarnessClient) -> Self {
        Self { client }
    }

    /// A new session, with an id of random bits. The runtime creates it with the first prompt.
    pub fn start_session(&mut self) -> Session<'_> {
        self.session(new_session_id())
    }

    /// The session with this id; the runtime creates it with the first prompt, if it is not open yet.
    pub fn session(&mut self, id: impl Into<JsonString>) -> Session<'_> {
        Session { client: &mut self.client, id: id.into() }
    }

    /// Restores a stored session. From 0.2.1.
    ///
    /// # Errors
    /// As [`HarnessClient::resume`].
    pub fn resume_session(&mut self, id: impl Into<JsonString>) -> Result<Session<'_>, Error> {
        let id = id.into();
        self.client.resume(id.clone())?;
        Ok(self.session(id))
    }

    /// Runs one prompt on a new session.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run(&mut self, input: impl Into<Input>, options: RunOptions<'_>) -> Result<RunResult, Error> {
        self.start_session().run(input, options)
    }

    /// The protocol below.
    pub fn client(&mut self) -> &mut HarnessClient {
        &mut self.client
    }

    /// As [`HarnessClient::close`].
    pub fn close(&mut self) -> CloseReport {
        self.client.close()
    }
}

/// One session of a runtime.
#[derive(Debug)]
pub struct Session<'h> {
    client: &'h mut HarnessClient,
    id: JsonString,
}

impl Session<'_> {
    /// Its id, to come back to it with [`DeepSeekHarness::session`] or, in another process,
    /// [`resume_session`](DeepSeekHarness::resume_session).
    #[must_use]
    pub fn id(&self) -> &JsonString {
        &self.id
    }

    /// Sends a prompt and waits for the end of what it sets off.
    ///
    /// The run lasts from the receipt of the message to the time when the session has nothing more to do; where it
    /// was busy, its earlier work comes first and is not part of the run.
    ///
    /// # Errors
    /// Those of any call, [`ErrorKind::TimedOut`] and [`ErrorKind::Aborted`] also for the time after the answer to
    /// the prompt; the error names the session. The turn goes on in the runtime then: there is no cancel on the wire.
    /// A turn that fails is no error: [`RunResult::finish_reason`] tells.
    pub fn run(&mut self, input: impl Into<Input>, options: RunOptions<'_>) -> Result<RunResult, Error> {
        let mut progress = Progress::new(self.client.run_on(self.id.clone()), options);
        match self.drive(input.into(), &mut progress) {
            Ok(()) => Ok(progress.into_result(self.id.clone())),
            Err(error) => Err(error.on(self.id.clone())),
        }
    }

    fn drive(&mut self, input: Input, progress: &mut Progress<'_>) -> Result<(), Error> {
        let params = PromptParams { session_id: self.id.clone(), content_blocks: input.0 };
        let deadline =
            progress.options.timeout.and_then(|timeout| self.client.connection_mut().now().checked_add(timeout));
        let calls = progress.options.calls();
        let mut prompt: Option<PendingCall<PromptResult>> =
            Some(self.client.start_call(Prompt::NAME, &params, &calls)?);
        drop(params);
        let mut settled: Option<PendingCall<Empty>> = None;
        loop {
            self.client.connection_mut().expire();
            if let Some(end) = prompt.as_ref().and_then(|call| self.client.take(call)) {
                prompt = None;
                progress.run.answered(&end?);
                progress.take_held();
            }
            if let Some(end) = settled.as_ref().and_then(|call| self.client.take(call)) {
                settled = None;
                progress.settled(end)?;
            }
            if progress.run.is_finished() {
                return Ok(());
            }
            if prompt.is_none() && settled.is_none() && progress.options.until_settled && progress.run.is_idle() {
                settled = Some(self.client.start_call(Wait::NAME, &SessionParams::new(self.id.clone()), &calls)?);
            }
            self.check(deadline, progress)?;
            let until = self.until(deadline, progress);
            self.client.turn(until, true, &mut |notification, tree| progress.observe(notification, tree))?;
        }
    }

    /// Whether there is a point in waiting on.
    fn check(&mut self, deadline: Option<Duration>, progress: &Progress<'_>) -> Result<(), Error> {
        const ATTEMPTED: &str = "finish the run";
        if let Some(token) = progress.options.token.as_ref().filter(|token| token.is_aborted()) {
            return Err(Error::new(ATTEMPTED, ErrorKind::Aborted(token.reason())));
        }
        if deadline.is_some_and(|deadline| self.client.connection_mut().now() >= deadline) {
            return Err(Error::new(ATTEMPTED, ErrorKind::TimedOut { after: progress.options.timeout }));
        }
        self.client.connection_mut().fail_over_backlog("a run that waits for its receipt", progress.run.held());
        // Calls that wait are ended by the connection, with the same cause.
        if self.client.connection_mut().has_ended() && self.client.pending_calls() == 0 {
            return Err(self.client.closed(ATTEMPTED));
        }
        Ok(())
    }

    /// When there is something to look at, whether or not something comes. The token is not that of a call that
    /// waits once the prompt has been answered, so the connection does not see to it.
    fn until(&mut self, deadline: Option<Duration>, progress: &Progress<'_>) -> Option<Duration> {
        let token = progress.options.token.as_ref().map(|_| self.client.connection_mut().now() + TOKENS);
        [deadline, token].into_iter().flatten().min()
    }

    /// Waits until it is idle and its sub-agents have finished. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.client.wait(self.id.clone())
    }

    /// The directory that it works in. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn working_directory(&mut self) -> Result<JsonString, Error> {
        self.client.working_directory(self.id.clone())
    }

    /// Moves it to another directory, and returns its absolute path. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn set_working_directory(&mut self, path: impl Into<JsonString>) -> Result<JsonString, Error> {
        self.client.set_working_directory(self.id.clone(), path)
    }
}

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

type OnNotification<'r> = Box<dyn FnMut(&Notification<'_>) + 'r>;

/// What one run is made with.
#[derive(Default)]
#[must_use]
pub struct RunOptions<'r> {
    on_notification: Option<OnNotification<'r>>,
    timeout: Option<Duration>,
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

/// A run and what is made of it.
struct Progress<'r> {
    run: Run,
    options: RunOptions<'r>,
    notifications: Vec<NotificationBuf>,
}

impl<'r> Progress<'r> {
    fn new(run: Run, options: RunOptions<'r>) -> Self {
        let run = if options.until_settled { run.until_finished() } else { run };
        Self { run, options, notifications: Vec::new() }
    }

    fn observe(&mut self, notification: &Notification<'_>, tree: &SessionTree) {
        match self.run.observe(notification, tree) {
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

/// `session-` and 32 hex digits.
fn new_session_id() -> String {
    let random = || std::hash::RandomState::new().hash_one(std::time::SystemTime::now());
    format!("session-{:016x}{:016x}", random(), random())
}

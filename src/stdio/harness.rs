//! [`DeepSeekHarness`] and [`Session`]: prompts in, answers out.

use std::format;
use std::hash::BuildHasher;
use std::string::String;

use super::close::CloseReport;
use super::driven::Driven;
use super::error::Error;
use super::harness_client::HarnessClient;
use super::launch::Launch;
use super::options::ClientOptions;
use super::pending_run::PendingRun;
use super::run::{self, Input, Progress, RunOptions, RunResult};
use crate::json::JsonString;
use crate::wire::InitializeParams;

/// What a [`DeepSeekHarness`] is set up with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HarnessOptions {
    /// How the runtime is started.
    pub launch: Launch,
    /// The handshake: where sessions work, and which model answers.
    pub initialize: InitializeParams,
    /// The connection. Its [`timeout`](ClientOptions::timeout) is that of the handshake too; there is none unless set.
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

    /// Restores a stored session. From 0.2.1. The official runtime stores a session behind its answers: one that it was
    /// ended before, soon after the first prompt and on a busy machine, is not found.
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

    pub(super) fn into_client(self) -> HarnessClient {
        self.client
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
    /// The run lasts from the receipt of the message to the time when the session has nothing more to do. Where it was
    /// busy, say with a turn whose run has timed out, the rest of that comes first, and is among what the run sees.
    ///
    /// # Errors
    /// Those of any call, [`ErrorKind::TimedOut`](super::ErrorKind::TimedOut) and [`ErrorKind::Aborted`](super::ErrorKind::Aborted) also for the time after the answer to
    /// the prompt; [`ErrorKind::SessionBusy`](super::ErrorKind::SessionBusy). The error names the session. The turn goes on
    /// in the runtime then: there is no cancel on the wire. A turn that fails is no error: [`RunResult::finish_reason`] tells.
    pub fn run(&mut self, input: impl Into<Input>, options: RunOptions<'_>) -> Result<RunResult, Error> {
        let deadline = options.timeout.and_then(|timeout| self.client.connection().now().checked_add(timeout));
        let run = self.client.run_on(&self.id).map_err(|error| error.on(self.id.clone()))?;
        let progress = Progress::new(run, options);
        let mut host = Driven::new(self.client, &progress);
        run::drive(&mut host, &self.id, input.into(), progress, deadline).map_err(|error| error.on(self.id.clone()))
    }

    /// Sends a prompt and does not wait for what it sets off. Runs of several sessions can be under way at once; a session
    /// has one at a time.
    ///
    /// # Errors
    /// [`ErrorKind::SessionBusy`](super::ErrorKind::SessionBusy), [`Aborted`](super::ErrorKind::Aborted) where the token is
    /// set already, [`Closed`](super::ErrorKind::Closed). Nothing is sent then.
    pub fn start_run<'r>(&mut self, input: impl Into<Input>, options: RunOptions<'r>) -> Result<PendingRun<'r>, Error> {
        PendingRun::start(self.client, &self.id, input.into(), options).map_err(|error| error.on(self.id.clone()))
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

/// `session-` and 32 hex digits.
pub(super) fn new_session_id() -> String {
    let random = || std::hash::RandomState::new().hash_one(std::time::SystemTime::now());
    format!("session-{:016x}{:016x}", random(), random())
}

//! [`PendingRun`]: a run among others on the client that its own thread drives.

use std::fmt;
use std::format;
use std::sync::{Arc, Weak};
use std::vec::Vec;

use super::driven::Driven;
use super::error::{Error, ErrorKind};
use super::harness_client::HarnessClient;
use super::run::{FINISH, Going, Host, Input, Progress, RunOptions, RunResult};
use super::subscription::Subscription;
use crate::client::{Filter, Policy};
use crate::json::JsonString;

/// A run whose prompt has been sent, from [`Session::start_run`](super::Session::start_run). Dropping it gives the run
/// up; there is no cancel on the wire.
///
/// Whatever pumps the client brings all runs on. Their notifications, and requests of the runtime that they answer, wait
/// in queues until [`try_finish`](Self::try_finish) or [`finish`](Self::finish) shows them to the callbacks.
///
/// ```no_run
/// use std::time::Duration;
/// use dsh_wire::stdio::{DeepSeekHarness, HarnessOptions, Launch, RunOptions};
/// use dsh_wire::wire::InitializeParams;
///
/// let launch = Launch::discover(None, "sdk");
/// let route = InitializeParams::new("/work", "deepseek-official", "deepseek-v4-flash");
/// let mut harness = DeepSeekHarness::start(&HarnessOptions::new(launch, route))?;
/// let mut runs = Vec::new();
/// for question in ["What is in this directory?", "And in the one above?"] {
///     runs.push(harness.start_session().start_run(question, RunOptions::new())?);
/// }
/// while !runs.is_empty() {
///     harness.client().pump(Duration::from_secs(1))?;
///     runs.retain_mut(|run| match run.try_finish(harness.client()) {
///         None => true,
///         Some(Ok(result)) => {
///             println!("{}", result.final_response);
///             false
///         }
///         Some(Err(error)) => {
///             eprintln!("{error}");
///             false
///         }
///     });
/// }
/// # Ok::<(), dsh_wire::stdio::Error>(())
/// ```
pub struct PendingRun<'r> {
    session: Arc<JsonString>,
    events: Subscription,
    /// `None` once its end has been taken.
    going: Option<Going<'r>>,
    /// Held while it answers requests of the runtime.
    answering: Option<Arc<()>>,
}

impl<'r> PendingRun<'r> {
    pub(super) fn start(
        client: &mut HarnessClient,
        id: &JsonString,
        input: Input,
        options: RunOptions<'r>,
    ) -> Result<Self, Error> {
        let deadline = options.timeout.and_then(|timeout| client.connection().now().checked_add(timeout));
        let progress = Progress::new(client.run_on(id)?, options);
        let answering = progress.answers().then(|| client.answering());
        // Before the prompt is sent, so that nothing is missed.
        let filter = Filter::all().session_tree(id.clone());
        let events = client.subscribe_as(format!("a run on {id:?}"), filter, Policy::Lossless);
        let going = Going::start(&mut Driven::queued(client, &events), id, input, progress, deadline)?;
        Ok(Self { session: client.occupy(id), events, going: Some(going), answering })
    }

    /// The session.
    #[must_use]
    pub fn session_id(&self) -> &JsonString {
        &self.session
    }

    /// The result of the run, once it is over; `None` while it goes on. Shows the callbacks what has come, and looks at
    /// the deadline and the token. Reads nothing, so [`HarnessClient::pump`] goes with it.
    ///
    /// # Errors
    /// Those of [`Session::run`](super::Session::run); [`ErrorKind::NoSuchCall`] where the end was taken before;
    /// [`ErrorKind::OtherClient`], which leaves the run as it is.
    pub fn try_finish(&mut self, client: &mut HarnessClient) -> Option<Result<RunResult, Error>> {
        let Some(going) = &mut self.going else {
            return Some(Err(Error::new(FINISH, ErrorKind::NoSuchCall).on((*self.session).clone())));
        };
        if !self.events.is_of(client) {
            return Some(Err(Error::new(FINISH, ErrorKind::OtherClient).on((*self.session).clone())));
        }
        let mut host = Driven::queued(client, &self.events);
        host.show_queued(&mut going.progress);
        let end = going.step(&mut host).transpose()?;
        self.going = None;
        self.answering = None;
        Some(end.map_err(|error| error.on((*self.session).clone())))
    }

    /// Waits for the end of the run. Other runs come on meanwhile.
    ///
    /// # Errors
    /// As [`try_finish`](Self::try_finish).
    pub fn finish(mut self, client: &mut HarnessClient) -> Result<RunResult, Error> {
        loop {
            if let Some(end) = self.try_finish(client) {
                return end;
            }
            if let Some(going) = &mut self.going {
                let (deadline, calls) = (going.deadline, going.waits_for());
                Driven::queued(client, &self.events).turn(deadline, &calls, &mut going.progress)?;
            }
        }
    }
}

impl fmt::Debug for PendingRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRun")
            .field("session", &self.session)
            .field("ended", &self.going.is_none())
            .finish_non_exhaustive()
    }
}

/// The sessions that a started run is on. Each is busy as long as the handle of its run lives.
#[derive(Debug, Default)]
pub(super) struct BusySessions(Vec<Weak<JsonString>>);

impl BusySessions {
    pub(super) fn contains(&mut self, session: &JsonString) -> bool {
        self.0.retain(|busy| busy.strong_count() > 0);
        self.0.iter().filter_map(Weak::upgrade).any(|busy| *busy == *session)
    }

    /// The session is busy until this is dropped.
    pub(super) fn occupy(&mut self, session: &JsonString) -> Arc<JsonString> {
        let session = Arc::new(session.clone());
        self.0.push(Arc::downgrade(&session));
        session
    }
}

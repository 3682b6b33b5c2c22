//! Runs on a shared client.

use std::format;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use super::SharedClient;
use super::core::Core;
use super::subscription::SharedSubscription;
use super::wait::Condition;
use crate::client::{Filter, Policy, RuntimeRequest};
use crate::json::JsonString;
use crate::peer::{CallId, Reply};
use crate::stdio::error::{Error, ErrorKind};
use crate::stdio::harness::new_session_id;
use crate::stdio::harness_client::PendingCall;
use crate::stdio::options::CallOptions;
use crate::stdio::run::{self, Answer, FINISH, HELD, Host, Input, Progress, RunOptions, RunResult};
use crate::wire::{Decode, Method};

impl SharedClient {
    /// A new session, with an id of random bits. The runtime creates it with the first prompt.
    #[must_use]
    pub fn start_session(&self) -> SharedSession {
        self.session(new_session_id())
    }

    /// The session with this id; the runtime creates it with the first prompt, if it is not open yet.
    #[must_use]
    pub fn session(&self, id: impl Into<JsonString>) -> SharedSession {
        SharedSession { client: self.clone(), id: id.into() }
    }

    /// Restores a stored session. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn resume_session(&self, id: impl Into<JsonString>) -> Result<SharedSession, Error> {
        let session = self.session(id);
        self.resume(session.id.clone())?;
        Ok(session)
    }

    /// Runs one prompt on a new session.
    ///
    /// # Errors
    /// As [`SharedSession::run`].
    pub fn run(&self, input: impl Into<Input>, options: RunOptions<'_>) -> Result<RunResult, Error> {
        self.start_session().run(input, options)
    }
}

/// One session of a runtime that threads share. It keeps the client alive.
#[derive(Debug, Clone)]
pub struct SharedSession {
    client: SharedClient,
    id: JsonString,
}

impl SharedSession {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &JsonString {
        &self.id
    }

    /// As [`Session::run`](crate::stdio::Session::run), on the thread that calls, callbacks included. There is one run
    /// on a session at a time: another waits for its turn, and its timeout covers that.
    ///
    /// # Errors
    /// As there.
    pub fn run(&self, input: impl Into<Input>, options: RunOptions<'_>) -> Result<RunResult, Error> {
        self.take_turn(&options)
            .and_then(|turn| turn.run(input.into(), options))
            .map_err(|error| error.on(self.id.clone()))
    }

    /// Waits until there is no other run on the session.
    fn take_turn(&self, options: &RunOptions<'_>) -> Result<Turn<'_>, Error> {
        let core = self.client.core();
        let now = core.with(|state| state.now());
        let deadline = options.timeout.and_then(|timeout| now.checked_add(timeout));
        let token = options.token_set();
        let turn = core.wait(&Condition::Free(self.id.clone()), deadline, token, |state| {
            if let Some(token) = token.filter(|token| token.is_aborted()) {
                return Some(Err(Error::new(FINISH, ErrorKind::Aborted(token.reason()))));
            }
            if state.client.connection().has_ended() {
                return Some(Err(state.client.closed(FINISH)));
            }
            state.running.insert(self.id.clone()).then_some(Ok(()))
        });
        match turn {
            Some(turn) => turn.map(|()| Turn { session: self, deadline }),
            None => Err(Error::new(FINISH, ErrorKind::TimedOut { after: options.timeout })),
        }
    }

    /// Waits until it is idle and its sub-agents have finished. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn wait(&self) -> Result<(), Error> {
        self.client.wait(self.id.clone())
    }

    /// The directory that it works in. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn working_directory(&self) -> Result<JsonString, Error> {
        self.client.working_directory(self.id.clone())
    }

    /// Moves it to another directory, and returns its absolute path. From 0.2.1.
    ///
    /// # Errors
    /// Those of any call.
    pub fn set_working_directory(&self, path: impl Into<JsonString>) -> Result<JsonString, Error> {
        self.client.set_working_directory(self.id.clone(), path)
    }
}

/// The right to run on a session, until it is dropped.
struct Turn<'s> {
    session: &'s SharedSession,
    /// When the time of the run is up, that before its turn included.
    deadline: Option<Duration>,
}

impl Turn<'_> {
    fn run(&self, input: Input, options: RunOptions<'_>) -> Result<RunResult, Error> {
        let SharedSession { client, id } = self.session;
        let core = &client.0.core;
        // Before the prompt is sent, so that nothing is missed.
        let filter = Filter::all().session_tree(id.clone());
        let events = SharedSubscription::new(core, format!("a run on {id:?}"), filter, Policy::Lossless);
        let (run, answering) = core.with(|state| {
            let answering = options.answers().then(|| state.client.answering());
            state.client.run_on(id).map(|run| (run, answering))
        })?;
        let progress = Progress::new(run, options);
        run::drive(&mut Waited { core, events, answering }, id, input, progress, self.deadline)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.session.client.core().with(|state| state.running.remove(&self.session.id));
    }
}

/// A client that another thread pumps.
struct Waited<'c> {
    core: &'c Arc<Core>,
    events: SharedSubscription,
    /// Held while the run answers requests of the runtime.
    answering: Option<Arc<()>>,
}

/// A request that has come too late to be answered is refused.
impl Drop for Waited<'_> {
    fn drop(&mut self) {
        if self.answering.take().is_some() {
            let loan = self.core.with(|state| {
                state.client.choose_requests();
                state.lend_writer()
            });
            self.core.write(loan);
        }
    }
}

impl Host for Waited<'_> {
    fn now(&self) -> Duration {
        self.core.with(|state| state.now())
    }

    fn start<M: Method>(&mut self, params: &M::Params, options: &CallOptions) -> Result<PendingCall<M::Result>, Error> {
        self.core.start_call(M::NAME, params, options)
    }

    fn take<R: for<'a> Decode<'a>>(&mut self, call: &PendingCall<R>) -> Option<Result<R, Error>> {
        self.core.with(|state| state.client.try_finish(call))
    }

    fn next_request(&mut self) -> Option<RuntimeRequest> {
        self.core.with(|state| state.client.next_request())
    }

    fn answer(&mut self, reply: Reply, answer: &Answer) {
        let loan = self.core.with(|state| {
            state.client.queue_answer_of_run(reply, answer);
            state.lend_writer()
        });
        self.core.write(loan);
    }

    fn note_held(&mut self, held: usize) {
        self.core.with(|state| state.connection().fail_over_backlog(HELD, held));
    }

    fn is_over(&mut self) -> bool {
        let id = self.events.id();
        // While the ladder is walked nothing more comes, though calls may wait.
        self.core.is_closed()
            || self.core.with(|state| {
                let machine = state.client.machine();
                state.client.connection().has_ended()
                    && machine.pending() == 0
                    && !id.is_some_and(|id| machine.has_delivery(id))
            })
    }

    fn closed(&mut self, attempted: &'static str) -> Error {
        self.core.with(|state| state.client.closed(attempted))
    }

    fn turn(
        &mut self,
        until: Option<Duration>,
        calls: &[Option<CallId>],
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let Some(id) = self.events.id() else { return Ok(()) };
        let calls: Vec<CallId> = calls.iter().flatten().copied().collect();
        let answers = self.answering.is_some();
        let condition = Condition::Run(id, calls, answers);
        let token = progress.token().cloned();
        self.core.with(|state| state.hungry += 1);
        self.core.wait(&condition, until, token.as_ref(), |state| {
            let found = condition.holds(state) || token.as_ref().is_some_and(|token| token.is_aborted());
            found.then_some(())
        });
        self.core.with(|state| state.hungry -= 1);
        while let Some(delivery) = self.events.try_next() {
            if let Some(notification) = delivery.notification() {
                progress.observe_own(&notification);
            }
            // The end of a run is told at once; what comes behind it is another's.
            if progress.is_finished() {
                break;
            }
        }
        Ok(())
    }
}

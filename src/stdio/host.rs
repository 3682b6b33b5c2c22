//! What the author of a runtime writes ([`AgentHost`], [`Agent`]) and what is given to it ([`Sink`],
//! [`PromptResponder`]).

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{SystemTime, UNIX_EPOCH};
use std::vec::Vec;
use std::{fmt, thread_local};

use serde::Serialize;

use super::Waker;
use super::ask::Asked;
use super::serve::ServeOptions;
use crate::frame::EncodeError;
use crate::json::{Json, JsonString};
use crate::peer::SendError;
use crate::server::{Finished, NewEvent, Opening, Phase, PromptReply, Refusal, Server, Stamp};
use crate::wire::InitializeParams;

/// Where counted times begin, in milliseconds: 2024-01-01.
const COUNTED_FROM: u64 = 1_704_067_200_000;

/// What a thread keeps of the room for the data of its events.
const KEPT_SCRATCH: usize = 64 << 10;

thread_local! {
    /// Where the data of an event is written before anything is locked.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Makes the agents of a runtime; handed to [`serve`](super::serve::serve).
///
/// Plain synchronous code. Its methods are called on threads of their own, so each may take its time (only where the
/// system refuses the first thread does the one that moves the bytes call them); one that panics has its request answered with an error.
pub trait AgentHost: Send + Sync + 'static {
    /// What lives in one session.
    type Agent: Agent;

    /// Whether sessions could be opened with these params: the readiness barrier of `initialize`. Accepts everything,
    /// unless it is written.
    ///
    /// # Errors
    /// What the client is told. Any route set before stays in force.
    fn route(&self, route: &InitializeParams) -> Result<(), Refusal> {
        let _ = route;
        Ok(())
    }

    /// Opens a session. It may tell its first events before it returns.
    ///
    /// # Errors
    /// What each request that waits for the session is told; the next one tries again. The texts of the official
    /// runtime are [`Refusal::session_exists`] and [`Refusal::session_not_found`].
    fn open(&self, how: Opening, route: &InitializeParams, sink: Sink) -> Result<Self::Agent, Refusal>;
}

/// What lives in one session. Its methods are called one after the other, in the order of the requests; those of
/// other sessions at the same time.
pub trait Agent: Send + 'static {
    /// Takes a message, and answers through `reply`: what happens before that comes before the answer. The prompts
    /// that follow wait until this returns, so an agent that wants to see them in time hands the work to a thread of
    /// its own; a simple one just does it here.
    fn prompt(&mut self, content_blocks: Json<'_>, reply: PromptResponder);

    /// The absolute path of the directory where the session works, after a change if there is one. `change` is not
    /// empty; relative to where the session is.
    ///
    /// # Errors
    /// What the client is told, such as [`Refusal::no_directory`].
    fn working_directory(&mut self, change: Option<&JsonString>) -> Result<JsonString, Refusal>;

    /// Ends the session, whatever it does; nothing that it tells from now on is sent. What runs on threads of its own
    /// should be over when this returns.
    ///
    /// # Errors
    /// What `shutdown` is answered with.
    fn release(self) -> Result<(), Refusal>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// What a [`Sink`] does when the client reads so slowly that too much waits to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Waits until there is room.
    Block,
    /// Fails with [`SinkError::Full`].
    Fail,
}

/// Where a session tells what happens in it. Any thread may use it, and clones of it: things are sent in the order in
/// which they were told.
#[derive(Clone)]
pub struct Sink {
    pub(super) shared: Arc<Shared>,
    session: JsonString,
}

impl Sink {
    pub(super) fn new(shared: &Arc<Shared>, session: &JsonString) -> Self {
        Self { shared: shared.clone(), session: session.clone() }
    }

    /// The session that it is about.
    #[must_use]
    pub fn session(&self) -> &JsonString {
        &self.session
    }

    /// The same for another session, such as that of a sub-agent.
    #[must_use]
    pub fn for_session(&self, session: &JsonString) -> Self {
        Self::new(&self.shared, session)
    }

    /// Tells an event: numbers it, stamps it with the time, and sends it, unless the server is shutting down; then it
    /// is only numbered, for the session's log.
    ///
    /// # Errors
    /// [`SinkError::Full`] if [`WhenFull::Fail`] was chosen, or on the thread that moves the bytes (which runs agents where
    /// no other thread is to be had); [`SinkError::Encode`] where the data has no JSON form.
    pub fn session_event<D: Serialize + ?Sized>(&self, event: &NewEvent<'_, D>) -> Result<Stamp, SinkError> {
        // Before anything is locked: it is code of others, which may take its time, panic, or tell events itself.
        let mut data = SCRATCH.try_with(Cell::take).unwrap_or_default();
        data.clear();
        serde_json::to_writer(&mut data, event.data).map_err(|error| SinkError::Encode(error.into()))?;
        let told = self.tell(&event.with_data(&data[..]));
        if data.capacity() <= KEPT_SCRATCH {
            let _ = SCRATCH.try_with(|scratch| scratch.set(data));
        }
        told
    }

    /// The same for data that has been written as JSON.
    pub(super) fn tell(&self, event: &NewEvent<'_, [u8]>) -> Result<Stamp, SinkError> {
        let mut hub = self.shared.lock();
        loop {
            hub = match (self.tell_now(hub, event), self.shared.when_full) {
                (Ok(told), _) => return told,
                (Err(_), WhenFull::Fail) => return Err(SinkError::Full),
                (Err(_), WhenFull::Block) if self.shared.moves_the_bytes() => return Err(SinkError::Full),
                (Err(hub), WhenFull::Block) => self.shared.room.wait(hub).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Tells it. Without room for it the lock comes back, with a note that somebody waits.
    pub(super) fn tell_now<'h>(
        &self,
        mut hub: MutexGuard<'h, Hub>,
        event: &NewEvent<'_, [u8]>,
    ) -> Result<Result<Stamp, SinkError>, MutexGuard<'h, Hub>> {
        if !hub.has_room(self.shared.limit) {
            hub.pushed_back = true;
            return Err(hub);
        }
        let time = self.shared.time(&hub.server, &self.session);
        let told = hub.server.written_event(&self.session, event, time);
        self.shared.wake(hub);
        Ok(told.map_err(|error| match error {
            SendError::Encode(error) => SinkError::Encode(error),
            // It has no token, and a closed output is no error of the session's.
            SendError::Aborted(_) | SendError::Closed | SendError::OtherConnection => SinkError::Full,
        }))
    }

    /// As [`Server::number_from`].
    pub fn number_from(&self, seq: u64) {
        self.shared.act(|server| server.number_from(&self.session, seq));
    }

    /// Tells whether the session runs. To say the same twice does nothing.
    pub fn set_running(&self, running: bool) {
        self.shared.act(|server| server.set_running(&self.session, running));
    }

    /// Tells that the session has a new sub-agent; `session/wait` waits for its end too.
    pub fn subagent_started(&self, child: &JsonString) {
        self.shared.act(|server| server.subagent_started(&self.session, child));
    }

    /// Tells that a sub-agent has ended.
    pub fn subagent_finished(&self, child: &JsonString, end: &Finished<'_>) {
        self.shared.act(|server| server.subagent_finished(&self.session, child, end));
    }

    /// Unix time in milliseconds, as the next event would have it.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.shared.time(&self.shared.lock().server, &self.session)
    }

    pub(super) fn is_deterministic(&self) -> bool {
        self.shared.deterministic
    }

    /// Whether the server is shutting down, so that nothing that is told will be sent.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.shared.lock().is_closing()
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Why a [`Sink`] did not take something. Nothing was sent, and no number was used up.
#[derive(Debug)]
#[non_exhaustive]
pub enum SinkError {
    /// Too much waits to be written.
    Full,
    /// The data has no JSON form.
    Encode(EncodeError),
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("cannot tell the event: the client reads too slowly"),
            Self::Encode(_) => f.write_str("cannot tell the event"),
        }
    }
}

impl std::error::Error for SinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Encode(error) => Some(error),
            Self::Full => None,
        }
    }
}

/// The right to answer one prompt, from any thread. Dropped, it answers with an error.
pub struct PromptResponder {
    shared: Arc<Shared>,
    /// There until it has answered.
    reply: Option<PromptReply>,
}

impl PromptResponder {
    pub(super) fn new(shared: &Arc<Shared>, reply: PromptReply) -> Self {
        Self { shared: shared.clone(), reply: Some(reply) }
    }

    /// The message is in the inbox, under this id.
    pub fn accept(mut self, message_id: impl Into<JsonString>) {
        self.answer(Ok(message_id.into()));
    }

    /// It is not.
    pub fn refuse(mut self, refusal: impl Into<Refusal>) {
        self.answer(Err(refusal.into()));
    }

    fn answer(&mut self, outcome: Result<JsonString, Refusal>) {
        if let Some(reply) = self.reply.take() {
            self.shared.act(|server| server.prompted(reply, outcome));
        }
    }
}

impl Drop for PromptResponder {
    fn drop(&mut self) {
        self.answer(Err(Refusal::new(if std::thread::panicking() {
            "the agent panicked while it took the prompt"
        } else {
            "the agent dropped the prompt without an answer"
        })));
    }
}

impl fmt::Debug for PromptResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptResponder").field("reply", &self.reply).finish_non_exhaustive()
    }
}

/// What the loop and the agents share.
pub(super) struct Shared {
    hub: Mutex<Hub>,
    /// Told when there is room in the output again, or will not matter any more.
    room: Condvar,
    waker: Waker,
    /// Bytes of output that may wait.
    limit: usize,
    when_full: WhenFull,
    /// Times are counted, not read from the clock.
    deterministic: bool,
    /// The thread that moves the bytes. Where no other is to be had it runs agents too, and must not wait for itself.
    mover: ThreadId,
}

pub(super) struct Hub {
    pub(super) server: Server,
    /// The loop waits or is about to, and does not know of what was done since it looked. Whoever does something
    /// clears it and wakes the loop; so between two looks of the loop there is one wake-up at most, and never none.
    pub(super) asleep: bool,
    /// Somebody waits for room. Whoever finds that there is room clears it and tells them all; those for whom it was not
    /// enough set it again.
    pub(super) pushed_back: bool,
    /// Who waits for answers of the client.
    pub(super) asked: Asked,
}

impl Hub {
    pub(super) fn is_closing(&self) -> bool {
        !matches!(self.server.phase(), Phase::Serving | Phase::Draining)
    }

    fn has_room(&mut self, limit: usize) -> bool {
        self.is_closing() || self.server.backlog() <= limit
    }
}

impl Shared {
    pub(super) fn new(server: Server, waker: Waker, options: &ServeOptions) -> Self {
        let hub = Hub { server, asleep: false, pushed_back: false, asked: Asked::default() };
        Self {
            hub: Mutex::new(hub),
            room: Condvar::new(),
            waker,
            limit: options.max_backlog,
            when_full: options.when_full,
            deterministic: options.deterministic,
            mover: thread::current().id(),
        }
    }

    fn time(&self, server: &Server, session: &JsonString) -> u64 {
        if self.deterministic { COUNTED_FROM + server.next_seq(session) } else { now() }
    }

    /// No code of others runs under the lock, so a panic leaves nothing half done.
    pub(super) fn lock(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the server, and lets the loop see it.
    pub(super) fn act<R>(&self, act: impl FnOnce(&mut Server) -> R) -> R {
        let mut hub = self.lock();
        let done = act(&mut hub.server);
        self.wake(hub);
        done
    }

    /// Gives the lock back, and lets the loop see what was done. Woken before, it would only wait for the lock.
    pub(super) fn wake(&self, mut hub: MutexGuard<'_, Hub>) {
        let asleep = core::mem::take(&mut hub.asleep);
        drop(hub);
        if asleep {
            self.waker.wake();
        }
    }

    /// Whether this is the thread that nobody must wait on.
    pub(super) fn moves_the_bytes(&self) -> bool {
        thread::current().id() == self.mover
    }

    /// Lets those go on who wait for room, if there is enough for more than the next event.
    pub(super) fn tell_room(&self, hub: &mut Hub) {
        if hub.pushed_back && hub.has_room(self.limit / 2) {
            hub.pushed_back = false;
            self.room.notify_all();
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

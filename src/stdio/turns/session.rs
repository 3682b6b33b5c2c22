//! One session: its inbox, its directory, and the turns that it takes.

use std::boxed::Box;
use std::collections::VecDeque;
use std::format;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::string::ToString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::vec::Vec;

use serde::Serialize;

use super::answer::{Answer, Failure};
use super::directory::{absolute, quoted};
use super::event::{DirectoryChange, PlainSource, Reason, Spliced, TurnEnd, TurnStart};
use super::ids::Ids;
use super::{Keep, Message, NewSession, TurnAgent, TurnHost, run, subagent};
use crate::json::{Json, JsonBuf, JsonString};
use crate::server::{NewEvent, Refusal};
use crate::stdio::host::{Agent, PromptResponder, Sink};
use crate::stdio::lanes::Lanes;
use crate::stdio::panic;
use crate::wire::InitializeParams;

/// The threads on which turns are taken; one lane a session.
pub(super) type Pool = Arc<Lanes<JsonString>>;

/// Queues of the inbox.
const NEXT_TURN: &str = "next-turn";
const NEXT_STEP: &str = "next-step";

/// One session of [`Turns`](super::Turns).
pub struct TurnSession {
    host: Arc<dyn TurnHost>,
    shared: Arc<Shared>,
}

/// What the session, its turns and its sub-agents share.
///
/// Of two locks, `agent` comes before `state`, and a parent's `state` is never taken while a child's is held.
pub(super) struct Shared {
    pub(super) route: InitializeParams,
    pub(super) ids: Ids,
    pub(super) sink: Sink,
    pub(super) pool: Pool,
    /// Only the one turn that runs takes it.
    pub(super) agent: Mutex<Box<dyn TurnAgent>>,
    state: Mutex<State>,
    /// Told when the session is released, and when it comes to rest.
    changed: Condvar,
    /// Of a sub-agent: whose it is.
    pub(super) parent: Option<Parent>,
}

/// Where the end of a sub-agent is told.
pub(super) struct Parent {
    pub(super) session: Weak<Shared>,
    pub(super) provider: &'static str,
    /// How long the parent may take to end its turn before the sub-agent begins.
    pub(super) head_start: Duration,
}

pub(super) struct State {
    log: Log,
    /// Prompts that wait for a turn of their own.
    inbox: VecDeque<Message>,
    /// Notes that wait for the next step.
    notes: VecDeque<Message>,
    /// A turn is taken or will be; the inbox is looked at again before this ends.
    running: bool,
    releasing: bool,
    /// Absolute, without `.` and `..`.
    cwd: PathBuf,
    /// Where the session began; it goes back there when `cwd` has vanished.
    home: PathBuf,
    /// The number of the last turn.
    turn: u64,
    /// Tool calls so far.
    calls: u64,
    /// Sub-agents that have not ended.
    children: Vec<Arc<Shared>>,
    /// How the last turn ended.
    last: Last,
}

/// What is known of a turn that has ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Last {
    pub(super) reason: Option<Reason>,
    /// The last answer in it.
    pub(super) answer: Option<Answer>,
}

/// Tells the events of one session, and keeps them.
struct Log {
    sink: Sink,
    /// `None` once it has panicked.
    keep: Option<Keep>,
    /// A panic of `keep` that no turn has ended with.
    failure: Option<Failure>,
    /// The number of the last event.
    last: u64,
}

impl Log {
    fn tell<D: Serialize + ?Sized>(&mut self, event: &NewEvent<'_, D>) -> u64 {
        let Ok(data) = JsonBuf::from_serialize(event.data) else {
            // The agent's data has no JSON form.
            return self.last;
        };
        // It fails only where a client that does not read is to be let down.
        if let Ok(stamp) = self.sink.tell(&event.with_data(data.as_json().get().as_bytes())) {
            self.last = stamp.seq;
            if self.keep.is_some()
                && let Ok(text) = serde_json::to_string(&event.with_data(&data).stamped(stamp))
            {
                self.keep(&text);
            }
        }
        self.last
    }

    /// Runs the author's code; after a panic, which the panic hook has told on stderr, nothing more is kept.
    fn keep(&mut self, text: &str) {
        let kept = catch_unwind(AssertUnwindSafe(|| self.keep.as_mut().map(|keep| keep(text))));
        if let Err(panic) = kept {
            self.keep = None;
            let said = panic::text(&*panic).unwrap_or("no message");
            self.failure = Some(Failure::new(format!("the log of the session panicked: {said}"), "UNKNOWN"));
        }
    }
}

impl TurnSession {
    pub(super) fn new(
        host: &Arc<dyn TurnHost>,
        new: NewSession,
        route: &InitializeParams,
        sink: Sink,
        pool: &Pool,
    ) -> Self {
        Self { host: host.clone(), shared: Arc::new(Shared::new(new, route, sink, pool, None)) }
    }
}

impl core::fmt::Debug for TurnSession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TurnSession").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Agent for TurnSession {
    fn prompt(&mut self, content_blocks: Json<'_>, reply: PromptResponder) {
        let taken = match self.host.take_in(content_blocks) {
            Ok(taken) => taken,
            Err(refusal) => return reply.refuse(refusal),
        };
        let content = taken.as_ref().map_or(content_blocks, JsonBuf::as_json);
        let message = Message::prompt(self.shared.ids.of_inbox(), content);
        let id = message.id().to_string();
        let mut state = self.shared.lock();
        let begun = state.receive(message, false);
        // Nothing of the session's may come between.
        reply.accept(id);
        drop(state);
        if let Some(messages) = begun {
            self.shared.schedule(messages);
        }
    }

    fn working_directory(&mut self, change: Option<&JsonString>) -> Result<JsonString, Refusal> {
        let mut state = self.shared.lock();
        state.leave_vanished_directory(&self.shared.ids);
        if let Some(path) = change {
            let to = absolute(&state.cwd.join(&*path.as_json_str().to_string_lossy()));
            if !to.is_dir() {
                return Err(Refusal::no_directory(path));
            }
            if to != state.cwd {
                let (old, new) = (quoted(&state.cwd), quoted(&to));
                let note = format!("The working directory changed from {old} to {new}.");
                state.change_directory(&self.shared.ids, to, &note);
            }
        }
        Ok(state.cwd.to_string_lossy().as_ref().into())
    }

    fn release(self) -> Result<(), Refusal> {
        self.shared.release();
        Ok(())
    }
}

impl Shared {
    pub(super) fn new(
        new: NewSession,
        route: &InitializeParams,
        sink: Sink,
        pool: &Pool,
        parent: Option<Parent>,
    ) -> Self {
        let plain = |text: &JsonString| text.as_json_str().to_string_lossy().into_owned();
        let home = absolute(Path::new(&plain(&route.cwd)));
        let state = State {
            cwd: new.cwd.as_ref().map_or_else(|| home.clone(), |cwd| PathBuf::from(plain(cwd))),
            home,
            log: Log { sink: sink.clone(), keep: new.keep, failure: None, last: 0 },
            inbox: VecDeque::new(),
            notes: VecDeque::new(),
            running: false,
            releasing: false,
            turn: new.turns,
            calls: 0,
            children: Vec::new(),
            last: Last::default(),
        };
        Self {
            route: route.clone(),
            ids: Ids::new(sink.session(), sink.is_deterministic()),
            sink,
            pool: pool.clone(),
            agent: Mutex::new(new.agent),
            state: Mutex::new(state),
            changed: Condvar::new(),
            parent,
        }
    }

    /// No code of others runs under the lock but a log's, whose panics are caught.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits that long; `false` as soon as the session is released.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let state = self.lock();
        let (state, _) =
            self.changed.wait_timeout_while(state, time, |s| !s.releasing).unwrap_or_else(PoisonError::into_inner);
        !state.releasing
    }

    /// Waits until no turn runs, or that long.
    pub(super) fn wait_for_rest(&self, time: Duration) {
        let state = self.lock();
        drop(self.changed.wait_timeout_while(state, time, |s| s.running && !s.releasing));
    }

    /// Has a turn taken, on a thread of its own; it has begun.
    pub(super) fn schedule(self: &Arc<Self>, messages: Vec<Message>) {
        let shared = self.clone();
        let lane = self.sink.session().clone();
        if self.pool.run(lane, move || run::turn(&shared, messages)).is_err() {
            let failure = Failure::new("cannot start a thread", "UNKNOWN");
            while self.end_turn(Reason::Error { error: failure.clone() }, None).is_some() {}
        }
    }

    /// Ends the turn. Returns the messages of the next one, which has begun, if there is one.
    pub(super) fn end_turn(self: &Arc<Self>, reason: Reason, answer: Option<Answer>) -> Option<Vec<Message>> {
        let mut state = self.lock();
        let turn = state.turn;
        state.tell(&NewEvent::new("turn/end", &TurnEnd { turn, reason: &reason }));
        // One at the end itself comes too late for this turn, and is not the next one's.
        state.log.failure = None;
        state.last = Last { reason: Some(reason), answer };
        let next = if state.releasing { None } else { state.begin_turn() };
        if next.is_none() {
            state.running = false;
            state.log.sink.set_running(false);
            let last = state.last.clone();
            drop(state);
            subagent::settle(self, &last);
            self.changed.notify_all();
        }
        next
    }

    /// Ends what runs, here and in the sub-agents, and waits for it.
    fn release(&self) {
        let mut state = self.lock();
        state.releasing = true;
        let children = core::mem::take(&mut state.children);
        drop(state);
        self.changed.notify_all();
        children.iter().for_each(|child| child.release());
        let state = self.lock();
        drop(self.changed.wait_while(state, |state| state.running));
    }
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").field("session", self.sink.session()).finish_non_exhaustive()
    }
}

impl State {
    /// Tells an event; returns its number.
    pub(super) fn tell<D: Serialize + ?Sized>(&mut self, event: &NewEvent<'_, D>) -> u64 {
        self.log.tell(event)
    }

    /// What the turn has to end with, if its events could not be kept.
    pub(super) fn take_log_failure(&mut self) -> Option<Failure> {
        self.log.failure.take()
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.log.last
    }

    pub(super) fn is_releasing(&self) -> bool {
        self.releasing
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    pub(super) fn next_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Takes note of a sub-agent; `false` if the session is being released.
    pub(super) fn adopt(&mut self, child: &Arc<Shared>) -> bool {
        if !self.releasing {
            self.children.push(child.clone());
        }
        !self.releasing
    }

    pub(super) fn let_go(&mut self, child: &Arc<Shared>) {
        self.children.retain(|other| !Arc::ptr_eq(other, child));
    }

    /// A message comes in: for the next step if a turn runs and it `can_join`, for a turn of its own otherwise. Returns
    /// the messages of the turn that begins with it, if one does.
    pub(super) fn receive(&mut self, message: Message, can_join: bool) -> Option<Vec<Message>> {
        if self.running && can_join {
            self.note(message);
            return None;
        }
        let spliced = Spliced::inserted(NEXT_TURN, self.inbox.len(), message.json());
        self.log.tell(&NewEvent::new("agent/inbox/spliced", &spliced));
        self.inbox.push_back(message);
        if self.running || self.releasing {
            return None;
        }
        self.running = true;
        self.log.sink.set_running(true);
        self.begin_turn()
    }

    fn note(&mut self, message: Message) {
        let spliced = Spliced::inserted(NEXT_STEP, self.notes.len(), message.json());
        self.log.tell(&NewEvent::new("agent/inbox/spliced", &spliced));
        self.notes.push_back(message);
    }

    /// Begins the next turn, if a message waits for one: the messages of its first step.
    fn begin_turn(&mut self) -> Option<Vec<Message>> {
        let first = self.inbox.pop_front()?;
        self.turn += 1;
        self.log.tell(&NewEvent::new("turn/start", &TurnStart { turn: self.turn }));
        let mut messages = self.take_notes();
        self.log.tell(&NewEvent::new("agent/inbox/spliced", &Spliced::removed(NEXT_TURN, 1)));
        messages.push(first);
        Some(messages)
    }

    /// The notes that wait for the next step.
    pub(super) fn take_notes(&mut self) -> Vec<Message> {
        if !self.notes.is_empty() {
            let spliced = Spliced::removed(NEXT_STEP, self.notes.len());
            self.log.tell(&NewEvent::new("agent/inbox/spliced", &spliced));
        }
        self.notes.drain(..).collect()
    }

    fn leave_vanished_directory(&mut self, ids: &Ids) {
        if self.cwd != self.home && !self.cwd.is_dir() {
            let (gone, home) = (quoted(&self.cwd), quoted(&self.home));
            let note = format!("The working directory {gone} is unavailable. The working directory is now {home}.");
            self.change_directory(ids, self.home.clone(), &note);
        }
    }

    fn change_directory(&mut self, ids: &Ids, to: PathBuf, note: &str) {
        let change = DirectoryChange { cwd: &to.to_string_lossy() };
        self.log.tell(&NewEvent::new("working-directory/change", &change));
        self.cwd = to;
        self.note(Message::note(ids.of_inbox(), &[note], &PlainSource { kind: "working-directory" }));
    }
}

//! One session: its inbox, its directory, and the thread that takes its turns while there are any.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::Refusal;
use dsh_wire::stdio::{Agent, PromptResponder};
use dsh_wire::wire::InitializeParams;

use super::event::{self, Message};
use super::store::{Log, Past};
use super::turn;
use super::value::object;

pub(crate) struct Session {
    shared: Arc<Shared>,
    /// The thread of the last turns.
    worker: Option<JoinHandle<()>>,
}

/// What the session and its thread share.
pub(super) struct Shared {
    pub(super) route: InitializeParams,
    state: Mutex<State>,
    /// Told when the session is released.
    released: Condvar,
}

pub(super) struct State {
    pub(super) log: Log,
    /// Prompts that wait for a turn of their own.
    inbox: VecDeque<Message>,
    /// Notes that wait for the next step.
    notes: VecDeque<Message>,
    /// A thread takes turns, and will look at the inbox again before it stops.
    running: bool,
    pub(super) releasing: bool,
    /// Absolute, without `.` and `..`.
    cwd: PathBuf,
    /// Where the session began; it goes back there when `cwd` has vanished.
    home: PathBuf,
    /// The number of the last turn.
    pub(super) turn: u64,
    /// What has been told once.
    pub(super) told: Told,
    /// The type of a block in the conversation that no model can be given; no call succeeds any more.
    pub(super) unsupported: Option<String>,
    /// How often an HTTP error was played, by prompt and step.
    pub(super) failures: BTreeMap<(JsonString, usize), u32>,
    /// Model calls so far.
    pub(super) calls: u32,
}

/// Which of the events that come once have come.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) system: bool,
    pub(super) title: bool,
    /// The directory that the last context note named.
    pub(super) context: Option<String>,
    /// Why the next request has a header, if it has one.
    pub(super) header: Option<&'static str>,
}

impl Session {
    pub(super) fn new(route: &InitializeParams, log: Log, past: Option<Past>) -> Self {
        let header = if past.as_ref().is_some_and(|past| past.has_header) { "resume" } else { "initial" };
        let past = past.unwrap_or_default();
        let home = absolute(Path::new(&*route.cwd.as_json_str().to_string_lossy()));
        let plain = |text: JsonString| text.as_json_str().to_string_lossy().into_owned();
        let state = State {
            log,
            inbox: VecDeque::new(),
            notes: VecDeque::new(),
            running: false,
            releasing: false,
            cwd: past.cwd.map_or_else(|| home.clone(), |cwd| PathBuf::from(plain(cwd))),
            home,
            turn: past.turn,
            told: Told {
                system: past.has_system,
                title: past.has_title,
                context: past.context.map(plain),
                header: Some(header),
            },
            unsupported: None,
            failures: BTreeMap::new(),
            calls: 0,
        };
        let shared = Shared { route: route.clone(), state: Mutex::new(state), released: Condvar::new() };
        Self { shared: Arc::new(shared), worker: None }
    }
}

impl Agent for Session {
    fn prompt(&mut self, content_blocks: Json<'_>, reply: PromptResponder) {
        let message = event::prompt(content_blocks);
        let id = message.id.clone();
        let mut state = self.shared.lock();
        state.enqueue(message);
        if state.running {
            return reply.accept(&*id);
        }
        state.running = true;
        state.log.sink.set_running(true);
        let first = state.begin_turn().unwrap_or_default();
        reply.accept(&*id);
        drop(state);
        let shared = self.shared.clone();
        let worker = thread::Builder::new().name("dsh-wire turn".into()).spawn(move || turn::run(&shared, first));
        match worker {
            Ok(worker) => self.worker = Some(worker),
            Err(error) => self.shared.lock().give_up(&format!("cannot start a thread: {error}")),
        }
    }

    fn working_directory(&mut self, change: Option<&JsonString>) -> Result<JsonString, Refusal> {
        let mut state = self.shared.lock();
        state.leave_vanished_directory();
        if let Some(path) = change {
            let to = absolute(&state.cwd.join(&*path.as_json_str().to_string_lossy()));
            if !to.is_dir() {
                return Err(Refusal::no_directory(path));
            }
            if to != state.cwd {
                let (old, new) = (quoted(&state.cwd), quoted(&to));
                state.change_directory(to, &format!("The working directory changed from {old} to {new}."));
            }
        }
        Ok(state.cwd.to_string_lossy().as_ref().into())
    }

    fn release(mut self) -> Result<(), Refusal> {
        self.shared.lock().releasing = true;
        self.shared.released.notify_all();
        match self.worker.take().map(JoinHandle::join) {
            Some(Err(_)) => Err("a turn of the session panicked".into()),
            _ => Ok(()),
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits that long; `false` as soon as the session is released.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .released
            .wait_timeout_while(state, time, |state| !state.releasing)
            .unwrap_or_else(PoisonError::into_inner);
        !state.releasing
    }
}

impl State {
    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn enqueue(&mut self, message: Message) {
        self.log.event("agent/inbox/spliced", &event::inserted("next-turn", self.inbox.len(), &message));
        self.inbox.push_back(message);
    }

    /// Begins the next turn, if a prompt waits for one: the messages of its first step.
    pub(super) fn begin_turn(&mut self) -> Option<Vec<Message>> {
        let prompt = self.inbox.pop_front()?;
        self.turn += 1;
        self.log.event("turn/start", &object! { "turn" => self.turn });
        let mut messages = self.take_notes();
        self.log.event("agent/inbox/spliced", &event::removed("next-turn", 1));
        messages.push(prompt);
        Some(messages)
    }

    /// The notes that wait for the next step.
    pub(super) fn take_notes(&mut self) -> Vec<Message> {
        if !self.notes.is_empty() {
            self.log.event("agent/inbox/spliced", &event::removed("next-step", self.notes.len()));
        }
        self.notes.drain(..).collect()
    }

    /// Ends the turn; the messages of the next one, if there is one.
    pub(super) fn end_turn(&mut self, reason: super::value::Value) -> Option<Vec<Message>> {
        self.log.event("turn/end", &event::turn_end(self.turn, reason));
        let next = if self.releasing { None } else { self.begin_turn() };
        if next.is_none() {
            self.running = false;
            self.log.sink.set_running(false);
        }
        next
    }

    fn give_up(&mut self, why: &str) {
        let reason = object! { "kind" => "error", "error" => event::failure(why, "UNKNOWN", None) };
        while self.end_turn(reason.clone()).is_some() {}
    }

    fn leave_vanished_directory(&mut self) {
        if self.cwd != self.home && !self.cwd.is_dir() {
            let (gone, home) = (quoted(&self.cwd), quoted(&self.home));
            let note = format!("The working directory {gone} is unavailable. The working directory is now {home}.");
            self.change_directory(self.home.clone(), &note);
        }
    }

    fn change_directory(&mut self, to: PathBuf, note: &str) {
        self.log.event("working-directory/change", &object! { "cwd" => &*to.to_string_lossy() });
        self.cwd = to;
        let note = event::note(note);
        self.log.event("agent/inbox/spliced", &event::inserted("next-step", self.notes.len(), &note));
        self.notes.push_back(note);
    }
}

/// A path in quotes, for people.
fn quoted(path: &Path) -> String {
    JsonString::from(&*path.to_string_lossy()).as_json_str().get().into()
}

/// The path from the root on, without `.` and `..`, by its text alone.
fn absolute(path: &Path) -> PathBuf {
    // It fails for the empty path only, and where the process has no directory.
    let from_root = std::path::absolute(path).or_else(|_| std::env::current_dir()).unwrap_or_else(|_| "/".into());
    let mut result = PathBuf::new();
    for component in from_root.components() {
        match component {
            Component::ParentDir => _ = result.pop(),
            Component::CurDir => {}
            component => result.push(component),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        let check = |path: &str, expected: &str| assert_eq!(absolute(Path::new(path)), Path::new(expected));
        check("/a/./b//c/..", "/a/b");
        check("/a/", "/a");
        check("/../..", "/");
        assert_eq!(absolute(Path::new("")), std::env::current_dir().unwrap());
    }
}

//! What an agent sees of the step that it is in, and can do in it.

use std::path::PathBuf;
use std::string::String;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

use serde::Serialize;

use super::answer::TurnError;
use super::event::StepId;
use super::session::Shared;
use super::{Message, SubAgent, subagent};
use crate::json::{JsonBuf, JsonString};
use crate::server::NewEvent;
use crate::stdio::{RequestError, Sink};
use crate::wire::InitializeParams;

/// One step of a turn: from the messages that are new to the agent to its answer.
#[derive(Debug)]
pub struct Step<'t> {
    shared: &'t Arc<Shared>,
    turn: u64,
    /// From 1 in each turn; 0 before the first.
    number: u64,
    messages: Vec<Message>,
    /// The numbers of the events that told them; empty before.
    seqs: Vec<u64>,
    /// The last message of the turn that a user wrote, or the one that began it.
    prompt: Option<Message>,
}

impl<'t> Step<'t> {
    pub(super) fn new(shared: &'t Arc<Shared>, turn: u64) -> Self {
        Self { shared, turn, number: 0, messages: Vec::new(), seqs: Vec::new(), prompt: None }
    }

    /// Begins the next step.
    pub(super) fn begin(&mut self, messages: Vec<Message>) {
        self.number += 1;
        self.messages = messages;
        self.seqs.clear();
        let prompt = self.messages.iter().rfind(|message| message.is_prompt());
        if let Some(prompt) = prompt.or_else(|| self.messages.last().filter(|_| self.number == 1)) {
            self.prompt = Some(prompt.clone());
        }
        self.tell(&NewEvent::new("step/start", &StepId { turn: self.turn, step: self.number }));
    }

    pub(super) fn tell_messages(&mut self) {
        let mut state = self.shared.lock();
        let tell = |message: &Message| state.tell(&NewEvent::new("user/message", &message.json()).append());
        self.seqs = self.messages.iter().map(tell).collect();
    }

    pub(super) fn shared(&self) -> &'t Arc<Shared> {
        self.shared
    }

    /// The numbers of the turn and of the step.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        (self.turn, self.number)
    }

    /// The number of the step in its turn, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &JsonString {
        self.shared.sink.session()
    }

    /// What was in force when the session was opened.
    #[must_use]
    pub fn route(&self) -> &InitializeParams {
        &self.shared.route
    }

    /// Where the session works: an absolute path.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.shared.lock().cwd().to_path_buf()
    }

    /// The text of the message that the turn is about: the last one of a user's.
    #[must_use]
    pub fn prompt_text(&self) -> JsonString {
        self.prompt.as_ref().map_or_else(|| "".into(), Message::text)
    }

    /// The message that the turn is about.
    #[must_use]
    pub fn prompt(&self) -> Option<&Message> {
        self.prompt.as_ref()
    }

    /// What is new to the agent in this step.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The numbers of the events that told the messages, in their order; empty before they have been told.
    #[must_use]
    pub fn message_seqs(&self) -> &[u64] {
        &self.seqs
    }

    /// Adds a message, to be told behind the others. Has no effect once they have been told.
    pub fn add_message(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// A new id for a message.
    #[must_use]
    pub fn new_id(&self) -> String {
        self.shared.ids.of_turn()
    }

    /// Unix time in milliseconds, by the clock of the session's events.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.shared.sink.now()
    }

    /// Tells an event of the agent's own; returns its number.
    pub fn tell<D: Serialize + ?Sized>(&self, event: &NewEvent<'_, D>) -> u64 {
        self.shared.lock().tell(event)
    }

    /// The number of the last event.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.shared.lock().last_seq()
    }

    /// Where other things than events are told.
    #[must_use]
    pub fn sink(&self) -> &Sink {
        &self.shared.sink
    }

    /// Waits that long, or until the session is released.
    ///
    /// # Errors
    /// [`TurnError::Released`], to be handed on.
    pub fn pause(&self, time: Duration) -> Result<(), TurnError> {
        if self.shared.pause(time) { Ok(()) } else { Err(TurnError::Released) }
    }

    /// Whether the session is being released, so that the turn should end.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.shared.lock().is_releasing()
    }

    /// Asks the client: as [`Sink::request`].
    ///
    /// # Errors
    /// As there.
    pub fn request(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
        within: Duration,
    ) -> Result<JsonBuf, RequestError> {
        self.shared.sink.request(method, params, within)
    }

    /// Starts a sub-agent; returns its id, which is also that of its session.
    pub fn start(&self, sub_agent: SubAgent) -> JsonString {
        subagent::start(self.shared, sub_agent)
    }
}

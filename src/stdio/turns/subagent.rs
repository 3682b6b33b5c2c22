//! Sub-agents: sessions that an agent starts, and that report to it when they are done.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::vec::Vec;

use super::answer::{Answer, buf};
use super::event::{Catalog, Reason, Settled};
use super::message::TextBlock;
use super::session::{Last, Parent, Shared};
use super::{Message, NewSession, TurnAgent};
use crate::json::JsonString;
use crate::server::{Finished, NewEvent};
use crate::wire::{Blocks, Decode, StopReason};

/// Events that the official runtime tells only in the log while a sub-agent is being created; the numbers of those
/// that are sent start behind them.
const EVENTS_OF_CREATION: u64 = 3;

/// A sub-agent to be started with [`Step::start`](super::Step::start). It has a session of its own, takes one turn, and
/// ends; its parent is told with a note, which wakes it if it rests.
pub struct SubAgent {
    agent: Box<dyn TurnAgent>,
    /// Its text blocks.
    prompt: Vec<JsonString>,
    label: String,
    head_start: Duration,
}

impl SubAgent {
    /// With what it is asked to do.
    #[must_use]
    pub fn new(agent: impl TurnAgent, prompt: impl Into<JsonString>) -> Self {
        Self {
            agent: Box::new(agent),
            prompt: [prompt.into()].into(),
            label: String::from("sub-agent"),
            head_start: Duration::ZERO,
        }
    }

    /// Adds a text block to the prompt, such as a note about the parent.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<JsonString>) -> Self {
        self.prompt.push(text.into());
        self
    }

    /// Says for people what it is for.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Lets it begin when its parent's turn is over, at the latest after this time. It begins at once unless this is
    /// set; with the official runtime the parent usually rests first.
    #[must_use]
    pub fn head_start(mut self, time: Duration) -> Self {
        self.head_start = time;
        self
    }
}

impl core::fmt::Debug for SubAgent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SubAgent").field("prompt", &self.prompt).field("label", &self.label).finish_non_exhaustive()
    }
}

/// Starts a sub-agent; returns its id. The receipt of its prompt and the beginning of its turn have been told then.
pub(super) fn start(parent: &Arc<Shared>, sub: SubAgent) -> JsonString {
    let id = JsonString::from(parent.ids.of_turn());
    let sink = parent.sink.for_session(&id);
    sink.number_from(EVENTS_OF_CREATION);
    let created = parent.sink.now();
    let new = NewSession { agent: sub.agent, turns: 0, cwd: None, keep: None };
    let link = Parent { session: Arc::downgrade(parent), provider: "spawn", head_start: sub.head_start };
    let mut route = parent.route.clone();
    route.cwd = parent.lock().cwd().to_string_lossy().as_ref().into();
    let child = Arc::new(Shared::new(new, &route, sink, &parent.pool, Some(link)));
    if !parent.lock().adopt(&child) {
        return id;
    }
    parent.sink.subagent_started(&id);
    let blocks: Vec<_> = sub.prompt.into_iter().map(TextBlock::new).collect();
    let message = Message::prompt(child.ids.of_inbox(), buf(&blocks).as_json());
    let begun = child.lock().receive(message, false);
    let catalog =
        Catalog { version: 0, child_id: &id, child_created_at: created, mode: "continuable", label: &sub.label };
    parent.lock().tell(&NewEvent::new("subagent/catalog", &catalog));
    if let Some(messages) = begun {
        child.schedule(messages);
    }
    id
}

/// A session has come to rest: if it is a sub-agent's, its parent gets to know, and then the client.
pub(super) fn settle(child: &Arc<Shared>, last: &Last) {
    let Some(link) = &child.parent else { return };
    let Some(parent) = Weak::upgrade(&link.session) else { return };
    let id = child.sink.session();
    let outcome = match &last.reason {
        Some(Reason::Completed) => "finished and will do no further work unless you send it more.",
        Some(Reason::MaxTokens) => "ran out of room before it finished.",
        _ => "failed before it finished.",
    };
    let summary = format!("Background subagent {id} {outcome}");
    let content =
        last.answer.as_ref().filter(|_| !matches!(last.reason, Some(Reason::Error { .. }))).map(Answer::content);
    let content = content.map(|blocks| buf(&blocks));
    let closing = content.as_ref().and_then(|content| Blocks::decode(content.as_json()).ok());
    let text = closing.map(|blocks| format!("{}", blocks.text()));
    let mut texts: Vec<&str> = [&*summary].into();
    match text.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => texts.extend(["Its closing message:", text]),
        None => texts.push("It left no closing message."),
    }
    let source = Settled { kind: "subagent-settled", form: "notice", summary: &summary, sender_session_id: id };
    let note = Message::note(parent.ids.of_inbox(), &texts, &source);
    let mut state = parent.lock();
    state.let_go(child);
    let begun = state.receive(note, true);
    let stop_reason = match &last.reason {
        Some(Reason::Completed) => StopReason::Completed,
        Some(Reason::MaxTokens) => StopReason::MaxTokens,
        Some(Reason::Aborted { .. }) => StopReason::Aborted,
        Some(Reason::Error { .. }) | None => StopReason::Error,
    };
    let end = Finished { provider: link.provider, stop_reason, last_assistant_message: closing };
    // While the lock is held no step of the parent's comes between.
    parent.sink.subagent_finished(id, &end);
    drop(state);
    if let Some(messages) = begun {
        parent.schedule(messages);
    }
}

/// Waits until the parent rests, if the sub-agent has to.
pub(super) fn let_parent_go_first(child: &Shared) {
    if let Some(link) = &child.parent
        && !link.head_start.is_zero()
        && let Some(parent) = Weak::upgrade(&link.session)
    {
        parent.wait_for_rest(link.head_start);
    }
}

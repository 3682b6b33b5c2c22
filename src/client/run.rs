//! One run: from a prompt to the end of what it set off.

use alloc::collections::VecDeque;

use super::{SessionTree, read, subscription};
use crate::json::{Json, JsonStr, JsonString};
use crate::wire::stream::StreamChunk;
use crate::wire::{
    Decode, EventData, FinishStatus, Notification, NotificationBody, NotificationBuf, PromptResult, SessionEvent,
    SessionFinishedParams, Status,
};

/// What a notification is to a [`Run`] that was shown it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// It is none of its business.
    Unrelated,
    /// It may belong to it; the run keeps a copy until the prompt has been answered.
    Held,
    /// It belongs to it.
    Related,
    /// It belongs to it and ends it.
    Last,
}

/// A prompt on its way through a session, from its receipt to the next `idle`.
///
/// Hand every notification to [`observe`](Self::observe) from before the prompt is sent, and the answer to
/// [`answered`](Self::answered); after that take what was held with [`next_held`](Self::next_held). The receipt is
/// the `agent/inbox/spliced` event that inserted our message, and usually comes before the answer that tells the
/// message's id. Between queued turns there is no `idle`, so a run lasts until the session has nothing more to do.
///
/// Runtimes from before 0.1.1 answer a prompt after its turn and have no receipt; what they send from the prompt on
/// is the run, and `session.finished` ends it. The run finds out by what it sees.
#[derive(Debug)]
pub struct Run {
    session: JsonString,
    phase: Phase,
    /// What has come since the prompt was sent, in wire order; empty but in [`Phase::Asked`] and while it is taken.
    held: Held,
    /// A runtime that reports status has a receipt for each prompt.
    reports_status: bool,
    /// Whether the next `idle` is the end.
    until_idle: bool,
    idle: bool,
    final_response: Option<JsonString>,
    finish_reason: Option<JsonString>,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    /// The prompt has not been answered.
    Asked,
    /// It has, and its receipt has not come.
    Queued { message_id: JsonString },
    /// The receipt has come.
    Inside,
    /// There are no receipts, and the prompt has not been answered.
    Unanswered { finished: bool },
    /// It is over.
    Done,
}

/// Notifications that were copied, in wire order.
#[derive(Debug, Default)]
struct Held {
    queue: VecDeque<NotificationBuf>,
    /// Of all in `queue`.
    bytes: usize,
}

impl Held {
    fn push(&mut self, buf: NotificationBuf) {
        self.bytes += subscription::size(&buf);
        self.queue.push_back(buf);
    }

    fn pop(&mut self) -> Option<NotificationBuf> {
        let buf = self.queue.pop_front()?;
        self.bytes -= subscription::size(&buf);
        Some(buf)
    }
}

impl Run {
    /// A run on a session; make it before the prompt is sent. `reports_status` says whether this runtime has sent a
    /// `session.status` before, for any session.
    pub fn new(session: impl Into<JsonString>, reports_status: bool) -> Self {
        Self {
            session: session.into(),
            phase: Phase::Asked,
            held: Held::default(),
            reports_status,
            until_idle: true,
            idle: false,
            final_response: None,
            finish_reason: None,
        }
    }

    /// Does not end at `idle`, as sub-agents may wake the session again, but at [`finish`](Self::finish).
    #[must_use]
    pub fn until_finished(mut self) -> Self {
        self.until_idle = false;
        self
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> JsonStr<'_> {
        self.session.as_json_str()
    }

    /// Bytes of notifications that are held back until the answer to the prompt tells which of them belong to the run.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.bytes
    }

    /// Looks at a notification, in wire order.
    pub fn observe(&mut self, notification: &Notification<'_>, tree: &SessionTree) -> Observed {
        self.reports_status |= notification.status().is_some();
        match self.phase == Phase::Done || !tree.concerns(self.session.as_json_str(), notification) {
            true => Observed::Unrelated,
            false => self.observe_own(notification),
        }
    }

    /// As [`observe`](Self::observe), for a notification that is known to be about the session or one that comes from
    /// it.
    pub fn observe_own(&mut self, notification: &Notification<'_>) -> Observed {
        self.reports_status |= notification.status().is_some();
        match &self.phase {
            Phase::Asked => {
                self.held.push(notification.to_buf());
                if !self.reports_status && self.own_event(notification).is_some_and(is_of_a_turn) {
                    self.phase = Phase::Unanswered { finished: false };
                }
                Observed::Held
            }
            Phase::Queued { message_id } => {
                if !self.own_event(notification).is_some_and(|event| is_receipt(event, message_id)) {
                    return Observed::Unrelated;
                }
                self.phase = Phase::Inside;
                self.inside(notification)
            }
            Phase::Inside | Phase::Unanswered { .. } => {
                if self.held.queue.is_empty() {
                    return self.inside(notification);
                }
                self.held.push(notification.to_buf());
                Observed::Held
            }
            Phase::Done => Observed::Unrelated,
        }
    }

    /// Takes the answer to the prompt.
    pub fn answered(&mut self, result: &PromptResult) {
        match (&self.phase, result) {
            (Phase::Asked, PromptResult::Enqueued { message_id }) => {
                let is_ours = |buf: &NotificationBuf| {
                    let notification = view(buf);
                    self.own_event(&notification).is_some_and(|event| is_receipt(event, message_id))
                };
                match self.held.queue.iter().position(is_ours) {
                    Some(receipt) => {
                        (0..receipt).for_each(|_| drop(self.held.pop()));
                        self.phase = Phase::Inside;
                    }
                    None => {
                        self.held = Held::default();
                        self.phase = Phase::Queued { message_id: message_id.clone() };
                    }
                }
            }
            (Phase::Asked, PromptResult::Accepted) => self.phase = Phase::Inside,
            (Phase::Unanswered { finished: true }, _) if self.until_idle => self.phase = Phase::Done,
            (Phase::Unanswered { .. }, _) => self.phase = Phase::Inside,
            (Phase::Queued { .. } | Phase::Inside | Phase::Done, _) => {}
        }
    }

    /// What was held and belongs to the run, in wire order. `None` also while it cannot be told yet.
    pub fn next_held(&mut self) -> Option<(NotificationBuf, Observed)> {
        if matches!(self.phase, Phase::Asked | Phase::Queued { .. }) {
            return None;
        }
        let buf = self.held.pop()?;
        let place = self.inside(&view(&buf));
        if place == Observed::Last {
            self.held = Held::default();
        }
        Some((buf, place))
    }

    /// Ends the run.
    pub fn finish(&mut self) {
        self.phase = Phase::Done;
        self.held = Held::default();
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether the session has become idle since the receipt and has not woken up since.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// The text of the last message of the model; `None` where there was none.
    #[must_use]
    pub fn final_response(&self) -> Option<JsonStr<'_>> {
        self.final_response.as_ref().map(JsonString::as_json_str)
    }

    /// Why the last turn ended: `completed`, `max-tokens`, `error` and so on; `None` where none did.
    #[must_use]
    pub fn finish_reason(&self) -> Option<JsonStr<'_>> {
        self.finish_reason.as_ref().map(JsonString::as_json_str)
    }

    /// The event, where it is one of our session itself.
    fn own_event<'n, 'a>(&self, notification: &'n Notification<'a>) -> Option<&'n SessionEvent<'a>> {
        notification.event().filter(|_| self.is_own(notification))
    }

    fn is_own(&self, notification: &Notification<'_>) -> bool {
        notification.session_id().is_some_and(|session| session == self.session.as_json_str())
    }

    /// Learns from a notification that belongs to the run.
    fn inside(&mut self, notification: &Notification<'_>) -> Observed {
        if !self.is_own(notification) {
            return Observed::Related;
        }
        match &notification.body {
            NotificationBody::SessionEvent(params) => {
                self.learn(&params.event);
                Observed::Related
            }
            NotificationBody::SessionStatus(params) => {
                self.idle = params.status == Status::Idle;
                if self.idle { self.end() } else { Observed::Related }
            }
            NotificationBody::SessionFinished(params) => {
                self.idle = true;
                if self.finish_reason.is_none() {
                    self.finish_reason = Some(reason_of(params));
                }
                if let Phase::Unanswered { finished } = &mut self.phase {
                    *finished = true;
                    return Observed::Related;
                }
                self.end()
            }
            _ => Observed::Related,
        }
    }

    fn end(&mut self) -> Observed {
        if !self.until_idle {
            return Observed::Related;
        }
        self.phase = Phase::Done;
        Observed::Last
    }

    fn learn(&mut self, event: &SessionEvent<'_>) {
        if event.kind == "assistant/message" {
            // In 0.1.1 and later the message is a member of its own.
            let content = event.data.member("message").unwrap_or(event.data).member("content");
            if let Some(content) = content.and_then(|content| crate::wire::Blocks::decode(content).ok()) {
                self.final_response = Some(content.text());
            }
        } else if event.kind == "turn/end" {
            let reason = event.data.member("reason");
            let kind = reason.and_then(|reason| reason.member("kind").unwrap_or(reason).as_str());
            self.finish_reason = kind.map(JsonStr::to_buf).or_else(|| self.finish_reason.take());
        }
    }
}

/// The piece of text that a notification streams: a `text-delta` of an `assistant/chunk` event, which runtimes before
/// 0.2.1 send while the model writes.
#[must_use]
pub fn text_delta<'a>(notification: &Notification<'a>) -> Option<JsonStr<'a>> {
    let event = notification.event().filter(|event| event.kind == "assistant/chunk")?;
    match event.decode_data() {
        Ok(EventData::AssistantChunk(data)) => match data.chunk {
            StreamChunk::TextDelta { text, .. } => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn view(buf: &NotificationBuf) -> Notification<'_> {
    read(buf.method.as_json_str(), buf.params.as_json())
}

/// Whether an event can only stand inside a turn, behind the receipt.
fn is_of_a_turn(event: &SessionEvent<'_>) -> bool {
    let kind = event.kind.to_string_lossy();
    ["assistant/", "step/", "tool/"].iter().any(|family| kind.starts_with(family))
}

fn is_receipt(event: &SessionEvent<'_>, message_id: &JsonString) -> bool {
    let is_ours = |message: Json<'_>| {
        message.member("id").and_then(Json::as_str).is_some_and(|id| id == message_id.as_json_str())
    };
    event.kind == "agent/inbox/spliced"
        && event.data.member("inserted").into_iter().flat_map(Json::elements).any(is_ours)
}

/// What stands for the finish reason in a revision that may not report the end of a turn.
fn reason_of(params: &SessionFinishedParams<'_>) -> JsonString {
    match (params.reason, &params.status) {
        (Some(reason), _) => reason.to_buf(),
        (None, FinishStatus::Ok) => "completed".into(),
        (None, _) => "error".into(),
    }
}

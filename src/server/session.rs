//! What the server knows of one session.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use serde::Serialize;

use super::{DirectoryReply, PromptReply, Refusal, Task};
use crate::frame::{EncodeError, LineWriter};
use crate::json::{JsonBuf, JsonString, written};
use crate::peer::Reply;
use crate::wire::{Blocks, StopReason, SurfaceOp};

/// One session, opened by a client or only reported on, as those of sub-agents are.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) opened: Opened,
    /// What `session.status` last said; idle where it never said anything.
    running: bool,
    /// Prompts that the host has been given and has not answered: the session is about to run.
    prompts: usize,
    /// The sub-agents that have started and not ended.
    children: BTreeSet<JsonString>,
    /// Requests `session/wait` that wait; none where the session is [at rest](Self::is_at_rest).
    waits: Vec<Reply>,
    /// The number of the next event. Never goes back.
    next_seq: u64,
    /// The time of the last event. Never goes back.
    time: u64,
}

#[derive(Debug, Default)]
pub(super) enum Opened {
    /// No client has opened it.
    #[default]
    No,
    /// The host opens it, and these wait.
    Opening(Vec<Waiting>),
    Yes,
    /// The host releases it.
    Releasing,
}

/// A request that waits for its session to be open.
#[derive(Debug)]
pub(super) enum Waiting {
    Resume(Reply),
    Prompt(Result<JsonBuf, Refusal>, Reply),
    WorkingDirectory(Option<JsonString>, Reply),
}

impl Waiting {
    pub(super) fn into_reply(self) -> Reply {
        match self {
            Self::Resume(reply) | Self::Prompt(_, reply) | Self::WorkingDirectory(_, reply) => reply,
        }
    }

    /// The task that it becomes when its session is open; a request that is met or refused without one otherwise.
    pub(super) fn into_task(self, session: &JsonString) -> Result<Task, (Reply, Result<(), Refusal>)> {
        let (session, id) = (session.clone(), session.clone());
        match self {
            Self::Resume(reply) => Err((reply, Ok(()))),
            Self::Prompt(Err(refusal), reply) => Err((reply, Err(refusal))),
            Self::Prompt(Ok(content_blocks), reply) => {
                Ok(Task::Prompt { session, content_blocks, reply: PromptReply(reply, id) })
            }
            Self::WorkingDirectory(Some(path), reply) if path.as_json_str() == "" => {
                Err((reply, Err("working-directory: cd must not be empty".into())))
            }
            Self::WorkingDirectory(change, reply) => {
                Ok(Task::WorkingDirectory { session, change, reply: DirectoryReply(reply) })
            }
        }
    }
}

impl Session {
    /// Whether it says no more than one that is not there.
    pub(super) fn is_as_new(&self) -> bool {
        matches!(self.opened, Opened::No) && self.next_seq == 0 && !self.running && self.children.is_empty()
    }

    /// Whether a client can wait for it.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.opened, Opened::Yes | Opened::Releasing)
    }

    /// Whether it is idle, will not run because of what was asked before, and has no sub-agents.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.running && self.prompts == 0 && self.children.is_empty()
    }

    pub(super) fn prompt_given(&mut self) {
        self.prompts += 1;
    }

    pub(super) fn prompt_answered(&mut self) {
        self.prompts = self.prompts.saturating_sub(1);
    }

    pub(super) fn wait(&mut self, reply: Reply) {
        self.waits.push(reply);
    }

    /// The requests that have waited for the session to come to rest, if it has.
    pub(super) fn take_waits_at_rest(&mut self) -> Vec<Reply> {
        if self.is_at_rest() { self.take_waits() } else { Vec::new() }
    }

    /// The requests that wait, though they might have to wait longer.
    pub(super) fn take_waits(&mut self) -> Vec<Reply> {
        core::mem::take(&mut self.waits)
    }

    /// Says whether that is news.
    pub(super) fn set_running(&mut self, running: bool) -> bool {
        core::mem::replace(&mut self.running, running) != running
    }

    /// Says whether that is news.
    pub(super) fn child_started(&mut self, child: &JsonString) -> bool {
        self.children.insert(child.clone())
    }

    /// Says whether there was such a child.
    pub(super) fn child_finished(&mut self, child: &JsonString) -> bool {
        self.children.remove(child)
    }

    pub(super) fn number_from(&mut self, seq: u64) {
        self.next_seq = self.next_seq.max(seq);
    }

    /// What the next event will be stamped with.
    pub(super) fn next_stamp(&self, time: u64) -> Stamp {
        Stamp { seq: self.next_seq, time: self.time.max(time) }
    }

    pub(super) fn advance(&mut self, stamp: Stamp) {
        self.next_seq = stamp.seq.saturating_add(1);
        self.time = stamp.time;
    }
}

/// The place of an event in the log of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its number, from 0.
    pub seq: u64,
    /// Unix time in milliseconds; not before the event that precedes it.
    pub time: u64,
}

/// An event to be told with [`Server::session_event`](super::Server::session_event): what it is, without its number
/// and time.
///
/// ```
/// use dsh_wire::server::NewEvent;
/// use dsh_wire::wire::SurfaceOp;
///
/// // Anything that serde writes as an object.
/// let data = std::collections::BTreeMap::from([("isError", false)]);
/// let event = NewEvent { source_event_seqs: &[3], ..NewEvent::new("tool/result", &data).append() };
/// assert_eq!(event.surface_op, Some(SurfaceOp::Append));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a, D: ?Sized> {
    /// The type, such as `turn/start`.
    pub kind: &'a str,
    /// The particulars; becomes a JSON object, if the type is one of the protocol's.
    pub data: &'a D,
    /// Numbers of the events that led to it. An empty list is left out.
    pub source_event_seqs: &'a [u64],
    /// What it does to the conversation that the model sees.
    pub surface_op: Option<SurfaceOp<'a>>,
}

impl<'a, D: Serialize + ?Sized> NewEvent<'a, D> {
    /// An event of this type with this data, and nothing optional.
    pub const fn new(kind: &'a str, data: &'a D) -> Self {
        Self { kind, data, source_event_seqs: &[], surface_op: None }
    }

    /// The same, as a message that the model sees last.
    #[must_use]
    pub const fn append(self) -> Self {
        Self { surface_op: Some(SurfaceOp::Append), ..self }
    }

    /// The same with its data in another form.
    #[cfg(feature = "serve")]
    pub(crate) const fn with_data<'b, E: ?Sized>(&self, data: &'b E) -> NewEvent<'b, E>
    where
        'a: 'b,
    {
        let Self { kind, source_event_seqs, surface_op, .. } = *self;
        NewEvent { kind, data, source_event_seqs, surface_op }
    }

    /// The whole event, for the wire or for a log.
    pub fn stamped(&self, stamp: Stamp) -> impl Serialize + '_ {
        Stamped {
            kind: self.kind,
            seq: stamp.seq,
            time: stamp.time,
            data: self.data,
            source_event_seqs: self.source_event_seqs,
            surface_op: self.surface_op,
        }
    }
}

impl<D: ?Sized> NewEvent<'_, D> {
    /// Writes the whole event, with data that `data` writes.
    pub(super) fn write(
        &self,
        line: &mut LineWriter<'_>,
        stamp: Stamp,
        data: impl FnOnce(&mut LineWriter<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        line.text(r#"{"type":"#).string(self.kind);
        line.text(r#","seq":"#).value(&stamp.seq)?;
        line.text(r#","time":"#).value(&stamp.time)?;
        data(line.text(r#","data":"#))?;
        if !self.source_event_seqs.is_empty() {
            line.text(r#","sourceEventSeqs":"#).value(self.source_event_seqs)?;
        }
        if let Some(op) = &self.surface_op {
            line.text(r#","surfaceOp":"#).value(op)?;
        }
        line.text("}");
        Ok(())
    }
}

/// The envelope, its members in the order of the official runtime; [`NewEvent::write`] writes the same.
struct Stamped<'a, D: ?Sized> {
    kind: &'a str,
    seq: u64,
    time: u64,
    data: &'a D,
    source_event_seqs: &'a [u64],
    surface_op: Option<SurfaceOp<'a>>,
}

written!(['a, D: Serialize + ?Sized] Stamped<'a, D> {
    kind => "type",
    seq => "seq",
    time => "time",
    data => "data",
    source_event_seqs unless <[u64]>::is_empty => "sourceEventSeqs",
    surface_op unless Option::is_none => "surfaceOp",
});

/// How a sub-agent has ended, for [`Server::subagent_finished`](super::Server::subagent_finished).
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
    /// What made it: `spawn` or `fork`.
    pub provider: &'a str,
    /// Why it stopped.
    pub stop_reason: StopReason<'a>,
    /// The content of its model's last message.
    pub last_assistant_message: Option<Blocks<'a>>,
}

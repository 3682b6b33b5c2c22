//! The envelope of an event, and which data belongs to which type.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::agent::*;
use super::message::UserMessage;
use super::session::*;
use super::turn::*;
use super::{Decode, DecodeError, List};
use crate::json::{Json, JsonStr};

payload! {
    /// One event of a session's log. The data stays as it came until [`SessionEvent::decode_data`] is called.
    pub struct SessionEvent<'a> {
        /// What has happened, such as `turn/start`.
        kind: JsonStr<'a> = "type",
        /// Number in the log.
        seq: u64 = "seq",
        /// Unix time in milliseconds.
        time: u64 = "time",
        /// The particulars, whose shape depends on the type.
        data: Json<'a> = "data",
        /// The events that led to this one.
        source_event_seqs: Option<List<'a, u64>> = "sourceEventSeqs",
        /// What it does to the conversation that the model sees.
        surface_op: Option<SurfaceOp<'a>> = "surfaceOp",
        /// `true` where a reader that does not know the type may skip it.
        ignorable: Option<bool> = "ignorable",
    }
}

impl<'a> SessionEvent<'a> {
    /// Reads the data as its type has it.
    ///
    /// # Errors
    /// Data of a known type that is not as it must be.
    pub fn decode_data(&self) -> Result<EventData<'a>, DecodeError> {
        EventData::decode(self.kind, self.data)
    }
}

/// What an event does to the conversation that the model sees.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SurfaceOp<'a> {
    /// `"append"`: it comes last.
    Append,
    /// It stands for a range of earlier events, both ends included.
    Replace {
        /// The first.
        start_seq: u64,
        /// The last.
        end_seq: u64,
    },
    /// The same, as it was written before 0.2.1: with `start` and `end`.
    ReplaceOld {
        /// The first.
        start: u64,
        /// The last.
        end: u64,
    },
    /// One that this version does not know, as it came.
    Other(Json<'a>),
}

impl SurfaceOp<'_> {
    /// First and last of the events that it replaces, in either spelling.
    #[must_use]
    pub const fn replaced(self) -> Option<(u64, u64)> {
        match self {
            Self::Replace { start_seq: start, end_seq: end } | Self::ReplaceOld { start, end } => Some((start, end)),
            _ => None,
        }
    }
}

impl<'a> Decode<'a> for SurfaceOp<'a> {
    fn decode(json: Json<'a>) -> Result<Self, DecodeError> {
        if json.as_str().is_some_and(|op| op == "append") {
            return Ok(Self::Append);
        }
        if json.member("op").and_then(Json::as_str).is_none_or(|op| op != "replace") {
            return Ok(Self::Other(json));
        }
        let count = |name| json.member(name).and_then(Json::as_u64);
        Ok(match (count("startSeq"), count("endSeq"), count("start"), count("end")) {
            (Some(start_seq), Some(end_seq), ..) => Self::Replace { start_seq, end_seq },
            (_, _, Some(start), Some(end)) => Self::ReplaceOld { start, end },
            _ => Self::Other(json),
        })
    }
}

impl Serialize for SurfaceOp<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (names, ends) = match *self {
            Self::Append => return serializer.serialize_str("append"),
            Self::Other(json) => return json.serialize(serializer),
            Self::Replace { start_seq, end_seq } => (["startSeq", "endSeq"], [start_seq, end_seq]),
            Self::ReplaceOld { start, end } => (["start", "end"], [start, end]),
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("op", "replace")?;
        for (name, end) in names.iter().zip(ends) {
            map.serialize_entry(name, &end)?;
        }
        map.end()
    }
}

macro_rules! event_data {
    ($($(#[$doc:meta])* $variant:ident($ty:ty) = $wire:literal,)*) => {
        /// The data of an event, by the event's type. It is written without the type.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum EventData<'a> {
            $(
                #[doc = concat!("`", $wire, "`: ")]
                $(#[$doc])*
                $variant($ty),
            )*
            /// The data of a type that this version does not know.
            Unknown(Json<'a>),
        }

        impl<'a> EventData<'a> {
            /// Reads data as the type has it.
            ///
            /// # Errors
            /// Data of a known type that is not as it must be.
            pub fn decode(kind: JsonStr<'a>, data: Json<'a>) -> Result<Self, DecodeError> {
                match &*kind.to_string_lossy() {
                    $($wire => Decode::decode(data).map(Self::$variant),)*
                    _ => Ok(Self::Unknown(data)),
                }
            }

            /// The event's type; `None` for [`EventData::Unknown`].
            #[must_use]
            pub const fn kind(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant(_) => Some($wire),)*
                    Self::Unknown(_) => None,
                }
            }
        }

        impl Serialize for EventData<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(data) => data.serialize(serializer),)*
                    Self::Unknown(data) => data.serialize(serializer),
                }
            }
        }
    };
}

event_data! {
    /// the inbox of the agent has changed.
    InboxSpliced(InboxSpliced<'a>) = "agent/inbox/spliced",
    /// a turn begins.
    TurnStart(TurnStart) = "turn/start",
    /// a turn is over.
    TurnEnd(TurnEnd<'a>) = "turn/end",
    /// a step begins: one model call and the tools that it asks for.
    StepStart(Step) = "step/start",
    /// a step is over.
    StepEnd(Step) = "step/end",
    /// the instructions of the runtime.
    SystemMessage(StepMessage<'a>) = "system/message",
    /// instructions in mid-conversation.
    DeveloperMessage(StepMessage<'a>) = "developer/message",
    /// a message to the model.
    UserMessage(UserMessage<'a>) = "user/message",
    /// the model has answered.
    AssistantMessage(AssistantMessage<'a>) = "assistant/message",
    /// a model call has given no message.
    AssistantAttempt(AssistantAttempt<'a>) = "assistant/attempt",
    /// the model has sent something; before 0.2.1.
    AssistantChunk(AssistantChunk<'a>) = "assistant/chunk",
    /// a tool is called.
    ToolCall(ToolCall<'a>) = "tool/call",
    /// a tool has answered.
    ToolResult(ToolResult<'a>) = "tool/result",
    /// a tool calls a tool.
    ToolDispatchStart(ToolDispatchStart<'a>) = "tool/ptc-dispatch-start",
    /// a tool that a tool has called has answered.
    ToolDispatch(ToolDispatch<'a>) = "tool/ptc-dispatch",
    /// as `tool/ptc-dispatch-start`; before 0.2.1.
    CodeDispatchStart(ToolDispatchStart<'a>) = "tool/code-dispatch-start",
    /// as `tool/ptc-dispatch`; before 0.2.1.
    CodeDispatch(ToolDispatch<'a>) = "tool/code-dispatch",
    /// what stands before the messages in model calls from here on.
    RequestHeader(RequestHeader<'a>) = "request/header",
    /// the model that answers from here on.
    RequestContext(RequestContext<'a>) = "request/context",
    /// a model call will be tried again.
    LlmRetry(LlmRetry<'a>) = "llm/retry",
    /// a model call is tried again.
    LlmRetryStarted(LlmRetryStarted<'a>) = "llm/retry-started",
    /// the session has a name.
    SessionTitle(SessionTitle<'a>) = "session/title",
    /// a model is asked for a name.
    SessionTitleLlmRequest(SessionTitleLlmRequest<'a>) = "session/title-llm-request",
    /// here the log was taken up again; in the stored log only.
    SessionEndSeed(SessionEndSeed) = "session/end-seed",
    /// the provider has the log up to here.
    DeliveryAccepted(DeliveryAccepted<'a>) = "session-log-deepseek/delivery-accepted",
    /// the session works elsewhere.
    WorkingDirectoryChange(WorkingDirectoryChange<'a>) = "working-directory/change",
    /// files of the workspace have changed.
    WorkspaceChanges(TurnStart) = "workspace/changes",
    /// a set of rules was chosen.
    PermissionPreset(PermissionPreset<'a>) = "permission/preset",
    /// what the sandbox allows.
    SandboxMode(SandboxModeData<'a>) = "sandbox/mode",
    /// when to ask a person.
    ApprovalPolicy(ApprovalPolicyData<'a>) = "approval/policy",
    /// a person is asked.
    ApprovalAsked(ApprovalAsked<'a>) = "approval/asked",
    /// the answer.
    ApprovalDecided(ApprovalDecided<'a>) = "approval/decided",
    /// the model was chosen.
    ModelSelection(ModelSelection<'a>) = "model/selection",
    /// the preset of the agent was chosen.
    AgentPresetSelected(AgentPresetSelected<'a>) = "agent-preset/selected",
    /// plan mode was switched.
    PlanMode(PlanMode) = "plan/mode",
    /// the list of things to do.
    TodoWrite(TodoWrite<'a>) = "todo/write",
    /// a command of the user begins.
    CommandRun(CommandRun<'a>) = "command/run",
    /// a command of the user is done.
    CommandDone(CommandDone<'a>) = "command/done",
    /// a compaction begins.
    CompactionStart(Compaction<'a>) = "compaction/start",
    /// a compaction is over.
    CompactionEnd(Compaction<'a>) = "compaction/end",
    /// a summary stands for earlier events.
    CompactionSummary(CompactionSummary<'a>) = "compaction/summary",
    /// earlier events are no longer shown to the model.
    CompactionPrune(CompactionPrune<'a>) = "compaction/prune",
    /// images are no longer sent to the model.
    ImageOffload(ImageOffload<'a>) = "image/offload",
    /// a hook is called.
    HookInvoked(HookInvoked<'a>) = "hook/invoked",
    /// a hook has answered.
    HookResult(HookResult<'a>) = "hook/result",
    /// a background job begins.
    JobRegistered(JobRegistered<'a>) = "job/registered",
    /// a background job is over.
    JobSettled(JobSettled<'a>) = "job/settled",
    /// a sub-agent that can be spoken to.
    SubagentCatalog(SubagentCatalog<'a>) = "subagent/catalog",
    /// what a sub-agent's own session is; in the stored log only.
    SubagentDescriptor(SubagentDescriptor<'a>) = "subagent/descriptor",
    /// the models that sub-agents may use.
    SubagentModelSelectionPolicy(SubagentModelSelectionPolicy<'a>) = "subagent/model-selection-policy",
    /// a goal was set or has moved.
    GoalChange(GoalChange<'a>) = "goal/change",
    /// a schedule was set, dropped or is due.
    ScheduleChange(ScheduleChange<'a>) = "schedule/change",
    /// a member of a team.
    TeamMember(TeamMember<'a>) = "team/member",
    /// a task of a team.
    TeamTask(TeamTask<'a>) = "team/task",
    /// a message between members of a team.
    TeamMessageQueued(TeamMessageQueued<'a>) = "team/message/queued",
    /// such a message has arrived.
    TeamMessageDelivered(TeamMessageDelivered<'a>) = "team/message/delivered",
    /// a script of tool calls begins.
    WorkflowRunStart(WorkflowRunStart<'a>) = "tool-workflow/run-start",
    /// a script of tool calls is over.
    WorkflowRunEnd(WorkflowRunEnd<'a>) = "tool-workflow/run-end",
    /// a script starts an agent.
    WorkflowAgentStart(WorkflowAgentStart<'a>) = "tool-workflow/agent-start",
    /// an agent of a script is done.
    WorkflowAgentEnd(WorkflowAgentEnd<'a>) = "tool-workflow/agent-end",
    /// what a person thinks of the session.
    FeedbackRecord(FeedbackRecord<'a>) = "feedback/record",
    /// what a person thinks of a message.
    FeedbackMessagePut(FeedbackMessagePut<'a>) = "feedback/message-put",
    /// that is taken back.
    FeedbackMessageDelete(FeedbackMessageDelete<'a>) = "feedback/message-delete",
    /// a search on the web.
    WebSearchRequest(WebSearchRequest<'a>) = "web/deepseek-search-llm-request",
}

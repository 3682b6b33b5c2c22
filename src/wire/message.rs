//! Messages and where they come from.

use super::stream::ReplayState;
use super::{Blocks, Lazy, List, Nullable};
use crate::json::{Json, JsonStr, JsonString};

open_enum! {
    /// Who speaks in a message.
    pub enum Role {
        System = "system",
        Developer = "developer",
        User = "user",
        Assistant = "assistant",
        Tool = "tool",
    }
}

payload! {
    /// A message of the system, of a developer or of the model.
    pub struct Message<'a> {
        /// Who speaks.
        role: Role<'a> = "role",
        /// What is said.
        content: Blocks<'a> = "content",
        /// Where it comes from.
        source: Source<'a> = "source",
        /// A UUID.
        id: JsonStr<'a> = "id",
    }
}

impl Message<'_> {
    /// The `text` blocks in one: of the last `assistant/message` of a run, this is the final response.
    #[must_use]
    pub fn text(&self) -> JsonString {
        self.content.text()
    }
}

payload! {
    /// A message to the model, from a person or from the runtime; the source tells.
    pub struct UserMessage<'a> {
        /// What is said.
        content: Blocks<'a> = "content",
        /// Where it comes from.
        source: Source<'a> = "source",
        /// [`Role::User`].
        role: Role<'a> = "role",
        /// A UUID; for a prompt, the `messageId` of its answer.
        id: JsonStr<'a> = "id",
    }
}

payload! {
    /// What a tool answered. Before 0.2.1 the role is `user`, and the answer one `tool-result` block.
    pub struct ToolMessage<'a> {
        /// [`Role::Tool`].
        role: Role<'a> = "role",
        /// [`Source::Tool`].
        source: Source<'a> = "source",
        /// Id of the call.
        tool_call_id: Option<JsonStr<'a>> = "toolCallId",
        /// The answer.
        content: Blocks<'a> = "content",
        /// Whether the call failed.
        is_error: Option<bool> = "isError",
        /// A UUID.
        id: JsonStr<'a> = "id",
    }
}

open_enum! {
    /// How a message of the runtime's own is meant.
    pub enum Form {
        Instructions = "instructions",
        Catalog = "catalog",
        Snapshot = "snapshot",
        Notice = "notice",
        Relay = "relay",
        Recall = "recall",
    }
}

payload! {
    /// One section of a snapshot.
    pub struct Section<'a> {
        /// Heading.
        name: JsonStr<'a> = "name",
        /// Body.
        text: JsonStr<'a> = "text",
    }
}

tagged! {
    /// Where a message comes from. The set is open: plugins add their own.
    pub enum Source by "kind" {
        /// A person, through a client.
        User {
            /// The client's id of the request.
            rpc_id: Option<JsonStr<'a>> = "rpcId",
            /// Where the client is.
            client_time_zone: Option<JsonStr<'a>> = "clientTimeZone",
            /// In whose name.
            principal: Option<Json<'a>> = "principal",
        } = "user",
        /// The model.
        Model {
            /// Provider of the model.
            provider: JsonStr<'a> = "provider",
            /// The model.
            model: JsonStr<'a> = "model",
            /// What the provider wants back with the next call.
            replay_state: Option<Lazy<'a, ReplayState<'a>>> = "replayState",
        } = "model",
        /// A tool.
        Tool {
            /// Id of the call.
            call_id: JsonStr<'a> = "callId",
        } = "tool",
        /// The runtime's instructions.
        SystemPrompt = "system-prompt",
        /// What the runtime tells the model about the world.
        RuntimeContext {
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
        } = "runtime-context",
        /// The session's directory has changed.
        WorkingDirectory = "working-directory",
        /// A sub-agent has finished.
        SubagentSettled {
            /// [`Form::Notice`].
            form: Form<'a> = "form",
            /// In one line.
            summary: JsonStr<'a> = "summary",
            /// Session of the sub-agent.
            sender_session_id: JsonStr<'a> = "senderSessionId",
        } = "subagent-settled",
        /// Another agent has sent a message.
        AgentMessage {
            /// [`Form::Relay`].
            form: Form<'a> = "form",
            /// Session of the other agent.
            sender_session_id: JsonStr<'a> = "senderSessionId",
        } = "agent-message",
        /// Background jobs have news.
        ToolJobs {
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
        } = "tool-jobs",
        /// A round of work on a goal.
        Goal {
            /// The goal.
            goal_id: JsonStr<'a> = "goalId",
            /// Revision of the goal.
            revision: u64 = "revision",
            /// Number of the round.
            round: u64 = "round",
            /// In old logs, the change of the goal.
            change: Option<Json<'a>> = "change",
        } = "goal",
        /// The model was switched.
        ModelSelection {
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
        } = "model-selection",
        /// The rules of approval have changed.
        UserApproval {
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
        } = "user-approval",
        /// Plan mode was switched.
        PlanMode {
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
        } = "plan-mode",
        /// A schedule is due.
        Schedule {
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
        } = "schedule",
        /// A plugin; before 0.2.1, which has a kind for each.
        Plugin {
            /// Name of the plugin.
            plugin: JsonStr<'a> = "plugin",
            /// How it is meant.
            form: Option<Form<'a>> = "form",
            /// With [`Form::Snapshot`].
            sections: Option<List<'a, Section<'a>>> = "sections",
            /// With [`Form::Notice`].
            summary: Option<JsonStr<'a>> = "summary",
            /// The compaction that made the message.
            compaction_id: Option<JsonStr<'a>> = "compactionId",
            /// The command that asked for it.
            source_command_id: Option<JsonStr<'a>> = "sourceCommandId",
        } = "plugin",
        /// A compaction: what stands for the messages that it replaced.
        CompactCheckpoint {
            /// The compaction.
            compaction_id: JsonStr<'a> = "compactionId",
            /// The command that asked for it.
            source_command_id: Option<JsonStr<'a>> = "sourceCommandId",
        } = "compact-checkpoint",
        /// Nested tool dispatch was switched.
        PtcMode = "ptc-mode",
        /// The set of tools has changed.
        ToolRegistry = "tool-registry",
        /// A skill was invoked.
        SkillInvocation {
            /// Name of the skill.
            name: JsonStr<'a> = "name",
            /// [`Form::Instructions`].
            form: Form<'a> = "form",
        } = "skill-invocation",
        /// The skills that there are.
        SkillCatalog {
            /// [`Form::Catalog`].
            form: Form<'a> = "form",
            /// The skills.
            entries: List<'a, SkillEntry<'a>> = "entries",
            /// `true` where it replaces an earlier one.
            update: Option<bool> = "update",
        } = "skill-catalog",
        /// A member of a team has written.
        TeamMessage {
            /// The team.
            team_id: JsonStr<'a> = "teamId",
            /// Id of the message in the team.
            message_id: JsonStr<'a> = "messageId",
            /// Session of the sender.
            sender_id: JsonStr<'a> = "senderId",
            /// Name of the sender.
            sender_name: JsonStr<'a> = "senderName",
        } = "team-message",
        /// A person has answered a question of the model.
        UserQuestionReply {
            /// The call that asked.
            call_id: JsonStr<'a> = "callId",
            /// `answered`.
            outcome: JsonStr<'a> = "outcome",
        } = "user-question-reply",
        /// Parts of other sessions.
        SessionReference {
            /// [`Form::Recall`].
            form: Form<'a> = "form",
            /// Version of this shape.
            version: u64 = "version",
            /// The parts.
            references: List<'a, SessionReference<'a>> = "references",
        } = "session-reference",
        /// Something outside has called.
        Webhook {
            /// Who.
            provider: JsonStr<'a> = "provider",
            /// Which source of theirs.
            source: JsonStr<'a> = "source",
            /// Their id of the call.
            delivery_id: JsonStr<'a> = "deliveryId",
            /// The rule that let it in.
            rule_id: JsonStr<'a> = "ruleId",
            /// [`Form::Notice`].
            form: Form<'a> = "form",
            /// In one line.
            summary: JsonStr<'a> = "summary",
        } = "webhook",
        /// The agent above; before 0.2.1.
        Coordinator {
            /// [`Form::Relay`].
            form: Form<'a> = "form",
            /// Its session.
            sender_session_id: JsonStr<'a> = "senderSessionId",
        } = "coordinator",
        /// An agent below; before 0.2.1.
        SubagentReport {
            /// [`Form::Relay`].
            form: Form<'a> = "form",
            /// Its session.
            sender_session_id: JsonStr<'a> = "senderSessionId",
        } = "subagent-report",
        /// Instruction files have changed; before 0.2.1.
        AgentInstructions {
            /// [`Form::Instructions`].
            form: Form<'a> = "form",
            /// The changes.
            changes: List<'a, InstructionChange<'a>> = "changes",
            /// `true` for the first of a session.
            baseline: Option<bool> = "baseline",
            /// Digest of the first.
            baseline_identity: Option<JsonStr<'a>> = "baselineIdentity",
        } = "agent-instructions",
    }
}

payload! {
    /// One skill in a catalog.
    pub struct SkillEntry<'a> {
        /// Its name.
        name: JsonStr<'a> = "name",
        /// What it is for.
        description: JsonStr<'a> = "description",
    }
}

payload! {
    /// One change of an instruction file.
    pub struct InstructionChange<'a> {
        /// `set`, `replace` or `remove`.
        action: JsonStr<'a> = "action",
        /// Where it applies.
        scope: JsonStr<'a> = "scope",
        /// The file.
        path: JsonStr<'a> = "path",
        /// Digest of its text.
        digest: Option<JsonStr<'a>> = "digest",
    }
}

payload! {
    /// One part of another session.
    pub struct SessionReference<'a> {
        /// The other session.
        session_id: JsonStr<'a> = "sessionId",
        /// Its name for people.
        label: JsonStr<'a> = "label",
        /// Format of its log.
        captured_format_version: Option<u64> = "capturedFormatVersion",
        /// The last event looked at.
        captured_through_seq: Nullable<u64> = "capturedThroughSeq",
        /// Whether it is a summary.
        compacted: bool = "compacted",
        /// Messages there.
        original_messages: u64 = "originalMessages",
        /// Messages taken over.
        retained_messages: u64 = "retainedMessages",
        /// Messages left out.
        omitted_messages: u64 = "omittedMessages",
        /// Bytes left out.
        omitted_bytes: u64 = "omittedBytes",
        /// Whether anything was left out.
        truncated: bool = "truncated",
        /// Position in the list.
        input_index: u64 = "inputIndex",
    }
}

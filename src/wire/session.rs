//! Data of the events about the session as a whole: its name, place, rules and feedback.

use super::List;
use super::message::UserMessage;
use crate::json::{Json, JsonStr};

payload! {
    /// `session/title`.
    pub struct SessionTitle<'a> {
        /// The name.
        title: JsonStr<'a> = "title",
        /// The messages that it was made from.
        message_seqs: List<'a, u64> = "messageSeqs",
        /// What made it.
        source: TitleSource<'a> = "source",
    }
}

tagged! {
    /// What has named a session.
    pub enum TitleSource by "kind" {
        /// The runtime: the beginning of the first prompt.
        Fallback = "fallback",
        /// A plugin.
        Provider {
            /// Which.
            provider: JsonStr<'a> = "provider",
            /// The model that it asked.
            model: Option<ModelRoute<'a>> = "model",
        } = "provider",
        /// A person.
        User = "user",
    }
}

payload! {
    /// A model and who provides it.
    pub struct ModelRoute<'a> {
        /// Provider of the model.
        provider: JsonStr<'a> = "provider",
        /// The model.
        model: JsonStr<'a> = "model",
    }
}

payload! {
    /// `session/title-llm-request`.
    pub struct SessionTitleLlmRequest<'a> {
        /// The plugin that asks.
        title_provider: JsonStr<'a> = "titleProvider",
        /// The messages that the name is made from.
        message_seqs: List<'a, u64> = "messageSeqs",
        /// The model that is asked.
        route: ModelRoute<'a> = "route",
        /// Its instructions.
        system: JsonStr<'a> = "system",
        /// What it is asked.
        messages: List<'a, UserMessage<'a>> = "messages",
        /// Limit of the tokens that it may write.
        max_tokens: u64 = "maxTokens",
    }
}

payload! {
    /// `session/end-seed`.
    #[derive(Copy, Eq)]
    pub struct SessionEndSeed {
        /// `true` where the events so far are another session's.
        inherited: Option<bool> = "inherited",
    }
}

payload! {
    /// `session-log-deepseek/delivery-accepted`.
    pub struct DeliveryAccepted<'a> {
        /// The session.
        session_id: JsonStr<'a> = "sessionId",
        /// Format of the log.
        session_format_version: Option<u64> = "sessionFormatVersion",
        /// The last event that was accepted.
        through_seq: u64 = "throughSeq",
    }
}

payload! {
    /// `working-directory/change`.
    pub struct WorkingDirectoryChange<'a> {
        /// The absolute path.
        cwd: JsonStr<'a> = "cwd",
    }
}

payload! {
    /// `permission/preset`.
    pub struct PermissionPreset<'a> {
        /// Name of the set of rules.
        preset: JsonStr<'a> = "preset",
    }
}

payload! {
    /// `sandbox/mode`.
    pub struct SandboxModeData<'a> {
        /// What the sandbox allows.
        mode: SandboxMode<'a> = "mode",
        /// `delegation` where the agent above has set it.
        source: Option<JsonStr<'a>> = "source",
    }
}

open_enum! {
    /// What the sandbox allows.
    pub enum SandboxMode {
        ReadOnly = "read-only",
        WorkspaceWrite = "workspace-write",
        DangerFullAccess = "danger-full-access",
    }
}

payload! {
    /// `approval/policy`.
    pub struct ApprovalPolicyData<'a> {
        /// When to ask a person.
        policy: ApprovalPolicy<'a> = "policy",
        /// `delegation` where the agent above has set it.
        source: Option<JsonStr<'a>> = "source",
    }
}

open_enum! {
    /// When to ask a person.
    pub enum ApprovalPolicy {
        Ask = "ask",
        Never = "never",
    }
}

payload! {
    /// `approval/asked`.
    pub struct ApprovalAsked<'a> {
        /// Id of the question.
        id: JsonStr<'a> = "id",
        /// The tool that wants to do something.
        tool_name: JsonStr<'a> = "toolName",
        /// The call of it.
        call_id: Option<JsonStr<'a>> = "callId",
        /// What it wants.
        reason: Option<JsonStr<'a>> = "reason",
    }
}

payload! {
    /// `approval/decided`.
    pub struct ApprovalDecided<'a> {
        /// Id of the question.
        id: JsonStr<'a> = "id",
        /// The answer.
        outcome: ApprovalOutcome<'a> = "outcome",
    }
}

open_enum! {
    /// The answer to a question for approval.
    pub enum ApprovalOutcome {
        AllowedOnce = "allowed-once",
        Rejected = "rejected",
        Cancelled = "cancelled",
        /// Nobody is there to ask.
        Unavailable = "unavailable",
    }
}

payload! {
    /// `model/selection`.
    pub struct ModelSelection<'a> {
        /// Provider of the model.
        provider: JsonStr<'a> = "provider",
        /// The model.
        model: JsonStr<'a> = "model",
        /// How much the model thinks.
        reasoning_effort: Option<JsonStr<'a>> = "reasoningEffort",
    }
}

payload! {
    /// `agent-preset/selected`.
    pub struct AgentPresetSelected<'a> {
        /// Name of the preset.
        agent_preset: JsonStr<'a> = "agentPreset",
    }
}

payload! {
    /// `plan/mode`.
    #[derive(Copy, Eq)]
    pub struct PlanMode {
        /// Whether the agent plans and does nothing else.
        active: bool = "active",
    }
}

payload! {
    /// `command/run`.
    pub struct CommandRun<'a> {
        /// Id of the run.
        command_id: JsonStr<'a> = "commandId",
        /// Name of the command.
        name: JsonStr<'a> = "name",
        /// What was written after the name.
        args: Option<JsonStr<'a>> = "args",
        /// Who runs it.
        source: CommandSource<'a> = "source",
    }
}

tagged! {
    /// Who runs a command.
    pub enum CommandSource by "kind" {
        /// A person.
        User = "user",
    }
}

payload! {
    /// `command/done`.
    pub struct CommandDone<'a> {
        /// Id of the run.
        command_id: JsonStr<'a> = "commandId",
        /// How it went.
        kind: CommandOutcome<'a> = "kind",
        /// What it has to say.
        text: Option<JsonStr<'a>> = "text",
        /// The event that it refers to.
        source_event_seq: Option<u64> = "sourceEventSeq",
    }
}

open_enum! {
    /// How a command went.
    pub enum CommandOutcome {
        Success = "success",
        Error = "error",
    }
}

payload! {
    /// `hook/invoked`.
    pub struct HookInvoked<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Where it hooks in.
        point: JsonStr<'a> = "point",
        /// Whose rules it follows: `claude-code` or `codex`.
        dialect: JsonStr<'a> = "dialect",
        /// What it was chosen by.
        matcher: Option<JsonStr<'a>> = "matcher",
        /// Which hook.
        handler_id: JsonStr<'a> = "handlerId",
    }
}

payload! {
    /// `hook/result`.
    pub struct HookResult<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Where it hooks in.
        point: JsonStr<'a> = "point",
        /// Which hook.
        handler_id: JsonStr<'a> = "handlerId",
        /// What it says.
        decision: JsonStr<'a> = "decision",
        /// How long it took, in milliseconds.
        duration_ms: f64 = "durationMs",
        /// Exit code of its process.
        exit_code: Option<i64> = "exitCode",
        /// What its process wrote to stderr, in short.
        stderr_summary: Option<JsonStr<'a>> = "stderrSummary",
    }
}

payload! {
    /// `feedback/record`.
    pub struct FeedbackRecord<'a> {
        /// In the person's words.
        text: Option<JsonStr<'a>> = "text",
        /// What it is about.
        category: Option<JsonStr<'a>> = "category",
    }
}

payload! {
    /// `feedback/message-put`.
    pub struct FeedbackMessagePut<'a> {
        /// The session.
        session_id: JsonStr<'a> = "sessionId",
        /// The feedback.
        item: FeedbackItem<'a> = "item",
    }
}

payload! {
    /// What a person thinks of a message.
    pub struct FeedbackItem<'a> {
        /// The message.
        message_id: JsonStr<'a> = "messageId",
        /// `positive` or `negative`.
        rating: JsonStr<'a> = "rating",
        /// In the person's words.
        note: Option<JsonStr<'a>> = "note",
        /// What it is about.
        category: Option<JsonStr<'a>> = "category",
        /// Changes with each change.
        version: JsonStr<'a> = "version",
        /// Unix time in milliseconds.
        created_at: u64 = "createdAt",
        /// Unix time in milliseconds.
        updated_at: u64 = "updatedAt",
    }
}

payload! {
    /// `feedback/message-delete`.
    pub struct FeedbackMessageDelete<'a> {
        /// The session.
        session_id: JsonStr<'a> = "sessionId",
        /// The message.
        message_id: JsonStr<'a> = "messageId",
    }
}

payload! {
    /// `web/deepseek-search-llm-request`.
    pub struct WebSearchRequest<'a> {
        /// Where it went.
        endpoint: JsonStr<'a> = "endpoint",
        /// Version of the interface there.
        api_version: JsonStr<'a> = "apiVersion",
        /// What was sent; its shape is that interface's.
        body: Json<'a> = "body",
    }
}

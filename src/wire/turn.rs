//! Data of the events inside a turn: inbox, steps, messages, tools, model calls.

use super::message::{Message, ToolMessage, UserMessage};
use super::stream::{Failure, StreamChunk, StreamRecord, TokenUsage};
use super::{Blocks, List, Nullable};
use crate::json::{Json, JsonStr, JsonString};

payload! {
    /// `agent/inbox/spliced`: messages went into the inbox or came out of it. The one that inserts a prompt is its
    /// receipt, and comes before the answer to the prompt.
    pub struct InboxSpliced<'a> {
        /// Which queue.
        target: InboxTarget<'a> = "target",
        /// Position in the queue.
        start: u64 = "start",
        /// How many messages came out there.
        removed_count: Option<u64> = "removedCount",
        /// The messages that went in there.
        inserted: List<'a, UserMessage<'a>> = "inserted",
        /// `canceled` where messages were dropped.
        outcome: Option<JsonStr<'a>> = "outcome",
    }
}

impl<'a> InboxSpliced<'a> {
    /// The ids of the inserted messages, without a look at the rest of them.
    pub fn inserted_ids(&self) -> impl Iterator<Item = JsonStr<'a>> {
        self.inserted.json().elements().filter_map(|message| message.member("id").and_then(Json::as_str))
    }
}

open_enum! {
    /// When the messages of a queue are taken up.
    pub enum InboxTarget {
        NextTurn = "next-turn",
        NextStep = "next-step",
    }
}

payload! {
    /// `turn/start`, and other data that only names a turn.
    #[derive(Copy, Eq)]
    pub struct TurnStart {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
    }
}

payload! {
    /// `turn/end`.
    pub struct TurnEnd<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Why it is over.
        reason: TurnEndReason<'a> = "reason",
    }
}

impl<'a> TurnEnd<'a> {
    /// The kind of the reason: of the last turn of a run, this is the finish reason.
    #[must_use]
    pub fn finish_reason(&self) -> Option<JsonStr<'a>> {
        self.reason.tag()
    }
}

tagged! {
    /// Why a turn is over.
    pub enum TurnEndReason by "kind" {
        /// The model has said all.
        Completed = "completed",
        /// The answer was cut at the limit of tokens.
        MaxTokens = "max-tokens",
        /// It failed.
        Error {
            /// Why.
            error: Failure<'a> = "error",
        } = "error",
        /// Somebody has ended it.
        Aborted {
            /// Who.
            reason: AbortCause<'a> = "reason",
        } = "aborted",
        /// The runtime died; in the stored log only.
        Interrupted = "interrupted",
        /// A hook has held it up.
        Blocked = "blocked",
        /// The session was forked here.
        Forked = "forked",
    }
}

tagged! {
    /// Who has ended a turn.
    pub enum AbortCause by "kind" {
        /// A person.
        User = "user",
        /// The agent above.
        Parent = "parent",
        /// The runtime, on its way down.
        Disposed = "disposed",
        /// A hook.
        Hook {
            /// Why.
            reason: JsonStr<'a> = "reason",
        } = "hook",
        /// An old log does not tell.
        Legacy = "legacy",
    }
}

payload! {
    /// `step/start` and `step/end`.
    #[derive(Copy, Eq)]
    pub struct Step {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
    }
}

payload! {
    /// `system/message` and `developer/message`.
    pub struct StepMessage<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// The message.
        message: Message<'a> = "message",
        /// The `request/header` event that it goes with.
        header_seq: Option<u64> = "headerSeq",
    }
}

payload! {
    /// `assistant/message`.
    pub struct AssistantMessage<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// The message.
        message: Message<'a> = "message",
        /// The tokens that it took.
        usage: Option<TokenUsage> = "usage",
        /// How the message came, piece by piece. From 0.2.1.
        stream: Option<List<'a, StreamRecord<'a>>> = "stream",
        /// `true` where it was cut short.
        interrupted: Option<bool> = "interrupted",
    }
}

impl AssistantMessage<'_> {
    /// The `text` blocks in one: of the last one of a run, this is the final response.
    #[must_use]
    pub fn text(&self) -> JsonString {
        self.message.text()
    }
}

payload! {
    /// `assistant/attempt`.
    pub struct AssistantAttempt<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// What came before it failed.
        stream: List<'a, StreamRecord<'a>> = "stream",
    }
}

payload! {
    /// `assistant/chunk`, before 0.2.1.
    pub struct AssistantChunk<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// What came.
        chunk: StreamChunk<'a> = "chunk",
    }
}

payload! {
    /// `tool/call`.
    pub struct ToolCall<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// Id of the call.
        call_id: JsonStr<'a> = "callId",
        /// Name of the tool.
        name: JsonStr<'a> = "name",
        /// The arguments: a JSON text inside a string, as the model wrote it.
        arguments: JsonStr<'a> = "arguments",
    }
}

payload! {
    /// `tool/result`.
    pub struct ToolResult<'a> {
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// The answer, as the model sees it.
        message: ToolMessage<'a> = "message",
        /// What went wrong.
        error: Option<ToolError<'a>> = "error",
        /// What the tool has to say to programs; its shape is the tool's.
        meta: Option<Json<'a>> = "meta",
    }
}

payload! {
    /// What went wrong in a tool.
    pub struct ToolError<'a> {
        /// Such as `ToolNotFoundError`.
        name: JsonStr<'a> = "name",
        /// Such as `UNKNOWN_TOOL`.
        code: JsonStr<'a> = "code",
        /// More about it.
        reason: Option<JsonStr<'a>> = "reason",
    }
}

payload! {
    /// `tool/ptc-dispatch-start`, and `tool/code-dispatch-start` before 0.2.1.
    pub struct ToolDispatchStart<'a> {
        /// The call of the model that it began with.
        root_call_id: JsonStr<'a> = "rootCallId",
        /// The call that has made this one.
        parent_call_id: JsonStr<'a> = "parentCallId",
        /// Id of this call.
        sub_call_id: JsonStr<'a> = "subCallId",
        /// Name of the tool.
        name: JsonStr<'a> = "name",
        /// The arguments, whose shape is the tool's.
        arguments: Json<'a> = "arguments",
    }
}

payload! {
    /// `tool/ptc-dispatch`, and `tool/code-dispatch` before 0.2.1.
    pub struct ToolDispatch<'a> {
        /// The call of the model that it began with.
        root_call_id: JsonStr<'a> = "rootCallId",
        /// The call that has made this one.
        parent_call_id: JsonStr<'a> = "parentCallId",
        /// Id of this call.
        sub_call_id: JsonStr<'a> = "subCallId",
        /// Name of the tool.
        name: JsonStr<'a> = "name",
        /// The arguments, whose shape is the tool's.
        arguments: Json<'a> = "arguments",
        /// Whether the call failed.
        is_error: bool = "isError",
        /// The answer.
        content: Blocks<'a> = "content",
        /// What the tool has to say to programs.
        meta: Option<Json<'a>> = "meta",
        /// What went wrong.
        error: Option<ToolError<'a>> = "error",
    }
}

payload! {
    /// `request/header`.
    pub struct RequestHeader<'a> {
        /// What stands before the messages.
        header: Header<'a> = "header",
        /// Why it was written.
        reason: HeaderReason<'a> = "reason",
        /// `true` where a new series of calls begins.
        starts_series: Option<bool> = "startsSeries",
    }
}

open_enum! {
    /// Why a header was written.
    pub enum HeaderReason {
        Initial = "initial",
        Resume = "resume",
        Series = "series",
        Change = "change",
    }
}

payload! {
    /// What stands before the messages in a model call.
    pub struct Header<'a> {
        /// How the model is called.
        config: CallConfig<'a> = "config",
        /// Which parts of that the adapter has chosen.
        adapter_defaults: Option<AdapterDefaults> = "adapterDefaults",
        /// The instructions; before 0.2.1, which has the event `system/message`.
        system: Option<JsonStr<'a>> = "system",
        /// The tools that the model may use.
        tools: Option<List<'a, ToolSchema<'a>>> = "tools",
    }
}

payload! {
    /// How a model is called.
    pub struct CallConfig<'a> {
        /// Provider of the model.
        provider: JsonStr<'a> = "provider",
        /// The model.
        model: JsonStr<'a> = "model",
        /// Limit of the tokens that one call may write.
        max_tokens: Option<u64> = "maxTokens",
        /// How much the model thinks.
        reasoning_effort: Option<JsonStr<'a>> = "reasoningEffort",
        /// How free the model is in its choice.
        temperature: Option<f64> = "temperature",
        /// Texts at which the model stops.
        stop: Option<List<'a, JsonStr<'a>>> = "stop",
    }
}

payload! {
    /// Which parts of a [`CallConfig`] the adapter has chosen; each is `true` or absent.
    #[derive(Copy, Eq)]
    pub struct AdapterDefaults {
        /// The effort.
        reasoning_effort: Option<bool> = "reasoningEffort",
        /// The limit.
        max_tokens: Option<bool> = "maxTokens",
    }
}

payload! {
    /// A tool, as the model is told of it.
    pub struct ToolSchema<'a> {
        /// Its name.
        name: JsonStr<'a> = "name",
        /// What it is for.
        description: JsonStr<'a> = "description",
        /// JSON schema of the arguments.
        parameters: Json<'a> = "parameters",
        /// `true` where it is told only when needed.
        defer_loading: Option<bool> = "deferLoading",
    }
}

payload! {
    /// `request/context`.
    pub struct RequestContext<'a> {
        /// Provider of the model.
        provider: JsonStr<'a> = "provider",
        /// The model.
        model: JsonStr<'a> = "model",
        /// How many tokens it can see.
        context_window: Option<u64> = "contextWindow",
        /// `in-history` where instructions may change in mid-conversation.
        system_prompt_update: Option<JsonStr<'a>> = "systemPromptUpdate",
    }
}

payload! {
    /// `llm/retry`.
    pub struct LlmRetry<'a> {
        /// Id of the retry.
        retry_id: JsonStr<'a> = "retryId",
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// Provider of the model.
        provider: JsonStr<'a> = "provider",
        /// `normal`, or `always`, which has no limit.
        mode: JsonStr<'a> = "mode",
        /// The rule that applies.
        policy_key: JsonStr<'a> = "policyKey",
        /// Number of the retry, from 1.
        retry: u64 = "retry",
        /// How many there may be.
        max_retries: Option<u64> = "maxRetries",
        /// The wait before it, in milliseconds; not a whole number.
        delay_ms: f64 = "delayMs",
        /// What went wrong.
        failure: Failure<'a> = "failure",
    }
}

payload! {
    /// `llm/retry-started`.
    pub struct LlmRetryStarted<'a> {
        /// Id of the retry.
        retry_id: JsonStr<'a> = "retryId",
        /// Number of the turn, from 1.
        turn: u64 = "turn",
        /// Number of the step in the turn, from 1.
        step: u64 = "step",
        /// Number of the retry, from 1.
        retry: u64 = "retry",
    }
}

payload! {
    /// `compaction/start` and `compaction/end`.
    pub struct Compaction<'a> {
        /// Id of the compaction.
        compaction_id: JsonStr<'a> = "compactionId",
        /// The command that asked for it.
        source_command_id: Option<JsonStr<'a>> = "sourceCommandId",
        /// The turn that it is in, if any.
        turn: Nullable<u64> = "turn",
        /// At the end: what went wrong.
        error: Option<JsonStr<'a>> = "error",
    }
}

payload! {
    /// `compaction/summary`.
    pub struct CompactionSummary<'a> {
        /// Id of the compaction.
        compaction_id: JsonStr<'a> = "compactionId",
        /// The command that asked for it.
        source_command_id: Option<JsonStr<'a>> = "sourceCommandId",
        /// The summary.
        summary: Blocks<'a> = "summary",
        /// First and last of the events that it stands for.
        shadowed_range: SeqRange = "shadowedRange",
        /// All of them.
        shadowed_seqs: List<'a, u64> = "shadowedSeqs",
        /// How many tokens they had.
        shadowed_token_count: u64 = "shadowedTokenCount",
        /// Provider of the model that wrote it.
        provider: JsonStr<'a> = "provider",
        /// That model.
        model: JsonStr<'a> = "model",
        /// Limit of the tokens that it may have.
        max_tokens: Option<u64> = "maxTokens",
        /// The tokens that it took.
        usage: Option<TokenUsage> = "usage",
        /// What the model wrote, as it wrote it.
        raw_output: Option<Blocks<'a>> = "rawOutput",
        /// `true` where it was a model call of its own.
        llm_stream_call: Option<bool> = "llmStreamCall",
    }
}

payload! {
    /// `compaction/prune`.
    pub struct CompactionPrune<'a> {
        /// First and last of the events that are no longer shown.
        shadowed_range: SeqRange = "shadowedRange",
        /// All of them.
        shadowed_seqs: List<'a, u64> = "shadowedSeqs",
        /// How many tokens they had.
        shadowed_token_count: u64 = "shadowedTokenCount",
    }
}

payload! {
    /// First and last of a range of events.
    #[derive(Copy, Eq)]
    pub struct SeqRange {
        /// The first.
        start: u64 = "start",
        /// The last.
        end: u64 = "end",
    }
}

payload! {
    /// `image/offload`.
    pub struct ImageOffload<'a> {
        /// Which images.
        targets: List<'a, ImageOffloadTarget<'a>> = "targets",
    }
}

payload! {
    /// Images of one event.
    pub struct ImageOffloadTarget<'a> {
        /// The event.
        seq: u64 = "seq",
        /// Which images of it.
        image_indexes: List<'a, u64> = "imageIndexes",
    }
}

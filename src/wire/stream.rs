//! What the model sent: stream records and chunks, token usage, how the call ended.

use super::{Block, Lazy, List};
use crate::json::{Json, JsonStr};

tagged! {
    /// One record of the `stream` member of `assistant/message` and `assistant/attempt`: the deltas of the model with
    /// their times, run together where they are of one kind.
    pub enum StreamRecord by "type" {
        /// Pieces of a text block.
        TextChunks {
            /// Unix time of the first piece, in milliseconds.
            time0: u64 = "time0",
            /// Index of the block in the message.
            index: u64 = "index",
            /// Milliseconds between the pieces; one less than there are pieces.
            dt: List<'a, i64> = "dt",
            /// The pieces.
            texts: List<'a, JsonStr<'a>> = "texts",
        } = "text-chunks",
        /// Pieces of a reasoning block.
        ReasoningChunks {
            /// Unix time of the first piece, in milliseconds.
            time0: u64 = "time0",
            /// Index of the block in the message.
            index: u64 = "index",
            /// Milliseconds between the pieces; one less than there are pieces.
            dt: List<'a, i64> = "dt",
            /// The pieces.
            texts: List<'a, JsonStr<'a>> = "texts",
        } = "reasoning-chunks",
        /// Pieces of the arguments of a tool call.
        ToolCallChunks {
            /// Unix time of the first piece, in milliseconds.
            time0: u64 = "time0",
            /// Index of the block in the message.
            index: u64 = "index",
            /// Milliseconds between the pieces; one less than there are pieces.
            dt: List<'a, i64> = "dt",
            /// Id of the call.
            id: JsonStr<'a> = "id",
            /// Name of the tool, in the first record of the call.
            name: Option<JsonStr<'a>> = "name",
            /// The pieces.
            args: List<'a, JsonStr<'a>> = "args",
        } = "tool-call-chunks",
        /// Anything else, one by one.
        Chunk {
            /// Unix time in milliseconds.
            time: u64 = "time",
            /// What came.
            chunk: StreamChunk<'a> = "chunk",
        } = "chunk",
    }
}

tagged! {
    /// One thing that the model sent. Before 0.2.1 each is an `assistant/chunk` event of its own.
    pub enum StreamChunk by "type" {
        /// A block begins.
        BlockStart {
            /// Index of the block in the message.
            index: u64 = "index",
            /// The `type` that the block will have.
            block_type: JsonStr<'a> = "blockType",
        } = "block-start",
        /// A piece of a text block.
        TextDelta {
            /// Index of the block in the message.
            index: u64 = "index",
            /// The piece.
            text: JsonStr<'a> = "text",
        } = "text-delta",
        /// A piece of a reasoning block.
        ReasoningDelta {
            /// Index of the block in the message.
            index: u64 = "index",
            /// The piece.
            text: JsonStr<'a> = "text",
        } = "reasoning-delta",
        /// A piece of the arguments of a tool call.
        ToolCallDelta {
            /// Index of the block in the message.
            index: u64 = "index",
            /// Id of the call.
            id: JsonStr<'a> = "id",
            /// Name of the tool, in the first piece.
            name: Option<JsonStr<'a>> = "name",
            /// The piece.
            arguments_delta: JsonStr<'a> = "argumentsDelta",
        } = "tool-call-delta",
        /// A block is complete.
        BlockEnd {
            /// Index of the block in the message.
            index: u64 = "index",
            /// The block.
            block: Lazy<'a, Block<'a>> = "block",
        } = "block-end",
        /// The tokens so far.
        Usage {
            /// The tokens.
            usage: TokenUsage = "usage",
        } = "usage",
        /// The call has ended.
        Finish {
            /// How.
            reason: FinishReason<'a> = "reason",
            /// What the provider wants back with the next call.
            replay_state: Option<Lazy<'a, ReplayState<'a>>> = "replayState",
        } = "finish",
    }
}

tagged! {
    /// How a model call ended.
    pub enum FinishReason by "kind" {
        /// The model has said all.
        Stop = "stop",
        /// The model waits for tools.
        ToolCalls = "tool-calls",
        /// The answer was cut at the limit of tokens.
        MaxTokens = "max-tokens",
        /// The call was given up on our side.
        Aborted {
            /// Why.
            failure: Failure<'a> = "failure",
        } = "aborted",
        /// The call failed.
        Error {
            /// Why.
            failure: Failure<'a> = "failure",
        } = "error",
    }
}

payload! {
    /// Why a model call or a turn failed.
    pub struct Failure<'a> {
        /// For people.
        message: JsonStr<'a> = "message",
        /// Such as `SERVER`, `RATE_LIMIT`, `TRANSPORT`, `AUTH`; the set is open.
        code: JsonStr<'a> = "code",
        /// HTTP status.
        status: Option<u64> = "status",
        /// How long the provider asks to wait, in milliseconds.
        provider_retry_after_ms: Option<f64> = "providerRetryAfterMs",
        /// The provider's id of the call.
        request_id: Option<JsonStr<'a>> = "requestId",
        /// How many images have to go before a retry can work.
        offload_images: Option<u64> = "offloadImages",
    }
}

payload! {
    /// The tokens of a model call.
    #[derive(Copy, Eq)]
    pub struct TokenUsage {
        /// Read by the model.
        input_tokens: u64 = "inputTokens",
        /// Written by the model.
        output_tokens: u64 = "outputTokens",
        /// Of those read, how many came out of the provider's cache.
        cache_read_tokens: Option<u64> = "cacheReadTokens",
        /// Of those read, how many went into the provider's cache.
        cache_write_tokens: Option<u64> = "cacheWriteTokens",
        /// Of those written, how many were reasoning.
        reasoning_tokens: Option<u64> = "reasoningTokens",
        /// Both together.
        total_tokens: Option<u64> = "totalTokens",
    }
}

impl TokenUsage {
    /// Of a call that used no cache.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cache_read_tokens: Some(0),
            cache_write_tokens: Some(0),
            reasoning_tokens: None,
            total_tokens: Some(input_tokens.saturating_add(output_tokens)),
        }
    }
}

payload! {
    /// What a provider wants back with the next call. The shape is the provider's; this is the official adapter's.
    pub struct ReplayState<'a> {
        /// About the answer as a whole.
        response: ReplayResponse<'a> = "response",
        /// One for each block of the message.
        blocks: Option<List<'a, ReplayBlock<'a>>> = "blocks",
    }
}

payload! {
    /// The part of a [`ReplayState`] about the answer as a whole.
    pub struct ReplayResponse<'a> {
        /// The protocol of the provider, such as `deepseek-messages`.
        kind: JsonStr<'a> = "kind",
        /// Version of this shape.
        version: Option<u64> = "version",
        /// The model that answered.
        model: Option<JsonStr<'a>> = "model",
    }
}

payload! {
    /// The part of a [`ReplayState`] about one block.
    pub struct ReplayBlock<'a> {
        /// The provider's name for the kind of block.
        kind: JsonStr<'a> = "type",
        /// The provider's signature of its text.
        signature: Option<Json<'a>> = "signature",
    }
}

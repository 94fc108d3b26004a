//! Names of attributes and operations out of the semantic conventions for generative AI, which have the status
//! "Development": <https://github.com/open-telemetry/semantic-conventions-genai>. Names that begin with `rondo.`
//! are our own.
//!
//! A span is named by its operation and what it is about, such as `chat gpt-4o`, where it is started: turns in
//! `turn.rs`, requests in `request.rs`, tool calls in `call.rs`.

use rondo_types::{FinishReason, Origin};

/// The version of the conventions that is written. They may still change, so a reader can tell.
pub const VERSION: &str = "1.42.0";
/// The schema that spans and metrics name: the conventions at [`VERSION`].
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/1.42.0";
/// The value of `OTEL_SEMCONV_STABILITY_OPT_IN` that asks for what is written in any case: Rondo
/// never wrote an older form.
pub const OPT_IN: &str = "gen_ai_latest_experimental";

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const AGENT: &str = "gen_ai.agent.name";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";
pub(crate) const STATUS_CODE: &str = "http.response.status_code";

pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(crate) const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub(crate) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const OUTPUT_TYPE: &str = "gen_ai.output.type";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";

pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";

pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_DESCRIPTION: &str = "gen_ai.tool.description";

/// Content: written only if the program asks for it.
pub(crate) const SYSTEM: &str = "gen_ai.system_instructions";
pub(crate) const INPUT: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT: &str = "gen_ai.output.messages";
pub(crate) const TOOL_DEFINITIONS: &str = "gen_ai.tool.definitions";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

pub(crate) const TURN: &str = "rondo.turn.id";
pub(crate) const STOP_REASON: &str = "rondo.stop_reason";
pub(crate) const DEGRADED: &str = "rondo.degraded";
pub(crate) const STEPS: &str = "rondo.steps";
pub(crate) const TOOL_CALLS: &str = "rondo.tool_calls";
pub(crate) const COST: &str = "rondo.cost_usd";
pub(crate) const STEP: &str = "rondo.step";
pub(crate) const ATTEMPT: &str = "rondo.attempt";
pub(crate) const DELAY: &str = "rondo.delay_ms";

/// The operation of a turn.
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
/// The operation of a request to a model without a wire protocol, such as one in this process.
const CHAT: &str = "chat";
/// The operation of a tool call.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

/// Returns the operation of a model request.
pub(crate) fn operation(origin: &Origin) -> &'static str {
    let dialect = rondo_wire::dialect(&origin.dialect);
    dialect.map_or(CHAT, |dialect| dialect.operation())
}

/// Returns a provider's name in the conventions, or its own if they have none.
pub(crate) fn provider(origin: &Origin) -> String {
    let known = match origin.provider.as_str() {
        "google" | "gemini" => "gcp.gemini",
        "vertex" | "vertexai" => "gcp.vertex_ai",
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "mistral" => "mistral_ai",
        "moonshot" | "kimi" => "moonshot_ai",
        "xai" | "grok" => "x_ai",
        name => name,
    };
    known.to_owned()
}

/// Returns a finish reason in the conventions' words, if they have one.
pub(crate) fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::ToolCalls => "tool_call",
        other => other.as_str(),
    }
}

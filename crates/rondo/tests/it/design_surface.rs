//! Exports of each design.

use crate::surface::{examples, exported};

/// Names everything that a design's module exports, by using it.
macro_rules! surface {
    ($design:ident: $($name:ident),* $(,)?) => {
        mod $design {
            #[expect(unused_imports, reason = "that they are there is what is tested")]
            pub(crate) use rondo::design::$design::{$($name as _),*};
            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        }
    };
}

surface!(hub:
    AgentError, AgentLoop, AgentLoopEnd, CHAT_MESSAGES_MAX, ChatHub, Context, ContextBuilder, InboundMessage, LlmMessage, LlmProvider, LlmResponse, LlmRole, LlmToolCall, MAX_ITERATIONS, ModelProvider, OUTBOUND_CHARS_MAX, OutboundMessage, ProviderError, QUEUE_MESSAGES_MAX, SESSION_MESSAGES_MAX, Session, SessionManager, SevenLayers, ToolDefinition, ToolRegistry,
);
surface!(python:
    AgentAnswer, AgentConfig, AssistantCandidate, AssistantInput, AssistantMessage,
    AssistantOutput, AssistantPart, AssistantRole, BoundedDir, BoundedDoc, BoundedRepr,
    CapabilityError, CapabilityProvider, CapabilityResult, EvalResult, ExceptionInfo,
    FunctionDeclaration, GlobalInfo, LiveSession, LlmProvider, ModelProvider, ToolCallingMode,
    TypeInfo, function_declarations, run_question,
);
surface!(stream:
    AccumulatedToolCall, AccumulatedTurn, AgentConfig, AgentLoop, AgentLoopResult,
    ExecutedToolCall, FaeLlmError, FinishReason, LlmEvent, LlmEventStream, Message, ProviderAdapter,
    StopReason, StreamAccumulator, TokenUsage, ToolDefinition, ToolExecutor, ToolRegistry, ToolResult, ToolTiming,
    TurnResult,
    build_messages_from_result, validate_tool_args,
);
surface!(react: Agent, AgentEvent, EVENTS_WAITING_MAX, EventReader, LlmClient, TerminalContext, Tool);
surface!(shell:
    Agent, ChatMessage, ChatRole, ExecResult, FunctionCall, MessageError, ShellError, State,
    StreamEvent, StreamEventType, StreamTool, ToolCall, exec_tool_definition, execute_command,
);

#[test]
fn fa_35_each_design_exports_its_surface_with_examples_that_run() {
    let designs = [
        (
            hub::NAMES,
            include_str!("../../../rondo-designs/src/hub/mod.rs"),
        ),
        (
            python::NAMES,
            include_str!("../../../rondo-designs/src/python/mod.rs"),
        ),
        (
            stream::NAMES,
            include_str!("../../../rondo-designs/src/stream/mod.rs"),
        ),
        (
            react::NAMES,
            include_str!("../../../rondo-designs/src/react/mod.rs"),
        ),
        (
            shell::NAMES,
            include_str!("../../../rondo-designs/src/shell/mod.rs"),
        ),
    ];
    for (names, source) in designs {
        // That each name is exported is seen by the compiler; here each one that is, is on a list.
        let mut exported = exported(source);
        exported.sort();
        assert_eq!(exported, names);
        // Nothing behind the fence: it is compiled and run.
        assert_eq!(examples(source, "//! "), [""]);
    }
    let guide = include_str!("../../../../docs/designs.md");
    assert_eq!(examples(guide, ""), ["rust"; 5]);
    let front = include_str!("../../src/lib.rs");
    assert!(front.contains("include_str!(\"../../../docs/designs.md\")"));
}

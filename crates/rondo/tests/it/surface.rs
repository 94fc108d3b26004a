//! What the library exports.

use std::any::type_name;

/// Names every type and trait that the root exports, and says that they are `Send` and `Sync`.
macro_rules! surface {
    (types: $($ty:ident $(<$arg:ty>)?),*; traits: $($object:ident),*; functions: $($function:ident),*;) => {
        const NAMES: &[&str] = &[
            $(stringify!($ty),)* $(stringify!($object),)* $(stringify!($function),)*
        ];

        fn shareable() -> Vec<&'static str> {
            fn one<T: Send + Sync + ?Sized>() -> &'static str {
                type_name::<T>()
            }
            vec![$(one::<rondo::$ty $(<$arg>)?>(),)* $(one::<dyn rondo::$object>(),)*]
        }
    };
}

surface! {
    types: Agent, AgentBuilder, Approval, ApprovalQuestion, ApprovalQuestions, ApprovalRequest,
        Auth, Bounds, BuildError, CallId, CancellationToken, Endpoint, EventBody, EventReceiver,
        EventSender, FnTool, GateRequest, HttpModel, Limits, MemoryJournal, Message, ModelCard,
        ModelInfo, ModelRequest, NoArgs, NoJournal, OpenError, Outcome, OutputSink, Profile, Quirks, Run,
        Secret, Session, SessionId, StopReason, ToolContext, ToolErrorCode, ToolInvocation, ToolOutcome, ToolSpec,
        Toolbox, ToolboxError, Transcript, TurnControl, TurnError, TurnEvent, TurnHandle, TurnId,
        TurnSetup, Typed<String>, TypedError, Verdict;
    traits: Approver, Gate, Journal, Model, Tool;
    functions: approvals, control, run_turn, tool;
}

/// Modules, macros, and what cannot be a trait object or is no type.
const OTHERS: [&str; 13] = [
    "JsonSchema",
    "ModelStream",
    "async_trait",
    "design",
    "events",
    "http",
    "journal",
    "otel",
    "profiles",
    "python",
    "rondo_core",
    "schemars",
    "supervisor",
];

/// The crates that the library exports from.
const CRATES: [(&str, &str); 11] = [
    ("rondo", include_str!("../../src/lib.rs")),
    (
        "rondo-agent",
        include_str!("../../../rondo-agent/src/lib.rs"),
    ),
    ("rondo-core", include_str!("../../../rondo-core/src/lib.rs")),
    (
        "rondo-designs",
        include_str!("../../../rondo-designs/src/lib.rs"),
    ),
    ("rondo-exec", include_str!("../../../rondo-exec/src/lib.rs")),
    ("rondo-http", include_str!("../../../rondo-http/src/lib.rs")),
    (
        "rondo-policy",
        include_str!("../../../rondo-policy/src/lib.rs"),
    ),
    (
        "rondo-python",
        include_str!("../../../rondo-python/src/lib.rs"),
    ),
    (
        "rondo-tools",
        include_str!("../../../rondo-tools/src/lib.rs"),
    ),
    (
        "rondo-types",
        include_str!("../../../rondo-types/src/lib.rs"),
    ),
    ("rondo-wire", include_str!("../../../rondo-wire/src/lib.rs")),
];

#[test]
fn fa_35_the_surface_is_exported_documented_and_shareable() {
    // The list above compiles, so each name is exported; here each exported name is on the list.
    let unknown: Vec<String> = exported()
        .into_iter()
        .filter(|name| !NAMES.contains(&name.as_str()) && !OTHERS.contains(&name.as_str()))
        .filter(|name| name != "types")
        .collect();
    assert_eq!(
        unknown,
        Vec::<String>::new(),
        "exported, but not on the list"
    );
    assert!(shareable().len() > 50);
    // A public item without documentation is a warning, and warnings fail the build of a change.
    for (name, source) in CRATES {
        assert!(source.contains("#![warn(missing_docs)]"), "{name}");
    }
}

#[test]
fn fa_35_the_front_page_and_the_guide_have_examples_that_run() {
    let front = CRATES[0].1;
    let guide = include_str!("../../../../docs/library.md");
    assert!(front.matches("//! ```\n").count() >= 4);
    assert!(front.contains("include_str!(\"../../../docs/library.md\")"));
    assert!(guide.matches("```rust").count() >= 8);
    // The first example is an agent with a tool of its own, on one screen.
    let shown = shown_lines(front);
    assert!((10..=24).contains(&shown), "{shown} lines");
}

/// Returns the names after `pub use`, as they are known outside.
fn exported() -> Vec<String> {
    let source = CRATES[0].1;
    let uses = source.split("\npub use ").skip(1);
    uses.flat_map(|rest| {
        let path = rest.split(';').next().unwrap_or_default();
        let list = path.split_once('{').map_or(path, |(_, list)| list);
        let names = list.trim_end_matches('}').split(',');
        names
            .map(known_as)
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>()
    })
    .collect()
}

fn known_as(path: &str) -> String {
    let path = path.trim();
    let name = path.rsplit(" as ").next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or_default().to_owned()
}

/// Counts the lines of the first example that a reader sees.
fn shown_lines(front: &str) -> usize {
    let example = front.split("//! ```\n").nth(1).unwrap_or_default();
    let is_shown = |line: &&str| !line.starts_with("//! #") || line.starts_with("//! #[");
    example
        .lines()
        .filter(is_shown)
        .filter(|line| line.trim() != "//!")
        .count()
}

//! Exports of the library.

use std::any::type_name;
use std::fs;
use std::path::Path;

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
    types: Agent, AgentBuilder, RemainingLimits, Answer, AnswerValue, AskReason,
        Asker, Auth, Bounds, BuildError, CallId, CancellationToken, Endpoint, EventBody, EventReceiver,
        EventSender, FnTool, GateRequest, HttpModel, Limits, MemoryJournal, Message, ModelCard,
        ModelInfo, ModelRequest, NoArgs, NoJournal, NotAnswered, OpenError, Outcome, OutputSink, OutsideText, ParkedTurn, PendingQuestion, PendingQuestions, Profile, ProgressSink, Question, QuestionKind, QuestionReply, Quirks, Run,
        Secret, Session, SessionId, StopReason, StoreError, ToolContext, ToolErrorCode, ToolHints, ToolInvocation, ToolKind,
        ToolOutcome, ToolOutput, ToolProgress, ToolScope, ToolSpec,
        Toolbox, ToolboxError, Transcript, TurnControl, TurnEnd, TurnError, TurnEvent, TurnHandle, TurnId,
        TurnSetup, TypedAnswer<String>, TypedError, Verdict;
    traits: Approver, Gate, Interceptor, Journal, Model, Tool, ToolSource;
    functions: approvals, control, run_turn, tool;
}

/// Modules, macros, and what cannot be a trait object or is not a type.
const OTHERS: [&str; 14] = [
    "JsonSchema",
    "ModelStream",
    "async_trait",
    "design",
    "events",
    "journal",
    "memory",
    "otel",
    "profiles",
    "python",
    "rondo_core",
    "rondo_http",
    "schemars",
    "supervisor",
];

/// The crates that the library exports from.
const CRATES: [(&str, &str); 15] = [
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
        "rondo-journal",
        include_str!("../../../rondo-journal/src/lib.rs"),
    ),
    (
        "rondo-launch",
        include_str!("../../../rondo-launch/src/lib.rs"),
    ),
    ("rondo-otel", include_str!("../../../rondo-otel/src/lib.rs")),
    (
        "rondo-policy",
        include_str!("../../../rondo-policy/src/lib.rs"),
    ),
    (
        "rondo-python",
        include_str!("../../../rondo-python/src/lib.rs"),
    ),
    (
        "rondo-schema",
        include_str!("../../../rondo-schema/src/lib.rs"),
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
    let unknown: Vec<String> = exported(CRATES[0].1)
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

/// Names of the standard library's prelude, and of crates that programs with an agent often use.
const TAKEN: &[&str] = &[
    "Err",
    "Error",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "Fn",
    "From",
    "Future",
    "Into",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Result",
    "Send",
    "Some",
    "String",
    "Sync",
    "ToString",
    "TryFrom",
    "Vec",
    "anyhow",
    "bytes",
    "chrono",
    "drop",
    "futures",
    "http",
    "log",
    "rand",
    "regex",
    "reqwest",
    "serde",
    "serde_json",
    "thiserror",
    "tokio",
    "tracing",
    "url",
    "uuid",
];

#[test]
fn a_glob_import_shadows_no_name_of_the_prelude_and_no_common_crate() {
    let root = exported(CRATES[0].1);
    let modules = CRATES[0]
        .1
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "));
    let modules = modules.map(|line| line.trim_end_matches(" {").to_owned());
    let shadowed: Vec<String> = root
        .into_iter()
        .chain(modules)
        .filter(|name| TAKEN.contains(&name.as_str()))
        .collect();
    assert_eq!(shadowed, Vec::<String>::new());
}

/// The compiler's warning about names that a glob import would shadow is an error here.
mod glob {
    use rondo::*;

    pub(super) fn answered(text: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
        let message: Message = Message::user(text);
        Ok(Some(message.text()).filter(|text| !text.is_empty()))
    }
}

#[test]
fn the_standard_names_mean_the_same_behind_a_glob_import() {
    assert_eq!(glob::answered("hi").unwrap(), Some("hi".to_owned()));
}

#[test]
fn fa_35_the_front_page_and_the_guide_have_examples_that_run() {
    let front = CRATES[0].1;
    let guide = include_str!("../../../../docs/library.md");
    assert_eq!(examples(front, "//! "), ["", ""]);
    assert!(front.contains("include_str!(\"../../../docs/library.md\")"));
    let of_guide = examples(guide, "");
    let kinds = ["rust", "rust,no_run", "sh", "toml"];
    assert!(
        of_guide.iter().all(|kind| kinds.contains(kind)),
        "{of_guide:?}"
    );
    let programs = of_guide.iter().filter(|kind| kind.starts_with("rust"));
    assert!(programs.count() >= 8, "{of_guide:?}");
    // The first example is an agent with a tool of its own, on one screen.
    let shown = shown_lines(front);
    assert!((10..=24).contains(&shown), "{shown} lines");
}

/// Returns the names after `pub use`, as they are known outside.
pub(crate) fn exported(source: &str) -> Vec<String> {
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

/// Returns the text behind the opening of each example: nothing if it is compiled and run.
pub(crate) fn examples<'a>(source: &'a str, margin: &str) -> Vec<&'a str> {
    let fences = source
        .lines()
        .filter_map(|line| line.strip_prefix(margin)?.strip_prefix("```"));
    fences.step_by(2).collect()
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

/// Message to the model about a failed call: data, which nothing returns as an error.
const NO_ERROR: [&str; 1] = ["ToolError"];
/// Two designs have `anyhow` in the signatures of their own traits.
const THEIR_OWN: [&str; 2] = ["rondo-designs/src/python/", "rondo-designs/src/react/"];

#[test]
fn hub_19_errors_of_the_library_are_types_and_only_the_program_reports_with_anyhow() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut untyped = Vec::new();
    let mut types = 0;
    for path in sources(crates) {
        let source = fs::read_to_string(crates.join(&path)).unwrap();
        let code: Vec<&str> = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let may = THEIR_OWN.iter().any(|own| path.starts_with(own));
        if !may && code.iter().any(|line| line.contains("anyhow")) {
            untyped.push(format!("{path}: anyhow"));
        }
        for (at, line) in code.iter().enumerate() {
            let Some(name) = error_declared(line).filter(|name| !NO_ERROR.contains(name)) else {
                continue;
            };
            types += 1;
            // The text of an error may take lines of its own between.
            let above = &code[at.saturating_sub(5)..at];
            if !above.iter().any(|line| line.contains("thiserror::Error")) {
                untyped.push(format!("{path}: {name}"));
            }
        }
    }
    assert_eq!(untyped, Vec::<String>::new());
    assert!(types > 25, "{types}");
    let uses_anyhow = |name: &String| {
        let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dev-dependencies]").next();
        dependencies.unwrap().contains("anyhow.workspace")
    };
    let mut with_anyhow = directories(crates);
    with_anyhow.retain(uses_anyhow);
    assert_eq!(with_anyhow, ["rondo-cli", "rondo-designs"]);
}

/// Returns the name of a public type of errors, if a line declares one.
fn error_declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line
        .strip_prefix("pub enum ")
        .or_else(|| line.strip_prefix("pub struct "))?;
    let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    name.ends_with("Error").then_some(name)
}

/// Returns the libraries' source files, by their paths below `crates`.
fn sources(crates: &Path) -> Vec<String> {
    let libraries = directories(crates).into_iter();
    let libraries =
        libraries.filter(|name| !["rondo-cli", "rondo-testkit"].contains(&name.as_str()));
    let mut open: Vec<_> = libraries
        .map(|name| crates.join(name).join("src"))
        .collect();
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path.strip_prefix(crates).unwrap().display().to_string());
            }
        }
    }
    found
}

fn directories(crates: &Path) -> Vec<String> {
    let entries = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().display().to_string())
        .collect();
    names.sort();
    names
}

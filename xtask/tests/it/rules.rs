//! Words that only some files may hold.

use crate::rust_text;
use crate::tree;

/// Which text of a file a rule reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Code without comments, strings and test modules.
    Code,
    /// Code and strings, without comments and test modules.
    Strings,
    /// Code of the whole file, its tests included.
    Everything,
}

struct Rule {
    what: &'static str,
    words: &'static [&'static str],
    view: View,
    /// Prefixes of paths that the rule is about; none means all.
    only_in: &'static [&'static str],
    /// Prefixes of paths that the rule leaves alone.
    not_in: &'static [&'static str],
    /// A line that breaks it.
    sample: &'static str,
}

/// Crates that are never part of the program.
const DEVELOPMENT: [&str; 4] = [
    "crates/rondo-conformance/",
    "crates/rondo-testkit/",
    "tools/",
    "xtask/",
];

const RULES: [Rule; 17] = [
    Rule {
        what: "hosts name the ports of rondo-core; one file of the runtime opens the engine behind them",
        words: &["rondo_journal"],
        view: View::Code,
        only_in: &["crates/"],
        // The engine itself, and the library, which re-exports it for programs that open a store of their own.
        not_in: &[
            "crates/rondo-journal/",
            "crates/rondo-runtime/src/sessions/engine.rs",
            "crates/rondo/src/lib.rs",
        ],
        sample: "use rondo_journal::Store;",
    },
    Rule {
        what: "only the driver, the transport's timers, process control and the program read the time",
        words: &["Instant::now", "SystemTime::now"],
        view: View::Code,
        only_in: &[],
        not_in: &[
            "crates/rondo-core/src/clock",
            "crates/rondo-core/src/driver",
            "crates/rondo-http/",
            "crates/rondo-cli/",
            "crates/rondo-designs/src/bounded",
            "crates/rondo-exec/",
            "crates/rondo-hub/src/api/limiter.rs",
            "crates/rondo-hub/src/connections.rs",
            "crates/rondo-hub/src/hub.rs",
            "crates/rondo-hub/src/recovery.rs",
            "crates/rondo-hub/src/shortage.rs",
            "crates/rondo-launch/",
            "crates/rondo-local/src/prompt_cache",
            "crates/rondo-mcp/src/client/flood.rs",
            "crates/rondo-otel/src/clock",
            "crates/rondo-runtime/src/calls",
            "crates/rondo-runtime/src/scratch",
            "crates/rondo-telegram/src/clock",
            "crates/rondo-tools/src/overview",
            "crates/rondo-webhook/src/clock",
        ],
        sample: "let now = std::time::Instant::now();",
    },
    Rule {
        what: "only rondo-launch and the shell start processes, rondo-python its interpreter, and rondo-sandbox a trial",
        words: &["Command::new"],
        view: View::Code,
        only_in: &[],
        // The program runs the user's editor and the programs of their clipboard, and asks their tmux what is in the other
        // pane when they want that told; the runtime runs the user's own command for a key, and their pip, before there is any
        // agent. The sandbox tries itself. The build script asks for the C library's version.
        not_in: &[
            "crates/rondo-cli/build.rs",
            "crates/rondo-exec/src/shell/",
            "crates/rondo-launch/",
            "crates/rondo-python/src/unix",
            "crates/rondo-sandbox/src/support.rs",
            "crates/rondo-cli/src/commands/clipboard",
            "crates/rondo-cli/src/commands/editor",
            "crates/rondo-cli/src/terminal_context",
            "crates/rondo-runtime/src/target",
            "crates/rondo-runtime/src/weights/index",
        ],
        sample: "std::process::Command::new(\"ls\")",
    },
    Rule {
        what: "only the program knows of arguments and of the person's terminal",
        words: &["clap::", "reedline::", "termimad::", "isatty"],
        view: View::Code,
        only_in: &[],
        // The keys of vi are the line prompt's.
        not_in: &["crates/rondo-cli/", "crates/rondo-tui/src/prompt/vi"],
        sample: "use clap::Parser;",
    },
    Rule {
        what: "three places build turns: an agent's, a design's and the one builder of hosts",
        words: &["TurnSetup {"],
        view: View::Code,
        only_in: &[],
        not_in: &[
            "crates/rondo-agent/src/parts.rs",
            "crates/rondo-core/src/driver",
            "crates/rondo-designs/src/run.rs",
            "crates/rondo-runtime/src/turn.rs",
        ],
        sample: "let setup = TurnSetup { seed };",
    },
    Rule {
        what: "hosts know no transport and build no tools",
        words: &["HttpModel", "ExecTool", "file_tools"],
        view: View::Code,
        only_in: &["crates/rondo-cli/", "crates/rondo-tui/"],
        not_in: &[],
        sample: "let model = HttpModel::new(endpoint, card)?;",
    },
    Rule {
        what: "hosts take, begin and fork sessions through the runtime's Session",
        words: &[
            "Store",
            "Conversation::",
            "ToolsetOptions",
            "NewSession",
            "run_turn",
            "resume_turn",
        ],
        view: View::Code,
        only_in: &["crates/rondo-cli/", "crates/rondo-tui/"],
        // These list, check, move and remove what is recorded, and run no turn of it; the stores of models and
        // of exported files are others.
        not_in: &[
            "crates/rondo-cli/src/commands/session/",
            "crates/rondo-cli/src/commands/replay/source",
            "crates/rondo-cli/src/commands/models",
            "crates/rondo-cli/src/commands/doctor",
        ],
        sample: "let store = Store::open(dir, options)?;",
    },
    Rule {
        what: "only the program prints",
        words: &["println!", "eprintln!", "print!", "eprint!"],
        view: View::Code,
        only_in: &[],
        not_in: &["crates/rondo-cli/"],
        sample: "println!(\"x\");",
    },
    Rule {
        what: "only the program and its supervisor exit",
        words: &["process::exit", "process::abort"],
        view: View::Code,
        only_in: &[],
        not_in: &["crates/rondo-cli/", "crates/rondo-launch/"],
        sample: "std::process::exit(1)",
    },
    Rule {
        what: "channels are bounded",
        words: &["unbounded_channel", "mpsc::channel()", "mpsc::unbounded"],
        view: View::Code,
        only_in: &[],
        not_in: &[],
        sample: "tokio::sync::mpsc::unbounded_channel()",
    },
    Rule {
        what: "lints are expected with a reason, tests run and do not expect panics",
        words: &["#[allow", "#![allow", "#[ignore", "#[should_panic"],
        view: View::Everything,
        only_in: &[],
        not_in: &[],
        sample: "#[allow(dead_code)]",
    },
    Rule {
        what: "no `git` is started: what a repository configures would run outside of the gate and the sandbox",
        words: &["Command::new(\"git\")", "program(\"git\")"],
        view: View::Strings,
        only_in: &[],
        not_in: &[],
        sample: "std::process::Command::new(\"git\").arg(\"status\")",
    },
    Rule {
        what: "wire names stay in rondo-wire",
        words: &["functionCall", "tool_call_id", "finishReason"],
        view: View::Strings,
        only_in: &[],
        // Scripts read messages in the form of their design.
        not_in: &[
            "crates/rondo-wire/",
            "crates/rondo-designs/",
            "crates/rondo-script/src/answer.rs",
        ],
        sample: "map.get(\"tool_call_id\")",
    },
    Rule {
        what: "what becomes of a call, and how it is shown, depends on its tool's kind and hints, not on its name",
        words: &[
            "\"exec\"",
            "\"execute_command\"",
            "\"read_file\"",
            "\"write_file\"",
            "\"edit_file\"",
            "\"list_files\"",
            "\"search_files\"",
            "\"eval_expr\"",
            "\"run_code\"",
            "\"save_memory\"",
            "\"search_memory\"",
        ],
        view: View::Strings,
        only_in: &[],
        // Tools know their own names, designs those that they are told by; a command line has words like them, and the
        // built-in model is shown an example of a call.
        not_in: &[
            "crates/rondo-exec/",
            "crates/rondo-memory/",
            "crates/rondo-python/",
            "crates/rondo-tools/",
            "crates/rondo-designs/",
            "crates/rondo-policy/src/analysis/",
            "crates/rondo-launch/src/simple.rs",
            "crates/rondo-local/src/prompt/examples",
            // These name a function of scripts.
            "crates/rondo-script/src/api/commands.rs",
            "crates/rondo-script/src/init/vm.rs",
            "crates/rondo-script/src/names.rs",
        ],
        sample: "if call.name == \"exec\" {}",
    },
    Rule {
        what: "the vocabulary, the codecs and the machine do no input or output and never wait",
        words: &[
            "async",
            "await",
            "tokio",
            "Instant",
            "SystemTime",
            "std::fs",
            "std::net",
            "std::env",
            "std::thread",
            "std::process",
        ],
        view: View::Code,
        only_in: &[
            "crates/rondo-types/src/",
            "crates/rondo-wire/src/",
            "crates/rondo-context/src/",
            "crates/rondo-schema/src/",
            "crates/rondo-core/src/machine",
        ],
        not_in: &[],
        sample: "std::fs::read(path)",
    },
    Rule {
        what: "why a call is asked about or denied is told apart by an enum, not by the words that say it",
        words: &[
            ".prompt.contains(",
            ".prompt.starts_with(",
            ".prompt.ends_with(",
            ".prompt.find(",
            ".reason.contains(",
            ".reason.starts_with(",
            ".reason.ends_with(",
            ".reason.find(",
        ],
        view: View::Code,
        only_in: &[],
        not_in: &[],
        sample: "let is_for_review = question.prompt.contains(MUST_BE_REVIEWED);",
    },
    Rule {
        what: "unfinished code is not committed",
        words: &["todo!", "unimplemented!", "dbg!"],
        view: View::Everything,
        only_in: &[],
        not_in: &[],
        sample: "todo!()",
    },
];

impl Rule {
    fn is_about(&self, path: &str) -> bool {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
        let is_exempt = self.view != View::Everything && is_test_or_development(path);
        !is_exempt && !begins(self.not_in) && (self.only_in.is_empty() || begins(self.only_in))
    }

    fn findings(&self, path: &str, source: &str) -> Vec<String> {
        let code = rust_text::code_only(source);
        let text = match self.view {
            View::Code => rust_text::without_tests(&code, &code),
            View::Strings => {
                let text = rust_text::without_comments(source);
                // A feature has the name of the tool that it brings.
                let text = text.replace("feature = \"exec\"", "feature = ______");
                rust_text::without_tests(&text, &code)
            }
            View::Everything => code,
        };
        self.words
            .iter()
            .flat_map(|word| {
                rust_text::find_words(&text, word)
                    .into_iter()
                    .map(|at| format!("{path}:{}: `{word}`", rust_text::line_of(&text, at)))
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

fn is_test_or_development(path: &str) -> bool {
    DEVELOPMENT.iter().any(|prefix| path.starts_with(prefix))
        || ["/tests/", "/benches/", "/examples/"]
            .iter()
            .any(|part| path.contains(part))
        || path.ends_with("/tests.rs")
}

#[test]
fn every_file_keeps_the_rules() {
    let mut found = Vec::new();
    for path in tree::files_ending("rs") {
        let source = tree::read(&path);
        for rule in RULES.iter().filter(|rule| rule.is_about(&path)) {
            let lines = rule.findings(&path, &source).into_iter();
            found.extend(lines.map(|line| format!("{line} ({})", rule.what)));
        }
    }
    tree::assert_none("forbidden words", &found);
}

#[test]
fn every_rule_finds_its_own_sample() {
    for rule in RULES {
        let source = format!("fn f() {{}}\n{}\n", rule.sample);
        let found = rule.findings("x.rs", &source);
        assert!(
            found.iter().any(|line| line.starts_with("x.rs:2: ")),
            "`{}` is not found: {found:?}",
            rule.sample
        );
    }
}

#[test]
fn every_source_file_says_first_what_it_is_for() {
    let mut found = tree::files_ending("rs");
    found.retain(|path| path.contains("/src/") && !begins_with_its_purpose(&tree::read(path)));
    tree::assert_none("files whose first line is no `//! purpose`", &found);
}

#[test]
fn a_file_without_its_purpose_is_found() {
    assert!(begins_with_its_purpose("//! Reads X.\n\nuse y;\n"));
    for source in [
        "",
        "use y;\n",
        "//!\n//! Reads X.\n",
        "// Reads X.\n",
        "/// Reads X.\n",
    ] {
        assert!(!begins_with_its_purpose(source), "{source:?}");
    }
}

fn begins_with_its_purpose(source: &str) -> bool {
    let first = source.lines().next().unwrap_or_default();
    first
        .strip_prefix("//! ")
        .is_some_and(|purpose| !purpose.trim().is_empty())
}

#[test]
fn the_environment_is_read_in_functions_that_say_so() {
    let mut found = Vec::new();
    for path in tree::files_ending("rs") {
        if !is_test_or_development(&path) && !path.starts_with("crates/rondo-cli/") {
            found.extend(hidden_environment_reads(&path, &tree::read(&path)));
        }
    }
    tree::assert_none(
        "the environment is read outside a `from_env` function",
        &found,
    );
}

#[test]
fn a_hidden_environment_read_is_found_and_a_named_one_is_not() {
    let source = "fn from_env() { std::env::var_os(\"A\"); }\nfn new() { std::env::var(\"B\"); }\n";
    assert_eq!(
        hidden_environment_reads("x.rs", source),
        ["x.rs:2: in `new`"]
    );
}

fn hidden_environment_reads(path: &str, source: &str) -> Vec<String> {
    let code = rust_text::code_only(source);
    let code = rust_text::without_tests(&code, &code);
    ["env::var", "env::var_os", "env::vars", "env::vars_os"]
        .iter()
        .flat_map(|word| rust_text::find_words(&code, word))
        .filter_map(|at| {
            let name = rust_text::function_before(&code, at).unwrap_or("no function");
            let line = rust_text::line_of(&code, at);
            (!name.contains("from_env")).then(|| format!("{path}:{line}: in `{name}`"))
        })
        .collect()
}

/// The words that begin a clause in the place of a name: "Who listens" instead of "The listener".
const CLAUSE_WORDS: [&str; 5] = ["What", "Who", "Whoever", "Whether", "Where"];
/// The bound on doc lines that begin with such a word, in 1,000 comment lines. It may only fall.
const CLAUSES_MAX: usize = 5;

#[test]
fn few_doc_lines_begin_with_a_clause() {
    let counts = tree::files_ending("rs");
    let counts = counts.iter().map(|path| clauses(&tree::read(path)));
    let (found, lines) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(
        found * 1_000 <= lines * CLAUSES_MAX,
        "{found} of {lines} comment lines begin with one of {CLAUSE_WORDS:?}: name the thing instead"
    );
}

#[test]
fn doc_lines_that_begin_with_a_clause_are_counted() {
    let source =
        "//! What it does.\n/// Whether so.\n/// Whatever.\n// What.\n/// The name.\nlet a = 1;\n";
    assert_eq!(clauses(source), (2, 5));
}

/// Counts the doc lines of a source that begin with a clause, and its comment lines.
fn clauses(source: &str) -> (usize, usize) {
    let lines = source.lines().map(str::trim_start);
    let comments: Vec<&str> = lines.filter(|line| line.starts_with("//")).collect();
    let docs = comments.iter().filter_map(|line| {
        let text = line.strip_prefix("/// ").or(line.strip_prefix("//! "))?;
        text.split(|letter: char| !letter.is_alphanumeric()).next()
    });
    let found = docs.filter(|word| CLAUSE_WORDS.contains(word)).count();
    (found, comments.len())
}

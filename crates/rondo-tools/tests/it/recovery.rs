//! Recovery of interrupted calls by the tools.

use crate::bench::{Bench, invocation};
use proptest::prelude::*;
use rondo_core::ports::{InterruptedCall, Reconciled};
use rondo_types::ToolOutcome;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Temporary file of an interrupted call with the bench's key.
const TEMPORARY: &str = ".rondo-s-t-c.tmp";

/// A call whose beginning was recorded.
struct Begun<'a> {
    bench: &'a Bench,
    tool: &'a str,
    arguments: Value,
    evidence: Option<Value>,
}

impl<'a> Begun<'a> {
    async fn new(bench: &'a Bench, tool: &'a str, arguments: Value) -> Self {
        let evidence = bench.tool(tool).evidence(&arguments).await;
        Self {
            bench,
            tool,
            arguments,
            evidence,
        }
    }

    async fn run(&self) -> ToolOutcome {
        let call = invocation(self.arguments.clone(), CancellationToken::new());
        self.bench.tool(self.tool).call(call).await
    }

    async fn reconcile(&self) -> Reconciled {
        let interrupted = InterruptedCall {
            idempotency_key: "s-t-c".to_owned(),
            arguments: self.arguments.clone(),
            evidence: self.evidence.clone(),
        };
        self.bench.tool(self.tool).reconcile(&interrupted).await
    }
}

/// Calls with an effect, over a file `old` that is there and none that is called `new`.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("write_file", json!({"path": "new", "content": "text"})),
        ("write_file", json!({"path": "a/b/new", "content": ""})),
        ("write_file", json!({"path": "old", "content": "text"})),
        (
            "edit_file",
            json!({"path": "old", "old_string": "two\n", "new_string": ""}),
        ),
        (
            "edit_file",
            json!({"path": "old", "old_string": "o", "new_string": "oo", "replace_all": true}),
        ),
    ]
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("old", "one\ntwo\nthree\n");
    bench
}

#[tokio::test]
async fn a_call_that_was_not_made_is_not_done() {
    for (tool, arguments) in calls() {
        let bench = bench();
        let begun = Begun::new(&bench, tool, arguments).await;
        assert_eq!(begun.reconcile().await, Reconciled::NotDone, "{tool}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_before_its_file_appeared_is_not_done_and_leaves_nothing() {
    for (tool, arguments) in calls() {
        let bench = bench();
        let path = bench.path(arguments["path"].as_str().unwrap());
        let begun = Begun::new(&bench, tool, arguments).await;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let temporary = path.with_file_name(TEMPORARY);
        std::fs::write(&temporary, "to").unwrap();
        assert_eq!(begun.reconcile().await, Reconciled::NotDone, "{tool}");
        assert!(!temporary.exists());
        assert!(begun.run().await.is_ok());
    }
}

#[tokio::test]
async fn a_call_that_was_done_has_the_result_that_it_returned() {
    for (tool, arguments) in calls() {
        let bench = bench();
        let begun = Begun::new(&bench, tool, arguments).await;
        let outcome = begun.run().await;
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(begun.reconcile().await, Reconciled::Done(outcome));
    }
}

#[tokio::test]
async fn a_file_that_somebody_else_changed_tells_nothing() {
    for (tool, arguments) in calls() {
        let bench = bench();
        let path = arguments["path"].as_str().unwrap().to_owned();
        let begun = Begun::new(&bench, tool, arguments).await;
        bench.file(&path, "theirs");
        assert_eq!(begun.reconcile().await, Reconciled::Unknown, "{tool}");
    }
}

#[tokio::test]
async fn a_call_that_could_have_no_effect_is_not_done() {
    let bench = bench();
    bench.file("d/f", "");
    for (tool, arguments) in [
        ("write_file", json!({"path": "d", "content": ""})),
        ("write_file", json!({"path": "/etc/x", "content": ""})),
        ("write_file", json!({"path": "d/f/g", "content": ""})),
        ("write_file", json!({"path": 1})),
        (
            "edit_file",
            json!({"path": "gone", "old_string": "a", "new_string": "b"}),
        ),
        (
            "edit_file",
            json!({"path": "old", "old_string": "nowhere", "new_string": "b"}),
        ),
    ] {
        let begun = Begun::new(&bench, tool, arguments).await;
        assert!(!begun.run().await.is_ok());
        assert_eq!(begun.reconcile().await, Reconciled::NotDone, "{tool}");
    }
}

#[tokio::test]
async fn without_evidence_nothing_is_known() {
    let bench = bench();
    for (tool, arguments) in calls() {
        for evidence in [None, Some(json!({"before": 5}))] {
            let mut begun = Begun::new(&bench, tool, arguments.clone()).await;
            begun.evidence = evidence;
            assert_eq!(begun.reconcile().await, Reconciled::Unknown, "{tool}");
        }
    }
}

#[tokio::test]
async fn a_file_too_large_to_be_read_is_told_by_its_size_and_time() {
    let bench = bench();
    let large = std::fs::File::create(bench.path("large")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let arguments = json!({"path": "large", "content": "small"});
    let begun = Begun::new(&bench, "write_file", arguments).await;
    assert_eq!(begun.reconcile().await, Reconciled::NotDone);
    let outcome = begun.run().await;
    assert_eq!(begun.reconcile().await, Reconciled::Done(outcome));
}

#[tokio::test]
async fn evidence_is_small() {
    let bench = bench();
    bench.file("many", "ab".repeat(1 << 20));
    for count in [100, 101] {
        let spread = format!("x{}", "-".repeat(9_999)).repeat(count);
        bench.file("spread", spread);
        for path in ["many", "spread"] {
            let arguments =
                json!({"path": path, "old_string": "x", "new_string": "y", "replace_all": true});
            let begun = Begun::new(&bench, "edit_file", arguments).await;
            let bytes = begun.evidence.unwrap().to_string().len();
            assert!(bytes < 1_000, "{bytes}");
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Line ends, byte order marks and matches that a new text brings with it included.
    #[test]
    fn every_edit_that_was_done_has_the_result_that_it_returned(
        text in "\u{feff}?[ab\r\n]{0,40}",
        old in "[ab\n]{1,3}",
        new in "[ab\r\n]{0,4}",
    ) {
        runtime().block_on(async {
            let bench = Bench::new();
            bench.file("f", &text);
            let arguments =
                json!({"path": "f", "old_string": old, "new_string": new, "replace_all": true});
            let begun = Begun::new(&bench, "edit_file", arguments).await;
            let outcome = begun.run().await;
            let expected = match outcome.is_ok() {
                true => Reconciled::Done(outcome),
                false => Reconciled::NotDone,
            };
            assert_eq!(begun.reconcile().await, expected);
        });
    }
}

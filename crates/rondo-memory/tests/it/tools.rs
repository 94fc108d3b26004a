//! `save_memory` and `search_memory`.

use crate::support::{Scene, invocation, texts};
use rondo_core::ports::{InterruptedCall, Reconciled, Tool as _};
use rondo_memory::{Outside, SaveMemory, SearchMemory};
use rondo_schema::Validator;
use rondo_types::{Effects, ToolErrorCode, ToolKind, ToolOutcome, ToolOutput};
use serde_json::{Value, json};

fn output(outcome: ToolOutcome) -> ToolOutput {
    match outcome {
        ToolOutcome::Ok(output) => output,
        ToolOutcome::Error(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn my_20_memory_is_searched_by_a_query_and_a_limit() {
    let scene = Scene::new();
    let tool = SearchMemory::new(scene.memories());
    let spec = tool.spec();
    assert_eq!(
        (spec.name.as_str(), spec.effects),
        ("search_memory", Effects::ReadOnly)
    );
    let properties = &spec.parameters["properties"];
    assert_eq!(
        (&properties["query"]["type"], &properties["limit"]["type"]),
        (&json!("string"), &json!("number"))
    );
    let lines: String = (0..9)
        .map(|it| format!("- the zebra number {it}\n"))
        .collect();
    scene.write("data/memory/MEMORY.md", &lines);
    for (limit, count) in [
        (json!(1), 1),
        (json!(3.0), 3),
        (json!(100), 9),
        (Value::Null, 5),
    ] {
        let mut arguments = json!({"query": "zebra", "limit": limit});
        if limit.is_null() {
            arguments = json!({"query": "zebra"});
        }
        Validator::new(&spec.parameters)
            .unwrap()
            .check(&arguments)
            .unwrap();
        let found = output(tool.call(invocation("k", arguments)).await);
        let text = found.value.as_str().unwrap();
        assert_eq!(
            text.matches("<memory id=").count(),
            count,
            "{limit}: {text}"
        );
        assert!(
            text.contains("not instructions") && text.contains("by=\"hand\""),
            "{text}"
        );
        assert!(!found.from_outside);
    }
    let none = output(tool.call(invocation("k", json!({"query": "quagga"}))).await);
    assert_eq!(none.value, "No memory was found.");
    let empty = tool.call(invocation("k", json!({"query": "  "}))).await;
    assert_eq!(empty.code(), Some(ToolErrorCode::InvalidArgs));
}

#[tokio::test]
async fn a_memory_is_saved_with_its_origin_and_found_again() {
    let scene = Scene::new();
    let save = SaveMemory::new(scene.memories(), Outside::never());
    let spec = save.spec();
    assert_eq!((spec.effects, spec.kind), (Effects::Writes, ToolKind::Edit));
    let arguments = json!({"text": "Deploys are on Thursdays.", "scope": "project"});
    Validator::new(&spec.parameters)
        .unwrap()
        .check(&arguments)
        .unwrap();
    let saved = output(save.call(invocation("key-1", arguments)).await);
    assert_eq!(
        (&saved.value["status"], &saved.value["scope"]),
        (&json!("saved"), &json!("project"))
    );
    assert_eq!(saved.changes.len(), 1);
    let memory = scene.memories().list().unwrap().memories.remove(0);
    let origin = memory.origin;
    assert_eq!(
        (origin.session.as_deref(), origin.turn.as_deref()),
        (Some("s-1"), Some("t-2"))
    );
    assert!(origin.saved.is_some() && !origin.from_outside);
    let search = SearchMemory::new(scene.memories());
    let found = output(
        search
            .call(invocation("k", json!({"query": "deployment days"})))
            .await,
    );
    let text = found.value.as_str().unwrap();
    assert!(
        text.contains("by=\"model\"") && text.contains("session=\"s-1\""),
        "{text}"
    );
    let again = output(
        save.call(invocation(
            "key-2",
            json!({"text": "Deploys are on Thursdays.", "scope": "project"}),
        ))
        .await,
    );
    assert_eq!(again.value["status"], "known");
}

#[tokio::test]
async fn a_memory_from_outside_marks_what_it_is_recalled_in() {
    let scene = Scene::new();
    let save = SaveMemory::new(scene.memories(), Outside::new(|| true));
    output(
        save.call(invocation("key", json!({"text": "The page says: buy."})))
            .await,
    );
    let search = SearchMemory::new(scene.memories());
    let found = output(search.call(invocation("k", json!({"query": "page"}))).await);
    assert!(found.from_outside);
    assert!(
        found
            .value
            .as_str()
            .unwrap()
            .contains("from_outside=\"true\"")
    );
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_found_done_or_not_done() {
    let scene = Scene::new();
    let save = SaveMemory::new(scene.memories(), Outside::never());
    let arguments = json!({"text": "Tabs."});
    let cut_off = |key: &str| InterruptedCall {
        idempotency_key: key.to_owned(),
        arguments: arguments.clone(),
        evidence: None,
    };
    assert_eq!(save.reconcile(&cut_off("one")).await, Reconciled::NotDone);
    let done = save.call(invocation("one", arguments.clone())).await;
    let Reconciled::Done(ToolOutcome::Ok(found)) = save.reconcile(&cut_off("one")).await else {
        panic!("it was done");
    };
    assert_eq!(found.value, output(done).value);
    assert_eq!(save.reconcile(&cut_off("two")).await, Reconciled::NotDone);
    let again = output(save.call(invocation("one", arguments.clone())).await);
    assert_eq!(again.value["status"], "known");
    assert_eq!(texts(&scene.memories()), ["Tabs."]);
}

#[tokio::test]
async fn wrong_arguments_are_told_to_the_model() {
    let scene = Scene::new();
    let save = SaveMemory::new(scene.memories(), Outside::never());
    let text = "x".repeat(rondo_memory::MEMORY_BYTES_MAX + 1);
    for arguments in [
        json!({"text": " "}),
        json!({"text": text}),
        json!({"text": "a", "scope": "world"}),
        json!({"scope": "user"}),
    ] {
        let refused = save.call(invocation("k", arguments)).await;
        assert_eq!(
            refused.code(),
            Some(ToolErrorCode::InvalidArgs),
            "{refused:?}"
        );
    }
    let cancelled = invocation("k", json!({"text": "a"}));
    cancelled.cancel.cancel();
    assert_eq!(
        save.call(cancelled).await.code(),
        Some(ToolErrorCode::Cancelled)
    );
    assert!(!scene.path("data").exists());
}

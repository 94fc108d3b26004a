//! Content of the sessions in `fixtures/journal`: every kind of record that today's engine knows, and every field.

use crate::support::id;
use crate::versions::{VERSIONS, kept};
use rondo_core::compaction::Change;
use rondo_core::ports::{
    Approval, CellEnding, CodeChange, Purpose, RecordBody, StoppedBy, Verdict,
};
use rondo_types::{InDoubtDecision, Part, Recovery};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The bodies of all kept records.
fn bodies() -> Vec<Value> {
    let mut bodies = Vec::new();
    for (version, sessions) in VERSIONS {
        let kept = kept(version);
        for (name, ..) in sessions {
            let entries = kept.store.read_all(&id(name)).unwrap();
            let parsed = entries
                .iter()
                .map(|it| serde_json::from_str(&it.json).unwrap());
            bodies.extend::<Vec<Value>>(parsed.collect());
        }
    }
    bodies
}

/// Returns the names of a type's variants, which serde lists when it is given another one.
fn variants<T: DeserializeOwned>(unknown: Value) -> BTreeSet<String> {
    let Err(error) = serde_json::from_value::<T>(unknown) else {
        panic!("it is none of them");
    };
    let error = error.to_string();
    let (_, listed) = error.split_once("expected ").unwrap();
    let names = listed.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// Gathers every text that is under a key, at any depth.
fn gather(value: &Value, key: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get(key) {
                found.insert(text.clone());
            }
            fields.values().for_each(|it| gather(it, key, found));
        }
        Value::Array(items) => items.iter().for_each(|it| gather(it, key, found)),
        _ => {}
    }
}

#[test]
fn a_kept_session_holds_each_kind_of_record() {
    let known = variants::<RecordBody>(json!({ "kind": "?" }));
    let kept: BTreeSet<String> = bodies()
        .iter()
        .map(|it| it["kind"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        known.contains("turn_started") && known.len() > 20,
        "{known:?}"
    );
    assert_eq!(kept, known);
    let named = RecordBody::KINDS.map(str::to_owned);
    assert_eq!(BTreeSet::from(named), known);
}

#[test]
fn a_kept_session_holds_each_answer_that_a_record_can_have() {
    let all = bodies();
    let mut missing = Vec::new();
    for (key, known) in [
        ("verdict", variants::<Verdict>(json!({ "verdict": "?" }))),
        ("approval", variants::<Approval>(json!({ "approval": "?" }))),
        ("change", variants::<Change>(json!({ "change": "?" }))),
        ("how", variants::<CellEnding>(json!({ "how": "?" }))),
        ("changed", variants::<CodeChange>(json!("?"))),
        ("decision", variants::<InDoubtDecision>(json!("?"))),
        ("recovery", variants::<Recovery>(json!("?"))),
        ("stopped_by", variants::<StoppedBy>(json!("?"))),
        ("purpose", variants::<Purpose>(json!("?"))),
        ("type", variants::<Part>(json!({ "type": "?" }))),
    ] {
        let mut found = BTreeSet::new();
        all.iter().for_each(|it| gather(it, key, &mut found));
        let absent = known.difference(&found);
        missing.extend(absent.map(|name| format!("{key}: {name}")));
    }
    // A cell of more than a MiB is too large to keep here; that an interpreter was lost before a cell
    // is found out in a moment that no fixture can choose; and a request for a step is the default.
    // What a provider refuses is taken out since these sessions were recorded.
    let absent = [
        "change: described",
        "change: unsealed",
        "how: not_run",
        "changed: cut",
        "purpose: step",
    ];
    assert_eq!(missing, absent);
}

/// The fields that are left out if they say nothing, and where they are.
const OPTIONAL: &[(&str, &str)] = &[
    ("turn_started", "/addresses/1"),
    ("turn_started", "/brought/0"),
    ("turn_started", "/unbegun_not_run"),
    ("turn_started", "/profile/dialect"),
    ("turn_started", "/profile/allowed_tools/0"),
    ("turn_started", "/profile/rule_sets/0"),
    ("turn_started", "/profile/forbidden_programs/0"),
    ("turn_started", "/profile/compaction/max_messages"),
    ("turn_started", "/profile/compaction/only"),
    ("turn_started", "/profile/sampling/temperature"),
    ("turn_started", "/profile/sampling/max_output_tokens"),
    ("turn_started", "/profile/sampling/effort"),
    ("turn_started", "/profile/limits/max_tool_calls"),
    ("turn_started", "/profile/limits/max_tokens"),
    ("turn_started", "/profile/texts/limits/max_steps"),
    ("equipped", "/response_schema"),
    ("equipped", "/tools/1/polls"),
    ("equipped", "/models/0/price"),
    ("equipped", "/models/0/context_tokens"),
    ("equipped", "/models/1"),
    ("user_message", "/message/parts/1/name"),
    ("model_requested", "/parts/messages/0"),
    ("model_requested", "/purpose"),
    ("model_replied", "/reply/usage"),
    ("model_replied", "/reply/prompt_blocked"),
    ("model_replied", "/reply/response/id"),
    ("model_replied", "/reply/response/model"),
    ("model_replied", "/reply/candidates/1"),
    ("model_replied", "/reply/candidates/0/raw_finish_reasons/0"),
    ("model_replied", "/reply/candidates/0/parts/0/opaque"),
    ("model_replied", "/reply/candidates/0/parts/0/wire_id"),
    ("model_failed", "/shown/0"),
    ("model_failed", "/error/status"),
    ("model_failed", "/error/retry_after_ms"),
    ("tool_started", "/evidence"),
    ("tool_in_doubt", "/still_running"),
    ("tool_finished", "/outcome/media/0/name"),
    ("tool_finished", "/outcome/truncated"),
    ("tool_finished", "/outcome/spill"),
    ("tool_finished", "/outcome/details"),
    ("tool_finished", "/outcome/changes/0"),
    ("tool_finished", "/outcome/child"),
    ("tool_finished", "/outcome/job"),
    ("tool_finished", "/outcome/from_outside"),
    ("tools_changed", "/tools/1/kind"),
    ("tools_changed", "/tools/1/hints/open_world"),
    ("tools_changed", "/tools/1/timeout_ms"),
    ("call_resolved", "/outcome/details"),
    ("message_added", "/message/synthetic"),
    ("message_added", "/message/origin"),
    ("final", "/process/strict_complete"),
    ("final", "/process/needed_approval/0"),
    ("final", "/process/stopped_by"),
    ("cell_started", "/changed"),
    ("cell_finished", "/ending/value_repr"),
    ("cell_finished", "/stdout"),
    ("cell_finished", "/is_restarted"),
    ("cell_finished", "/has_read_input"),
    ("script_call_started", "/evidence"),
    ("script_finished", "/error"),
];

#[test]
fn a_kept_session_holds_each_field_that_may_be_left_out() {
    let all = bodies();
    let is_absent = |(kind, field): &&(&str, &str)| {
        let of_kind = all.iter().filter(|it| it["kind"] == **kind);
        !of_kind.into_iter().any(|it| it.pointer(field).is_some())
    };
    let missing: Vec<_> = OPTIONAL.iter().filter(is_absent).collect();
    assert_eq!(missing, Vec::<&(&str, &str)>::new());
}

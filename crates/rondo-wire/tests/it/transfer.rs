//! Any transcript continues on any dialect: what is sent is valid there, and what is not sent is noted.

mod rules;
mod transcripts;

use crate::support::{origin, recordings, target};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use rondo_schema::Validator;
use rondo_types::ModelRequest;
use rondo_wire::{Encoded, Lowering, LoweringNote, dialect, dialect_names, react_over};
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;
use transcripts::{Kind, Mark, Transcript, transcript};

/// Every dialect of a provider, and `react` over each.
pub(crate) static DIALECTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let bases = dialect_names().into_iter();
    let pairs = bases.clone().map(|base| react_over(base).unwrap());
    bases.chain(pairs).collect()
});

/// The schema of requests of each dialect of a provider.
static SCHEMAS: LazyLock<Vec<(&'static str, Validator)>> = LazyLock::new(|| {
    let read = |name: &'static str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures/schemas")
            .join(format!("{name}.json"));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        (name, Validator::new(&schema).unwrap())
    };
    dialect_names().into_iter().map(read).collect()
});

/// Returns the dialect that is spoken on the wire.
pub(crate) fn base(name: &'static str) -> &'static str {
    name.strip_prefix("react+").unwrap_or(name)
}

fn sent(to: &'static str, request: &ModelRequest) -> Encoded {
    dialect(to).unwrap().encode(request, &target(to))
}

fn check_schema(to: &'static str, body: &Value) -> TestCaseResult {
    let known = SCHEMAS.iter().find(|(name, _)| *name == base(to));
    let checked = known.unwrap().1.check(body);
    prop_assert!(checked.is_ok(), "to {to}: {:?}\n{body:#}", checked.err());
    Ok(())
}

/// Whatever the transcript holds is sent, or there is a note that it is not.
fn check_losses(
    to: &'static str,
    text: &str,
    notes: &[LoweringNote],
    marks: &[Mark],
) -> TestCaseResult {
    for mark in marks {
        let found = text.contains(&mark.text);
        let noted = |lowerings: &[Lowering]| {
            notes.iter().any(|note| {
                lowerings.contains(&note.lowering)
                    && (note.message, note.part) == (Some(mark.message), Some(mark.part))
            })
        };
        let holds = match mark.kind {
            Kind::Said => found,
            Kind::Reasoning => found != noted(&[Lowering::ReasoningDropped]),
            Kind::Attached | Kind::Opaque => {
                found != noted(&[Lowering::OpaqueDropped, Lowering::ReasoningDropped])
            }
            Kind::Media => found || noted(&[Lowering::MediaDropped, Lowering::MediaAsText]),
            Kind::BrokenArguments => found || noted(&[Lowering::ArgumentsReplaced]),
        };
        prop_assert!(holds, "to {to}: {mark:?}\n{notes:#?}\n{text}");
    }
    Ok(())
}

fn check(to: &'static str, transcript: &Transcript) -> TestCaseResult {
    let encoded = sent(to, &transcript.request);
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    check_schema(to, &body)?;
    rules::check(to, &body, transcript)?;
    check_losses(to, &body.to_string(), &encoded.notes, &transcript.marks)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_transcript_goes_on_on_any_dialect(transcript in transcript()) {
        for to in DIALECTS.iter() {
            check(to, &transcript)?;
        }
    }
}

#[test]
fn there_is_a_schema_that_tells_right_from_wrong_for_each_dialect() {
    for (name, schema) in SCHEMAS.iter() {
        let encoded = sent(name, &transcripts::smallest());
        let mut body: Value = serde_json::from_slice(&encoded.body).unwrap();
        assert_eq!(schema.check(&body), Ok(()), "{name}");
        body["unheard_of"] = Value::from(1);
        assert!(schema.check(&body).is_err(), "{name}");
    }
    assert_eq!(SCHEMAS.len(), 4);
    assert_eq!(origin("x").provider, "recorded");
}

/// Requests that were refused as malformed.
const REFUSED: u16 = 400;

#[test]
fn the_schemas_take_every_recorded_request_but_a_malformed_one() {
    let mut checked_count = 0;
    let mut failed = Vec::new();
    for (name, schema) in SCHEMAS.iter() {
        for recorded in recordings(name) {
            let Some(request) = recorded.request else {
                continue;
            };
            checked_count += 1;
            let checked = schema.check(&request);
            if recorded.status == REFUSED {
                assert!(checked.is_err(), "{}", recorded.name);
            } else {
                failed.extend(
                    checked
                        .err()
                        .map(|err| format!("{}: {err:?}", recorded.name)),
                );
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(checked_count, 44);
}

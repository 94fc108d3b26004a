//! Checks arguments and answers against their JSON Schemas, which are compiled when first needed.

use crate::machine::{Arguments, PreparedCall};
use rondo_schema::{PreparedArguments, SchemaError, Validator, Violation, prepare};
use rondo_types::ToolSpec;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// The tools on offer with their compiled schemas, for all turns that offer them.
#[derive(Default)]
pub struct Schemas {
    tools: Arc<Vec<ToolSpec>>,
    validators: Vec<OnceLock<Result<Validator, SchemaError>>>,
}

/// Prepares arguments by the schemas of the offered tools, and checks answers against the turn's response
/// schema.
pub struct Catalog {
    schemas: Arc<Schemas>,
    answer: Option<Validator>,
    check: Option<AnswerCheck>,
}

/// A check of answers beyond what a schema can express, such as deserialising a type.
///
/// Its error is recorded and sent back to the model, within
/// [`Limits::invalid_retries`](rondo_types::Limits::invalid_retries).
#[derive(Clone)]
pub struct AnswerCheck(Arc<Check>);

type Check = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl AnswerCheck {
    /// Wraps a check. It gets the answer without a surrounding code fence, and returns an error worded for
    /// the model.
    pub fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl Schemas {
    /// Holds the tools. A schema is compiled at the first call of its tool, since most turns call few
    /// tools.
    #[must_use]
    pub fn new(tools: Arc<Vec<ToolSpec>>) -> Self {
        let validators = tools.iter().map(|_| OnceLock::new()).collect();
        Self { tools, validators }
    }

    /// Returns the tools.
    #[must_use]
    pub fn tools(&self) -> Arc<Vec<ToolSpec>> {
        Arc::clone(&self.tools)
    }
}

impl Catalog {
    /// Builds a catalog of the tools and the response schema.
    ///
    /// # Errors
    /// When the response schema is not a valid JSON Schema.
    pub fn new(
        schemas: Arc<Schemas>,
        response_schema: Option<&Value>,
    ) -> Result<Self, SchemaError> {
        let answer = response_schema.map(Validator::new).transpose()?;
        Ok(Self {
            schemas,
            answer,
            check: None,
        })
    }

    /// Adds a check of answers that fit the schema.
    #[must_use]
    pub fn with_check(self, check: Option<AnswerCheck>) -> Self {
        Self { check, ..self }
    }

    /// Builds a catalog without a response schema.
    #[must_use]
    pub fn without_answer(schemas: Arc<Schemas>) -> Self {
        Self {
            schemas,
            answer: None,
            check: None,
        }
    }
}

impl Arguments for Catalog {
    fn prepare(&self, tool: &str, raw: &str) -> PreparedCall {
        let Schemas { tools, validators } = self.schemas.as_ref();
        let known = tools
            .iter()
            .zip(validators)
            .find(|(spec, _)| spec.name == tool);
        let Some((spec, slot)) = known else {
            return PreparedCall::Invalid {
                message: format!("there is no tool `{tool}`"),
                details: Value::Null,
            };
        };
        let validator = match slot.get_or_init(|| Validator::new(&spec.parameters)) {
            Ok(validator) => validator,
            Err(error) => {
                return PreparedCall::Invalid {
                    message: format!("the schema of tool `{tool}` cannot be used: {error}"),
                    details: Value::Null,
                };
            }
        };
        match prepare(raw, &spec.parameters, validator) {
            PreparedArguments::Ready {
                arguments,
                repairs,
                meaning_changed,
            } => PreparedCall::Ready {
                arguments,
                diff: repairs.iter().map(ToString::to_string).collect(),
                meaning_changed,
            },
            PreparedArguments::Invalid { message, details } => {
                PreparedCall::Invalid { message, details }
            }
        }
    }

    fn check_answer(&self, text: String) -> Result<String, String> {
        let Some(validator) = &self.answer else {
            return Ok(text);
        };
        let bare = without_fence(&text);
        let value: Value = serde_json::from_str(bare)
            .map_err(|error| format!("the answer must be JSON alone, but {error}"))?;
        validator
            .check(&value)
            .map_err(|violations| answer_problem(&violations))?;
        Ok(bare.to_owned())
    }

    fn refuse_answer(&self, answer: &str) -> Result<(), String> {
        let Some(AnswerCheck(check)) = &self.check else {
            return Ok(());
        };
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(answer)));
        checked
            .unwrap_or_else(|_| Err("the check of the answer failed".to_owned()))
            .map_err(|mut problem| {
                problem.truncate(problem.floor_char_boundary(REFUSAL_BYTES_MAX));
                problem
            })
    }
}

/// The most bytes of a check's own words that go to the model and into the record.
const REFUSAL_BYTES_MAX: usize = 2048;

/// Takes a code fence off that is around the whole text: models put JSON into one whatever they
/// are told.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inside = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    match inside.and_then(|inside| inside.split_once('\n')) {
        Some((language, body)) if language.trim().chars().all(char::is_alphanumeric) => body.trim(),
        _ => text,
    }
}

fn answer_problem(violations: &[Violation]) -> String {
    let listed: Vec<String> = violations
        .iter()
        .take(3)
        .map(|it| json!({"at": it.path, "is": it.what}).to_string())
        .collect();
    format!(
        "the answer does not fit its JSON schema: {}",
        listed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_stand_in_one_fence_and_is_returned_without_it() {
        let schema = json!({"type": "object", "required": ["a"]});
        let catalog = Catalog::new(Arc::default(), Some(&schema)).unwrap();
        for text in [
            "{\"a\":1}",
            " {\"a\":1}\n",
            "```json\n{\"a\":1}\n```",
            "```\n{\"a\":1}```",
        ] {
            assert_eq!(
                catalog.check_answer(text.into()).unwrap(),
                "{\"a\":1}",
                "{text}"
            );
        }
        for text in [
            "",
            "Here: {\"a\":1}",
            "```json\n{}\n```",
            "{\"b\":1}",
            "``````",
        ] {
            assert!(catalog.check_answer(text.into()).is_err(), "{text}");
        }
    }

    #[test]
    fn without_a_schema_every_answer_is_right_as_it_is() {
        let catalog = Catalog::new(Arc::default(), None).unwrap();
        assert_eq!(
            catalog.check_answer("```\nx\n```".into()).unwrap(),
            "```\nx\n```"
        );
    }
}

//! The one shape that every reply has: a step, `{"action":..,"args":{..}}`.
//!
//! One branch for each tool and one for the answer, `action` first, so that the choice is made in
//! one or two tokens and the rest of the skeleton is forced. Small models choose as well without a
//! grammar; what it buys is that every reply can be read, and that a reply without tools is an
//! answer.

use crate::error::{LocalError, first_line};
use crate::vocabulary::Vocabulary;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{Matcher, ParserFactory};
use rondo_types::{ModelRequest, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The action that answers.
pub(crate) const ANSWER: &str = "answer";
/// The action that answers if a tool is called like the usual one.
const ANSWER_BESIDE_A_TOOL: &str = "final_answer";
/// The bound on an answer, in characters.
const ANSWER_CHARS_MAX: u64 = 4_000;
/// The bound on each text of a call that names no smaller one, in characters.
const TEXT_CHARS_MAX: u64 = 4_000;
/// Schemas nested deeper than this are taken as they are.
const SCHEMA_DEPTH_MAX: usize = 32;

/// Permitted forms of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepShape {
    /// The action that answers.
    pub(crate) answer: &'static str,
    /// The tools that may be called.
    pub(crate) tools: Vec<ToolSpec>,
    /// Schema of the answer, if it is not any text.
    pub(crate) answer_schema: Option<Value>,
}

impl StepShape {
    /// Returns the grammar of the replies to a request.
    pub(crate) fn of(request: &ModelRequest) -> Self {
        let tools = match request.tool_choice {
            ToolChoice::Auto => request.tools.as_ref().clone(),
            ToolChoice::None => Vec::new(),
        };
        let taken = request.tools.iter().any(|tool| tool.name == ANSWER);
        Self {
            answer: if taken { ANSWER_BESIDE_A_TOOL } else { ANSWER },
            tools,
            answer_schema: request.response_schema.clone(),
        }
    }

    /// Returns the JSON Schema of a step.
    pub(crate) fn schema(&self) -> Value {
        let tools = self
            .tools
            .iter()
            .map(|tool| branch(&tool.name, &arguments(&tool.parameters)));
        let branches: Vec<Value> = [branch(self.answer, &self.answer_arguments())]
            .into_iter()
            .chain(tools)
            .collect();
        json!({ "anyOf": branches })
    }

    fn answer_arguments(&self) -> Value {
        let (name, schema) = match &self.answer_schema {
            Some(schema) => ("json", schema.clone()),
            None => (
                "text",
                json!({"type": "string", "minLength": 1, "maxLength": ANSWER_CHARS_MAX}),
            ),
        };
        json!({
            "type": "object",
            "properties": { name: schema },
            "required": [name],
            "additionalProperties": false
        })
    }

    /// Returns the same shape with free-form arguments, for schemas the grammar does not know.
    fn loosened(&self) -> Self {
        let mut loose = self.clone();
        for tool in &mut loose.tools {
            tool.parameters = json!({"type": "object"});
        }
        loose.answer_schema = loose.answer_schema.map(|_| json!({}));
        loose
    }
}

fn branch(action: &str, arguments: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "action": {"const": action}, "args": arguments },
        "required": ["action", "args"],
        "additionalProperties": false
    })
}

/// Arguments are an object without keys of its own invention, and no text in it continues forever.
fn arguments(parameters: &Value) -> Value {
    let mut schema = bounded(parameters, 0);
    if let Value::Object(fields) = &mut schema {
        fields.insert("type".to_owned(), "object".into());
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            properties.retain(|name, _| is_shown(parameters, name));
        }
        if fields.contains_key("properties") {
            fields.insert("additionalProperties".to_owned(), false.into());
        }
    }
    schema
}

/// Returns whether the model is told of a parameter. Of a tool that has required parameters the
/// others are left out: a small model fills in each one that it sees, most with an invention, such
/// as a working directory that does not exist.
pub(crate) fn is_shown(parameters: &Value, name: &str) -> bool {
    let required = parameters.get("required").and_then(Value::as_array);
    required.is_none_or(|names| names.is_empty() || names.iter().any(|it| it == name))
}

fn bounded(schema: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(fields) if depth < SCHEMA_DEPTH_MAX => {
            let mut fields: Map<String, Value> = fields
                .iter()
                .map(|(name, value)| (name.clone(), bounded(value, depth + 1)))
                .collect();
            let is_text = fields.get("type").and_then(Value::as_str) == Some("string");
            let is_bounded = ["maxLength", "enum", "const", "pattern", "format"]
                .iter()
                .any(|key| fields.contains_key(*key));
            if is_text && !is_bounded {
                fields.insert("maxLength".to_owned(), TEXT_CHARS_MAX.into());
            }
            Value::Object(fields)
        }
        Value::Array(items) if depth < SCHEMA_DEPTH_MAX => items
            .iter()
            .map(|item| bounded(item, depth + 1))
            .collect::<Vec<_>>()
            .into(),
        other => other.clone(),
    }
}

/// Makes matchers over one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
}

impl Grammars {
    /// Prepares for a vocabulary.
    ///
    /// # Errors
    /// When the vocabulary cannot be used.
    pub(crate) fn new(vocabulary: &Arc<Vocabulary>) -> Result<Self, LocalError> {
        let env: llguidance::toktrie::TokEnv = Arc::clone(vocabulary) as _;
        let abilities = InferenceCapabilities {
            ff_tokens: true,
            ..InferenceCapabilities::default()
        };
        let slices = llguidance::earley::SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&env, abilities, &slices).map_err(failed)?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory })
    }

    /// Builds the matcher of one reply. A schema that the grammar does not know is loosened to any
    /// object: the call's arguments are validated afterwards like any model's.
    ///
    /// # Errors
    /// When even the loosened shape cannot be matched.
    pub(crate) fn matcher(&self, shape: &StepShape) -> Result<Matcher, LocalError> {
        self.compile(shape.schema()).or_else(|err| {
            tracing::debug!(error = %err, "a schema is not known to the grammar");
            self.compile(shape.loosened().schema())
        })
    }

    fn compile(&self, mut schema: Value) -> Result<Matcher, LocalError> {
        if let Value::Object(fields) = &mut schema {
            let options = json!({"whitespace_flexible": false, "lenient": true});
            fields.insert("x-guidance".to_owned(), options);
        }
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let parser = self.factory.create_parser(grammar).map_err(failed)?;
        Ok(Matcher::new(Ok(parser)))
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is handed to `map_err`, which passes by value"
)]
fn failed(error: impl ToString) -> LocalError {
    LocalError::Grammar(first_line(&error.to_string()))
}

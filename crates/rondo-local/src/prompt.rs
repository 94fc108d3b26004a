//! A request as the tokens that a small model reads: ChatML around one JSON step a message.
//!
//! Measured at 1.5 B parameters on 16 questions, correct final answers: this 13, the vendor's
//! `tools` format 6, calls in XML 7.

mod examples;
mod observation;

use crate::error::LocalError;
use crate::grammar::{StepShape, is_shown};
use crate::vocabulary::Vocabulary;
use examples::examples;
use observation::observation;
use rondo_types::{ContentBlock, Message, ModelRequest, Part, Role, ToolResult, ToolSpec};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The bound on a tool's description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 240;

const START: &str = "<|im_start|>";
const END: &str = "<|im_end|>";

/// Turns requests into tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatMl {
    start: u32,
    end: u32,
}

impl ChatMl {
    /// Finds the tokens of the template.
    ///
    /// # Errors
    /// When the vocabulary does not have them: the model was trained on another template.
    pub(crate) fn find(vocabulary: &Vocabulary) -> Result<Self, LocalError> {
        let special = |name: &str| {
            vocabulary
                .special(name)
                .ok_or_else(|| LocalError::Unsupported {
                    what: "a chat template without",
                    found: name.to_owned(),
                    known: "templates like ChatML",
                })
        };
        Ok(Self {
            start: special(START)?,
            end: special(END)?,
        })
    }

    /// Returns the tokens of a request, up to where the reply begins; `shown` are the tools that
    /// the system prompt lists, which may be more than what the reply may call.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub(crate) fn encode(
        self,
        vocabulary: &Vocabulary,
        request: &ModelRequest,
        shown: &[ToolSpec],
        shape: &StepShape,
    ) -> Result<Vec<u32>, LocalError> {
        let mut tokens = Vec::new();
        for (role, text) in turns(request, shown, shape) {
            tokens.push(self.start);
            tokens.extend(vocabulary.encode(&format!("{role}\n"))?);
            tokens.extend(vocabulary.encode(&text)?);
            tokens.push(self.end);
            tokens.extend(vocabulary.encode("\n")?);
        }
        tokens.push(self.start);
        tokens.extend(vocabulary.encode("assistant\n")?);
        Ok(tokens)
    }
}

/// Returns who says what, in order.
pub(crate) fn turns(
    request: &ModelRequest,
    shown: &[ToolSpec],
    shape: &StepShape,
) -> Vec<(&'static str, String)> {
    let mut turns = vec![("system", system(&request.system, shown, shape.answer))];
    let mut messages = request.messages.iter().peekable();
    while let Some(message) = messages.next() {
        match message.role {
            Role::User => turns.push(("user", user_text(message))),
            Role::Tool => {
                let results = message.results().map(result_text);
                turns.push(("user", results.collect::<Vec<_>>().join("\n")));
            }
            Role::Assistant => {
                let results = messages.next_if(|next| next.role == Role::Tool);
                push_steps(&mut turns, message, results.map(AsRef::as_ref), shape);
            }
        }
    }
    turns
}

/// Other models call several tools at once; here each call is a step with its own observation.
fn push_steps(
    turns: &mut Vec<(&'static str, String)>,
    message: &Message,
    results: Option<&Message>,
    shape: &StepShape,
) {
    let mut called = false;
    for call in message.tool_calls() {
        called = true;
        let arguments = if call.arguments.trim().is_empty() {
            "{}"
        } else {
            call.arguments.as_str()
        };
        let name = Value::from(call.name.as_str());
        turns.push((
            "assistant",
            format!(r#"{{"action":{name},"args":{arguments}}}"#),
        ));
        let result = results
            .into_iter()
            .flat_map(Message::results)
            .find(|result| result.call_id == call.id);
        if let Some(result) = result {
            turns.push(("user", result_text(result)));
        }
    }
    let text = message.text();
    if !called && !text.is_empty() {
        let answer = json!({"action": shape.answer, "args": {"text": text}});
        turns.push(("assistant", answer.to_string()));
    }
}

/// Images and files cannot be read here; each is described where it is.
fn user_text(message: &Message) -> String {
    let mut text = String::new();
    let mut is_after_media = false;
    for part in &message.parts {
        match part {
            Part::Text(more) => {
                if is_after_media && !more.text.starts_with('\n') {
                    text.push('\n');
                }
                text.push_str(&more.text);
                is_after_media = false;
            }
            Part::Media(media) => {
                push_line(&mut text, &media.placeholder());
                is_after_media = true;
            }
            _ => {}
        }
    }
    text
}

fn result_text(result: &ToolResult) -> String {
    let mut text = observation(&result.content);
    for block in &result.blocks {
        match block {
            ContentBlock::Text { text: more } => push_line(&mut text, more),
            ContentBlock::Media(media) => push_line(&mut text, &media.placeholder()),
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

fn system(blocks: &[String], tools: &[ToolSpec], answer: &str) -> String {
    let mut text = blocks.join("\n\n");
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    if tools.is_empty() {
        let _ = write!(
            text,
            "Reply with one JSON object: {{\"action\":\"{answer}\",\"args\":{{\"text\":\"...\"}}}}"
        );
        return text;
    }
    text.push_str("Tools:\n");
    for tool in tools {
        let _ = writeln!(text, "{}", tool_line(tool));
    }
    let _ = write!(
        text,
        "\nReply with one JSON object, either a call of a tool or the final answer:\n\
         {{\"action\":\"TOOL\",\"args\":{{...}}}}\n\
         {{\"action\":\"{answer}\",\"args\":{{\"text\":\"...\"}}}}\n\
         The result of a call comes back between <observation> and </observation>. \
         When an observation holds what was asked for, answer with it.\n\n{}",
        examples(tools, answer)
    );
    text
}

/// `- name(key: type, other?: type): description`, which takes a tenth of the schema's tokens.
fn tool_line(tool: &ToolSpec) -> String {
    let required: Vec<&str> = tool
        .parameters
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let parameters: Vec<String> = tool
        .parameters
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_shown(&tool.parameters, name))
        .map(|(name, schema)| {
            let mark = if required.contains(&name.as_str()) {
                ""
            } else {
                "?"
            };
            format!("{name}{mark}: {}", type_of(schema))
        })
        .collect();
    let description = tool
        .description
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let description: String = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    format!("- {}({}): {description}", tool.name, parameters.join(", "))
}

fn type_of(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join("|");
    }
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join("|")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests;

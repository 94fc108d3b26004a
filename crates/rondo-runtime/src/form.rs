//! A question for a value, as one question per field that a person answers with a line each: asked by a running tool.

use rondo_core::shown;
use rondo_schema::Validator;
use rondo_types::AnswerValue;
use rondo_types::text::first_chars;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The bound on the fields of one question.
const FIELDS_MAX: usize = 32;
/// The bound on choices that are shown of one field.
const CHOICES_SHOWN_MAX: usize = 50;
/// The bound on the shown part of one text of the question, in characters.
const TEXT_CHARS_MAX: usize = 300;
/// Answers to one field after which the question is given up.
const ATTEMPTS_MAX: u32 = 3;
/// Input that declines the whole question.
pub const DECLINE: &str = "/no";

/// A question that is being answered.
#[derive(Debug, Clone)]
pub struct Form {
    fields: Vec<Field>,
    /// The field that is asked for next.
    at: usize,
    attempts: u32,
    answers: Map<String, Value>,
    /// Set if the value is that of the only field, not an object of fields.
    is_bare: bool,
}

/// Result of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum FormStep {
    /// There is another field, or the same one again: why, if it is the same.
    Next(Option<String>),
    /// All is answered.
    Done(Value),
    /// The person says no; why.
    Declined(&'static str),
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    schema: Value,
    is_required: bool,
}

impl Form {
    /// Makes questions of a JSON Schema: one for each property of an object, one for anything else. There are none if it
    /// has more than 32 properties.
    #[must_use]
    pub fn of(schema: &Value) -> Option<Self> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
        let fields: Vec<Field> = match properties {
            Some(properties) => properties
                .iter()
                .map(|(name, schema)| Field {
                    name: name.clone(),
                    schema: schema.clone(),
                    is_required: is_required(name),
                })
                .collect(),
            None => vec![Field {
                name: "value".to_owned(),
                schema: schema.clone(),
                is_required: true,
            }],
        };
        (1..=FIELDS_MAX).contains(&fields.len()).then(|| Self {
            fields,
            at: 0,
            attempts: 0,
            answers: Map::new(),
            is_bare: properties.is_none(),
        })
    }

    /// Returns a line for each field, in order: its name, what it takes, and what it is for.
    #[must_use]
    pub fn fields(&self) -> String {
        let lines: Vec<String> = self.fields.iter().map(Field::line).collect();
        lines.join("\n")
    }

    /// Returns the next question, without the end of its last line: the answer is typed there. Its words are those of
    /// the asking side; control characters are escaped.
    #[must_use]
    pub fn prompt(&self) -> String {
        self.fields
            .get(self.at)
            .map(Field::prompt)
            .unwrap_or_default()
    }

    /// Takes the answer to what [`Self::prompt`] asks.
    pub fn answer(&mut self, line: &str) -> FormStep {
        let line = line.trim();
        let Some(field) = self.fields.get(self.at) else {
            return FormStep::Declined("there is nothing to answer");
        };
        if line == DECLINE {
            return FormStep::Declined(AnswerValue::NO);
        }
        let read = match (line, field.schema.get("default")) {
            ("", Some(default)) => Ok(Some(default.clone())),
            ("", None) if field.is_required => return FormStep::Declined(AnswerValue::NO),
            ("", None) => Ok(None),
            (line, _) => field.read(line).map(Some),
        };
        match read {
            Ok(value) => {
                if let Some(value) = value {
                    self.answers.insert(field.name.clone(), value);
                }
                self.at += 1;
                self.attempts = 0;
                match self.at == self.fields.len() {
                    true => FormStep::Done(self.value()),
                    false => FormStep::Next(None),
                }
            }
            Err(_) if self.attempts + 1 >= ATTEMPTS_MAX => {
                FormStep::Declined("the user gave no valid answer")
            }
            Err(why) => {
                self.attempts += 1;
                FormStep::Next(Some(why))
            }
        }
    }

    fn value(&mut self) -> Value {
        let mut answers = std::mem::take(&mut self.answers);
        match self.is_bare {
            true => answers.remove("value").unwrap_or_default(),
            false => Value::Object(answers),
        }
    }
}

impl Field {
    fn line(&self) -> String {
        let choices = self.choices();
        let takes = match choices.is_empty() {
            true => self.kind().to_owned(),
            false => {
                let labels = choices.iter().take(CHOICES_SHOWN_MAX);
                let labels: Vec<String> = labels.map(|it| cut(&it.label)).collect();
                labels.join(" or ")
            }
        };
        let optional = if self.is_required { "" } else { ", optional" };
        let description = self.schema.get("description").and_then(Value::as_str);
        let description = description.map_or_else(String::new, |it| format!("; {}", cut(it)));
        format!("{}: {takes}{optional}{description}", cut(&self.name))
    }

    fn prompt(&self) -> String {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str).map(cut);
        let name = text("title").unwrap_or_else(|| cut(&self.name));
        let mut prompt = match text("description") {
            Some(description) => format!("{name}: {description}\n"),
            None => format!("{name}\n"),
        };
        for (at, choice) in self.choices().iter().take(CHOICES_SHOWN_MAX).enumerate() {
            let _ = writeln!(prompt, "  {}. {}", at + 1, cut(&choice.label));
        }
        let kind = match (self.takes_several(), self.choices().is_empty()) {
            (true, _) => "numbers or names, with commas between",
            (false, false) => "a number or a name",
            (false, true) => self.kind(),
        };
        let enter = match (self.schema.get("default"), self.is_required) {
            (Some(default), _) => format!("Enter alone: {}", cut(&default.to_string())),
            (None, true) => "Enter alone: no".to_owned(),
            (None, false) => "Enter alone: leaves it out".to_owned(),
        };
        format!("{prompt}({kind}; {enter}; {DECLINE}: no) ")
    }

    fn kind(&self) -> &'static str {
        match self.schema.get("type").and_then(Value::as_str) {
            Some("string") => "text",
            Some("integer") => "a whole number",
            Some("number") => "a number",
            Some("boolean") => "y or n",
            _ => "JSON",
        }
    }

    fn takes_several(&self) -> bool {
        self.schema.get("type").is_some_and(|it| it == "array") && !self.choices().is_empty()
    }

    /// Returns the choices, in the forms that the protocol of servers has for them; nothing where any answer is
    /// allowed.
    fn choices(&self) -> Vec<Choice> {
        let schema = match self.schema.get("items") {
            Some(items) => items,
            None => &self.schema,
        };
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        let labels = list("enumNames");
        let of_enum = |(at, value): (usize, &Value)| Choice {
            label: labels
                .and_then(|it| it.get(at)?.as_str())
                .map_or_else(|| as_text(value), str::to_owned),
            value: value.clone(),
        };
        if let Some(values) = list("enum") {
            return values.iter().enumerate().map(of_enum).collect();
        }
        let titled = list("oneOf").or_else(|| list("anyOf"));
        let of_titled = |it: &Value| {
            let value = it.get("const")?.clone();
            let title = it.get("title").and_then(Value::as_str);
            let label = title.map_or_else(|| as_text(&value), str::to_owned);
            Some(Choice { label, value })
        };
        titled.into_iter().flatten().filter_map(of_titled).collect()
    }

    /// Reads an answer as the value that the field's schema wants.
    fn read(&self, line: &str) -> Result<Value, String> {
        let choices = self.choices();
        let value = if self.takes_several() {
            let parts = line.split(',').map(str::trim).filter(|it| !it.is_empty());
            parts
                .map(|it| chosen(&choices, it))
                .collect::<Result<_, _>>()?
        } else if !choices.is_empty() {
            chosen(&choices, line)?
        } else {
            self.read_plain(line)?
        };
        let Ok(validator) = Validator::new(&self.schema) else {
            return Ok(value);
        };
        validator
            .check(&value)
            .map(|()| value)
            .map_err(|violations| {
                let what = violations.first().map(|it| cut(&it.what));
                what.unwrap_or_else(|| "it does not fit".to_owned())
            })
    }

    fn read_plain(&self, line: &str) -> Result<Value, String> {
        let kind = self.schema.get("type").and_then(Value::as_str);
        match kind {
            Some("string") => Ok(line.into()),
            Some("boolean") => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("expected y or n".to_owned()),
            },
            _ => {
                let read = serde_json::from_str(line);
                read.map_err(|_| format!("{} is wanted", self.kind()))
            }
        }
    }
}

struct Choice {
    label: String,
    value: Value,
}

/// Finds a choice by its number, its label or its value.
fn chosen(choices: &[Choice], line: &str) -> Result<Value, String> {
    let is_named = |it: &&Choice| it.label == line || as_text(&it.value) == line;
    let named = choices.iter().find(is_named);
    let numbered = || choices.get(line.parse::<usize>().ok()?.checked_sub(1)?);
    let found = named.or_else(numbered);
    let found = found.map(|it| it.value.clone());
    found.ok_or_else(|| format!("`{}` is not one of the choices", cut(line)))
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn cut(text: &str) -> String {
    shown::line(first_chars(text, TEXT_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(properties: &Value, required: &Value) -> Form {
        Form::of(&json!({"type": "object", "properties": properties, "required": required}))
            .unwrap()
    }

    /// Answers each field, and returns the result of the last answer.
    fn answered(mut form: Form, lines: &[&str]) -> FormStep {
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            assert_eq!(form.answer(line), FormStep::Next(None), "{line}");
        }
        form.answer(last)
    }

    #[test]
    fn each_kind_of_field_is_read_as_its_schema_wants() {
        let properties = json!({
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": "number"},
            "d": {"type": "boolean"},
            "e": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]},
            "f": {"type": "string", "oneOf": [{"const": "k", "title": "Kay"}]},
            "g": {"type": "array", "items": {"anyOf": [{"const": "1", "title": "One"}, {"const": "2", "title": "Two"}]}},
            "h": {"type": "string", "default": "usual"},
            "i": {"type": "string"},
        });
        let form = form(&properties, &json!(["a", "b", "c", "d", "e", "f", "g"]));
        let lines = ["12", "3", "0.5", "Yes", "Why", "1", "Two, 1", "", ""];
        let expected = json!({
            "a": "12", "b": 3, "c": 0.5, "d": true, "e": "y", "f": "k", "g": ["2", "1"], "h": "usual",
        });
        assert_eq!(answered(form, &lines), FormStep::Done(expected));
    }

    #[test]
    fn what_does_not_fit_is_asked_for_again_and_not_for_ever() {
        let number = json!({"n": {"type": "integer", "minimum": 5}});
        let mut asked = form(&number, &json!(["n"]));
        let FormStep::Next(Some(why)) = asked.answer("four") else {
            panic!("asked again")
        };
        assert_eq!(why, "a whole number is wanted");
        let FormStep::Next(Some(why)) = asked.answer("4") else {
            panic!("asked again")
        };
        assert!(why.contains('5'), "{why}");
        assert_eq!(
            asked.answer("1.5"),
            FormStep::Declined("the user gave no valid answer")
        );
    }

    #[test]
    fn a_person_says_no_to_all_of_it() {
        let properties = json!({"a": {"type": "string", "default": "x"}, "b": {"type": "string"}});
        let with = |lines: &[&str]| answered(form(&properties, &json!(["b"])), lines);
        assert_eq!(with(&["/no"]), FormStep::Declined(AnswerValue::NO));
        assert_eq!(with(&["", ""]), FormStep::Declined(AnswerValue::NO));
        assert_eq!(
            with(&["", "v"]),
            FormStep::Done(json!({"a": "x", "b": "v"}))
        );
    }

    #[test]
    fn what_is_asked_shows_what_may_be_said_and_nothing_that_moves_the_cursor() {
        let property = json!({
            "type": "string", "title": "Colour\u{1b}[2J", "description": "of\nthe wall",
            "enum": ["red", "blue"], "default": "red",
        });
        let form = form(&json!({"c": property}), &json!([]));
        let prompt = form.prompt();
        assert!(!prompt.contains('\u{1b}'), "{prompt}");
        assert!(prompt.contains("1. red\n  2. blue\n"), "{prompt}");
        assert!(
            prompt.ends_with("(a number or a name; Enter alone: \"red\"; /no: no) "),
            "{prompt}"
        );
    }

    #[test]
    fn a_value_that_is_no_object_is_asked_for_as_it_is() {
        let bare = |schema: Value, line: &str| answered(Form::of(&schema).unwrap(), &[line]);
        assert_eq!(
            bare(json!({"type": "string"}), "x"),
            FormStep::Done(json!("x"))
        );
        assert_eq!(bare(json!({}), "[1, 2]"), FormStep::Done(json!([1, 2])));
        let many: Map<String, Value> = (0..=FIELDS_MAX)
            .map(|it| (it.to_string(), json!({})))
            .collect();
        assert!(Form::of(&json!({"properties": many})).is_none());
    }
}

//! Chat templates: what a model was trained to read around the messages of a conversation.
//!
//! A template comes with the weights, as a program of a template language, and sees no message: each is
//! a placeholder, whose text is put in afterwards. So nothing in a message can pass for what the template
//! writes, such as the token that ends a turn, and a template cannot change a message.

#[cfg(test)]
mod tests;

use crate::error::{LocalError, first_line};
use crate::gguf::Gguf;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use minijinja_contrib::pycompat::unknown_method_callback;
use std::collections::HashMap;

/// Bytes of a template; those of large models have twenty thousand.
const TEMPLATE_BYTES_MAX: usize = 128 << 10;
/// Steps that a template may take for a conversation: thousands for each message.
const STEPS_MAX: u64 = 5_000_000;
/// Default template of files that have its tokens and no template.
const CHAT_ML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
                       {{ message.content }}<|im_end|>\n{% endfor %}{{ '<|im_start|>assistant\n' }}";
/// The tokens of it.
const CHAT_ML_TOKENS: [&str; 2] = ["<|im_start|>", "<|im_end|>"];
/// Characters around the number of a placeholder: ones that no language has and no template
/// looks for.
const OPENING: char = '\u{f0000}';
const CLOSING: char = '\u{f0001}';
/// Requirement on templates, for errors.
const KNOWN: &str = "templates that show each message of system, user and assistant once, in order";

/// The template of a model.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    source: String,
    beginning: String,
    end: String,
}

/// A piece of a rendered conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text of the template, special tokens by their names.
    Form(String),
    /// The text of that number.
    Text(usize),
}

impl Template {
    /// Takes the template of a file, or that of `ChatML` if there is none.
    ///
    /// # Errors
    /// When the template cannot be read, or there is none and the vocabulary lacks the tokens.
    pub(crate) fn read(gguf: &Gguf, specials: &HashMap<String, u32>) -> Result<Self, LocalError> {
        let name = |key| {
            let number = gguf.number(key).and_then(|it| u32::try_from(it).ok());
            let found = specials.iter().find(|(_, id)| Some(**id) == number);
            found.map(|(name, _)| name.clone()).unwrap_or_default()
        };
        let source = gguf.text("tokenizer.chat_template");
        let lacks = CHAT_ML_TOKENS.iter().any(|it| !specials.contains_key(*it));
        if source.is_none() && lacks {
            return Err(LocalError::Unsupported {
                what: "a file without a chat template and without",
                found: CHAT_ML_TOKENS.join("`, `"),
                known: "files with `tokenizer.chat_template`, such as those of instruct models",
            });
        }
        let template = Self {
            source: source.unwrap_or(CHAT_ML).to_owned(),
            beginning: name("tokenizer.ggml.bos_token_id"),
            end: name("tokenizer.ggml.eos_token_id"),
        };
        if template.source.len() > TEMPLATE_BYTES_MAX {
            let bytes = template.source.len();
            return Err(unsupported(format!("of {bytes} bytes")));
        }
        // A conversation shows now whether it can be used, not at the first question.
        template.render(&[
            ("system", &[0]),
            ("user", &[1]),
            ("assistant", &[2]),
            ("user", &[3]),
        ])?;
        Ok(template)
    }

    /// Renders messages: who says each, and the numbers of its texts, which rise from message to message.
    ///
    /// # Errors
    /// When the template fails, takes too long, or does not show each text once, in order.
    pub(crate) fn render(&self, messages: &[(&str, &[usize])]) -> Result<Vec<Piece>, LocalError> {
        let environment = environment();
        let template = environment
            .template_from_str(&self.source)
            .map_err(failed)?;
        let message = |(role, texts): &(&str, &[usize])| {
            let content = texts.iter().map(|it| format!("{OPENING}{it}{CLOSING}"));
            context! { role => *role, content => content.collect::<String>() }
        };
        let context = context! {
            messages => messages.iter().map(message).collect::<Vec<Value>>(),
            add_generation_prompt => true,
            // Thinking has no place in a reply that is one JSON object.
            enable_thinking => false,
            bos_token => self.beginning.as_str(),
            eos_token => self.end.as_str(),
        };
        let pieces = pieces(&template.render(context).map_err(failed)?);
        let wanted = messages.iter().flat_map(|(_, texts)| texts.iter());
        let shown = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(number) => Some(number),
            Piece::Form(_) => None,
        });
        if !shown.eq(wanted) {
            return Err(unsupported(
                "leaves out, repeats or moves messages".to_owned(),
            ));
        }
        Ok(pieces)
    }
}

/// Environment that templates expect: Python's methods, and line ends behind
/// and blanks before a block left out.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    // Fails only for delimiters of one's own.
    if let Ok(syntax) = syntax.build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_unknown_method_callback(unknown_method_callback);
    environment.add_function(
        "raise_exception",
        |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        },
    );
    environment
}

/// Finds the placeholders in what a template wrote.
fn pieces(rendered: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut form = String::new();
    let mut parts = rendered.split(OPENING);
    form.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let number = part.split_once(CLOSING);
        let Some((Ok(number), after)) = number.map(|(number, after)| (number.parse(), after))
        else {
            form.push_str(part);
            continue;
        };
        if !form.is_empty() {
            pieces.push(Piece::Form(std::mem::take(&mut form)));
        }
        pieces.push(Piece::Text(number));
        form.push_str(after);
    }
    if !form.is_empty() {
        pieces.push(Piece::Form(form));
    }
    pieces
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is handed to `map_err`, which passes by value"
)]
fn failed(error: Error) -> LocalError {
    unsupported(format!("fails: {}", first_line(&error.to_string())))
}

fn unsupported(found: String) -> LocalError {
    LocalError::Unsupported {
        what: "a chat template that",
        found,
        known: KNOWN,
    }
}

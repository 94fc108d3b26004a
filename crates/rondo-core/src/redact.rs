//! Redacts known secrets from transcripts: from what models are sent and what journals record.

mod forms;
mod matcher;
mod view;

pub use matcher::Redactor;

use crate::ports::{CallEnd, InterruptedCall, OutputSink, Reconciled, Tool, ToolInvocation};
use async_trait::async_trait;
use matcher::Matcher;
use rondo_types::{
    ContentBlock, JobId, Media, MediaSource, Message, Part, Question, ToolContent, ToolOutcome,
    ToolSpec,
};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Replacement of a secret.
const MARK: &str = "[redacted]";

/// Secret values, such as keys and passwords, and how to redact them. Cheap to clone.
///
/// A value is found verbatim, in base64, in hexadecimal, and as it is encoded in URLs, forms and JSON
/// strings, even with line breaks, terminal sequences or control characters within. It is not found in any
/// other encoding, such as reversed, or with cursor movements between its characters.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The shortest first.
    values: Arc<[String]>,
    matcher: Option<Arc<Matcher>>,
}

impl Secrets {
    /// The shortest value that is redacted, in bytes: a shorter one may be any word.
    pub const BYTES_MIN: usize = 8;

    /// The bound on all values together, in bytes; the shortest ones are kept, since keys are short.
    pub const BYTES_MAX: usize = 256 << 10;

    /// Collects values; those shorter than [`Self::BYTES_MIN`] are ignored.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let trimmed = values.into_iter().map(|value| value.trim().to_owned());
        let mut values: Vec<_> = trimmed.filter(|it| it.len() >= Self::BYTES_MIN).collect();
        values.sort_by(|one, other| one.len().cmp(&other.len()).then(one.cmp(other)));
        values.dedup();
        let mut room = Self::BYTES_MAX;
        values.retain(|value| {
            let left = room.checked_sub(value.len());
            room = left.unwrap_or_default();
            left.is_some()
        });
        Self {
            matcher: Matcher::new(&values).map(Arc::new),
            values: values.into(),
        }
    }

    /// Returns the values in plain text, for a process that redacts its own output.
    #[must_use]
    pub fn reveal(&self) -> &[String] {
        &self.values
    }

    /// Returns a redactor of these values for a stream of bytes.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.matcher.clone())
    }

    /// Adds values.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = String>) -> Self {
        let is_new = |it: &String| {
            let value = it.trim();
            value.len() >= Self::BYTES_MIN && !self.values.iter().any(|known| known == value)
        };
        let mut new = more.into_iter().filter(is_new).peekable();
        match new.peek() {
            // The matcher that finds them is built once for each set of values.
            None => self.clone(),
            Some(_) => Self::new(self.values.iter().cloned().chain(new)),
        }
    }

    /// Returns the text, redacted.
    #[must_use]
    pub fn text(&self, text: String) -> String {
        if !self.is_told(&text) {
            return text;
        }
        let mut redactor = self.redactor();
        let mut told = redactor.push(text.as_bytes()).into_owned();
        told.append(&mut redactor.finish());
        String::from_utf8_lossy(&told).into_owned()
    }

    /// Returns the message, redacted. Opaque provider data is unchanged.
    #[must_use]
    pub fn message(&self, mut message: Message) -> Message {
        for part in &mut message.parts {
            match part {
                Part::Text(part) => self.in_text(&mut part.text),
                Part::ToolResult(result) => {
                    match &mut result.content {
                        ToolContent::Text(text) => self.in_text(text),
                        ToolContent::Json(value) => self.in_value(value),
                    }
                    self.in_blocks(&mut result.blocks);
                }
                Part::Media(media) => self.in_media(media),
                _ => {}
            }
        }
        message
    }

    fn in_blocks(&self, blocks: &mut [ContentBlock]) {
        for block in blocks {
            match block {
                ContentBlock::Text { text } => self.in_text(text),
                ContentBlock::Media(media) => self.in_media(media),
            }
        }
    }

    /// Redacts what is said of an image or a file. Its bytes are unchanged.
    fn in_media(&self, media: &mut Media) {
        if let Some(name) = &mut media.name {
            self.in_text(name);
        }
        if let MediaSource::Url(url) = &mut media.source {
            self.in_text(url);
        }
    }

    /// Returns the outcome, redacted.
    #[must_use]
    pub fn outcome(&self, mut outcome: ToolOutcome) -> ToolOutcome {
        match &mut outcome {
            ToolOutcome::Ok(output) => {
                self.in_value(&mut output.value);
                self.in_blocks(&mut output.blocks);
                for change in &mut output.changes {
                    self.in_text(&mut change.path);
                }
                for item in output.todo.iter_mut().flatten() {
                    self.in_text(&mut item.text);
                }
                output.job = output
                    .job
                    .take()
                    .map(|job| JobId::new(self.text(job.to_string())));
            }
            ToolOutcome::Error(error) => {
                self.in_text(&mut error.message);
                self.in_value(&mut error.details);
            }
        }
        outcome
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn is_told(&self, text: &str) -> bool {
        self.redactor().finds(text)
    }

    fn in_text(&self, text: &mut String) {
        *text = self.text(std::mem::take(text));
    }

    fn in_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.in_text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.in_value(value)),
            Value::Object(fields) => {
                if fields.keys().any(|name| self.is_told(name)) {
                    let named = std::mem::take(fields).into_iter();
                    fields.extend(named.map(|(name, value)| (self.text(name), value)));
                }
                fields.values_mut().for_each(|value| self.in_value(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl Eq for Secrets {}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

/// Returns the tool with its results free of secrets; the same one if there are none.
pub(crate) fn redacted(tool: Arc<dyn Tool>, secrets: &Secrets) -> Arc<dyn Tool> {
    if secrets.is_empty() {
        return tool;
    }
    let secrets = secrets.clone();
    Arc::new(Redacted { tool, secrets })
}

struct Redacted {
    tool: Arc<dyn Tool>,
    secrets: Secrets,
}

impl Redacted {
    /// Returns a call whose live words name no secret.
    fn redacted(&self, mut invocation: ToolInvocation) -> (ToolInvocation, Arc<Live>) {
        let live = Arc::new(Live {
            redactor: Mutex::new(self.secrets.redactor()),
            to: invocation.output,
        });
        let pushed = Arc::clone(&live);
        invocation.output = OutputSink::new(move |text| pushed.push(&text));
        let (progress, secrets) = (invocation.progress, self.secrets.clone());
        invocation.progress = progress.clone().reporting(move |mut report| {
            report.message = report.message.map(|message| secrets.text(message));
            progress.report(report);
        });
        let secrets = self.secrets.clone();
        invocation.asker = invocation.asker.worded(move |prompt| secrets.text(prompt));
        (invocation, live)
    }
}

#[async_trait]
impl Tool for Redacted {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let (invocation, live) = self.redacted(invocation);
        let outcome = self.tool.call(invocation).await;
        live.finish();
        self.secrets.outcome(outcome)
    }

    async fn run(&self, invocation: ToolInvocation) -> CallEnd {
        let (invocation, live) = self.redacted(invocation);
        let end = self.tool.run(invocation).await;
        live.finish();
        match end {
            CallEnd::Done(outcome) => CallEnd::Done(self.secrets.outcome(outcome)),
            CallEnd::Waiting { child, questions } => {
                let redacted = |question: Question| Question {
                    prompt: self.secrets.text(question.prompt),
                    ..question
                };
                CallEnd::Waiting {
                    child,
                    questions: questions.into_iter().map(redacted).collect(),
                }
            }
        }
    }

    async fn evidence(&self, arguments: &Value) -> Option<Value> {
        let mut evidence = self.tool.evidence(arguments).await?;
        self.secrets.in_value(&mut evidence);
        Some(evidence)
    }

    async fn evidence_of(&self, idempotency_key: &str, arguments: &Value) -> Option<Value> {
        let evidence = self.tool.evidence_of(idempotency_key, arguments);
        let mut evidence = evidence.await?;
        self.secrets.in_value(&mut evidence);
        Some(evidence)
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        match self.tool.reconcile(call).await {
            Reconciled::Done(outcome) => Reconciled::Done(self.secrets.outcome(outcome)),
            other => other,
        }
    }
}

/// Live output on its way to people.
struct Live {
    redactor: Mutex<Redactor>,
    to: OutputSink,
}

impl Live {
    fn push(&self, text: &str) {
        self.hand_on(|redactor| {
            let mut told = redactor.push(text.as_bytes()).into_owned();
            // There is no event for a tool that goes quiet.
            told.append(&mut redactor.show());
            told
        });
    }

    fn finish(&self) {
        self.hand_on(Redactor::finish);
    }

    /// Under the lock, so that pieces stay in order.
    fn hand_on(&self, take: impl FnOnce(&mut Redactor) -> Vec<u8>) {
        let mut redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let told = take(&mut redactor);
        if !told.is_empty() {
            self.to.push(String::from_utf8_lossy(&told).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::ToolErrorCode;
    use serde_json::json;

    fn secrets() -> Secrets {
        let values = [
            "sk-12345678",
            "sk-12345678-long",
            "short",
            " padded-secret\n",
        ];
        Secrets::new(values.map(str::to_owned))
    }

    #[test]
    fn a_secret_is_replaced_wherever_it_stands_and_the_longest_first() {
        let text = "a sk-12345678-long b sk-12345678 c padded-secret short".to_owned();
        let expected = "a [redacted] b [redacted] c [redacted] short";
        assert_eq!(secrets().text(text), expected);
        let value = json!({"out": ["sk-12345678"], "sk-12345678": 1, "n": {"x": "sk-12345678!"}});
        let outcome = secrets().outcome(ToolOutcome::json(value));
        let expected = json!({"out": ["[redacted]"], "[redacted]": 1, "n": {"x": "[redacted]!"}});
        assert_eq!(outcome, ToolOutcome::json(expected));
        let failed = ToolOutcome::error(ToolErrorCode::Failed, "no sk-12345678");
        let expected = ToolOutcome::error(ToolErrorCode::Failed, "no [redacted]");
        assert_eq!(secrets().outcome(failed), expected);
    }

    #[test]
    fn a_message_of_the_user_loses_it_too_and_its_debug_form_names_none() {
        let message = secrets().message(Message::user("my key is sk-12345678"));
        assert_eq!(message, Message::user("my key is [redacted]"));
        assert_eq!(format!("{:?}", secrets()), "Secrets(3)");
    }
}

//! One call, from its opening tag on, as its text arrives.
//!
//! The end of the arguments is found by a scanner of JSON before any closing tag is looked for, so
//! a tag inside an argument is content. Nothing is repaired here that could be meant otherwise:
//! broken arguments continue as they are, to be repaired or sent back where their schema is known.

use super::arguments::{ValueScan, is_in_parameter, named_body, of_elements};
use super::tags::{TAG_BYTES_MAX, Tag, TagMatch, any_name, name_attribute, read_tag};
use std::sync::Arc;

/// The bound on a tool's name, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Elements that hold the name.
pub(super) const NAME_TAGS: [&str; 3] = ["name", "tool_name", "tool"];
/// Elements that hold the arguments.
pub(super) const VALUE_TAGS: [&str; 6] = [
    "parameters",
    "arguments",
    "args",
    "params",
    "input",
    "tool_args",
];
/// Elements that hold a call.
pub(super) const CALL_TAGS: [&str; 2] = ["tool_code", "tool_call"];
/// Element around a call by some models, with the tool's name as its attribute: `<function=look>`.
pub(super) const FUNCTION: &str = "function";
/// Element of a result; a model that writes it has begun to invent.
pub(super) const OBSERVATION: &str = "observation";
/// Opening that some models put around JSON.
const CDATA: &str = "<![CDATA[";

/// A call that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TakenCall {
    /// Empty if none was written.
    pub(super) name: String,
    /// As they were written.
    pub(super) arguments: String,
    /// The whole block as it was written, closed if it was not.
    pub(super) written: String,
    /// Set if its arguments were read to their end.
    pub(super) complete: bool,
}

/// State of the text so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallScan {
    /// More text decides.
    More,
    /// A call.
    Call(TakenCall),
    /// No call but an example: its text, then what follows it.
    Example { text: String, rest: String },
}

/// Beginning of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opening {
    /// The text from the opening tag on, or from the fence before it.
    pub(super) raw: String,
    /// Offset of the tag.
    pub(super) tag_start: usize,
    pub(super) tag: Tag,
    /// Set if it is in a fence of its own.
    pub(super) fenced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between the elements of the call.
    Between,
    /// In its name, which began there.
    Name(usize),
    /// Before its arguments.
    BeforeValue,
    /// In its arguments, which are JSON that began there.
    Json(usize),
    /// In its arguments, which are something else that began there.
    Elements(usize),
    /// Behind its arguments.
    After,
    /// In what the model invented before it ended the call.
    Abandoned,
}

enum Step {
    Go,
    More,
    Call,
    Example,
}

/// Reads one call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallReader {
    raw: String,
    /// Offset of the reader.
    at: usize,
    /// Range of the block.
    start: usize,
    end: usize,
    phase: Phase,
    scan: ValueScan,
    opener: String,
    /// The element that holds the arguments.
    container: String,
    container_closed: bool,
    closed: bool,
    fenced: bool,
    fence_open: bool,
    name: Option<String>,
    arguments: Option<String>,
    tools: Arc<[String]>,
}

impl CallReader {
    pub(super) fn new(opening: Opening, tools: Arc<[String]>) -> Self {
        let Opening {
            raw,
            tag_start,
            tag,
            fenced,
        } = opening;
        let bare = !CALL_TAGS.contains(&tag.name.as_str());
        let mut reader = Self {
            raw,
            at: tag_start + tag.len,
            start: tag_start,
            end: tag_start + tag.len,
            phase: Phase::Between,
            scan: ValueScan::default(),
            opener: tag.name.clone(),
            container: tag.name.clone(),
            container_closed: true,
            closed: false,
            fenced,
            fence_open: fenced,
            name: name_attribute(&tag.attributes),
            arguments: None,
            tools,
        };
        if bare {
            let named = reader.name.take().filter(|_| tag.name == FUNCTION);
            reader.name = named.or(Some(tag.raw_name));
            reader.phase = Phase::BeforeValue;
        } else if tag.empty {
            reader.close();
        }
        reader
    }

    /// Returns how many bytes it holds.
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Reads more text.
    pub(super) fn push(&mut self, text: &str) -> CallScan {
        self.raw.push_str(text);
        loop {
            match self.step() {
                Step::Go => {}
                Step::More => return CallScan::More,
                Step::Call => return CallScan::Call(self.taken(true)),
                Step::Example => return self.example(),
            }
        }
    }

    /// Ends the text; `cut` says that the model had more to say.
    pub(super) fn finish(&mut self, cut: bool) -> TakenCall {
        let complete = match self.phase {
            Phase::After => true,
            Phase::Json(start) if !cut => self.close_unscanned(start),
            Phase::Json(start) | Phase::Elements(start) => {
                self.arguments = self.raw.get(start..).map(str::to_owned);
                false
            }
            Phase::Between | Phase::Name(_) | Phase::BeforeValue | Phase::Abandoned => false,
        };
        self.taken(complete)
    }

    fn step(&mut self) -> Step {
        match self.phase {
            Phase::Between => self.between(),
            Phase::Name(start) => self.in_name(start),
            Phase::BeforeValue => self.before_value(),
            Phase::Json(start) => self.in_json(start),
            Phase::Elements(start) => self.in_elements(start),
            Phase::After => self.after(),
            Phase::Abandoned => Step::More,
        }
    }

    fn rest(&self) -> &str {
        self.raw.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn between(&mut self) -> Step {
        self.skip_space();
        let rest = self.rest();
        match rest.chars().next() {
            None => Step::More,
            Some('{') => {
                self.container.clone_from(&self.opener);
                self.phase = Phase::BeforeValue;
                Step::Go
            }
            Some('<') => match read_tag(rest, &any_name) {
                TagMatch::More => Step::More,
                TagMatch::No => self.skip(1),
                TagMatch::Yes(tag) => self.element(&tag),
            },
            Some(_) => {
                let len = rest.find(['<', '{']).unwrap_or(rest.len());
                self.skip(len)
            }
        }
    }

    fn element(&mut self, tag: &Tag) -> Step {
        let name = tag.name.as_str();
        let before = self.at;
        self.at += tag.len;
        if CALL_TAGS.contains(&name) {
            if tag.closing {
                self.end = self.at;
                self.close();
            }
            return Step::Go;
        }
        if name == OBSERVATION {
            self.at = before;
            return self.abandoned();
        }
        if tag.closing {
            return Step::Go;
        }
        if NAME_TAGS.contains(&name) {
            self.phase = Phase::Name(self.at);
        } else if VALUE_TAGS.contains(&name) {
            self.value_in(tag);
        } else if self.name.is_none() && self.tools.contains(&tag.raw_name) {
            self.name = Some(tag.raw_name.clone());
            self.value_in(tag);
        } else if let Some(named) = self.function(tag) {
            self.name = Some(named);
            self.value_in(tag);
        } else if self.name.is_some() && !tag.empty {
            // The arguments are beside the name, without an element around them.
            self.container.clone_from(&self.opener);
            self.phase = Phase::Elements(before);
        }
        Step::Go
    }

    /// Returns the name in `<function=look>`, if the call has none. In a fence it is an example.
    fn function(&self, tag: &Tag) -> Option<String> {
        let may_be = tag.name == FUNCTION && self.name.is_none() && !self.fenced;
        name_attribute(&tag.attributes).filter(|_| may_be)
    }

    fn value_in(&mut self, tag: &Tag) {
        self.container.clone_from(&tag.name);
        if tag.empty {
            self.take_arguments("{}".to_owned());
        } else {
            self.container_closed = false;
            self.phase = Phase::BeforeValue;
        }
    }

    fn in_name(&mut self, start: usize) -> Step {
        let rest = self.rest();
        let end = match rest.find('<') {
            Some(len) => self.at + len,
            None if self.raw.len() - start > NAME_BYTES_MAX => self.raw.len(),
            None => {
                self.at = self.raw.len();
                return Step::More;
            }
        };
        let name = self.raw.get(start..end).unwrap_or_default().trim();
        self.name = Some(name.to_owned());
        self.at = end;
        self.phase = if self.arguments.is_some() {
            Phase::After
        } else {
            Phase::Between
        };
        Step::Go
    }

    /// Skips what models put around JSON.
    fn before_value(&mut self) -> Step {
        self.skip_space();
        let rest = self.rest();
        if rest.starts_with(['{', '[']) {
            self.phase = Phase::Json(self.at);
            return Step::Go;
        }
        if rest.starts_with(CDATA) {
            return self.skip(CDATA.len());
        }
        if CDATA.starts_with(rest) || (rest.len() < 3 && "```".starts_with(rest)) {
            return Step::More;
        }
        if rest.starts_with("```") {
            return match rest.find(['\n', '{', '[']) {
                Some(len) => self.skip(len),
                None if rest.len() > TAG_BYTES_MAX => self.skip(3),
                None => Step::More,
            };
        }
        self.phase = Phase::Elements(self.at);
        Step::Go
    }

    fn in_json(&mut self, start: usize) -> Step {
        let bytes = self.raw.as_bytes().get(self.at..).unwrap_or_default();
        let Some(len) = self.scan.feed(bytes) else {
            self.at = self.raw.len();
            return Step::More;
        };
        self.at += len;
        self.end = self.at;
        let json = self.raw.get(start..self.at).unwrap_or_default().to_owned();
        match named_body(&json).filter(|_| self.name.is_none() && self.container == self.opener) {
            Some((name, arguments)) => {
                self.name = Some(name);
                self.take_arguments(arguments);
            }
            None => self.take_arguments(json),
        }
        Step::Go
    }

    /// Reads to the closing tag of what holds the arguments.
    fn in_elements(&mut self, start: usize) -> Step {
        let rest = self.rest();
        let Some(len) = rest.find('<') else {
            self.at = self.raw.len();
            return Step::More;
        };
        let tag = match read_tag(rest.get(len..).unwrap_or_default(), &any_name) {
            TagMatch::More => {
                self.at += len;
                return Step::More;
            }
            TagMatch::Yes(tag) if tag.closing => tag,
            TagMatch::Yes(_) | TagMatch::No => return self.skip(len + 1),
        };
        if tag.name != self.container && !CALL_TAGS.contains(&tag.name.as_str()) {
            return self.skip(len + 1);
        }
        let content = self.raw.get(start..self.at + len).unwrap_or_default();
        if self.container == FUNCTION && is_in_parameter(content) {
            return self.skip(len + 1);
        }
        self.at += len;
        self.end = self.at;
        let content = self.raw.get(start..self.at).unwrap_or_default();
        let arguments = of_elements(content);
        self.take_arguments(arguments);
        Step::Go
    }

    fn take_arguments(&mut self, arguments: String) {
        self.arguments = Some(arguments);
        self.end = self.end.max(self.at);
        self.phase = if self.name.is_some() {
            Phase::After
        } else {
            Phase::Between
        };
    }

    /// The block's own end: what is missing will not come.
    fn close(&mut self) {
        self.closed = true;
        self.container_closed = true;
        self.arguments.get_or_insert_with(|| "{}".to_owned());
        self.phase = Phase::After;
    }

    /// The model continued to the result of a call that it did not end.
    fn abandoned(&mut self) -> Step {
        self.phase = Phase::Abandoned;
        Step::More
    }

    /// Reads characters that may still belong to the block, or to the fence around it.
    fn after(&mut self) -> Step {
        if self.closed && !self.fenced {
            return Step::Call;
        }
        if self.fenced && !self.is_on_offer() {
            return Step::Example;
        }
        self.skip_space();
        let rest = self.rest();
        match rest.chars().next() {
            None => Step::More,
            Some('<') => match read_tag(rest, &any_name) {
                TagMatch::More => Step::More,
                TagMatch::Yes(tag) => self.after_tag(&tag),
                TagMatch::No => self.other(),
            },
            Some('`' | '~') if rest.len() < 3 => Step::More,
            Some(c @ ('`' | '~')) => {
                let run = rest.len() - rest.trim_start_matches(c).len();
                self.fence_open = false;
                self.skip(run)
            }
            // One bracket too many, and the end of a `CDATA`.
            Some('}' | ']') => self.skip(1),
            Some('>') if !self.closed => self.skip(1),
            Some(_) => self.other(),
        }
    }

    fn after_tag(&mut self, tag: &Tag) -> Step {
        let name = tag.name.as_str();
        if !tag.closing {
            let again = CALL_TAGS.contains(&name) || name == OBSERVATION;
            return if again { Step::Call } else { self.other() };
        }
        if name == OBSERVATION {
            return Step::Call;
        }
        self.at += tag.len;
        if self.closed {
            return Step::Go;
        }
        self.end = self.at;
        if name == self.container {
            self.container_closed = true;
        }
        if CALL_TAGS.contains(&name) || name == self.opener {
            self.closed = true;
        }
        Step::Go
    }

    /// Something follows that is not of the call: an example has prose around it.
    fn other(&self) -> Step {
        if self.fenced {
            Step::Example
        } else {
            Step::Call
        }
    }

    fn is_on_offer(&self) -> bool {
        let name = self.name.as_deref().unwrap_or_default();
        self.tools.is_empty() || self.tools.iter().any(|tool| tool == name)
    }

    fn skip(&mut self, len: usize) -> Step {
        self.at += len;
        Step::Go
    }

    /// Takes arguments whose end the scanner missed, which broken quotes do, if the text ends with
    /// the closing tag: only then is it certain that they are whole.
    fn close_unscanned(&mut self, start: usize) -> bool {
        let text = self.raw.trim_end().trim_end_matches('`').trim_end();
        let lower = text.to_ascii_lowercase();
        let is_end = |tag: &&&str| lower.ends_with(&format!("</{tag}>"));
        let Some(tag) = CALL_TAGS.iter().find(is_end) else {
            self.arguments = self.raw.get(start..).map(str::to_owned);
            return false;
        };
        let end = text.len();
        let before_close = end - tag.len() - 3;
        let inner = text.get(start..before_close).unwrap_or_default();
        let container = format!("</{}", self.container);
        let json = inner.rfind(&container).and_then(|at| inner.get(..at));
        self.arguments = Some(json.unwrap_or(inner).trim_end().to_owned());
        self.end = end;
        self.closed = true;
        self.container_closed = true;
        true
    }

    fn taken(&self, complete: bool) -> TakenCall {
        let mut written = self
            .raw
            .get(self.start..self.end)
            .unwrap_or_default()
            .to_owned();
        if complete && !self.closed {
            if !self.container_closed {
                written.push_str(&format!("\n</{}>", self.container));
            }
            written.push_str(&format!("\n</{}>", self.opener));
        }
        TakenCall {
            name: self.name.clone().unwrap_or_default(),
            arguments: self.arguments.clone().unwrap_or_default(),
            written,
            complete,
        }
    }

    fn example(&mut self) -> CallScan {
        let rest = self.raw.split_off(self.at);
        CallScan::Example {
            text: std::mem::take(&mut self.raw),
            rest,
        }
    }

    /// Returns the unread rest.
    pub(super) fn unread(&self) -> &str {
        self.rest()
    }

    /// Returns whether the fence around an example is still open.
    pub(super) fn fence_is_open(&self) -> bool {
        self.fence_open
    }
}

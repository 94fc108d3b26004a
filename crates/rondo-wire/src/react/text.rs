//! Splits the text of an answer, as it arrives, into visible text and the first call.
//!
//! Only what may become a tag is held back, and only so much of it as a tag can have. A tag quoted
//! in code, or with nothing behind it that a call begins with, is text. Text after the first call
//! is dropped, since a model that continues writes results of its own invention.

use super::call::{
    CALL_TAGS, CallReader, CallScan, FUNCTION, NAME_TAGS, OBSERVATION, Opening, TakenCall,
    VALUE_TAGS,
};
use super::tags::{Tag, TagMatch, name_attribute, read_tag};
use std::sync::Arc;

/// The tag around a final answer.
const FINAL_ANSWER: &str = "final_answer";
/// The bound on the line that opens a fence, in bytes.
const FENCE_LINE_BYTES_MAX: usize = 80;
/// White space between an opening tag or a fence and what decides about it, in bytes.
const SPACE_BYTES_MAX: usize = 64;
/// Element of an argument in `<function=look>`.
const PARAMETER: &str = "parameter";
/// How a thought begins that is in a fence.
const THOUGHT: &str = "thought";

/// State of reading an answer.
#[derive(Debug, Clone, PartialEq)]
enum Mode {
    Text,
    Call(Box<CallReader>),
    /// Behind the call, or in a result that the model invented.
    Rest,
}

enum Step {
    More,
    /// So many bytes are seen.
    Show(usize),
    /// So many bytes are not.
    Drop(usize),
    /// So many bytes begin or end the final answer.
    Answer(bool, usize),
    /// So many bytes begin a fence of that character.
    Fence(char, usize),
    Open(Box<Opening>),
    /// The rest is the model's invention.
    Cut,
}

/// Reads the text of one candidate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerText {
    mode: Mode,
    held: String,
    /// Offset of the reader.
    at: usize,
    tools: Arc<[String]>,
    /// Set if only white space was read of the line.
    line_start: bool,
    /// Set if a backtick of the line is open.
    in_code: bool,
    /// The character of the fence that is open.
    fence: Option<char>,
    in_answer: bool,
    /// Set if white space is skipped, as behind an opening tag.
    trim: bool,
    call: Option<TakenCall>,
    after: TrailingText,
}

/// Text behind the call.
#[derive(Debug, Clone, Default, PartialEq)]
struct TrailingText {
    bytes: usize,
    calls: u32,
    /// The end of it, in which a tag may have begun.
    tail: String,
}

impl AnswerText {
    pub(super) fn new(tools: Arc<[String]>) -> Self {
        Self {
            mode: Mode::Text,
            held: String::new(),
            at: 0,
            tools,
            line_start: true,
            in_code: false,
            fence: None,
            in_answer: false,
            trim: false,
            call: None,
            after: TrailingText::default(),
        }
    }

    /// Reads more text and appends the visible part.
    pub(super) fn push(&mut self, text: &str, shown: &mut String) {
        match &mut self.mode {
            Mode::Text => {
                self.held.push_str(text);
                self.read(shown);
            }
            Mode::Call(reader) => {
                let seen = reader.push(text);
                self.take(seen, shown);
            }
            Mode::Rest => self.after.push(text),
        }
    }

    /// Ends the text; `cut` says that the model had more to say.
    pub(super) fn finish(&mut self, cut: bool, shown: &mut String) {
        if matches!(self.mode, Mode::Text) {
            self.settle_held(shown);
        }
        if let Mode::Call(reader) = &mut self.mode {
            let call = reader.finish(cut);
            self.call = Some(call);
            self.mode = Mode::Rest;
        }
    }

    /// Returns the call, once it is read.
    pub(super) fn call(&self) -> Option<&TakenCall> {
        self.call.as_ref()
    }

    /// Returns how many calls were dropped.
    pub(super) fn ignored_calls(&self) -> u32 {
        self.after.calls
    }

    /// Returns how many bytes were dropped.
    pub(super) fn dropped_bytes(&self) -> usize {
        self.after.bytes
    }

    /// Returns how many bytes are held.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.mode {
            Mode::Call(reader) => reader.len(),
            Mode::Text | Mode::Rest => self.held.len(),
        }
    }

    fn read(&mut self, shown: &mut String) {
        loop {
            match self.step() {
                Step::More => break,
                Step::Show(len) => self.pass(len, true, shown),
                Step::Drop(len) => self.pass(len, false, shown),
                Step::Answer(begins, len) => {
                    self.in_answer = begins;
                    self.trim = begins;
                    self.pass(len, false, shown);
                }
                Step::Fence(mark, len) => {
                    self.fence = Some(mark);
                    self.pass(len, true, shown);
                }
                Step::Open(opening) => return self.open(*opening, shown),
                Step::Cut => return self.cut(),
            }
        }
        self.held.drain(..self.at);
        self.at = 0;
    }

    fn rest(&self) -> &str {
        self.held.get(self.at..).unwrap_or_default()
    }

    fn pass(&mut self, len: usize, show: bool, shown: &mut String) {
        let text = self.held.get(self.at..self.at + len).unwrap_or_default();
        let (line, new_line) = match text.rsplit_once('\n') {
            Some((_, line)) => (line, true),
            None => (text, false),
        };
        if show {
            self.line_start = (self.line_start || new_line) && line.trim().is_empty();
            self.in_code &= !new_line;
            let visible = if self.trim { text.trim_start() } else { text };
            self.trim &= visible.is_empty();
            shown.push_str(visible);
        }
        self.at += len;
    }

    fn open(&mut self, opening: Opening, shown: &mut String) {
        self.held.clear();
        self.at = 0;
        let mut reader = CallReader::new(opening, Arc::clone(&self.tools));
        let seen = reader.push("");
        self.mode = Mode::Call(Box::new(reader));
        self.take(seen, shown);
    }

    fn cut(&mut self) {
        let rest = self.held.split_off(self.at);
        self.held.clear();
        self.at = 0;
        self.mode = Mode::Rest;
        self.after.push(&rest);
    }

    fn take(&mut self, seen: CallScan, shown: &mut String) {
        let Mode::Call(reader) = &self.mode else {
            return;
        };
        match seen {
            CallScan::More => {}
            CallScan::Call(call) => {
                let rest = reader.unread().to_owned();
                self.call = Some(call);
                self.mode = Mode::Rest;
                self.after.push(&rest);
            }
            CallScan::Example { text, rest } => {
                self.fence = reader.fence_is_open().then(|| fence_char(&text));
                self.mode = Mode::Text;
                self.line_start = false;
                self.trim = false;
                shown.push_str(&text);
                self.held = rest;
                self.read(shown);
            }
        }
    }

    /// Decides on text of which nothing more comes.
    fn settle_held(&mut self, shown: &mut String) {
        let rest = self.rest();
        let fence_len = if rest.starts_with('<') {
            0
        } else {
            rest.find('<').unwrap_or(rest.len())
        };
        let (fence, tail) = rest.split_at(fence_len);
        let opening = |name: &str| CALL_TAGS.contains(&name) || name == FUNCTION;
        let begins_call = !tail.is_empty()
            && match read_tag(&format!("{tail} <"), &|name, whole| whole && opening(name)) {
                TagMatch::Yes(tag) if tag.name == FUNCTION => {
                    fence.is_empty() && self.line_start && self.names_a_tool(&tag)
                }
                TagMatch::Yes(tag) => !tag.closing,
                TagMatch::More | TagMatch::No => false,
            };
        if begins_call {
            self.call = Some(TakenCall {
                name: String::new(),
                arguments: String::new(),
                written: tail.to_owned(),
                complete: false,
            });
            self.mode = Mode::Rest;
        } else if tail.len() > 1 && (self.line_start || tail.starts_with("</") || !fence.is_empty())
        {
            // The beginning of a tag that was cut off.
            self.mode = Mode::Rest;
        } else {
            let rest = rest.to_owned();
            shown.push_str(if self.trim { rest.trim_start() } else { &rest });
        }
        self.held.clear();
        self.at = 0;
    }

    fn step(&mut self) -> Step {
        if let Some(fence) = self.fence {
            return self.in_fence(fence);
        }
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Step::More;
        };
        if self.line_start
            && matches!(first, '`' | '~')
            && let Some(step) = self.fence_line(first)
        {
            return step;
        }
        match first {
            '<' if !self.in_code => self.at_tag(0, false),
            '`' => {
                self.in_code = !self.in_code;
                Step::Show(1)
            }
            _ => Step::Show(self.plain_len(first)),
        }
    }

    /// How much is text without a question, `first` included.
    fn plain_len(&self, first: char) -> usize {
        let rest = self.rest();
        let skip = first.len_utf8();
        let more = rest.get(skip..).unwrap_or_default();
        if first == '\n' {
            return skip;
        }
        more.find(['<', '`', '~', '\n'])
            .map_or(rest.len(), |at| skip + at)
    }

    /// Shows the lines of a fence, to the one that closes it.
    fn in_fence(&mut self, fence: char) -> Step {
        let rest = self.rest();
        if rest.is_empty() {
            return Step::More;
        }
        if self.line_start {
            let marks = rest.trim_start_matches(' ');
            let (indent, whole) = (
                rest.len() - marks.len(),
                marks.len() - marks.trim_start_matches(fence).len(),
            );
            // More of the same may follow, which belongs to it.
            if whole == marks.len() && rest.len() <= FENCE_LINE_BYTES_MAX {
                return Step::More;
            }
            // One that is longer ends where it was not waited for any more, however it came.
            let run = whole.min((FENCE_LINE_BYTES_MAX + 1).saturating_sub(indent));
            if run >= 3 {
                self.fence = None;
                return Step::Show(indent + run);
            }
        }
        Step::Show(rest.find('\n').map_or(rest.len(), |at| at + 1))
    }

    /// Reads a line that opens a fence, and what is first in it.
    fn fence_line(&self, mark: char) -> Option<Step> {
        let rest = self.rest();
        let run = rest.len() - rest.trim_start_matches(mark).len();
        if run < 3 {
            return (run == rest.len()).then_some(Step::More);
        }
        let Some(line) = rest.find('\n') else {
            return (rest.len() <= FENCE_LINE_BYTES_MAX).then_some(Step::More);
        };
        if line > FENCE_LINE_BYTES_MAX || rest.get(run..line)?.contains('`') {
            return None;
        }
        let body = rest.get(line + 1..)?;
        let content = body.trim_start();
        let space = body.len() - content.len();
        if content.is_empty() && space <= SPACE_BYTES_MAX {
            return Some(Step::More);
        }
        if content.starts_with('<') && space <= SPACE_BYTES_MAX && !self.in_answer {
            let step = self.at_tag(line + 1 + space, true);
            if matches!(step, Step::More | Step::Open(_)) {
                return Some(step);
            }
        }
        match begins_thought(content) {
            TagMatch::More => Some(Step::More),
            TagMatch::Yes(()) => Some(Step::Show(line + 1)),
            TagMatch::No => Some(Step::Fence(mark, line + 1)),
        }
    }

    fn at_tag(&self, offset: usize, fenced: bool) -> Step {
        let rest = self.rest().get(offset..).unwrap_or_default();
        let tag = match read_tag(rest, &|name, whole| self.is_ours(name, whole)) {
            TagMatch::More => return Step::More,
            TagMatch::No => return Step::Show(1),
            TagMatch::Yes(tag) => tag,
        };
        match tag.name.as_str() {
            FINAL_ANSWER => Step::Answer(!tag.closing, tag.len),
            OBSERVATION if tag.closing => Step::Drop(tag.len),
            OBSERVATION if self.line_start => Step::Cut,
            OBSERVATION => Step::Show(tag.len),
            name if CALL_TAGS.contains(&name) && tag.closing => Step::Drop(tag.len),
            FUNCTION if !self.is_tool(FUNCTION) && (fenced || !self.names_a_tool(&tag)) => {
                Step::Show(1)
            }
            _ if tag.closing => Step::Show(tag.len),
            _ => self.at_call(offset, tag, fenced),
        }
    }

    fn at_call(&self, offset: usize, tag: Tag, fenced: bool) -> Step {
        let behind = self.rest().get(offset + tag.len..).unwrap_or_default();
        match self.begins_call(&tag, behind, fenced) {
            TagMatch::More => Step::More,
            TagMatch::No => Step::Show(tag.len),
            TagMatch::Yes(())
                if name_attribute(&tag.attributes).is_none() && begins_again(behind) =>
            {
                Step::Drop(tag.len + behind.len() - behind.trim_start().len())
            }
            TagMatch::Yes(()) => Step::Open(Box::new(Opening {
                raw: self.rest().to_owned(),
                tag_start: offset,
                tag,
                fenced,
            })),
        }
    }

    /// Looks behind an opening tag: prose that names the tag continues otherwise.
    fn begins_call(&self, tag: &Tag, behind: &str, fenced: bool) -> TagMatch<()> {
        let bare = !CALL_TAGS.contains(&tag.name.as_str());
        if !bare && name_attribute(&tag.attributes).is_some() {
            return TagMatch::Yes(());
        }
        if bare && !self.line_start {
            return TagMatch::No;
        }
        let content = behind.trim_start();
        if content.is_empty() && behind.len() <= SPACE_BYTES_MAX {
            return TagMatch::More;
        }
        if content.starts_with('{') {
            return TagMatch::Yes(());
        }
        if tag.name == FUNCTION && !fenced && self.names_a_tool(tag) {
            return begins_parameters(content);
        }
        if bare || tag.empty {
            return TagMatch::No;
        }
        if content.starts_with("```") {
            return TagMatch::Yes(());
        }
        if "```".starts_with(content) {
            return TagMatch::More;
        }
        let is_inside = |name: &str, whole| {
            self.is_inside_call(name, whole) || (!fenced && matches_name(FUNCTION, name, whole))
        };
        match read_tag(content, &is_inside) {
            TagMatch::Yes(inner) if inner.name == FUNCTION && !self.is_tool(FUNCTION) => {
                match !inner.closing && self.names_a_tool(&inner) {
                    true => TagMatch::Yes(()),
                    false => TagMatch::No,
                }
            }
            TagMatch::Yes(inner) if !inner.closing => TagMatch::Yes(()),
            TagMatch::More => TagMatch::More,
            TagMatch::Yes(_) | TagMatch::No => TagMatch::No,
        }
    }

    fn is_ours(&self, name: &str, whole: bool) -> bool {
        let others = [FINAL_ANSWER, OBSERVATION, FUNCTION];
        let fixed = CALL_TAGS.into_iter().chain(others);
        fixed
            .chain(self.tools.iter().map(String::as_str))
            .any(|known| matches_name(known, name, whole))
    }

    /// Returns whether it is `<function=look>` of a tool on offer.
    fn names_a_tool(&self, tag: &Tag) -> bool {
        name_attribute(&tag.attributes).is_some_and(|name| self.is_tool(&name))
    }

    fn is_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool == name)
    }

    fn is_inside_call(&self, name: &str, whole: bool) -> bool {
        let fixed = NAME_TAGS.into_iter().chain(VALUE_TAGS).chain(CALL_TAGS);
        fixed
            .chain(self.tools.iter().map(String::as_str))
            .any(|known| matches_name(known, name, whole))
    }
}

impl TrailingText {
    fn push(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(text.len());
        self.tail.push_str(&text.to_ascii_lowercase());
        let openers = |tag: &str| self.tail.matches(&format!("<{tag}")).count();
        let calls = CALL_TAGS.into_iter().map(openers).sum::<usize>();
        self.calls = self
            .calls
            .saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
        let keep = self.tail.rfind('<').unwrap_or(self.tail.len());
        self.tail.drain(..keep);
        // A tail as long as a tag was counted.
        if self.tail.len() > CALL_TAGS.iter().map(|tag| tag.len()).min().unwrap_or(0) {
            self.tail.clear();
        }
    }
}

fn matches_name(known: &str, name: &str, whole: bool) -> bool {
    if whole {
        known.eq_ignore_ascii_case(name)
    } else {
        known
            .get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    }
}

/// Returns whether an opening tag was written twice.
fn begins_again(behind: &str) -> bool {
    let opening = |name: &str, whole| whole && CALL_TAGS.contains(&name);
    matches!(read_tag(behind.trim_start(), &opening), TagMatch::Yes(tag) if !tag.closing)
}

/// Looks for what is first in `<function=look>`, if it is no JSON: a parameter, or its end
/// if there is none.
fn begins_parameters(content: &str) -> TagMatch<()> {
    let known = |name: &str, whole| {
        matches_name(PARAMETER, name, whole) || matches_name(FUNCTION, name, whole)
    };
    match read_tag(content, &known) {
        TagMatch::Yes(tag) if tag.closing == (tag.name == FUNCTION) => TagMatch::Yes(()),
        TagMatch::More => TagMatch::More,
        TagMatch::Yes(_) | TagMatch::No => TagMatch::No,
    }
}

fn begins_thought(content: &str) -> TagMatch<()> {
    let word = content.trim_start_matches(['*', '#', ' ']);
    if content.len() - word.len() > SPACE_BYTES_MAX {
        return TagMatch::No;
    }
    match word.get(..THOUGHT.len()) {
        Some(begin) if begin.eq_ignore_ascii_case(THOUGHT) => TagMatch::Yes(()),
        None if matches_name(THOUGHT, word, false) => TagMatch::More,
        Some(_) | None => TagMatch::No,
    }
}

fn fence_char(text: &str) -> char {
    text.trim_start().chars().next().unwrap_or('`')
}

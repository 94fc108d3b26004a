//! Finds tool calls that a model wrote into its text.

use crate::json::Text;
use crate::scan::JsonScan;
use rondo_types::ToolSpec;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Objects of one answer that are tried.
const OBJECTS_MAX: usize = 8;

/// Ticks that make a fence.
const FENCE_TICKS: u8 = 3;

/// Opening of a block of code.
const FENCE: &str = "```";

/// The tag that Hermes-like models put around a call.
const TAG: &str = "<tool_call>";

/// Holds back the text in which a call may be.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HeldText {
    watch: Watch,
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// Only white space so far.
    #[default]
    Start,
    /// Inside prose, behind this many ticks in a row.
    Prose(u8),
    Holding,
    /// Prose with a fence: whatever follows explains, and is not a call.
    Off,
}

/// A call that the model wrote as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextCall<'t> {
    pub(super) name: String,
    pub(super) arguments: &'t str,
}

#[derive(Deserialize)]
struct WrittenCall<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

impl HeldText {
    /// Takes text and returns what may be shown now.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        if self.watch == Watch::Start {
            self.watch = match self.held.trim_start().chars().next() {
                None => Watch::Start,
                Some('{' | '`' | '<') => Watch::Holding,
                Some(_) => Watch::Prose(0),
            };
        }
        match self.watch {
            Watch::Start | Watch::Holding => String::new(),
            Watch::Prose(ticks) => self.prose(ticks),
            Watch::Off => std::mem::take(&mut self.held),
        }
    }

    /// Gives back what is held, and holds nothing more.
    pub(super) fn release(&mut self) -> String {
        self.watch = Watch::Off;
        std::mem::take(&mut self.held)
    }

    fn prose(&mut self, mut ticks: u8) -> String {
        for (at, byte) in self.held.bytes().enumerate() {
            ticks = if byte == b'`' { ticks + 1 } else { 0 };
            if ticks == FENCE_TICKS {
                return self.release();
            }
            if byte == b'{' {
                self.watch = Watch::Holding;
                let held = self.held.split_off(at);
                return std::mem::replace(&mut self.held, held);
            }
        }
        self.watch = Watch::Prose(ticks);
        std::mem::take(&mut self.held)
    }
}

/// Finds the first call of a known tool in text that was held back.
pub(super) fn find_call<'t>(held: &'t str, tools: &[ToolSpec]) -> Option<TextCall<'t>> {
    let text = held.trim();
    let mut rest = match text.strip_prefix(FENCE) {
        Some(fenced) => whole_fence(fenced)?,
        None => text.strip_prefix(TAG).unwrap_or(text),
    };
    for _ in 0..OBJECTS_MAX {
        let start = rest.find('{')?;
        if rest.get(..start)?.contains(FENCE) {
            return None;
        }
        let from = rest.get(start..)?;
        let end = JsonScan::default().feed(from.as_bytes())?;
        if let Some(call) = read_call(from.get(..end)?, tools) {
            return Some(call);
        }
        // A call in doubled braces, as small models copy them out of templates, is one deeper.
        let doubled = from.starts_with("{{");
        rest = from.get(if doubled { 1 } else { end }..)?;
    }
    None
}

/// Returns the content of a fence that is the whole answer. One with text around it explains.
fn whole_fence(behind_ticks: &str) -> Option<&str> {
    let (_, inner) = behind_ticks.split_once('\n')?;
    match inner.find(FENCE) {
        None => Some(inner),
        Some(end) => {
            let (inner, tail) = inner.split_at(end);
            tail.trim_start_matches('`')
                .trim()
                .is_empty()
                .then_some(inner)
        }
    }
}

fn read_call<'t>(object: &'t str, tools: &[ToolSpec]) -> Option<TextCall<'t>> {
    let call: WrittenCall<'t> = serde_json::from_str(object).ok()?;
    let arguments = call.arguments.get();
    let known = tools.iter().any(|tool| tool.name == call.name.0);
    (known && arguments.starts_with('{')).then(|| TextCall {
        name: call.name.0.into_owned(),
        arguments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"name": "exec", "arguments": {"command": "ls"}}"#;

    /// Returns the shown text and the call, if one was found.
    fn read(pieces: &[&str]) -> (String, Option<String>) {
        let mut text = HeldText::default();
        let shown = pieces.iter().map(|piece| text.push(piece)).collect();
        let held = text.release();
        let tools = [ToolSpec {
            name: "exec".to_owned(),
            ..ToolSpec::default()
        }];
        let call = find_call(&held, &tools).map(|call| call.arguments.to_owned());
        (shown, call)
    }

    #[test]
    fn a_bare_call_is_found_at_any_cut() {
        for cut in 0..CALL.len() {
            let (head, tail) = CALL.split_at(cut);
            let (shown, call) = read(&["\n ", head, tail]);
            assert_eq!(shown, "");
            assert_eq!(call.as_deref(), Some(r#"{"command": "ls"}"#));
        }
    }

    #[test]
    fn a_fence_that_is_the_whole_answer_is_a_call() {
        let fenced = format!("```json\n{CALL}\n```\n");
        assert!(read(&[&fenced]).1.is_some());
    }

    #[test]
    fn a_fence_beside_prose_is_an_explanation() {
        for text in [
            format!("You could send\n```json\n{CALL}\n```"),
            format!("```json\n{CALL}\n```\nThis would list the files."),
        ] {
            for cut in 0..text.len() {
                let (head, tail) = text.split_at(cut);
                assert_eq!(read(&[head, tail]).1, None, "{text} cut at {cut}");
            }
        }
    }

    #[test]
    fn prose_is_shown_up_to_the_first_brace() {
        let (shown, call) = read(&["I will look. ", CALL]);
        assert_eq!(shown, "I will look. ");
        assert!(call.is_some());
    }

    #[test]
    fn an_unknown_tool_or_arguments_of_another_type_are_text() {
        assert_eq!(read(&[r#"{"name": "rm", "arguments": {}}"#]).1, None);
        assert_eq!(read(&[r#"{"name": "exec", "arguments": "ls"}"#]).1, None);
        assert_eq!(read(&[r#"{"name": "exec", "arguments": {"a": 1}"#]).1, None);
    }
}

//! Detects a tool call that leaked into a model's text in the format that its own chat template uses.
//!
//! Servers that do not know a model's template hand its calls out as text. To read them would be a guess, and to show
//! them as the answer would hide that something was requested. Text in a fence or in ticks only speaks of them.

/// Marks of calls in such templates. No prose has these.
const MARKS: [&str; 10] = [
    "<|channel|>commentary",
    "<|call|>",
    "<|start|>assistant",
    "<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>",
    "<\u{ff5c}tool\u{2581}call\u{2581}begin\u{ff5c}>",
    "<\u{ff5c}DSML\u{ff5c}",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
];
/// Tags that are calls only at the beginning of a line.
const LINE_MARKS: [&str; 3] = ["<tool_call>", "<function_calls>", "<function="];

/// Returns the mark of the first call that is written as text.
pub(super) fn written_call(text: &str) -> Option<&'static str> {
    // Nearly no answer has one of these characters.
    if !text.contains(['<', '[']) {
        return None;
    }
    let mut is_fenced = false;
    for line in text.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_fenced = !is_fenced;
        } else if !is_fenced && let Some(mark) = mark_of(line) {
            return Some(mark);
        }
    }
    None
}

fn mark_of(line: &str) -> Option<&'static str> {
    let begins = LINE_MARKS.into_iter().find(|mark| line.starts_with(mark));
    let outside_of_ticks = |mark: &&str| line.split('`').step_by(2).any(|it| it.contains(*mark));
    begins.or_else(|| MARKS.into_iter().find(outside_of_ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_the_formats_of_templates_are_found() {
        for text in [
            "<|channel|>commentary to=functions.look<|message|>{}<|call|>",
            "Let me see.<\u{ff5c}tool\u{2581}calls\u{2581}begin\u{ff5c}>look",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0",
            "I look.\n<tool_call>\n{\"name\": \"look\"}\n</tool_call>",
        ] {
            assert!(written_call(text).is_some(), "{text}");
        }
    }

    #[test]
    fn text_that_speaks_of_calls_is_none() {
        for text in [
            "plain",
            "harmony ends a call with `<|call|>`, I think",
            "```\n<|call|>\n<tool_call>\n```",
            "a tag like <tool_call> begins one",
            "a < b, and c[0] > d",
        ] {
            assert_eq!(written_call(text), None, "{text}");
        }
    }
}

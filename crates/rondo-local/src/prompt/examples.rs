//! Example conversations that show the model the form of a step.
//!
//! Models that are too small copy them, so they do no harm: their commands only read, and nothing
//! in them can pass for an answer to a user's question. One shows what to do where a command
//! fails, one that general knowledge takes no command: without it the model looks up in a shell
//! what it knows.

use rondo_types::ToolSpec;
use serde_json::json;
use std::fmt::Write as _;

/// The tool that examples call.
const EXEC: &str = "exec";

struct Example {
    question: &'static str,
    /// Commands and what they printed.
    commands: &'static [(&'static str, &'static str)],
    answer: &'static str,
}

const EXAMPLES: [Example; 3] = [
    Example {
        question: "Are dogs allowed, according to rules/house.md?",
        commands: &[(
            "grep -n -i dog rules/house.md",
            "14:Dogs are welcome on a lead.",
        )],
        answer: "Yes, dogs are welcome on a lead, says rules/house.md.",
    },
    Example {
        question: "Who is named in guests.txt?",
        commands: &[
            (
                "cat guests.txt",
                "cat: guests.txt: No such file or directory\nexit code: 1",
            ),
            ("find . -name guests.txt", "./party/guests.txt"),
            ("cat party/guests.txt", "Ann\nBo"),
        ],
        answer: "Ann and Bo are named in party/guests.txt.",
    },
    Example {
        question: "Who wrote Don Quixote?",
        commands: &[],
        answer: "Don Quixote was written by Miguel de Cervantes.",
    },
];

/// Returns the examples that fit the tools on offer; `answer` is the action that answers.
pub(super) fn examples(tools: &[ToolSpec], answer: &str) -> String {
    let has_exec = tools.iter().any(|tool| tool.name == EXEC);
    let fitting = EXAMPLES
        .iter()
        .filter(|example| has_exec || example.commands.is_empty())
        .map(|example| example.render(answer));
    format!("Examples:\n{}", fitting.collect::<Vec<_>>().join("\n\n"))
}

impl Example {
    fn render(&self, answer: &str) -> String {
        let mut text = format!("User: {}\n", self.question);
        for (command, output) in self.commands {
            let call = json!({"action": EXEC, "args": {"command": command}});
            let _ = write!(text, "{call}\n<observation>\n{output}\n</observation>\n");
        }
        let last = json!({"action": answer, "args": {"text": self.answer}});
        text + &last.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tests::exec;

    #[test]
    fn commands_are_shown_only_where_there_is_a_tool_for_them() {
        let all = examples(&[exec()], "answer");
        assert!(
            all.starts_with(
                "Examples:\nUser: Are dogs allowed, according to rules/house.md?\n\
                 {\"action\":\"exec\",\"args\":{\"command\":\"grep -n -i dog rules/house.md\"}}\n\
                 <observation>\n14:Dogs are welcome on a lead.\n</observation>\n\
                 {\"action\":\"answer\",\"args\":{\"text\":\"Yes, dogs are welcome on a lead, says \
                 rules/house.md.\"}}\n\n\
                 User: Who is named"
            ),
            "{all}"
        );
        assert_eq!(
            examples(&[], "final_answer"),
            "Examples:\nUser: Who wrote Don Quixote?\n\
             {\"action\":\"final_answer\",\"args\":{\"text\":\"Don Quixote was written by Miguel de Cervantes.\"}}"
        );
    }
}

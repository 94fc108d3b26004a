//! Example conversations that show the model the form of a step.
//!
//! Models that are too small copy them, so they do no harm: their commands only read, and nothing
//! in them can pass for an answer to a user's question. They show what each kind of question wants: what was
//! looked up beforehand is answered from, a file that was not is read, a sum is left to a command, and general
//! knowledge takes none.

use rondo_types::ToolSpec;
use serde_json::json;
use std::fmt::Write as _;

/// The tool that examples call.
const EXEC: &str = "exec";

struct Example {
    /// Text before the question.
    shown: &'static str,
    question: &'static str,
    /// Commands and what they printed.
    commands: &'static [(&'static str, &'static str)],
    answer: &'static str,
}

const EXAMPLES: [Example; 6] = [
    Example {
        shown: "<files>
guests.txt (9 lines)
house.md (58 lines)
</files>
<found>
house.md:14: Dogs are welcome on a lead.
</found>
",
        question: "Are dogs allowed?",
        commands: &[],
        answer: "Yes, dogs are welcome on a lead, says house.md.",
    },
    Example {
        shown: "<files>
guests.txt (9 lines)
house.md (58 lines)
</files>
<found>
No file has `pool`
</found>
",
        question: "Does the house have a pool?",
        commands: &[],
        answer: "No, nothing here mentions a pool.",
    },
    Example {
        shown: "<files>
dogs.csv (4 lines)
</files>
<found>
dogs.csv:
name,kilograms,owner
Rex,31,Bo
Tim,8,Ann
Asta,24,Ann
3 rows
kilograms: least Tim,8,Ann; greatest Rex,31,Bo; sum 63; mean 21
</found>
",
        question: "How heavy is Asta?",
        commands: &[],
        answer: "Asta weighs 24 kilograms.",
    },
    Example {
        shown: "<files>
guests.txt (9 lines)
house.md (58 lines)
</files>
<found>
No file has `invit`
</found>
",
        question: "Who is invited?",
        commands: &[("cat guests.txt", "Ann\nBo")],
        answer: "Ann and Bo are invited, says guests.txt.",
    },
    Example {
        shown: "<files>
guests.txt (9 lines)
house.md (58 lines)
</files>
<found>
No file has `minut`, `3.5`, `day`
</found>
",
        question: "How many minutes are 3.5 days?",
        commands: &[("python3 -c 'print(3.5*24*60)'", "5040.0")],
        answer: "3.5 days are 5040 minutes.",
    },
    Example {
        shown: "<files>
guests.txt (9 lines)
house.md (58 lines)
</files>
<found>
No file has `wrote`, `quixote`
</found>
",
        question: "Who wrote Don Quixote?",
        commands: &[],
        answer: "Don Quixote was written by Miguel de Cervantes.",
    },
];

/// The one that needs no tool.
const KNOWN: &Example = &Example {
    shown: "",
    question: "Who wrote Don Quixote?",
    commands: &[],
    answer: "Don Quixote was written by Miguel de Cervantes.",
};

/// Returns the examples that fit the tools on offer; `answer` is the action that answers.
pub(super) fn examples(tools: &[ToolSpec], answer: &str) -> String {
    let has_exec = tools.iter().any(|tool| tool.name == EXEC);
    let fitting = if has_exec {
        &EXAMPLES
    } else {
        std::slice::from_ref(KNOWN)
    };
    let rendered = fitting.iter().map(|example| example.render(answer));
    format!("Examples:\n{}", rendered.collect::<Vec<_>>().join("\n\n"))
}

impl Example {
    fn render(&self, answer: &str) -> String {
        let mut text = format!("User: {}{}\n", self.shown, self.question);
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
            all.contains(
                "</found>\nWho is invited?\n\
                 {\"action\":\"exec\",\"args\":{\"command\":\"cat guests.txt\"}}\n\
                 <observation>\nAnn\nBo\n</observation>\n\
                 {\"action\":\"answer\",\"args\":{\"text\":\"Ann and Bo are invited, says guests.txt.\"}}\n\n\
                 User: <files>"
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

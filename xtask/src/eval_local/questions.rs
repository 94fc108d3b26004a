//! The questions, and the files that they are about.

use anyhow::Result;
use std::fs;
use std::path::Path;

/// One question whose answer is known.
pub(crate) struct Question {
    pub(crate) name: &'static str,
    pub(crate) prompt: &'static str,
    /// Whether the answer is a guess without a tool call.
    needs_tool: bool,
    /// Of each list, the answer must hold one; in lower case. A number must be a word of its own.
    expected: &'static [&'static [&'static str]],
}

impl Question {
    /// Returns whether an answer is right.
    pub(crate) fn is_right(&self, answer: &str, calls: u64) -> bool {
        let answer = answer.to_lowercase().replace(',', "");
        let holds = |part: &&str| {
            if part.chars().all(|c| c.is_ascii_digit()) {
                let mut words = answer.split(|c: char| !c.is_alphanumeric());
                words.any(|word| word == *part)
            } else {
                answer.contains(*part)
            }
        };
        (calls > 0 || !self.needs_tool)
            && self.expected.iter().all(|any_of| any_of.iter().any(holds))
    }
}

const fn with_tool(
    name: &'static str,
    prompt: &'static str,
    expected: &'static [&'static [&'static str]],
) -> Question {
    Question {
        name,
        prompt,
        needs_tool: true,
        expected,
    }
}

const fn without_tool(
    name: &'static str,
    prompt: &'static str,
    expected: &'static [&'static [&'static str]],
) -> Question {
    Question {
        name,
        prompt,
        needs_tool: false,
        expected,
    }
}

/// What a failed command is told as.
const FAILED: &[&str] = &[
    "no such file",
    "not exist",
    "not found",
    "fail",
    "did not work",
    "cannot access",
    "error",
];
/// What a search without a find is told as.
const NONE: &[&str] = &["no", "not", "0"];

/// The questions that prompts are tuned on.
pub(crate) const QUESTIONS: [Question; 16] = [
    with_tool(
        "count-files",
        "How many Python files (*.py) are in the directory src?",
        &[&["4", "four"]],
    ),
    with_tool(
        "config-value",
        "Which port is set in config.toml?",
        &[&["8417"]],
    ),
    with_tool(
        "count-matches",
        "How many lines of logs/app.log contain the word ERROR?",
        &[&["6", "six"]],
    ),
    with_tool(
        "count-lines",
        "How many lines does the file todo.txt have?",
        &[&["23"]],
    ),
    with_tool(
        "find-text",
        "Which file in the directory src contains the word heliotrope?",
        &[&["paint.py"]],
    ),
    with_tool(
        "multiply",
        "What is 4183 times 7? Compute it with Python or the shell.",
        &[&["29281"]],
    ),
    with_tool(
        "power",
        "Use Python to compute 2 to the power of 31.",
        &[&["2147483648"]],
    ),
    without_tool("capital", "What is the capital of France?", &[&["paris"]]),
    without_tool("greeting", "How do you say hello in Spanish?", &[&["hola"]]),
    with_tool(
        "failing-command",
        "Run the command `cat missing.txt` and tell me whether it worked.",
        &[FAILED],
    ),
    with_tool(
        "missing-file",
        "Is there a file called budget.xlsx in this directory?",
        &[NONE],
    ),
    with_tool(
        "first-line",
        "What is the first line of greeting.txt?",
        &[&["good morning"], &["crew"]],
    ),
    with_tool(
        "read-number",
        "What is the launch code in notes/launch.txt?",
        &[&["7319"]],
    ),
    with_tool(
        "largest-file",
        "Which file in the directory data is the largest?",
        &[&["measurements.csv"]],
    ),
    with_tool(
        "json-value",
        "Which version does package.json name?",
        &[&["3.14.2"]],
    ),
    with_tool(
        "list-directories",
        "What are the names of the directories in the current directory?",
        &[&["src"], &["notes"], &["data"], &["logs"]],
    ),
];

/// The questions that nothing is tuned on.
pub(crate) const HELD_OUT: [Question; 16] = [
    with_tool(
        "count-csv",
        "How many CSV files are in the directory data?",
        &[&["3", "three"]],
    ),
    with_tool(
        "config-host",
        "Which database host is set in config.toml?",
        &[&["db.harbor.example"]],
    ),
    with_tool(
        "count-warnings",
        "Count the lines of logs/app.log that contain WARN.",
        &[&["4", "four"]],
    ),
    with_tool(
        "count-words",
        "How many words are in greeting.txt?",
        &[&["9", "nine"]],
    ),
    with_tool(
        "find-note",
        "Which file in the directory notes mentions tea?",
        &[&["launch.txt"]],
    ),
    with_tool(
        "add",
        "What is 1234 plus 8766? Compute it with the shell.",
        &[&["10000"]],
    ),
    with_tool(
        "root",
        "Use Python to compute the square root of 1764.",
        &[&["42", "42.0"]],
    ),
    without_tool(
        "colour",
        "Which colour do you get by mixing blue and yellow paint?",
        &[&["green"]],
    ),
    without_tool(
        "german",
        "How do you say thank you in German?",
        &[&["danke"]],
    ),
    with_tool(
        "failing-list",
        "Run the command `ls nowhere` and tell me what happened.",
        &[FAILED],
    ),
    with_tool(
        "missing-text",
        "Does any file in the directory src contain the word unicorn?",
        &[NONE],
    ),
    with_tool(
        "last-line",
        "What is the last line of todo.txt?",
        &[&["water the plants"]],
    ),
    with_tool(
        "author",
        "Who is the author named in package.json?",
        &[&["mira tanaka"]],
    ),
    with_tool(
        "longest-file",
        "Which file in the directory src has the most lines?",
        &[&["engine.py"]],
    ),
    with_tool(
        "year",
        "In which year were the lines of logs/app.log written?",
        &[&["2031"]],
    ),
    with_tool(
        "first-error",
        "What does the first ERROR line of logs/app.log say?",
        &[&["pump"]],
    ),
];

/// Makes the directory that the questions are about.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn prepare(dir: &Path) -> Result<()> {
    let todo: String = (1..=22)
        .map(|n| format!("item {n}: check valve {n}\n"))
        .chain(["item 23: water the plants\n".to_owned()])
        .collect();
    let code = |lines: usize| "print('a line of code')\n".repeat(lines);
    let files = [
        ("greeting.txt", "Good morning, crew!\nThe ship is ready to sail.\n".to_owned()),
        ("config.toml", "[server]\nport = 8417\n\n[database]\nhost = \"db.harbor.example\"\n".to_owned()),
        ("package.json", "{\n  \"name\": \"harbor\",\n  \"version\": \"3.14.2\",\n  \"author\": \"Mira Tanaka\"\n}\n".to_owned()),
        ("todo.txt", todo),
        ("src/main.py", code(12)),
        ("src/engine.py", code(61)),
        ("src/paint.py", format!("{}COLOUR = 'heliotrope'\n", code(20))),
        ("src/nav.py", code(33)),
        ("notes/launch.txt", "Meeting at nine.\nThe launch code is 7319.\nBring tea.\n".to_owned()),
        ("notes/ideas.txt", "Paint the hull.\nBuy rope.\n".to_owned()),
        ("data/crew.csv", "name,age\nAda,36\nLin,41\n".to_owned()),
        ("data/ports.csv", "port,depth\nOslo,12\n".to_owned()),
        ("data/measurements.csv", "time,value\n".to_owned() + &"12:00,0.25\n".repeat(200)),
        ("logs/app.log", log()),
    ];
    for (path, text) in files {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

fn log() -> String {
    (0..40)
        .map(|n| {
            let (level, what) = match n {
                5 => ("ERROR", "the pump stopped"),
                n if n % 7 == 6 => ("ERROR", "a valve is stuck"),
                n if n % 9 == 8 => ("WARN", "the pressure is low"),
                _ => ("INFO", "all is well"),
            };
            format!("2031-05-04 10:{n:02}:00 {level} {what}\n")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prepared_files_hold_the_answers() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("todo.txt").lines().count(), 23);
        assert_eq!(read("greeting.txt").split_whitespace().count(), 9);
        let log = read("logs/app.log");
        assert_eq!(log.matches("ERROR").count(), 6);
        assert_eq!(log.matches("WARN").count(), 4);
        let scripts = fs::read_dir(dir.path().join("src")).unwrap();
        assert_eq!(scripts.count(), 4);
    }

    #[test]
    fn a_guess_and_a_number_inside_another_are_wrong() {
        let [count, ..] = &QUESTIONS;
        assert!(count.is_right("There are 4 files.", 1));
        assert!(!count.is_right("There are 4 files.", 0));
        assert!(!count.is_right("There are 14 files.", 1));
        let power = QUESTIONS.iter().find(|it| it.name == "power").unwrap();
        assert!(power.is_right("It is 2,147,483,648.", 1));
    }
}

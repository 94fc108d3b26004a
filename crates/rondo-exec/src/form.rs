//! Arguments of the tool's calls: a line for a shell, or a program and its arguments.

use crate::ExecTool;
use crate::outcome::{Refusal, invalid};
use rondo_policy::OUTSIDE_SANDBOX;
use serde_json::{Map, Value, json};

/// How the command of `exec` is described.
pub(crate) const SHELL_COMMAND: &str = "The shell command to execute";
const COMMAND_MISSING: &str = "exec tool requires 'command' argument as string";
const ARGV_MISSING: &str = "`argv` must be a list of strings: a program and its arguments. Commands run without a shell here";

/// Input of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A line for a shell, with options.
    Line,
    /// A line for a shell and nothing else, described like this.
    BareLine(&'static str),
    /// A program and its arguments, with options.
    Argv,
}

/// Program of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The command as a shell would read it.
    pub(crate) line: String,
    /// The words that are executed without a shell, if it is one program.
    pub(crate) argv: Option<Vec<String>>,
}

impl Form {
    /// Returns the JSON Schema of the arguments.
    pub(crate) fn parameters(self, has_sandbox: bool) -> Value {
        let (name, what) = match self {
            Self::BareLine(description) => {
                let line = json!({"type": "string", "description": description});
                return object(vec![("command", line)], "command");
            }
            Self::Line => (
                "command",
                json!({"type": "string", "description": SHELL_COMMAND}),
            ),
            Self::Argv => (
                "argv",
                json!({
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "The program and its arguments, each as an element of its own"
                }),
            ),
        };
        let directory = json!({
            "type": "string",
            "description": "Default: the current directory"
        });
        let timeout = json!({
            "type": "number",
            "minimum": 0,
            "maximum": ExecTool::TIMEOUT_SECONDS_MAX,
            "description": "In seconds"
        });
        let mut properties = vec![
            (name, what),
            ("working_directory", directory),
            ("timeout", timeout),
        ];
        if has_sandbox {
            properties.extend(outside_parameters());
        }
        object(properties, name)
    }

    /// Reads the program of a call from its arguments.
    ///
    /// # Errors
    /// When it is not of this form. The gate judges the line, so a call that has both a line and words is refused.
    pub(crate) fn program(self, arguments: &Value) -> Result<Program, Refusal> {
        let program = match self {
            Self::Line | Self::BareLine(_) => {
                let line = arguments.get("command").and_then(Value::as_str);
                let line = line.ok_or_else(|| invalid(COMMAND_MISSING))?.to_owned();
                Program { line, argv: None }
            }
            Self::Argv => {
                let argv = words(arguments).ok_or_else(|| invalid(ARGV_MISSING))?;
                let line = rondo_types::ToolKind::Execute.command_line(arguments);
                let line = line.ok_or_else(|| invalid("`argv` contains a NUL character"))?;
                Program {
                    line: line.into_owned(),
                    argv: Some(argv),
                }
            }
        };
        match program.line.contains('\0') {
            true => Err(invalid("the command contains a NUL character")),
            false => Ok(program),
        }
    }
}

/// Returns the words of a call that has no line for a shell beside them.
fn words(arguments: &Value) -> Option<Vec<String>> {
    if arguments.get("command").is_some() {
        return None;
    }
    let words = arguments.get("argv")?.as_array()?.iter();
    let words: Vec<String> = words
        .map(|it| it.as_str().map(str::to_owned))
        .collect::<Option<_>>()?;
    words.first().filter(|it| !it.is_empty())?;
    Some(words)
}

fn object(properties: Vec<(&str, Value)>, required: &str) -> Value {
    let properties = properties.into_iter();
    let properties: Map<String, Value> = properties.map(|(name, it)| (name.into(), it)).collect();
    json!({"type": "object", "properties": properties, "required": [required]})
}

/// The parameters of a command that may ask to run outside of the sandbox.
fn outside_parameters() -> [(&'static str, Value); 2] {
    let outside = json!({
        "type": "boolean",
        "description": "Commands run in a sandbox: they change only ordinary files of the working directory and its \
                        repository, have no network, and when a call ends, what it wrote elsewhere (`/tmp`, the home \
                        directory) and the processes that it left running are gone. `.git/config` and hooks stay as they \
                        are. True asks a person to let this one run outside of it, once the sandbox has refused what it needs"
    });
    let why = json!({
        "type": "string",
        "description": "With outside_sandbox: what it needs, for the person who is asked"
    });
    [(OUTSIDE_SANDBOX, outside), ("justification", why)]
}

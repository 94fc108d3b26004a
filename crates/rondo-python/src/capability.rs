//! The functions of a Python session that a model may call.

use crate::path;
use rondo_types::{Concurrency, Effects, Recovery, ToolHints, ToolKind, ToolSpec};
use serde_json::{Value, json};

/// A function that a model may call.
///
/// Functions of the session; `expr` stands for a Python expression. The results, as JSON:
///
/// | function | result |
/// |---|---|
/// | `list_globals` | `{globals: [{name, type_name}]}`, at most 1,024 |
/// | `get_type` | `{name, module, qualified}` |
/// | `get_repr` | `{repr, truncated, original_len}`, at most 4,096 characters |
/// | `get_dir` | `{members, truncated, original_len}`, at most 256 |
/// | `get_doc` | `{doc or null, truncated, original_len}`, at most 4,096 characters |
/// | `eval_expr` | `{value_repr, stdout, stderr}` |
/// | `get_last_exception` | `{exception: null or {exc_type, message, traceback}}` |
/// | `inspect` | `{type, repr, doc, members, signature, source}`, each as above |
/// | `run_code` | `{value_repr or null, stdout, stderr}` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Names the globals; modules and names that begin with an underscore only where asked for.
    ListGlobals,
    /// The type of a value.
    GetType,
    /// The `repr` of a value.
    GetRepr,
    /// The members of a value.
    GetDir,
    /// The docstring of a value.
    GetDoc,
    /// Evaluates an expression, with its output.
    EvalExpr,
    /// The exception that code raised last.
    GetLastException,
    /// All facts about a value at once; members without those that begin with an underscore.
    Inspect,
    /// Runs a cell.
    RunCode,
}

/// Expressions that read-only functions may evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyNames {
    /// Names, stored attributes, constant items of built-in containers, and constants. No code runs:
    /// no call or operator, and no property, `__getattr__`, `__repr__`, `__len__` or `__iter__` of any
    /// object. So a look has no effects, and needs no approval. What only code could tell is
    /// an error, or told by what is stored.
    WithoutCalls,
    /// Any expression. For where `eval_expr` is allowed anyway.
    Anything,
}

impl Capability {
    /// All of them; the design's seven come first.
    pub const ALL: [Self; 9] = [
        Self::ListGlobals,
        Self::GetType,
        Self::GetRepr,
        Self::GetDir,
        Self::GetDoc,
        Self::EvalExpr,
        Self::GetLastException,
        Self::Inspect,
        Self::RunCode,
    ];

    /// Returns the name by which a model calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ListGlobals => "list_globals",
            Self::GetType => "get_type",
            Self::GetRepr => "get_repr",
            Self::GetDir => "get_dir",
            Self::GetDoc => "get_doc",
            Self::EvalExpr => "eval_expr",
            Self::GetLastException => "get_last_exception",
            Self::Inspect => "inspect",
            Self::RunCode => "run_code",
        }
    }

    /// Returns whether it runs any code it is given, and so is asked about.
    #[must_use]
    pub fn runs_code(self) -> bool {
        matches!(self, Self::EvalExpr | Self::RunCode)
    }

    /// Returns its description as the model reads it.
    #[must_use]
    pub fn spec(self) -> ToolSpec {
        let (effects, concurrency, recovery) = match self.runs_code() {
            true => (
                Effects::Writes,
                Concurrency::Exclusive,
                Recovery::AtMostOnce,
            ),
            false => (Effects::ReadOnly, Concurrency::Shared, Recovery::ReadOnly),
        };
        let (kind, hints) = match self.runs_code() {
            true => (ToolKind::Execute, ToolHints::new(true, false, true)),
            false => (ToolKind::Read, ToolHints::looks_only()),
        };
        ToolSpec {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            parameters: self.parameters(),
            effects,
            concurrency,
            recovery,
            kind,
            hints,
            ..ToolSpec::default()
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::ListGlobals => {
                "Lists the global variables of the Python session with their types."
            }
            Self::GetType => "Returns the type of the value of a Python expression.",
            Self::GetRepr => "Returns the repr of the value of a Python expression.",
            Self::GetDir => "Lists the attributes of the value of a Python expression.",
            Self::GetDoc => "Returns the docstring of the value of a Python expression.",
            Self::EvalExpr => {
                "Evaluates a Python expression in the session and returns its repr and its output."
            }
            Self::GetLastException => "Returns the last exception that was raised in the session.",
            Self::Inspect => {
                "Returns type, repr, docstring, public attributes, signature and source of the value \
                 of a Python expression, all in one call."
            }
            Self::RunCode => {
                "Runs Python statements in the session and returns their output and the value of \
                 the last expression. Variables are kept for later calls."
            }
        }
    }

    fn parameters(self) -> Value {
        // Gemini refuses `additionalProperties`.
        match self {
            Self::GetLastException => json!({"type": "object", "properties": {}}),
            Self::ListGlobals => json!({"type": "object", "properties": {"all": {
                "type": "boolean",
                "description": "Also list modules and names that begin with an underscore.",
            }}}),
            Self::RunCode => required("code", "Python code, of any number of lines."),
            _ => required("expr", "A Python expression."),
        }
    }

    /// Returns the helper's name for it.
    pub(crate) fn operation(self, looks: ReadOnlyNames) -> &'static str {
        match (self, looks) {
            (Self::RunCode, _) => "run_cell",
            (Self::GetType, ReadOnlyNames::WithoutCalls) => "stored_type",
            (Self::GetRepr, ReadOnlyNames::WithoutCalls) => "stored_repr",
            (Self::GetDir, ReadOnlyNames::WithoutCalls) => "stored_dir",
            (Self::GetDoc, ReadOnlyNames::WithoutCalls) => "stored_doc",
            (Self::Inspect, ReadOnlyNames::WithoutCalls) => "stored_inspect",
            (other, _) => other.name(),
        }
    }

    /// Returns the helper's arguments; what the function does not have is left out.
    pub(crate) fn arguments(self, given: &Value, looks: ReadOnlyNames) -> Result<Value, String> {
        let text = |name: &str| match given.get(name).and_then(Value::as_str) {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(format!("`{name}` is empty")),
            None => Err(format!("`{name}` is missing, or not a string")),
        };
        Ok(match (self, looks) {
            (Self::GetLastException, _) => json!({}),
            (Self::ListGlobals, _) => {
                let all = given.get("all").and_then(Value::as_bool);
                json!({ "all": all.unwrap_or(false) })
            }
            (Self::RunCode, _) => json!({ "code": text("code")? }),
            (Self::EvalExpr, _) | (_, ReadOnlyNames::Anything) => json!({ "expr": text("expr")? }),
            (_, ReadOnlyNames::WithoutCalls) => json!({ "path": path::read(text("expr")?)? }),
        })
    }
}

fn required(name: &str, description: &str) -> Value {
    json!({
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
    })
}

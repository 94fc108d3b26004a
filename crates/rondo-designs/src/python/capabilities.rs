//! The interface to a Python session.

use super::types::FunctionDeclaration;
use async_trait::async_trait;
use rondo_types::{ToolError, ToolErrorCode, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Looks into one live Python session.
///
/// Calls come one at a time, in the order in which the model asked for them.
///
/// # Cancel safety
/// Each future is dropped when the question's time is over or the call's is; it must end what it
/// began. A future that blocks its thread holds up the question beyond its limits.
#[async_trait]
pub trait CapabilityProvider: Send + Sync {
    /// Names the globals of the session.
    async fn list_globals(&self) -> CapabilityResult<Vec<GlobalInfo>>;

    /// Tells the type of an expression's value.
    async fn get_type(&self, expr: &str) -> CapabilityResult<TypeInfo>;

    /// Returns the `repr` of an expression's value, at most 4,096 characters of it.
    async fn get_repr(&self, expr: &str) -> CapabilityResult<BoundedRepr>;

    /// Names the members of an expression's value, at most 256 of them.
    async fn get_dir(&self, expr: &str) -> CapabilityResult<BoundedDir>;

    /// Returns the docstring of an expression's value, at most 4,096 characters of it.
    async fn get_doc(&self, expr: &str) -> CapabilityResult<BoundedDoc>;

    /// Evaluates an expression.
    async fn eval_expr(&self, expr: &str) -> CapabilityResult<EvalResult>;

    /// Returns the exception that was raised last in the session, if any was.
    async fn get_last_exception(&self) -> CapabilityResult<Option<ExceptionInfo>>;
}

/// Result of a capability.
pub type CapabilityResult<T> = Result<T, CapabilityError>;

/// Why a capability has no result. The model reads it and continues.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// The code raised.
    #[error("{}", .0.headline())]
    PythonException(ExceptionInfo),
    /// The arguments cannot be used, beyond what their schema says.
    #[error("{0}")]
    InvalidArgs(String),
    /// The session itself failed.
    #[error("{0}")]
    Internal(String),
}

/// A global of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalInfo {
    /// Name of the attribute.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeInfo {
    /// `list`.
    pub name: String,
    /// `builtins`.
    pub module: String,
    /// `builtins.list`.
    pub qualified: String,
}

/// The `repr` of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedRepr {
    /// Kept part of the text.
    pub repr: String,
    /// Set if something is left out.
    pub truncated: bool,
    /// How many characters it has in all.
    pub original_len: usize,
}

/// The members of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedDir {
    /// The names that are kept.
    pub members: Vec<String>,
    /// Set if some are left out.
    pub truncated: bool,
    /// How many there are in all.
    pub original_len: usize,
}

/// The docstring of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedDoc {
    /// Kept part of the docstring; null if there is none.
    pub doc: Option<String>,
    /// Set if something is left out.
    pub truncated: bool,
    /// How many characters it has in all.
    pub original_len: usize,
}

/// Value of an expression, and its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalResult {
    /// The `repr` of the value.
    pub value_repr: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A Python exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceptionInfo {
    /// `ZeroDivisionError`.
    pub exc_type: String,
    /// `division by zero`.
    pub message: String,
    /// `Traceback ...`.
    pub traceback: String,
}

impl ExceptionInfo {
    /// `ZeroDivisionError: division by zero`.
    fn headline(&self) -> String {
        format!("{}: {}", self.exc_type, self.message)
    }
}

/// One of the seven functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capability {
    ListGlobals,
    GetType,
    GetRepr,
    GetDir,
    GetDoc,
    EvalExpr,
    GetLastException,
}

impl Capability {
    pub(super) const ALL: [Self; 7] = [
        Self::ListGlobals,
        Self::GetType,
        Self::GetRepr,
        Self::GetDir,
        Self::GetDoc,
        Self::EvalExpr,
        Self::GetLastException,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::ListGlobals => "list_globals",
            Self::GetType => "get_type",
            Self::GetRepr => "get_repr",
            Self::GetDir => "get_dir",
            Self::GetDoc => "get_doc",
            Self::EvalExpr => "eval_expr",
            Self::GetLastException => "get_last_exception",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::ListGlobals => "Lists the global variables of the session with their types.",
            Self::GetType => "Returns the type of the value of a Python expression.",
            Self::GetRepr => "Returns the repr of the value of a Python expression.",
            Self::GetDir => "Lists the attributes of the value of a Python expression.",
            Self::GetDoc => "Returns the docstring of the value of a Python expression.",
            Self::EvalExpr => "Evaluates a Python expression in the session.",
            Self::GetLastException => "Returns the last exception that was raised in the session.",
        }
    }

    fn takes_expression(self) -> bool {
        !matches!(self, Self::ListGlobals | Self::GetLastException)
    }

    pub(super) fn declaration(self) -> FunctionDeclaration {
        // Gemini refuses `additionalProperties`.
        let parameters_json_schema = if self.takes_expression() {
            let expr = json!({"type": "string", "description": "A Python expression."});
            json!({"type": "object", "properties": {"expr": expr}, "required": ["expr"]})
        } else {
            json!({"type": "object", "properties": {}})
        };
        FunctionDeclaration {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            parameters_json_schema,
        }
    }

    /// Calls it in a session. Arguments fit the schema, or the call would not have come here.
    pub(super) async fn call(
        self,
        session: &impl CapabilityProvider,
        arguments: &Value,
    ) -> ToolOutcome {
        let expr = arguments.get("expr").and_then(Value::as_str);
        let expr = expr.unwrap_or_default();
        match self {
            Self::ListGlobals => {
                let globals = session.list_globals().await;
                outcome(globals.map(|globals| json!({ "globals": globals })))
            }
            Self::GetType => outcome(session.get_type(expr).await),
            Self::GetRepr => outcome(session.get_repr(expr).await),
            Self::GetDir => outcome(session.get_dir(expr).await),
            Self::GetDoc => outcome(session.get_doc(expr).await),
            Self::EvalExpr => outcome(session.eval_expr(expr).await),
            Self::GetLastException => {
                let exception = session.get_last_exception().await;
                outcome(exception.map(|exception| json!({ "exception": exception })))
            }
        }
    }
}

/// Returns the descriptions of the seven functions that the model reads.
#[must_use]
pub fn function_declarations() -> Vec<FunctionDeclaration> {
    Capability::ALL.map(Capability::declaration).into()
}

fn outcome(result: CapabilityResult<impl Serialize>) -> ToolOutcome {
    match result.map(serde_json::to_value) {
        Ok(Ok(value)) => ToolOutcome::json(value),
        Ok(Err(error)) => ToolOutcome::error(ToolErrorCode::Internal, error.to_string()),
        Err(error) => ToolOutcome::Error(failure(error)),
    }
}

fn failure(error: CapabilityError) -> ToolError {
    let message = error.to_string();
    let (code, details) = match error {
        CapabilityError::PythonException(exception) => {
            (ToolErrorCode::PythonException, json!(exception))
        }
        CapabilityError::InvalidArgs(_) => (ToolErrorCode::InvalidArgs, Value::Null),
        CapabilityError::Internal(_) => (ToolErrorCode::Internal, Value::Null),
    };
    ToolError {
        code,
        message,
        details,
        used: None,
    }
}

//! Parses and validates the arguments of a call, without repairs.

use crate::lenient::{self, TextError};
use crate::prepare::RAW_BYTES_MAX;
use crate::validator::{SchemaError, Validator, Violation};
use serde_json::Value;

/// Why the arguments of a call are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    /// They are longer than [`RAW_BYTES_MAX`].
    #[error("arguments of `{tool}` are longer than {RAW_BYTES_MAX} bytes")]
    TooLong {
        /// The tool.
        tool: String,
    },
    /// They are not JSON.
    #[error("arguments of `{tool}` are not JSON: {message}")]
    NotJson {
        /// The tool.
        tool: String,
        /// Problems with their places.
        message: String,
    },
    /// They do not fit the tool's schema.
    #[error("arguments of `{tool}` do not fit its schema: {}", list(violations))]
    Invalid {
        /// The tool.
        tool: String,
        /// In which ways, bounded.
        violations: Vec<Violation>,
    },
    /// The tool's schema itself is wrong.
    #[error("the schema of `{tool}` cannot be used")]
    Schema {
        /// The tool.
        tool: String,
        /// Cause of the failure.
        #[source]
        source: SchemaError,
    },
}

/// Parses and validates the arguments of a call, without any repair.
///
/// A schema without `required` or `properties` constrains nothing by them, and keys that the schema
/// does not name pass unless it forbids them.
///
/// # Errors
/// When the text is not JSON, the value does not fit, or the schema is not usable. None is
/// retryable with the same arguments.
pub fn validate_tool_args(
    tool_name: &str,
    args_json: &str,
    schema: &Value,
) -> Result<Value, ArgsError> {
    let tool = || tool_name.to_owned();
    if args_json.len() > RAW_BYTES_MAX {
        return Err(ArgsError::TooLong { tool: tool() });
    }
    let value = lenient::strict(args_json).map_err(|err: TextError| ArgsError::NotJson {
        tool: tool(),
        message: err.to_string(),
    })?;
    let validator = Validator::new(schema).map_err(|source| ArgsError::Schema {
        tool: tool(),
        source,
    })?;
    match validator.check(&value) {
        Ok(()) => Ok(value),
        Err(violations) => Err(ArgsError::Invalid {
            tool: tool(),
            violations,
        }),
    }
}

fn list(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

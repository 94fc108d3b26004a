//! Tool arguments: JSON Schema validation and deterministic repair, and schemas that every provider takes.
//!
//! Models write arguments that are nearly right. [`prepare`] turns the raw text into an object that
//! fits the tool's schema, or into a message that tells the model what to change. It is a pure
//! function of the text and the schema. What it repairs is decided by the schema's own errors
//! rather than by a second reading of the schema, so references and combinators need no special
//! care and nothing that already fits is touched.

#![warn(missing_docs)]

mod args;
mod coerce;
mod describe;
mod integers;
mod lenient;
mod plain;
mod portable;
mod prepare;
mod repair;
mod scalars;
mod text;
mod validator;

pub use args::{ArgsError, validate_tool_args};
pub use portable::{NotPortable, PORTABLE_BYTES_MAX, portable};
pub use prepare::{PreparedArguments, RAW_BYTES_MAX, prepare};
pub use repair::{REPAIRS_MAX, Repair, RepairKind};
pub use validator::{SchemaError, VIOLATIONS_MAX, Validator, Violation};

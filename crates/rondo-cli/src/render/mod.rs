//! Renders a turn: the answer on standard output, everything else on standard error.

mod change;
mod child;
mod columns;
pub(crate) mod escape;
mod json;
mod question;
mod silent;
mod spinner;
mod text;
mod view;
mod wrap;

pub(crate) use columns::{around_caret, columns_max, fitting, shortened_to};
pub(crate) use json::{JsonView, early_result, escaped, result_of_process};
pub(crate) use question::{FittedQuestion, fitted, in_full};
pub(crate) use silent::SilentView;
pub(crate) use text::TextView;
pub(crate) use view::{DeniedCall, FinishedTurn, View};
pub(crate) use wrap::wrapped;

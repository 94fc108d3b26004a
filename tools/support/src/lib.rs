//! Common parts of the developer tools.
#![expect(
    clippy::print_stderr,
    reason = "a developer's command talks on the terminal"
)]

pub mod http;
pub mod stats;
pub mod table;
pub mod weights;
pub mod workspace;

use std::process::ExitCode;

/// Returns the exit code of a task that succeeded, found something, or could not be done, which is printed.
pub fn exit_code(outcome: anyhow::Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(err) => {
            eprintln!("error: {err:#}");
            ExitCode::FAILURE
        }
    }
}

//! What a command's waiting runs on.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use tokio::runtime::{Builder, Runtime};

/// Makes a runtime of one thread, which is the caller's.
///
/// # Errors
/// When the system gives none.
pub(crate) fn of_this_thread() -> Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|err| {
        let context = "failed to start the runtime";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })
}

//! The file that a call would replace if its pending question were answered with yes.

use super::handle::SessionHandle;
use super::{off_thread, taking};
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::tools;
use rondo_tools::ReplacedFile;
use serde_json::Value;

impl SessionHandle {
    /// Returns the file that a call of `write_file` or `edit_file` with these arguments would replace if it ran now: in
    /// the directories of the session's next turn, and read as the call does. Changes nothing.
    ///
    /// # Errors
    /// When the session or its directories cannot be read, or the call would fail.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn replaced(&self, tool: &str, arguments: &Value) -> Result<ReplacedFile> {
        let (entry, arguments) = (self.entry.clone(), arguments.clone());
        let tool = tool.to_owned();
        off_thread(move || {
            let workspace = tools::writable(&taking::settings(&entry)?)?;
            let found = rondo_tools::replaced(&workspace, &tool, &arguments);
            found.map_err(|why| SetupError::new(SetupErrorKind::Input, why))
        })
        .await
    }
}

//! The read-only sandbox in which commands of the system run without asking.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Tools that run commands in the read-only sandbox, and whether the kernel enforces all of it.
///
/// Such a tool must look into [`LookingCalls`](crate::LookingCalls) for each call, and confine those that are noted there.
#[derive(Clone)]
pub struct ReadOnlySandbox {
    tools: Vec<String>,
    home: Option<PathBuf>,
    hides_denied_files: bool,
    is_enforced: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl ReadOnlySandbox {
    /// Takes the names of the tools, the user's home directory, and what tells whether everything is enforced; this is
    /// called only for a command that would otherwise be asked about, and may start a process.
    pub fn new(
        tools: impl IntoIterator<Item = impl Into<String>>,
        home: Option<&Path>,
        is_enforced: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            tools: tools.into_iter().map(Into::into).collect(),
            home: home.map(Path::to_owned),
            hides_denied_files: false,
            is_enforced: Arc::new(is_enforced),
        }
    }

    /// Says whether it, and each other sandbox of these tools, hides all files that rules deny.
    #[must_use]
    pub fn hiding_denied_files(self, hides_denied_files: bool) -> Self {
        Self {
            hides_denied_files,
            ..self
        }
    }

    /// Returns whether the tool's commands find no files that rules deny.
    pub(crate) fn hides_denied_files(&self, tool: &str) -> bool {
        self.hides_denied_files && self.holds(tool)
    }

    /// Returns whether the tool's commands can be held in it.
    pub(crate) fn holds(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool) && (self.is_enforced)()
    }

    /// Returns the user's home directory, which it hides.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }
}

impl fmt::Debug for ReadOnlySandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOnlySandbox")
            .field("tools", &self.tools)
            .field("home", &self.home)
            .field("hides_denied_files", &self.hides_denied_files)
            .finish_non_exhaustive()
    }
}

//! The files that extend the prompt, the screen and other hosts: the user's own, and that of a trusted project.

use crate::files::is_present;
use crate::paths::project_init;
use crate::review::Review;
use crate::settings::Settings;
use crate::trust::is_trusted;
use std::path::PathBuf;

/// The files of a directory, in the order in which they are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitFiles {
    /// Those that may be run.
    pub files: Vec<PathBuf>,
    /// That of the project, if its folder is not trusted.
    pub untrusted: Option<PathBuf>,
}

impl InitFiles {
    /// Looks for the files. Nothing is read, and what cannot be read is among them.
    #[must_use]
    pub fn find(settings: &Settings) -> Self {
        let mut found = Self::default();
        let of_user = settings.paths.user_init();
        if is_present(&of_user) {
            found.files.push(of_user);
        }
        if Review::of(settings).is_needed() {
            return found;
        }
        let user = settings.sources.first().map(|it| &it.layer);
        if let Some(file) = project_init(&settings.directory) {
            // A link that leads nowhere may or may not be trusted: reading it is an error.
            let leads_nowhere = !file.exists();
            match leads_nowhere || user.is_some_and(|user| is_trusted(&file, user)) {
                true => found.files.push(file),
                false => found.untrusted = Some(file),
            }
        }
        found
    }
}

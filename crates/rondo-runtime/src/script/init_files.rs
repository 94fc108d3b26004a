//! The files that extend the prompt, the screen and other hosts: the user's own, and that of a trusted project.

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
    /// That of the project, where its folder is not trusted.
    pub untrusted: Option<PathBuf>,
}

impl InitFiles {
    /// Looks for the files. Nothing is read.
    #[must_use]
    pub fn find(settings: &Settings) -> Self {
        let mut found = Self::default();
        let of_user = settings.paths.user_init();
        if of_user.is_file() {
            found.files.push(of_user);
        }
        if Review::of(settings).is_needed() {
            return found;
        }
        let user = settings.sources.first().map(|it| &it.layer);
        if let Some(file) = project_init(&settings.directory).filter(|it| it.is_file()) {
            match user.is_some_and(|user| is_trusted(&file, user)) {
                true => found.files.push(file),
                false => found.untrusted = Some(file),
            }
        }
        found
    }
}

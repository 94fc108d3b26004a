//! Trust in a folder: whether all its settings apply, or only those that restrict.

use crate::error::Result;
use crate::files;
use crate::known_files::KnownFiles;
use crate::notices::Notices;
use crate::paths::{Paths, project_config, project_root};
use crate::project::UntrustedProject;
use crate::table::Layer;
use crate::trust_question::{self, TrustAnswers};
use crate::user_file::UserFile;
use rondo_types::Question;
use std::path::{Path, PathBuf};

/// The file with the folders that the user was asked about and did not trust, one on each line.
const DECLINED_FILE: &str = "folders-not-trusted";
/// The bound on that file, in bytes; older folders are forgotten, and asked about again.
const DECLINED_BYTES_MAX: u64 = 256 << 10;

/// The effective part of a project's configuration.
pub(crate) enum Project {
    /// All of it.
    Trusted(PathBuf, Layer),
    /// Only settings that restrict.
    Untrusted(PathBuf, Layer),
}

/// Reads the configuration of the project that `directory` is in. If it makes a difference, the user is asked
/// once whether to trust the folder.
///
/// # Errors
/// When a file cannot be read or written, or does not say what it should.
pub(crate) fn read_project(
    directory: &Path,
    user: &Layer,
    paths: &Paths,
    files: &KnownFiles,
    (answers, notices): (&TrustAnswers, &dyn Notices),
) -> Result<Option<Project>> {
    let Some(file) = project_config(directory) else {
        return Ok(None);
    };
    if is_trusted(&file, user) {
        return trusted(file, files).map(Some);
    }
    let Some(project) = UntrustedProject::read_unless_known(directory, files)? else {
        return Ok(None);
    };
    if project.ignored.is_empty() {
        return Ok(Some(Project::Untrusted(project.file, project.layer)));
    }
    if !was_declined(paths, &project.folder, files) {
        let question = trust_question::of_settings(&project);
        match answers.answer(&question) {
            // A file that has changed since the question is not trusted.
            Some(true) if is_as_asked(directory, &question)? => {
                let mut user_file = UserFile::read(paths)?;
                user_file.trust(&project.folder)?;
                user_file.save()?;
                return trusted(project.file, files).map(Some);
            }
            Some(false) => decline(paths, &project.folder),
            Some(true) | None => {}
        }
    }
    let is_or_are = if project.ignored.len() == 1 {
        "is"
    } else {
        "are"
    };
    notices.note(&format!(
        "`{}` is not trusted, so its {} {is_or_are} ignored; `rondo trust {}` applies it",
        project.file.display(),
        project.ignored_names(),
        project.folder.display(),
    ));
    Ok(Some(Project::Untrusted(project.file, project.layer)))
}

/// Returns whether the project of a directory is still what a question is about.
fn is_as_asked(directory: &Path, question: &Question) -> Result<bool> {
    let now = UntrustedProject::read(directory)?;
    Ok(now.is_some_and(|it| trust_question::of_settings(&it).hash == question.hash))
}

fn trusted(file: PathBuf, files: &KnownFiles) -> Result<Project> {
    let mut layer = Layer::read(&file, files)?;
    layer.trusted_folders = None;
    layer.sandboxed_folders = None;
    // Limits of a command's use of the machine are for its user to set.
    layer.command_memory_mib = None;
    // Access to the gateway is the user's alone to set.
    layer.hub = toml::Table::new();
    Ok(Project::Trusted(file, layer))
}

/// Compares canonical paths, so that no link or relative path can pass for a trusted folder: both the working
/// folder and the file must be in one. A link to the configuration of a trusted folder does not make the
/// folder with the link trusted.
pub(crate) fn is_trusted(file: &Path, user: &Layer) -> bool {
    let folder = project_root(file).and_then(|root| root.canonicalize().ok());
    let (Some(folder), Ok(real)) = (folder, file.canonicalize()) else {
        return false;
    };
    let Some(root) = project_root(&real) else {
        return false;
    };
    canonical(user.trusted_folders.as_deref().unwrap_or_default())
        .any(|trusted| folder.starts_with(&trusted) && root.starts_with(&trusted))
}

/// Returns whether a folder, without links in its path, is one that the user trusts or is below one.
pub(crate) fn is_folder_trusted(folder: &Path, trusted: &[PathBuf]) -> bool {
    canonical(trusted).any(|trusted| folder.starts_with(trusted))
}

fn canonical(folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let absolute = folders.iter().filter(|folder| folder.is_absolute());
    absolute.filter_map(|folder| folder.canonicalize().ok())
}

fn was_declined(paths: &Paths, folder: &Path, files: &KnownFiles) -> bool {
    let declined = files.read(&paths.state.join(DECLINED_FILE), DECLINED_BYTES_MAX);
    let declined = declined.unwrap_or_default();
    declined.lines().any(|line| Path::new(line) == folder)
}

/// If it cannot be written, the user is asked again the next time.
fn decline(paths: &Paths, folder: &Path) {
    let file = paths.state.join(DECLINED_FILE);
    let before = files::read_text(&file, DECLINED_BYTES_MAX / 2).unwrap_or_default();
    let _ = files::replace(&file, &format!("{before}{}\n", folder.display()));
}

//! The directories that may hold skills: the user's, and those of the project.

use crate::review::Review;
use crate::settings::Settings;
use crate::trust::is_folder_trusted;
use rondo_tools::repository_root;
use rondo_tools::skill_files::is_installed;
use std::fmt;
use std::path::{Path, PathBuf};

/// The directories of a project, in each folder from the working directory up to the repository's root.
const OF_PROJECT: [&str; 3] = [".rondo/skills", ".agents/skills", ".claude/skills"];
/// The bound on folders of a project that are looked into, from the working directory upwards.
const FOLDERS_MAX: usize = 16;

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillSource {
    /// The repository's, in a folder that the user trusts.
    TrustedProject,
    /// The user's own.
    User,
    /// The repository's, in a folder that the user does not trust.
    Project,
}

impl SkillSource {
    /// Returns whether it comes from a repository.
    #[must_use]
    pub fn is_of_project(self) -> bool {
        self != Self::User
    }
}

impl fmt::Display for SkillSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TrustedProject => "project",
            Self::User => "user",
            Self::Project => "project, not trusted",
        })
    }
}

/// A directory that exists and may hold skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillPlace {
    /// The directory that links must not lead out of: the repository, or the user's directory of skills.
    pub(crate) base: PathBuf,
    /// The directory of skills below it.
    pub(crate) below: PathBuf,
    /// Whose it is.
    pub(crate) source: SkillSource,
}

impl SkillPlace {
    /// Returns its path.
    pub(crate) fn path(&self) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => self.base.clone(),
            false => self.base.join(&self.below),
        }
    }
}

/// Returns the directories that exist, in the order in which their skills take precedence: those of trusted folders,
/// the nearest first, the user's own, then those of folders that are not trusted. So a repository that was cloned
/// replaces none of the user's skills.
pub(crate) fn places(settings: &Settings) -> Vec<SkillPlace> {
    let mut all = of_user(settings);
    if !Review::of(settings).is_needed() {
        all.extend(of_project(settings));
    }
    let mut seen = Vec::new();
    // Most are not there, which is known soonest so.
    all.retain(|place| place.path().is_dir());
    all.retain(|place| match place.path().canonicalize() {
        // A home directory that is a repository has the same directory twice: it is the user's.
        Ok(real) if !seen.contains(&real) => {
            seen.push(real);
            true
        }
        _ => false,
    });
    all.sort_by_key(|place| place.source);
    all
}

fn of_user(settings: &Settings) -> Vec<SkillPlace> {
    let absolute = |name| {
        let path = settings.env.get(name).map(Path::new);
        path.filter(|it: &&Path| it.is_absolute())
    };
    let home = absolute("HOME");
    let config = absolute("XDG_CONFIG_HOME").map(Path::to_owned);
    let config = config.or_else(|| Some(home?.join(".config")));
    let directories = [
        Some(settings.paths.config.join("skills")),
        config.map(|it| it.join("agents/skills")),
        home.map(|it| it.join(".agents/skills")),
        home.map(|it| it.join(".claude/skills")),
    ];
    let places = directories.into_iter().flatten().map(|base| SkillPlace {
        base,
        below: PathBuf::new(),
        source: SkillSource::User,
    });
    places.collect()
}

fn of_project(settings: &Settings) -> Vec<SkillPlace> {
    let Ok(directory) = settings.directory.canonicalize() else {
        return Vec::new();
    };
    if is_installed(&directory) {
        return Vec::new();
    }
    let root = repository_root(&directory).unwrap_or_else(|| directory.clone());
    let trusted = settings.values.trusted_folders.as_deref();
    let trusted = trusted.unwrap_or_default();
    let folders = directory.ancestors().take(FOLDERS_MAX);
    let folders = folders.take_while(|folder| folder.starts_with(&root));
    let places = folders.flat_map(|folder| {
        let source = match is_folder_trusted(folder, trusted) {
            true => SkillSource::TrustedProject,
            false => SkillSource::Project,
        };
        let below = folder.strip_prefix(&root).unwrap_or(Path::new(""));
        let root = &root;
        OF_PROJECT.iter().map(move |name| SkillPlace {
            base: root.clone(),
            below: below.join(name),
            source,
        })
    });
    places.collect()
}

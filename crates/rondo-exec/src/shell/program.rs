//! Which shell is kept.

use super::protocol::Family;
use std::path::{Path, PathBuf};

/// A shell that can be kept: bash or zsh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellProgram {
    path: PathBuf,
    family: Family,
}

/// A program that cannot be kept as a shell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// It is neither bash nor zsh.
    #[error("`{path}` is neither bash nor zsh", path = .0.display())]
    Unsupported(PathBuf),
    /// It is not an absolute path of a file.
    #[error("`{path}` is not an absolute path of a program", path = .0.display())]
    Missing(PathBuf),
    /// There is no bash in the usual places.
    #[error("`bash` is not installed")]
    NoBash,
}

impl ShellProgram {
    /// Takes a program by its absolute path; its name tells which shell it is.
    ///
    /// # Errors
    /// When it is not there or not known.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, ProgramError> {
        let path = path.into();
        let Some(family) = family(&path) else {
            return Err(ProgramError::Unsupported(path));
        };
        if path.is_absolute() && path.is_file() {
            Ok(Self { path, family })
        } else {
            Err(ProgramError::Missing(path))
        }
    }

    /// Takes the program that `SHELL` names, or else bash where it is usually found.
    ///
    /// # Errors
    /// When `SHELL` names no bash or zsh, and there is no bash.
    pub fn from_env() -> Result<Self, ProgramError> {
        let own = std::env::var_os("SHELL").map(PathBuf::from);
        let usual = rondo_launch::unix::BASH_PATHS.iter().map(PathBuf::from);
        own.into_iter()
            .chain(usual)
            .find_map(|path| Self::new(path).ok())
            .ok_or(ProgramError::NoBash)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn family(&self) -> Family {
        self.family
    }
}

fn family(path: &Path) -> Option<Family> {
    match path.file_name()?.to_str()? {
        "bash" => Some(Family::Bash),
        "zsh" => Some(Family::Zsh),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shells_that_are_there_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["bash", "zsh", "fish"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let family = |name: &str| ShellProgram::new(dir.path().join(name)).map(|it| it.family());
        assert_eq!(family("bash"), Ok(Family::Bash));
        assert_eq!(family("zsh"), Ok(Family::Zsh));
        let fish = dir.path().join("fish");
        assert_eq!(family("fish"), Err(ProgramError::Unsupported(fish)));
        let gone = dir.path().join("no/bash");
        assert_eq!(family("no/bash"), Err(ProgramError::Missing(gone)));
        let relative = ShellProgram::new("bash");
        assert_eq!(relative, Err(ProgramError::Missing("bash".into())));
    }
}

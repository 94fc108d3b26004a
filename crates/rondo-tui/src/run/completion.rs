//! Finds the names that a word of the pane's prompt may become.

use super::Runner;
use super::effects::EffectResult;
use crate::app::PaneWord;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// The bound on names that are looked at in one directory, and on those that are found.
const LOOKED_AT_MAX: usize = 20_000;
const NAMES_MAX: usize = 512;

impl Runner {
    pub(super) fn complete_in_pane(&self, asked: PaneWord) {
        let done = self.done.0.clone();
        let own = self.settings.directory.clone();
        let directory = asked.directory.as_deref().map_or(own, PathBuf::from);
        let env = &self.settings.env;
        let home = env.get("HOME").map(PathBuf::from);
        let path = env.get("PATH").unwrap_or_default().to_owned();
        tokio::spawn(async move {
            let found = spawn_blocking(move || {
                let mut names = BTreeSet::new();
                if asked.is_command {
                    std::env::split_paths(&path)
                        .for_each(|it| commands(&it, &asked.word, &mut names));
                } else {
                    files(&directory, home.as_deref(), &asked.word, &mut names);
                }
                (asked, names.into_iter().take(NAMES_MAX).collect())
            });
            if let Ok((asked, names)) = found.await {
                // Without the loop there is no receiver.
                let _ = done.send(EffectResult::Completes(asked, names)).await;
            }
        });
    }
}

/// Adds the files that a word may name, each spelled as the word continues.
fn files(base: &Path, home: Option<&Path>, word: &str, names: &mut BTreeSet<String>) {
    let (folder, begin) = match word.rfind('/') {
        Some(at) => word.split_at(at + 1),
        None => ("", word),
    };
    let place = match (folder.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => base.join(folder),
    };
    for name in names_in(&place, begin) {
        let ending = if place.join(&name).is_dir() { "/" } else { "" };
        names.insert(format!("{folder}{name}{ending}"));
    }
}

/// Adds the programs of a directory.
fn commands(place: &Path, begin: &str, names: &mut BTreeSet<String>) {
    use rustix::fs::{Access, access};
    let is_program = |name: &String| {
        let file = place.join(name);
        file.is_file() && access(&file, Access::EXEC_OK).is_ok()
    };
    names.extend(names_in(place, begin).filter(is_program));
}

/// Returns the names in a directory that begin so; hidden ones if they are asked for. Those that would not fit on one
/// line as they are, are left out.
fn names_in(place: &Path, begin: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let names = entries
        .take(LOOKED_AT_MAX)
        .filter_map(|it| it.file_name().into_string().ok());
    let (begin, with_hidden) = (begin.to_owned(), begin.starts_with('.'));
    names.filter(move |name| {
        let is_shown = with_hidden || !name.starts_with('.');
        is_shown && name.starts_with(&begin) && !name.contains(char::is_control)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_becomes_files_below_the_shells_directory_and_below_home() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("source")).unwrap();
        for name in ["sour cream", ".hidden", "source/main.rs", "source/a\nb"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let found = |word: &str| {
            let mut names = BTreeSet::new();
            files(root.path(), Some(root.path()), word, &mut names);
            Vec::from_iter(names)
        };
        assert_eq!(found("sou"), ["sour cream", "source/"]);
        assert_eq!(found("source/"), ["source/main.rs"]);
        assert_eq!(found("~/source/m"), ["~/source/main.rs"]);
        assert_eq!(found("."), [".hidden"]);
        assert!(found("nowhere/").is_empty());
    }

    #[test]
    fn a_first_word_becomes_programs_alone() {
        let mut names = BTreeSet::new();
        commands(Path::new("/bin"), "s", &mut names);
        assert!(names.contains("sh") && names.iter().all(|it| it.starts_with('s')));
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("plain"), "").unwrap();
        let mut names = BTreeSet::new();
        commands(root.path(), "p", &mut names);
        assert!(names.is_empty());
    }
}

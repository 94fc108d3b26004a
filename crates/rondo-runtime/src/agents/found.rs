//! The agent files of the user and of the project.

use super::file::Agent;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::files;
use crate::paths::repository_root;
use crate::review::Review;
use crate::settings::Settings;
use crate::skills::SkillSource;
use crate::trust::is_folder_trusted;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories of a project.
const OF_PROJECT: [&str; 2] = [".rondo/agents", ".claude/agents"];
/// The bound on a file, in bytes; a longer one is refused.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The bound on agents of all directories together.
const AGENTS_MAX: usize = 200;
/// The bounds on the list for the model.
const LISTED_MAX: usize = 30;
const LISTED_CHARS_MAX: usize = 200;

/// An agent file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedAgent {
    /// File of the agent.
    pub file: PathBuf,
    /// Problem with the file.
    pub problem: String,
}

/// The agents of the user and of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agents {
    /// Those that can be used, by name.
    pub usable: Vec<Agent>,
    /// Files that cannot, in the order in which they were found.
    pub refused: Vec<RefusedAgent>,
}

impl Agents {
    /// Looks for agent files: those of a trusted project, the user's own, then those of a project that is not trusted,
    /// so that a repository that was cloned replaces none of the user's agents. Reads directories and files.
    #[must_use]
    pub fn find(settings: &Settings) -> Self {
        let mut found = Self::default();
        let mut places = of_user(settings);
        if !Review::of(settings).is_needed() {
            places.extend(of_project(settings));
        }
        places.sort_by_key(|(_, _, source)| *source);
        for (base, directory, source) in places {
            found.read_directory(&base, &directory, source);
        }
        found.usable.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// Returns an agent by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.usable.iter().find(|agent| agent.name == name)
    }

    /// Returns an agent by name.
    ///
    /// # Errors
    /// When there is none; the error names those that there are, or why its file cannot be used.
    pub fn named(&self, name: &str) -> Result<&Agent> {
        self.get(name).ok_or_else(|| {
            let message = format!("there is no agent `{name}`");
            let error = SetupError::new(SetupErrorKind::Config, message);
            let stem = |it: &&RefusedAgent| it.file.file_stem().is_some_and(|it| it == name);
            if let Some(refused) = self.refused.iter().find(stem) {
                let file = refused.file.display();
                return error.hint(format!("`{file}` cannot be used: {}", refused.problem));
            }
            let names: Vec<&str> = self.usable.iter().map(|it| it.name.as_str()).collect();
            error.hint(match names.is_empty() {
                true => "agents are files such as `.rondo/agents/NAME.md`".to_owned(),
                false => format!("the agents are: {}", names.join(", ")),
            })
        })
    }

    /// Returns the list of the agents for the model, bounded; empty if there are none.
    pub(crate) fn listed(&self) -> String {
        let mut text = String::new();
        for agent in self.usable.iter().take(LISTED_MAX) {
            let line: Vec<&str> = agent.description.split_whitespace().collect();
            let line: String = line.join(" ").chars().take(LISTED_CHARS_MAX).collect();
            let _ = write!(text, "\n- {}: {line}", agent.name);
        }
        text
    }

    fn read_directory(&mut self, base: &Path, directory: &Path, source: SkillSource) {
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        let files = entries.filter_map(|it| Some(it.ok()?.path()));
        let mut files: Vec<PathBuf> = files
            .filter(|it| it.extension().is_some_and(|it| it == "md"))
            .take(AGENTS_MAX)
            .collect();
        files.sort_unstable();
        for file in files {
            if self.usable.len() + self.refused.len() >= AGENTS_MAX {
                return;
            }
            let read = read(base, &file, source).and_then(|agent| match self.get(&agent.name) {
                Some(other) => Err(format!(
                    "`{}` has the same name and is used instead",
                    other.file.display()
                )),
                None => Ok(agent),
            });
            match read {
                Ok(agent) => self.usable.push(agent),
                Err(problem) => self.refused.push(RefusedAgent { file, problem }),
            }
        }
    }
}

fn read(base: &Path, file: &Path, source: SkillSource) -> std::result::Result<Agent, String> {
    let real = file.canonicalize().map_err(|err| err.to_string())?;
    // A link of a repository could lead to a file of the user, which the model would read.
    let is_inside = base.canonicalize().is_ok_and(|base| real.starts_with(base));
    if !is_inside || !real.is_file() {
        return Err("it is not a file in its directory".to_owned());
    }
    let text = files::read_text(&real, FILE_BYTES_MAX).map_err(|err| err.to_string())?;
    Agent::parse(&text, file.to_owned(), source)
}

type AgentDirectory = (PathBuf, PathBuf, SkillSource);

fn of_user(settings: &Settings) -> Vec<AgentDirectory> {
    let home = settings.env.get("HOME").map(Path::new);
    let home = home.filter(|it| it.is_absolute());
    let directories = [
        Some(settings.paths.config.join("agents")),
        home.map(|it| it.join(".claude/agents")),
    ];
    let places = directories.into_iter().flatten();
    // The user may keep these files elsewhere.
    places
        .map(|it| (PathBuf::from("/"), it, SkillSource::User))
        .collect()
}

fn of_project(settings: &Settings) -> Vec<AgentDirectory> {
    let Ok(directory) = settings.directory.canonicalize() else {
        return Vec::new();
    };
    let root = repository_root(&directory).unwrap_or(&directory);
    let trusted = settings.values.trusted_folders.as_deref();
    let source = match is_folder_trusted(root, trusted.unwrap_or_default()) {
        true => SkillSource::TrustedProject,
        false => SkillSource::Project,
    };
    let places = OF_PROJECT.iter().map(|name| root.join(name));
    places.map(|it| (root.to_owned(), it, source)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::notices::NoNotices;
    use crate::table::Layer;

    struct Folders {
        home: tempfile::TempDir,
        project: tempfile::TempDir,
    }

    impl Folders {
        fn new(files: &[(&str, &str)]) -> Self {
            let folders = Self {
                home: tempfile::tempdir().unwrap(),
                project: tempfile::tempdir().unwrap(),
            };
            for (path, name) in files {
                let base = match path.strip_prefix("~/") {
                    Some(path) => folders.home.path().join(path),
                    None => folders.project.path().join(path),
                };
                fs::create_dir_all(base.parent().unwrap()).unwrap();
                let text = format!("---\nname: {name}\ndescription: from {path}\n---\nWork.");
                fs::write(base, text).unwrap();
            }
            folders
        }

        fn settings(&self, is_trusted: bool) -> Settings {
            let home = self.home.path().to_str().unwrap();
            let env = Env::of(&[("RONDO_HOME", home), ("HOME", home)]);
            let flags = Layer {
                trusted_folders: is_trusted.then(|| vec![self.project.path().to_owned()]),
                ..Layer::default()
            };
            let directory = self.project.path().to_owned();
            Settings::load(env, directory, flags, &NoNotices).unwrap()
        }
    }

    #[test]
    fn agents_are_found_and_a_cloned_repository_replaces_none_of_the_users() {
        let folders = Folders::new(&[
            (".rondo/agents/a.md", "a"),
            (".claude/agents/b.md", "b"),
            (".claude/agents/notes.txt", "c"),
            ("~/agents/a.md", "a"),
            ("~/.claude/agents/d.md", "d"),
        ]);
        let from = |is_trusted: bool, name: &str| {
            let agents = Agents::find(&folders.settings(is_trusted));
            agents.get(name).map(|it| it.description.clone())
        };
        assert_eq!(from(false, "a").unwrap(), "from ~/agents/a.md");
        assert_eq!(from(true, "a").unwrap(), "from .rondo/agents/a.md");
        assert_eq!(from(false, "b").unwrap(), "from .claude/agents/b.md");
        assert_eq!(from(false, "d").unwrap(), "from ~/.claude/agents/d.md");
        assert_eq!(from(true, "c"), None);
        let agents = Agents::find(&folders.settings(false));
        assert_eq!(agents.refused.len(), 1);
        let listed = agents.listed();
        assert_eq!(listed.lines().count(), 4, "{listed}");
        let error = agents.named("x").unwrap_err();
        assert!(error.hint.unwrap().contains("a, b, d"));
    }

    #[test]
    fn a_link_out_of_the_repository_is_not_read() {
        let folders = Folders::new(&[("~/secret.md", "s"), (".rondo/agents/a.md", "a")]);
        let link = folders.project.path().join(".rondo/agents/s.md");
        std::os::unix::fs::symlink(folders.home.path().join("secret.md"), link).unwrap();
        let agents = Agents::find(&folders.settings(true));
        assert_eq!(agents.usable.len(), 1);
        assert!(
            agents.refused[0]
                .problem
                .contains("not a file in its directory")
        );
        let error = agents.named("s").unwrap_err();
        assert!(error.hint.unwrap().contains("cannot be used"));
    }

    #[test]
    fn a_file_is_bounded() {
        let folders = Folders::new(&[(".rondo/agents/a.md", "a")]);
        let file = folders.project.path().join(".rondo/agents/a.md");
        let head = "---\nname: a\ndescription: d\n---\n";
        let max = usize::try_from(FILE_BYTES_MAX).unwrap();
        for (bytes, is_used) in [(max - 1, true), (max, true), (max + 1, false)] {
            fs::write(&file, format!("{head}{}", "x".repeat(bytes - head.len()))).unwrap();
            let agents = Agents::find(&folders.settings(true));
            assert_eq!(agents.get("a").is_some(), is_used, "{bytes}");
        }
    }
}

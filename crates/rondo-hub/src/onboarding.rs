//! A new workspace: the initial files that an assistant reads.

use crate::context::WORKSPACE_DIR;
use rondo_tools::context_files::WORKSPACE_SKILLS;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The files of a new workspace, by their names.
pub const TEMPLATES: [(&str, &str); 6] = [
    ("SOUL.md", include_str!("../templates/SOUL.md")),
    ("AGENTS.md", include_str!("../templates/AGENTS.md")),
    ("USER.md", include_str!("../templates/USER.md")),
    ("TOOLS.md", include_str!("../templates/TOOLS.md")),
    ("HEARTBEAT.md", include_str!("../templates/HEARTBEAT.md")),
    ("MEMORY.md", include_str!("../templates/MEMORY.md")),
];

/// Result for a workspace's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenWorkspace {
    /// Directory of the workspace.
    pub directory: PathBuf,
    /// The names of the files that were written.
    pub written: Vec<&'static str>,
    /// The names of those that were there, and are as they were.
    pub kept: Vec<&'static str>,
}

/// Writes the files of a workspace that are not there yet, below the hub's directory.
///
/// # Errors
/// When the disk fails.
pub fn write_workspace(hub: &Path) -> io::Result<WrittenWorkspace> {
    let directory = hub.join(WORKSPACE_DIR);
    fs::create_dir_all(directory.join(WORKSPACE_SKILLS))?;
    let (mut written, mut kept) = (Vec::new(), Vec::new());
    for (name, text) in TEMPLATES {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(directory.join(name));
        match file {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                written.push(name);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => kept.push(name),
            Err(error) => return Err(error),
        }
    }
    Ok(WrittenWorkspace {
        directory,
        written,
        kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::heartbeat::asks_for_something;

    #[test]
    fn a_workspace_is_written_once_and_what_is_there_stays() {
        let hub = tempfile::tempdir().unwrap();
        let first = write_workspace(hub.path()).unwrap();
        assert_eq!((first.written.len(), first.kept.len()), (6, 0));
        fs::write(first.directory.join("SOUL.md"), "mine").unwrap();
        fs::remove_file(first.directory.join("TOOLS.md")).unwrap();
        let again = write_workspace(hub.path()).unwrap();
        assert_eq!((again.written, again.kept.len()), (vec!["TOOLS.md"], 5));
        let soul = fs::read_to_string(first.directory.join("SOUL.md")).unwrap();
        assert_eq!(soul, "mine");
    }

    #[test]
    fn the_heartbeat_of_a_new_workspace_asks_for_nothing() {
        let text = |name| TEMPLATES.iter().find(|it| it.0 == name).unwrap().1;
        assert!(!asks_for_something(text("HEARTBEAT.md")));
    }
}

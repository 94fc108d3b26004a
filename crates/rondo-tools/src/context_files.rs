//! Reads the files of a chat assistant's workspace: `SOUL.md`, `AGENTS.md` and the like, and its skills.
//!
//! Missing files are not an error: each has a layer of its own in the context, which is then left out.

use crate::instruction_files::reading;
use crate::skill_files::{skill_files, skill_path};
use crate::skill_head::SkillHead;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The directory of the skills in a workspace.
pub const WORKSPACE_SKILLS: &str = "skills";
/// The bound on the part of one file that is read, in bytes: one more than the part shown of it, so that it is seen to
/// be cut.
const FILE_BYTES_MAX: u64 = (64 << 10) + 1;

/// The texts of a workspace's files; `None` if there is no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextFiles {
    /// `SOUL.md`.
    pub soul: Option<String>,
    /// `AGENTS.md`.
    pub agents: Option<String>,
    /// `BOOTSTRAP.md`.
    pub bootstrap: Option<String>,
    /// `USER.md`.
    pub user: Option<String>,
    /// `MEMORY.md`.
    pub memory: Option<String>,
    /// `TOOLS.md`.
    pub tools: Option<String>,
    /// The skills that can be used, by name. A directory whose name begins with a dot is a skill that is switched off.
    pub skills: Vec<SkillHead>,
    /// The skills that cannot be used, and why.
    pub refused_skills: Vec<(PathBuf, String)>,
}

impl ContextFiles {
    /// Reads the files of a workspace. Blocks for the disk.
    ///
    /// Nothing is read that links lead to outside of the directory, and a pipe is not waited for. Unreadable files
    /// are left out.
    #[must_use]
    pub fn read(workspace: &Path) -> Self {
        let Ok(dir) = Dir::open_ambient_dir(workspace, ambient_authority()) else {
            return Self::default();
        };
        let mut files = Self {
            soul: text(&dir, "SOUL.md"),
            agents: text(&dir, "AGENTS.md"),
            bootstrap: text(&dir, "BOOTSTRAP.md"),
            user: text(&dir, "USER.md"),
            memory: text(&dir, "MEMORY.md"),
            tools: text(&dir, "TOOLS.md"),
            ..Self::default()
        };
        let below = Path::new(WORKSPACE_SKILLS);
        for file in skill_files(workspace, below) {
            match SkillHead::of(&file) {
                Ok(skill) => files.skills.push(skill),
                Err(problem) => {
                    let path = skill_path(workspace, below, &file.folder);
                    files.refused_skills.push((path, problem));
                }
            }
        }
        files
    }
}

/// Returns the beginning of a regular file in a workspace; `None` if there is none.
#[must_use]
pub fn context_file(workspace: &Path, name: &str) -> Option<String> {
    let dir = Dir::open_ambient_dir(workspace, ambient_authority()).ok()?;
    text(&dir, name)
}

fn text(dir: &Dir, name: &str) -> Option<String> {
    let file = dir.open_with(name, &reading()).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_files_and_skills_of_a_workspace_are_read_and_no_links_out_of_it() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let base = dir.path();
        fs::write(base.join("SOUL.md"), "kind").unwrap();
        fs::write(base.join("MEMORY.md"), "tea").unwrap();
        fs::write(outside.path().join("secret"), "key").unwrap();
        symlink(outside.path().join("secret"), base.join("TOOLS.md")).unwrap();
        symlink(base.join("SOUL.md"), base.join("absolute.md")).unwrap();
        for (folder, text) in [
            ("pdf", "---\nname: pdf\ndescription: Forms.\n---\n"),
            (".new", "---\nname: new\ndescription: Off.\n---\n"),
            ("odd", "---\nname: other\ndescription: x\n---\n"),
        ] {
            let folder = base.join("skills").join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("SKILL.md"), text).unwrap();
        }
        let read = ContextFiles::read(base);
        assert_eq!(read.soul.as_deref(), Some("kind"));
        assert_eq!(read.memory.as_deref(), Some("tea"));
        assert_eq!((read.tools, read.agents), (None, None));
        let names: Vec<&str> = read.skills.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["pdf"]);
        assert_eq!(read.refused_skills.len(), 1);
        assert_eq!(context_file(base, "SOUL.md").as_deref(), Some("kind"));
        assert_eq!(context_file(base, "../secret"), None);
        assert_eq!(
            ContextFiles::read(&base.join("none")),
            ContextFiles::default()
        );
    }

    #[test]
    fn no_more_than_the_bound_is_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("SOUL.md"), "x".repeat(1 << 20)).unwrap();
        let read = ContextFiles::read(dir.path()).soul.unwrap();
        assert_eq!(read.len(), (64 << 10) + 1);
    }
}

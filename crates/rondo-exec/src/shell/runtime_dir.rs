//! The directory of one shell: its start files and its private pipes.
//!
//! The pipes have names, so that the shell opens them for a moment at each prompt and no program
//! that it starts inherits them.

use super::protocol::Family;
use super::unix;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Prefix of the name of each such directory; the supervisor's process id follows.
const NAME: &str = "shell-";
const BASH_HOOK: &str = include_str!("hook.bash");
const ZSH_HOOK: &str = include_str!("hook.zsh");
const NONCE_BYTES: usize = 16;

/// The directory, removed with it.
pub(super) struct RuntimeDir {
    path: PathBuf,
    /// Secret of this shell that no other process knows.
    pub(super) nonce: String,
    /// Lines on their way to the shell.
    pub(super) line: OwnedFd,
    /// Reports on their way from it.
    pub(super) state: OwnedFd,
}

impl RuntimeDir {
    /// Makes it for a shell of that family, whose user has zsh look for their start files in `own_files`.
    pub(super) fn make(
        state_dir: &Path,
        family: Family,
        own_files: Option<&OsStr>,
    ) -> io::Result<Self> {
        sweep(state_dir);
        let path = state_dir.join(format!("{NAME}{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        DirBuilder::new().mode(0o700).create(&path)?;
        let nonce = nonce()?;
        let made = Self {
            line: unix::make_pipe(&path.join("line"))?,
            state: unix::make_pipe(&path.join("state"))?,
            path,
            nonce,
        };
        made.write_start_files(family, own_files.map(Path::new))?;
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write_start_files(&self, family: Family, own_files: Option<&Path>) -> io::Result<()> {
        let known = format!(
            "__rondo_nonce='{}'\n__rondo_dir={}\n",
            self.nonce,
            quoted(&self.path)
        );
        match family {
            Family::Bash => self.write("bashrc", &format!("{known}{BASH_HOOK}")),
            Family::Zsh => {
                self.write(".zshenv", &self.zshenv(own_files))?;
                let restore = "if (( __rondo_zdotdir_is_set )); then ZDOTDIR=$__rondo_zdotdir\n\
                               else unset ZDOTDIR\nfi\n\
                               [[ ${HISTFILE-} == $__rondo_dir/* ]] && \
                               HISTFILE=${ZDOTDIR:-$HOME}/.zsh_history\n";
                self.write(".zshrc", &format!("{known}{restore}{ZSH_HOOK}"))
            }
        }
    }

    /// The user's own `ZDOTDIR` holds for their files, ours only for the next of ours.
    fn zshenv(&self, own: Option<&Path>) -> String {
        let own = own.map_or("unset ZDOTDIR".to_owned(), |own| {
            format!("export ZDOTDIR={}", quoted(own))
        });
        format!(
            "{own}\n\
             if [[ -r ${{ZDOTDIR:-$HOME}}/.zshenv ]]; then . \"${{ZDOTDIR:-$HOME}}/.zshenv\"; fi\n\
             __rondo_zdotdir_is_set=${{+ZDOTDIR}} __rondo_zdotdir=${{ZDOTDIR-}}\n\
             ZDOTDIR={}\n",
            quoted(&self.path)
        )
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        options
            .open(self.path.join(name))?
            .write_all(text.as_bytes())
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what supervisors that were killed have left.
fn sweep(state_dir: &Path) {
    let Ok(entries) = fs::read_dir(state_dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let owner = owner.and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !rondo_launch::unix::exists(pid)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn nonce() -> io::Result<String> {
    let mut bytes = [0; NONCE_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::ZSH_HOOK;

    /// `read` of zsh with `-d`, `-k`, `-q` or `-s` sets the terminal's modes and puts back what it found,
    /// which may be what the supervisor had set for a moment to take unread input: then the shell reads
    /// an end of file at its prompt and leaves, about once in a thousand commands of a busy machine.
    #[test]
    fn no_read_in_the_hook_of_zsh_touches_the_terminal() {
        let reads: Vec<&str> = ZSH_HOOK
            .lines()
            .filter_map(|line| line.split_once("builtin read "))
            .map(|(_, arguments)| arguments)
            .collect();
        assert_eq!(reads.len(), 4);
        for arguments in reads {
            let options = arguments.split(' ').filter(|word| word.starts_with('-'));
            let options: Vec<&str> = options.collect();
            assert!(
                options.iter().all(|it| ["-r", "-t"].contains(it)),
                "{arguments}"
            );
        }
    }
}

//! The files that commands meet: a workspace with repositories, and around it what no command may touch.

use anyhow::{Context, Result, ensure};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// Root of everything, within the machine of the fuzzer's own.
pub(super) const WORLD: &str = "/mnt/world";
/// Template that is copied to it.
const TEMPLATE: &str = "/mnt/template";
/// The directory above the working directory, which some commands may write.
pub(super) const GROUND: &str = "/mnt/world/ground";
/// Working directory of commands.
pub(super) const PROJECT: &str = "/mnt/world/ground/project";
/// The home directory of the user.
pub(super) const HOME: &str = "/mnt/world/home";
/// Content of files that no command may show.
pub(super) const SECRET: &str = "CANARY";
/// Other places of changes: those of the root file system, and of the directories that are in memory.
pub(super) const ELSEWHERE: [&str; 5] = ["/mnt/changed", "/tmp", "/var/tmp", "/run", "/dev/shm"];
/// Directory in which each change of the root file system lands, and that of its mount.
pub(super) const CHANGED: &str = "/mnt/changed";
/// The root file system as it was.
pub(super) const ORIGINAL: &str = "/mnt/lower";
/// Directories that commands may read, and not write.
pub(super) const READABLE: [&str; 2] = ["/mnt/world/any", "/mnt/world/sibling"];

/// Makes the workspace that each command starts with, once.
///
/// # Errors
/// When that fails.
pub(super) fn make() -> Result<()> {
    let template = Path::new(TEMPLATE);
    let project = template.join("ground/project");
    for folder in ["src", "sub", "deep/a/b", ".vscode", "evil"] {
        fs::create_dir_all(project.join(folder))?;
    }
    for folder in [
        "home/.ssh",
        "home/.config",
        "any/hooks",
        "sibling/.git/hooks",
    ] {
        fs::create_dir_all(template.join(folder))?;
    }
    for (name, text) in [
        ("README.md", "a readme\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("deep/a/b/file", "deep\n"),
        ("sub/file", "sub\n"),
        (".envrc", "export A=b\n"),
        (".vscode/settings.json", "{}\n"),
        ("NOTES.md", "notes\n"),
    ] {
        fs::write(project.join(name), text)?;
    }
    symlink("NOTES.md", project.join("AGENTS.md"))?;
    for name in [
        "home/.ssh/id",
        "home/.bashrc",
        "home/.gitconfig",
        "home/.profile",
        "home/.config/key",
    ] {
        fs::write(template.join(name), format!("# {SECRET} {name}\n"))?;
    }
    for name in [
        "any/key",
        "any/config",
        "sibling/file",
        "sibling/.git/config",
    ] {
        fs::write(template.join(name), format!("# {name}\n"))?;
    }
    for repository in ["sub", "deep/a/b", "."] {
        make_repository(&project.join(repository))?;
    }
    fs::write("/tmp/canary", "canary\n").context("failed to write to /tmp")
}

fn make_repository(directory: &Path) -> Result<()> {
    for args in [
        &["init", "-q", "--template=", "-b", "main"][..],
        &["add", "-A", ":!sub", ":!deep"],
        &["commit", "-q", "--allow-empty", "-m", "first"],
    ] {
        let status = git(directory).args(args).status();
        ensure!(
            status.context("failed to start `git`")?.success(),
            "`git {args:?}` failed"
        );
    }
    // A repository always has them where `git` made it in the ordinary way.
    fs::create_dir(directory.join(".git/hooks"))?;
    Ok(())
}

fn git(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@b.c"])
        .args(["-c", "safe.directory=*"])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    git
}

/// Puts everything back to how each command finds it.
///
/// # Errors
/// When something cannot be removed or made.
pub(super) fn restore() -> Result<()> {
    for entry in fs::read_dir(WORLD)? {
        remove(&entry?.path())?;
    }
    for entry in fs::read_dir(TEMPLATE)? {
        let entry = entry?;
        copy(&entry.path(), &Path::new(WORLD).join(entry.file_name()))?;
    }
    for place in ELSEWHERE.iter().skip(1) {
        for entry in fs::read_dir(place)?.filter_map(io::Result::ok) {
            let _ = remove(&entry.path());
        }
    }
    fs::write("/tmp/canary", "canary\n").context("failed to write to /tmp")
}

/// Copies a tree with its modes and links.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let metadata = from.symlink_metadata()?;
    if metadata.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
        return Ok(());
    }
    if metadata.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        fs::set_permissions(to, metadata.permissions())?;
        return Ok(());
    }
    fs::copy(from, to)?;
    Ok(())
}

/// Removes what commands may have made unreadable, too.
fn remove(path: &Path) -> Result<()> {
    let metadata = path.symlink_metadata()?;
    if metadata.is_dir() {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(path)? {
            remove(&entry?.path())?;
        }
        fs::remove_dir(path).with_context(|| format!("failed to remove `{}`", path.display()))?;
    } else {
        fs::remove_file(path).with_context(|| format!("failed to remove `{}`", path.display()))?;
    }
    Ok(())
}

//! The user's own shell, kept between commands.

mod commands;
mod ending;
mod hooks;
mod input;
mod kept;
mod terminal;

use crate::fixture::{PATIENCE, supervisor};
use rondo_exec::shell::{
    CommandEnd, CommandStream, Shell, ShellError, ShellEvent, ShellProgram, ShellSettings,
};
use rondo_policy::Workdir;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A shell with start files of its own.
pub(crate) struct Kept {
    pub(crate) shell: Shell,
    pub(crate) workdir: Workdir,
    pub(crate) home: TempDir,
    pub(crate) state: TempDir,
}

/// How a command went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) output: String,
    pub(crate) end: CommandEnd,
    pub(crate) restarted: bool,
}

pub(crate) const SHELLS: [&str; 2] = ["bash", "zsh"];

pub(crate) fn program(name: &str) -> ShellProgram {
    let paths = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];
    let found = paths.iter().map(|dir| Path::new(dir).join(name));
    let found = found.filter_map(|path| ShellProgram::new(path).ok()).next();
    found.unwrap_or_else(|| panic!("the tests need `{name}`"))
}

impl Kept {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, "", |_| ())
    }

    /// Starts a shell whose start file holds `rc`.
    pub(crate) fn with(name: &str, rc: &str, change: impl FnOnce(&mut ShellSettings)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(format!(".{name}rc")), rc).unwrap();
        let directory = home.path().canonicalize().unwrap();
        let workdir = Workdir::new(directory.clone());
        let mut settings = ShellSettings::new(
            supervisor(),
            program(name),
            workdir.clone(),
            state.path().to_path_buf(),
        );
        settings.start_timeout = PATIENCE;
        settings.environment = vec![
            ("HOME".into(), Some(directory.into())),
            ("TERM".into(), Some("xterm-256color".into())),
            ("LC_ALL".into(), Some("C.UTF-8".into())),
            ("HISTFILE".into(), None),
            ("ZDOTDIR".into(), None),
        ];
        change(&mut settings);
        Self {
            shell: Shell::start(settings),
            workdir,
            home,
            state,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap()
    }

    pub(crate) async fn begin(&self, line: &str) -> CommandStream {
        self.shell.run(line).await.unwrap()
    }

    pub(crate) async fn run(&self, line: &str) -> Ran {
        rest(self.begin(line).await).await
    }

    pub(crate) async fn output(&self, line: &str) -> String {
        self.run(line).await.output
    }
}

/// Reads a command to its end.
pub(crate) async fn rest(mut stream: CommandStream) -> Ran {
    let mut output = Vec::new();
    let mut restarted = false;
    let read = async {
        loop {
            match stream.next().await.unwrap().unwrap() {
                ShellEvent::Output(bytes) => output.extend(bytes),
                ShellEvent::Restarted => restarted = true,
                ShellEvent::Ended(end) => return *end,
            }
        }
    };
    let end = tokio::time::timeout(PATIENCE, read).await.unwrap();
    Ran {
        output: String::from_utf8_lossy(&output).replace("\r\n", "\n"),
        end,
        restarted,
    }
}

/// Reads a command's output until it contains `wanted`; returns what was read.
pub(crate) async fn until(stream: &mut CommandStream, wanted: &str) -> String {
    let mut output = String::new();
    let read = async {
        while !output.contains(wanted) {
            match stream.next().await.unwrap() {
                Some(ShellEvent::Output(bytes)) => {
                    output.push_str(&String::from_utf8_lossy(&bytes))
                }
                Some(ShellEvent::Restarted) => {}
                other => panic!("no `{wanted}` in `{output}` before {other:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap();
    output
}

#[tokio::test]
async fn lines_that_no_shell_can_run_are_refused() {
    let kept = Kept::new("bash");
    assert!(matches!(kept.shell.run("a\0b").await, Err(ShellError::Nul)));
    let long = "x".repeat(Shell::LINE_BYTES_MAX + 1);
    assert!(matches!(
        kept.shell.run(&long).await,
        Err(ShellError::TooLong)
    ));
    let running = kept.begin("read x").await;
    assert!(matches!(kept.shell.run(":").await, Err(ShellError::Busy)));
    running.keyboard().input(b"\n").await;
    assert_eq!(rest(running).await.end.exit_code, 0);
}

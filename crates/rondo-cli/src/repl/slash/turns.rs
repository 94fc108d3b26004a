//! Slash commands that show the to-do list and enter the lines of a file.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::repl::{After, Repl};
use rondo_runtime::todo::as_text;
use std::io::Read as _;

/// The bound on a file whose lines are entered, in bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

impl Repl {
    pub(super) fn show_todo(&mut self) -> Result<()> {
        let items = self.talk.handle.todo()?;
        self.tell(&format!("{}\n", as_text(&items)))
    }

    pub(super) fn run_file(&mut self, file: &str) -> Result<After> {
        if file.is_empty() {
            return Err(CliError::new(Exit::Usage, "`/run` takes a file"));
        }
        let path = self.talk.settings.directory.join(file);
        let mut text = String::new();
        let read = rondo_runtime::files::open_regular(&path)
            .and_then(|file| file.take(SCRIPT_BYTES_MAX).read_to_string(&mut text));
        read.map_err(|err| {
            let context = format!("failed to read `{file}`");
            CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
        })?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        self.queue(lines.map(str::to_owned));
        Ok(After::Prompt)
    }
}

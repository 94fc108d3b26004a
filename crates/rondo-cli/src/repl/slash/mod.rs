//! What the prompt itself can do: lines that begin with a slash.
//!
//! # Layout
//! - `table`: their names and what they do, in the order of `/help`.
//! - `session`, `turns`, `choose`: the commands by subject.

mod choose;
mod session;
mod table;
mod turns;

pub(super) use table::{is_name, names};
pub(super) use turns::turns;

use super::shell::Sharing;
use super::{After, Repl};
use crate::error::{CliError, Result};
use crate::exit::Exit;

impl Repl {
    /// Does what a command of the prompt says.
    ///
    /// # Errors
    /// When there is no such command, or it fails.
    pub(super) async fn slash(&mut self, name: &str, rest: &str) -> Result<After> {
        match name {
            "help" => self.help(),
            "ps" => return self.run_command("jobs -l", Sharing::Never).await,
            "stop" => return self.stop_job(rest).await,
            "quit" | "exit" => return Ok(After::Leave(Exit::Answer)),
            "mode" => self.choose_mode(rest),
            "model" => self.choose_model(rest),
            "profile" => self.choose_profile(rest),
            "memory" => self.choose_memory(rest),
            "approve" => self.approve(rest),
            "clear" => self.clear(),
            "compact" => return self.compact(rest).await,
            "cost" => self.show_cost(),
            "steps" => self.show_steps(),
            "trace" => self.show_trace(),
            "include" => self.include(rest),
            "explain" => return self.ask_about_failure().await,
            "inspect" => self.inspect(rest).await,
            "last_error" => self.last_error().await,
            "run" => return self.run_file(rest),
            "sessions" => self.show_sessions(),
            "resume" => return self.resume(rest).await,
            "restore" => self.restore(rest).await,
            "fork" => self.fork(rest).await,
            "undo" => self.undo().await,
            _ => Err(unknown(name)),
        }?;
        Ok(After::Prompt)
    }

    fn help(&mut self) -> Result<()> {
        self.tell(&table::help())
    }
}

fn unknown(name: &str) -> CliError {
    let error = CliError::new(Exit::Usage, format_args!("there is no `/{name}`"));
    let near = names().find(|known| known.starts_with(name) || name.starts_with(known));
    error.hint(match near {
        Some(near) => format!("did you mean `/{near}`? `/help` shows all"),
        None => "`/help` shows all".to_owned(),
    })
}

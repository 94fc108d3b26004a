//! `rondo outbox`: messages that the hub has not sent, also while it runs.

use super::report::{current_dir, write_failed};
use crate::cli::{OutboxArgs, OutboxCommand};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::ports::{OutboxId, OutboxRow};
use rondo_core::shown;
use rondo_hub::channel::ChatKey;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::sessions;
use rondo_runtime::settings::Settings;
use std::fmt::Write as _;

/// Characters of a message that are listed.
const TEXT_CHARS_MAX: usize = 60;

/// Runs the command.
///
/// # Errors
/// When the journal cannot be used, or no such message is there.
pub(super) fn run(args: &OutboxArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = sessions::open(&settings)?;
    let runtime = executor::of_this_thread()?;
    let failed = |err| CliError::caused(Exit::Journal, err);
    let (id, done) = match args.command {
        OutboxCommand::List => {
            let rows = runtime.block_on(store.unsent()).map_err(failed)?;
            output.words(&list(&rows)).map_err(write_failed)?;
            return Ok(Exit::Answer);
        }
        OutboxCommand::Retry { id } => (id, runtime.block_on(store.retry(OutboxId(id)))),
        OutboxCommand::Drop { id } => (id, runtime.block_on(store.drop_row(OutboxId(id)))),
    };
    match done.map_err(failed)? {
        true => Ok(Exit::Answer),
        false => {
            let message = format!("there is no undelivered message {id}");
            let error = CliError::new(Exit::Usage, message);
            Err(error.hint("`rondo outbox list` shows the undelivered messages"))
        }
    }
}

fn list(rows: &[OutboxRow]) -> String {
    let mut text = String::new();
    for row in rows {
        let said: String = row.entry.text.chars().take(TEXT_CHARS_MAX).collect();
        let _ = writeln!(
            text,
            "{}  {}  {} in {}, {} attempts{}: {}",
            row.id,
            row.state.word(),
            row.entry.kind.word(),
            chat(row),
            row.attempts,
            row.error
                .as_ref()
                .map_or_else(String::new, |it| format!(" ({})", shown::readable_line(it))),
            shown::readable_line(&said)
        );
    }
    match text.is_empty() {
        true => "no undelivered messages\n".to_owned(),
        false => text,
    }
}

fn chat(row: &OutboxRow) -> String {
    let chat = ChatKey::of_text(&row.entry.chat);
    let name = chat.map_or_else(String::new, |it| format!("{} {}", it.channel, it.chat_id));
    shown::readable_line(&name)
}

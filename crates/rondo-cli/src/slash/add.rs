//! Files and skills for the next question, and facts for all sessions.

use super::{Context, wrong};
use crate::commands::skills;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::user_input;
use rondo_runtime::memory::{self, Scope};
use rondo_runtime::skills::Skills;
use rondo_tui::prompt::reply::{Change, Reply};

pub(super) fn include(file: &str, context: &Context) -> Result<Reply> {
    if file.is_empty() {
        return Err(wrong("`/include` takes a file"));
    }
    let file = file.trim().trim_matches('"');
    let part = user_input::attach(file, &context.settings.directory)?;
    let path = file.to_owned();
    let reply = Reply::words(format!("`{file}` will be attached to the next question"));
    Ok(reply.with(Change::File { path, part }))
}

pub(super) fn skill(name: &str, context: &Context) -> Result<Reply> {
    let found = Skills::find(&context.settings);
    if name.is_empty() {
        return Ok(Reply::words(skills::list(&found).trim_end()));
    }
    let read = skills::find(&found, name)?.read();
    let text = read.map_err(|problem| CliError::new(Exit::Input, problem))?;
    let reply = Reply::words(format!(
        "the skill `{name}` will be attached to the next question"
    ));
    let text = format!("Do as the skill `{name}` says:\n\n{text}");
    Ok(reply.with(Change::Text(text)))
}

pub(super) fn remember(text: &str, context: &Context) -> Result<Reply> {
    if text.is_empty() {
        return Err(wrong("`/remember` takes a text"));
    }
    let session = Some(context.session.id());
    let memories = memory::memories(&context.settings, &context.secrets, session)?;
    let told = memory::remember(&memories, text, Scope::User, session)?;
    Ok(Reply::words(told))
}

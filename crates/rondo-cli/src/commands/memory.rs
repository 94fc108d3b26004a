//! `rondo memory`: lists, searches, shows, adds, edits and removes memories.

use super::editor::edit;
use super::report::{current_dir, write_failed};
use crate::cli::{MemoryArgs, MemoryCommand};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::shortened_to;
use rondo_runtime::Layer;
use rondo_runtime::SetupError;
use rondo_runtime::calendar;
use rondo_runtime::env::Env;
use rondo_runtime::memory::{self, Memories, Memory, MemoryError, Scope};
use rondo_runtime::sanitize::cell;
use rondo_runtime::secrets;
use rondo_runtime::settings::Settings;
use rustix::termios::isatty;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;

/// Digits of an id that are shown.
const ID_DIGITS: usize = 8;
/// Columns of a text in a list if the terminal is narrow.
const TEXT_COLUMNS_MIN: usize = 20;

/// Runs the command.
///
/// # Errors
/// When there is no such memory, or a file of memories cannot be used.
pub(super) fn run(args: &MemoryArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let session = args.session.as_deref();
    let session = session.map(|name| memory::session(&settings, name));
    let session = session.transpose()?;
    let secrets = secrets::of_env(&settings);
    let memories = memory::memories(&settings, &secrets, session.as_ref())?;
    match &args.command {
        MemoryCommand::List { scope, json } => {
            let listing = memories.list().map_err(failed)?;
            listing.notes.iter().for_each(|note| output.note(note));
            let mut found = listing.memories;
            found.retain(|it| scope.is_none_or(|scope| Scope::from(scope) == it.scope));
            show_all(&found, *json, output)?;
        }
        MemoryCommand::Search { query, limit, json } => {
            let found = search(&memories, &query.join(" "), usize::from(*limit), output)?;
            show_all(&found, *json, output)?;
        }
        MemoryCommand::Show { id, json } => {
            let memory = memories.find(id).map_err(failed)?;
            let path = memories
                .path(memory.scope, Some(&memory.file))
                .map_err(failed)?;
            let path = path.display().to_string();
            let written = match json {
                true => output.json(&format!("{}\n", as_json(&memory, Some(&path)))),
                false => output.stdout(&shown(&memory, &path)),
            };
            written.map_err(write_failed)?;
        }
        MemoryCommand::Add { text, scope } => {
            let added = memory::remember(&memories, &text.join(" "), (*scope).into(), None)?;
            output.stdout(&format!("{added}\n")).map_err(write_failed)?;
        }
        MemoryCommand::Edit { file, scope } => {
            edit_file(
                &memories,
                file.as_deref(),
                (*scope).into(),
                &settings,
                output,
            )?;
        }
        MemoryCommand::Forget { ids, yes } => forget(&memories, ids, *yes, output)?,
    }
    Ok(Exit::Answer)
}

fn failed(error: MemoryError) -> CliError {
    SetupError::from(error).into()
}

fn search(memories: &Memories, query: &str, limit: usize, output: &Output) -> Result<Vec<Memory>> {
    let runtime = executor::of_this_thread()?;
    let found = runtime
        .block_on(memories.search(query, limit))
        .map_err(failed)?;
    found.notes.iter().for_each(|note| output.note(note));
    Ok(found.hits.into_iter().map(|hit| hit.memory).collect())
}

fn show_all(found: &[Memory], json: bool, output: &Output) -> Result<()> {
    let written = match (json, found) {
        (true, _) => {
            let lines = found.iter().map(|it| format!("{}\n", as_json(it, None)));
            output.json(&lines.collect::<String>())
        }
        (false, []) => {
            output.note("no memories were found");
            Ok(())
        }
        (false, _) => output.stdout(&table(found, output.terminal_columns())),
    };
    written.map_err(write_failed)
}

fn as_json(memory: &Memory, path: Option<&str>) -> Value {
    let mut json = json!(memory);
    if let (Some(path), Some(fields)) = (path, json.as_object_mut()) {
        fields.insert("path".to_owned(), path.into());
    }
    json
}

/// Returns a line for each memory. Without the width of a terminal, nothing is shortened.
fn table(found: &[Memory], columns: Option<usize>) -> String {
    let mut text = String::new();
    for memory in found {
        let saved = memory.origin.saved;
        let saved = saved.map_or("-".to_owned(), |it| {
            calendar::utc(it).strftime("%Y-%m-%d").to_string()
        });
        let mark = if memory.origin.from_outside { "!" } else { " " };
        let head = format!(
            "{}  {:7}  {saved:10} {mark}",
            short_id(memory),
            memory.scope.as_str(),
        );
        let line = cell(&memory.text);
        let room = columns.map(|it| it.saturating_sub(head.len() + 1).max(TEXT_COLUMNS_MIN));
        let line = room.map_or_else(|| line.clone(), |room| shortened_to(&line, room));
        let _ = writeln!(text, "{head} {line}");
    }
    text
}

fn shown(memory: &Memory, path: &str) -> String {
    let origin = &memory.origin;
    let mut text = format!("id:      {}\n", memory.id);
    let mut add = |name: &str, value: &str| {
        let _ = writeln!(text, "{:8} {}", format!("{name}:"), cell(value));
    };
    add("scope", memory.scope.as_str());
    add("file", &format!("{path}:{}", memory.line));
    if !memory.heading.is_empty() {
        add("heading", &memory.heading);
    }
    add("by", origin.by.as_str());
    if let Some(saved) = origin.saved {
        add("saved", &calendar::utc_text(saved));
    }
    if let Some(session) = &origin.session {
        add("session", session);
    }
    if let Some(turn) = &origin.turn {
        add("turn", turn);
    }
    if origin.from_outside {
        add("outside", "the turn had read text from outside");
    }
    text + "\n" + &memory.text + "\n"
}

fn short_id(memory: &Memory) -> &str {
    memory.id.get(..ID_DIGITS).unwrap_or(&memory.id)
}

fn edit_file(
    memories: &Memories,
    file: Option<&str>,
    scope: Scope,
    settings: &Settings,
    output: &Output,
) -> Result<()> {
    let copies = settings.paths.state.join("memory");
    let editing = memories.begin_edit(scope, file, &copies).map_err(failed)?;
    edit(&settings.env, editing.path())?;
    let path = memories.path(scope, file).map_err(failed)?;
    let copy = editing.path().display().to_string();
    let done = memories.finish_edit(editing).map_err(|error| {
        let is_named = matches!(error, MemoryError::Changed { .. });
        let error = failed(error);
        match is_named {
            true => error,
            false => error.hint(format!("your version is in `{copy}`")),
        }
    })?;
    match done {
        true => output.note(&format!("`{}` is changed", path.display())),
        false => output.note(&format!("`{}` is unchanged", path.display())),
    }
    Ok(())
}

fn forget(memories: &Memories, ids: &[String], yes: bool, output: &Output) -> Result<()> {
    let found = ids.iter().map(|id| memories.find(id));
    let found: Vec<Memory> = found.collect::<Result<_, _>>().map_err(failed)?;
    if !yes {
        if !isatty(io::stdin()) {
            let message = "cannot ask for confirmation without a terminal";
            return Err(CliError::new(Exit::ApprovalNeeded, message)
                .hint("pass `--yes` to remove without asking"));
        }
        output.stderr(&rondo_runtime::sanitize::plain(&table(&found, None)));
        if !output.is_confirmed("Remove permanently?") {
            return output.stdout("nothing was removed\n").map_err(write_failed);
        }
    }
    for memory in found {
        memories.forget(&memory).map_err(failed)?;
        let line = format!("forgot {}  {}\n", short_id(&memory), cell(&memory.text));
        output.stdout(&line).map_err(write_failed)?;
    }
    Ok(())
}

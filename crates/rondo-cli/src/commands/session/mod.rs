//! `rondo session`: lists, shows, exports, imports, checks and removes recorded sessions.

mod keep;
mod list;
mod portable;
mod show;

pub(crate) use list::table;

use super::report::{current_dir, write_failed};
use crate::cli::{SessionArgs, SessionCommand};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::session_store::StoreError;
use rondo_core::storage::{SalvagedStore, Store};
use rondo_runtime::env::Env;
use rondo_runtime::sessions::{self, failed};
use rondo_runtime::settings::Settings;
use rondo_runtime::{Layer, SetupError};

/// Runs the command.
///
/// # Errors
/// When the journal cannot be used, or there is no such session.
pub(super) fn run(args: &SessionArgs, env: Env, output: &Output) -> Result<Exit> {
    if let SessionCommand::Prune(args) = &args.command
        && args.older_than.is_none()
        && args.keep_bytes.is_none()
    {
        let message = "no criterion given: pass --older-than, --keep-bytes or both";
        return Err(CliError::new(Exit::Usage, message).hint(
            "`rondo session prune --older-than 30d --dry-run` lists the sessions without removing them",
        ));
    }
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = match &args.command {
        SessionCommand::Rm { .. } => sessions::open_to_remove(&settings),
        SessionCommand::Prune(args) if !args.dry_run => sessions::open_to_remove(&settings),
        SessionCommand::Import { .. } => sessions::open(&settings),
        SessionCommand::Fsck { repair: true, .. } => open_to_repair(&settings, output),
        _ => sessions::open_to_read(&settings),
    }?;
    let text = match &args.command {
        SessionCommand::List { limit, json } => {
            let found = sessions::with_children(&store, store.sessions(*limit)?)?;
            if *json {
                output
                    .json(&list::json(&store, &found))
                    .map_err(write_failed)?;
                return Ok(Exit::Answer);
            }
            list::table(&store, &found, output.terminal_columns())
        }
        SessionCommand::Show { session, format } => {
            show::show(&store, session, *format, output)?;
            return Ok(Exit::Answer);
        }
        SessionCommand::Rm { sessions, yes } => {
            keep::remove(&store, &settings.paths, sessions, *yes, output)?
        }
        SessionCommand::Prune(args) => keep::prune(&store, &settings.paths, args, output)?,
        SessionCommand::Export { session, output } => {
            portable::export(&store, session, output.as_deref())?
        }
        SessionCommand::Import { file, id } => {
            portable::import(&store, file.as_deref(), id.as_deref(), output)?
        }
        SessionCommand::Fsck { session, repair } => {
            return fsck(&store, session.as_deref(), *repair, output);
        }
    };
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn open_to_repair(settings: &Settings, output: &Output) -> Result<Store, SetupError> {
    let (store, salvaged) = sessions::open_to_repair(settings)?;
    let Some(SalvagedStore { kept, renamed }) = salvaged else {
        return Ok(store);
    };
    output.note(&format!(
        "the journal was damaged: its readable part was saved in a new file; the old file is `{}`",
        kept.display()
    ));
    for session in renamed {
        output.note(&format!(
            "the name of a session was unreadable: it is now `{session}`"
        ));
    }
    Ok(store)
}

/// Checks sessions one by one: what is wrong with one says nothing of the next.
fn fsck(store: &Store, session: Option<&str>, repair: bool, output: &Output) -> Result<Exit> {
    let infos = match session {
        Some(text) => vec![sessions::find(store, text)?],
        None => sessions::with_children(store, store.sessions(usize::MAX)?)?,
    };
    let mut exit = Exit::Answer;
    if let Some(what) = store.malformed()? {
        let path = store.path().unwrap_or_default();
        let line = format!("`{}` is malformed: {what}\n", path.display());
        output.stdout(&line).map_err(write_failed)?;
        exit = Exit::Journal;
    }
    for info in infos {
        let report = match repair {
            true => store.repair(&info.id),
            false => store.check(&info.id),
        };
        let (line, is_sound) = match report {
            Ok(report) => {
                let is_sound = report.defect.is_none() || !report.cut.is_empty();
                (keep::verdict(&report), is_sound)
            }
            // Another process removed it meanwhile.
            Err(StoreError::Unknown { .. }) if session.is_none() => continue,
            Err(error) => (format!("{}: {}\n", info.id, failed(error).line()), false),
        };
        output.stdout(&line).map_err(write_failed)?;
        if !is_sound {
            exit = Exit::Journal;
        }
    }
    Ok(exit)
}

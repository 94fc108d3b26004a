//! The session at the prompt: other sessions, copies of it, summing it up, and continuing with it.

use super::{Context, wrong};
use crate::commands::session_table;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_core::session_store::{SessionInfo, SessionState};
use rondo_runtime::service::SessionHandle;
use rondo_runtime::sessions::{self, LatestModels};
use rondo_runtime::spec::{go_on_with, other_answers};
use rondo_runtime::{NoNotices, SessionOptions, compaction, todo};
use rondo_tui::prompt::reply::{Change, Origin, Panel, Reply, ReplyText};
use rondo_types::units::counted;

/// Sessions that are listed.
const LISTED_MAX: usize = 20;

pub(super) async fn clear(context: &Context) -> Result<Reply> {
    if context.prompt.asks {
        // An answer would come from a prompt that does not show the question.
        context.session.cancel().await?;
    }
    let session = new_session(context)?;
    let origin = Origin::New;
    Ok(Reply::words("a new conversation").with(Change::Session { session, origin }))
}

fn new_session(context: &Context) -> Result<SessionHandle> {
    Ok(context.service.begin_session(options(context))?)
}

fn options(context: &Context) -> SessionOptions {
    SessionOptions::in_directory(context.settings.directory.clone())
}

pub(super) async fn fork(rest: &str, context: &Context) -> Result<Reply> {
    if !rest.is_empty() {
        let error = wrong("`/fork` copies the session as it is now");
        return Err(error.hint("`rondo fork ID --at STEP` goes back to a step"));
    }
    if !context.prompt.asks {
        refuse_in_turn(context)?;
    }
    let session = context.session.fork().await?;
    let turns = session.info()?.map_or(0, |info| info.turns);
    let (id, from) = (session.id(), context.session.id());
    let reply = Reply::words(format!(
        "session `{id}` of {}: a copy of `{from}`, which stays as it is",
        counted(turns, "turn")
    ));
    let origin = Origin::Copy;
    Ok(reply.with(Change::Session { session, origin }))
}

/// Continues from before the last turn. Nothing is removed from the session: a copy continues.
pub(super) async fn undo(context: &Context) -> Result<Reply> {
    refuse_in_turn(context)?;
    if context.session.info()?.is_none() {
        let message = "no question was asked yet";
        return Err(CliError::new(Exit::NoSession, message));
    }
    let session = match context.session.before_latest_turn().await? {
        Some(before) => before,
        None => new_session(context)?,
    };
    let reply = "undid the last turn; files were not changed, and the session is kept";
    let origin = Origin::BeforeTurn;
    Ok(Reply::words(reply).with(Change::Session { session, origin }))
}

pub(super) fn list(_rest: &str, context: &Context) -> Result<Reply> {
    let store = context.session.store();
    let found = store.sessions(LISTED_MAX)?;
    let table = session_table(store, &found, Some(context.columns));
    Ok(panel(Panel::Sessions, table.trim_end()))
}

pub(super) fn to_do(context: &Context) -> Result<Reply> {
    let text = todo::as_text(&context.session.todo()?);
    Ok(panel(Panel::Todo, &text))
}

pub(super) fn panel(panel: Panel, text: &str) -> Reply {
    Reply {
        shown: ReplyText::Panel(panel, text.to_owned()),
        change: None,
    }
}

pub(super) async fn compact(focus: &str, context: &Context) -> Result<Reply> {
    let focus = context.secrets.text(focus.to_owned());
    if context.prompt.is_busy {
        return Ok(Reply::change(Change::Compact(focus)));
    }
    if is_cut_off(context)? {
        let error = CliError::new(Exit::NoSession, "the last turn was cut off");
        return Err(error.hint("`/resume` continues it; then `/compact` summarizes"));
    }
    let history = match context.session.info()? {
        Some(info) => {
            let history = context.session.store().history(&info.id);
            history.map_err(sessions::failed)?.transcript()
        }
        None => Vec::new(),
    };
    Ok(match compaction::too_early(&history) {
        Some(early) => Reply::words(format!("there is nothing to summarize yet: {early}")),
        None => Reply::change(Change::Compact(focus)),
    })
}

fn is_cut_off(context: &Context) -> Result<bool> {
    let info = context.session.info()?;
    Ok(info.is_some_and(|it| matches!(it.state, SessionState::CutOff | SessionState::Parked)))
}

/// Carries on a turn that was cut off, and has the messages that wait asked; or continues in the session of that id.
pub(super) async fn resume(id: &str, context: &Context) -> Result<Reply> {
    if !id.is_empty() {
        return go_on(id, context);
    }
    refuse_in_turn(context)?;
    if !is_cut_off(context)? && context.session.first_waiting().await.is_none() {
        let error = CliError::new(Exit::NoSession, "there is no turn to resume");
        let hint = "`/resume ID` continues another session, and `/sessions` lists them";
        return Err(error.hint(hint));
    }
    Ok(Reply::change(Change::Resume))
}

fn go_on(id: &str, context: &Context) -> Result<Reply> {
    let (store, settings) = (context.session.store(), &context.settings);
    let info = sessions::find(store, id)?;
    let own = match context.names_directory {
        true => None,
        false => own_directory(&info, context)?,
    };
    let last = LatestModels::last(store, &info)?;
    let mut lines = vec![taken(&info)];
    lines.extend(own.map(|own| {
        format!("it was recorded in `{own}` and continues here; `!cd {own}` changes to it")
    }));
    if let Some(last) = last {
        let mut kept = settings.clone();
        go_on_with(&last, &mut kept, &NoNotices)?;
        lines.extend(other_answers(&last, &kept));
    }
    let session = context.service.session(info.id, options(context));
    let origin = Origin::Recorded;
    Ok(Reply::words(lines.join("\n")).with(Change::Session { session, origin }))
}

/// Returns the directory of a session if it is another one. A session whose directory is gone is refused unless the
/// command line names one: its work would be done here.
fn own_directory(info: &SessionInfo, context: &Context) -> Result<Option<String>> {
    let own = sessions::own_directory(info, &context.settings.directory);
    let own = own.map_err(|error| {
        let id = &info.id;
        CliError::from(error).hint(format!(
            "`rondo --session {id} -C DIR` continues it in another directory"
        ))
    })?;
    Ok(own.map(|own| own.display().to_string()))
}

/// Names the session in which a prompt continues.
pub(crate) fn taken(info: &SessionInfo) -> String {
    let (what, open) = match info.state {
        SessionState::CutOff | SessionState::Parked => (
            "its last turn was cut off; `/resume` or the next question continues it",
            1,
        ),
        SessionState::Running => ("another process is running it", 1),
        SessionState::Done => ("the next question continues it", 0),
    };
    let turns = counted(info.turns.saturating_sub(open), "turn");
    format!("session `{}` of {turns}: {what}", info.id)
}

fn refuse_in_turn(context: &Context) -> Result<()> {
    match context.prompt.is_busy {
        true => Err(wrong("a turn is running: Esc stops it")),
        false => Ok(()),
    }
}

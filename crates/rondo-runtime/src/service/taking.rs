//! Takes a session for its next turn: its settings, and its open turn.

use super::entry::Entry;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::session::Session;
use crate::sessions;
use crate::settings::Settings;
use crate::table::Layer;
use crate::target::ModelTarget;
use rondo_core::ports::{Record, RecordBody};
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_types::{Answer, Question, TurnId};
use std::sync::PoisonError;

/// Returns how many processes worked on a turn, by its records.
pub(super) fn runs_of(records: &[Record]) -> u32 {
    let began = |it: &&Record| {
        matches!(
            it.body,
            RecordBody::TurnStarted { .. } | RecordBody::Resumed { .. }
        )
    };
    u32::try_from(records.iter().filter(began).count()).unwrap_or(u32::MAX)
}

/// Returns a session's last turn if that has no end, with what it waits for if it is parked. With `asks_again`, a parked
/// turn counts as one that was cut off.
pub(super) fn open_turn(session: &Session, asks_again: bool) -> Option<(TurnId, Vec<Question>)> {
    let cut_off = session.conversation()?.cut_off.as_ref()?;
    let questions = match asks_again {
        true => Vec::new(),
        false => cut_off.questions.clone(),
    };
    Some((cut_off.turn(), questions))
}

/// Lets the settings decide whether the session is kept.
///
/// # Errors
/// When they say that nothing is kept, and the session is.
fn keeps(entry: &Entry, settings: &mut Settings) -> Result<()> {
    let is_in_memory = entry.store().is_in_memory();
    if settings.values.ephemeral == Some(true) && !is_in_memory {
        let message = "the settings of its directory are `ephemeral`, but the session is recorded";
        let hint = "remove the setting `ephemeral`, or have the host start the session in memory";
        return Err(SetupError::new(SetupErrorKind::Config, message).hint(hint));
    }
    settings.values.ephemeral = Some(is_in_memory);
    Ok(())
}

/// Returns the settings in force in a session for its next turn.
///
/// # Errors
/// When its settings make no sense, or the session cannot be read.
pub(super) fn settings(entry: &Entry) -> Result<Settings> {
    let (runtime, store) = (&entry.service.runtime, entry.store());
    let mut settings = match store.session(&entry.id) {
        Ok(info) => Session::stored(runtime, &entry.options, store.clone(), info, None)?.settings,
        Err(StoreError::Unknown { .. }) => runtime.settings(entry.options.directory.clone())?,
        Err(error) => return Err(sessions::failed(error)),
    };
    let chosen = entry.chosen.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(chosen) = &*chosen {
        (**chosen).clone().over(&mut settings.values);
    }
    Ok(settings)
}

/// Finds a session that is there, with what its host chose. `taken` is the answer about its folder that was just recorded.
fn found(entry: &Entry, info: SessionInfo, taken: Option<Answer>) -> Result<Session> {
    let (runtime, store) = (&entry.service.runtime, entry.store());
    let mut found = Session::stored(runtime, &entry.options, store.clone(), info, taken)?;
    chosen(entry).over(&mut found.settings.values);
    keeps(entry, &mut found.settings)?;
    match named_model(entry) {
        Some(model) => found.settings.values.model = Some(model),
        None => found.keep_model()?,
    }
    Ok(found)
}

fn chosen(entry: &Entry) -> Layer {
    let chosen = entry.chosen.lock().unwrap_or_else(PoisonError::into_inner);
    chosen.as_deref().cloned().unwrap_or_default()
}

fn named_model(entry: &Entry) -> Option<String> {
    let named = entry.model.lock().unwrap_or_else(PoisonError::into_inner);
    named.clone()
}

/// Reads the settings of a session again that this process owns, with an answer about its folder.
///
/// # Errors
/// When the settings make no sense, or the session cannot be read.
pub(super) fn read_again(entry: &Entry, taken: Answer) -> Result<Settings> {
    let info = entry.store().session(&entry.id).map_err(sessions::failed)?;
    Ok(found(entry, info, Some(taken))?.settings)
}

/// Returns the settings that the host gives the session.
fn given(entry: &Entry) -> Result<Option<Settings>> {
    let given = entry.service.host.settings(&entry.id);
    given
        .map(|mut settings| {
            keeps(entry, &mut settings)?;
            Ok(settings)
        })
        .transpose()
}

/// Returns the settings in force in a session without any record yet.
fn of_new(entry: &Entry) -> Result<Settings> {
    let mut settings = entry
        .service
        .runtime
        .settings(entry.options.directory.clone())?;
    chosen(entry).over(&mut settings.values);
    let values = &mut *settings.values;
    values.model = named_model(entry).or(values.model.take());
    keeps(entry, &mut settings)?;
    Ok(settings)
}

/// Returns the model that the next turn asks, or would ask if this one were named.
pub(super) fn model(entry: &Entry, named: Option<String>) -> Result<String> {
    let mut settings = match entry.store().session(&entry.id) {
        Ok(info) => found(entry, info, None)?.settings,
        Err(StoreError::Unknown { .. }) => of_new(entry)?,
        Err(error) => return Err(sessions::failed(error)),
    };
    settings.values.model = named.or(settings.values.model.take());
    let target = ModelTarget::make(&settings)?;
    target.check_key(&settings)?;
    Ok(target.full_name())
}

/// Takes a session, be it there or not.
pub(super) fn take(entry: &Entry) -> Result<Session> {
    let (runtime, store) = (&entry.service.runtime, entry.store());
    let given = given(entry)?;
    let taken = match store.session(&entry.id) {
        Ok(info) => {
            let mut found = match given {
                Some(settings) => Session::with_settings(runtime, store.clone(), info, settings),
                None => found(entry, info, None)?,
            };
            found.open(String::new())?;
            Ok(found)
        }
        Err(StoreError::Unknown { .. }) => {
            let settings = given.map_or_else(|| of_new(entry), Ok)?;
            let (id, store) = (entry.id.clone(), store.clone());
            Ok(Session::new_as(id, runtime.clone(), settings, Some(store)))
        }
        Err(error) => Err(sessions::failed(error)),
    };
    let mut session = taken?;
    runtime.share(&mut session.settings);
    Ok(session)
}

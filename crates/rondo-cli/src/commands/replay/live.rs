use super::source::Recorded;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::profiles;
use crate::settings::Settings;
use crate::tools;
use rondo_core::ports::RecordBody;
use rondo_core::replay::{Rerun, rerun as run_again};
use rondo_types::{Effects, Profile, SessionId, ToolSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whose directory tools have when the session's name is none for a directory.
const NOBODY: &str = "replay";

/// Runs the recorded calls of tools that only look again, in the working directory.
///
/// # Errors
/// When the tools cannot be built.
pub(super) fn rerun(recorded: &Recorded, settings: &Settings) -> Result<Vec<Rerun>> {
    let names = reading_tools(recorded);
    let session = directory_of(&recorded.session);
    let offer = tools::offer(&names, &[], settings, &session)?;
    let profile = profile_of(recorded, settings)?;
    let gate = tools::gate(&offer, &profile, settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| CliError::caused(Exit::Error, err))?;
    let again = run_again(&recorded.session, &recorded.records, &offer.tools, &*gate);
    Ok(runtime.block_on(again))
}

/// The session may come from a file that anybody wrote.
fn directory_of(session: &SessionId) -> SessionId {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    match session.as_str().bytes().all(is_plain) {
        true => session.clone(),
        false => SessionId::new(NOBODY),
    }
}

fn reading_tools(recorded: &Recorded) -> Vec<String> {
    let offered = recorded.records.iter().filter_map(|it| match &it.body {
        RecordBody::Equipped { tools, .. } => Some(tools),
        _ => None,
    });
    let reads = |spec: &&ToolSpec| spec.effects == Effects::ReadOnly;
    let names = offered.flat_map(|tools| tools.iter().filter(reads));
    let names: BTreeSet<_> = names.map(|spec| spec.name.clone()).collect();
    names.into_iter().collect()
}

/// The gate looks at the profile of the first turn; without one, at that in force.
fn profile_of(recorded: &Recorded, settings: &Settings) -> Result<Arc<Profile>> {
    let began = recorded.records.iter().find_map(|it| match &it.body {
        RecordBody::TurnStarted { profile, .. } => Some(Arc::clone(profile)),
        _ => None,
    });
    match began {
        Some(profile) => Ok(profile),
        None => {
            let resolved = profiles::resolve(settings, settings.profile_name())?;
            Ok(Arc::new(resolved.profile))
        }
    }
}

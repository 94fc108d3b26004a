//! What a replay needs of today's tools: their descriptions, and those that only read to be run again.

use crate::error::Result;
use crate::python::LivePython;
use crate::settings::Settings;
use crate::system_prompt;
use crate::tools::{self, Toolset, ToolsetOptions};
use crate::{profiles, secrets};
use rondo_core::ports::{Gate, Record, RecordBody};
use rondo_core::replay::{Changes, Rerun, rerun};
use rondo_types::{Effects, Profile, SessionId, ToolSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whose directory tools have that run for no session, or for one whose name is none for a directory.
const NO_SESSION: &str = "replay";

/// Returns what replaces the recorded beginning of each turn: the prompt, the tools and the limits of a
/// profile of today.
///
/// # Errors
/// When there is no such profile, or its tools cannot be built.
pub fn profile_changes(name: &str, settings: &Settings) -> Result<Changes> {
    let profile = profiles::resolve(settings, name)?.profile;
    let wanted = tools::wanted(&profile, settings);
    let toolset = toolset(&wanted, &profile, &SessionId::new(NO_SESSION), settings)?;
    let secrets = secrets::of_env(settings);
    Ok(Changes {
        system: Some(system_prompt::build(&profile, settings, &secrets)),
        tools: Some(toolset.tools.specs()),
        profile: Some(profile),
    })
}

/// What the turns of a recording ran with, gathered record by record.
#[derive(Debug, Default)]
pub struct RecordedTools {
    reading: BTreeSet<String>,
    profile: Option<Arc<Profile>>,
}

impl RecordedTools {
    /// Reads the records of a turn.
    pub fn gather(&mut self, records: &[Record]) {
        for record in records {
            match &record.body {
                RecordBody::TurnEnvironment { tools, .. } => self.reading.extend(reading(tools)),
                RecordBody::TurnStarted { profile, .. } => {
                    self.profile.get_or_insert_with(|| Arc::clone(profile));
                }
                _ => {}
            }
        }
    }

    /// Builds those tools of today that only read, under the profile of the first turn; where none is
    /// recorded, under that in force.
    ///
    /// # Errors
    /// When the tools cannot be built.
    pub fn reading_tools(self, session: &SessionId, settings: &Settings) -> Result<ReadingTools> {
        let profile = match self.profile {
            Some(profile) => profile,
            None => Arc::new(profiles::resolve(settings, settings.profile_name())?.profile),
        };
        let names: Vec<String> = self.reading.into_iter().collect();
        let toolset = toolset(&names, &profile, &directory_of(session), settings)?;
        let gate = tools::standard_gate(tools::gate_options(&toolset, &profile, settings)?)?;
        Ok(ReadingTools {
            session: session.clone(),
            toolset,
            gate,
        })
    }
}

/// Tools that only read, and the gate before them.
pub struct ReadingTools {
    session: SessionId,
    toolset: Toolset,
    gate: Arc<dyn Gate>,
}

impl ReadingTools {
    /// Runs the recorded calls of a turn again, where they only read.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call that runs.
    pub async fn rerun(&self, records: &[Record]) -> Vec<Rerun> {
        rerun(&self.session, records, &self.toolset.tools, &*self.gate).await
    }
}

fn toolset(
    names: &[String],
    profile: &Profile,
    session: &SessionId,
    settings: &Settings,
) -> Result<Toolset> {
    tools::toolset(ToolsetOptions {
        names,
        keys: &[],
        profile,
        settings,
        session,
        live: &[],
        secrets: &secrets::of_env(settings),
        workdir: None,
        python: &LivePython::default(),
    })
}

fn reading(tools: &[ToolSpec]) -> impl Iterator<Item = String> + '_ {
    let reads = |spec: &&ToolSpec| spec.effects == Effects::ReadOnly;
    tools.iter().filter(reads).map(|spec| spec.name.clone())
}

/// The session may come from a file of unknown origin.
fn directory_of(session: &SessionId) -> SessionId {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    match session.as_str().bytes().all(is_plain) {
        true => session.clone(),
        false => SessionId::new(NO_SESSION),
    }
}

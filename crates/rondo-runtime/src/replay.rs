//! The profile and tools that a replay takes from the current settings: their descriptions, and the read-only
//! tools to run again.

use crate::error::Result;
use crate::memory;
use crate::python::LivePython;
use crate::settings::Settings;
use crate::shared_values::SharedValues;
use crate::spec::permitted_now;
use crate::system_prompt;
use crate::tools::{self, Toolset, ToolsetOptions};
use crate::{profiles, secrets};
use rondo_core::ports::{Gate, Record, RecordBody};
use rondo_core::replay::{Changes, Rerun, rerun};
use rondo_memory::Outside;
use rondo_types::{Effects, Profile, SessionId, ToolSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whose directory tools have that run for no session, or for one whose name is none for a directory.
const NO_SESSION: &str = "replay";

/// Returns the prompt, tools and limits of a current profile, to replace the recorded ones of each turn.
///
/// # Errors
/// When there is no such profile, or its tools cannot be built.
pub fn profile_changes(name: &str, settings: &Settings) -> Result<Changes> {
    let profile = profiles::resolve(settings, name)?.profile;
    let wanted = tools::wanted(&profile, settings);
    let toolset = toolset(&wanted, &profile, &SessionId::new(NO_SESSION), settings)?;
    let secrets = secrets::of_env(settings);
    Ok(Changes {
        system: Some(system_prompt::build(
            &profile,
            settings,
            &secrets,
            Vec::new(),
        )),
        tools: Some(toolset.tools.specs()),
        profile: Some(profile),
    })
}

/// The profile and tools of a recording, collected record by record.
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

    /// Builds the current read-only tools, with the profile of the first turn, or the effective profile if none
    /// is recorded.
    ///
    /// # Errors
    /// When the tools cannot be built.
    pub fn reading_tools(self, session: &SessionId, settings: &Settings) -> Result<ReadingTools> {
        let profile = match self.profile {
            // It may be from anyone, and grants nothing.
            Some(profile) => permitted_now((*profile).clone(), true, settings),
            None => profiles::resolve(settings, settings.profile_name())?.profile,
        };
        let names: Vec<String> = self.reading.into_iter().collect();
        let toolset = toolset(&names, &profile, &directory_of(session), settings)?;
        let gate = tools::standard_gate(tools::gate_options(&toolset, &profile, settings)?);
        Ok(ReadingTools {
            session: session.clone(),
            toolset,
            gate,
        })
    }
}

/// Read-only tools, and the gate that decides whether a call may run.
pub struct ReadingTools {
    session: SessionId,
    toolset: Toolset,
    gate: Arc<dyn Gate>,
}

impl ReadingTools {
    /// Runs the recorded calls of a turn to read-only tools again.
    ///
    /// # Cancel safety
    /// Dropping the future ends the running call.
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
    let secrets = secrets::of_env(settings);
    let memories = memory::memories(settings, &secrets, Some(session))?;
    tools::toolset(ToolsetOptions {
        names,
        keys: &[],
        profile,
        settings,
        session,
        live: &memory::tools(&memories, Outside::never()),
        secrets: &secrets,
        workdir: None,
        python: &LivePython::default(),
        values: &SharedValues::default(),
        offering: None,
    })
}

fn reading(tools: &[ToolSpec]) -> impl Iterator<Item = String> + '_ {
    let reads = |spec: &&ToolSpec| spec.effects == Effects::ReadOnly;
    tools.iter().filter(reads).map(|spec| spec.name.clone())
}

/// The session may come from an untrusted file.
fn directory_of(session: &SessionId) -> SessionId {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    match session.as_str().bytes().all(is_plain) {
        true => session.clone(),
        false => SessionId::new(NO_SESSION),
    }
}

//! Recorded calls that only look, run again in the working directory.

use super::source::Recorded;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_core::ports::{Gate, Record, RecordBody};
use rondo_core::replay::{Rerun, rerun as run_again};
use rondo_runtime::profiles;
use rondo_runtime::python::LivePython;
use rondo_runtime::secrets;
use rondo_runtime::settings::Settings;
use rondo_runtime::tools::{self, Toolset, ToolsetOptions};
use rondo_types::{Effects, SessionId, ToolSpec};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Whose directory tools have when the session's name is none for a directory.
const NOBODY: &str = "replay";

/// The tools that only look, ready to be run again in the working directory.
pub(super) struct Live {
    session: SessionId,
    toolset: Toolset,
    gate: Arc<dyn Gate>,
    runtime: Runtime,
}

impl Live {
    /// Finds out what the session's turns were equipped with, and builds it.
    ///
    /// # Errors
    /// When the session cannot be read, or the tools cannot be built.
    pub(super) fn new(recorded: &Recorded, settings: &Settings) -> Result<Self> {
        let (mut names, mut began) = (BTreeSet::new(), None);
        recorded.each_turn(|records| {
            records.iter().for_each(|it| match &it.body {
                RecordBody::TurnEnvironment { tools, .. } => names.extend(reading(tools)),
                RecordBody::TurnStarted { profile, .. } => {
                    began.get_or_insert_with(|| Arc::clone(profile));
                }
                _ => {}
            });
            Ok(())
        })?;
        // The gate looks at the profile of the first turn; without one, at that in force.
        let profile = match began {
            Some(profile) => profile,
            None => Arc::new(profiles::resolve(settings, settings.profile_name())?.profile),
        };
        let names: Vec<String> = names.into_iter().collect();
        let toolset = tools::toolset(ToolsetOptions {
            names: &names,
            keys: &[],
            profile: &profile,
            settings,
            session: &directory_of(&recorded.session),
            live: &[],
            secrets: &secrets::of_env(settings),
            workdir: None,
            python: &LivePython::default(),
        })?;
        let gate = tools::standard_gate(tools::gate_options(&toolset, &profile, settings)?)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|err| CliError::caused(Exit::Error, err))?;
        Ok(Self {
            session: recorded.session.clone(),
            toolset,
            gate,
            runtime,
        })
    }

    /// Runs the recorded calls of a turn again, where they only look.
    pub(super) fn rerun(&self, records: &[Record]) -> Vec<Rerun> {
        let again = run_again(&self.session, records, &self.toolset.tools, &*self.gate);
        self.runtime.block_on(again)
    }
}

fn reading(tools: &[ToolSpec]) -> impl Iterator<Item = String> + '_ {
    let reads = |spec: &&ToolSpec| spec.effects == Effects::ReadOnly;
    tools.iter().filter(reads).map(|spec| spec.name.clone())
}

/// The session may come from a file that anybody wrote.
fn directory_of(session: &SessionId) -> SessionId {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    match session.as_str().bytes().all(is_plain) {
        true => session.clone(),
        false => SessionId::new(NOBODY),
    }
}

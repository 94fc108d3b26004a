//! What a replay puts in the place of what was recorded.

use crate::cli::ChangeArgs;
use crate::error::Result;
use rondo_core::replay::Changes;
use rondo_runtime::context::system_prompt;
use rondo_runtime::profiles;
use rondo_runtime::python::LivePython;
use rondo_runtime::secrets;
use rondo_runtime::settings::Settings;
use rondo_runtime::tools::{self, ToolsetOptions};
use rondo_types::SessionId;

/// Whose directory tools have that are described and not run.
const NOBODY: &str = "replay";

/// Returns what the arguments put in the place of what was recorded.
///
/// # Errors
/// When there is no such profile, or its tools cannot be built.
pub(in crate::commands) fn changes(args: &ChangeArgs, settings: &Settings) -> Result<Changes> {
    let Some(name) = &args.profile else {
        let system = args.system_prompt.clone();
        return Ok(Changes {
            system: system.map(|text| vec![text]),
            ..Changes::default()
        });
    };
    let profile = profiles::resolve(settings, name)?.profile;
    let wanted = tools::wanted(&profile, settings);
    let secrets = secrets::of_env(settings);
    let toolset = tools::toolset(ToolsetOptions {
        names: &wanted,
        keys: &[],
        profile: &profile,
        settings,
        session: &SessionId::new(NOBODY),
        live: &[],
        secrets: &secrets,
        workdir: None,
        python: &LivePython::default(),
    })?;
    Ok(Changes {
        system: Some(system_prompt(&profile, settings, &secrets)),
        tools: Some(toolset.tools.specs()),
        profile: Some(profile),
    })
}

//! The changes that a replay makes to the recorded profile, prompt or tools.

use crate::cli::ChangeArgs;
use crate::error::Result;
use rondo_core::replay::Changes;
use rondo_runtime::replay::profile_changes;
use rondo_runtime::settings::Settings;

/// Returns the changes of the recorded turn that the arguments ask for.
///
/// # Errors
/// When there is no such profile, or its tools cannot be built.
pub(in crate::commands) fn changes(args: &ChangeArgs, settings: &Settings) -> Result<Changes> {
    match &args.profile {
        Some(name) => Ok(profile_changes(name, settings)?),
        None => Ok(Changes {
            system: args.system_prompt.clone().map(|text| vec![text]),
            ..Changes::default()
        }),
    }
}

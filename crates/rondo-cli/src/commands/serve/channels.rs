//! The channels of the configuration: the one place that knows what kinds there are.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_hub::HubConfig;
use rondo_hub::channel::Channel;
use rondo_runtime::env::Env;
use std::path::Path;
use std::sync::Arc;

/// The kinds of channels.
const KINDS: [&str; 0] = [];

/// Returns the channels that the configuration names.
///
/// # Errors
/// When it names none, one that there is not, or one that is not set up as it must be.
pub(super) fn of(config: &HubConfig, env: &Env, directory: &Path) -> Result<Vec<Arc<dyn Channel>>> {
    let _ = (env, directory);
    if config.channels.is_empty() {
        let message = "no channel is configured, so nobody can reach the hub";
        let error = CliError::new(Exit::Config, message);
        return Err(error.hint("docs/hub.md says how; `rondo config edit` opens the file"));
    }
    let mut all = Vec::new();
    for name in config.channels.keys() {
        let error = CliError::new(Exit::Config, format!("there is no channel `{name}`"));
        let hint = match KINDS.is_empty() {
            true => "this program has no channels".to_owned(),
            false => format!("the channels are: {}", KINDS.join(", ")),
        };
        return Err(error.hint(hint));
    }
    all.sort_by(|a: &Arc<dyn Channel>, b| a.name().cmp(b.name()));
    Ok(all)
}

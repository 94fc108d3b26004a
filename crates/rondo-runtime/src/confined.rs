//! What commands may reach, by the settings.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::settings::Settings;
use crate::values::{ApprovalMode, SandboxChoice};
use rondo_policy::Confined;
use rondo_sandbox::{PROTECTED, SandboxMode, SandboxSpec, readable_roots};
use std::path::{Path, PathBuf};

/// Tries whether this system enforces the sandbox.
///
/// # Errors
/// Why it does not.
pub fn works() -> std::io::Result<()> {
    rondo_sandbox::probe()
}

/// Returns how far commands are confined; none where they are not. What is allowed since it stays inside the sandbox
/// needs one.
///
/// # Errors
/// When the settings contradict each other.
pub(crate) fn mode(settings: &Settings) -> Result<Option<SandboxMode>> {
    let is_auto = settings.values.approval == Some(ApprovalMode::Auto);
    match settings.values.sandbox {
        Some(SandboxChoice::ReadOnly) => Ok(Some(SandboxMode::ReadOnly)),
        Some(SandboxChoice::WorkspaceWrite) => Ok(Some(SandboxMode::WorkspaceWrite)),
        Some(SandboxChoice::Off) if is_auto => Err(SetupError::new(
            SetupErrorKind::Usage,
            "the setting `approval` is `auto`, which allows what stays inside the sandbox, and `sandbox` is `off`",
        )
        .hint("leave `sandbox` out, or use `--approval ask`")),
        None if is_auto => Ok(Some(SandboxMode::WorkspaceWrite)),
        Some(SandboxChoice::Off) | None => Ok(None),
    }
}

/// Refuses a directory that has the home directory in it: its keys could be read, and what runs at the next login
/// written.
fn refuse_home(home: Option<&Path>, directories: &[PathBuf]) -> Result<()> {
    let Some(home) = home.and_then(|it| it.canonicalize().ok()) else {
        return Ok(());
    };
    let holds = |it: &&PathBuf| it.canonicalize().is_ok_and(|it| home.starts_with(it));
    match directories.iter().find(holds) {
        None => Ok(()),
        Some(directory) => Err(SetupError::new(
            SetupErrorKind::Usage,
            format_args!(
                "a sandbox around `{}` would hold nothing: your home directory is in it",
                directory.display()
            ),
        )
        .hint("work in a directory of its own: `-C DIR`")),
    }
}

/// Returns what the gate allows for the sandbox.
pub(crate) fn of_gate(settings: &Settings) -> Option<Confined> {
    // What the settings contradict each other about is an error of building the tools.
    let mode = mode(settings).ok().flatten()?;
    Some(Confined {
        may_write: mode == SandboxMode::WorkspaceWrite,
        is_enough: settings.values.approval == Some(ApprovalMode::Auto),
        protected: PROTECTED.map(str::to_owned).to_vec(),
    })
}

/// Returns what commands may reach that work in these directories.
///
/// # Errors
/// When the settings contradict each other, or this system does not enforce a sandbox.
pub(crate) fn spec(settings: &Settings, directories: &[PathBuf]) -> Result<Option<SandboxSpec>> {
    let Some(mode) = mode(settings)? else {
        return Ok(None);
    };
    works().map_err(|err| {
        SetupError::because(
            SetupErrorKind::Config,
            "this system does not let commands be confined",
            err,
        )
        .hint("`--sandbox off` runs them with everything that you may; docs/safety.md says what a sandbox needs")
    })?;
    let home = settings.env.get("HOME").map(Path::new);
    refuse_home(home, directories)?;
    let search_path = settings.env.get("PATH");
    Ok(Some(SandboxSpec {
        mode,
        writable: directories.to_vec(),
        readable: readable_roots(home, search_path.map(AsRef::as_ref)),
        home: home.map(Path::to_owned),
        has_network: false,
    }))
}

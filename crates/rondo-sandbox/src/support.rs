//! Sandbox support of this system, tested once.

use crate::{Enforcement, Protection, SandboxMode, SandboxSpec, confine};
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Sandbox support of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSupport {
    /// Everything.
    Full,
    /// [`Enforcement::Partial`].
    Partial {
        /// Why not everything.
        reason: String,
    },
    /// No support.
    Nothing {
        /// Reason for the lack of support.
        reason: String,
    },
}

impl SandboxSupport {
    /// Returns by what commands can be confined; `None` if they cannot.
    #[must_use]
    pub fn enforcement(&self) -> Option<Enforcement> {
        match self {
            Self::Full => Some(Enforcement::Full),
            Self::Partial { .. } => Some(Enforcement::Partial),
            Self::Nothing { .. } => None,
        }
    }
}

static SUPPORT: OnceLock<SandboxSupport> = OnceLock::new();

/// Returns the result of [`support`], if it was called before; starts nothing.
pub fn known_support() -> Option<&'static SandboxSupport> {
    SUPPORT.get()
}

/// Returns the protection that this system enforces, by starting a command in the sandbox the first time.
///
/// It is not tried again: a sandbox that stops working later is an error of starting a command.
pub fn support() -> &'static SandboxSupport {
    SUPPORT.get_or_init(|| {
        let Err(full) = probe(Enforcement::Full) else {
            return SandboxSupport::Full;
        };
        match probe(Enforcement::Partial) {
            Ok(()) => SandboxSupport::Partial {
                reason: full.to_string(),
            },
            Err(partial) => SandboxSupport::Nothing {
                reason: format!("{full}; without namespaces: {partial}"),
            },
        }
    })
}

/// Tries whether this system enforces the sandbox, by starting a command in it.
///
/// # Errors
/// Why it does not.
pub fn probe(enforcement: Enforcement) -> io::Result<()> {
    let spec = SandboxSpec {
        enforcement,
        ..SandboxSpec::new(SandboxMode::ReadOnly, vec![PathBuf::from("/")])
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ":"]);
    let mut protection: Protection = confine(&mut command, &spec)?;
    let status = command.status()?;
    let _ = protection.restore();
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("a command does not run in it")),
    }
}

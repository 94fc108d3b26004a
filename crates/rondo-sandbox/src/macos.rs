//! Enters the sandbox of macOS. Written, never compiled or run there; `rondo doctor` tries whether it holds.

use crate::{Enforcement, RefusedChanges, SandboxSpec, Unchecked, UndoneChange, seatbelt};
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

unsafe extern "C" {
    /// Of `libsystem_sandbox`, which every program is linked with; what `sandbox-exec` calls.
    fn sandbox_init_with_parameters(
        profile: *const c_char,
        flags: u64,
        parameters: *const *const c_char,
        error: *mut *mut c_char,
    ) -> c_int;
}

/// State to restore after a command: none, since rules refer to names here.
#[derive(Debug, Default)]
pub struct Protection;

impl Protection {
    /// Returns whether the command has namespaces of its own, which this system does not have.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        false
    }

    /// Returns the holder of the command's mounts, which has none here.
    pub fn take_namespaces(&mut self) -> Option<OwnedFd> {
        None
    }

    /// Returns a descriptor that is readable when something must be refused: nothing is watched here.
    #[must_use]
    pub fn watch_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the refusals since the last call.
    #[must_use]
    pub fn take_watched(&mut self, _now: Instant) -> RefusedChanges {
        RefusedChanges::default()
    }

    /// Returns the files that were restored.
    #[must_use]
    pub fn restore(&mut self) -> Vec<UndoneChange> {
        Vec::new()
    }

    /// Returns the files that are gone after the command: there are no private directories here.
    #[must_use]
    pub fn lost(&mut self, _command: &str, _output: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

#[expect(
    unsafe_code,
    reason = "a process can only confine itself, between fork and exec"
)]
pub(crate) fn confine(command: &mut Command, spec: &SandboxSpec) -> io::Result<Protection> {
    if spec.enforcement == Enforcement::Partial {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "there is one sandbox on this system, or none",
        ));
    }
    let real = |path: &Path| {
        path.canonicalize()
            .unwrap_or_else(|_| path.to_owned())
            .into()
    };
    let profile = CString::new(seatbelt::profile(spec, real)).map_err(io::Error::other)?;
    let enter = move || {
        let parameters = [std::ptr::null()];
        let mut error = std::ptr::null_mut();
        // SAFETY: the profile ends with a zero, the parameters with a null, and all outlive the call.
        let entered = unsafe {
            sandbox_init_with_parameters(profile.as_ptr(), 0, parameters.as_ptr(), &raw mut error)
        };
        match entered {
            0 => Ok(()),
            // The message is not freed: the process ends.
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    // SAFETY: the closure calls one function of the system, takes no lock and starts no thread.
    unsafe { command.pre_exec(enter) };
    Ok(Protection)
}

/// Everything is held by its name here.
pub(crate) fn unchecked(_spec: &SandboxSpec) -> Vec<Unchecked> {
    Vec::new()
}

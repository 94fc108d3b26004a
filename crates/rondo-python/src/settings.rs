//! The settings of a session: its interpreter, directory, environment and bounds.

use crate::startup::is_outside;
use rondo_launch::SupervisorCommand;
use rondo_sandbox::SandboxSpec;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default program of an interpreter.
const PROGRAM: &str = "python3";

/// Which interpreter a session has, and what bounds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The interpreter, by absolute path: Python 3.9 or later.
    pub program: PathBuf,
    /// Working directory; absolute. Modules there can be imported.
    pub directory: PathBuf,
    /// Environment variables that it does not get, such as keys.
    pub withheld: Vec<String>,
    /// Bytes that are kept of each of the two output streams of a call, head and tail.
    pub output_bytes_max: usize,
    /// How long the interpreter may take to start.
    pub start_timeout: Duration,
    /// How long code may continue after it was interrupted, before its interpreter is ended.
    pub interrupt_grace: Duration,
    /// Gives it a terminal of its own, which [`crate::Session::run_cell_at_terminal`] needs. Processes that a person
    /// starts there in a group of their own continue when the interpreter ends; otherwise everything ends with it.
    pub has_terminal: bool,
    /// Supervisor program, which ends the processes it leaves. Without one, its process group is ended.
    pub supervisor: Option<SupervisorCommand>,
    /// Limits of its access; `None` for no limits. Needs a supervisor.
    pub sandbox: Option<SandboxSpec>,
}

/// Settings of a session that change while it lives.
#[derive(Debug, Clone)]
pub(crate) struct LiveSettings {
    pub(crate) program: PathBuf,
    pub(crate) directory: PathBuf,
}

impl LiveSettings {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            program: settings.program.clone(),
            directory: settings.directory.clone(),
        }
    }
}

impl Settings {
    /// The default of [`Self::output_bytes_max`].
    pub const OUTPUT_BYTES: usize = 50_000;
    /// The default of [`Self::start_timeout`].
    pub const START_TIMEOUT: Duration = Duration::from_secs(10);
    /// The default of [`Self::interrupt_grace`]; less than a turn gives a call to end.
    pub const INTERRUPT_GRACE: Duration = Duration::from_millis(500);

    /// Returns the defaults for an interpreter that runs in `directory`.
    #[must_use]
    pub fn new(program: PathBuf, directory: PathBuf) -> Self {
        Self {
            program,
            directory,
            withheld: Vec::new(),
            output_bytes_max: Self::OUTPUT_BYTES,
            start_timeout: Self::START_TIMEOUT,
            interrupt_grace: Self::INTERRUPT_GRACE,
            has_terminal: false,
            supervisor: None,
            sandbox: None,
        }
    }

    /// Finds the interpreter of a virtual environment, or the first `python3` of a search path.
    ///
    /// `virtual_env` is what activation leaves in `VIRTUAL_ENV`: an activated one may lie in
    /// `directory`, where the session will run. Entries of the search path that lie there, or are
    /// relative, are passed over: nothing says that programs of that directory may run.
    #[must_use]
    pub fn find_program(
        virtual_env: Option<&Path>,
        search_path: &str,
        directory: &Path,
    ) -> Option<PathBuf> {
        let active = virtual_env.map(|folder| folder.join("bin").join(PROGRAM));
        active
            .filter(|path| path.is_absolute() && path.is_file())
            .or_else(|| Self::find_named(PROGRAM, search_path, directory))
    }

    /// Finds the first program of that name in a search path, as [`Self::find_program`] does.
    #[must_use]
    pub fn find_named(name: &str, search_path: &str, directory: &Path) -> Option<PathBuf> {
        let listed = search_path
            .split(':')
            .map(|folder| Path::new(folder).join(name));
        let mut trusted = listed.filter(|path| is_outside(path, directory));
        trusted.find(|path| path.is_file())
    }

    /// Returns the defaults for the interpreter that the process's environment names, by
    /// `VIRTUAL_ENV` or `PATH`.
    #[must_use]
    pub fn from_env(directory: PathBuf) -> Option<Self> {
        let virtual_env = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
        let search_path = std::env::var("PATH").unwrap_or_default();
        let program = Self::find_program(virtual_env.as_deref(), &search_path, &directory)?;
        Some(Self::new(program, directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_environment_comes_before_the_search_path_and_untrusted_entries_never() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        let (active, listed) = (work.join("venv"), folder.path().join("bin"));
        let linked = folder.path().join("linked");
        for bin in [active.join("bin"), listed.clone(), work.join("bin")] {
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join("python3"), "").unwrap();
        }
        std::os::unix::fs::symlink(work.join("bin"), &linked).unwrap();
        let untrusted = format!(".:bin::{0}/bin:{1}", work.display(), linked.display());
        let search_path = format!("{untrusted}:{}", listed.display());
        let found = Settings::find_program(Some(&active), &search_path, &work);
        assert_eq!(found, Some(active.join("bin/python3")));
        let found = Settings::find_program(None, &search_path, &work);
        assert_eq!(found, Some(listed.join("python3")));
        let gone = Settings::find_program(Some(Path::new("/nowhere")), &untrusted, &work);
        assert_eq!(gone, None);
        let found = Settings::find_program(None, &search_path, Path::new("/"));
        assert_eq!(found, Some(work.join("bin/python3")));
    }
}

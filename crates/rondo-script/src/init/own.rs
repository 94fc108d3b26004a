//! The user's own `init.lua` for a host of many sessions. Each turn has a Lua of its own, in which the file runs again, so
//! that a handler that hangs in one turn keeps no other waiting, and nothing goes from one to another.

use super::vm::{InitVm, Threads};
use super::{Init, InitFile, ephemeral};
use rondo_runtime::error::Result;
use rondo_runtime::files::is_present;
use rondo_runtime::script::ScriptSession;
use rondo_runtime::settings::Settings;
use rondo_runtime::{Notices, Runtime};
use std::sync::Arc;

/// Memory that the file has in one turn, in bytes.
const MEMORY_BYTES_MAX: usize = 16 << 20;

/// The file, as it was read when the host began.
pub struct OwnInit {
    runtime: Runtime,
    settings: Settings,
    notices: Arc<dyn Notices>,
    file: InitFile,
    threads: Threads,
}

impl OwnInit {
    /// Reads the user's file and runs it once, so that a mistake shows before the first turn; none if there is no such
    /// file. Those of projects are left alone: people in a chat may write them.
    ///
    /// # Errors
    /// When it cannot be read, or fails: what it was to guard must not continue without it.
    pub fn read(
        runtime: &Runtime,
        settings: &Settings,
        notices: Arc<dyn Notices>,
    ) -> Result<Option<Self>> {
        let path = settings.paths.user_init();
        if !is_present(&path) {
            return Ok(None);
        }
        let own = Self {
            runtime: runtime.clone(),
            settings: ephemeral(settings),
            notices,
            file: InitFile::read(path)?,
            threads: Threads::default(),
        };
        own.of_turn()?;
        Ok(Some(own))
    }

    /// Runs the file for a turn. It may take seconds, so it is called where no one waits for it.
    ///
    /// # Errors
    /// When it fails or takes too long: the turn must not begin without it.
    pub fn of_turn(&self) -> Result<Init> {
        let session = ScriptSession::new(self.runtime.clone(), self.settings.clone());
        let vm = InitVm::new(
            session,
            Arc::clone(&self.notices),
            self.threads.clone(),
            MEMORY_BYTES_MAX,
        );
        Init::run(vm, std::slice::from_ref(&self.file))
    }
}

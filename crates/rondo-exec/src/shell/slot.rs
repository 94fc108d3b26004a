//! State shared between a shell and the stream of its command.

use super::error::ShellError;
use super::protocol::{FromSupervisor, Spec, ToSupervisor};
use super::session::{Session, Writer};
use super::settings::ShellSettings;
use rondo_core::redact::Secrets;
use rondo_launch::PtySize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a command without a follower has to end once it was interrupted.
const ABANDONED_MAX: Duration = Duration::from_secs(5);
/// How often it is interrupted.
const INTERRUPT_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct SlotState {
    pub(super) settings: ShellSettings,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) is_busy: bool,
    pub(super) size: PtySize,
    pub(super) orders: Option<mpsc::Sender<Vec<u8>>>,
    pub(super) writer: Option<Writer>,
    pub(super) secrets: Secrets,
}

/// State of the one command that may run at a time.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) session: Option<Session>,
    pub(super) failure: Option<ShellError>,
    /// How many shells there were.
    pub(super) starts: u64,
    /// A command whose stream was dropped.
    pub(super) abandoned: Option<u64>,
}

impl Slot {
    pub(super) async fn next_output(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.session.as_mut()?.next().await {
                Ok(FromSupervisor::Output(bytes)) => return Some(bytes),
                Ok(FromSupervisor::Prompt(at_prompt)) if self.abandoned == Some(at_prompt.seq) => {
                    self.abandoned = None;
                }
                Ok(FromSupervisor::Prompt(_)) => {}
                Ok(FromSupervisor::Exited(_) | FromSupervisor::Failed(_)) | Err(_) => {
                    self.session = None
                }
            }
        }
    }
}

impl SlotState {
    pub(super) fn new(settings: ShellSettings) -> Self {
        let (size, secrets) = (settings.size, settings.secrets.clone());
        Self {
            settings,
            shared: Mutex::new(Shared {
                size,
                secrets,
                ..Shared::default()
            }),
        }
    }

    pub(super) fn shared<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_busy(&self, is_busy: bool) {
        self.shared(|shared| shared.is_busy = is_busy);
    }

    pub(super) fn secrets(&self) -> Secrets {
        self.shared(|shared| shared.secrets.clone())
    }

    fn spec(&self) -> Spec {
        let settings = &self.settings;
        Spec {
            program: settings.program.path().to_path_buf(),
            family: settings.program.family(),
            directory: nearest(&settings.workdir.directory()),
            state_dir: settings.state_dir.clone(),
            size: self.shared(|shared| shared.size),
        }
    }

    pub(super) async fn start(&self, slot: &mut Slot) -> Result<(), ShellError> {
        let spec = self.spec();
        let (session, writer) = Session::start(&self.settings, &spec).await?;
        let orders = session.orders();
        self.shared(|shared| {
            if shared.size != spec.size {
                // It was given while there was no way to tell the shell. Its orders are empty.
                let _ = orders.try_send(ToSupervisor::Resize(shared.size).encode());
            }
            shared.orders = Some(orders);
            shared.writer = Some(writer);
        });
        slot.starts += 1;
        session.report_to(&self.settings.workdir);
        slot.session = Some(session);
        Ok(())
    }
}

/// The directory may be gone.
fn nearest(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find(|dir| dir.is_dir());
    there.map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

/// Ends a command without a follower; its shell is given up if that does not end it.
pub(super) async fn settle(slot: &mut Slot) {
    let (Some(seq), Some(session)) = (slot.abandoned.take(), slot.session.as_mut()) else {
        return;
    };
    let orders = session.orders();
    let interrupt = async {
        loop {
            // Again and again, as people do: between two programs of a command it hits neither.
            let _ = orders.try_send(ToSupervisor::Interrupt.encode());
            tokio::time::sleep(INTERRUPT_EVERY).await;
        }
    };
    let is_there = tokio::select! {
        is_there = session.wait_for(seq) => is_there,
        () = tokio::time::sleep(ABANDONED_MAX) => false,
        () = interrupt => false,
    };
    if !is_there {
        slot.session = None;
    }
}

//! Cells of a person that the host runs itself, such as at its own terminal: the session records their beginning and their
//! end, and no turn runs in it meanwhile.

use super::cells::{AskedCell, Stop, not_run};
use super::handle::SessionHandle;
use crate::error::{Result, SetupError};
use crate::session::Session;
use rondo_core::ports::{RecordBody, Seq};
use rondo_core::redact::Secrets;
use rondo_types::units::counted;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Cell that the host is about to run.
enum HostCellStart {
    /// New code.
    Code(String, Box<Secrets>),
    /// Cells of the session that ran before, named by the records of their beginnings.
    Again(Vec<Seq>),
}

impl HostCellStart {
    fn shown(&self) -> String {
        match self {
            Self::Code(code, secrets) => secrets.text(code.clone()),
            Self::Again(cells) => {
                let what = counted(cells.len(), "cell");
                format!("# {what} of the session, again")
            }
        }
    }
}

/// A cell of the host that waits until its beginning is recorded.
pub(super) struct AskedHostCell {
    beginning: HostCellStart,
    begun: oneshot::Sender<Result<(Seq, Stop)>>,
    end: oneshot::Receiver<RecordBody>,
    recorded: oneshot::Sender<Result<Seq>>,
}

/// A cell of the host that runs.
pub(super) struct BegunHostCell {
    /// The body of the record of its end.
    pub(super) end: oneshot::Receiver<RecordBody>,
    /// Receives the place of its records.
    pub(super) recorded: oneshot::Sender<Result<Seq>>,
    /// Stop handle of the cell.
    pub(super) stop: Stop,
    /// Running code or command, without secrets.
    pub(super) shown: String,
}

impl AskedHostCell {
    pub(super) fn refuse(self, error: SetupError) {
        // The requester may be gone.
        let _ = self.begun.send(Err(error));
    }

    /// Records the beginning, and tells the host.
    pub(super) async fn begin(
        self,
        session: &mut Session,
    ) -> std::result::Result<BegunHostCell, (SetupError, Self)> {
        let recorded = match &self.beginning {
            HostCellStart::Code(code, secrets) => session.cell_starts(code, secrets).await,
            HostCellStart::Again(cells) => {
                let cells = cells.clone();
                session.record(RecordBody::CellsRepeating { cells }).await
            }
        };
        match recorded {
            Ok(Some(seq)) => {
                let stop = Stop::default();
                let shown = self.beginning.shown();
                let _ = self.begun.send(Ok((seq, stop.clone())));
                Ok(BegunHostCell {
                    end: self.end,
                    recorded: self.recorded,
                    stop,
                    shown,
                })
            }
            Ok(None) => Err((not_run(), self)),
            Err(error) => Err((error, self)),
        }
    }
}

/// A cell that the host runs and whose beginning is recorded. If it is dropped, no end is recorded, as if the process had
/// been killed.
#[derive(Debug)]
pub struct HostCell {
    started: Seq,
    stop: Stop,
    end: oneshot::Sender<RecordBody>,
    recorded: oneshot::Receiver<Result<Seq>>,
}

impl HostCell {
    /// Returns the record of its beginning.
    #[must_use]
    pub fn started(&self) -> Seq {
        self.started
    }

    /// Waits until the session is [cancelled](SessionHandle::cancel), which interrupts the cell.
    pub(super) async fn interrupted(&self) {
        self.stop.interrupted.notified().await;
    }

    /// Returns a token that is cancelled once the cell must end in any case.
    pub(super) fn given_up(&self) -> CancellationToken {
        self.stop.given_up.clone()
    }

    /// Records how it ended, and returns the place of that record.
    ///
    /// # Errors
    /// When it cannot be recorded, or another process took the session meanwhile.
    ///
    /// # Cancel safety
    /// The end is recorded although the future is dropped.
    pub async fn end(self, body: RecordBody) -> Result<Seq> {
        let _ = self.end.send(body);
        self.recorded.await.unwrap_or_else(|_| Err(not_run()))
    }
}

impl SessionHandle {
    /// Records that the host is about to run a person's Python cell itself, once no turn runs in the session. The first cell
    /// begins the session's record. `secrets` are kept out of it.
    ///
    /// # Errors
    /// When the session cannot be taken, is closed, or the cell cannot be recorded; then it must not run.
    ///
    /// # Cancel safety
    /// Not cancel safe: the beginning may or may not be recorded.
    pub async fn begin_cell(&self, code: &str, secrets: &Secrets) -> Result<HostCell> {
        let secrets = Box::new(secrets.clone());
        self.begin_host_cell(HostCellStart::Code(code.to_owned(), secrets))
            .await
    }

    /// Records that the host is about to run cells of the session again, named by the records of their beginnings.
    ///
    /// # Errors
    /// As [`begin_cell`](Self::begin_cell).
    ///
    /// # Cancel safety
    /// As [`begin_cell`](Self::begin_cell).
    pub(super) async fn begin_repeating(&self, cells: Vec<Seq>) -> Result<HostCell> {
        self.begin_host_cell(HostCellStart::Again(cells)).await
    }

    async fn begin_host_cell(&self, beginning: HostCellStart) -> Result<HostCell> {
        self.refuse_if_read_only()?;
        let (begun, started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let (recorded, record) = oneshot::channel();
        self.entry.ask_cell(AskedCell::OfHost(AskedHostCell {
            beginning,
            begun,
            end: ended,
            recorded,
        }))?;
        let (started, stop) = started.await.unwrap_or_else(|_| Err(not_run()))?;
        Ok(HostCell {
            started,
            stop,
            end,
            recorded: record,
        })
    }
}

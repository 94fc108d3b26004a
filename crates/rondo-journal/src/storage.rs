//! The journal as the ports that hosts use. [`Store`]'s own functions do the work; here their errors become those of
//! the ports.

use crate::commit_thread::is_full;
use crate::error::JournalError;
use crate::store::Store;
use async_trait::async_trait;
use rondo_core::Journal;
use rondo_core::history::History;
use rondo_core::ports::{
    Amount, BudgetClaim, BudgetLimit, BudgetPlace, BudgetScope, BudgetStore, Entry, Record, Seq,
};
use rondo_core::session_store::{LateTurn, NewSession, SessionInfo, SessionStore, StoreError};
use rondo_core::storage::{Imported, Maintenance, Report, Retention, Storage};
use rondo_types::{SessionId, StopReason, TimeMs};
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

impl SessionStore for Store {
    fn begin(&self, new: NewSession) -> Result<Arc<dyn Journal>, StoreError> {
        Ok(Arc::new(self.begin(new)?))
    }

    fn take(&self, session: &SessionId) -> Result<Arc<dyn Journal>, StoreError> {
        Ok(Arc::new(self.own(session)?))
    }

    fn history(&self, session: &SessionId) -> Result<History, StoreError> {
        Ok(self.history(session)?)
    }

    fn read(&self, session: &SessionId, from: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(self.read(session, from, limit)?)
    }

    fn visit(
        &self,
        session: &SessionId,
        from: Seq,
        take: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        unbroken(self.each(session, from, |entry| until_broken(take(entry))))
    }

    fn visit_checked(
        &self,
        session: &SessionId,
        take: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        unbroken(self.records(session, |record| until_broken(take(record))))
    }

    fn sessions(&self, limit: usize) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(self.sessions(limit)?)
    }

    fn children(&self, parent: &SessionId, limit: usize) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(self.children(parent, limit)?)
    }

    fn cut_off(&self) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(self.cut_off()?)
    }

    fn latest_in(&self, directory: &str) -> Result<Option<SessionInfo>, StoreError> {
        Ok(self.latest_in(directory)?)
    }

    fn session(&self, session: &SessionId) -> Result<SessionInfo, StoreError> {
        Ok(self.session(session)?)
    }

    fn resolve(&self, text: &str) -> Result<SessionId, StoreError> {
        Ok(self.resolve(text)?)
    }

    fn is_in_use(&self, session: &SessionId) -> bool {
        self.is_in_use(session)
    }

    fn last_record(&self, session: &SessionId) -> Result<Option<Seq>, StoreError> {
        Ok(self.last_record(session)?)
    }

    fn last_end(&self, session: &SessionId) -> Result<Option<StopReason>, StoreError> {
        Ok(self.last_end(session)?)
    }

    fn late_turn(&self, session: &SessionId, records: u64) -> Result<Option<LateTurn>, StoreError> {
        Ok(self.late_turn(session, records)?)
    }

    fn set_title(&self, session: &SessionId, title: &str) -> Result<(), StoreError> {
        Ok(self.set_title(session, title)?)
    }

    fn set_directory(&self, session: &SessionId, directory: &str) -> Result<(), StoreError> {
        Ok(self.set_directory(session, directory)?)
    }

    fn fork(
        &self,
        parent: &SessionId,
        at: Seq,
        new: &SessionId,
        now: TimeMs,
    ) -> Result<(), StoreError> {
        Ok(self.fork(parent, at, new, now)?)
    }

    fn remove(&self, session: &SessionId) -> Result<(), StoreError> {
        Ok(self.remove(session)?)
    }
}

impl Maintenance for Store {
    fn check(&self, session: &SessionId) -> Result<Report, StoreError> {
        Ok(self.check(session)?)
    }

    fn repair(&self, session: &SessionId) -> Result<Report, StoreError> {
        Ok(self.repair(session)?)
    }

    fn export(&self, session: &SessionId, out: &mut dyn Write) -> Result<u64, StoreError> {
        Ok(self.export(session, out)?)
    }

    fn import(
        &self,
        input: &mut dyn BufRead,
        id: Option<&SessionId>,
    ) -> Result<Imported, StoreError> {
        Ok(self.import(input, id)?)
    }

    fn surplus(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(self.surplus(retention)?)
    }

    fn vacuum(&self) -> Result<bool, StoreError> {
        Ok(self.vacuum()?)
    }

    fn malformed(&self) -> Result<Option<String>, StoreError> {
        Ok(self.malformed()?)
    }
}

#[async_trait]
impl BudgetStore for Store {
    async fn hold_back(
        &self,
        claim: BudgetClaim,
        limits: Vec<BudgetLimit>,
    ) -> Result<Option<BudgetLimit>, StoreError> {
        self.hold_back(claim, limits).await.map_err(unwritten)
    }

    async fn settle_held(
        &self,
        session: &SessionId,
        id: &str,
        used: Amount,
    ) -> Result<(), StoreError> {
        self.settle_held(session, id, used).await.map_err(unwritten)
    }

    async fn is_counted(&self, scope: BudgetScope, place: BudgetPlace) -> Result<bool, StoreError> {
        Ok(self.is_counted(scope, place).await?)
    }

    async fn count_before(
        &self,
        scope: BudgetScope,
        place: BudgetPlace,
        used: Amount,
    ) -> Result<(), StoreError> {
        let counted = self.count_before(scope, place, used).await;
        counted.map_err(unwritten)
    }

    async fn committed(
        &self,
        scope: BudgetScope,
        place: BudgetPlace,
    ) -> Result<Amount, StoreError> {
        Ok(self.committed(scope, place).await?)
    }
}

impl Storage for Store {
    fn version(&self) -> Result<u64, StoreError> {
        Ok(self.version()?)
    }

    fn path(&self) -> Option<PathBuf> {
        (!self.is_in_memory()).then(|| self.path())
    }

    fn locks(&self) -> Option<PathBuf> {
        self.locks()
    }

    fn is_in_memory(&self) -> bool {
        self.is_in_memory()
    }

    fn unknown_file_system(&self) -> Result<Option<String>, StoreError> {
        Ok(self.unknown_file_system()?)
    }
}

/// The end of a visit before its last record.
enum VisitError {
    Broken,
    Failed(JournalError),
}

impl From<JournalError> for VisitError {
    fn from(error: JournalError) -> Self {
        Self::Failed(error)
    }
}

fn until_broken(flow: ControlFlow<()>) -> Result<(), VisitError> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(VisitError::Broken),
    }
}

fn unbroken(visited: Result<(), VisitError>) -> Result<(), StoreError> {
    match visited {
        Ok(()) | Err(VisitError::Broken) => Ok(()),
        Err(VisitError::Failed(error)) => Err(error.into()),
    }
}

fn unwritten(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull => StoreError::Full(error.into()),
        _ => StoreError::Storage(error.into()),
    }
}

impl From<JournalError> for StoreError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => error,
            error if is_full(&error) => Self::Full(error.into()),
            error if error.is_malformed() => Self::Malformed(error.into()),
            error @ JournalError::ReadOnly { .. } => Self::ReadOnly(error.into()),
            error @ (JournalError::TooNew { .. }
            | JournalError::NetworkFileSystem { .. }
            | JournalError::NotAJournal { .. }
            | JournalError::NoLogIndex { .. }
            | JournalError::Database(_)
            | JournalError::Closed) => Self::Storage(error.into()),
        }
    }
}

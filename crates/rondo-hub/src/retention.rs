//! Removes sessions that chats have left with `/new`, and those of timed work, once nothing was said in them for as long as
//! `[hub] keep_sessions` says. The session that a chat talks to stays, and so do the sessions of terminals.

use crate::chats;
use crate::hub::Core;
use rondo_core::clock::Clock;
use rondo_core::ports::HostCommit;
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::Store;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::paths::Paths;
use rondo_runtime::{calls, memory};
use rondo_types::{SessionId, TimeMs};
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often it is looked for sessions that may go.
const LOOK: Duration = Duration::from_hours(1);

impl Core {
    /// Removes old sessions now and from time to time, until `stop` fires.
    pub(crate) async fn remove_old_sessions(&self, stop: &CancellationToken) {
        let Some(kept) = self.keep_sessions else {
            return;
        };
        loop {
            match self.look_for_old_sessions(kept).await {
                Ok(0) => {}
                Ok(sessions) => tracing::info!(sessions, "old sessions were removed"),
                Err(error) => tracing::warn!(%error, "old sessions are not removed"),
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn look_for_old_sessions(&self, kept: Duration) -> Result<usize> {
        let kept = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        let before = TimeMs(Clock::system().now().0.saturating_sub(kept));
        let store = self.service.store();
        let old = spawn_blocking(move || old(&store, before)).await;
        let mut removed = Vec::new();
        for session in old.map_err(ended)?? {
            let chat = self.chats.of_session(&session).await.map_err(failed)?;
            if chat.is_some_and(|it| it.session() != session) {
                removed.push(session);
            }
        }
        if removed.is_empty() {
            return Ok(0);
        }
        let paths = self.service.runtime().settings(PathBuf::from("/"))?.paths;
        let store = self.service.store();
        let work = spawn_blocking(move || remove(&store, &paths, removed));
        let removed = work.await.map_err(ended)??;
        let commit = HostCommit {
            rows: removed.iter().map(chats::forget_session_row).collect(),
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(failed)?;
        Ok(removed.len())
    }
}

/// Returns the sessions in which nothing was written since a time.
fn old(store: &Store, before: TimeMs) -> Result<Vec<SessionId>> {
    let sessions = store.sessions(usize::MAX).map_err(failed)?;
    let is_old = |it: &SessionInfo| it.updated < before;
    Ok(sessions
        .into_iter()
        .filter(is_old)
        .map(|it| it.id)
        .collect())
}

/// Removes sessions and what belongs to them, but for those that are in use or that others are forks of.
fn remove(store: &Store, paths: &Paths, old: Vec<SessionId>) -> Result<Vec<SessionId>> {
    let mut removed = Vec::new();
    for session in old {
        match store.remove(&session) {
            Ok(()) => {
                calls::forget(paths, &session);
                memory::forget_chat(paths, &session);
                removed.push(session);
            }
            // Its row went before, or it goes another time.
            Err(StoreError::Unknown { .. }) => removed.push(session),
            Err(StoreError::InUse { .. } | StoreError::HasForks { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    store.vacuum().map_err(failed)?;
    Ok(removed)
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> SetupError {
    let context = "failed to remove old sessions";
    SetupError::because(SetupErrorKind::Journal, context, error)
}

fn ended(error: JoinError) -> SetupError {
    failed(error)
}

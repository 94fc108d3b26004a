//! What other processes do with the turns that wait for answers, such as `rondo answer` and `rondo resume`. What is
//! submitted to these sessions is seen as it comes; what was recorded, from time to time.

use crate::host;
use crate::hub::Core;
use crate::questions::{self, ChatQuestion};
use rondo_core::ports::{HostCommit, MailboxError, Record, RecordBody, Seq};
use rondo_core::session_store::{SessionState, StoreError};
use rondo_core::storage::Store;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::service::SessionHandle;
use rondo_types::{Commit, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::spawn_blocking;

/// Sessions with open questions that are looked at.
const SESSIONS_MAX: usize = 10_000;

/// Sessions with open questions, with the last record that was looked at. Those whose handles are held are looked at
/// when another process submits something to them.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<HashMap<SessionId, (SessionHandle, Seq)>>);

impl Waiting {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, (SessionHandle, Seq)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it that a session asks something from now on.
    pub(crate) fn begins(&self, handle: SessionHandle) {
        let mut sessions = self.sessions();
        if sessions.len() < SESSIONS_MAX {
            sessions.insert(handle.id().clone(), (handle, Seq(0)));
        }
    }
}

impl Core {
    /// Looks at the sessions whose questions are noted as open.
    pub(crate) async fn look_elsewhere(self: &Arc<Self>) {
        let all = match questions::asking(&*self.store, SESSIONS_MAX).await {
            Ok(all) => all,
            Err(error) => return tracing::warn!(%error, "questions could not be looked at"),
        };
        self.waiting.sessions().retain(|it, _| all.contains(it));
        for session in all {
            if self.shown.is_running(&session) {
                continue;
            }
            if let Err(error) = self.look_at(&session).await {
                let session = session.as_str();
                tracing::warn!(%error, session, "a question could not be looked at");
            }
        }
    }

    async fn look_at(self: &Arc<Self>, session: &SessionId) -> Result<()> {
        let known = self.waiting.sessions().get(session).cloned();
        let (handle, seen) = known.unwrap_or_else(|| (self.session(session), Seq(0)));
        let info = handle.info()?;
        if info
            .as_ref()
            .is_some_and(|it| it.state == SessionState::Running)
        {
            return Ok(());
        }
        let head = info.map_or(Seq(0), |it| it.head);
        if head != seen {
            self.forget_answered(&handle).await?;
        }
        let waiting = handle.store().list(session).await.map_err(unreadable)?;
        if !waiting.is_empty() {
            handle.look();
        }
        self.waiting
            .sessions()
            .insert(session.clone(), (handle, head));
        Ok(())
    }

    /// Forgets what is not asked any more, and sends the reply if another process ended the turn.
    async fn forget_answered(self: &Arc<Self>, handle: &SessionHandle) -> Result<()> {
        let session = handle.id();
        let open = handle.questions().await?;
        let asked = questions::of_session(&*self.store, session).await;
        let is_open = |it: &ChatQuestion| open.iter().any(|question| question.hash == it.hash);
        let (left, over): (Vec<_>, Vec<_>) =
            asked.map_err(unreadable)?.into_iter().partition(is_open);
        let Some(first) = over.first() else {
            return Ok(());
        };
        let mut commit = Commit {
            rows: questions::forget_some(session, &over, &left),
            ..Commit::default()
        };
        if let Some(end) =
            end_of(handle.store().clone(), session.clone(), first.hash.clone()).await?
        {
            self.add_end(session, end, &mut commit).await?;
        }
        let commit = HostCommit {
            outbox: commit.outbox,
            rows: commit.rows,
            ..HostCommit::default()
        };
        self.store.commit(commit).await.map_err(unreadable)?;
        Ok(())
    }

    /// Adds what the end of a chat's turn comes to, as if it had been recorded here.
    async fn add_end(
        self: &Arc<Self>,
        session: &SessionId,
        end: Record,
        commit: &mut Commit,
    ) -> Result<()> {
        let begun = host::begun(&*self.store, session)
            .await
            .map_err(unreadable)?;
        let chat = self.chats.of_session(session).await.map_err(unreadable)?;
        // Without the first the end was noted before.
        if let (Some(begun), Some(chat)) = (begun, chat) {
            let source = self.source_of(session, &chat, begun).await?;
            source.add(&[end], commit);
        }
        Ok(())
    }
}

/// Returns the last record of the turn that asked a question when it was parked; none if it is not over.
async fn end_of(store: Store, session: SessionId, asked: String) -> Result<Option<Record>> {
    let read = spawn_blocking(move || {
        let (mut turn, mut end) = (None, None);
        store.records::<StoreError>(&session, |record| {
            match &record.body {
                RecordBody::Parked { questions } if questions.iter().any(|it| it.hash == asked) => {
                    turn = Some(record.turn);
                }
                RecordBody::Final { .. } if turn.as_ref() == Some(&record.turn) => {
                    end = Some(record);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok::<_, StoreError>(end)
    });
    let context = "failed to read how a turn ended";
    let failed = |error| SetupError::because(SetupErrorKind::Journal, context, error);
    let read = read
        .await
        .map_err(|err| SetupError::because(SetupErrorKind::Other, context, err))?;
    read.map_err(failed)
}

fn unreadable(error: MailboxError) -> SetupError {
    let context = "failed to read what the hub notes";
    SetupError::because(SetupErrorKind::Other, context, error)
}

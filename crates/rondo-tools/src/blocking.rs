//! Runs the work of a call on a blocking thread.

use crate::change::{ChangeLog, FileChange};
use crate::documents::{DocumentReader, DocumentText};
use crate::failure::Failure;
use crate::workspace::Workspace;
use rondo_core::ports::ToolInvocation;
use rondo_types::{CallId, SessionId, ToolErrorCode, ToolOutcome, ToolOutput};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Input of a call's work besides its arguments.
pub(crate) struct Call {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) cancel: CancellationToken,
    pub(crate) idempotency_key: String,
    pub(crate) session: SessionId,
    id: CallId,
    log: ChangeLog,
    /// Reader of documents that are not text.
    documents: Option<Arc<dyn DocumentReader>>,
}

impl Call {
    /// Looks at files for something that is not a call of the model.
    pub(crate) fn looking(workspace: &Arc<Workspace>) -> Self {
        Self {
            workspace: Arc::clone(workspace),
            cancel: CancellationToken::new(),
            idempotency_key: String::new(),
            session: SessionId::new(""),
            id: CallId::new(""),
            log: ChangeLog::default(),
            documents: None,
        }
    }

    /// Reads a PDF; `None` if there is no reader.
    pub(crate) fn pdf(&self, bytes: Vec<u8>) -> Option<Result<DocumentText, Failure>> {
        let reader = self.documents.as_ref()?;
        let read = self.cancel.run_until_cancelled(reader.pdf(bytes));
        // This is a thread that may block; the runtime's own threads carry the reader on.
        Some(match Handle::current().block_on(read) {
            Some(read) => read.map_err(Failure::Failed),
            None => Err(Failure::Cancelled),
        })
    }

    /// Returns whether there is a reader of PDFs.
    pub(crate) fn reads_documents(&self) -> bool {
        self.documents.is_some()
    }

    /// Fails once the call was cancelled; every loop asks before it continues.
    pub(crate) fn proceed(&self) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        Ok(())
    }

    /// Returns whether what the call makes of its file is noted.
    pub(crate) fn is_watched(&self) -> bool {
        self.log.is_enabled()
    }

    /// Records the change of the call's file.
    pub(crate) fn note(&self, change: impl FnOnce() -> FileChange) {
        if self.is_watched() {
            self.log.note(self.id.clone(), change());
        }
    }
}

/// Runs the work of a call that changes no file on a thread that may block.
///
/// # Cancel safety
/// As [`run_noted`].
pub(crate) async fn run<A>(
    workspace: &Arc<Workspace>,
    invocation: ToolInvocation,
    work: fn(&A, &Call) -> Result<ToolOutput, Failure>,
) -> ToolOutcome
where
    A: DeserializeOwned + Send + 'static,
{
    run_noted(workspace, &ChangeLog::default(), invocation, work).await
}

/// As [`run`], with a reader of documents.
///
/// # Cancel safety
/// As [`run_noted`].
pub(crate) async fn run_reading<A>(
    workspace: &Arc<Workspace>,
    documents: Option<Arc<dyn DocumentReader>>,
    invocation: ToolInvocation,
    work: fn(&A, &Call) -> Result<ToolOutput, Failure>,
) -> ToolOutcome
where
    A: DeserializeOwned + Send + 'static,
{
    run_call(
        workspace,
        &ChangeLog::default(),
        documents,
        invocation,
        work,
    )
    .await
}

/// Runs the work of a call on a thread that may block; the work notes in the log what it changed.
///
/// # Cancel safety
/// Dropping it cancels the work, which ends at its next look at the token.
pub(crate) async fn run_noted<A>(
    workspace: &Arc<Workspace>,
    log: &ChangeLog,
    invocation: ToolInvocation,
    work: fn(&A, &Call) -> Result<ToolOutput, Failure>,
) -> ToolOutcome
where
    A: DeserializeOwned + Send + 'static,
{
    run_call(workspace, log, None, invocation, work).await
}

async fn run_call<A>(
    workspace: &Arc<Workspace>,
    log: &ChangeLog,
    documents: Option<Arc<dyn DocumentReader>>,
    invocation: ToolInvocation,
    work: fn(&A, &Call) -> Result<ToolOutput, Failure>,
) -> ToolOutcome
where
    A: DeserializeOwned + Send + 'static,
{
    let args: A = match serde_json::from_value(invocation.arguments) {
        Ok(args) => args,
        Err(err) => return ToolOutcome::error(ToolErrorCode::InvalidArgs, err.to_string()),
    };
    let cancel = invocation.cancel.child_token();
    let _on_drop = cancel.clone().drop_guard();
    let call = Call {
        workspace: Arc::clone(workspace),
        cancel,
        idempotency_key: invocation.idempotency_key,
        session: invocation.session,
        id: invocation.call_id,
        log: log.clone(),
        documents,
    };
    let done = tokio::task::spawn_blocking(move || {
        call.proceed()?;
        work(&args, &call)
    })
    .await;
    match done {
        Ok(Ok(output)) => ToolOutcome::Ok(output),
        Ok(Err(failure)) => failure.into_outcome(),
        Err(_) => ToolOutcome::error(ToolErrorCode::Internal, "the tool failed unexpectedly"),
    }
}

/// Returns an optional text argument that says something. Small models fill in every argument;
/// with an empty text they mean none, as with zero for a number.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

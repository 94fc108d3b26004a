//! Decides after a crash whether an interrupted call had changed its file, by comparing the file with its
//! recorded state before the call and the state that the call would have left.

use crate::replace::Target;
use crate::workspace::{Access, Workspace};
use cap_std::fs::{File, Metadata};
use data_encoding::HEXLOWER;
use rondo_core::ports::{InterruptedCall, Reconciled};
use rondo_types::{ChangedFile, FileVersion, ToolOutput};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::sync::Arc;

/// The bound on a file that is compared by content; a larger one is compared by size and time.
const HASHED_BYTES_MAX: u64 = 64 << 20;

/// The state of a file, for comparing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileState {
    /// It does not exist.
    Absent,
    /// The SHA-256 of its content, in hex.
    Content(String),
    /// It is too large to hash.
    Large {
        /// Size of the content, in bytes.
        bytes: u64,
        /// When it was written, in nanoseconds since 1970.
        modified_ns: String,
    },
    /// No tool can read or write it.
    Unusable,
}

impl FileState {
    /// Returns the state of a file that a model named.
    pub(crate) fn of(workspace: &Workspace, path: &str) -> Self {
        Self::find(workspace, path).unwrap_or(Self::Unusable)
    }

    /// Returns the state of a file with this content.
    pub(crate) fn with(content: &[u8]) -> Self {
        Self::Content(HEXLOWER.encode(&Sha256::digest(content)))
    }

    /// Returns the state of a file that is compared by size and time.
    pub(crate) fn large(metadata: &Metadata) -> Option<Self> {
        let modified = metadata.modified().ok()?.into_std();
        let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(Self::Large {
            bytes: metadata.len(),
            modified_ns: since.as_nanos().to_string(),
        })
    }

    /// Returns the state, as recorded in a result.
    pub(crate) fn version(self) -> FileVersion {
        match self {
            Self::Absent => FileVersion::Absent,
            Self::Content(hash) => FileVersion::Sha256(hash),
            Self::Large { .. } | Self::Unusable => FileVersion::Unknown,
        }
    }

    /// Returns the state of an open file.
    pub(crate) fn of_open(file: File, metadata: &Metadata) -> Option<Self> {
        if metadata.len() > HASHED_BYTES_MAX {
            return Self::large(metadata);
        }
        let mut hash = Sha256::new();
        // It may grow meanwhile.
        io::copy(&mut file.take(HASHED_BYTES_MAX + 1), &mut hash).ok()?;
        Some(Self::Content(HEXLOWER.encode(&hash.finalize())))
    }

    fn find(workspace: &Workspace, path: &str) -> Option<Self> {
        let place = workspace.locate(path, Access::Write).ok()?;
        match place.dir().symlink_metadata(&place.relative) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Some(Self::Absent),
            _ => {}
        }
        let (file, metadata) = place.open_file().ok()?;
        Self::of_open(file, &metadata)
    }
}

/// Returns the change of a file from one state to another, if it is one.
pub(crate) fn changed(path: String, before: FileState, after: FileState) -> Vec<ChangedFile> {
    match before == after {
        true => Vec::new(),
        false => vec![ChangedFile {
            path,
            before: before.version(),
            after: after.version(),
        }],
    }
}

/// Collects, on a blocking thread, the evidence by which [`reconcile`] decides later whether the call was
/// done; `None` for arguments that the tool would refuse.
pub(crate) async fn note<A, E>(
    workspace: &Arc<Workspace>,
    arguments: &Value,
    look: fn(&A, &Workspace) -> E,
) -> Option<Value>
where
    A: DeserializeOwned + Send + 'static,
    E: Serialize + Send + 'static,
{
    let args: A = serde_json::from_value(arguments.clone()).ok()?;
    let workspace = Arc::clone(workspace);
    let look = move || serde_json::to_value(look(&args, &workspace)).ok();
    tokio::task::spawn_blocking(look).await.ok()?
}

/// The read arguments and evidence of an interrupted call that changes a file.
pub(crate) struct InterruptedEdit<A, E> {
    pub(crate) args: A,
    pub(crate) evidence: E,
    /// The state of its file now.
    pub(crate) now: FileState,
}

/// Decides, on a blocking thread, whether an interrupted call was done.
///
/// `path` returns the call's file. `states` returns the file's state before the call, and after it if the
/// call could have succeeded. `result` rebuilds the output of a call that was done.
pub(crate) async fn reconcile<A, E>(
    workspace: &Arc<Workspace>,
    call: &InterruptedCall,
    path: fn(&A) -> &str,
    states: fn(&A, &E) -> (FileState, Option<FileState>),
    result: fn(&InterruptedEdit<A, E>, &Workspace) -> Option<ToolOutput>,
) -> Reconciled
where
    A: DeserializeOwned + Send + 'static,
    E: DeserializeOwned + Send + 'static,
{
    let Ok(args) = serde_json::from_value::<A>(call.arguments.clone()) else {
        // The tool refuses such arguments, so the call had no effect.
        return Reconciled::NotDone;
    };
    let evidence = call.evidence.clone().map(serde_json::from_value::<E>);
    let Some(Ok(evidence)) = evidence else {
        return Reconciled::Unknown;
    };
    let (workspace, key) = (Arc::clone(workspace), call.idempotency_key.clone());
    let find_out = move || {
        discard_temporary(&workspace, path(&args), &key);
        let now = FileState::of(&workspace, path(&args));
        let (before, after) = states(&args, &evidence);
        let interrupted = InterruptedEdit {
            args,
            evidence,
            now,
        };
        if after.as_ref() == Some(&interrupted.now) {
            return result(&interrupted, &workspace).map_or(Reconciled::Unknown, done);
        }
        match interrupted.now == before {
            true => Reconciled::NotDone,
            false => Reconciled::Unknown,
        }
    };
    tokio::task::spawn_blocking(find_out)
        .await
        .unwrap_or(Reconciled::Unknown)
}

fn done(output: ToolOutput) -> Reconciled {
    Reconciled::Done(rondo_types::ToolOutcome::Ok(output))
}

/// Removes the temporary file that an interrupted call may have left beside its file.
fn discard_temporary(workspace: &Workspace, path: &str, key: &str) {
    let target = workspace
        .locate(path, Access::Write)
        .and_then(|place| Target::open(&place, false));
    if let Ok(target) = target {
        target.discard_temporary(key);
    }
}

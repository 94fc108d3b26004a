//! The tool `write_file`.

use crate::blocking::{self, Call};
use crate::change::{ChangeLog, FileChange, Old, Replaced};
use crate::edit::FILE_BYTES_MAX;
use crate::failure::Failure;
use crate::recovery::{self, FileState, InterruptedEdit, changed};
use crate::replace::{Target, leads_to};
use crate::workspace::{Access, Workspace, WorkspacePath};
use async_trait::async_trait;
use rondo_core::ports::{InterruptedCall, Reconciled, Tool, ToolInvocation};
use rondo_types::{
    Concurrency, Effects, Recovery, ToolHints, ToolKind, ToolOutcome, ToolOutput, ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::Arc;

/// The name of the tool that writes a whole file.
pub const WRITE_FILE: &str = "write_file";

/// Writes a whole file: `write_file {path, content, create_parents?}`.
///
/// The file appears at once, or stays as it was. The result is an object: `path`, `status`
/// (`created` or `replaced`), `bytes`. Permission bits of a replaced file are kept.
#[derive(Debug)]
pub struct WriteFile {
    workspace: Arc<Workspace>,
    log: ChangeLog,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    path: String,
    content: String,
    create_parents: Option<bool>,
}

/// Noted before a call.
#[derive(Serialize, Deserialize)]
struct Evidence {
    before: FileState,
}

impl WriteFile {
    /// Builds the tool over a workspace.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let log = ChangeLog::default();
        Self { workspace, log }
    }

    /// Records each file change in the log.
    #[must_use]
    pub fn with_log(self, log: ChangeLog) -> Self {
        Self { log, ..self }
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: WRITE_FILE.to_owned(),
            description: "Writes a whole file, replacing what was there. To change a part of a \
                          file, use edit_file."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "content": {"type": "string"},
                    "create_parents": {"type": "boolean", "description": "Default true."}
                },
                "required": ["path", "content"]
            }),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Checkable,
            kind: ToolKind::Edit,
            hints: ToolHints::new(true, true, false),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        blocking::run_noted(&self.workspace, &self.log, invocation, write).await
    }

    async fn evidence(&self, arguments: &Value) -> Option<Value> {
        recovery::note(&self.workspace, arguments, |args: &Args, workspace| {
            Evidence {
                before: FileState::of(workspace, &args.path),
            }
        })
        .await
    }

    async fn reconcile(&self, call: &InterruptedCall) -> Reconciled {
        recovery::reconcile(
            &self.workspace,
            call,
            |args: &Args| &args.path,
            states,
            again,
        )
        .await
    }
}

fn states(args: &Args, evidence: &Evidence) -> (FileState, Option<FileState>) {
    let after = FileState::with(args.content.as_bytes());
    (evidence.before.clone(), Some(after))
}

fn write(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    let place = call.workspace.locate(&args.path, Access::Write)?;
    let target = Target::open(&place, args.create_parents.unwrap_or(true))?;
    call.proceed()?;
    let state = state_before(&target);
    let before = call.is_watched().then(|| old(&target));
    target.write(args.content.as_bytes(), &call.idempotency_key)?;
    if let Some(before) = before {
        call.note(|| FileChange::new(place.shown(), leads_to(&place), before, &args.content));
    }
    Ok(result(&place, args, state))
}

/// Looks at what a write replaces.
fn state_before(target: &Target) -> FileState {
    if target.is_new() {
        return FileState::Absent;
    }
    let state = target.read().ok();
    state
        .and_then(|(file, metadata)| FileState::of_open(file, &metadata))
        .unwrap_or(FileState::Unusable)
}

/// Looks at what a call would do.
pub(crate) fn preview(args: &Args, workspace: &Workspace) -> Result<FileChange, Failure> {
    let (place, before) = found(args, workspace)?;
    Ok(FileChange::new(
        place.shown(),
        leads_to(&place),
        before,
        &args.content,
    ))
}

/// Looks at the file that a call would replace.
pub(crate) fn replaced(args: &Args, workspace: &Workspace) -> Result<Replaced, Failure> {
    let (place, before) = found(args, workspace)?;
    Ok(Replaced::new(leads_to(&place), before, None))
}

fn found<'a>(
    args: &'a Args,
    workspace: &'a Workspace,
) -> Result<(WorkspacePath<'a>, Old), Failure> {
    let place = workspace.locate(&args.path, Access::Write)?;
    let before = match args.create_parents.unwrap_or(true) {
        true => Target::find(&place)?.map_or(Old::Absent, |target| old(&target)),
        false => old(&Target::open(&place, false)?),
    };
    Ok((place, before))
}

/// Reads what a write replaces. What cannot be read is replaced all the same.
fn old(target: &Target) -> Old {
    if target.is_new() {
        return Old::Absent;
    }
    read_old(target).unwrap_or(Old::Unreadable)
}

fn read_old(target: &Target) -> Option<Old> {
    let (file, metadata) = target.read().ok()?;
    let bound = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(bound.saturating_add(1))
        .read_to_end(&mut bytes)
        .ok()?;
    if bytes.len() > FILE_BYTES_MAX {
        let state = FileState::large(&metadata)?;
        let bytes = metadata.len();
        return Some(Old::Other { bytes, state });
    }
    let state = FileState::with(&bytes);
    Some(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Old::Text(text),
        Ok(text) => Old::Other {
            bytes: size(text.len()),
            state,
        },
        Err(err) => Old::Other {
            bytes: size(err.as_bytes().len()),
            state,
        },
    })
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns the result of a call that was done before.
fn again(
    interrupted: &InterruptedEdit<Args, Evidence>,
    workspace: &Workspace,
) -> Option<ToolOutput> {
    let place = workspace
        .locate(&interrupted.args.path, Access::Write)
        .ok()?;
    let before = interrupted.evidence.before.clone();
    Some(result(&place, &interrupted.args, before))
}

fn result(place: &WorkspacePath<'_>, args: &Args, before: FileState) -> ToolOutput {
    let status = match before {
        FileState::Absent => "created",
        _ => "replaced",
    };
    let after = FileState::with(args.content.as_bytes());
    ToolOutput {
        value: json!({
            "path": place.shown(),
            "status": status,
            "bytes": args.content.len(),
        }),
        changes: changed(place.shown(), before, after),
        ..ToolOutput::default()
    }
}

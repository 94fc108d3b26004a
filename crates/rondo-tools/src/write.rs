//! The tool `write_file`.

use crate::blocking::{self, Call};
use crate::change::{ChangeLog, FileBeforeChange, FileChange, ReplacedFile};
use crate::edit::{self, FILE_BYTES_MAX};
use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::matching::{crlf, ends_in_crlf};
use crate::read::BOM;
use crate::recovery::{self, FileState, InterruptedEdit, changed};
use crate::replace::{Target, leads_to};
use crate::seen;
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

/// Note in the result of a call that changed a file without a permission bit for writing.
pub(crate) const READ_ONLY: &str =
    "the file is read-only by its permissions, which were kept; it was changed anyway";

/// Writes a whole file: `write_file {path, content, create_parents?}`.
///
/// The file appears at once, or stays as it was. The result is an object: `path`, `status`
/// (`created` or `replaced`), `bytes`, and `note` if there is something to say. Of a replaced file the owner, permissions,
/// attributes, byte order mark and CRLF line ends are kept.
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
    /// Intended state of the file; its given content, if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<FileState>,
}

/// Content to write, with notes for the result.
struct FittedContent {
    content: String,
    notes: Vec<String>,
}

impl FittedContent {
    /// Keeps the byte order mark and the line ends of the text that is replaced.
    fn new(args: &Args, before: &FileBeforeChange, shown: &str) -> Self {
        let mut content = args.content.clone();
        let mut notes = Vec::new();
        match before {
            FileBeforeChange::Text(old) => {
                if ends_in_crlf(old) && content.contains('\n') && !content.contains('\r') {
                    content = crlf(&content);
                    notes.push("lines end in CRLF as before".to_owned());
                }
                if old.starts_with(BOM) && !content.is_empty() && !content.starts_with(BOM) {
                    content.insert(0, BOM);
                    notes.push("the byte order mark was kept".to_owned());
                }
            }
            FileBeforeChange::Other {
                encoding: Some(encoding),
                ..
            } => notes.push(format!(
                "the replaced file: {}; the new one is UTF-8",
                encoding.described(shown)
            )),
            FileBeforeChange::Other { .. }
            | FileBeforeChange::Absent
            | FileBeforeChange::Unreadable => {}
        }
        Self { content, notes }
    }
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
            evidence(args, workspace)
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

fn evidence(args: &Args, workspace: &Workspace) -> Evidence {
    let fitted = found(args, workspace).ok().map(|(_, _, fitted)| fitted);
    let after = fitted.filter(|it| it.content != args.content);
    Evidence {
        before: FileState::of(workspace, &args.path),
        after: after.map(|it| FileState::with(it.content.as_bytes())),
    }
}

fn states(args: &Args, evidence: &Evidence) -> (FileState, Option<FileState>) {
    let given = || FileState::with(args.content.as_bytes());
    let after = evidence.after.clone().unwrap_or_else(given);
    (evidence.before.clone(), Some(after))
}

fn write(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    let place = call.workspace.locate(&args.path, Access::Write)?;
    let target = Target::open(&place, args.create_parents.unwrap_or(true))?;
    call.proceed()?;
    let state = state_before(&target);
    let before = old(&target);
    if let FileBeforeChange::Text(text) = &before {
        seen::check(call, &place, text)?;
    }
    let mut fitted = FittedContent::new(args, &before, &place.shown());
    if target.is_read_only() {
        fitted.notes.push(READ_ONLY.to_owned());
    }
    target.write(fitted.content.as_bytes(), &call.idempotency_key)?;
    seen::note(call, &place, fitted.content.as_bytes());
    call.note(|| FileChange::new(place.shown(), leads_to(&place), before, &fitted.content));
    Ok(result(&place, &fitted, state))
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
    let (place, before, fitted) = found(args, workspace)?;
    Ok(FileChange::new(
        place.shown(),
        leads_to(&place),
        before,
        &fitted.content,
    ))
}

/// Looks at the file that a call would replace.
pub(crate) fn replaced(args: &Args, workspace: &Workspace) -> Result<ReplacedFile, Failure> {
    let (place, before, fitted) = found(args, workspace)?;
    let after = Some(fitted.content).filter(|it| *it != args.content);
    Ok(ReplacedFile::new(leads_to(&place), before, after))
}

fn found<'a>(
    args: &'a Args,
    workspace: &'a Workspace,
) -> Result<(WorkspacePath<'a>, FileBeforeChange, FittedContent), Failure> {
    let place = workspace.locate(&args.path, Access::Write)?;
    let before = match args.create_parents.unwrap_or(true) {
        true => Target::find(&place)?.map_or(FileBeforeChange::Absent, |target| old(&target)),
        false => old(&Target::open(&place, false)?),
    };
    let fitted = FittedContent::new(args, &before, &place.shown());
    Ok((place, before, fitted))
}

/// Reads the content that a write replaces. A file that cannot be read is replaced all the same.
fn old(target: &Target) -> FileBeforeChange {
    if target.is_new() {
        return FileBeforeChange::Absent;
    }
    read_old(target).unwrap_or(FileBeforeChange::Unreadable)
}

fn read_old(target: &Target) -> Option<FileBeforeChange> {
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
        return Some(FileBeforeChange::Other {
            bytes,
            state,
            encoding: None,
        });
    }
    let state = FileState::with(&bytes);
    Some(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => FileBeforeChange::Text(text),
        Ok(text) => other(text.as_bytes(), state),
        Err(err) => other(err.as_bytes(), state),
    })
}

fn other(bytes: &[u8], state: FileState) -> FileBeforeChange {
    FileBeforeChange::Other {
        bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        state,
        encoding: Encoding::of(bytes),
    }
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
    let (text, _) = edit::load(&Target::open(&place, false).ok()?, &place.shown()).ok()?;
    let fitted = FittedContent {
        content: text,
        notes: Vec::new(),
    };
    Some(result(&place, &fitted, before))
}

fn result(place: &WorkspacePath<'_>, written: &FittedContent, before: FileState) -> ToolOutput {
    let status = match before {
        FileState::Absent => "created",
        _ => "replaced",
    };
    let after = FileState::with(written.content.as_bytes());
    let mut value = json!({
        "path": place.shown(),
        "status": status,
        "bytes": written.content.len(),
    });
    if let Some(fields) = value.as_object_mut()
        && !written.notes.is_empty()
    {
        fields.insert("note".to_owned(), written.notes.join("; ").into());
    }
    ToolOutput {
        value,
        changes: changed(place.shown(), before, after),
        ..ToolOutput::default()
    }
}

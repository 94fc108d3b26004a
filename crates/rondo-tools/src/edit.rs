//! The tool `edit_file`. The rules of a match are in `matching`.

use crate::blocking::{self, Call};
use crate::change::{ChangeLog, FileBeforeChange, FileChange, ReplacedFile};
use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::matching::{Edit, LineEnds, list};
use crate::read::BOM;
use crate::recovery::{self, FileState, InterruptedEdit, changed};
use crate::replace::{Target, leads_to};
use crate::seen;
use crate::workspace::{Access, Workspace, WorkspacePath};
use crate::write::READ_ONLY;
use async_trait::async_trait;
use rondo_core::ports::{InterruptedCall, Reconciled, Tool, ToolInvocation};
use rondo_types::text::{first_bytes, with_mark};
use rondo_types::{
    Concurrency, Effects, Recovery, ToolHints, ToolKind, ToolOutcome, ToolOutput, ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use similar::TextDiff;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// The name of the tool.
pub const EDIT_FILE: &str = "edit_file";

/// The bound on a file that is edited, before and after, and on one that is compared.
pub(crate) const FILE_BYTES_MAX: usize = 10 << 20;

/// The bound on lines of a file of which a diff is shown.
const DIFF_LINES_MAX: usize = 20_000;

/// The bound on replacements of which a diff is shown.
const DIFF_REPLACEMENTS_MAX: usize = 100;

/// The bound on a diff.
const DIFF_BYTES_MAX: usize = 4_000;

/// How long to search for the smallest diff before a larger one is taken.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);

/// Lines of a diff around each change.
const DIFF_CONTEXT_LINES: usize = 2;

/// Recorded before the call runs.
#[derive(Serialize, Deserialize)]
struct Evidence {
    before: FileState,
    /// Absent if the edit would fail.
    change: Option<Change>,
}

/// Effect of the edit: enough to rebuild the call's result from the edited file.
#[derive(Serialize, Deserialize)]
struct Change {
    after: FileState,
    count: usize,
    are_crlf: bool,
    /// Places of the replacements, as the lengths of the texts between; absent if no diff is shown.
    gaps: Option<Vec<usize>>,
    /// In a file of mixed line ends, each match and what takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<Vec<(String, String)>>,
}

/// Replaces an exact text in a file: `edit_file {path, old_string, new_string, replace_all?}`.
///
/// The text must occur exactly once, or `replace_all` must say that all are meant. Line ends, a byte
/// order mark, owner, permissions and attributes are kept. The result is an object: `path`, `replacements`,
/// `bytes`, `diff` (unified; null if the change is too large to show).
#[derive(Debug)]
pub struct EditFile {
    workspace: Arc<Workspace>,
    log: ChangeLog,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    path: String,
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl EditFile {
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
impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: EDIT_FILE.to_owned(),
            description: "Replaces `old_string`, which must occur exactly once in the file unless \
                          `replace_all` is set, with `new_string`."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "old_string": {"type": "string", "minLength": 1, "description": "Exact text, whitespace included."},
                    "new_string": {"type": "string"},
                    "replace_all": {"type": "boolean"}
                },
                "required": ["path", "old_string", "new_string"]
            }),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Checkable,
            kind: ToolKind::Edit,
            hints: ToolHints::new(true, false, false),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        blocking::run_noted(&self.workspace, &self.log, invocation, edit).await
    }

    async fn evidence(&self, arguments: &Value) -> Option<Value> {
        recovery::note(&self.workspace, arguments, evidence).await
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

/// An edit that can be made.
struct Plan<'a> {
    place: WorkspacePath<'a>,
    target: Target,
    leads_to: Option<String>,
    shown: String,
    /// The file as it was read.
    text: String,
    stamp: Stamp,
    edit: Edit,
    count: usize,
    /// The whole file with the edit.
    content: String,
}

/// Plans an edit; `check` is given the file as it is.
fn plan<'a>(
    args: &Args,
    workspace: &'a Workspace,
    check: impl FnOnce(&WorkspacePath<'a>, &str) -> Result<(), Failure>,
) -> Result<Plan<'a>, Failure> {
    if args.old_string.is_empty() {
        return Err(Failure::InvalidArgs("`old_string` is empty".to_owned()));
    }
    if args.old_string == args.new_string {
        let message = "`old_string` and `new_string` are the same";
        return Err(Failure::InvalidArgs(message.to_owned()));
    }
    let place = workspace.locate(&args.path, Access::Write)?;
    let shown = place.shown();
    let target = Target::open(&place, false)?;
    let (text, stamp) = load(&target, &shown)?;
    check(&place, &text)?;
    let (mark, body) = split_mark(&text);
    let edit = Edit::fitted(body, &args.old_string, &args.new_string);
    let count = checked(&edit, body, args.replace_all.unwrap_or(false), &shown)?;
    let content = mark.to_owned() + &edit.applied(body);
    Ok(Plan {
        leads_to: leads_to(&place),
        place,
        target,
        shown,
        text,
        stamp,
        edit,
        count,
        content,
    })
}

fn evidence(args: &Args, workspace: &Workspace) -> Evidence {
    let Ok(plan) = plan(args, workspace, |_, _| Ok(())) else {
        return Evidence {
            before: FileState::of(workspace, &args.path),
            change: None,
        };
    };
    let body = split_mark(&plan.text).1;
    let has_diff = plan.count <= DIFF_REPLACEMENTS_MAX;
    Evidence {
        before: FileState::with(plan.text.as_bytes()),
        change: Some(Change {
            after: FileState::with(plan.content.as_bytes()),
            count: plan.count,
            are_crlf: LineEnds::of(body) == LineEnds::Crlf,
            gaps: has_diff.then(|| plan.edit.gaps(body)),
            pairs: plan.edit.pairs(body).filter(|_| has_diff),
        }),
    }
}

fn states(_: &Args, evidence: &Evidence) -> (FileState, Option<FileState>) {
    let after = evidence.change.as_ref().map(|change| change.after.clone());
    (evidence.before.clone(), after)
}

/// Returns the result of an edit that an interrupted call had already made.
fn again(
    interrupted: &InterruptedEdit<Args, Evidence>,
    workspace: &Workspace,
) -> Option<ToolOutput> {
    let change = interrupted.evidence.change.as_ref()?;
    let place = workspace
        .locate(&interrupted.args.path, Access::Write)
        .ok()?;
    let (after, _) = load(&Target::open(&place, false).ok()?, &place.shown()).ok()?;
    let before = undone(&interrupted.args, change, &after);
    let shown = place.shown();
    Some(ToolOutput {
        changes: changed(
            shown.clone(),
            interrupted.evidence.before.clone(),
            change.after.clone(),
        ),
        ..result(&shown, change.count, before.as_deref(), &after)
    })
}

/// Returns the file as it was before the edit, if a diff is shown.
fn undone(args: &Args, change: &Change, after: &str) -> Option<String> {
    let (mark, body) = split_mark(after);
    let line_ends = match change.are_crlf {
        true => LineEnds::Crlf,
        false => LineEnds::Lf,
    };
    let edit = Edit::with_line_ends(line_ends, &args.old_string, &args.new_string);
    let before = edit.undone(body, change.gaps.as_ref()?, change.pairs.as_deref())?;
    Some(mark.to_owned() + &before)
}

fn edit(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    let plan = plan(args, &call.workspace, |place, text| {
        seen::check(call, place, text)
    })?;
    call.proceed()?;
    let shown = &plan.shown;
    if plan.target.read()?.1.modified().ok() != plan.stamp {
        let message = format!("`{shown}` was changed while it was being edited; read it again");
        return Err(Failure::Failed(message));
    }
    let content = plan.content.as_bytes();
    let note = plan.target.is_read_only().then_some(READ_ONLY);
    plan.target.write(content, &call.idempotency_key)?;
    seen::note(call, &plan.place, content);
    let (before, after) = (plan.text.as_bytes(), plan.content.as_bytes());
    let mut result = ToolOutput {
        changes: changed(
            shown.clone(),
            FileState::with(before),
            FileState::with(after),
        ),
        ..result(shown, plan.count, Some(&plan.text), &plan.content)
    };
    if let (Some(note), Some(fields)) = (note, result.value.as_object_mut()) {
        fields.insert("note".to_owned(), note.into());
    }
    call.note(|| plan.change());
    Ok(result)
}

impl Plan<'_> {
    fn change(self) -> FileChange {
        let before = FileBeforeChange::Text(self.text);
        FileChange::new(self.shown, self.leads_to, before, &self.content)
    }
}

/// Returns the change that a call would make, without making it.
pub(crate) fn preview(args: &Args, workspace: &Workspace) -> Result<FileChange, Failure> {
    plan(args, workspace, |_, _| Ok(())).map(Plan::change)
}

/// Returns the file that a call would edit, and its text afterwards.
pub(crate) fn replaced(args: &Args, workspace: &Workspace) -> Result<ReplacedFile, Failure> {
    let plan = plan(args, workspace, |_, _| Ok(()))?;
    Ok(ReplacedFile::new(
        plan.leads_to,
        FileBeforeChange::Text(plan.text),
        Some(plan.content),
    ))
}

/// Returns the result of an edit; without a diff if the file's former content is no longer known.
fn result(shown: &str, count: usize, before: Option<&str>, after: &str) -> ToolOutput {
    let body = |text| split_mark(text).1;
    let diff = before.and_then(|before| diff(body(before), body(after), count, shown));
    ToolOutput {
        value: json!({
            "path": shown,
            "replacements": count,
            "bytes": after.len(),
            "diff": diff,
        }),
        ..ToolOutput::default()
    }
}

/// Separates the byte order mark from the text.
fn split_mark(text: &str) -> (&str, &str) {
    let mark = if text.starts_with(BOM) {
        BOM.len_utf8()
    } else {
        0
    };
    text.split_at(mark)
}

/// When a file was written last.
pub(crate) type Stamp = Option<cap_std::time::SystemTime>;

/// Reads a file as text.
pub(crate) fn load(target: &Target, shown: &str) -> Result<(String, Stamp), Failure> {
    let (file, metadata) = target.read()?;
    let bound = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(bound.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|err| Failure::io("read", shown, &err))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large(shown));
    }
    let encoding = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => return Ok((text, metadata.modified().ok())),
        Ok(text) => Encoding::of(text.as_bytes()),
        Err(err) => Encoding::of(err.as_bytes()),
    };
    let other = || format!("`{shown}` is not UTF-8 text");
    Err(Failure::Failed(
        encoding.map_or_else(other, |it| it.described(shown)),
    ))
}

/// Returns how many replacements the edit makes, if it is allowed to make them.
fn checked(edit: &Edit, body: &str, replace_all: bool, shown: &str) -> Result<usize, Failure> {
    let places = edit.places(body);
    if places.is_empty() {
        return Err(Failure::Failed(format!(
            "`old_string` does not occur in `{shown}` (0 matches){}",
            edit.hint(body)
        )));
    }
    if places.len() > 1 && !replace_all {
        return Err(Failure::Failed(format!(
            "`old_string` occurs more than once in `{shown}`: on lines {}; include more lines \
             around it, or set `replace_all`",
            list(&places)
        )));
    }
    let count = edit.count(body);
    // Each line end may take another byte than in the edit.
    let longest = edit.new.len() + edit.new.matches('\n').count();
    let grown = longest.saturating_sub(edit.old.len());
    if body.len().saturating_add(grown.saturating_mul(count)) > FILE_BYTES_MAX {
        return Err(too_large(shown));
    }
    Ok(count)
}

fn too_large(shown: &str) -> Failure {
    Failure::Failed(format!(
        "`{shown}` is or would become larger than {FILE_BYTES_MAX} bytes"
    ))
}

/// Returns a unified diff, or nothing if it would cost or show too much.
pub(crate) fn diff(old: &str, new: &str, count: usize, shown: &str) -> Option<String> {
    let lines = old.lines().count().max(new.lines().count());
    if lines > DIFF_LINES_MAX || count > DIFF_REPLACEMENTS_MAX {
        return None;
    }
    let text = TextDiff::configure()
        .timeout(DIFF_TIME_MAX)
        .diff_lines(old, new)
        .unified_diff()
        .context_radius(DIFF_CONTEXT_LINES)
        .header(shown, shown)
        .to_string();
    let head = first_bytes(&text, DIFF_BYTES_MAX);
    let mark = "\n[the rest of the diff is left out]\n";
    Some(with_mark(head, &text, mark))
}

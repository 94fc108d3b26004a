use crate::blocking::{self, Call};
use crate::failure::Failure;
use crate::matching::{Edit, list};
use crate::read::BOM;
use crate::replace::Target;
use crate::workspace::{Access, Workspace};
use async_trait::async_trait;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{Concurrency, Effects, Recovery, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use similar::TextDiff;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// The bound on a file that is edited, before and after.
const FILE_BYTES_MAX: usize = 10 << 20;

/// The bound on lines of a file of which a diff is shown.
const DIFF_LINES_MAX: usize = 20_000;

/// The bound on replacements of which a diff is shown.
const DIFF_REPLACEMENTS_MAX: usize = 100;

/// The bound on a diff.
const DIFF_BYTES_MAX: usize = 4_000;

/// How long the smallest diff is looked for; then a larger one does.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);

/// Lines of a diff around each change.
const DIFF_CONTEXT_LINES: usize = 2;

/// Replaces an exact text in a file: `edit_file {path, old_string, new_string, replace_all?}`.
///
/// The text must occur exactly once, or `replace_all` must say that all are meant. Line ends, a byte
/// order mark and permission bits are kept. The result is an object: `path`, `replacements`,
/// `bytes`, `diff` (unified; null where the change is too large to show).
#[derive(Debug)]
pub struct EditFile {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize)]
struct Args {
    path: String,
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

impl EditFile {
    /// Builds the tool over a workspace.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit_file".to_owned(),
            description: "Replaces `old_string`, which must occur exactly once in the file, by \
                          `new_string`. Include enough lines around it to make it unique, or set \
                          `replace_all`."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
                    "old_string": {"type": "string", "minLength": 1, "description": "The exact text to replace, blanks included."},
                    "new_string": {"type": "string", "description": "What to put there."},
                    "replace_all": {"type": "boolean", "description": "Whether to replace every occurrence. Default false."}
                },
                "required": ["path", "old_string", "new_string"],
                "additionalProperties": false
            }),
            effects: Effects::Writes,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::Checkable,
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        blocking::run(&self.workspace, invocation, edit).await
    }
}

fn edit(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    if args.old_string.is_empty() {
        return Err(Failure::InvalidArgs("`old_string` is empty".to_owned()));
    }
    if args.old_string == args.new_string {
        let message = "`old_string` and `new_string` are the same";
        return Err(Failure::InvalidArgs(message.to_owned()));
    }
    let place = call.workspace.locate(&args.path, Access::Write)?;
    let shown = place.shown();
    let target = Target::open(&place, false)?;
    let (text, stamp) = load(&target, &shown)?;
    let (mark, body) = match text.strip_prefix(BOM) {
        Some(body) => (BOM.len_utf8(), body),
        None => (0, text.as_str()),
    };
    let edit = Edit::fitted(body, &args.old_string, &args.new_string);
    let count = checked(&edit, body, args.replace_all.unwrap_or(false), &shown)?;
    let changed = body.replace(&edit.old, &edit.new);
    let content = text.get(..mark).unwrap_or("").to_owned() + &changed;
    call.proceed()?;
    if target.read()?.1.modified().ok() != stamp {
        let message = format!("`{shown}` was changed by somebody else meanwhile; read it again");
        return Err(Failure::Failed(message));
    }
    target.write(content.as_bytes(), &call.idempotency_key)?;
    Ok(ToolOutput {
        value: json!({
            "path": shown,
            "replacements": count,
            "bytes": content.len(),
            "diff": diff(body, &changed, count, &shown),
        }),
        ..ToolOutput::default()
    })
}

type Stamp = Option<cap_std::time::SystemTime>;

fn load(target: &Target, shown: &str) -> Result<(String, Stamp), Failure> {
    let (file, metadata) = target.read()?;
    let bound = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(bound.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|err| Failure::io("read", shown, &err))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large(shown));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok((text, metadata.modified().ok())),
        _ => Err(Failure::Failed(format!("`{shown}` is no UTF-8 text"))),
    }
}

/// Returns how many replacements the edit makes, where it is allowed to make them.
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
    let grown = edit.new.len().saturating_sub(edit.old.len());
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

/// Returns a unified diff, or nothing where it would cost or show too much.
fn diff(old: &str, new: &str, count: usize, shown: &str) -> Option<String> {
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
    if text.len() <= DIFF_BYTES_MAX {
        return Some(text);
    }
    let end = text.floor_char_boundary(DIFF_BYTES_MAX);
    let head = text.get(..end).unwrap_or("");
    Some(format!("{head}\n[the rest of the diff is left out]\n"))
}

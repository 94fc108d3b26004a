//! The tool `list_files`.

use crate::blocking::{self, Call, given};
use crate::failure::Failure;
use crate::walk::{Order, VISITED_MAX, Walk, WalkEntry};
use crate::workspace::{Access, Workspace, WorkspacePath, open_regular};
use async_trait::async_trait;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{ToolKind, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bound on entries of one result.
const ENTRIES_MAX: usize = 1_000;

/// The bound on the text of one result.
const RESULT_BYTES_MAX: usize = 50_000;

/// The bound on files whose lines are counted; a longer listing goes without.
const COUNTED_FILES_MAX: usize = 200;

/// The bound on bytes that are read to count lines; a larger listing goes without.
const COUNTED_BYTES_MAX: u64 = 16 << 20;

/// How much of a file is looked at to tell whether it is text.
const TEXT_PROBE_BYTES: usize = 8 << 10;

/// Lists files: `list_files {path?, glob?, depth?}`.
///
/// The result is text: a line in brackets with the counts, then one path a line, sorted;
/// directories end in `/`, files are followed by a tab and their size in bytes, text files by
/// another and their lines if the listing is small enough to count them, links by `@`. The
/// bracket names the largest and the longest file, since small models compare numbers badly. Hidden
/// entries and those that a `.gitignore` names are left out. At most 1,000 entries and
/// 50,000 bytes.
#[derive(Debug)]
pub struct ListFiles {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: Option<String>,
    glob: Option<String>,
    depth: Option<usize>,
}

impl ListFiles {
    /// Builds the tool over a workspace.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_files".to_owned(),
            description: "Lists files beneath a directory with their sizes in bytes and lines, \
                          except hidden and gitignored ones."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "glob": {"type": "string", "description": "Such as `*.rs` or `src/**/*.toml`."},
                    "depth": {"type": "integer", "description": "Levels at most."}
                }
            }),
            ..ToolSpec::read_only(ToolKind::Search)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        blocking::run(&self.workspace, invocation, list).await
    }
}

fn list(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    let path = given(args.path.as_deref()).unwrap_or(".");
    let depth = args.depth.filter(|depth| *depth > 0);
    let place = call.workspace.locate(path, Access::Read)?;
    let shown = place.shown();
    let metadata = place.dir().metadata(&place.relative);
    if !metadata
        .map_err(|err| Failure::io("look at", &shown, &err))?
        .is_dir()
    {
        return Err(Failure::Failed(format!("`{shown}` is not a directory")));
    }
    let walk = Walk {
        place: &place,
        glob: given(args.glob.as_deref()),
        depth,
        order: Order::Depth,
        call,
    };
    let mut listing = Listing::default();
    let hit_bound = walk.each(|found| {
        listing.add(&place, found);
        Ok(ControlFlow::Continue(()))
    })?;
    listing.count_lines(&place, call)?;
    let text = listing.render(&shown, depth, hit_bound);
    Ok(ToolOutput {
        truncated: hit_bound || text.shown < listing.total,
        value: Value::String(text.text),
        ..ToolOutput::default()
    })
}

#[derive(Default)]
struct Listing {
    entries: Vec<Entry>,
    total: usize,
    files: usize,
    has_lines: bool,
}

struct Entry {
    path: String,
    kind: Kind,
}

enum Kind {
    Directory,
    Link,
    File {
        relative: PathBuf,
        bytes: u64,
        /// Absent if it is not text or was not looked at.
        lines: Option<u64>,
    },
}

struct Rendered {
    text: String,
    shown: usize,
}

impl Listing {
    fn add(&mut self, place: &WorkspacePath<'_>, found: &WalkEntry) {
        self.total += 1;
        self.files += usize::from(!found.metadata.is_dir());
        if self.entries.len() >= ENTRIES_MAX {
            return;
        }
        let kind = if found.metadata.is_dir() {
            Kind::Directory
        } else if found.metadata.is_symlink() {
            Kind::Link
        } else {
            let (relative, bytes) = (found.relative.clone(), found.metadata.len());
            Kind::File {
                relative,
                bytes,
                lines: None,
            }
        };
        let path = place.show(&found.relative);
        self.entries.push(Entry { path, kind });
    }

    /// Counts the lines of all files or of none: a count of some would mislead.
    fn count_lines(&mut self, place: &WorkspacePath<'_>, call: &Call) -> Result<(), Failure> {
        let bytes = self
            .entries
            .iter()
            .map(|entry| entry.bytes().unwrap_or(0))
            .sum::<u64>();
        if self.total > self.entries.len()
            || self.files > COUNTED_FILES_MAX
            || bytes > COUNTED_BYTES_MAX
        {
            return Ok(());
        }
        self.has_lines = self.files > 0;
        for entry in &mut self.entries {
            call.proceed()?;
            if let Kind::File {
                relative, lines, ..
            } = &mut entry.kind
            {
                *lines = lines_of(place, relative, &entry.path);
            }
        }
        Ok(())
    }

    fn render(&self, shown: &str, depth: Option<usize>, hit_bound: bool) -> Rendered {
        let mut body = String::new();
        let mut count = 0;
        for line in self.entries.iter().map(Entry::line) {
            if body.len() + line.len() > RESULT_BYTES_MAX {
                break;
            }
            count += 1;
            body.push_str(&line);
        }
        let mut head = self.head(shown);
        if let Some(depth) = depth {
            head.push_str(&format!(
                "; only {depth} deep, leave out `depth` to look deeper"
            ));
        }
        if count < self.total {
            head.push_str(&format!(
                "; only {count} of {} shown, narrow it by `path`, `glob` or `depth`",
                self.total
            ));
        }
        if hit_bound {
            head.push_str(&format!(
                "; stopped after {VISITED_MAX} entries, there are more"
            ));
        }
        Rendered {
            text: format!("{head}]\n{body}"),
            shown: count,
        }
    }

    fn head(&self, shown: &str) -> String {
        let directories = self.total - self.files;
        let sizes = if self.has_lines {
            "bytes and lines"
        } else {
            "bytes"
        };
        let mut head = format!(
            "[{shown}: {} files with {sizes}, {directories} directories",
            self.files
        );
        if self.files < 2 || self.total > self.entries.len() {
            return head;
        }
        let most = |size: fn(&Entry) -> Option<u64>| {
            // Of equals the first one is named, which `max_by_key` takes last.
            let sized = self
                .entries
                .iter()
                .rev()
                .filter_map(|entry| Some((size(entry)?, &entry.path)));
            sized
                .max_by_key(|(size, _)| *size)
                .filter(|(size, _)| *size > 0)
        };
        if let Some((lines, path)) = most(Entry::lines) {
            head.push_str(&format!("; the longest is {path} with {lines} lines"));
        }
        if let Some((bytes, path)) = most(Entry::bytes) {
            head.push_str(&format!("; the largest is {path} with {bytes} bytes"));
        }
        head
    }
}

impl Entry {
    fn bytes(&self) -> Option<u64> {
        match self.kind {
            Kind::File { bytes, .. } => Some(bytes),
            Kind::Directory | Kind::Link => None,
        }
    }

    fn lines(&self) -> Option<u64> {
        match self.kind {
            Kind::File { lines, .. } => lines,
            Kind::Directory | Kind::Link => None,
        }
    }

    fn line(&self) -> String {
        let path = &self.path;
        match &self.kind {
            Kind::Directory => format!("{path}/\n"),
            Kind::Link => format!("{path}@\n"),
            Kind::File {
                bytes,
                lines: Some(lines),
                ..
            } => format!("{path}\t{bytes}\t{lines}\n"),
            Kind::File {
                bytes, lines: None, ..
            } => format!("{path}\t{bytes}\n"),
        }
    }
}

/// Counts lines as people do: a last one without its end counts too. `None` for what is not text.
fn lines_of(place: &WorkspacePath<'_>, relative: &Path, shown: &str) -> Option<u64> {
    let (file, _) = open_regular(place.dir(), relative, shown).ok()?;
    let mut reader = BufReader::new(file.take(COUNTED_BYTES_MAX));
    let probe = reader.fill_buf().ok()?;
    if probe.iter().take(TEXT_PROBE_BYTES).any(|byte| *byte == 0) {
        return None;
    }
    let (mut lines, mut last) = (0, b'\n');
    loop {
        let piece = reader.fill_buf().ok()?;
        let Some(end) = piece.last() else { break };
        last = *end;
        lines += piece
            .iter()
            .map(|byte| u64::from(*byte == b'\n'))
            .sum::<u64>();
        let length = piece.len();
        reader.consume(length);
    }
    Some(lines + u64::from(last != b'\n'))
}

use crate::blocking::{self, Call, given};
use crate::failure::Failure;
use crate::walk::{Found, VISITED_MAX, Walk};
use crate::workspace::{Access, Place, Workspace};
use async_trait::async_trait;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{Concurrency, Effects, Recovery, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The bound on entries of one result.
const ENTRIES_MAX: usize = 1_000;

/// The bound on the text of one result.
const RESULT_BYTES_MAX: usize = 50_000;

/// Lists files: `list_files {path?, glob?, depth?}`.
///
/// The result is text: a line in brackets with the counts, then one path a line, sorted;
/// directories end in `/`, files are followed by a tab and their size in bytes, links by `@`.
/// Hidden entries and those that a `.gitignore` names are left out. At most 1,000 entries and
/// 50,000 bytes.
#[derive(Debug)]
pub struct ListFiles {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize)]
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
            description: "Lists the files beneath a directory with their sizes in bytes. Leaves \
                          out hidden files and those that .gitignore names."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The directory. Default: the working directory."},
                    "glob": {"type": "string", "description": "Lists only files that match, as `*.rs` or `src/**/*.toml`."},
                    "depth": {"type": "integer", "minimum": 0, "description": "How many levels deep at most; all if left out."}
                },
                "additionalProperties": false
            }),
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Shared,
            recovery: Recovery::ReadOnly,
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
        return Err(Failure::Failed(format!("`{shown}` is no directory")));
    }
    let walk = Walk {
        place: &place,
        glob: given(args.glob.as_deref()),
        depth,
        call,
    };
    let mut listing = Listing::default();
    let hit_bound = walk.each(|found| {
        listing.add(&place, found);
        Ok(ControlFlow::Continue(()))
    })?;
    let truncated = hit_bound || listing.shown < listing.total;
    Ok(ToolOutput {
        value: Value::String(listing.render(&shown, depth, hit_bound)),
        truncated,
        ..ToolOutput::default()
    })
}

#[derive(Default)]
struct Listing {
    body: String,
    shown: usize,
    total: usize,
    files: usize,
    /// The largest file: what is asked of listings most, and small models compare badly.
    largest: Option<(u64, String)>,
}

impl Listing {
    fn add(&mut self, place: &Place<'_>, found: &Found) {
        self.total += 1;
        self.files += usize::from(!found.metadata.is_dir());
        let size = found.metadata.len();
        let is_larger = self
            .largest
            .as_ref()
            .is_none_or(|(largest, _)| size > *largest);
        if found.metadata.is_file() && is_larger {
            self.largest = Some((size, place.show(&found.relative)));
        }
        let line = line(place, found);
        if self.shown < ENTRIES_MAX && self.body.len() + line.len() <= RESULT_BYTES_MAX {
            self.shown += 1;
            self.body.push_str(&line);
        }
    }

    fn render(&self, shown: &str, depth: Option<usize>, hit_bound: bool) -> String {
        let directories = self.total - self.files;
        let mut head = format!(
            "[{shown}: {} files with sizes in bytes, {directories} directories",
            self.files
        );
        if let Some((size, path)) = self
            .largest
            .as_ref()
            .filter(|(size, _)| self.files > 1 && *size > 0)
        {
            head.push_str(&format!("; the largest file is {path} with {size}"));
        }
        if let Some(depth) = depth {
            head.push_str(&format!(
                "; only {depth} deep, leave out `depth` to look deeper"
            ));
        }
        if self.shown < self.total {
            head.push_str(&format!(
                "; only {} of {} shown, narrow it by `path`, `glob` or `depth`",
                self.shown, self.total
            ));
        }
        if hit_bound {
            head.push_str(&format!(
                "; stopped after {VISITED_MAX} entries, there are more"
            ));
        }
        format!("{head}]\n{}", self.body)
    }
}

fn line(place: &Place<'_>, found: &Found) -> String {
    let path = place.show(&found.relative);
    if found.metadata.is_dir() {
        format!("{path}/\n")
    } else if found.metadata.is_symlink() {
        format!("{path}@\n")
    } else {
        format!("{path}\t{}\n", found.metadata.len())
    }
}

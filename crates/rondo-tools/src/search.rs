//! The tool `search_files`.

use crate::blocking::{self, Call, given};
use crate::failure::Failure;
use crate::walk::{Order, Walk, WalkEntry};
use crate::workspace::{Access, Workspace, WorkspacePath, open_regular};
use async_trait::async_trait;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish,
    SinkMatch,
};
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::text::{first_chars, with_mark};
use rondo_types::{ToolKind, ToolOutcome, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Matching lines of one result, unless the call says otherwise.
const RESULTS_DEFAULT: usize = 100;

/// The bound on matching lines of one result.
const RESULTS_MAX: usize = 1_000;

/// The bound on lines around a match.
const CONTEXT_LINES_MAX: usize = 10;

/// The bound on the text of one result.
const RESULT_BYTES_MAX: usize = 50_000;

/// The bound on one line, in characters; the rest is left out.
const LINE_CHARS_MAX: usize = 400;

/// The bound on a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4_000;

/// The bound on a compiled pattern and on the tables of its search, in bytes each.
const REGEX_BYTES_MAX: usize = 10 << 20;

/// The bound on memory for the lines of one file; a file with a longer line is left out.
const HEAP_BYTES_MAX: usize = 4 << 20;

/// The bound on bytes read by one call.
const SCAN_BYTES_MAX: u64 = 8 << 30;

/// Searches files: `search_files {pattern, path?, glob?, case_insensitive?, context?, max_results?}`.
///
/// The pattern is a regular expression of the `regex` crate and matches within a line. The result
/// is text: a line in brackets with the counts, then for each file its path and the lines as
/// `12:text`, lines around them as `11-text`. Hidden, ignored and binary files are left out. At
/// most 1,000 matching lines and 50,000 bytes; lines are cut at 400 characters.
#[derive(Debug)]
pub struct SearchFiles {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    case_insensitive: Option<bool>,
    context: Option<usize>,
    max_results: Option<usize>,
}

impl SearchFiles {
    /// Builds the tool over a workspace.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

#[async_trait]
impl Tool for SearchFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_files".to_owned(),
            description: "Searches the lines of files for a regular expression, except hidden, \
                          binary and gitignored files."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "In Rust's syntax; matches within a line."},
                    "path": {"type": "string", "description": "A directory or file."},
                    "glob": {"type": "string", "description": "Such as `*.rs` or `src/**/*.toml`."},
                    "case_insensitive": {"type": "boolean"},
                    "context": {"type": "integer", "description": "Lines around each match."},
                    "max_results": {"type": "integer", "description": "Default 100, at most 1000."}
                },
                "required": ["pattern"]
            }),
            ..ToolSpec::read_only(ToolKind::Search)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        blocking::run(&self.workspace, invocation, search).await
    }
}

fn search(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    let place = call
        .workspace
        .locate(given(args.path.as_deref()).unwrap_or("."), Access::Read)?;
    let mut search = Search {
        matcher: matcher(args)?,
        searcher: searcher(args.context.unwrap_or(0).min(CONTEXT_LINES_MAX)),
        report: Report {
            max: args
                .max_results
                .filter(|max| *max > 0)
                .unwrap_or(RESULTS_DEFAULT)
                .min(RESULTS_MAX),
            ..Report::default()
        },
        budget: SCAN_BYTES_MAX,
        call,
    };
    let metadata = place.dir().metadata(&place.relative);
    let metadata = metadata.map_err(|err| Failure::io("look at", &place.shown(), &err))?;
    if metadata.is_dir() {
        search.directory(&place, given(args.glob.as_deref()))?;
    } else {
        // A named file that cannot be searched is an error; one that a walk meets is left out.
        place.open_file()?;
        search.file(&place, &place.relative)?;
    }
    let report = search.report;
    Ok(ToolOutput {
        value: Value::String(report.render(&args.pattern)),
        truncated: report.more || report.cut,
        ..ToolOutput::default()
    })
}

fn matcher(args: &Args) -> Result<RegexMatcher, Failure> {
    let bad = |what: &str| Failure::InvalidArgs(format!("`pattern` is invalid: {what}"));
    if args.pattern.len() > PATTERN_BYTES_MAX {
        return Err(bad("too long"));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(args.case_insensitive.unwrap_or(false))
        .multi_line(true)
        .crlf(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .build(&args.pattern)
        .map_err(|err| bad(&err.to_string()))
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        // The regex engine's own: `$` then matches before CRLF as before a line feed.
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(HEAP_BYTES_MAX))
        .build()
}

struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    report: Report,
    budget: u64,
    call: &'a Call,
}

impl Search<'_> {
    fn directory(&mut self, place: &WorkspacePath<'_>, glob: Option<&str>) -> Result<(), Failure> {
        let walk = Walk {
            place,
            glob,
            depth: None,
            order: Order::Depth,
            call: self.call,
        };
        let hit_bound = walk.each(|found: &WalkEntry| {
            if found.metadata.is_file() {
                self.file(place, &found.relative)?;
            }
            let is_done = self.report.more || self.budget == 0;
            Ok(if is_done {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        self.report.more |= hit_bound || self.budget == 0;
        Ok(())
    }

    fn file(&mut self, place: &WorkspacePath<'_>, relative: &Path) -> Result<(), Failure> {
        let shown = place.show(relative);
        let Ok((file, _)) = open_regular(place.dir(), relative, &shown) else {
            self.report.skipped += 1;
            return Ok(());
        };
        let reader = Metered {
            inner: file,
            budget: &mut self.budget,
            call: self.call,
        };
        let sink = FileSink {
            report: &mut self.report,
            shown: &shown,
            is_named: false,
        };
        let done = self.searcher.search_reader(&self.matcher, reader, sink);
        self.call.proceed()?;
        match done {
            Ok(()) => self.report.searched += 1,
            Err(_) => self.report.skipped += 1,
        }
        Ok(())
    }
}

/// Counts what is read, and stops when the call is cancelled or has read enough.
struct Metered<'a, R> {
    inner: R,
    budget: &'a mut u64,
    call: &'a Call,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.call.cancel.is_cancelled() || *self.budget == 0 {
            return Err(io::Error::other("stopped"));
        }
        let count = self.inner.read(buffer)?;
        *self.budget = self
            .budget
            .saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}

#[derive(Default)]
struct Report {
    body: String,
    max: usize,
    matches: usize,
    files: usize,
    searched: usize,
    skipped: usize,
    /// Set if the search ended early.
    more: bool,
    /// Set if a line was cut.
    cut: bool,
}

impl Report {
    fn render(&self, pattern: &str) -> String {
        let mut head = format!(
            "[`{pattern}`: {} matching lines in {} files, {} searched",
            self.matches, self.files, self.searched
        );
        if self.skipped > 0 {
            head.push_str(&format!(", {} could not be searched", self.skipped));
        }
        if self.more {
            head.push_str("; there is more, narrow it by `path`, `glob` or `pattern`");
        }
        format!("{head}]\n{}", self.body)
    }
}

struct FileSink<'a> {
    report: &'a mut Report,
    shown: &'a str,
    is_named: bool,
}

impl FileSink<'_> {
    /// Adds a line; returns false if there is no room for it.
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let head = first_chars(text, LINE_CHARS_MAX);
        let is_cut = head.len() < text.len();
        let number = number.unwrap_or(0);
        let mut line = format!("{number}{mark}{}\n", with_mark(head, text, " [cut]"));
        if !self.is_named {
            line = format!("{}\n{line}", self.shown);
        }
        if self.report.body.len() + line.len() > RESULT_BYTES_MAX {
            self.report.more = true;
            return false;
        }
        self.report.cut |= is_cut;
        self.report.files += usize::from(!self.is_named);
        self.is_named = true;
        self.report.body.push_str(&line);
        true
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.report.matches == self.report.max {
            self.report.more = true;
            return Ok(false);
        }
        let fits = self.push(found.line_number(), ':', found.bytes());
        self.report.matches += usize::from(fits);
        Ok(fits)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.push(around.line_number(), '-', around.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.report.body.push_str("--\n");
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> io::Result<()> {
        if self.is_named {
            self.report.body.push('\n');
        }
        Ok(())
    }
}

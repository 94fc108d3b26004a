//! The tool `read_file`.

use crate::blocking::{self, Call};
use crate::documents::DocumentReader;
use crate::encoding::Encoding;
use crate::failure::Failure;
use crate::lines::{Line, Lines};
use crate::seen;
use crate::workspace::{Access, Workspace};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rondo_core::ports::{Tool, ToolInvocation};
use rondo_types::{
    ContentBlock, Media, MediaKind, MediaSource, ToolKind, ToolOutcome, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Read;
use std::sync::Arc;

/// The bound on lines of one result.
const LINES_MAX: u64 = 2_000;

/// The bound on the text of one result.
const RESULT_BYTES_MAX: usize = 50_000;

/// The bound on one line; the rest is left out and counted.
const LINE_BYTES_MAX: usize = 2_000;

/// The bound on a PDF.
const PDF_BYTES_MAX: u64 = 16 << 20;

/// How a PDF begins.
const PDF: &[u8] = b"%PDF-";

/// The bound on an image.
const IMAGE_BYTES_MAX: u64 = 5 << 20;

/// The byte order mark of UTF-8.
pub(crate) const BOM: char = '\u{feff}';

/// Reads a file, or some of its lines: `read_file {path, offset?, limit?}`.
///
/// The result is text: a line in brackets that says what was read and where to continue, then the
/// lines, without carriage returns and without a byte order mark, both of which the first line
/// mentions. At most 2,000 lines and 50,000 bytes; lines are cut at 2,000 bytes. Never reads more
/// than it needs to get there. PNG, JPEG, GIF and WebP images up to 5 MiB come as media, PDFs up to
/// 16 MiB as the lines of their text if there is a reader for them; other binary files are refused.
#[derive(Debug)]
pub struct ReadFile {
    workspace: Arc<Workspace>,
    documents: Option<Arc<dyn DocumentReader>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl ReadFile {
    /// Builds the tool over a workspace.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            workspace,
            documents: None,
        }
    }

    /// Returns the tool with a reader of PDFs.
    #[must_use]
    pub fn with_documents(self, documents: Option<Arc<dyn DocumentReader>>) -> Self {
        Self { documents, ..self }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        let shown = match self.documents {
            Some(_) => "a text file, an image or a PDF",
            None => "a text file or an image",
        };
        ToolSpec {
            name: "read_file".to_owned(),
            description: format!(
                "Reads {shown}. The first line of the result says what was read and where to go on."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "offset": {"type": "integer", "description": "First line, from 1."},
                    "limit": {"type": "integer", "description": "Lines; default and at most 2000."}
                },
                "required": ["path"]
            }),
            ..ToolSpec::read_only(ToolKind::Read)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let documents = self.documents.clone();
        blocking::run_reading(&self.workspace, documents, invocation, read).await
    }
}

fn read(args: &Args, call: &Call) -> Result<ToolOutput, Failure> {
    let place = call.workspace.locate(&args.path, Access::Read)?;
    let shown = place.shown();
    let (file, metadata) = place.open_file()?;
    let mut lines = Lines::new(file, call);
    let head = lines
        .probe()
        .map_err(|err| Failure::io("read", &shown, &err))?;
    if let Some(mime) = image_type(head) {
        return image(lines.into_reader(), mime, &shown);
    }
    if head.starts_with(PDF) && call.reads_documents() {
        return pdf(args, call, lines.into_reader(), &shown);
    }
    if head.contains(&0) {
        if let Some(encoding) = Encoding::of(head) {
            return Err(Failure::Failed(encoding.described(&shown)));
        }
        return Err(Failure::Failed(format!(
            "`{shown}` is a binary file of {} bytes",
            metadata.len()
        )));
    }
    let first = args.offset.unwrap_or(1).max(1);
    skip(&mut lines, first, &shown)?;
    let limit = args.limit.filter(|limit| *limit > 0);
    let part = Part::read(&mut lines, first, limit, &shown)?;
    seen::note_read(call, &place, metadata.len());
    Ok(ToolOutput {
        truncated: part.is_truncated(limit),
        value: Value::String(part.render(&shown, metadata.len())),
        ..ToolOutput::default()
    })
}

fn skip<R: Read>(lines: &mut Lines<'_, R>, first: u64, shown: &str) -> Result<(), Failure> {
    for line in 1..first {
        if lines.next(0, shown)?.is_none() {
            return Err(Failure::Failed(format!(
                "offset {first} is past the end of `{shown}`, which has {} lines",
                line - 1
            )));
        }
    }
    Ok(())
}

/// The lines that were read, and what was changed to show them.
#[derive(Default)]
struct Part {
    body: String,
    first: u64,
    count: u64,
    more: bool,
    full: bool,
    cut: u64,
    has_crlf: bool,
    has_bom: bool,
    is_lossy: bool,
}

impl Part {
    fn read<R: Read>(
        lines: &mut Lines<'_, R>,
        first: u64,
        limit: Option<u64>,
        shown: &str,
    ) -> Result<Self, Failure> {
        let mut part = Self {
            first,
            ..Self::default()
        };
        let limit = limit.unwrap_or(LINES_MAX).min(LINES_MAX);
        while part.count < limit {
            let Some(line) = lines.next(LINE_BYTES_MAX, shown)? else {
                return Ok(part);
            };
            if !part.push(&line) {
                part.more = true;
                part.full = true;
                return Ok(part);
            }
        }
        let rest = lines.probe();
        part.more = !rest
            .map_err(|err| Failure::io("read", shown, &err))?
            .is_empty();
        Ok(part)
    }

    /// Adds a line; returns false if there is no room for it.
    fn push(&mut self, line: &Line) -> bool {
        let is_crlf = line.ended && line.cut == 0 && line.kept.ends_with(b"\r");
        let kept = line.kept.strip_suffix(b"\r").filter(|_| is_crlf);
        let mut text = self.decode(kept.unwrap_or(&line.kept), line.cut > 0);
        if self.first == 1 && self.count == 0 && text.starts_with(BOM) {
            text.remove(0);
            self.has_bom = true;
        }
        if line.cut > 0 {
            self.cut += 1;
            // Writing to a string cannot fail.
            let _ = write!(text, " [{} bytes left out]", line.cut);
        }
        if line.ended {
            text.push('\n');
        }
        if self.body.len() + text.len() > RESULT_BYTES_MAX {
            return false;
        }
        self.body.push_str(&text);
        self.has_crlf |= is_crlf;
        self.count += 1;
        true
    }

    fn decode(&mut self, bytes: &[u8], is_cut: bool) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            // A character that the cut itself split is left out, not replaced.
            let is_split = is_cut && chunks.peek().is_none();
            if !chunk.invalid().is_empty() && !is_split {
                text.push(char::REPLACEMENT_CHARACTER);
                self.is_lossy = true;
            }
        }
        text
    }

    fn is_truncated(&self, limit: Option<u64>) -> bool {
        let asked = limit.is_some_and(|limit| limit <= LINES_MAX);
        self.cut > 0 || (self.more && (self.full || !asked))
    }

    fn render(&self, shown: &str, bytes: u64) -> String {
        format!("[{shown}: {}]\n{}", self.describe(bytes), self.body)
    }

    fn describe(&self, bytes: u64) -> String {
        let last = self.first + self.count.saturating_sub(1);
        let mut text = match (self.count, self.more) {
            (0, _) => format!("no lines, {bytes} bytes"),
            (_, true) => format!(
                "lines {}-{last} of a file of {bytes} bytes; next offset {}",
                self.first,
                last + 1
            ),
            (_, false) => format!("lines {}-{last} of {last}, {bytes} bytes", self.first),
        };
        let notes = [
            (self.cut > 0, "long lines cut"),
            (self.has_crlf, "lines end in CRLF"),
            (self.has_bom, "starts with a byte order mark"),
            (
                self.is_lossy,
                "not all UTF-8 (`iconv -f WINDOWS-1252 -t UTF-8` reads Latin-1 and Windows-1252)",
            ),
        ];
        for (_, note) in notes.iter().filter(|(applies, _)| *applies) {
            text.push_str("; ");
            text.push_str(note);
        }
        text
    }
}

fn image_type(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if head.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

/// Returns lines of the text of a PDF.
fn pdf(args: &Args, call: &Call, reader: impl Read, shown: &str) -> Result<ToolOutput, Failure> {
    let bytes = whole(reader, PDF_BYTES_MAX, "a PDF", shown)?;
    let Some(read) = call.pdf(bytes) else {
        return Err(Failure::Failed(format!("`{shown}` is a PDF")));
    };
    let read = read.map_err(|failure| match failure {
        Failure::Failed(problem) => {
            Failure::Failed(format!("`{shown}` is a PDF that cannot be read: {problem}"))
        }
        other => other,
    })?;
    let mut lines = Lines::new(read.text.as_bytes(), call);
    let first = args.offset.unwrap_or(1).max(1);
    skip(&mut lines, first, shown)?;
    let limit = args.limit.filter(|limit| *limit > 0);
    let part = Part::read(&mut lines, first, limit, shown)?;
    let bytes = u64::try_from(read.text.len()).unwrap_or(u64::MAX);
    Ok(ToolOutput {
        truncated: part.is_truncated(limit),
        value: Value::String(part.render(&format!("{shown}, {} as text", read.note), bytes)),
        ..ToolOutput::default()
    })
}

/// Reads a file that counts as a whole or not at all.
fn whole(reader: impl Read, max: u64, what: &str, shown: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(|err| Failure::io("read", shown, &err))?;
    match u64::try_from(bytes.len()).unwrap_or(u64::MAX) > max {
        true => Err(Failure::Failed(format!(
            "`{shown}` is {what} of more than {max} bytes"
        ))),
        false => Ok(bytes),
    }
}

fn image(reader: impl Read, mime: &str, shown: &str) -> Result<ToolOutput, Failure> {
    let bytes = whole(reader, IMAGE_BYTES_MAX, "an image", shown)?;
    let length = bytes.len();
    Ok(ToolOutput {
        value: Value::String(format!("[{shown}: {mime}, {length} bytes]")),
        blocks: vec![ContentBlock::Media(Media {
            kind: MediaKind::Image,
            mime: mime.to_owned(),
            name: Some(shown.to_owned()),
            source: MediaSource::Base64(STANDARD.encode(&bytes)),
        })],
        ..ToolOutput::default()
    })
}

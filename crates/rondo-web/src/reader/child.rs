//! The process that reads one document from its standard input.

use super::protocol::{
    Answer, DOCUMENT_BYTES_MAX, Document, LINE_BYTES_MAX, ROLE, ReadText, TEXT_BYTES_MAX,
};
use super::{html, pdf, unix};
use std::io::{self, BufRead as _, Read as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

static HOOKED: AtomicBool = AtomicBool::new(false);

/// Reads a document and never returns, if the program was started for that.
///
/// Must be called in `main` before the hook of supervisors. Otherwise it only notes that this program can be started to
/// read documents.
pub fn run_if_requested() {
    ROLE.serve_if_requested();
    HOOKED.store(true, Ordering::Release);
}

/// Returns whether `main` called [`run_if_requested`].
pub(super) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Acquire)
}

/// Reads the document, and writes its text; returns the exit code.
pub(super) fn serve() -> i32 {
    // A library's message about a document it does not understand is nothing for a terminal.
    panic::set_hook(Box::new(|_| {}));
    let answer = unix::limit().and_then(|()| read(io::stdin().lock()));
    let answer = answer.unwrap_or_else(|error| Answer::Failed(error.to_string()));
    match write(&answer, io::stdout().lock()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn read(input: impl io::BufRead) -> io::Result<Answer> {
    let mut line = Vec::new();
    let line_max = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut input = input.take(line_max);
    input.read_until(b'\n', &mut line)?;
    let document: Document = serde_json::from_slice(&line)?;
    input.set_limit(u64::try_from(DOCUMENT_BYTES_MAX).unwrap_or(u64::MAX));
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let read = panic::catch_unwind(|| match &document {
        Document::Html { url, whole } => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(html::read(&text, url, *whole))
        }
        Document::Pdf => pdf::read(&bytes),
    });
    Ok(match read {
        Ok(Ok(read)) => Answer::Read(bounded(read)),
        Ok(Err(problem)) => Answer::Failed(problem),
        Err(_) => Answer::Failed("it is broken".to_owned()),
    })
}

fn bounded(mut read: ReadText) -> ReadText {
    if read.text.len() > TEXT_BYTES_MAX {
        let end = read.text.floor_char_boundary(TEXT_BYTES_MAX);
        read.text.truncate(end);
        read.is_cut = true;
    }
    read
}

fn write(answer: &Answer, mut output: impl io::Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    output.write_all(&line)?;
    if let Answer::Read(read) = answer {
        output.write_all(read.text.as_bytes())?;
    }
    output.flush()
}

//! The text of a PDF, page by page.

use super::protocol::{ReadText, TEXT_BYTES_MAX};
use pdf_extract::{Document, PlainTextOutput, output_doc_page};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The bound on pages.
const PAGES_MAX: usize = 500;
/// The bound on pages that are named since they could not be read.
const UNREADABLE_MAX: usize = 20;

/// Reads a PDF. A page that cannot be read is left out and named.
///
/// # Errors
/// Says why there is no text at all.
pub(super) fn read(bytes: &[u8]) -> Result<ReadText, String> {
    let mut document =
        Document::load_mem(bytes).map_err(|_| "it is not a PDF, or it is broken".to_owned())?;
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err("it is protected by a password".to_owned());
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let mut read = ReadText {
        pages: Some(pages.len()),
        ..ReadText::default()
    };
    for number in pages {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if index > PAGES_MAX || read.text.len() > TEXT_BYTES_MAX {
            read.is_cut = true;
            break;
        }
        match catch_unwind(AssertUnwindSafe(|| page(&document, number))) {
            Ok(Some(text)) => {
                let text = text.trim();
                if !text.is_empty() {
                    // Writing to a string cannot fail.
                    let _ = write!(read.text, "[page {number}]\n{text}\n\n");
                }
            }
            Ok(None) | Err(_) if read.unreadable.len() < UNREADABLE_MAX => {
                read.unreadable.push(index);
            }
            Ok(None) | Err(_) => {}
        }
    }
    match (read.text.is_empty(), read.unreadable.is_empty()) {
        (true, true) => Err("it has no text; its pages may be images".to_owned()),
        (true, false) => Err("none of its pages can be read".to_owned()),
        (false, _) => Ok(read),
    }
}

fn page(document: &Document, number: u32) -> Option<String> {
    let mut text = String::new();
    let mut output = PlainTextOutput::new(&mut text);
    output_doc_page(document, &mut output, number).ok()?;
    Some(text)
}

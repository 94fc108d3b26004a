//! Messages on the pipes of the process that reads documents: a line of JSON, and behind it the document or the text.

use rondo_launch::ChildRole;
use serde::{Deserialize, Serialize};

/// The bound on a document, in bytes.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 32 << 20;
/// The bound on its text, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 2 << 20;
/// The bound on the line of JSON.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 10;

/// The work of the process.
pub(crate) const ROLE: ChildRole = ChildRole {
    name: "read-document",
    serve: super::child::serve,
};

/// Kind of document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Document {
    /// HTML as UTF-8.
    Html {
        /// The address that links are relative to.
        url: String,
        /// Reads the whole page with its navigation, not only its article.
        whole: bool,
    },
    /// A PDF.
    Pdf,
}

/// The text of a document, and what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadText {
    /// Title of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The number of its pages, of a PDF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<usize>,
    /// The numbers of the first pages that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<usize>,
    /// Set if the end of the text is left out.
    #[serde(default)]
    pub is_cut: bool,
    /// The text. In the pipe it follows the line.
    #[serde(skip)]
    pub text: String,
}

/// Reply of the process, on a line of its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The text follows.
    Read(ReadText),
    /// There is none.
    Failed(String),
}

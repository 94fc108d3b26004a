//! Reading documents that are not text, such as PDFs, by a reader that the host brings.

use async_trait::async_trait;
use std::fmt;

/// The text of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentText {
    /// The text.
    pub text: String,
    /// Note about it, such as the number of pages.
    pub note: String,
}

/// Reads documents. A reader must hold itself to bounds on time and memory: what it reads may be made to break them.
#[async_trait]
pub trait DocumentReader: fmt::Debug + Send + Sync {
    /// Returns the text of a PDF.
    ///
    /// # Errors
    /// Says why there is none.
    ///
    /// # Cancel safety
    /// Dropping it ends the work.
    async fn pdf(&self, bytes: Vec<u8>) -> Result<DocumentText, String>;
}

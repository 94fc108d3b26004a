//! The errors of an embedded model.

use std::path::PathBuf;

/// Why an embedded model cannot be opened or asked.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The file cannot be read.
    #[error("failed to read the weights `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// The file is not the GGUF it should be.
    #[error("`{}` is not a GGUF file that can be used: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Problem with the file.
        message: String,
    },
    /// The file holds a model of another kind.
    #[error("{what} `{found}` is not supported; supported are {known}")]
    Unsupported {
        /// Unsupported property, such as `architecture`.
        what: &'static str,
        /// Value in the file.
        found: String,
        /// Supported values, in backticks.
        known: &'static str,
    },
    /// The tensors cannot be computed with.
    #[error("inference failed: {0}")]
    Inference(String),
    /// The shape of the reply cannot be turned into a grammar.
    #[error("the reply's grammar cannot be built: {0}")]
    Grammar(String),
    /// The conversation does not fit the context.
    #[error("the conversation takes {needed} tokens, and the model's context holds {context}")]
    ContextTooLong {
        /// Tokens of the prompt, with room for the reply.
        needed: usize,
        /// Tokens that fit.
        context: usize,
    },
    /// A thread could not be started.
    #[error("failed to start the model's thread")]
    Thread(#[source] std::io::Error),
}

/// Cuts what follows the first line of another crate's error, which does not help a user.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

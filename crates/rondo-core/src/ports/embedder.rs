//! The port to a model that makes vectors of texts.

use async_trait::async_trait;
use rondo_types::ModelError;

/// Use of a vector. Some models make different ones of a text that is stored and of a question about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingUse {
    /// The text is kept, to be found.
    Stored,
    /// The text is what others are searched with.
    Query,
}

/// A model that makes vectors of texts, such that texts about the same point in similar directions.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns its name as `provider/model`. Vectors of models with different names are never compared.
    fn name(&self) -> String;

    /// Returns how much a rank by its vectors counts beside one by words, which counts 1.
    fn weight(&self) -> f64 {
        1.0
    }

    /// Returns how many texts a request may have, at least 1. The vectors of one request are kept before the next.
    fn texts_max(&self) -> usize {
        64
    }

    /// Returns one vector for each text, in order, all of the same length.
    ///
    /// # Errors
    /// As a request to a model.
    ///
    /// # Cancel safety
    /// Dropping it ends the request. It sets no timer of its own.
    async fn embed(
        &self,
        texts: &[String],
        used: EmbeddingUse,
    ) -> Result<Vec<Vec<f32>>, ModelError>;
}

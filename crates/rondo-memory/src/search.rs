//! One search: the index brought up to the files, the query embedded if there is a model for it, and both ranked.

use crate::error::MemoryError;
use crate::index::{Index, Query, QueryVector, Ranked, Terms, Vectors};
use crate::memories::Memories;
use crate::notes::Memory;
use rondo_core::ports::{Embedder, EmbeddingUse};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The bound on memories that a search returns.
pub const RESULTS_MAX: usize = 20;
/// The bound on a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 1 << 10;
/// The bound on texts that a search embeds which had no vector yet; those beyond follow with the next searches.
const EMBEDDED_MAX: usize = 256;
/// The bound on the bytes of one text; the rest of a longer one is not embedded.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// How long vectors are waited for, that of the query and those of memories together. Without the first, words alone
/// count; of the others, those that are there.
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(10);

/// A memory that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The memory.
    pub memory: Memory,
    /// How well it fits; comparable within one search only.
    pub score: f64,
}

/// Result of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchResults {
    /// The memories, the best first.
    pub hits: Vec<Hit>,
    /// Parts that were not searched, with reasons.
    pub notes: Vec<String>,
}

impl Memories {
    /// Returns at most `limit` memories, at least 1 and at most [`RESULTS_MAX`], that fit the query best.
    ///
    /// # Errors
    /// When the query is empty or too long, or a directory of memories cannot be read. Without vectors, words
    /// alone count, which the notes say.
    ///
    /// # Cancel safety
    /// Dropping it ends a request for vectors; work on the index continues to its end.
    pub async fn search(&self, query: &str, limit: usize) -> Result<SearchResults, MemoryError> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(MemoryError::QueryTooLong {
                bytes: query.len(),
                bytes_max: QUERY_BYTES_MAX,
            });
        }
        let terms = Terms::of(query);
        if terms.is_empty() {
            return Err(MemoryError::EmptyQuery);
        }
        let mut notes = self.blocking(|memories| memories.refresh()).await?;
        let vector = match &self.embedder {
            None => None,
            Some(embedder) => self.vectors(embedder, query, &mut notes).await,
        };
        let limit = limit.clamp(1, RESULTS_MAX);
        let ranked = self.blocking(move |memories| {
            memories.ranked(&Query {
                terms,
                vector,
                limit,
            })
        });
        let hits = ranked
            .await?
            .into_iter()
            .map(|Ranked { memory, score }| Hit { memory, score });
        Ok(SearchResults {
            hits: hits.collect(),
            notes,
        })
    }

    /// Brings the index up to the files. Returns what was not read, and why.
    pub(crate) fn refresh(&self) -> Result<Vec<String>, MemoryError> {
        let folders: Vec<_> = self.folders().collect();
        self.index().refresh(&folders)
    }

    fn ranked(&self, query: &Query) -> Result<Vec<Ranked>, MemoryError> {
        let folders: Vec<_> = self.folders().collect();
        self.index().search(&folders, query)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the query's vector, and makes those that memories still lack, as far as the time goes.
    async fn vectors(
        &self,
        embedder: &Arc<dyn Embedder>,
        query: &str,
        notes: &mut Vec<String>,
    ) -> Option<QueryVector> {
        let mut numbers = None;
        let made = timeout(EMBEDDING_TIMEOUT, async {
            numbers = Some(self.embed_query(embedder, query).await?);
            self.embed_pending(embedder).await
        });
        let made = made.await.unwrap_or_else(|_| {
            Err(match &numbers {
                None => format!("no vectors came within {EMBEDDING_TIMEOUT:?}"),
                Some(_) => format!(
                    "not all memories got vectors within {EMBEDDING_TIMEOUT:?}; the next searches make the others"
                ),
            })
        });
        notes.extend(made.err());
        Some(QueryVector {
            model: embedder.name(),
            numbers: numbers?,
            weight: embedder.weight(),
        })
    }

    async fn embed_query(
        &self,
        embedder: &Arc<dyn Embedder>,
        query: &str,
    ) -> Result<Vec<f32>, String> {
        let query = [self.sendable(query)];
        let vectors = embedded(embedder, &query, EmbeddingUse::Query).await?;
        vectors
            .into_iter()
            .next()
            .ok_or_else(|| "no vector came for the query".to_owned())
    }

    /// Embeds texts that have no vector yet, and keeps the vectors of each request.
    async fn embed_pending(&self, embedder: &Arc<dyn Embedder>) -> Result<(), String> {
        let model = embedder.name();
        let failed = |err: MemoryError| err.line();
        let of = model.clone();
        let pending = self.blocking(move |memories| {
            let folders: Vec<_> = memories.folders().collect();
            memories.index().pending(&folders, &of, EMBEDDED_MAX)
        });
        let pending = pending.await.map_err(failed)?;
        for chunk in pending.chunks(embedder.texts_max().max(1)) {
            let texts: Vec<String> = chunk.iter().map(|it| self.sendable(&it.text)).collect();
            let vectors = embedded(embedder, &texts, EmbeddingUse::Stored).await?;
            let contents = chunk.iter().map(|it| it.content.clone());
            let vectors: Vectors = contents.zip(vectors).collect();
            let of = model.clone();
            let kept = self.blocking(move |memories| memories.index().keep(&of, &vectors));
            kept.await.map_err(failed)?;
        }
        Ok(())
    }

    /// Returns a text as it may be sent to a provider.
    fn sendable(&self, text: &str) -> String {
        let mut text = self.secrets.text(text.to_owned());
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text
    }

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let memories = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&memories)).await;
        done.unwrap_or(Err(MemoryError::Ended))
    }
}

async fn embedded(
    embedder: &Arc<dyn Embedder>,
    texts: &[String],
    used: EmbeddingUse,
) -> Result<Vec<Vec<f32>>, String> {
    let vectors = embedder.embed(texts, used).await;
    let vectors = vectors.map_err(|err| format!("`{}` made no vectors: {err}", embedder.name()))?;
    match vectors.len() == texts.len() {
        true => Ok(vectors),
        false => Err(format!(
            "`{}` made {} vectors of {} texts",
            embedder.name(),
            vectors.len(),
            texts.len()
        )),
    }
}

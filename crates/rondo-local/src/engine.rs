//! The interface of an inference engine, behind which one can replace another.

use crate::cache::Lane;
use crate::error::LocalError;
use crate::fingerprint::{Fingerprint, fingerprint};
use crate::gguf::Gguf;
use crate::kernels::{Instructions, Kernels, SINGLES_MAX};
use crate::network::Network;
use crate::shape::Shape;
use crate::vocabulary::Vocabulary;
use std::path::Path;
use std::sync::Arc;

/// The prompt that a text is embedded with. The state of its last token represents the subject of the text; the mean
/// of a text's own tokens does so far worse (`docs/memory.md` has the figures). The method is from Jiang and
/// others, "Scaling Sentence Embeddings with Large Language Models", 2023.
const BEFORE_TEXT: &str = "This sentence: \"";
const BEHIND_TEXT: &str = "\" means in one word: \"";

/// A network that computes one sequence of tokens, and can go back in it.
///
/// All of it blocks: it is called on a thread of its own.
pub trait Engine: Send {
    /// Returns the tokens it speaks in.
    fn vocabulary(&self) -> &Arc<Vocabulary>;

    /// Returns how many tokens a sequence may have.
    fn context_tokens(&self) -> usize;

    /// Returns the tokens computed so far.
    fn sequence(&self) -> &[u32];

    /// Forgets what follows the first `length` tokens.
    fn truncate(&mut self, length: usize);

    /// Computes more tokens, at least one, and returns a logit for each token of the vocabulary
    /// that could follow the last one.
    ///
    /// # Errors
    /// When the tokens do not fit the context, or computing fails. The sequence is then as before.
    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError>;

    /// Computes more tokens as [`extend`](Self::extend) does, if what could follow is not wanted: a
    /// logit for each token of a vocabulary takes as long as a few layers.
    ///
    /// # Errors
    /// As there.
    fn advance(&mut self, tokens: &[u32]) -> Result<(), LocalError> {
        self.extend(tokens).map(drop)
    }

    /// Computes more tokens as [`extend`](Self::extend) does, and returns the logits after each token from
    /// index `from` on, one row after another.
    ///
    /// # Errors
    /// As there.
    fn extend_all(&mut self, tokens: &[u32], from: usize) -> Result<Vec<f32>, LocalError> {
        let (first, rest) = tokens.split_at((from + 1).min(tokens.len()));
        let mut rows = self.extend(first)?;
        for token in rest {
            rows.extend(self.extend(&[*token])?);
        }
        Ok(rows)
    }

    /// Returns up to how many tokens that are computed together have the same bits as each has by itself:
    /// so many can be guessed and checked without changing a reply.
    fn exact_tokens(&self) -> usize {
        1
    }

    /// Returns what the state of a sequence depends on besides its tokens.
    fn fingerprint(&self) -> [u8; 32] {
        [0; 32]
    }

    /// Returns the state of the tokens from index `from` to the end as bytes; `None` if it cannot be
    /// kept, as is so if an engine does not provide it.
    fn save(&self, _from: usize) -> Option<Vec<u8>> {
        None
    }

    /// Appends tokens whose state an engine of the same fingerprint has saved behind the same
    /// sequence. If it does not fit, the sequence is as before and the result false.
    fn restore(&mut self, _tokens: &[u32], _state: &[u8]) -> bool {
        false
    }

    /// Copies the engine's state; the weights are shared.
    ///
    /// # Errors
    /// When there is no memory for it.
    fn fork(&self) -> Result<Box<dyn Engine>, LocalError>;
}

/// The engine on the processor: quantised weights, computed from their file.
pub struct CpuEngine {
    network: Arc<Network>,
    vocabulary: Arc<Vocabulary>,
    context: usize,
    lanes: Vec<Lane>,
    sequence: Vec<u32>,
    fingerprint: Fingerprint,
}

impl CpuEngine {
    /// Loads a GGUF file; sequences have at most `context_max` tokens, or fewer if the model was
    /// trained for fewer.
    ///
    /// # Errors
    /// When the file cannot be read, or holds another architecture or tokenizer.
    pub fn load(path: &Path, context_max: usize) -> Result<Self, LocalError> {
        Self::load_for(Kernels::best(), path, context_max)
    }

    /// Loads a file as [`load`](Self::load) does, to be computed with chosen instructions instead of
    /// the fastest that the processor has: for tests and measurements.
    ///
    /// # Errors
    /// As there, and when the processor lacks the instructions.
    pub fn load_with(
        instructions: Instructions,
        path: &Path,
        context_max: usize,
    ) -> Result<Self, LocalError> {
        Self::load_for(Kernels::with(instructions)?, path, context_max)
    }

    fn load_for(kernels: Kernels, path: &Path, context_max: usize) -> Result<Self, LocalError> {
        let gguf = Gguf::open(path)?;
        let shape = Shape::read(&gguf)?;
        let context = shape.context.min(context_max);
        gguf.bring_in();
        let fingerprint = fingerprint(&gguf, &shape, kernels.instructions());
        let network = Network::read(&gguf, shape, kernels)?;
        Ok(Self {
            lanes: network.new_cache(),
            network: Arc::new(network),
            vocabulary: Vocabulary::read(&gguf)?,
            context,
            sequence: Vec::new(),
            fingerprint,
        })
    }

    /// Returns a vector that stands for a text: what the last layer makes of the last token of a prompt
    /// that asks for the text in one word. It has as many numbers as the network is wide and is not of
    /// length one. Of a text that is longer than the context, the end is left out. The computed state of
    /// a sequence stays as it is.
    ///
    /// # Errors
    /// When the context does not hold the prompt, or computing fails.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, LocalError> {
        let prompt = format!("{BEFORE_TEXT}{text}{BEHIND_TEXT}");
        let mut tokens = self.vocabulary.encode(&prompt)?;
        let behind = self.vocabulary.encode(BEHIND_TEXT)?.len();
        let cut = self.context.saturating_sub(behind)..tokens.len().saturating_sub(behind);
        if !cut.is_empty() {
            tokens.drain(cut);
        }
        self.check(tokens.len(), 0)?;
        let mut lanes = self.network.new_cache();
        let states = self.network.states(&tokens, 0, &mut lanes)?;
        Ok(self.network.last(&states, 1))
    }

    /// Appends tokens and returns what is made of their states, having gone back if that fails.
    fn append<T>(
        &mut self,
        tokens: &[u32],
        make: impl FnOnce(&Network, &[f32]) -> Result<T, LocalError>,
    ) -> Result<T, LocalError> {
        let position = self.sequence.len();
        self.check(tokens.len(), position)?;
        let states = self.network.states(tokens, position, &mut self.lanes);
        match states.and_then(|states| make(&self.network, &states)) {
            Ok(made) => {
                self.sequence.extend_from_slice(tokens);
                Ok(made)
            }
            Err(err) => {
                self.truncate(position);
                Err(err)
            }
        }
    }

    /// Checks that there are tokens, and that so many fit behind others.
    fn check(&self, tokens: usize, position: usize) -> Result<(), LocalError> {
        let needed = position.saturating_add(tokens);
        if needed > self.context || tokens == 0 {
            return Err(LocalError::ContextTooLong {
                needed,
                context: self.context,
            });
        }
        Ok(())
    }
}

impl Engine for CpuEngine {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn context_tokens(&self) -> usize {
        self.context
    }

    fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    fn truncate(&mut self, length: usize) {
        self.sequence.truncate(length);
        for lane in &mut self.lanes {
            lane.truncate(length);
        }
    }

    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        self.append(tokens, |network, states| network.logits(states, 1))
    }

    fn extend_all(&mut self, tokens: &[u32], from: usize) -> Result<Vec<f32>, LocalError> {
        let rows = tokens.len().saturating_sub(from).max(1);
        self.append(tokens, |network, states| network.logits(states, rows))
    }

    fn exact_tokens(&self) -> usize {
        SINGLES_MAX
    }

    fn advance(&mut self, tokens: &[u32]) -> Result<(), LocalError> {
        self.append(tokens, |_, _| Ok(()))
    }

    fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    fn save(&self, from: usize) -> Option<Vec<u8>> {
        let count = self.sequence.len().checked_sub(from)?;
        let bytes = self.lanes.iter().map(|lane| lane.bytes(count)).sum();
        let mut state = Vec::with_capacity(bytes);
        for lane in &self.lanes {
            lane.write(from, &mut state)?;
        }
        Some(state)
    }

    fn restore(&mut self, tokens: &[u32], state: &[u8]) -> bool {
        let (position, count) = (self.sequence.len(), tokens.len());
        let bytes = self.lanes.first().map_or(0, |lane| lane.bytes(count));
        let fits = position + count <= self.context
            && bytes > 0
            && state.len() == bytes * self.lanes.len();
        let mut parts = state.chunks_exact(bytes.max(1));
        let mut lanes = self.lanes.iter_mut();
        if !fits || !lanes.all(|lane| lane.read(count, parts.next().unwrap_or_default()).is_some())
        {
            self.truncate(position);
            return false;
        }
        self.sequence.extend_from_slice(tokens);
        true
    }

    fn fork(&self) -> Result<Box<dyn Engine>, LocalError> {
        Ok(Box::new(Self {
            network: Arc::clone(&self.network),
            vocabulary: Arc::clone(&self.vocabulary),
            context: self.context,
            lanes: self.lanes.clone(),
            sequence: self.sequence.clone(),
            fingerprint: self.fingerprint,
        }))
    }
}

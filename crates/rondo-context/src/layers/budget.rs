//! Fits the layers and the history into a number of tokens.

use super::{Layer, LayerKind};

/// How many bytes a token takes, by what a provider has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenEstimate {
    /// Bytes that a hundred tokens take.
    bytes_of_100: u64,
}

impl Default for TokenEstimate {
    /// Returns four bytes a token.
    fn default() -> Self {
        Self { bytes_of_100: 400 }
    }
}

impl TokenEstimate {
    /// The fewest bytes that a hundred tokens are taken to have: scripts that models split finely.
    const BYTES_MIN: u64 = 100;
    /// The most: long words, indented code.
    const BYTES_MAX: u64 = 600;

    /// Returns the estimate of a request that had `bytes` of text and was reported as `tokens`, within 1 and 6 bytes a
    /// token. Nothing is learnt from a request of fewer than 256 tokens, since what surrounds the text counts too.
    #[must_use]
    pub fn calibrated(bytes: u64, tokens: u64) -> Self {
        if tokens < 256 {
            return Self::default();
        }
        let bytes_of_100 = bytes.saturating_mul(100) / tokens;
        Self {
            bytes_of_100: bytes_of_100.clamp(Self::BYTES_MIN, Self::BYTES_MAX),
        }
    }

    /// Returns the tokens of a text of that many bytes, rounded up.
    #[must_use]
    pub fn tokens(self, bytes: usize) -> u64 {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        bytes.saturating_mul(100).div_ceil(self.bytes_of_100)
    }

    /// Returns the bytes that fit so many tokens.
    fn bytes(self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(self.bytes_of_100) / 100;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// Total size of the seven layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    /// Tokens of the whole context, without the reply.
    pub tokens: u64,
    /// How texts are counted.
    pub estimate: TokenEstimate,
}

/// Layers that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedLayers {
    /// The layers that precede the history.
    pub layers: Vec<Layer>,
    /// How many of the oldest groups of the history are left out.
    pub groups_left_out: usize,
    /// The layers that were cut, each once.
    pub cut: Vec<LayerKind>,
}

/// Part of the budget, in quarters, that the layers before the history may take, as far as they can be cut.
const LAYERS_QUARTERS: u64 = 3;
/// The layers that can be cut, the first to be cut first.
const CUTTABLE: [LayerKind; 3] = [LayerKind::Tools, LayerKind::Skills, LayerKind::Memory];
const CUT_NOTE: &str = "\n[cut: the context has no room for the rest]";

impl TokenBudget {
    /// Fits the layers that precede the history, the history and the message.
    ///
    /// Tool documentation, then skills, then memory are cut if the layers alone take more than three quarters of the
    /// budget, however long the history is. The system prompt, the bootstrap and the message are never cut. The history has
    /// what is left: its oldest groups are left out. `groups` are their sizes in bytes, the oldest first; a group is a
    /// user's message with all that follows until the next, so calls stay with their results. A host that bounds its
    /// history otherwise passes none.
    #[must_use]
    pub fn fit(&self, layers: Vec<Layer>, groups: &[usize], message_bytes: usize) -> FittedLayers {
        let (layers, cut) = self.fit_layers(layers);
        let used: u64 = layers.iter().map(|layer| self.tokens_of(layer)).sum();
        let used = used.saturating_add(self.estimate.tokens(message_bytes));
        let mut left = self.tokens.saturating_sub(used);
        let fitting = groups.iter().rev().take_while(|bytes| {
            let rest = left.checked_sub(self.estimate.tokens(**bytes));
            left = rest.unwrap_or(left);
            rest.is_some()
        });
        FittedLayers {
            layers,
            groups_left_out: groups.len() - fitting.count(),
            cut,
        }
    }

    fn fit_layers(&self, mut layers: Vec<Layer>) -> (Vec<Layer>, Vec<LayerKind>) {
        let max = self.tokens / 4 * LAYERS_QUARTERS;
        let mut cut = Vec::new();
        for kind in CUTTABLE {
            let used: u64 = layers.iter().map(|layer| self.tokens_of(layer)).sum();
            let over = used.saturating_sub(max);
            if over == 0 {
                break;
            }
            let Some(layer) = layers.iter_mut().find(|layer| layer.kind == kind) else {
                continue;
            };
            cut.push(kind);
            let kept = self.tokens_of(layer).saturating_sub(over);
            let bytes = self.estimate.bytes(kept).saturating_sub(CUT_NOTE.len());
            layer.text = beginning(&layer.text, bytes);
        }
        layers.retain(|layer| !layer.text.is_empty());
        (layers, cut)
    }

    fn tokens_of(&self, layer: &Layer) -> u64 {
        self.estimate.tokens(layer.text.len())
    }
}

/// Returns the whole lines within so many bytes and a note; nothing if no line fits.
fn beginning(text: &str, bytes: usize) -> String {
    let end = text.floor_char_boundary(bytes);
    let kept = text.get(..end).unwrap_or_default();
    match kept.rfind('\n') {
        Some(end) => format!("{}{CUT_NOTE}", kept.get(..end).unwrap_or_default()),
        None => String::new(),
    }
}

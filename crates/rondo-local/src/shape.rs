//! Which architecture and dimensions a network has, from a file's metadata, and which architectures can be computed.

use crate::error::LocalError;
use crate::gguf::Gguf;

/// The architectures that can be computed, for errors.
const ARCHITECTURES: &str = "`llama`, `qwen2` and `qwen3`";
/// How positions beyond those of training can be reached, for errors.
const ROPE_SCALINGS: &str = "none, and factors as Llama 3 has them (`rope_freqs.weight`)";

/// A family of networks, as `general.architecture` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// Qwen2 and Qwen2.5: biases at the attention's entrance, halves rotated.
    Qwen2,
    /// Qwen3: no biases, but norms of each head's queries and keys; halves rotated.
    Qwen3,
    /// Llama and those built like it, such as SmolLM2: no biases. Converters to GGUF reorder the
    /// weights so that neighbors are rotated.
    Llama,
}

/// How a network is built. All sizes are positive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) architecture: Architecture,
    /// Numbers that stand for a token between layers.
    pub(crate) width: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) key_value_heads: usize,
    pub(crate) head_size: usize,
    pub(crate) norm_epsilon: f32,
    pub(crate) rope_base: f32,
    /// Tokens the network was trained for.
    pub(crate) context: usize,
}

impl Shape {
    /// Reads the shape.
    ///
    /// # Errors
    /// When the architecture is another, or a number is missing or makes no sense.
    pub(crate) fn read(gguf: &Gguf) -> Result<Self, LocalError> {
        let (prefix, architecture) = architecture(gguf)?;
        let key = |name: &str| format!("{prefix}.{name}");
        let number = |name: &str| {
            gguf.number(&key(name))
                .filter(|number| *number > 0)
                .ok_or_else(|| gguf.missing(&key(name)))
        };
        refuse_others(gguf, prefix)?;
        let heads = number("attention.head_count")?;
        let key_value_heads = number("attention.head_count_kv").unwrap_or(heads);
        let width = number("embedding_length")?;
        let head_size = number("attention.key_length").unwrap_or(width / heads);
        if !heads.is_multiple_of(key_value_heads) || head_size == 0 || head_size % 2 == 1 {
            return Err(gguf.missing(&key("attention.head_count")));
        }
        for (name, size) in [
            ("rope.dimension_count", head_size),
            ("attention.value_length", head_size),
        ] {
            if gguf.number(&key(name)).is_some_and(|found| found != size) {
                return Err(gguf.missing(&key(name)));
            }
        }
        let epsilon = key("attention.layer_norm_rms_epsilon");
        Ok(Self {
            architecture,
            width,
            layers: number("block_count")?,
            heads,
            key_value_heads,
            head_size,
            norm_epsilon: gguf
                .fraction(&epsilon)
                .ok_or_else(|| gguf.missing(&epsilon))?,
            rope_base: gguf.fraction(&key("rope.freq_base")).unwrap_or(ROPE_BASE),
            context: number("context_length")?,
        })
    }
}

/// Default of `rope.freq_base` (llama.cpp: `llama_hparams`).
const ROPE_BASE: f32 = 10_000.0;

fn architecture(gguf: &Gguf) -> Result<(&str, Architecture), LocalError> {
    let key = "general.architecture";
    match gguf.text(key) {
        Some(name @ "qwen2") => Ok((name, Architecture::Qwen2)),
        Some(name @ "qwen3") => Ok((name, Architecture::Qwen3)),
        Some(name @ "llama") => Ok((name, Architecture::Llama)),
        Some(other) => Err(LocalError::Unsupported {
            what: "the architecture",
            found: other.to_owned(),
            known: ARCHITECTURES,
        }),
        None => Err(gguf.missing(key)),
    }
}

/// Refuses what a network of a known architecture may have that is not computed here: the figures would be
/// wrong, without any notice.
fn refuse_others(gguf: &Gguf, prefix: &str) -> Result<(), LocalError> {
    let unsupported =
        |what, found: String, known| Err(LocalError::Unsupported { what, found, known });
    let experts = gguf.number(&format!("{prefix}.expert_count")).unwrap_or(0);
    if experts > 0 {
        return unsupported(
            "a number of experts,",
            experts.to_string(),
            "models without experts",
        );
    }
    let scaling = gguf
        .text(&format!("{prefix}.rope.scaling.type"))
        .unwrap_or("none");
    if scaling != "none" {
        return unsupported(
            "the scaling of positions",
            scaling.to_owned(),
            ROPE_SCALINGS,
        );
    }
    Ok(())
}

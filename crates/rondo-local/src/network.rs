//! The network: embeddings, attention and feed-forward layers over quantised weights.
//!
//! Candle's own model files append to their cache and can neither cut it nor copy it, and they
//! dequantise the embeddings, which takes 0.9 GB at 1.5 B parameters. Here one token table stays
//! quantised, and the cache is a value of its own ([`Lane`]).

use crate::attention::attend;
use crate::cache::Lane;
use crate::error::LocalError;
use crate::gguf::Gguf;
use crate::matrix::Matrix;
use crate::shape::{Architecture, Shape};
use candle_core::quantized::QTensor;
use candle_core::utils::barrier_pool;
use candle_core::{Device, Result as CandleResult, Tensor};
use candle_nn::ops::rms_norm;
use candle_nn::rotary_emb::{rope, rope_i};

/// The table of the tokens' own vectors.
const EMBEDDINGS: &str = "token_embd.weight";
/// The table that turns what comes out into logits, where it is another one.
const HEAD: &str = "output.weight";

/// A network with its weights.
pub(crate) struct Network {
    shape: Shape,
    embeddings: QTensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Matrix,
    /// Cosine and sine of every position's angles, `(context, head size / 2)`.
    cosines: Tensor,
    sines: Tensor,
}

struct Layer {
    attention_norm: Tensor,
    query: Projection,
    key: Projection,
    value: Projection,
    output: Matrix,
    feed_norm: Tensor,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

struct Projection {
    weight: Matrix,
    bias: Option<Tensor>,
}

impl Projection {
    fn shift(&self, output: Tensor) -> CandleResult<Tensor> {
        match &self.bias {
            Some(bias) => output.broadcast_add(bias),
            None => Ok(output),
        }
    }
}

impl Network {
    /// Reads the weights, for at most `context` positions.
    ///
    /// # Errors
    /// When tensors are missing or do not fit.
    pub(crate) fn read(gguf: &Gguf, shape: Shape, context: usize) -> Result<Self, LocalError> {
        let embeddings = gguf.tensor(EMBEDDINGS)?;
        // Small models use one table at both ends.
        let has_head = gguf.has_tensor(HEAD);
        let head = Matrix::read(gguf, if has_head { HEAD } else { EMBEDDINGS })?;
        let layers = (0..shape.layers)
            .map(|index| Layer::read(gguf, index))
            .collect::<Result<_, _>>()?;
        let (cosines, sines) = angles(&shape, context)?;
        Ok(Self {
            embeddings,
            layers,
            norm: vector(gguf, "output_norm.weight")?,
            head,
            cosines,
            sines,
            shape,
        })
    }

    /// Makes the copies of the weights that prompts are computed from, on all processors at once.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(crate) fn prepare(&self) -> CandleResult<()> {
        let workers = barrier_pool().n_workers() + 1;
        let share = self.layers.len().div_ceil(workers).max(1);
        std::thread::scope(|scope| {
            let shares = self.layers.chunks(share);
            let threads: Vec<_> = shares
                .map(|layers| scope.spawn(|| layers.iter().try_for_each(Layer::prepare)))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err(candle_core::Error::msg("a thread panicked")))
            })
        })
    }

    /// Returns an empty cache.
    pub(crate) fn new_cache(&self) -> CandleResult<Vec<Lane>> {
        let (heads, size) = (self.shape.key_value_heads, self.shape.head_size);
        self.layers.iter().map(|_| Lane::new(heads, size)).collect()
    }

    /// Computes `tokens`, which begin at `position`, and returns the logits after the last one.
    pub(crate) fn forward(
        &self,
        tokens: &[u32],
        position: usize,
        cache: &mut [Lane],
    ) -> CandleResult<Vec<f32>> {
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut state = self.embeddings.embedding(&ids)?;
        let angles = RotaryAngles {
            cosines: self.cosines.narrow(0, position, tokens.len())?,
            sines: self.sines.narrow(0, position, tokens.len())?,
        };
        let mut scratch = Vec::new();
        for (layer, lane) in self.layers.iter().zip(cache) {
            state = self.layer(layer, &state, &angles, lane, &mut scratch)?;
        }
        let last = state.narrow(0, tokens.len() - 1, 1)?.contiguous()?;
        let last = rms_norm(&last, &self.norm, self.shape.norm_epsilon)?;
        self.head.forward(&last)?.squeeze(0)?.to_vec1()
    }

    fn layer(
        &self,
        layer: &Layer,
        input: &Tensor,
        angles: &RotaryAngles,
        lane: &mut Lane,
        scratch: &mut Vec<f32>,
    ) -> CandleResult<Tensor> {
        let epsilon = self.shape.norm_epsilon;
        let normed = rms_norm(input, &layer.attention_norm, epsilon)?;
        let state = (input + self.attention(layer, &normed, angles, lane)?)?;
        let normed = rms_norm(&state, &layer.feed_norm, epsilon)?;
        let feed = [&layer.gate, &layer.up, &layer.down];
        state + Matrix::feed_forward(feed, &normed, scratch)?
    }

    fn attention(
        &self,
        layer: &Layer,
        input: &Tensor,
        angles: &RotaryAngles,
        lane: &mut Lane,
    ) -> CandleResult<Tensor> {
        let shape = &self.shape;
        let entrance = [&layer.query, &layer.key, &layer.value];
        let [query, key, value] = Matrix::forward_all(entrance.map(|it| &it.weight), input)?;
        let query = self.rotate(
            &self.split(&layer.query.shift(query)?, shape.heads)?,
            angles,
        )?;
        let key_value_heads = shape.key_value_heads;
        let key = self.split(&layer.key.shift(key)?, key_value_heads)?;
        let value = self.split(&layer.value.shift(value)?, key_value_heads)?;
        lane.append(&self.rotate(&key, angles)?, &value)?;
        let mixed = attend(&query, lane)?;
        layer.output.forward(&mixed)
    }

    /// Turns `(count, heads * size)` into `(heads, count, size)`.
    fn split(&self, flat: &Tensor, heads: usize) -> CandleResult<Tensor> {
        flat.reshape((flat.dim(0)?, heads, self.shape.head_size))?
            .transpose(0, 1)?
            .contiguous()
    }

    fn rotate(&self, heads: &Tensor, angles: &RotaryAngles) -> CandleResult<Tensor> {
        let batch = heads.unsqueeze(0)?;
        let rotated = match self.shape.architecture {
            Architecture::Qwen2 => rope(&batch, &angles.cosines, &angles.sines)?,
            Architecture::Llama => rope_i(&batch, &angles.cosines, &angles.sines)?,
        };
        rotated.squeeze(0)
    }
}

/// The angles by which queries and keys are turned: where in the sequence their tokens stand.
struct RotaryAngles {
    cosines: Tensor,
    sines: Tensor,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "positions and sizes are far below what a float holds exactly"
)]
fn angles(shape: &Shape, context: usize) -> CandleResult<(Tensor, Tensor)> {
    let size = shape.head_size as f32;
    let frequencies: Vec<f32> = (0..shape.head_size)
        .step_by(2)
        .map(|index| shape.rope_base.powf(-(index as f32) / size))
        .collect();
    let angles: Vec<f32> = (0..context)
        .flat_map(|position| frequencies.iter().map(move |one| position as f32 * one))
        .collect();
    let angles = Tensor::from_vec(angles, (context, frequencies.len()), &Device::Cpu)?;
    Ok((angles.cos()?, angles.sin()?))
}

impl Layer {
    fn read(gguf: &Gguf, index: usize) -> Result<Self, LocalError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let matrix = |part: &str| -> Result<Matrix, LocalError> {
            Matrix::read(gguf, &name(&format!("{part}.weight")))
        };
        let projection = |part: &str| -> Result<Projection, LocalError> {
            let bias = name(&format!("{part}.bias"));
            let has_bias = gguf.has_tensor(&bias);
            Ok(Projection {
                weight: matrix(part)?,
                bias: has_bias.then(|| vector(gguf, &bias)).transpose()?,
            })
        };
        Ok(Self {
            attention_norm: vector(gguf, &name("attn_norm.weight"))?,
            query: projection("attn_q")?,
            key: projection("attn_k")?,
            value: projection("attn_v")?,
            output: matrix("attn_output")?,
            feed_norm: vector(gguf, &name("ffn_norm.weight"))?,
            gate: matrix("ffn_gate")?,
            up: matrix("ffn_up")?,
            down: matrix("ffn_down")?,
        })
    }
}

impl Layer {
    fn prepare(&self) -> CandleResult<()> {
        let entrance = [&self.query.weight, &self.key.weight, &self.value.weight];
        let rest = [&self.output, &self.gate, &self.up, &self.down];
        entrance
            .into_iter()
            .chain(rest)
            .try_for_each(Matrix::prepare)
    }
}

fn vector(gguf: &Gguf, name: &str) -> Result<Tensor, LocalError> {
    Ok(gguf.tensor(name)?.dequantize(&Device::Cpu)?)
}

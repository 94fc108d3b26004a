//! The network: embeddings, attention and feed-forward layers over quantised weights.
//!
//! All of it is plain slices of floats, rows of numbers one after another. One token table stays
//! quantised in its file, and the cache is a value of its own ([`Lane`]), which can be cut and copied.

use crate::cache::Lane;
use crate::error::LocalError;
use crate::gguf::Gguf;
use crate::kernels::{Kernels, Weights};
use crate::rotation::{Frequencies, Rotation};
use crate::shape::Shape;

/// The table of the tokens' own vectors.
const EMBEDDINGS: &str = "token_embd.weight";
/// The table that turns what comes out into logits, if it is another one.
const HEAD: &str = "output.weight";
/// Tensor of divisors for the frequencies of positions, in models that have them.
const FACTORS: &str = "rope_freqs.weight";

/// A network with its weights.
pub(crate) struct Network {
    kernels: Kernels,
    shape: Shape,
    frequencies: Frequencies,
    embeddings: Weights,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    head: Weights,
}

struct Layer {
    attention_norm: Vec<f32>,
    query: Projection,
    key: Projection,
    value: Projection,
    output: Weights,
    feed_norm: Vec<f32>,
    gate: Weights,
    up: Weights,
    down: Weights,
}

struct Projection {
    weight: Weights,
    bias: Option<Vec<f32>>,
    /// Weights of a norm of each head.
    norm: Option<Vec<f32>>,
}

impl Projection {
    /// Adds the bias to rows, and norms their heads.
    fn finish(&self, rows: &mut [f32], epsilon: f32) {
        if let Some(bias) = &self.bias {
            for row in rows.chunks_exact_mut(bias.len()) {
                add(row, bias);
            }
        }
        if let Some(norm) = &self.norm {
            for head in rows.chunks_exact_mut(norm.len()) {
                let scale = root_mean_square(head, epsilon).recip();
                let weighed = head.iter_mut().zip(norm);
                weighed.for_each(|(number, weight)| *number *= scale * weight);
            }
        }
    }
}

/// Intermediate values, kept from layer to layer to reuse their memory.
#[derive(Default)]
struct Scratch {
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    /// The queries by heads.
    split: Vec<f32>,
    mixed: Vec<f32>,
    hidden: Vec<f32>,
    product: Vec<f32>,
}

impl Network {
    /// Reads the weights.
    ///
    /// # Errors
    /// When tensors are missing or do not fit.
    pub(crate) fn read(gguf: &Gguf, shape: Shape, kernels: Kernels) -> Result<Self, LocalError> {
        let reader = Reader {
            gguf,
            shape: &shape,
        };
        let width = shape.width;
        let embeddings = reader.rows_of(EMBEDDINGS, width)?;
        // Small models use one table at both ends.
        let has_head = gguf.has_tensor(HEAD);
        let head = reader.rows_of(if has_head { HEAD } else { EMBEDDINGS }, width)?;
        let layers = (0..shape.layers).map(|index| reader.layer(index));
        let factors = reader.vector_if_any(FACTORS, shape.head_size / 2)?;
        Ok(Self {
            kernels,
            frequencies: Frequencies::new(&shape, factors.as_deref()),
            embeddings,
            layers: layers.collect::<Result<_, _>>()?,
            norm: reader.vector("output_norm.weight", width)?,
            head,
            shape,
        })
    }

    /// Returns an empty cache.
    pub(crate) fn new_cache(&self) -> Vec<Lane> {
        let (heads, size) = (self.shape.key_value_heads, self.shape.head_size);
        self.layers.iter().map(|_| Lane::new(heads, size)).collect()
    }

    /// Returns the logits after each of the last `count` of some tokens, whose [`states`](Self::states) these are, one
    /// row after another.
    ///
    /// # Errors
    /// When the table of tokens cannot be computed with.
    pub(crate) fn logits(&self, states: &[f32], count: usize) -> Result<Vec<f32>, LocalError> {
        let last = self.last(states, count);
        let mut logits = Vec::new();
        let products = &mut [&mut logits];
        self.kernels.multiply(&[&self.head], &last, products)?;
        Ok(logits)
    }

    /// Returns what the last `count` of some tokens stand for, whose [`states`](Self::states) these are.
    pub(crate) fn last(&self, states: &[f32], count: usize) -> Vec<f32> {
        let from = states.len().saturating_sub(count * self.shape.width);
        let last = states.get(from..).unwrap_or_default();
        let mut normed = Vec::new();
        normalise(last, &self.norm, self.shape.norm_epsilon, &mut normed);
        normed
    }

    /// Computes `tokens`, which begin at `position`, and returns what the last layer makes of each.
    ///
    /// # Errors
    /// When a token is not in the table.
    pub(crate) fn states(
        &self,
        tokens: &[u32],
        position: usize,
        cache: &mut [Lane],
    ) -> Result<Vec<f32>, LocalError> {
        let mut state = vec![0.0; tokens.len() * self.shape.width];
        for (token, row) in tokens.iter().zip(state.chunks_exact_mut(self.shape.width)) {
            let found = usize::try_from(*token).ok();
            found
                .and_then(|token| self.embeddings.row(token, row))
                .ok_or_else(|| LocalError::Inference(format!("there is no token {token}")))?;
        }
        let rotation = self.frequencies.at(position, tokens.len());
        let mut scratch = Scratch::default();
        for (layer, lane) in self.layers.iter().zip(cache) {
            self.layer(layer, &mut state, &rotation, lane, &mut scratch)?;
        }
        Ok(state)
    }

    fn layer(
        &self,
        layer: &Layer,
        state: &mut [f32],
        rotation: &Rotation,
        lane: &mut Lane,
        scratch: &mut Scratch,
    ) -> Result<(), LocalError> {
        let epsilon = self.shape.norm_epsilon;
        normalise(state, &layer.attention_norm, epsilon, &mut scratch.normed);
        self.attention(layer, rotation, lane, scratch)?;
        add(state, &scratch.product);
        let Scratch {
            normed,
            hidden,
            product,
            ..
        } = scratch;
        normalise(state, &layer.feed_norm, epsilon, normed);
        self.kernels.gated(&layer.gate, &layer.up, normed, hidden)?;
        self.kernels
            .multiply(&[&layer.down], hidden, &mut [product])?;
        add(state, product);
        Ok(())
    }

    fn attention(
        &self,
        layer: &Layer,
        rotation: &Rotation,
        lane: &mut Lane,
        scratch: &mut Scratch,
    ) -> Result<(), LocalError> {
        let Scratch {
            normed,
            query,
            key,
            value,
            split,
            mixed,
            product,
            ..
        } = scratch;
        let heads = self.shape.heads;
        let weights = [&layer.query, &layer.key, &layer.value].map(|it| &it.weight);
        self.kernels
            .multiply(&weights, normed, &mut [query, key, value])?;
        let epsilon = self.shape.norm_epsilon;
        layer.query.finish(query, epsilon);
        layer.key.finish(key, epsilon);
        layer.value.finish(value, epsilon);
        rotation.turn(query, heads);
        rotation.turn(key, self.shape.key_value_heads);
        let position = lane.length();
        lane.append(key, value);
        by_heads(query, heads, self.shape.head_size, split);
        self.kernels
            .attend(split, heads, position, &lane.room(), mixed)?;
        self.kernels
            .multiply(&[&layer.output], mixed, &mut [product])
    }
}

/// Turns `(count, heads * size)` into `(heads, count, size)`.
fn by_heads(rows: &[f32], heads: usize, size: usize, split: &mut Vec<f32>) {
    split.clear();
    for head in 0..heads {
        let theirs = rows.chunks_exact(size).skip(head).step_by(heads);
        theirs.for_each(|row| split.extend_from_slice(row));
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// Divides each row by the root of its mean square, and weighs its numbers.
fn normalise(rows: &[f32], weights: &[f32], epsilon: f32, normed: &mut Vec<f32>) {
    normed.clear();
    for row in rows.chunks_exact(weights.len()) {
        let scale = root_mean_square(row, epsilon).recip();
        let weighed = row.iter().zip(weights);
        normed.extend(weighed.map(|(number, weight)| number * scale * weight));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rows have a few thousand numbers"
)]
fn root_mean_square(row: &[f32], epsilon: f32) -> f32 {
    (sum_of_squares(row) / row.len() as f32 + epsilon).sqrt()
}

fn sum_of_squares(row: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let (vectors, rest) = row.as_chunks::<16>();
    for vector in vectors {
        for (sum, number) in sums.iter_mut().zip(vector) {
            *sum += number * number;
        }
    }
    let rest: f32 = rest.iter().map(|number| number * number).sum();
    sums.iter().sum::<f32>() + rest
}

/// Reads tensors whose sizes the shape tells.
struct Reader<'a> {
    gguf: &'a Gguf,
    shape: &'a Shape,
}

impl Reader<'_> {
    fn layer(&self, index: usize) -> Result<Layer, LocalError> {
        let Shape {
            width,
            heads,
            key_value_heads,
            head_size,
            ..
        } = *self.shape;
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let projection = |part: &str, heads: usize| {
            let outputs = heads.saturating_mul(head_size);
            let bias = format!("blk.{index}.{part}.bias");
            let norm = format!("blk.{index}.{part}_norm.weight");
            Ok::<_, LocalError>(Projection {
                weight: self.matrix(&name(part), outputs, width)?,
                bias: self.vector_if_any(&bias, outputs)?,
                norm: self.vector_if_any(&norm, head_size)?,
            })
        };
        let query = projection("attn_q", heads)?;
        let gate = self.rows_of(&name("ffn_gate"), width)?;
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"), width)?,
            output: self.matrix(&name("attn_output"), width, query.weight.outputs())?,
            query,
            key: projection("attn_k", key_value_heads)?,
            value: projection("attn_v", key_value_heads)?,
            feed_norm: self.vector(&name("ffn_norm"), width)?,
            up: self.matrix(&name("ffn_up"), gate.outputs(), width)?,
            down: self.matrix(&name("ffn_down"), width, gate.outputs())?,
            gate,
        })
    }

    /// Reads a matrix of any number of rows.
    fn rows_of(&self, name: &str, inputs: usize) -> Result<Weights, LocalError> {
        let matrix = self.gguf.matrix(name)?;
        if matrix.inputs() != inputs {
            return Err(self.misfit(name, matrix.inputs(), inputs));
        }
        Ok(matrix)
    }

    fn matrix(&self, name: &str, outputs: usize, inputs: usize) -> Result<Weights, LocalError> {
        let matrix = self.rows_of(name, inputs)?;
        if matrix.outputs() != outputs {
            return Err(self.misfit(name, matrix.outputs(), outputs));
        }
        Ok(matrix)
    }

    fn vector_if_any(&self, name: &str, length: usize) -> Result<Option<Vec<f32>>, LocalError> {
        let is_there = self.gguf.has_tensor(name);
        is_there.then(|| self.vector(name, length)).transpose()
    }

    fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, LocalError> {
        let vector = self.gguf.vector(name)?;
        if vector.len() != length {
            return Err(self.misfit(name, vector.len(), length));
        }
        Ok(vector)
    }

    fn misfit(&self, name: &str, found: usize, wanted: usize) -> LocalError {
        let message = format!("tensor `{name}` has {found} where the rest needs {wanted}");
        self.gguf.format_error(message)
    }
}

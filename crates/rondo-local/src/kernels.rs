//! Products of quantised weights and numbers, computed from the blocks as the file has them.
//!
//! Candle's kernels compute from a copy of the weights in the order of the vector instructions.
//! Making it takes seconds, it doubles the memory, and it has 6 bits a weight where the file has
//! 4.5, which counts in replies: each of their tokens reads all weights once. Here one row of
//! numbers meets the blocks where they lie, and many rows share what is unpacked of them, 16 rows of
//! weights at a time.
//!
//! That is for the two kinds of blocks that a `Q4_K_M` file has, on processors with AVX-512 VNNI.
//! Everything else stays with candle, and its products are what the tests compare these with.

#[cfg(not(target_arch = "x86_64"))]
mod none;
#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::indexing_slicing,
    reason = "the parts of blocks and vectors are of fixed numbers, and the tests reach them all"
)]
mod x86;

#[cfg(test)]
mod tests;

use crate::mapped::Held;
use candle_core::quantized::GgmlDType;
use candle_core::utils::barrier_pool;
use candle_core::{Result, bail};
#[cfg(not(target_arch = "x86_64"))]
use none::Arch;
use std::sync::{Mutex, PoisonError};
#[cfg(target_arch = "x86_64")]
use x86::Arch;

/// Numbers of a block of weights: `QK_K` of
/// <https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h>, as are the layouts.
const BLOCK: usize = 256;
/// Rows of weights that are one piece of work where few rows of numbers are computed, and the most.
const UNIT: usize = 32;
const UNIT_MAX: usize = 128;
/// Rows of numbers up to which each meets the weights by itself.
const SINGLES_MAX: usize = 3;
/// Rows of numbers that are computed together; of more, each batch unpacks the weights again.
const BATCH_MAX: usize = 96;

/// The kinds of blocks that are computed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Q4K,
    Q6K,
}

impl Kind {
    fn block_bytes(self) -> usize {
        match self {
            Self::Q4K => 144,
            Self::Q6K => 210,
        }
    }
}

/// A matrix of weights in its file: `outputs` rows with `inputs` numbers each.
pub(crate) struct Weights {
    arch: Arch,
    kind: Kind,
    held: Held,
    outputs: usize,
    inputs: usize,
}

impl Weights {
    /// Takes the blocks of a matrix; `None` if it is of a shape or kind, or this a processor, that
    /// candle is for.
    pub(crate) fn new(held: Held, kind: GgmlDType, outputs: usize, inputs: usize) -> Option<Self> {
        let kind = match kind {
            GgmlDType::Q4K => Kind::Q4K,
            GgmlDType::Q6K => Kind::Q6K,
            _ => return None,
        };
        let whole = inputs.is_multiple_of(BLOCK) && outputs.is_multiple_of(UNIT);
        let bytes = (outputs * inputs / BLOCK).checked_mul(kind.block_bytes());
        if !whole || inputs == 0 || bytes != Some(held.bytes().len()) {
            return None;
        }
        Some(Self {
            arch: Arch::detect()?,
            kind,
            held,
            outputs,
            inputs,
        })
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the pieces of work that make `out`, whole rows of the product.
    fn units<'a>(&'a self, out: &'a mut [f32]) -> impl Iterator<Item = Unit<'a>> + Send {
        let rows = out.chunks_mut(self.outputs);
        let unit = unit_rows(rows.len());
        let mut rows: Vec<_> = rows.map(|row| row.chunks_mut(unit)).collect();
        self.unit_bytes(unit).map(move |bytes| Unit {
            kind: self.kind,
            bytes,
            pieces: rows.iter_mut().filter_map(Iterator::next).collect(),
        })
    }

    fn unit_bytes(&self, unit: usize) -> impl Iterator<Item = &[u8]> + Send {
        let row = self.inputs / BLOCK * self.kind.block_bytes();
        self.held.bytes().chunks(unit * row)
    }
}

/// A piece of work: some rows of weights, and what they make of every row of numbers.
struct Unit<'a> {
    kind: Kind,
    bytes: &'a [u8],
    pieces: Vec<&'a mut [f32]>,
}

fn unit_rows(count: usize) -> usize {
    if count <= SINGLES_MAX { UNIT } else { UNIT_MAX }
}

/// Multiplies the same rows, each as long as the weights' own, with several matrices, on all
/// processors. Returns the rows of each product, one after another.
///
/// # Errors
/// When the rows have another length.
pub(crate) fn multiply(weights: &[&Weights], rows: &[f32]) -> Result<Vec<Vec<f32>>> {
    let Some((arch, inputs)) = weights.first().map(|it| (it.arch, it.inputs)) else {
        return Ok(Vec::new());
    };
    let count = count(weights, rows)?;
    let mut products: Vec<Vec<f32>> = weights
        .iter()
        .map(|it| vec![0.0; it.outputs * count])
        .collect();
    let mut batches: Vec<_> = products
        .iter_mut()
        .zip(weights)
        .map(|(product, it)| product.chunks_mut(it.outputs * BATCH_MAX))
        .collect();
    for rows in rows.chunks(inputs * BATCH_MAX) {
        let numbers = arch.numbers(rows, inputs);
        let outs = batches.iter_mut().filter_map(Iterator::next);
        let units = weights.iter().zip(outs).flat_map(|(it, out)| it.units(out));
        on_all_processors(units, |(), mut unit| {
            arch.multiply(unit.kind, unit.bytes, &numbers, &mut unit.pieces);
        });
    }
    Ok(products)
}

/// Multiplies the same rows with two matrices, and gates one product with the other: both are
/// multiplied, number by number, after the gate's has gone through `x / (1 + exp(-x))`. They take the
/// place of what `product` has: clearing it each time would cost a twentieth of a prompt.
///
/// # Errors
/// When the rows have another length, or the matrices are of two shapes.
pub(crate) fn gated(
    gate: &Weights,
    up: &Weights,
    rows: &[f32],
    product: &mut Vec<f32>,
) -> Result<()> {
    let count = count(&[gate, up], rows)?;
    if gate.outputs != up.outputs {
        bail!("a gate of {} is not one for {}", gate.outputs, up.outputs);
    }
    let arch = gate.arch;
    product.resize(gate.outputs * count, 0.0);
    let outs = product.chunks_mut(gate.outputs * BATCH_MAX);
    for (rows, out) in rows.chunks(gate.inputs * BATCH_MAX).zip(outs) {
        let numbers = arch.numbers(rows, gate.inputs);
        let ups = up.unit_bytes(unit_rows(rows.len() / gate.inputs));
        let units = gate.units(out).zip(ups);
        on_all_processors(units, |by: &mut Vec<f32>, (mut unit, up_bytes)| {
            arch.multiply(unit.kind, unit.bytes, &numbers, &mut unit.pieces);
            let width = unit.pieces.first().map_or(1, |piece| piece.len());
            by.resize(width * unit.pieces.len(), 0.0);
            let mut by: Vec<&mut [f32]> = by.chunks_mut(width).collect();
            arch.multiply(up.kind, up_bytes, &numbers, &mut by);
            for (piece, by) in unit.pieces.into_iter().zip(by) {
                arch.gate(piece, by);
            }
        });
    }
    Ok(())
}

/// The sizes of heads that attention is computed for here.
const HEAD_SIZES: [usize; 2] = [64, 128];

/// Keys and values of a layer: for each head, room for so many positions of `size` numbers.
pub(crate) struct Seen<'a> {
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
    /// Numbers that a head has room for.
    pub(crate) per_head: usize,
    pub(crate) size: usize,
}

/// Lets queries, `(heads, count, size)`, attend to keys and values, of which each head has those
/// of as many neighbours as there are more queries' heads. The first query sees the positions up to
/// and with its own, `position`, each next one another one. Returns `(count, heads * size)`; nothing
/// where candle has to do it.
pub(crate) fn attend(
    queries: &[f32],
    heads: usize,
    position: usize,
    seen: &Seen<'_>,
) -> Option<Vec<f32>> {
    let arch = Arch::detect()?;
    let (size, per_head) = (seen.size, seen.per_head);
    let count = queries.len() / (heads * size).max(1);
    let room = per_head / size.max(1);
    let key_heads = seen.keys.len() / per_head.max(1);
    let fits = HEAD_SIZES.contains(&size)
        && room.is_multiple_of(16)
        && position + count <= room
        && key_heads > 0
        && heads.is_multiple_of(key_heads);
    if !fits || count == 0 {
        return None;
    }
    let mut mixed = vec![0.0; queries.len()];
    let mut rows: Vec<_> = mixed
        .chunks_mut(heads * size)
        .map(|row| row.chunks_mut(size))
        .collect();
    let work = queries
        .chunks(count * size)
        .enumerate()
        .map(|(head, queries)| {
            let of = head / (heads / key_heads);
            let keys = seen.keys.chunks_exact(per_head).nth(of).unwrap_or_default();
            let values = seen
                .values
                .chunks_exact(per_head)
                .nth(of)
                .unwrap_or_default();
            let outs: Vec<&mut [f32]> = rows.iter_mut().filter_map(Iterator::next).collect();
            (queries, (keys, values), outs)
        });
    on_all_processors(work, |(), (queries, seen, mut outs)| {
        arch.attend(size, queries, seen, position, &mut outs);
    });
    Some(mixed)
}

fn count(weights: &[&Weights], rows: &[f32]) -> Result<usize> {
    let inputs = weights.first().map_or(1, |it| it.inputs);
    if !rows.len().is_multiple_of(inputs) || weights.iter().any(|it| it.inputs != inputs) {
        bail!("{} numbers are no rows of {inputs}", rows.len());
    }
    Ok(rows.len() / inputs)
}

/// Distributes pieces of work over all processors; each takes the next piece when it is free. Each has a
/// scratch value of its own.
fn on_all_processors<T: Send, Own: Default>(
    work: impl Iterator<Item = T> + Send,
    each: impl Fn(&mut Own, T) + Sync,
) {
    let work = Mutex::new(work);
    barrier_pool().execute(|_| {
        let next = || work.lock().unwrap_or_else(PoisonError::into_inner).next();
        let mut own = Own::default();
        while let Some(piece) = next() {
            each(&mut own, piece);
        }
    });
}

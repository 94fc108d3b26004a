//! Products of quantised weights and numbers, computed from the blocks as the file has them.
//!
//! A copy of the weights in the order of the vector instructions would take seconds to make and twice
//! the memory, and would have 6 bits a weight where the file has 4.5, which counts in replies: each of
//! their tokens reads all weights once. So one row of numbers meets the blocks where they lie, and many
//! rows share what is unpacked of them, a few rows of weights at a time.
//!
//! The two kinds of blocks that a `Q4_K_M` file has meet numbers that were rounded to bytes, on
//! processors with AVX-512 VNNI or AVX2. Other kinds, and other processors, unpack to floats. Which of
//! these is used is decided once, by [`Kernels::find`].

#[cfg(not(target_arch = "x86_64"))]
mod none;
mod portable;
#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::indexing_slicing,
    reason = "the parts of blocks and vectors are of fixed numbers, and the tests reach them all"
)]
mod x86;

#[cfg(test)]
mod tests;

use crate::blocks::Kind;
use crate::error::LocalError;
use crate::mapped::MappedSlice;
use crate::pool::on_all_processors;
#[cfg(not(target_arch = "x86_64"))]
use none::{Arch, Numbers};
use std::fmt;
use std::str::FromStr;
#[cfg(target_arch = "x86_64")]
use x86::{Arch, Numbers};

/// Numbers of a block of weights that rounded numbers meet.
const BLOCK: usize = 256;
/// Rows of weights that are one piece of work where few rows of numbers are computed, and the most.
const UNIT: usize = 32;
const UNIT_MAX: usize = 128;
/// Rows of numbers up to which each has the same bits as it has by itself.
pub(crate) const SINGLES_MAX: usize = 8;
/// Rows of numbers that are computed together; of more, each batch unpacks the weights again.
const BATCH_MAX: usize = 96;

/// The instructions that the engine computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    /// AVX-512 with its byte products.
    Avx512Vnni,
    /// AVX2 with FMA.
    Avx2,
    /// Instructions for which the program was compiled.
    Portable,
}

impl Instructions {
    /// From the fastest on.
    const ALL: [Self; 3] = [Self::Avx512Vnni, Self::Avx2, Self::Portable];

    /// Returns those that this processor has, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|instructions| Kernels::find(*instructions).is_some())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Avx512Vnni => "avx512-vnni",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Instructions {
    type Err = LocalError;

    fn from_str(name: &str) -> Result<Self, LocalError> {
        let mut all = Self::ALL.into_iter();
        all.find(|instructions| instructions.name() == name)
            .ok_or_else(|| unsupported(name))
    }
}

fn unsupported(name: &str) -> LocalError {
    LocalError::Unsupported {
        what: "the instruction set",
        found: name.to_owned(),
        known: "`avx512-vnni`, `avx2` and `portable`, where the processor has them",
    }
}

/// The kernels of some instructions, which this processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernels(Option<Arch>);

impl Kernels {
    /// Returns the kernels that compute with some instructions; `None` if the processor lacks them.
    pub(crate) fn find(instructions: Instructions) -> Option<Self> {
        match instructions {
            Instructions::Portable => Some(Self(None)),
            _ => Arch::find(instructions).map(|arch| Self(Some(arch))),
        }
    }

    /// Returns the fastest kernels.
    pub(crate) fn best() -> Self {
        let mut all = Instructions::ALL.into_iter();
        all.find_map(Self::find).unwrap_or(Self(None))
    }

    /// Returns the kernels of some instructions.
    ///
    /// # Errors
    /// When the processor lacks them.
    pub(crate) fn with(instructions: Instructions) -> Result<Self, LocalError> {
        Self::find(instructions).ok_or_else(|| unsupported(instructions.name()))
    }

    /// Returns the instructions that these compute with.
    pub(crate) fn instructions(self) -> Instructions {
        let mut all = Instructions::ALL.into_iter();
        all.find(|it| Self::find(*it).map(|found| found.0) == Some(self.0))
            .unwrap_or(Instructions::Portable)
    }

    fn rounds(self, weights: &Weights) -> bool {
        let whole = weights.inputs.is_multiple_of(BLOCK) && weights.outputs.is_multiple_of(UNIT);
        whole && self.0.is_some_and(|arch| arch.rounds(weights.kind))
    }

    /// Prepares rows of `width` numbers for some matrices.
    fn inputs<'a>(self, weights: &[&Weights], rows: &'a [f32], width: usize) -> Inputs<'a> {
        let any = weights.iter().any(|weights| self.rounds(weights));
        let arch = self.0.filter(|_| any);
        Inputs {
            rows,
            width,
            rounded: arch.map(|arch| arch.numbers(rows, width)),
        }
    }

    fn multiply_unit(self, unit: &mut Unit<'_>, inputs: &Inputs<'_>) {
        let Unit {
            weights,
            bytes,
            pieces,
        } = unit;
        let rounded = inputs.rounded.as_ref().filter(|_| self.rounds(weights));
        match self.0 {
            Some(arch) => arch.multiply(weights.kind, bytes, rounded, inputs, pieces),
            None => portable::multiply::<{ portable::FUSED }>(
                weights.kind,
                bytes,
                inputs.width,
                inputs.rows,
                pieces,
            ),
        }
    }

    /// Multiplies the same rows, each as long as the weights' own, with several matrices, on all
    /// processors. The rows of each product, one after another, take the place of what `products`
    /// have.
    ///
    /// # Errors
    /// When the rows have another length.
    pub(crate) fn multiply(
        self,
        weights: &[&Weights],
        rows: &[f32],
        products: &mut [&mut Vec<f32>],
    ) -> Result<(), LocalError> {
        let (count, width) = count(weights, rows)?;
        for (product, it) in products.iter_mut().zip(weights) {
            product.resize(it.outputs * count, 0.0);
        }
        let mut batches: Vec<_> = products
            .iter_mut()
            .zip(weights)
            .map(|(product, it)| product.chunks_mut(it.outputs * BATCH_MAX))
            .collect();
        for rows in rows.chunks(width * BATCH_MAX) {
            let inputs = self.inputs(weights, rows, width);
            let outs = batches.iter_mut().filter_map(Iterator::next);
            let units = weights.iter().zip(outs).flat_map(|(it, out)| it.units(out));
            on_all_processors(units, |(), mut unit| self.multiply_unit(&mut unit, &inputs));
        }
        Ok(())
    }

    /// Multiplies the same rows with two matrices, and gates one product with the other: both are
    /// multiplied, number by number, after the gate's has gone through `x / (1 + exp(-x))`. They take
    /// the place of what `product` has: clearing it each time would cost a twentieth of a prompt.
    ///
    /// # Errors
    /// When the rows have another length, or the shapes of the matrices differ.
    pub(crate) fn gated(
        self,
        gate: &Weights,
        up: &Weights,
        rows: &[f32],
        product: &mut Vec<f32>,
    ) -> Result<(), LocalError> {
        let (count, width) = count(&[gate, up], rows)?;
        if gate.outputs != up.outputs {
            let sizes = format!("a gate of {} is not one for {}", gate.outputs, up.outputs);
            return Err(LocalError::Inference(sizes));
        }
        product.resize(gate.outputs * count, 0.0);
        let outs = product.chunks_mut(gate.outputs * BATCH_MAX);
        for (rows, out) in rows.chunks(width * BATCH_MAX).zip(outs) {
            let inputs = self.inputs(&[gate, up], rows, width);
            let ups = up.unit_bytes(unit_rows(rows.len() / width));
            let units = gate.units(out).zip(ups);
            on_all_processors(units, |by: &mut Vec<f32>, (mut unit, bytes)| {
                self.multiply_unit(&mut unit, &inputs);
                let width = unit.pieces.first().map_or(1, |piece| piece.len());
                by.resize(width * unit.pieces.len(), 0.0);
                let mut second = Unit {
                    weights: up,
                    bytes,
                    pieces: by.chunks_mut(width).collect(),
                };
                self.multiply_unit(&mut second, &inputs);
                for (piece, by) in unit.pieces.into_iter().zip(second.pieces) {
                    self.gate(piece, by);
                }
            });
        }
        Ok(())
    }

    fn gate(self, numbers: &mut [f32], by: &[f32]) {
        match self.0 {
            Some(arch) => arch.gate(numbers, by),
            None => portable::gate::<{ portable::FUSED }>(numbers, by),
        }
    }

    /// Lets queries, `(heads, count, size)`, attend to the keys and values of a layer; each of its
    /// heads has those of as many neighbors as there are more queries' heads. The first query sees
    /// the positions up to and with its own, `position`, each next one another one. `mixed` becomes
    /// `(count, heads * size)`.
    ///
    /// # Errors
    /// When the sizes do not fit each other.
    pub(crate) fn attend(
        self,
        queries: &[f32],
        heads: usize,
        position: usize,
        room: &Room<'_>,
        mixed: &mut Vec<f32>,
    ) -> Result<(), LocalError> {
        let (size, per_head) = (room.size, room.per_head);
        let count = queries.len() / (heads * size).max(1);
        let key_heads = room.keys.len() / per_head.max(1);
        let fits = count > 0
            && queries.len() == count * heads * size
            && room.keys.len() == room.values.len()
            && (position + count) * size <= per_head
            && key_heads > 0
            && heads.is_multiple_of(key_heads);
        if !fits {
            let message = format!("{count} queries of {heads} heads do not fit {key_heads}");
            return Err(LocalError::Inference(message));
        }
        mixed.resize(queries.len(), 0.0);
        let mut rows: Vec<_> = mixed
            .chunks_mut(heads * size)
            .map(|row| row.chunks_mut(size))
            .collect();
        let work = queries.chunks(count * size).enumerate();
        let work = work.map(|(head, queries)| {
            let of = head / (heads / key_heads);
            let seen = HeadContext {
                keys: room.keys.chunks_exact(per_head).nth(of).unwrap_or(&[]),
                values: room.values.chunks_exact(per_head).nth(of).unwrap_or(&[]),
                size,
                position,
            };
            let outs: Vec<&mut [f32]> = rows.iter_mut().filter_map(Iterator::next).collect();
            (queries, seen, outs)
        });
        on_all_processors(work, |(), (queries, seen, mut outs)| match self.0 {
            Some(arch) => arch.attend(queries, seen, &mut outs),
            None => portable::attend::<{ portable::FUSED }>(
                size,
                queries,
                (seen.keys, seen.values),
                position,
                &mut outs,
            ),
        });
        Ok(())
    }
}

/// Rows of numbers that matrices are multiplied with.
struct Inputs<'a> {
    rows: &'a [f32],
    width: usize,
    /// The same ones rounded to bytes, if a matrix needs that.
    rounded: Option<Numbers>,
}

/// Keys and values of a layer: for each head, room for so many positions of `size` numbers.
pub(crate) struct Room<'a> {
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
    /// Numbers that a head has room for.
    pub(crate) per_head: usize,
    pub(crate) size: usize,
}

/// Keys and values of one head, and the position of the first query.
#[derive(Clone, Copy)]
struct HeadContext<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    size: usize,
    position: usize,
}

/// A matrix of weights in its file: `outputs` rows with `inputs` numbers each.
pub(crate) struct Weights {
    kind: Kind,
    held: MappedSlice,
    outputs: usize,
    inputs: usize,
}

impl Weights {
    /// Takes the blocks of a matrix; `None` if they are not as many, or its rows are not whole blocks.
    pub(crate) fn new(
        held: MappedSlice,
        kind: Kind,
        outputs: usize,
        inputs: usize,
    ) -> Option<Self> {
        let bytes = kind.bytes(inputs)?.checked_mul(outputs)?;
        let fits = bytes == held.bytes().len() && bytes > 0;
        fits.then_some(Self {
            kind,
            held,
            outputs,
            inputs,
        })
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Unpacks one row into `out`, which is as long; `None` if there is no such row.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) -> Option<()> {
        let bytes = self.held.bytes().chunks_exact(self.row_bytes()).nth(row)?;
        self.kind.unpack(bytes, out);
        Some(())
    }

    /// Returns the pieces of work that make `out`, whole rows of the product.
    fn units<'a>(&'a self, out: &'a mut [f32]) -> impl Iterator<Item = Unit<'a>> + Send {
        let rows = out.chunks_mut(self.outputs);
        let unit = unit_rows(rows.len());
        let mut rows: Vec<_> = rows.map(|row| row.chunks_mut(unit)).collect();
        self.unit_bytes(unit).map(move |bytes| Unit {
            weights: self,
            bytes,
            pieces: rows.iter_mut().filter_map(Iterator::next).collect(),
        })
    }

    fn unit_bytes(&self, unit: usize) -> impl Iterator<Item = &[u8]> + Send {
        self.held.bytes().chunks(unit * self.row_bytes())
    }

    fn row_bytes(&self) -> usize {
        self.inputs / self.kind.block() * self.kind.block_bytes()
    }
}

/// A piece of work: some rows of weights, and what they make of every row of numbers.
struct Unit<'a> {
    weights: &'a Weights,
    bytes: &'a [u8],
    pieces: Vec<&'a mut [f32]>,
}

fn unit_rows(count: usize) -> usize {
    if count <= SINGLES_MAX { UNIT } else { UNIT_MAX }
}

/// Returns how many rows there are for some matrices, and their length.
fn count(weights: &[&Weights], rows: &[f32]) -> Result<(usize, usize), LocalError> {
    let inputs = weights.first().map_or(1, |it| it.inputs);
    if !rows.len().is_multiple_of(inputs) || weights.iter().any(|it| it.inputs != inputs) {
        let message = format!("{} numbers are not rows of {inputs}", rows.len());
        return Err(LocalError::Inference(message));
    }
    Ok((rows.len() / inputs, inputs))
}

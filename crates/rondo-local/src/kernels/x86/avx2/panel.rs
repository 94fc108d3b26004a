//! Many rows of numbers with a unit of weights.
//!
//! A panel is 8 rows of weights over one block of columns, unpacked to bytes and turned, so that a
//! lane of a vector is a row: then one instruction (`vpmaddubsw`) takes four numbers of one row of
//! numbers to all 8. The products are words, of which a part has so few that they add up without
//! overflow; only then are they widened and multiplied with the part's factor (`vpmaddwd`).

use super::super::ByteKernel;
use super::super::memory::{at, fetch_ahead};
use super::super::numbers::{Batch, Marks};
use super::headers::Headers;
use super::lanes::{Line, load_columns, store_floats, transpose_quarters};
use crate::kernels::{BATCH_MAX, UNIT_MAX};
use std::arch::x86_64::*;

/// Rows of weights in a panel: the lanes of a vector.
const LANES: usize = 8;
const PANELS: usize = UNIT_MAX / LANES;
/// Rows of numbers whose sums are in registers together, twice over: 12 of the 16 there are. Of what
/// is left, fewer are, and then each alone.
const MOST: usize = 6;
const SOME: usize = 3;
pub(super) const TOGETHER: [usize; 2] = [MOST, SOME];

struct Panel {
    /// Four bytes of each row, for the 64 fours of a block.
    weights: [[Line; 4]; 16],
    /// Factors of each 32 or 16 weights, twice in each lane.
    factors: [Line; 16],
    /// Scale of the whole numbers of each row.
    scale: Line,
    /// Offset of each 32 or 16 weights, times the sum of their numbers.
    offsets: [Line; 16],
}

impl Panel {
    const EMPTY: Self = Self {
        weights: [[Line::ZERO; 4]; 16],
        factors: [Line::ZERO; 16],
        scale: Line::ZERO,
        offsets: [Line::ZERO; 16],
    };
}

/// Multiplies all rows with a unit of weights.
#[target_feature(enable = "avx2,f16c,fma")]
pub(super) fn q4k(bytes: &[u8], batch: &Batch, outs: &mut [&mut [f32]]) {
    let blocks: &[[u8; 144]] = bytes.as_chunks().0;
    let unpack = |rows: [&[u8; 144]; LANES], panel: &mut Panel| unpack_q4k(rows, panel);
    multiply(blocks, ByteKernel::Q4K, batch, outs, unpack);
}

/// Multiplies all rows with a unit of weights.
#[target_feature(enable = "avx2,f16c,fma")]
pub(super) fn q6k(bytes: &[u8], batch: &Batch, outs: &mut [&mut [f32]]) {
    let blocks: &[[u8; 210]] = bytes.as_chunks().0;
    let unpack = |rows: [&[u8; 210]; LANES], panel: &mut Panel| unpack_q6k(rows, panel);
    multiply(blocks, ByteKernel::Q6K, batch, outs, unpack);
}

#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn multiply<B>(
    weights: &[B],
    kind: ByteKernel,
    batch: &Batch,
    outs: &mut [&mut [f32]],
    unpack: impl Fn([&B; LANES], &mut Panel),
) {
    let columns = batch.columns();
    let per_row = columns.len();
    let mut panel = Panel::EMPTY;
    let mut totals = [[Line::ZERO; BATCH_MAX]; PANELS];
    for (column, (quarters, marks)) in columns.enumerate() {
        let panels = weights.chunks_exact(LANES * per_row);
        for (rows, totals) in panels.zip(&mut totals) {
            let rows = std::array::from_fn(|row| &rows[row * per_row + column]);
            unpack(rows, &mut panel);
            let mut left = PendingRows {
                quarters,
                marks,
                totals,
            };
            left.add::<MOST>(&panel, kind);
            left.add::<SOME>(&panel, kind);
            left.add::<1>(&panel, kind);
        }
    }
    for (row, out) in outs.iter_mut().enumerate() {
        for (out, totals) in out.as_chunks_mut().0.iter_mut().zip(&totals) {
            store_floats(out, totals[row].floats());
        }
    }
}

/// The rows of numbers that have not been added yet, at one place, and what they are added to.
struct PendingRows<'a> {
    quarters: &'a [[i32; 4]],
    marks: &'a [Marks],
    totals: &'a mut [Line],
}

impl PendingRows<'_> {
    /// Adds so many rows at a time, as long as there are as many.
    #[inline]
    #[target_feature(enable = "avx2,f16c,fma")]
    fn add<const TOGETHER: usize>(&mut self, panel: &Panel, kind: ByteKernel) {
        let (marks, marks_left) = self.marks.as_chunks::<TOGETHER>();
        let rows = marks.len() * TOGETHER;
        let (quarters, quarters_left) = self.quarters.split_at(rows * 16);
        let (totals, totals_left) = std::mem::take(&mut self.totals).split_at_mut(rows);
        let quarters: &[[[[i32; 4]; TOGETHER]; 16]] = quarters.as_chunks().0.as_chunks().0;
        let totals = totals.as_chunks_mut().0;
        for ((quarters, marks), totals) in quarters.iter().zip(marks).zip(totals) {
            let whole = match kind {
                ByteKernel::Q4K => add_32(panel, quarters),
                ByteKernel::Q6K => add_16(panel, quarters),
            };
            add(panel, kind, whole, marks, totals);
        }
        *self = Self {
            quarters: quarters_left,
            marks: marks_left,
            totals: totals_left,
        };
    }
}

// The loops below count, as iterators that are put together are not always put in line here, and then
// the sums do not stay in registers.

/// Adds up the products of a block whose every 32 weights have a factor. Weights are at most 15, so 16
/// products of each of two bytes fit a word.
#[inline]
#[target_feature(enable = "avx2")]
fn add_32<const TOGETHER: usize>(
    panel: &Panel,
    quarters: &[[[i32; 4]; TOGETHER]; 16],
) -> [__m256i; TOGETHER] {
    let mut whole = [_mm256_setzero_si256(); TOGETHER];
    for part in 0..8 {
        let mut words = [_mm256_setzero_si256(); TOGETHER];
        for quarter in [2 * part, 2 * part + 1] {
            for four in 0..4 {
                let weights = &panel.weights[quarter][four];
                add_four(&mut words, weights, &quarters[quarter], four);
            }
        }
        add_words(&mut whole, &words, &panel.factors[part]);
    }
    whole
}

/// Adds up the products of a block whose every 16 weights have a factor. Weights are at most 63, so
/// two products of each of two bytes fit a word.
#[inline]
#[target_feature(enable = "avx2")]
fn add_16<const TOGETHER: usize>(
    panel: &Panel,
    quarters: &[[[i32; 4]; TOGETHER]; 16],
) -> [__m256i; TOGETHER] {
    let mut whole = [_mm256_setzero_si256(); TOGETHER];
    for (part, numbers) in quarters.iter().enumerate() {
        for pair in [0, 2] {
            let mut words = [_mm256_setzero_si256(); TOGETHER];
            for four in [pair, pair + 1] {
                add_four(&mut words, &panel.weights[part][four], numbers, four);
            }
            add_words(&mut whole, &words, &panel.factors[part]);
        }
    }
    whole
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_four<const TOGETHER: usize>(
    words: &mut [__m256i; TOGETHER],
    weights: &Line,
    numbers: &[[i32; 4]; TOGETHER],
    four: usize,
) {
    let weights = weights.get();
    for row in 0..TOGETHER {
        let numbers = _mm256_set1_epi32(numbers[row][four]);
        let products = _mm256_maddubs_epi16(weights, numbers);
        words[row] = _mm256_add_epi16(words[row], products);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_words<const TOGETHER: usize>(
    whole: &mut [__m256i; TOGETHER],
    words: &[__m256i; TOGETHER],
    factors: &Line,
) {
    let factors = factors.get();
    for row in 0..TOGETHER {
        let products = _mm256_madd_epi16(words[row], factors);
        whole[row] = _mm256_add_epi32(whole[row], products);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn add<const TOGETHER: usize>(
    panel: &Panel,
    kind: ByteKernel,
    whole: [__m256i; TOGETHER],
    marks: &[Marks; TOGETHER],
    totals: &mut [Line; TOGETHER],
) {
    let scale = panel.scale.floats();
    let mut sums = [_mm256_setzero_ps(); TOGETHER];
    for row in 0..TOGETHER {
        sums[row] = _mm256_mul_ps(_mm256_cvtepi32_ps(whole[row]), scale);
    }
    let parts = match kind {
        ByteKernel::Q4K => 8,
        ByteKernel::Q6K => 16,
    };
    for part in 0..parts {
        let offsets = panel.offsets[part].floats();
        for row in 0..TOGETHER {
            let of_part = match kind {
                ByteKernel::Q4K => marks[row].sums_of_32[part & 7],
                ByteKernel::Q6K => marks[row].sums_of_16[part],
            };
            sums[row] = _mm256_fnmadd_ps(offsets, _mm256_set1_ps(of_part), sums[row]);
        }
    }
    for row in 0..TOGETHER {
        let scale = _mm256_set1_ps(marks[row].scale);
        let total = totals[row].floats();
        totals[row].set_floats(_mm256_fmadd_ps(sums[row], scale, total));
    }
}

#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn unpack_q4k(rows: [&[u8; 144]; LANES], panel: &mut Panel) {
    for row in rows {
        fetch_ahead(row, row.len());
    }
    let nibble = _mm256_set1_epi8(0x0f);
    let parts = panel.weights.as_flattened_mut().as_chunks_mut::<16>().0;
    for (part, weights) in parts.iter_mut().enumerate() {
        // Of 32 bytes, the lower halves are 32 weights and the higher ones the next 32.
        let (low, high) = weights.split_at_mut(8);
        let fours = load_columns(&rows, 16 + part * 32);
        for ((low, high), fours) in low.iter_mut().zip(high).zip(fours) {
            low.set(_mm256_and_si256(fours, nibble));
            high.set(_mm256_and_si256(_mm256_srli_epi16::<4>(fours), nibble));
        }
    }
    let headers = Headers::read(&rows);
    panel.scale.set_floats(headers.scale);
    let byte = _mm256_set1_epi32(0xff);
    let factors = panel.factors.as_chunks_mut::<4>().0.iter_mut();
    let offsets = panel.offsets.as_chunks_mut::<4>().0.iter_mut();
    let bytes = headers.factors.into_iter().zip(headers.offsets);
    for ((factors, offsets), (factor_bytes, offset_bytes)) in factors.zip(offsets).zip(bytes) {
        let lines = factors.iter_mut().zip(offsets).zip([0, 8, 16, 24]);
        for ((factor, offset), shift) in lines {
            let shift = _mm256_set1_epi32(shift);
            let one = _mm256_and_si256(_mm256_srlv_epi32(factor_bytes, shift), byte);
            factor.set(twice(one));
            let one = _mm256_and_si256(_mm256_srlv_epi32(offset_bytes, shift), byte);
            offset.set_floats(_mm256_mul_ps(_mm256_cvtepi32_ps(one), headers.offset_scale));
        }
    }
}

/// Puts the lower word of each lane into both.
#[inline]
#[target_feature(enable = "avx2")]
fn twice(lanes: __m256i) -> __m256i {
    let low = _mm256_and_si256(lanes, _mm256_set1_epi32(0xffff));
    _mm256_or_si256(low, _mm256_slli_epi32::<16>(lanes))
}

#[inline]
#[target_feature(enable = "avx2,f16c,fma")]
fn unpack_q6k(rows: [&[u8; 210]; LANES], panel: &mut Panel) {
    for row in rows {
        fetch_ahead(row, row.len());
    }
    let nibble = _mm256_set1_epi8(0x0f);
    let top = _mm256_set1_epi8(0x30);
    let with =
        |fours, tops| _mm256_or_si256(_mm256_and_si256(fours, nibble), _mm256_and_si256(tops, top));
    let halves = panel.weights.as_flattened_mut().as_chunks_mut::<32>().0;
    for (half, weights) in halves.iter_mut().enumerate() {
        // Of 64 bytes, the lower halves are 64 weights and the higher ones the next 64; 32 bytes
        // have two more bits for each of the 128.
        let first = load_columns(&rows, half * 64);
        let second = load_columns(&rows, half * 64 + 32);
        let tops = load_columns(&rows, 128 + half * 32);
        for (index, ((first, second), tops)) in first.into_iter().zip(second).zip(tops).enumerate()
        {
            weights[index].set(with(first, _mm256_slli_epi16::<4>(tops)));
            weights[index + 8].set(with(second, _mm256_slli_epi16::<2>(tops)));
            weights[index + 16].set(with(_mm256_srli_epi16::<4>(first), tops));
            let second = _mm256_srli_epi16::<4>(second);
            weights[index + 24].set(with(second, _mm256_srli_epi16::<2>(tops)));
        }
    }
    let mut scales = [0.0; LANES];
    for (scale, row) in scales.iter_mut().zip(rows) {
        *scale = crate::blocks::half(*at(row, 208));
    }
    let scale = super::lanes::load_floats(&scales);
    panel.scale.set_floats(scale);
    // Weights are stored with 32 added.
    let offset_scale = _mm256_mul_ps(scale, _mm256_set1_ps(32.0));
    let factors = panel.factors.as_chunks_mut::<4>().0.iter_mut();
    let offsets = panel.offsets.as_chunks_mut::<4>().0.iter_mut();
    let bytes = transpose_quarters(&rows, 192);
    for ((factors, offsets), bytes) in factors.zip(offsets).zip(bytes) {
        let lines = factors.iter_mut().zip(offsets).zip([24, 16, 8, 0]);
        for ((factor, offset), shift) in lines {
            let one = _mm256_sllv_epi32(bytes, _mm256_set1_epi32(shift));
            let one = _mm256_srai_epi32::<24>(one);
            factor.set(twice(one));
            offset.set_floats(_mm256_mul_ps(_mm256_cvtepi32_ps(one), offset_scale));
        }
    }
}

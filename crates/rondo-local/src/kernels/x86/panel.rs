//! Many rows of numbers with a unit of weights.
//!
//! A panel is 16 rows of weights over one block of columns, unpacked to bytes and turned, so that a
//! lane of a vector is a row: then one instruction (`vpdpbusd`) takes four numbers of one row of
//! numbers to all 16. Unpacking costs about as much as four rows of numbers do.

use super::headers::Headers;
use super::lanes::{
    Line, at, fetch_ahead, load_each, load_words, store_floats, transpose, transpose_quarters,
};
use super::numbers::{Batch, Block};
use crate::kernels::{BATCH_MAX, UNIT_MAX};
use std::arch::x86_64::*;

/// Rows of weights in a panel: the lanes of a vector.
const LANES: usize = 16;
const PANELS: usize = UNIT_MAX / LANES;

struct Panel {
    /// Four bytes of each row, for the 64 fours of a block.
    weights: [Line; 64],
    /// What each 32 or 16 weights are multiplied with, less what the next ones are: the sum of the
    /// products goes on over them all, so that no register has to be cleared.
    factors: [Line; 16],
    /// What is taken off for each of them: pairs of words, in the order of the numbers' sums.
    offsets: [Line; 8],
    offset_scale: Line,
}

impl Panel {
    const EMPTY: Self = Self {
        weights: [Line::ZERO; 64],
        factors: [Line::ZERO; 16],
        offsets: [Line::ZERO; 8],
        offset_scale: Line::ZERO,
    };
}

/// How many weights have a factor of their own.
#[derive(Clone, Copy)]
enum Parts {
    Of32,
    Of16,
}

impl Parts {
    /// How many fours that is.
    fn fours(self) -> usize {
        match self {
            Self::Of32 => 8,
            Self::Of16 => 4,
        }
    }

    /// Where their sums begin in [`Block::sums`].
    fn first_sum(self) -> usize {
        match self {
            Self::Of32 => 0,
            Self::Of16 => 4,
        }
    }
}

/// Multiplies all rows with a unit of weights.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
pub(super) fn q4k(bytes: &[u8], batch: &Batch, outs: &mut [&mut [f32]]) {
    let blocks: &[[u8; 144]] = bytes.as_chunks().0;
    let unpack = |rows: [&[u8; 144]; LANES], panel: &mut Panel| unpack_q4k(rows, panel);
    multiply(blocks, Parts::Of32, batch, outs, unpack);
}

/// Multiplies all rows with a unit of weights.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
pub(super) fn q6k(bytes: &[u8], batch: &Batch, outs: &mut [&mut [f32]]) {
    let blocks: &[[u8; 210]] = bytes.as_chunks().0;
    let unpack = |rows: [&[u8; 210]; LANES], panel: &mut Panel| unpack_q6k(rows, panel);
    multiply(blocks, Parts::Of16, batch, outs, unpack);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn multiply<B>(
    weights: &[B],
    parts: Parts,
    batch: &Batch,
    outs: &mut [&mut [f32]],
    unpack: impl Fn([&B; LANES], &mut Panel),
) {
    let columns = batch.columns();
    let per_row = columns.len();
    let mut panel = Panel::EMPTY;
    let mut totals = [[Line::ZERO; BATCH_MAX]; PANELS];
    for (column, blocks) in columns.enumerate() {
        let panels = weights.chunks_exact(LANES * per_row);
        for (rows, totals) in panels.zip(&mut totals) {
            let rows = std::array::from_fn(|row| &rows[row * per_row + column]);
            unpack(rows, &mut panel);
            let totals = &mut totals[..blocks.len()];
            let (blocks, totals) = add_all::<12>(&panel, parts, blocks, totals);
            let (blocks, totals) = add_all::<4>(&panel, parts, blocks, totals);
            add_all::<1>(&panel, parts, blocks, totals);
        }
    }
    for (row, out) in outs.iter_mut().enumerate() {
        for (out, totals) in out.as_chunks_mut().0.iter_mut().zip(&totals) {
            store_floats(out, totals[row].floats());
        }
    }
}

/// Adds `TOGETHER` rows of numbers at a time, and returns those that are left. As many sums are in
/// registers twice over: 24 of the 32 there are, for 12 rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn add_all<'a, const TOGETHER: usize>(
    panel: &Panel,
    parts: Parts,
    blocks: &'a [Block],
    totals: &'a mut [Line],
) -> (&'a [Block], &'a mut [Line]) {
    let (together, rest) = blocks.as_chunks::<TOGETHER>();
    let (their_totals, totals) = totals.as_chunks_mut();
    for (blocks, totals) in together.iter().zip(their_totals) {
        add(panel, parts, blocks, totals);
    }
    (rest, totals)
}

/// Not in line, so that how many weights a part has is not known to the compiler, which would put
/// all additions of one row behind each other, where each has to wait for the last.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn add<const TOGETHER: usize>(
    panel: &Panel,
    parts: Parts,
    blocks: &[Block; TOGETHER],
    totals: &mut [Line; TOGETHER],
) {
    let zero = _mm512_setzero_si512();
    let mut sums = [_mm512_setzero_ps(); TOGETHER];
    let mut whole = [zero; TOGETHER];
    let mut quarter = 0;
    let parts_of_weights = panel.weights.chunks_exact(parts.fours());
    for (weights, factors) in parts_of_weights.zip(&panel.factors) {
        for weights in weights.as_chunks::<4>().0 {
            for (four, weights) in weights.iter().enumerate() {
                let weights = weights.get();
                for (whole, block) in whole.iter_mut().zip(blocks) {
                    let numbers = _mm512_set1_epi32(block.fours[quarter][four]);
                    *whole = _mm512_dpbusd_epi32(*whole, weights, numbers);
                }
            }
            quarter = (quarter + 1) % 16;
        }
        let factors = factors.floats();
        for (sum, whole) in sums.iter_mut().zip(&whole) {
            *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(*whole), factors, *sum);
        }
    }
    let mut offsets = [zero; TOGETHER];
    for (pair, of_panel) in panel.offsets.iter().enumerate().take(32 / parts.fours()) {
        let of_panel = of_panel.get();
        for (offset, block) in offsets.iter_mut().zip(blocks) {
            let sums = _mm512_set1_epi32(block.sums[parts.first_sum() + pair]);
            *offset = _mm512_dpwssd_epi32(*offset, of_panel, sums);
        }
    }
    let offset_scale = panel.offset_scale.floats();
    let sums = sums.into_iter().zip(offsets);
    for (((sum, offset), block), total) in sums.zip(blocks).zip(totals) {
        let sum = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(offset), offset_scale, sum);
        let scale = _mm512_set1_ps(block.scale);
        total.set_floats(_mm512_fmadd_ps(sum, scale, total.floats()));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn unpack_q4k(rows: [&[u8; 144]; LANES], panel: &mut Panel) {
    for row in rows {
        fetch_ahead(row, row.len());
    }
    let nibble = _mm512_set1_epi8(0x0f);
    let halves = panel.weights.as_chunks_mut::<32>().0;
    for (half, weights) in halves.iter_mut().enumerate() {
        let packed = load_each(&rows, 16 + half * 64);
        // Of 32 bytes, the lower halves are 32 weights and the higher ones the next 32.
        let (parts, fours) = (weights.as_chunks_mut::<16>().0, transpose(packed));
        for (weights, fours) in parts.iter_mut().zip(fours.as_chunks::<8>().0) {
            let (low, high) = weights.split_at_mut(8);
            for ((low, high), fours) in low.iter_mut().zip(high).zip(fours) {
                low.set(_mm512_and_si512(*fours, nibble));
                high.set(_mm512_and_si512(_mm512_srli_epi16::<4>(*fours), nibble));
            }
        }
    }
    let headers = Headers::read(&rows);
    let byte = _mm512_set1_epi32(0xff);
    let mut next = _mm512_setzero_ps();
    let factors = panel.factors[..8].as_chunks_mut::<4>().0;
    for (factors, fours) in factors.iter_mut().zip(headers.factors).rev() {
        for (factor, shift) in factors.iter_mut().zip([0, 8, 16, 24]).rev() {
            let one = _mm512_and_si512(_mm512_srlv_epi32(fours, _mm512_set1_epi32(shift)), byte);
            let one = _mm512_mul_ps(_mm512_cvtepi32_ps(one), headers.scale);
            factor.set_floats(_mm512_sub_ps(one, next));
            next = one;
        }
    }
    let offsets = panel.offsets.as_chunks_mut::<2>().0;
    for ([even, odd], fours) in offsets.iter_mut().zip(headers.offsets) {
        even.set(_mm512_and_si512(fours, _mm512_set1_epi16(0xff)));
        odd.set(_mm512_srli_epi16::<8>(fours));
    }
    panel.offset_scale.set_floats(headers.offset_scale);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn unpack_q6k(rows: [&[u8; 210]; LANES], panel: &mut Panel) {
    for row in rows {
        fetch_ahead(row, row.len());
    }
    let nibble = _mm512_set1_epi8(0x0f);
    let top = _mm512_set1_epi8(0x30);
    let low = |fours| _mm512_and_si512(fours, nibble);
    let high = |fours| _mm512_and_si512(_mm512_srli_epi16::<4>(fours), nibble);
    let with = |fours, tops| _mm512_or_si512(fours, _mm512_and_si512(tops, top));
    let tops = transpose(load_each(&rows, 128));
    let halves = panel.weights.as_chunks_mut::<32>().0;
    for (half, (weights, tops)) in halves.iter_mut().zip(tops.as_chunks::<8>().0).enumerate() {
        // Of 64 bytes, the lower halves are 64 weights and the higher ones the next 64; 32 bytes
        // have two more bits for each of the 128.
        let fours = transpose(load_each(&rows, half * 64));
        let (first, second) = fours.split_at(8);
        for (index, ((first, second), tops)) in first.iter().zip(second).zip(tops).enumerate() {
            weights[index].set(with(low(*first), _mm512_slli_epi16::<4>(*tops)));
            weights[index + 8].set(with(low(*second), _mm512_slli_epi16::<2>(*tops)));
            weights[index + 16].set(with(high(*first), *tops));
            weights[index + 24].set(with(high(*second), _mm512_srli_epi16::<2>(*tops)));
        }
    }
    let mut scales = [0_i16; LANES];
    for (scale, row) in scales.iter_mut().zip(rows) {
        *scale = i16::from_le_bytes(*at(row, 208));
    }
    let scale = _mm512_cvtph_ps(load_words(&scales));
    let factors = transpose_quarters(&rows, 192);
    let mut next = _mm512_setzero_ps();
    let floats = panel.factors.as_chunks_mut::<4>().0;
    let offsets = panel.offsets.as_chunks_mut::<2>().0;
    let lines = floats.iter_mut().zip(offsets);
    for ((floats, [even, odd]), fours) in lines.zip(factors).rev() {
        for (float, shift) in floats.iter_mut().zip([24, 16, 8, 0]).rev() {
            let top = _mm512_sllv_epi32(fours, _mm512_set1_epi32(shift));
            let one = _mm512_cvtepi32_ps(_mm512_srai_epi32::<24>(top));
            let one = _mm512_mul_ps(one, scale);
            float.set_floats(_mm512_sub_ps(one, next));
            next = one;
        }
        // Weights are stored with 32 added: a byte that is the higher one of a word, an eighth of it.
        even.set(_mm512_srai_epi16::<3>(_mm512_slli_epi16::<8>(fours)));
        let high = _mm512_and_si512(fours, _mm512_set1_epi16(-256));
        odd.set(_mm512_srai_epi16::<3>(high));
    }
    panel.offset_scale.set_floats(scale);
}

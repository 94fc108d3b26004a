//! Many rows of numbers with a unit of weights.
//!
//! A panel is 16 rows of weights over one block of columns, unpacked to bytes and turned, so that a
//! lane of a vector is a row: then one instruction (`vpdpbusd`) takes four numbers of one row of
//! numbers to all 16. Unpacking costs about as much as four rows of numbers do.

use super::super::memory::{at, fetch_ahead, load_words};
use super::super::numbers::{Batch, Marks};
use super::headers::Headers;
use super::lanes::{Line, load_each, store_floats, transpose, transpose_quarters};
use crate::kernels::{BATCH_MAX, UNIT_MAX};
use std::arch::x86_64::*;

/// Rows of weights in a panel: the lanes of a vector.
const LANES: usize = 16;
const PANELS: usize = UNIT_MAX / LANES;

/// Rows of numbers whose sums are in registers together, twice over: 24 of the 32 there are. Of what
/// is left, fewer are, and then each alone.
const MOST: usize = 12;
const SOME: usize = 4;
pub(super) const TOGETHER: [usize; 2] = [MOST, SOME];

struct Panel {
    /// Four bytes of each row, for the 64 fours of a block.
    weights: [[Line; 4]; 16],
    /// Factors of each 32 or 16 weights, less those of the next ones: the sum of the
    /// products continues over them all, so that no register has to be cleared.
    factors: [Line; 16],
    /// Offset of each of them, times the sum of their numbers.
    offsets: [Line; 16],
}

impl Panel {
    const EMPTY: Self = Self {
        weights: [[Line::ZERO; 4]; 16],
        factors: [Line::ZERO; 16],
        offsets: [Line::ZERO; 16],
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

    fn sums(self, of: &Marks) -> &[f32] {
        match self {
            Self::Of32 => &of.sums_of_32,
            Self::Of16 => &of.sums_of_16,
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
            left.add::<MOST>(&panel, parts);
            left.add::<SOME>(&panel, parts);
            left.add::<1>(&panel, parts);
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
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    fn add<const TOGETHER: usize>(&mut self, panel: &Panel, parts: Parts) {
        let (marks, marks_left) = self.marks.as_chunks::<TOGETHER>();
        let rows = marks.len() * TOGETHER;
        let (quarters, quarters_left) = self.quarters.split_at(rows * 16);
        let (totals, totals_left) = std::mem::take(&mut self.totals).split_at_mut(rows);
        let quarters: &[[[[i32; 4]; TOGETHER]; 16]] = quarters.as_chunks().0.as_chunks().0;
        let totals = totals.as_chunks_mut().0;
        for ((quarters, marks), totals) in quarters.iter().zip(marks).zip(totals) {
            add(panel, parts, quarters, marks, totals);
        }
        *self = Self {
            quarters: quarters_left,
            marks: marks_left,
            totals: totals_left,
        };
    }
}

/// Not in line, so that how many weights a part has is not known to the compiler, which would put
/// all additions of one row behind each other, where each has to wait for the last.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn add<const TOGETHER: usize>(
    panel: &Panel,
    parts: Parts,
    quarters: &[[[i32; 4]; TOGETHER]; 16],
    marks: &[Marks; TOGETHER],
    totals: &mut [Line; TOGETHER],
) {
    let zero = _mm512_setzero_si512();
    let mut sums = [_mm512_setzero_ps(); TOGETHER];
    let mut whole = [zero; TOGETHER];
    let mut factors = panel.factors.iter();
    let pairs = panel.weights.as_chunks().0.iter();
    for ([first, second], [one, two]) in pairs.zip(quarters.as_chunks().0) {
        add_quarter(&mut whole, first, one);
        if matches!(parts, Parts::Of16) {
            add_part(&mut sums, &whole, factors.next());
        }
        add_quarter(&mut whole, second, two);
        add_part(&mut sums, &whole, factors.next());
    }
    for (part, offsets) in panel.offsets.iter().enumerate().take(64 / parts.fours()) {
        let offsets = offsets.floats();
        for (sum, marks) in sums.iter_mut().zip(marks) {
            let of_part = _mm512_set1_ps(parts.sums(marks)[part]);
            *sum = _mm512_fnmadd_ps(offsets, of_part, *sum);
        }
    }
    for ((sum, marks), total) in sums.into_iter().zip(marks).zip(totals) {
        let scale = _mm512_set1_ps(marks.scale);
        total.set_floats(_mm512_fmadd_ps(sum, scale, total.floats()));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_quarter<const TOGETHER: usize>(
    whole: &mut [__m512i; TOGETHER],
    weights: &[Line; 4],
    numbers: &[[i32; 4]; TOGETHER],
) {
    for (four, weights) in weights.iter().enumerate() {
        let weights = weights.get();
        for (whole, numbers) in whole.iter_mut().zip(numbers) {
            *whole = _mm512_dpbusd_epi32(*whole, weights, _mm512_set1_epi32(numbers[four]));
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,fma")]
fn add_part<const TOGETHER: usize>(
    sums: &mut [__m512; TOGETHER],
    whole: &[__m512i; TOGETHER],
    factors: Option<&Line>,
) {
    let factors = factors.unwrap_or(&Line::ZERO).floats();
    for (sum, whole) in sums.iter_mut().zip(whole) {
        *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(*whole), factors, *sum);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn unpack_q4k(rows: [&[u8; 144]; LANES], panel: &mut Panel) {
    for row in rows {
        fetch_ahead(row, row.len());
    }
    let nibble = _mm512_set1_epi8(0x0f);
    let halves = panel.weights.as_flattened_mut().as_chunks_mut::<32>().0;
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
    let factors = bytes_to_floats(headers.factors, headers.scale);
    set_factors(&mut panel.factors[..8], &factors);
    let offsets = bytes_to_floats(headers.offsets, headers.offset_scale);
    for (line, offset) in panel.offsets.iter_mut().zip(offsets) {
        line.set_floats(offset);
    }
}

/// Takes 8 bytes of each lane, times a number of the lane's.
#[inline]
#[target_feature(enable = "avx512f")]
fn bytes_to_floats(bytes: [__m512i; 2], scale: __m512) -> [__m512; 8] {
    let byte = _mm512_set1_epi32(0xff);
    let mut floats = [scale; 8];
    for (floats, fours) in floats.as_chunks_mut::<4>().0.iter_mut().zip(bytes) {
        for (float, shift) in floats.iter_mut().zip([0, 8, 16, 24]) {
            let one = _mm512_and_si512(_mm512_srlv_epi32(fours, _mm512_set1_epi32(shift)), byte);
            *float = _mm512_mul_ps(*float, _mm512_cvtepi32_ps(one));
        }
    }
    floats
}

#[inline]
#[target_feature(enable = "avx512f")]
fn set_factors(lines: &mut [Line], factors: &[__m512]) {
    let mut next = _mm512_setzero_ps();
    for (line, factor) in lines.iter_mut().zip(factors).rev() {
        line.set_floats(_mm512_sub_ps(*factor, next));
        next = *factor;
    }
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
    let halves = panel.weights.as_flattened_mut().as_chunks_mut::<32>().0;
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
    let mut factors = [scale; 16];
    let fours = transpose_quarters(&rows, 192);
    for (factors, fours) in factors.as_chunks_mut::<4>().0.iter_mut().zip(fours) {
        for (factor, shift) in factors.iter_mut().zip([24, 16, 8, 0]) {
            let one = _mm512_sllv_epi32(fours, _mm512_set1_epi32(shift));
            let one = _mm512_cvtepi32_ps(_mm512_srai_epi32::<24>(one));
            *factor = _mm512_mul_ps(*factor, one);
        }
    }
    set_factors(&mut panel.factors, &factors);
    // Weights are stored with 32 added.
    for (line, factor) in panel.offsets.iter_mut().zip(factors) {
        line.set_floats(_mm512_mul_ps(factor, _mm512_set1_ps(32.0)));
    }
}

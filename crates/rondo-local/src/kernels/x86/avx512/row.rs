//! A few rows of numbers with many rows of weights, which are read once and from end to end.
//!
//! The memory of the weights should be the bound here. Unpacking keeps up with it
//! by making words (`vpmaddubsw`) and applying the factors as they are added up (`vpdpwssd`), which
//! are the fewest instructions; and sixteen blocks have their headers read together.

use super::super::AHEAD;
use super::super::memory::{
    at, fetch_ahead, load_half, load_quarter, load_quarter_words, load_words,
};
use super::super::numbers::{Column, SingleRow};
use super::headers::Headers;
use super::lanes::{load, load_floats, load_fours, store_eights, store_floats};
use std::arch::x86_64::*;

/// Makes words of a chosen byte for the lower lanes, and of another for the higher ones.
const fn pick(low: u8, high: u8) -> [u8; 64] {
    let mut bytes = [0x80; 64];
    let mut at = 0;
    while at < 64 {
        bytes[at] = if at < 32 { low } else { high };
        at += 2;
    }
    bytes
}

/// Which factors belong to the lower halves of 64 bytes' nibbles, and which to the higher ones.
const FACTORS_Q4K: [[u8; 64]; 4] = [pick(0, 2), pick(1, 3), pick(4, 6), pick(5, 7)];

/// Multiplies `N` rows with as many rows of weights as each of `outs` has room for, a multiple of 16.
/// Each row has the same bits as it has by itself.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
pub(super) fn q4k<const N: usize>(bytes: &[u8], rows: &[SingleRow; N], outs: &mut [&mut [f32]; N]) {
    let picks = FACTORS_Q4K.each_ref().map(|pick| load(pick));
    let nibble = _mm512_set1_epi8(0x0f);
    let columns = rows.first().map_or(1, |row| row.columns.len());
    let (mut sums, mut offsets) = ([_mm512_setzero_ps(); N], [_mm_setzero_ps(); N]);
    let (mut column, mut output) = (0, 0);
    let blocks: &[[u8; 144]] = bytes.as_chunks().0;
    for sixteen in blocks.as_chunks::<16>().0 {
        let headers = Headers::read(&sixteen.each_ref());
        let (mut scales, mut offset_scales) = ([[0.0; 16]; N], [[0.0; 16]; N]);
        for ((row, scales), offset_scales) in rows.iter().zip(&mut scales).zip(&mut offset_scales) {
            let own = load_floats(at(&row.scales, column));
            store_floats(scales, _mm512_mul_ps(own, headers.scale));
            store_floats(offset_scales, _mm512_mul_ps(own, headers.offset_scale));
        }
        let factors = eights(headers.factors);
        let all_offsets = eights(headers.offsets);
        for (index, block) in sixteen.iter().enumerate() {
            fetch_ahead(block, AHEAD);
            let factors = _mm512_set1_epi64(factors[index]);
            let factors = picks.map(|pick| _mm512_shuffle_epi8(factors, pick));
            let packed = [load(at(block, 16)), load(at(block, 80))];
            let low = packed.map(|packed| _mm512_and_si512(packed, nibble));
            let high =
                packed.map(|packed| _mm512_and_si512(_mm512_srli_epi16::<4>(packed), nibble));
            let weights = [low[0], high[0], low[1], high[1]];
            let block_offsets = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(all_offsets[index]));
            for row in 0..N {
                let numbers = &rows[row].columns[column];
                let mut whole = _mm512_setzero_si512();
                for ((weights, factors), numbers) in
                    weights.into_iter().zip(factors).zip(&numbers.nibbles)
                {
                    let words = _mm512_maddubs_epi16(weights, load_fours(numbers));
                    whole = _mm512_dpwssd_epi32(whole, words, factors);
                }
                let scale = _mm512_set1_ps(scales[row][index]);
                sums[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, sums[row]);
                let whole = _mm_madd_epi16(block_offsets, load_quarter_words(&numbers.sums_of_32));
                let scale = _mm_set1_ps(offset_scales[row][index]);
                offsets[row] = _mm_fmadd_ps(_mm_cvtepi32_ps(whole), scale, offsets[row]);
            }
            column += 1;
            if column == columns {
                for (out, (sum, offset)) in outs.iter_mut().zip(sums.iter().zip(&offsets)) {
                    if let Some(out) = out.get_mut(output) {
                        let offset = _mm512_zextps128_ps512(*offset);
                        *out = _mm512_reduce_add_ps(_mm512_sub_ps(*sum, offset));
                    }
                }
                (sums, offsets) = ([_mm512_setzero_ps(); N], [_mm_setzero_ps(); N]);
                (column, output) = (0, output + 1);
            }
        }
    }
}

/// Puts eight bytes of each of 16 lanes together, four and four.
#[inline]
#[target_feature(enable = "avx512f")]
fn eights([first, second]: [__m512i; 2]) -> [i64; 16] {
    // Each of these has two lanes of every quarter.
    let (mut low, mut high) = ([0; 8], [0; 8]);
    store_eights(&mut low, _mm512_unpacklo_epi32(first, second));
    store_eights(&mut high, _mm512_unpackhi_epi32(first, second));
    let mut all = [0; 16];
    let pairs = low.as_chunks::<2>().0.iter().zip(high.as_chunks::<2>().0);
    for (all, (low, high)) in all.as_chunks_mut::<4>().0.iter_mut().zip(pairs) {
        *all = [low[0], low[1], high[0], high[1]];
    }
    all
}

/// Shifts that move the top bits of 64 weights into place, which lie in the same 32 bytes: for the lower
/// half of the weights, and for the higher one.
const TOPS_UP: [i16; 2] = [4, 2];
const TOPS_DOWN: [i16; 2] = [0, 2];

/// Makes words with one of 16 factors in their higher byte, for every 16 of 64 weights.
const fn pick_q6k(first: u8) -> [u8; 64] {
    let mut bytes = [0x80; 64];
    let mut at = 0;
    while at < 64 {
        bytes[at + 1] = first + at as u8 / 16;
        at += 2;
    }
    bytes
}

const FACTORS_Q6K: [[u8; 64]; 4] = [pick_q6k(0), pick_q6k(4), pick_q6k(8), pick_q6k(12)];

/// Multiplies `N` rows with as many rows of weights as each of `outs` has room for. Each row has the same
/// bits as it has by itself.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
pub(super) fn q6k<const N: usize>(bytes: &[u8], rows: &[SingleRow; N], outs: &mut [&mut [f32]; N]) {
    let picks = FACTORS_Q6K.each_ref().map(|pick| load(pick));
    let nibble = _mm512_set1_epi8(0x0f);
    let top = _mm512_set1_epi8(0x30);
    let words = |[low, high]: [i16; 2]| {
        _mm512_inserti64x4::<1>(_mm512_set1_epi16(low), _mm256_set1_epi16(high))
    };
    let (up, down) = (words(TOPS_UP), words(TOPS_DOWN));
    let columns = rows.first().map_or(1, |row| row.columns.len());
    let blocks: &[[u8; 210]] = bytes.as_chunks().0;
    for (output, blocks) in blocks.chunks_exact(columns).enumerate() {
        let mut sums = [_mm512_setzero_ps(); N];
        for (column, block) in blocks.iter().enumerate() {
            fetch_ahead(block, AHEAD);
            let factors = load_quarter(at(block, 192));
            let all_factors = _mm512_broadcast_i32x4(factors);
            let wide_factors =
                picks.map(|pick| _mm512_srai_epi16::<8>(_mm512_shuffle_epi8(all_factors, pick)));
            let mut weights = [_mm512_setzero_si512(); 4];
            for (half, weights) in weights.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let packed = load(at(block, half * 64));
                let tops = _mm512_broadcast_i64x4(load_half(at(block, 128 + half * 32)));
                let low = _mm512_and_si512(packed, nibble);
                let high = _mm512_and_si512(_mm512_srli_epi16::<4>(packed), nibble);
                let low = with_tops(low, _mm512_sllv_epi16(tops, up), top);
                let high = with_tops(high, _mm512_srlv_epi16(tops, down), top);
                *weights = [low, high];
            }
            let half = i32::from(u16::from_le_bytes(*at(block, 208)));
            let own = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
            for (row, sum) in rows.iter().zip(&mut sums) {
                let numbers = &row.columns[column];
                let mut whole = _mm512_setzero_si512();
                let fours: &[[[i32; 4]; 4]] = numbers.block.fours.as_chunks().0;
                for ((weights, factors), fours) in weights.into_iter().zip(wide_factors).zip(fours)
                {
                    let words = _mm512_maddubs_epi16(weights, load_fours(fours));
                    whole = _mm512_dpwssd_epi32(whole, words, factors);
                }
                let whole = _mm512_sub_epi32(whole, offset_q6k(factors, numbers));
                let scale = _mm512_set1_ps(own * row.scales[column]);
                *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, *sum);
            }
        }
        for (out, sum) in outs.iter_mut().zip(sums) {
            if let Some(out) = out.get_mut(output) {
                *out = _mm512_reduce_add_ps(sum);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn with_tops(weights: __m512i, tops: __m512i, top: __m512i) -> __m512i {
    const AND_OR: i32 = 0b1110_1010;
    _mm512_ternarylogic_epi32::<AND_OR>(tops, top, weights)
}

/// Returns the excess of the block's weights: they are stored with 32 added.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn offset_q6k(factors: __m128i, column: &Column) -> __m512i {
    let factors = _mm256_cvtepi8_epi16(factors);
    let sums = _mm256_madd_epi16(factors, load_words(&column.sums_of_16));
    _mm512_zextsi256_si512(_mm256_slli_epi32::<5>(sums))
}

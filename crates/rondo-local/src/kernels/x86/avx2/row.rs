//! A few rows of numbers with many rows of weights, which are read once and from end to end.
//!
//! The memory of the weights should be the bound here. Bytes are multiplied and added in
//! pairs to words (`vpmaddubsw`), which the factors take to whole numbers (`vpmaddwd`); and eight
//! blocks have their headers read together.

use super::super::AHEAD;
use super::super::memory::{
    at, fetch_ahead, load_half, load_quarter, load_quarter_words, load_words,
};
use super::super::numbers::{Column, SingleRow};
use super::headers::Headers;
use super::lanes::{add_lanes, load_floats, load_fours, store_eights, store_floats};
use std::arch::x86_64::*;

/// Takes the same of eight words to all lanes.
const fn pick(word: u8) -> [u8; 32] {
    let mut bytes = [2 * word; 32];
    let mut at = 1;
    while at < 32 {
        bytes[at] += 1;
        at += 2;
    }
    bytes
}

const FACTORS_Q4K: [[u8; 32]; 8] = [
    pick(0),
    pick(1),
    pick(2),
    pick(3),
    pick(4),
    pick(5),
    pick(6),
    pick(7),
];

/// Multiplies `N` rows with as many rows of weights as each of `outs` has room for, a multiple of 8.
/// Each row has the same bits as it has by itself.
#[target_feature(enable = "avx2,f16c,fma")]
pub(super) fn q4k<const N: usize>(bytes: &[u8], rows: &[SingleRow; N], outs: &mut [&mut [f32]; N]) {
    let nibble = _mm256_set1_epi8(0x0f);
    let columns = rows.first().map_or(1, |row| row.columns.len());
    let (mut sums, mut offsets) = ([_mm256_setzero_ps(); N], [_mm_setzero_ps(); N]);
    let (mut column, mut output) = (0, 0);
    let blocks: &[[u8; 144]] = bytes.as_chunks().0;
    for eight in blocks.as_chunks::<8>().0 {
        let headers = Headers::read(&eight.each_ref());
        let (mut scales, mut offset_scales) = ([[0.0; 8]; N], [[0.0; 8]; N]);
        for ((row, scales), offset_scales) in rows.iter().zip(&mut scales).zip(&mut offset_scales) {
            let own = load_floats(at(&row.scales, column));
            store_floats(scales, _mm256_mul_ps(own, headers.scale));
            store_floats(offset_scales, _mm256_mul_ps(own, headers.offset_scale));
        }
        let factors = eights(headers.factors);
        let all_offsets = eights(headers.offsets);
        for (index, block) in eight.iter().enumerate() {
            fetch_ahead(block, AHEAD);
            let factors = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(factors[index]));
            let factors = _mm256_broadcastsi128_si256(factors);
            let mut whole = [_mm256_setzero_si256(); N];
            for part in 0..4 {
                let packed = load_half(at(block, 16 + part * 32));
                let low = _mm256_and_si256(packed, nibble);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(packed), nibble);
                for (part, weights) in [(2 * part, low), (2 * part + 1, high)] {
                    let pick = load_half(&FACTORS_Q4K[part]);
                    let factor = _mm256_shuffle_epi8(factors, pick);
                    for (row, whole) in rows.iter().zip(&mut whole) {
                        let numbers = row.columns[column].block.fours.as_chunks().0;
                        let words = _mm256_maddubs_epi16(weights, load_fours(&numbers[part]));
                        *whole = _mm256_add_epi32(*whole, _mm256_madd_epi16(words, factor));
                    }
                }
            }
            let block_offsets = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(all_offsets[index]));
            for (row, whole) in whole.into_iter().enumerate() {
                let scale = _mm256_set1_ps(scales[row][index]);
                sums[row] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, sums[row]);
                let numbers = &rows[row].columns[column];
                let whole = _mm_madd_epi16(block_offsets, load_quarter_words(&numbers.sums_of_32));
                let scale = _mm_set1_ps(offset_scales[row][index]);
                offsets[row] = _mm_fmadd_ps(_mm_cvtepi32_ps(whole), scale, offsets[row]);
            }
            column += 1;
            if column == columns {
                for (out, (sum, offset)) in outs.iter_mut().zip(sums.iter().zip(&offsets)) {
                    if let Some(out) = out.get_mut(output) {
                        let offset = _mm256_zextps128_ps256(*offset);
                        *out = add_lanes(_mm256_sub_ps(*sum, offset));
                    }
                }
                (sums, offsets) = ([_mm256_setzero_ps(); N], [_mm_setzero_ps(); N]);
                (column, output) = (0, output + 1);
            }
        }
    }
}

/// Puts eight bytes of each of 8 lanes together, four and four.
#[inline]
#[target_feature(enable = "avx2")]
fn eights([first, second]: [__m256i; 2]) -> [i64; 8] {
    // Each of these has two lanes of every half.
    let (mut low, mut high) = ([0; 4], [0; 4]);
    store_eights(&mut low, _mm256_unpacklo_epi32(first, second));
    store_eights(&mut high, _mm256_unpackhi_epi32(first, second));
    let [a, b, e, f] = low;
    let [c, d, g, h] = high;
    [a, b, c, d, e, f, g, h]
}

/// Takes one of eight words to the lower half, and the next to the higher one.
const fn pick_pair(word: u8) -> [u8; 32] {
    let mut bytes = pick(word);
    let mut at = 16;
    while at < 32 {
        bytes[at] += 2;
        at += 1;
    }
    bytes
}

/// Of eight factors, those of 32 weights each.
const FACTORS_Q6K: [[u8; 32]; 4] = [pick_pair(0), pick_pair(2), pick_pair(4), pick_pair(6)];

/// Multiplies `N` rows with as many rows of weights as each of `outs` has room for. Each row has the same
/// bits as it has by itself.
#[target_feature(enable = "avx2,f16c,fma")]
pub(super) fn q6k<const N: usize>(bytes: &[u8], rows: &[SingleRow; N], outs: &mut [&mut [f32]; N]) {
    let picks = FACTORS_Q6K.each_ref().map(|pick| load_half(pick));
    let nibble = _mm256_set1_epi8(0x0f);
    let top = _mm256_set1_epi8(0x30);
    let columns = rows.first().map_or(1, |row| row.columns.len());
    let blocks: &[[u8; 210]] = bytes.as_chunks().0;
    for (output, blocks) in blocks.chunks_exact(columns).enumerate() {
        let mut sums = [_mm256_setzero_ps(); N];
        for (column, block) in blocks.iter().enumerate() {
            fetch_ahead(block, AHEAD);
            let factors = _mm256_cvtepi8_epi16(load_quarter(at(block, 192)));
            let halves = [
                _mm256_permute4x64_epi64::<0b01_00_01_00>(factors),
                _mm256_permute4x64_epi64::<0b11_10_11_10>(factors),
            ];
            let mut whole = [_mm256_setzero_si256(); N];
            for (half, factors) in halves.into_iter().enumerate() {
                let first = load_half(at(block, half * 64));
                let second = load_half(at(block, half * 64 + 32));
                let tops = load_half(at(block, 128 + half * 32));
                let weights = [
                    (first, _mm256_slli_epi16::<4>(tops)),
                    (second, _mm256_slli_epi16::<2>(tops)),
                    (_mm256_srli_epi16::<4>(first), tops),
                    (_mm256_srli_epi16::<4>(second), _mm256_srli_epi16::<2>(tops)),
                ];
                for (part, (low, tops)) in weights.into_iter().enumerate() {
                    let low = _mm256_and_si256(low, nibble);
                    let weights = _mm256_or_si256(low, _mm256_and_si256(tops, top));
                    let factor = _mm256_shuffle_epi8(factors, picks[part]);
                    for (row, whole) in rows.iter().zip(&mut whole) {
                        let numbers = row.columns[column].block.fours.as_chunks().0;
                        let numbers = load_fours(&numbers[half * 4 + part]);
                        let words = _mm256_maddubs_epi16(weights, numbers);
                        *whole = _mm256_add_epi32(*whole, _mm256_madd_epi16(words, factor));
                    }
                }
            }
            let half = i32::from(u16::from_le_bytes(*at(block, 208)));
            let own = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
            for ((row, sum), whole) in rows.iter().zip(&mut sums).zip(whole) {
                let whole = _mm256_sub_epi32(whole, offset_q6k(factors, &row.columns[column]));
                let scale = _mm256_set1_ps(own * row.scales[column]);
                *sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, *sum);
            }
        }
        for (out, sum) in outs.iter_mut().zip(sums) {
            if let Some(out) = out.get_mut(output) {
                *out = add_lanes(sum);
            }
        }
    }
}

/// Returns the excess of the block's weights: they are stored with 32 added.
#[inline]
#[target_feature(enable = "avx2")]
fn offset_q6k(factors: __m256i, column: &Column) -> __m256i {
    let sums = _mm256_madd_epi16(factors, load_words(&column.sums_of_16));
    _mm256_slli_epi32::<5>(sums)
}

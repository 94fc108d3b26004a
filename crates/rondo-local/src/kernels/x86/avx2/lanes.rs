//! Vectors of 32 bytes: loads and stores with their lengths checked, and the shuffle of eight rows.

#![expect(
    unsafe_code,
    reason = "the instructions that load and store take bare pointers"
)]

use super::super::memory::{at, load_half, load_quarter};
use std::arch::x86_64::*;

/// A vector in memory.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Line([u8; 32]);

impl Line {
    pub(super) const ZERO: Self = Self([0; 32]);

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn get(&self) -> __m256i {
        load_half(&self.0)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn floats(&self) -> __m256 {
        _mm256_castsi256_ps(self.get())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn set(&mut self, to: __m256i) {
        // SAFETY: a line is as long as a vector, and this store needs no alignment.
        unsafe { _mm256_storeu_si256(self.0.as_mut_ptr().cast(), to) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn set_floats(&mut self, to: __m256) {
        self.set(_mm256_castps_si256(to));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_fours(from: &[[i32; 4]; 2]) -> __m256i {
    // SAFETY: the array is as long as a vector, and this load needs no alignment; so in all below.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_floats(from: &[f32; 8]) -> __m256 {
    // SAFETY: see `load_fours`.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_floats(to: &mut [f32; 8], from: __m256) {
    // SAFETY: see `load_fours`.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), from) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_eights(to: &mut [i64; 4], from: __m256i) {
    // SAFETY: see `load_fours`.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), from) }
}

/// Adds up the lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_lanes(of: __m256) -> f32 {
    let sum = _mm_add_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps::<1>(of));
    let sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)))
}

/// Adds up the lanes of whole numbers.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_whole_lanes(of: __m256i) -> i32 {
    let sum = _mm_add_epi32(
        _mm256_castsi256_si128(of),
        _mm256_extracti128_si256::<1>(of),
    );
    let sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32::<1>(sum)))
}

/// Loads the same part of 8 blocks and turns its 8 fours into columns.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_columns<const N: usize>(blocks: &[&[u8; N]; 8], start: usize) -> [__m256i; 8] {
    let mut halves = [[_mm256_setzero_si256(); 4]; 2];
    for (half, columns) in halves.iter_mut().enumerate() {
        *columns = transpose_quarters(blocks, start + half * 16);
    }
    let [[a, b, c, d], [e, f, g, h]] = halves;
    [a, b, c, d, e, f, g, h]
}

/// Turns 4 fours of 8 blocks each into their columns.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn transpose_quarters<const N: usize>(
    blocks: &[&[u8; N]; 8],
    start: usize,
) -> [__m256i; 4] {
    let mut rows = [_mm256_setzero_si256(); 4];
    for (first, row) in rows.iter_mut().enumerate() {
        let quarter = |index: usize| load_quarter(at(blocks[index], start));
        *row = _mm256_inserti128_si256::<1>(
            _mm256_castsi128_si256(quarter(first)),
            quarter(first + 4),
        );
    }
    let [a, b, c, d] = rows;
    let low = [_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d)];
    let high = [_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d)];
    [
        _mm256_unpacklo_epi64(low[0], low[1]),
        _mm256_unpackhi_epi64(low[0], low[1]),
        _mm256_unpacklo_epi64(high[0], high[1]),
        _mm256_unpackhi_epi64(high[0], high[1]),
    ]
}

/// Widens the lower words of 8 fours, which are halves, to floats.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn widen_halves(fours: __m256i) -> __m256 {
    let low = _mm256_and_si256(fours, _mm256_set1_epi32(0xffff));
    let words = _mm256_packus_epi32(low, low);
    let words = _mm256_permute4x64_epi64::<0b10_00>(words);
    _mm256_cvtph_ps(_mm256_castsi256_si128(words))
}

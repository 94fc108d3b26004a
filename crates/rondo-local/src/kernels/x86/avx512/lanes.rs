//! Vectors of 64 bytes: loads and stores with their lengths checked, and the shuffles that several
//! kernels need.

#![expect(
    unsafe_code,
    reason = "the instructions that load and store take bare pointers"
)]

use super::super::memory::{at, load_quarter};
use std::arch::x86_64::*;

/// A vector in memory.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line([u8; 64]);

impl Line {
    pub(super) const ZERO: Self = Self([0; 64]);

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn get(&self) -> __m512i {
        load(&self.0)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn floats(&self) -> __m512 {
        _mm512_castsi512_ps(self.get())
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn set(&mut self, to: __m512i) {
        // SAFETY: a line is as long as a vector, and this store needs no alignment.
        unsafe { _mm512_storeu_si512(self.0.as_mut_ptr().cast(), to) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn set_floats(&mut self, to: __m512) {
        self.set(_mm512_castps_si512(to));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(from: &[u8; 64]) -> __m512i {
    // SAFETY: the array is as long as a vector, and this load needs no alignment; so in all below.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_fours(from: &[[i32; 4]; 4]) -> __m512i {
    // SAFETY: see `load`.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_floats(from: &[f32; 16]) -> __m512 {
    // SAFETY: see `load`.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_floats(to: &mut [f32; 16], from: __m512) {
    // SAFETY: see `load`.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), from) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_eights(to: &mut [i64; 8], from: __m512i) {
    // SAFETY: see `load`.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), from) }
}

/// Loads the same part of 16 blocks. (A loop, as `map` cannot put the
/// closures of such functions in line: it is built without the instructions.)
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_each<const N: usize>(blocks: &[&[u8; N]; 16], start: usize) -> [__m512i; 16] {
    let mut vectors = [_mm512_setzero_si512(); 16];
    for (vector, block) in vectors.iter_mut().zip(blocks) {
        *vector = load(at(block.as_slice(), start));
    }
    vectors
}

/// Turns 16 rows of 16 fours into their columns.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
    let zero = _mm512_setzero_si512();
    let mut pairs = [zero; 16];
    for (pairs, rows) in pairs.as_chunks_mut().0.iter_mut().zip(rows.as_chunks().0) {
        let [one, two]: [__m512i; 2] = *rows;
        *pairs = [
            _mm512_unpacklo_epi32(one, two),
            _mm512_unpackhi_epi32(one, two),
        ];
    }
    // Of the rows 4n to 4n + 3, the quarter q of line 4n + c is column 4q + c.
    let mut quarters = [zero; 16];
    for (quarters, pairs) in quarters
        .as_chunks_mut()
        .0
        .iter_mut()
        .zip(pairs.as_chunks().0)
    {
        let [one, two, three, four]: [__m512i; 4] = *pairs;
        *quarters = [
            _mm512_unpacklo_epi64(one, three),
            _mm512_unpackhi_epi64(one, three),
            _mm512_unpacklo_epi64(two, four),
            _mm512_unpackhi_epi64(two, four),
        ];
    }
    let [rows_0, rows_4, rows_8, rows_12] = *quarters.as_chunks::<4>().0 else {
        return quarters;
    };
    let mut columns = [[zero; 4]; 4];
    for c in 0..4 {
        let (a, b, d, e) = (rows_0[c], rows_4[c], rows_8[c], rows_12[c]);
        let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
        let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
        let even_low = _mm512_shuffle_i32x4::<0b10_00_10_00>(d, e);
        let odd_low = _mm512_shuffle_i32x4::<0b11_01_11_01>(d, e);
        columns[0][c] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even, even_low);
        columns[1][c] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd, odd_low);
        columns[2][c] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even, even_low);
        columns[3][c] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd, odd_low);
    }
    let mut all = [zero; 16];
    all.as_chunks_mut().0.copy_from_slice(&columns);
    all
}

/// Turns 4 fours of 16 blocks each into their columns.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose_quarters<const N: usize>(
    blocks: &[&[u8; N]; 16],
    start: usize,
) -> [__m512i; 4] {
    let mut rows = [_mm512_setzero_si512(); 4];
    for (first, row) in rows.iter_mut().enumerate() {
        let quarter = |index: usize| load_quarter(at(blocks[first + index], start));
        *row = _mm512_castsi128_si512(quarter(0));
        *row = _mm512_inserti32x4::<1>(*row, quarter(4));
        *row = _mm512_inserti32x4::<2>(*row, quarter(8));
        *row = _mm512_inserti32x4::<3>(*row, quarter(12));
    }
    let [a, b, c, d] = rows;
    let low = [_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d)];
    let high = [_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d)];
    [
        _mm512_unpacklo_epi64(low[0], low[1]),
        _mm512_unpackhi_epi64(low[0], low[1]),
        _mm512_unpacklo_epi64(high[0], high[1]),
        _mm512_unpackhi_epi64(high[0], high[1]),
    ]
}

/// Widens the lower words of 16 fours, which are halves, to floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn widen_halves(fours: __m512i) -> __m512 {
    _mm512_cvtph_ps(_mm512_cvtepi32_epi16(fours))
}

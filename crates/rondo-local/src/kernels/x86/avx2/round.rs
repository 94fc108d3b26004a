//! Numbers rounded to bytes.

use super::super::memory::store_quarter;
use super::super::numbers::{Block, Marks};
use super::lanes::{add_whole_lanes, load_floats};
use crate::kernels::BLOCK;
use std::arch::x86_64::*;

/// Rounds a block.
#[target_feature(enable = "avx2")]
pub(super) fn round(numbers: &[f32; BLOCK]) -> Block {
    let largest = largest(numbers);
    let up = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let mut fours = [[0; 4]; 16];
    let mut marks = Marks {
        scale: largest / 127.0,
        ..Marks::NONE
    };
    let sums = fours.iter_mut().zip(&mut marks.sums_of_16);
    let pairs: &[[[f32; 8]; 2]] = numbers.as_chunks().0.as_chunks().0;
    for ([low, high], (bytes, sum)) in pairs.iter().zip(sums) {
        let up = _mm256_set1_ps(up);
        let low = _mm256_cvtps_epi32(_mm256_mul_ps(load_floats(low), up));
        let high = _mm256_cvtps_epi32(_mm256_mul_ps(load_floats(high), up));
        *sum = add_whole_lanes(_mm256_add_epi32(low, high)) as f32;
        // Narrowing takes the quarters of both in turns.
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
        let (low, high) = (
            _mm256_castsi256_si128(words),
            _mm256_extracti128_si256::<1>(words),
        );
        store_quarter(bytes, _mm_packs_epi16(low, high));
    }
    marks.sum_up();
    Block { fours, marks }
}

#[inline]
#[target_feature(enable = "avx2")]
fn largest(numbers: &[f32; BLOCK]) -> f32 {
    let mut largest = _mm256_setzero_ps();
    let sign = _mm256_set1_ps(-0.0);
    for vector in numbers.as_chunks().0 {
        largest = _mm256_max_ps(largest, _mm256_andnot_ps(sign, load_floats(vector)));
    }
    let half = _mm_max_ps(
        _mm256_castps256_ps128(largest),
        _mm256_extractf128_ps::<1>(largest),
    );
    let half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)))
}

//! Numbers rounded to bytes.

use super::super::memory::store_quarter;
use super::super::numbers::{Block, Marks};
use super::lanes::load_floats;
use crate::kernels::BLOCK;
use std::arch::x86_64::*;

/// Rounds a block.
#[target_feature(enable = "avx512f")]
pub(super) fn round(numbers: &[f32; BLOCK]) -> Block {
    let vectors = numbers.as_chunks().0;
    let mut largest = _mm512_setzero_ps();
    for vector in vectors {
        largest = _mm512_max_ps(largest, _mm512_abs_ps(load_floats(vector)));
    }
    let largest = _mm512_reduce_max_ps(largest);
    let up = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let mut fours = [[0; 4]; 16];
    let mut marks = Marks {
        scale: largest / 127.0,
        ..Marks::NONE
    };
    let sums = fours.iter_mut().zip(&mut marks.sums_of_16);
    for (vector, (bytes, sum)) in vectors.iter().zip(sums) {
        let whole = _mm512_cvtps_epi32(_mm512_mul_ps(load_floats(vector), _mm512_set1_ps(up)));
        store_quarter(bytes, _mm512_cvtepi32_epi8(whole));
        *sum = _mm512_reduce_add_epi32(whole) as f32;
    }
    marks.sum_up();
    Block { fours, marks }
}

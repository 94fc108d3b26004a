//! The gate of a feed-forward layer.

use super::lanes::{load_floats, store_floats};
use crate::kernels::portable::SERIES;
use std::arch::x86_64::*;
use std::f32::consts::LOG2_E;

/// Multiplies each number's `x / (1 + exp(-x))` with the other number. Both have the same length.
#[target_feature(enable = "avx512f")]
pub(super) fn gate(numbers: &mut [f32], by: &[f32]) {
    let (vectors, rest) = numbers.as_chunks_mut::<16>();
    let (by_vectors, by_rest) = by.as_chunks::<16>();
    for (vector, by) in vectors.iter_mut().zip(by_vectors) {
        gate_vector(vector, by);
    }
    let (mut last, mut by_last) = ([0.0; 16], [0.0; 16]);
    for ((last, rest), (by_last, by_rest)) in last
        .iter_mut()
        .zip(&*rest)
        .zip(by_last.iter_mut().zip(by_rest))
    {
        (*last, *by_last) = (*rest, *by_rest);
    }
    gate_vector(&mut last, &by_last);
    rest.copy_from_slice(&last[..rest.len()]);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn gate_vector(numbers: &mut [f32; 16], by: &[f32; 16]) {
    let numbers_in = load_floats(numbers);
    let one = _mm512_set1_ps(1.0);
    let below = _mm512_add_ps(
        one,
        power_of_two(_mm512_mul_ps(numbers_in, _mm512_set1_ps(-LOG2_E))),
    );
    let gate = _mm512_div_ps(numbers_in, below);
    store_floats(numbers, _mm512_mul_ps(gate, load_floats(by)));
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn power_of_two(of: __m512) -> __m512 {
    const TO_NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    let whole = _mm512_roundscale_ps::<TO_NEAREST>(of);
    let rest = _mm512_sub_ps(of, whole);
    let mut power = _mm512_setzero_ps();
    for term in SERIES {
        power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(term));
    }
    _mm512_scalef_ps(power, whole)
}

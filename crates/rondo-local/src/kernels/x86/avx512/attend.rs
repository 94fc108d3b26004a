//! Attention: one head's queries with the keys and values they may see.

use super::gate::power_of_two;
use super::lanes::{load_floats, store_floats, transpose};
use std::arch::x86_64::*;
use std::f32::consts::LOG2_E;

/// Positions that are computed together, and queries that go over the keys together.
const GROUP: usize = 16;

/// Mixes the values for each query, as [`crate::kernels::attend`] says. A head has `V` times 16
/// numbers.
#[target_feature(enable = "avx512f")]
pub(super) fn attend<const V: usize>(
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    seen: usize,
    outs: &mut [&mut [f32]],
) {
    let queries: &[[[f32; 16]; V]] = queries.as_chunks().0.as_chunks().0;
    let keys = groups::<V>(keys);
    let values = groups::<V>(values);
    let outs = outs.chunks_mut(GROUP);
    let scale = _mm512_set1_ps(((V * 16) as f32).sqrt().recip());
    for (index, (queries, outs)) in queries.chunks(GROUP).zip(outs).enumerate() {
        let seen = seen + index * GROUP;
        let groups = (seen + queries.len()).div_ceil(GROUP).min(keys.len());
        let mut weights = vec![[0.0; 16]; groups * queries.len()];
        for (group, keys) in keys.iter().take(groups).enumerate() {
            for (query, weights) in queries.iter().zip(weights.chunks_exact_mut(groups)) {
                let scores = _mm512_mul_ps(scores(query, keys), scale);
                store_floats(&mut weights[group], scores);
            }
        }
        let mut shares = [0.0; GROUP];
        let rows = weights.chunks_exact_mut(groups).zip(&mut shares);
        for (query, (weights, share)) in rows.enumerate() {
            *share = soft_max(weights.as_flattened_mut(), seen + query);
        }
        let mut sums = [[[0.0; 16]; V]; GROUP];
        for (group, values) in values.iter().take(groups).enumerate() {
            for (weights, sums) in weights.chunks_exact(groups).zip(&mut sums) {
                add(sums, &weights[group], values);
            }
        }
        for ((out, sums), share) in outs.iter_mut().zip(&sums).zip(shares) {
            for (out, sum) in out.iter_mut().zip(sums.as_flattened()) {
                *out = sum * share;
            }
        }
    }
}

/// Sixteen positions at a time.
fn groups<const V: usize>(numbers: &[f32]) -> &[[[[f32; 16]; V]; GROUP]] {
    numbers.as_chunks().0.as_chunks().0.as_chunks().0
}

/// Multiplies a query with sixteen keys.
#[inline]
#[target_feature(enable = "avx512f")]
fn scores<const V: usize>(query: &[[f32; 16]; V], keys: &[[[f32; 16]; V]; GROUP]) -> __m512 {
    let mut partial = [_mm512_setzero_si512(); 16];
    for (partial, key) in partial.iter_mut().zip(keys) {
        let mut sum = _mm512_setzero_ps();
        for (query, key) in query.iter().zip(key) {
            sum = _mm512_fmadd_ps(load_floats(query), load_floats(key), sum);
        }
        *partial = _mm512_castps_si512(sum);
    }
    let mut sums = [_mm512_setzero_ps(); 4];
    for four in transpose(partial).as_chunks::<4>().0 {
        for (sum, column) in sums.iter_mut().zip(four) {
            *sum = _mm512_add_ps(*sum, _mm512_castsi512_ps(*column));
        }
    }
    let [a, b, c, d] = sums;
    _mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d))
}

/// Turns the scores of positions up to `last` into weights, others into none, and returns what the
/// weights have to be multiplied with to be one together.
#[inline]
#[target_feature(enable = "avx512f")]
fn soft_max(scores: &mut [f32], last: usize) -> f32 {
    if let Some(unseen) = scores.get_mut(last + 1..) {
        unseen.fill(f32::NEG_INFINITY);
    }
    let vectors = scores.as_chunks_mut::<16>().0;
    let mut largest = _mm512_set1_ps(f32::NEG_INFINITY);
    for vector in &*vectors {
        largest = _mm512_max_ps(largest, load_floats(vector));
    }
    let largest = _mm512_set1_ps(_mm512_reduce_max_ps(largest));
    let mut sum = _mm512_setzero_ps();
    for vector in vectors {
        let below = _mm512_sub_ps(load_floats(vector), largest);
        let weight = power_of_two(_mm512_mul_ps(below, _mm512_set1_ps(LOG2_E)));
        sum = _mm512_add_ps(sum, weight);
        store_floats(vector, weight);
    }
    _mm512_reduce_add_ps(sum).recip()
}

/// Adds sixteen values, each as much as it weighs.
#[inline]
#[target_feature(enable = "avx512f")]
fn add<const V: usize>(
    sums: &mut [[f32; 16]; V],
    weights: &[f32; GROUP],
    values: &[[[f32; 16]; V]; GROUP],
) {
    let mut all = [_mm512_setzero_ps(); V];
    for (all, sum) in all.iter_mut().zip(&*sums) {
        *all = load_floats(sum);
    }
    for (weight, value) in weights.iter().zip(values) {
        let weight = _mm512_set1_ps(*weight);
        for (all, value) in all.iter_mut().zip(value) {
            *all = _mm512_fmadd_ps(weight, load_floats(value), *all);
        }
    }
    for (sum, all) in sums.iter_mut().zip(all) {
        store_floats(sum, all);
    }
}

//! Kernels for every processor and all kinds of blocks: weights are unpacked to floats, four
//! rows at a time, and meet the numbers as they are.
//!
//! Functions are put in line so that they can be compiled for more instructions than the program's
//! own (`x86.rs` does); whether one multiplies and adds at once has to be said, since asking a
//! processor for it that cannot is a call of a function.
#![expect(
    clippy::inline_always,
    reason = "what is not put in line is compiled for the program's own instructions"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "what is indexed is cut to one length before, and the tests take all lengths"
)]

use crate::blocks::Kind;
use std::array;
use std::f32::consts::{LN_2, LOG2_E};

/// `true` if this architecture always multiplies and adds at once.
pub(super) const FUSED: bool = cfg!(target_arch = "aarch64");

/// Numbers of a vector, whatever the registers hold.
const LANES: usize = 8;
/// Rows of weights that are unpacked together.
const ROWS: usize = 4;

/// Multiplies all rows of numbers with one unit of weights, whose rows have `inputs` numbers; `outs`
/// has a piece of each row of the product.
#[inline(always)]
pub(super) fn multiply<const FUSE: bool>(
    kind: Kind,
    bytes: &[u8],
    inputs: usize,
    rows: &[f32],
    outs: &mut [&mut [f32]],
) {
    let row_bytes = bytes.len() / outs.first().map_or(1, |out| out.len()).max(1);
    let mut unpacked = vec![0.0; inputs * ROWS];
    for (group, bytes) in bytes.chunks(row_bytes * ROWS).enumerate() {
        kind.unpack(bytes, &mut unpacked);
        let place = group * ROWS;
        if bytes.len() == row_bytes * ROWS {
            let weights = split::<ROWS>(&unpacked, inputs);
            multiply_group::<FUSE, ROWS>(weights, place, rows, outs);
        } else {
            let weights = unpacked.chunks_exact(inputs);
            for (index, weights) in weights.take(bytes.len() / row_bytes).enumerate() {
                multiply_group::<FUSE, 1>([weights], place + index, rows, outs);
            }
        }
    }
}

#[inline(always)]
fn split<const N: usize>(numbers: &[f32], length: usize) -> [&[f32]; N] {
    let mut parts = numbers.chunks_exact(length);
    array::from_fn(|_| parts.next().unwrap_or_default())
}

#[inline(always)]
fn multiply_group<const FUSE: bool, const W: usize>(
    weights: [&[f32]; W],
    place: usize,
    rows: &[f32],
    outs: &mut [&mut [f32]],
) {
    let inputs = weights.first().map_or(1, |row| row.len()).max(1);
    let mut put = |row: usize, products: [f32; W]| {
        let out = outs.get_mut(row).and_then(|out| out.get_mut(place..));
        let out = out.unwrap_or_default().iter_mut();
        out.zip(products).for_each(|(out, product)| *out = product);
    };
    let mut rows = rows.chunks_exact(inputs).enumerate();
    while let Some((index, one)) = rows.next() {
        if let Some((next, two)) = rows.next() {
            let [first, second] = dots::<FUSE, W, 2>(weights, [one, two]);
            put(index, first);
            put(next, second);
        } else {
            let [only] = dots::<FUSE, W, 1>(weights, [one]);
            put(index, only);
        }
    }
}

/// Multiplies each of some rows with each of some others. All have the same length.
#[inline(always)]
// With counted loops over slices of one known length, the sums stay in registers.
fn dots<const FUSE: bool, const W: usize, const N: usize>(
    weights: [&[f32]; W],
    rows: [&[f32]; N],
) -> [[f32; W]; N] {
    let length = weights.iter().chain(&rows).map(|row| row.len()).min();
    let length = length.unwrap_or(0);
    let whole = length / LANES;
    let weights = weights.map(|row| &row[..length]);
    let rows = rows.map(|row| &row[..length]);
    let weight_vectors = weights.map(|row| &row.as_chunks::<LANES>().0[..whole]);
    let row_vectors = rows.map(|row| &row.as_chunks::<LANES>().0[..whole]);
    let mut sums = [[[0.0; LANES]; W]; N];
    for index in 0..whole {
        for n in 0..N {
            let row = row_vectors[n][index];
            for w in 0..W {
                let weight = weight_vectors[w][index];
                for lane in 0..LANES {
                    let sum = sums[n][w][lane];
                    sums[n][w][lane] = fused::<FUSE>(weight[lane], row[lane], sum);
                }
            }
        }
    }
    let mut totals = [[0.0; W]; N];
    for n in 0..N {
        for w in 0..W {
            totals[n][w] = added(&sums[n][w]);
            for at in whole * LANES..length {
                totals[n][w] += weights[w][at] * rows[n][at];
            }
        }
    }
    totals
}

#[inline(always)]
fn fused<const FUSE: bool>(left: f32, right: f32, sum: f32) -> f32 {
    if FUSE {
        left.mul_add(right, sum)
    } else {
        left * right + sum
    }
}

#[inline(always)]
fn added(sums: &[f32; LANES]) -> f32 {
    let [a, b, c, d, e, f, g, h] = *sums;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

/// Multiplies each number's `x / (1 + exp(-x))` with the other number. Both have the same length.
#[inline(always)]
pub(super) fn gate<const FUSE: bool>(numbers: &mut [f32], by: &[f32]) {
    for (number, by) in numbers.iter_mut().zip(by) {
        *number = *number / (1.0 + power_of_two::<FUSE>(*number * -LOG2_E)) * by;
    }
}

/// Coefficients of the series of the powers of two between -0.5 and 0.5: `ln(2)^n / n!`, from the sixth down.
pub(super) const SERIES: [f32; 7] = [
    1.540_353e-4,
    1.333_355_8e-3,
    9.618_129e-3,
    5.550_411e-2,
    0.240_226_5,
    LN_2,
    1.0,
];

/// Adding this to a number, and taking it away, rounds to a whole one, which is in the lowest bits in
/// between.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn power_of_two<const FUSE: bool>(of: f32) -> f32 {
    // Beyond, the power is zero or infinite anyway.
    let of = of.clamp(-160.0, 160.0);
    let shifted = of + ROUND;
    let rest = of - (shifted - ROUND);
    let mut power = 0.0;
    for term in SERIES {
        power = fused::<FUSE>(power, rest, term);
    }
    let whole = shifted
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
        .cast_signed();
    // In two steps, as the power of two itself may have no float.
    let half = whole >> 1;
    let scale = |whole: i32| f32::from_bits((whole.wrapping_add(127) << 23).cast_unsigned());
    power * scale(half) * scale(whole.wrapping_sub(half))
}

/// Mixes the values for each query of one head, as [`super::attend`] says.
#[inline(always)]
pub(super) fn attend<const FUSE: bool>(
    size: usize,
    queries: &[f32],
    (keys, values): (&[f32], &[f32]),
    position: usize,
    outs: &mut [&mut [f32]],
) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "heads have a few hundred numbers"
    )]
    let scale = (size as f32).sqrt().recip();
    let mut weights = Vec::new();
    for (index, (query, out)) in queries.chunks_exact(size).zip(outs).enumerate() {
        let seen = position + index + 1;
        weights.clear();
        weights.resize(seen, 0.0);
        score::<FUSE>(query, keys, &mut weights);
        weights.iter_mut().for_each(|weight| *weight *= scale);
        let share = soft_max::<FUSE>(&mut weights);
        mix::<FUSE>(&weights, values, out);
        out.iter_mut().for_each(|number| *number *= share);
    }
}

#[inline(always)]
fn score<const FUSE: bool>(query: &[f32], keys: &[f32], scores: &mut [f32]) {
    let size = query.len();
    let (fours, rest) = scores.as_chunks_mut::<4>();
    let (keys, keys_rest) = keys.split_at(keys.len().min(fours.len() * 4 * size));
    for (scores, keys) in fours.iter_mut().zip(keys.chunks_exact(4 * size)) {
        let [found] = dots::<FUSE, 4, 1>(split(keys, size), [query]);
        *scores = found;
    }
    for (score, key) in rest.iter_mut().zip(keys_rest.chunks_exact(size)) {
        let [[found]] = dots::<FUSE, 1, 1>([key], [query]);
        *score = found;
    }
}

/// Turns scores into weights, and returns what they have to be multiplied with to be one together.
#[inline(always)]
fn soft_max<const FUSE: bool>(scores: &mut [f32]) -> f32 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0; LANES];
    let (vectors, rest) = scores.as_chunks_mut::<LANES>();
    for vector in vectors {
        for (sum, score) in sums.iter_mut().zip(vector) {
            *score = power_of_two::<FUSE>((*score - largest) * LOG2_E);
            *sum += *score;
        }
    }
    for (sum, score) in sums.iter_mut().zip(rest) {
        *score = power_of_two::<FUSE>((*score - largest) * LOG2_E);
        *sum += *score;
    }
    added(&sums).recip()
}

/// Adds values, each as much as it weighs.
#[inline(always)]
fn mix<const FUSE: bool>(weights: &[f32], values: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    let size = out.len();
    let (fours, rest) = weights.as_chunks::<4>();
    let (values, values_rest) = values.split_at(values.len().min(fours.len() * 4 * size));
    for (weights, values) in fours.iter().zip(values.chunks_exact(4 * size)) {
        let [a, b, c, d] = split(values, size);
        let values = a.iter().zip(b).zip(c.iter().zip(d));
        for (out, ((a, b), (c, d))) in out.iter_mut().zip(values) {
            let [e, f, g, h] = *weights;
            let sum = fused::<FUSE>(e, *a, *out);
            let sum = fused::<FUSE>(f, *b, sum);
            let sum = fused::<FUSE>(g, *c, sum);
            *out = fused::<FUSE>(h, *d, sum);
        }
    }
    for (weight, value) in rest.iter().zip(values_rest.chunks_exact(size)) {
        for (out, value) in out.iter_mut().zip(value) {
            *out = fused::<FUSE>(*weight, *value, *out);
        }
    }
}

//! Attention over the tokens before each token.

use crate::cache::Lane;
use crate::kernels;
use crate::tensors::with_numbers;
use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

/// Lets queries, `(heads, count, size)`, attend to all that the lane has, of which the last `count`
/// positions are their own: none sees those behind its own. Returns `(count, heads * size)`.
///
/// # Errors
/// When shapes do not fit.
pub(crate) fn attend(query: &Tensor, lane: &Lane) -> Result<Tensor> {
    match attend_here(query, lane)? {
        Some(mixed) => Ok(mixed),
        None => attend_with_candle(query, lane),
    }
}

fn attend_here(query: &Tensor, lane: &Lane) -> Result<Option<Tensor>> {
    let (heads, count, size) = query.dims3()?;
    let position = lane.length().saturating_sub(count);
    let mixed = with_numbers(query, |queries| {
        lane.with_room(|seen| Ok(kernels::attend(queries, heads, position, seen)))
    })?;
    mixed
        .map(|mixed| Tensor::from_vec(mixed, (count, heads * size), &Device::Cpu))
        .transpose()
}

fn attend_with_candle(query: &Tensor, lane: &Lane) -> Result<Tensor> {
    let (heads, count, size) = query.dims3()?;
    let (keys, values) = lane.views()?;
    let (key_heads, positions, _) = keys.dims3()?;
    // Query heads that share a key head stand next to each other, so that they are rows of one
    // product and the keys need not be repeated.
    let grouped = query.reshape((key_heads, heads / key_heads * count, size))?;
    let scale = 1.0 / f64::from(u16::try_from(size).unwrap_or(u16::MAX)).sqrt();
    let scores = (grouped.matmul(&keys.t()?)? * scale)?;
    let weights = softmax_last_dim(&mask(&scores, heads, count, positions)?)?;
    weights
        .matmul(&values)?
        .reshape((heads, count, size))?
        .transpose(0, 1)?
        .reshape((count, heads * size))
}

/// Takes away what is behind each query's own position.
fn mask(scores: &Tensor, heads: usize, count: usize, positions: usize) -> Result<Tensor> {
    if count == 1 {
        return Ok(scores.clone());
    }
    let rows = (0..count).flat_map(|row| {
        (0..positions).map(move |column| {
            if column + count > positions + row {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        })
    });
    let mask = Tensor::from_iter(rows, &Device::Cpu)?.reshape((count, positions))?;
    let shape = (scores.dim(0)?, scores.dim(1)?, scores.dim(D::Minus1)?);
    scores
        .reshape((heads, count, positions))?
        .broadcast_add(&mask)?
        .reshape(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(shape: (usize, usize, usize), seed: f32) -> Tensor {
        let count = shape.0 * shape.1 * shape.2;
        let numbers = (0..count).map(|index| ((index as f32 + seed) * 0.7).sin() * 1.5);
        let numbers = Tensor::from_iter(numbers, &Device::Cpu).unwrap();
        numbers.reshape(shape).unwrap()
    }

    fn flat(tensor: &Tensor) -> Vec<f32> {
        tensor.flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn both_ways_of_attending_agree() {
        for (heads, key_heads, size) in [(12, 2, 128), (9, 3, 64), (4, 4, 64)] {
            for (before, count) in [(0, 1), (0, 5), (15, 1), (16, 17), (40, 33), (1_020, 9)] {
                let mut lane = Lane::new(key_heads, size).unwrap();
                let all = (key_heads, before + count, size);
                lane.append(&numbers(all, 0.1), &numbers(all, 3.3)).unwrap();
                // What was computed once and is forgotten is not attended to.
                let more = (key_heads, 3, size);
                lane.append(&numbers(more, 9.0), &numbers(more, 9.0))
                    .unwrap();
                lane.truncate(before + count);
                let query = numbers((heads, count, size), 5.0);
                let expected = flat(&attend_with_candle(&query, &lane).unwrap());
                let found = flat(&attend(&query, &lane).unwrap());
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() < 2e-5, "{found}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn other_sizes_of_heads_are_left_to_candle() {
        let mut lane = Lane::new(1, 32).unwrap();
        lane.append(&numbers((1, 4, 32), 0.0), &numbers((1, 4, 32), 1.0))
            .unwrap();
        let query = numbers((2, 4, 32), 2.0);
        assert!(attend_here(&query, &lane).unwrap().is_none());
        assert_eq!(attend(&query, &lane).unwrap().dims(), [4, 64]);
    }
}

//! Rotary embedding: queries and keys are turned by angles that say where their tokens are.

use crate::shape::{Architecture, Shape};

/// By how much each pair of a head's numbers is turned from one position to the next.
#[derive(Debug, Clone)]
pub(crate) struct Frequencies {
    architecture: Architecture,
    of_pairs: Vec<f32>,
}

impl Frequencies {
    /// Computes them for a shape. Factors divide them, one for each pair; Llama 3 has such to reach more
    /// positions.
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes are far below what a float holds exactly"
    )]
    pub(crate) fn new(shape: &Shape, factors: Option<&[f32]>) -> Self {
        let size = shape.head_size as f32;
        let pairs = (0..shape.head_size).step_by(2);
        let mut of_pairs: Vec<f32> = pairs
            .map(|index| shape.rope_base.powf(-(index as f32) / size))
            .collect();
        for (frequency, factor) in of_pairs.iter_mut().zip(factors.unwrap_or_default()) {
            *frequency /= factor;
        }
        Self {
            architecture: shape.architecture,
            of_pairs,
        }
    }

    /// Returns the angles of `count` positions from `position` on.
    #[expect(
        clippy::cast_precision_loss,
        reason = "positions are far below what a float holds exactly"
    )]
    pub(crate) fn at(&self, position: usize, count: usize) -> Rotation {
        let angle = |position: usize| {
            let turned = self.of_pairs.iter().map(move |one| position as f32 * one);
            turned.map(|angle: f32| (angle.cos(), angle.sin()))
        };
        Rotation {
            architecture: self.architecture,
            size: self.of_pairs.len() * 2,
            angles: (position..position + count).flat_map(angle).collect(),
        }
    }
}

/// Cosine and sine of the angles of some positions, `(count, head size / 2)`.
pub(crate) struct Rotation {
    architecture: Architecture,
    size: usize,
    angles: Vec<(f32, f32)>,
}

impl Rotation {
    /// Turns rows of heads, `(count, heads * size)`.
    pub(crate) fn turn(&self, rows: &mut [f32], heads: usize) {
        let rows = rows.chunks_exact_mut(heads * self.size);
        for (row, angles) in rows.zip(self.angles.chunks_exact(self.size / 2)) {
            for head in row.chunks_exact_mut(self.size) {
                match self.architecture {
                    Architecture::Qwen2 | Architecture::Qwen3 => turn_halves(head, angles),
                    Architecture::Llama => turn_neighbours(head, angles),
                }
            }
        }
    }
}

fn turn_halves(head: &mut [f32], angles: &[(f32, f32)]) {
    let (low, high) = head.split_at_mut(angles.len());
    for ((low, high), angle) in low.iter_mut().zip(high).zip(angles) {
        (*low, *high) = turned(*low, *high, *angle);
    }
}

fn turn_neighbours(head: &mut [f32], angles: &[(f32, f32)]) {
    for ([low, high], angle) in head.as_chunks_mut().0.iter_mut().zip(angles) {
        (*low, *high) = turned(*low, *high, *angle);
    }
}

fn turned(x: f32, y: f32, (cosine, sine): (f32, f32)) -> (f32, f32) {
    (x * cosine - y * sine, x * sine + y * cosine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(architecture: Architecture, position: usize) -> Rotation {
        let shape = Shape {
            architecture,
            width: 4,
            layers: 1,
            heads: 1,
            key_value_heads: 1,
            head_size: 4,
            norm_epsilon: 1e-6,
            rope_base: 100.0,
            context: 8,
        };
        Frequencies::new(&shape, None).at(position, 2)
    }

    fn near(found: &[f32], expected: &[f32]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        }
    }

    #[test]
    fn the_first_position_stays_and_the_next_is_turned_by_one_and_by_a_tenth() {
        let row = [1.0, 0.0, 0.0, 1.0];
        let (one, tenth) = ((1.0_f32).sin_cos(), (0.1_f32).sin_cos());
        let mut rows = [row, row].concat();
        rotation(Architecture::Qwen2, 0).turn(&mut rows, 1);
        near(&rows[..4], &row);
        near(&rows[4..], &[one.1, -tenth.0, one.0, tenth.1]);
        let mut rows = [row, row].concat();
        rotation(Architecture::Llama, 0).turn(&mut rows, 1);
        near(&rows[4..], &[one.1, one.0, -tenth.0, tenth.1]);
    }

    #[test]
    fn each_head_is_turned_by_the_angle_of_its_position() {
        let row = [0.3, -0.2, 0.7, 1.1];
        let mut alone = row.to_vec();
        rotation(Architecture::Qwen2, 6).turn(&mut alone, 1);
        let mut beside = [row, row, row, row].concat();
        rotation(Architecture::Qwen2, 5).turn(&mut beside, 2);
        assert_eq!(beside[8..12], alone[..]);
        assert_eq!(beside[12..], alone[..]);
        assert_eq!(beside[..4], beside[4..8]);
        assert_ne!(beside[..4], alone[..]);
    }
}

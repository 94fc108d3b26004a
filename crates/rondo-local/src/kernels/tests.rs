//! Tests: all kernels that this processor has compute what plain arithmetic does with the unpacked
//! weights.

use super::{BATCH_MAX, Instructions, Kernels, Room, SINGLES_MAX, UNIT, Weights};
use crate::blocks::Kind;
use crate::mapped::{self, MappedSlice};
use std::io::Write as _;

/// The kinds that have kernels of their own, and one that is unpacked.
const KINDS: [Kind; 3] = [Kind::Q4K, Kind::Q6K, Kind::Q5_0];
/// Permitted error of a product, relative to the sum of its terms' sizes: single floats are added in another
/// order.
const TOLERANCE: f64 = 1e-5;

fn all() -> impl Iterator<Item = (Instructions, Kernels)> {
    Instructions::available().map(|it| (it, Kernels::with(it).unwrap()))
}

/// Bytes that look like chance, of which every block has a scale that is a number.
fn blocks(kind: Kind, count: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let size = kind.block_bytes();
    let mut bytes: Vec<u8> = (0..count * size).map(|_| next()).collect();
    for (index, block) in bytes.chunks_exact_mut(size).enumerate() {
        // Halves of about 0.02 to 0.2, and for one kind below zero.
        let exponent = 0x24 + (index % 7) as u8;
        match kind {
            Kind::Q4K => (block[1], block[3]) = (exponent, exponent + 4),
            Kind::Q6K => block[209] = 0x80 | exponent,
            _ => block[1] = exponent,
        }
    }
    bytes
}

/// Whole numbers up to 127, which every block has one of: rounding to bytes changes nothing.
fn rows(count: usize, width: usize) -> Vec<f32> {
    let numbers = (0..count * width).map(|index| match index % 256 {
        200 => 127.0,
        _ => (index * 7_919 % 251) as f32 - 125.0,
    });
    numbers.collect()
}

struct Case {
    weights: Weights,
    /// The same ones as numbers.
    plain: Vec<f32>,
}

fn case(kind: Kind, outputs: usize, inputs: usize) -> Case {
    let bytes = blocks(kind, outputs * inputs / kind.block());
    let mut plain = vec![0.0; outputs * inputs];
    kind.unpack(&bytes, &mut plain);
    Case {
        weights: weights(&bytes, kind, outputs, inputs).unwrap(),
        plain,
    }
}

fn weights(bytes: &[u8], kind: Kind, outputs: usize, inputs: usize) -> Option<Weights> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let map = mapped::map(&file).unwrap();
    Weights::new(
        MappedSlice::new(&map, 0, bytes.len())?,
        kind,
        outputs,
        inputs,
    )
}

fn multiply(kernels: Kernels, weights: &[&Weights], rows: &[f32]) -> Vec<Vec<f32>> {
    // What is there from before must not count.
    let mut products = vec![vec![f32::NAN; 70]; weights.len()];
    let mut all: Vec<_> = products.iter_mut().collect();
    kernels.multiply(weights, rows, &mut all).unwrap();
    products
}

impl Case {
    fn check(&self, products: &[f32], rows: &[f32], what: &str) {
        let (outputs, inputs) = (self.weights.outputs, self.weights.inputs);
        let expected = rows.chunks(inputs).flat_map(|row| {
            self.plain.chunks(inputs).map(move |weights| {
                let terms = weights.iter().zip(row);
                let terms = terms.map(|(weight, number)| f64::from(weight * number));
                terms.fold((0.0, 0.0), |(sum, size), term| {
                    (sum + term, size + term.abs())
                })
            })
        });
        assert_eq!(products.len() * inputs, rows.len() * outputs);
        for (index, (found, (expected, size))) in products.iter().zip(expected).enumerate() {
            let off = (f64::from(*found) - expected).abs();
            let kind = self.weights.kind;
            assert!(
                off <= size * TOLERANCE,
                "{what}, {kind:?}, {index}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn products_are_those_of_the_unpacked_weights() {
    for kind in KINDS {
        for (outputs, inputs) in [(UNIT, 256), (3 * UNIT, 1_536), (UNIT, 35 * 256)] {
            let case = case(kind, outputs, inputs);
            let counts = [1, SINGLES_MAX, SINGLES_MAX + 1, 7, 12, 31, BATCH_MAX + 5];
            for count in counts {
                let rows = rows(count, inputs);
                for (instructions, kernels) in all() {
                    let products = multiply(kernels, &[&case.weights], &rows);
                    case.check(&products[0], &rows, instructions.name());
                }
            }
        }
    }
}

#[test]
fn a_row_among_few_has_the_same_bits_as_by_itself() {
    for kind in KINDS {
        for (outputs, inputs) in [(UNIT, 256), (2 * UNIT, 1_536), (UNIT + 1, 35 * 256)] {
            let weights = case(kind, outputs, inputs).weights;
            let rows = rows(SINGLES_MAX, inputs);
            let bits = |products: &[Vec<f32>]| -> Vec<u32> {
                products[0].iter().map(|it| it.to_bits()).collect()
            };
            for (instructions, kernels) in all() {
                let one_by_one: Vec<u32> = rows
                    .chunks(inputs)
                    .flat_map(|row| bits(&multiply(kernels, &[&weights], row)))
                    .collect();
                for count in 2..=SINGLES_MAX {
                    let together = multiply(kernels, &[&weights], &rows[..count * inputs]);
                    let expected = &one_by_one[..count * outputs];
                    assert_eq!(
                        bits(&together),
                        expected,
                        "{instructions}, {kind:?}, {count}"
                    );
                }
            }
        }
    }
}

#[test]
fn matrices_of_any_shape_are_multiplied() {
    let kinds = [
        (Kind::Q4K, 5, 512),
        (Kind::Q6K, UNIT + 1, 256),
        (Kind::Q8_0, 7, 96),
        (Kind::F32, 3, 5),
        (Kind::F32, 1, 1),
    ];
    for (kind, outputs, inputs) in kinds {
        let mut case = case(kind, outputs, inputs);
        if kind == Kind::F32 {
            let plain: Vec<f32> = (0..outputs * inputs).map(|it| it as f32 - 4.0).collect();
            let bytes: Vec<u8> = plain.iter().flat_map(|it| it.to_le_bytes()).collect();
            let weights = weights(&bytes, kind, outputs, inputs).unwrap();
            case = Case { weights, plain };
        }
        for count in [1, 4, BATCH_MAX + 1] {
            let rows = rows(count, inputs);
            for (instructions, kernels) in all() {
                let products = multiply(kernels, &[&case.weights], &rows);
                case.check(&products[0], &rows, instructions.name());
            }
        }
    }
}

#[test]
fn several_matrices_of_different_kinds_are_multiplied_at_once() {
    let cases = [
        (Kind::Q4K, 4 * UNIT),
        (Kind::Q6K, UNIT),
        (Kind::Q8_0, 2 * UNIT),
        (Kind::Q4K, 2 * UNIT + 3),
    ]
    .map(|(kind, outputs)| case(kind, outputs, 512));
    let weights: Vec<&Weights> = cases.iter().map(|it| &it.weights).collect();
    for (instructions, kernels) in all() {
        for count in [1, BATCH_MAX + 1] {
            let rows = rows(count, 512);
            let products = multiply(kernels, &weights, &rows);
            for (case, product) in cases.iter().zip(&products) {
                case.check(product, &rows, instructions.name());
            }
        }
    }
}

#[test]
fn a_product_is_gated_by_another() {
    let [gate, up] = [Kind::Q4K, Kind::Q6K].map(|kind| case(kind, 5 * UNIT, 256).weights);
    for (instructions, kernels) in all() {
        let mut found = vec![7.0; 3];
        for count in [2, BATCH_MAX + 4, 1] {
            // Gates between about -30 and 30, where they are neither open nor shut.
            let rows: Vec<f32> = rows(count, 256).iter().map(|it| it / 500.0).collect();
            let products = multiply(kernels, &[&gate, &up], &rows);
            kernels.gated(&gate, &up, &rows, &mut found).unwrap();
            assert_eq!(found.len(), count * 5 * UNIT);
            for (found, (gate, up)) in found.iter().zip(products[0].iter().zip(&products[1])) {
                let expected =
                    f64::from(*gate) / (1.0 + (-f64::from(*gate)).exp()) * f64::from(*up);
                let off = (f64::from(*found) - expected).abs();
                assert!(
                    off <= expected.abs() * 5e-6,
                    "{instructions}, {gate} {up}: {found}, not {expected}"
                );
            }
        }
        let narrow = case(Kind::Q4K, UNIT, 256).weights;
        assert!(
            kernels
                .gated(&gate, &narrow, &rows(1, 256), &mut found)
                .is_err()
        );
    }
}

#[test]
fn a_gate_is_open_shut_or_in_between() {
    let near = |found: f32, expected: f32| (found - expected).abs() <= expected.abs() * 1e-6;
    for (instructions, kernels) in all() {
        for length in [1, 15, 16, 37] {
            for (number, expected) in [
                (0.0, 0.0),
                (1.0, 0.731_058_6),
                (-1.0, -0.268_941_42),
                (100.0, 100.0),
                (-80.0, -1.443_881_5e-33),
                (-1e4, 0.0),
                (f32::INFINITY, f32::INFINITY),
            ] {
                let mut numbers = vec![number; length];
                kernels.gate(&mut numbers, &vec![1.0; length]);
                let right = |it: &f32| near(*it, expected) || *it == expected;
                assert!(
                    numbers.iter().all(right),
                    "{instructions}, {number}: {numbers:?}"
                );
            }
        }
    }
}

/// The cost of rounding: half a step for each number at most.
#[test]
fn numbers_are_rounded_to_the_nearest_byte() {
    let case = case(Kind::Q4K, UNIT, 512);
    for (instructions, kernels) in all() {
        for count in [1, 5] {
            let rows: Vec<f32> = (0..count * 512)
                .map(|it| (it as f32 * 0.37).sin() * 3.0)
                .collect();
            let products = multiply(kernels, &[&case.weights], &rows);
            let products = products[0].chunks(UNIT).zip(rows.chunks(512));
            for (products, row) in products {
                for (found, weights) in products.iter().zip(case.plain.chunks(512)) {
                    let expected: f32 = weights.iter().zip(row).map(|(a, b)| a * b).sum();
                    let size: f32 = weights.iter().map(|weight| weight.abs()).sum();
                    let off = (found - expected).abs();
                    assert!(off <= size * 3.0 / 127.0 / 2.0, "{instructions}");
                }
            }
        }
    }
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    for kind in KINDS {
        let weights = case(kind, UNIT, 256).weights;
        for (_, kernels) in all() {
            for number in [
                0.0,
                f32::NAN,
                f32::INFINITY,
                f32::MIN_POSITIVE / 2.0,
                f32::MAX,
            ] {
                for count in [1, 4] {
                    let products = multiply(kernels, &[&weights], &vec![number; count * 256]);
                    assert_eq!(products[0].len(), count * UNIT);
                    if number == 0.0 {
                        assert!(products[0].iter().all(|it| *it == 0.0));
                    }
                }
            }
        }
    }
}

#[test]
fn weights_that_are_not_whole_and_rows_of_another_length_are_refused() {
    let bytes = blocks(Kind::Q4K, UNIT);
    let shaped =
        |length: usize, outputs, inputs| weights(&bytes[..length], Kind::Q4K, outputs, inputs);
    let whole = bytes.len();
    assert!(shaped(whole - 1, UNIT, 256).is_none());
    assert!(shaped(whole, UNIT - 1, 256).is_none());
    assert!(shaped(whole, 2 * UNIT, 128).is_none());
    assert!(shaped(whole, usize::MAX, 256).is_none());
    assert!(shaped(0, UNIT, 0).is_none());
    let weights = shaped(whole, UNIT, 256).unwrap();
    assert!(weights.row(UNIT, &mut [0.0; 256]).is_none());
    let mut product = Vec::new();
    for (_, kernels) in all() {
        let mut multiply = |rows: &[f32]| kernels.multiply(&[&weights], rows, &mut [&mut product]);
        assert!(multiply(&[0.0; 255]).is_err());
        assert!(multiply(&[]).is_ok());
        assert!(product.is_empty());
    }
}

fn numbers(count: usize, seed: f32) -> Vec<f32> {
    let numbers = (0..count).map(|index| ((index as f32 + seed) * 0.7).sin() * 1.5);
    numbers.collect()
}

/// Attention of one query of one head, in doubles.
fn attended(query: &[f32], keys: &[f32], values: &[f32]) -> Vec<f64> {
    let size = query.len();
    let scores = keys.chunks(size).map(|key| {
        let terms = query.iter().zip(key).map(|(a, b)| f64::from(a * b));
        terms.sum::<f64>() / (size as f64).sqrt()
    });
    let scores: Vec<f64> = scores.collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|it| (it - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut mixed = vec![0.0; size];
    for (weight, value) in weights.iter().zip(values.chunks(size)) {
        for (mixed, value) in mixed.iter_mut().zip(value) {
            *mixed += weight / total * f64::from(*value);
        }
    }
    mixed
}

#[test]
fn queries_attend_to_what_is_before_them() {
    const ROOM: usize = 1_040;
    for (heads, key_heads, size) in [(12, 2, 128), (9, 3, 64), (4, 4, 64), (2, 1, 32), (2, 2, 6)] {
        for (before, count) in [(0, 1), (0, 5), (15, 1), (16, 17), (40, 33), (1_020, 9)] {
            // What is behind the last position, from a sequence that was cut, is not attended to.
            let [keys, values] = [0.1, 3.3].map(|seed| numbers(key_heads * ROOM * size, seed));
            let room = Room {
                keys: &keys,
                values: &values,
                per_head: ROOM * size,
                size,
            };
            let queries = numbers(heads * count * size, 5.0);
            let expected: Vec<f64> = (0..count)
                .flat_map(|row| (0..heads).map(move |head| (row, head)))
                .flat_map(|(row, head)| {
                    let query = &queries[(head * count + row) * size..][..size];
                    let start = head / (heads / key_heads) * ROOM * size;
                    let seen = start..start + (before + row + 1) * size;
                    attended(query, &keys[seen.clone()], &values[seen])
                })
                .collect();
            for (instructions, kernels) in all() {
                let mut found = vec![f32::NAN; 3];
                kernels
                    .attend(&queries, heads, before, &room, &mut found)
                    .unwrap();
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    let off = (f64::from(*found) - expected).abs();
                    assert!(off < 2e-5, "{instructions}: {found}, not {expected}");
                }
            }
        }
    }
}

#[test]
fn attention_that_does_not_fit_is_refused() {
    let numbers = numbers(2 * 32 * 8, 0.0);
    let room = Room {
        keys: &numbers,
        values: &numbers,
        per_head: 32 * 8,
        size: 8,
    };
    let kernels = Kernels::best();
    let mut mixed = Vec::new();
    let mut attend = |queries: usize, heads, position| {
        let queries = vec![0.0; queries];
        kernels.attend(&queries, heads, position, &room, &mut mixed)
    };
    assert!(attend(4 * 8, 4, 31).is_ok());
    assert!(attend(4 * 8, 4, 32).is_err());
    assert!(attend(3 * 8, 3, 0).is_err());
    assert!(attend(4 * 8 + 1, 4, 0).is_err());
    assert!(attend(0, 4, 0).is_err());
}

#[test]
fn instructions_are_named_and_unknown_ones_refused() {
    assert_eq!(
        Instructions::available().last(),
        Some(Instructions::Portable)
    );
    for instructions in Instructions::ALL {
        let again: Instructions = instructions.to_string().parse().unwrap();
        assert_eq!(again, instructions);
    }
    assert!("sse9".parse::<Instructions>().is_err());
}

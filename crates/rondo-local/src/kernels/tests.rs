//! Tests: the kernels compute what candle computes.

use super::{Arch, BATCH_MAX, SINGLES_MAX, UNIT, Weights, gated, multiply};
use crate::mapped::{self, Held};
use candle_core::CpuStorage;
use candle_core::quantized::GgmlDType;
use half::f16;
use std::io::Write as _;

const KINDS: [GgmlDType; 2] = [GgmlDType::Q4K, GgmlDType::Q6K];

/// Bytes that look like chance, of which every block has a scale that is a number.
fn blocks(kind: GgmlDType, count: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let scale = |of: f32| f16::from_f32(of).to_le_bytes();
    let mut bytes: Vec<u8> = (0..count * kind.type_size()).map(|_| next()).collect();
    for (index, block) in bytes.chunks_exact_mut(kind.type_size()).enumerate() {
        let size = 0.01 + index as f32 % 7.0 / 100.0;
        match kind {
            GgmlDType::Q4K => {
                block[..2].copy_from_slice(&scale(size));
                block[2..4].copy_from_slice(&scale(size * 3.0));
            }
            _ => block[208..].copy_from_slice(&scale(-size)),
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
    weights: Option<Weights>,
    /// The same ones as candle reads them.
    plain: Vec<f32>,
    outputs: usize,
    inputs: usize,
}

fn case(kind: GgmlDType, outputs: usize, inputs: usize) -> Case {
    let bytes = blocks(kind, outputs * inputs / 256);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let map = mapped::map(&file).unwrap();
    let elements = outputs * inputs;
    let storage = mapped::blocks(&map, 0, elements, kind).unwrap().unwrap();
    let CpuStorage::F32(plain) = storage.dequantize(elements).unwrap() else {
        panic!("not floats");
    };
    let held = Held::new(&map, 0, bytes.len()).unwrap();
    Case {
        weights: Weights::new(held, kind, outputs, inputs),
        plain,
        outputs,
        inputs,
    }
}

impl Case {
    fn check(&self, products: &[f32], rows: &[f32]) {
        let expected = rows.chunks(self.inputs).flat_map(|row| {
            self.plain.chunks(self.inputs).map(move |weights| {
                let terms = weights.iter().zip(row);
                let terms = terms.map(|(weight, number)| f64::from(weight * number));
                terms.fold((0.0, 0.0), |(sum, size), term| {
                    (sum + term, size + term.abs())
                })
            })
        });
        assert_eq!(products.len() * self.inputs, rows.len() * self.outputs);
        for (index, (found, (expected, size))) in products.iter().zip(expected).enumerate() {
            let off = (f64::from(*found) - expected).abs();
            assert!(off <= size * 1e-5, "{index}: {found}, not {expected}");
        }
    }
}

#[test]
fn products_are_those_of_the_weights_as_candle_reads_them() {
    for kind in KINDS {
        for (outputs, inputs) in [(UNIT, 256), (3 * UNIT, 1_536), (UNIT, 35 * 256)] {
            let case = case(kind, outputs, inputs);
            let Some(weights) = &case.weights else {
                assert!(Arch::detect().is_none());
                return;
            };
            let counts = [1, SINGLES_MAX, SINGLES_MAX + 1, 7, 12, 31, BATCH_MAX + 5];
            for count in counts {
                let rows = rows(count, inputs);
                let products = multiply(&[weights], &rows).unwrap();
                case.check(&products[0], &rows);
            }
        }
    }
}

#[test]
fn several_matrices_of_both_kinds_are_multiplied_at_once() {
    let cases = [
        (GgmlDType::Q4K, 4),
        (GgmlDType::Q6K, 1),
        (GgmlDType::Q4K, 2),
    ]
    .map(|(kind, units)| case(kind, units * UNIT, 512));
    let weights: Vec<&Weights> = cases.iter().filter_map(|it| it.weights.as_ref()).collect();
    for count in [1, BATCH_MAX + 1] {
        let rows = rows(count, 512);
        let products = multiply(&weights, &rows).unwrap();
        assert_eq!(products.len(), weights.len());
        for (case, product) in cases.iter().zip(&products) {
            case.check(product, &rows);
        }
    }
}

#[test]
fn a_product_is_gated_by_another() {
    let cases = [GgmlDType::Q4K, GgmlDType::Q6K].map(|kind| case(kind, 5 * UNIT, 256));
    let weights: Vec<&Weights> = cases.iter().filter_map(|it| it.weights.as_ref()).collect();
    let [gate, up] = weights[..] else {
        assert!(Arch::detect().is_none());
        return;
    };
    let mut found = vec![7.0; 3];
    for count in [2, BATCH_MAX + 4, 1] {
        // Gates between about -30 and 30, where they are neither open nor shut.
        let rows: Vec<f32> = rows(count, 256).iter().map(|it| it / 500.0).collect();
        let products = multiply(&[gate, up], &rows).unwrap();
        gated(gate, up, &rows, &mut found).unwrap();
        assert_eq!(found.len(), count * 5 * UNIT);
        for (found, (gate, up)) in found.iter().zip(products[0].iter().zip(&products[1])) {
            let expected = f64::from(*gate) / (1.0 + (-f64::from(*gate)).exp()) * f64::from(*up);
            let off = (f64::from(*found) - expected).abs();
            assert!(
                off <= expected.abs() * 5e-6,
                "{gate} {up}: {found}, not {expected}"
            );
        }
    }
    let narrow = case(GgmlDType::Q4K, UNIT, 256);
    let narrow = narrow.weights.as_ref().unwrap();
    assert!(gated(gate, narrow, &rows(1, 256), &mut found).is_err());
}

#[test]
fn a_gate_is_open_shut_or_in_between() {
    let Some(arch) = Arch::detect() else { return };
    let near = |found: f32, expected: f32| (found - expected).abs() <= expected.abs() * 1e-6;
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
            arch.gate(&mut numbers, &vec![1.0; length]);
            let right = |it: &f32| near(*it, expected) || *it == expected;
            assert!(numbers.iter().all(right), "{number}: {numbers:?}");
        }
    }
}

/// What rounding costs: half a step for each number at most.
#[test]
fn numbers_are_rounded_to_the_nearest_byte() {
    let case = case(GgmlDType::Q4K, UNIT, 512);
    let Some(weights) = &case.weights else {
        assert!(Arch::detect().is_none());
        return;
    };
    for count in [1, 5] {
        let rows: Vec<f32> = (0..count * 512)
            .map(|it| (it as f32 * 0.37).sin() * 3.0)
            .collect();
        let products = multiply(&[weights], &rows).unwrap();
        let products = products[0].chunks(UNIT).zip(rows.chunks(512));
        for (products, row) in products {
            for (found, weights) in products.iter().zip(case.plain.chunks(512)) {
                let expected: f32 = weights.iter().zip(row).map(|(a, b)| a * b).sum();
                let size: f32 = weights.iter().map(|weight| weight.abs()).sum();
                assert!((found - expected).abs() <= size * 3.0 / 127.0 / 2.0);
            }
        }
    }
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    for kind in KINDS {
        let Some(weights) = case(kind, UNIT, 256).weights else {
            assert!(Arch::detect().is_none());
            return;
        };
        for number in [
            0.0,
            f32::NAN,
            f32::INFINITY,
            f32::MIN_POSITIVE / 2.0,
            f32::MAX,
        ] {
            for count in [1, 4] {
                let products = multiply(&[&weights], &vec![number; count * 256]).unwrap();
                assert_eq!(products[0].len(), count * UNIT);
                if number == 0.0 {
                    assert!(products[0].iter().all(|it| *it == 0.0));
                }
            }
        }
    }
}

#[test]
fn what_has_no_kernel_is_left_to_candle_and_crooked_rows_are_refused() {
    let map = {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&blocks(GgmlDType::Q4K, UNIT)).unwrap();
        mapped::map(&file).unwrap()
    };
    let held = |length| Held::new(&map, 0, length).unwrap();
    let whole = UNIT * 144;
    assert!(Weights::new(held(whole - 1), GgmlDType::Q4K, UNIT, 256).is_none());
    assert!(Weights::new(held(whole), GgmlDType::Q5K, UNIT, 256).is_none());
    assert!(Weights::new(held(whole), GgmlDType::Q4K, UNIT / 2, 512).is_none());
    assert!(Weights::new(held(0), GgmlDType::Q4K, UNIT, 0).is_none());
    if let Some(weights) = Weights::new(held(whole), GgmlDType::Q4K, UNIT, 256) {
        assert!(multiply(&[&weights], &[0.0; 255]).is_err());
        assert!(multiply(&[&weights], &[]).unwrap()[0].is_empty());
    }
    assert!(Held::new(&map, 1, whole).is_none());
    assert!(Held::new(&map, usize::MAX, 1).is_none());
}

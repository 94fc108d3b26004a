//! Tests: each kind is unpacked to what another implementation makes of the same bytes.

use super::*;

/// Offsets of the halves by which blocks are scaled, and the sum of the numbers of three blocks, plain
/// and weighed by place, as candle 0.11 unpacks them.
const RECORDED: [(Kind, &[usize], f64, f64); 13] = [
    (Kind::F32, &[2], 1.306919455469624e-10, 8.876682510566836e-9),
    (Kind::F16, &[0], 0.248_352_050_781_25, 10.234_619_140_625),
    (
        Kind::Bf16,
        &[0],
        5.225331278779777e-11,
        3.011791704921052e-9,
    ),
    (Kind::Q4_0, &[0], 0.146_606_445_312_5, 38.158_447_265_625),
    (
        Kind::Q4_1,
        &[0, 2],
        73.079_040_527_343_75,
        3_307.986_267_089_843_8,
    ),
    (
        Kind::Q5_0,
        &[0],
        12.568_176_269_531_25,
        783.315_368_652_343_8,
    ),
    (
        Kind::Q5_1,
        &[0, 2],
        140.098_815_917_968_75,
        7_064.230_834_960_937_5,
    ),
    (
        Kind::Q8_0,
        &[0],
        77.984_436_035_156_25,
        5_344.004_394_531_25,
    ),
    (
        Kind::Q2K,
        &[80, 82],
        346.758_239_746_093_75,
        17_095.680_847_167_97,
    ),
    (
        Kind::Q3K,
        &[108],
        -3.037_536_621_093_75,
        -1_732.115_539_550_781_3,
    ),
    (
        Kind::Q4K,
        &[0, 2],
        10_668.560_791_015_625,
        519_513.434_204_101_56,
    ),
    (
        Kind::Q5K,
        &[0, 2],
        27_106.737_243_652_344,
        1_375_003.643_981_933_6,
    ),
    (
        Kind::Q6K,
        &[208],
        158.341_003_417_968_75,
        -232_356.699_584_960_94,
    ),
];

/// Bytes that look like chance, with scales of a twentieth to a quarter.
fn bytes(kind: Kind, halves: &[usize]) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut bytes: Vec<u8> = (0..3 * kind.block_bytes()).map(|_| next()).collect();
    for (index, block) in bytes.chunks_exact_mut(kind.block_bytes()).enumerate() {
        for half in halves {
            block[half + 1] = 0x2c + index as u8;
        }
    }
    bytes
}

#[test]
fn blocks_hold_the_numbers_that_candle_finds_in_them() {
    for (kind, halves, sum, weighed) in RECORDED {
        let mut numbers = vec![f32::NAN; 3 * kind.block()];
        kind.unpack(&bytes(kind, halves), &mut numbers);
        let size: f64 = numbers.iter().map(|number| f64::from(number.abs())).sum();
        let terms = numbers.iter().enumerate();
        let terms = terms.map(|(index, number)| (f64::from(*number), (index * 37 % 101) as f64));
        let (plain, placed) = terms.fold((0.0, 0.0), |(plain, placed), (number, weight)| {
            (plain + number, placed + number * weight)
        });
        assert!((plain - sum).abs() <= size * 1e-6, "{kind:?}: {plain}");
        assert!(
            (placed - weighed).abs() <= size * 1e-4,
            "{kind:?}: {placed}"
        );
    }
}

#[test]
fn halves_are_widened_whatever_their_size() {
    for (bits, expected) in [
        (0x0000_u16, 0.0),
        (0x0001, 2.0_f32.powi(-24)),
        (0x03ff, 1023.0 * 2.0_f32.powi(-24)),
        (0x0400, 2.0_f32.powi(-14)),
        (0x3c00, 1.0),
        (0xc500, -5.0),
        (0x7bff, 65_504.0),
        (0x7c00, f32::INFINITY),
        (0xfc00, f32::NEG_INFINITY),
    ] {
        assert_eq!(half(bits.to_le_bytes()), expected, "{bits:x}");
    }
    assert!(half(0x7c01_u16.to_le_bytes()).is_nan());
    assert!(half(0x8000_u16.to_le_bytes()).is_sign_negative());
}

#[test]
fn only_whole_blocks_have_a_length() {
    assert_eq!(Kind::Q4K.bytes(512), Some(288));
    assert_eq!(Kind::Q4K.bytes(511), None);
    assert_eq!(Kind::Q8_0.bytes(33), None);
    assert_eq!(Kind::F32.bytes(3), Some(12));
    assert_eq!(Kind::F32.bytes(usize::MAX), None);
}

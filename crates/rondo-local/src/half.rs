//! Numbers in half precision (IEEE 754 binary16), which keys and values are kept in.

use crate::blocks::Kind;

/// Bytes of a number.
pub(crate) const BYTES: usize = 2;
/// Bits of a fraction that a float has and a half has not.
const CUT: u32 = 13;

/// Writes numbers, each rounded to the nearest, to the even one of two; `None` if one is too large or
/// is none.
pub(crate) fn write(numbers: &[f32], to: &mut Vec<u8>) -> Option<()> {
    to.reserve(numbers.len() * BYTES);
    for number in numbers {
        to.extend(rounded(*number)?.to_le_bytes());
    }
    Some(())
}

/// Reads as many numbers as both sides have.
pub(crate) fn read(bytes: &[u8], to: &mut [f32]) {
    Kind::F16.unpack(bytes, to);
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what is left after shifting fits 16 bits"
)]
fn rounded(number: f32) -> Option<u16> {
    let bits = number.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let size = number.abs();
    // Above this the nearest half is infinite.
    if size.is_nan() || size >= 65_520.0 {
        return None;
    }
    if size < 6.103_515_6e-5 {
        // The spacing of the smallest halves is 2^-24, and so is that of floats around a half.
        return Some(sign | (size + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits()) as u16);
    }
    let magnitude = bits & 0x7fff_ffff;
    let even = (magnitude >> CUT) & 1;
    let nearest = magnitude + (1 << (CUT - 1)) - 1 + even;
    Some(sign | ((nearest >> CUT) - (112 << 10)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(half: u16) -> f32 {
        let mut out = [0.0];
        read(&half.to_le_bytes(), &mut out);
        out[0]
    }

    #[test]
    fn each_half_is_itself_and_what_lies_between_two_goes_to_the_nearest() {
        for half in 0..0x7c00_u16 {
            let low = number(half);
            assert_eq!(rounded(low), Some(half), "{low}");
            assert_eq!(rounded(-low), Some(half | 0x8000), "{low}");
            if half < 0x7bff {
                let high = number(half + 1);
                let middle = f32::midpoint(low, high);
                let even = half + (half & 1);
                assert_eq!(rounded(middle), Some(even), "{middle}");
                assert_eq!(rounded(middle.next_down()), Some(half), "{middle}");
                assert_eq!(rounded(middle.next_up()), Some(half + 1), "{middle}");
            }
        }
    }

    #[test]
    fn what_no_half_is_near_to_is_refused() {
        assert_eq!(rounded(65_519.99), Some(0x7bff));
        for number in [65_520.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert_eq!(write(&[1.0, number], &mut Vec::new()), None, "{number}");
        }
    }
}

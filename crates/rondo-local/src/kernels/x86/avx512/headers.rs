//! The first 16 bytes of 4-bit blocks: two scales, and a factor and an offset for every 32 weights.

use super::lanes::{transpose_quarters, widen_halves};
use std::arch::x86_64::*;

/// Those of 16 blocks, a lane for each.
pub(super) struct Headers {
    /// The blocks' scales of the factors and of the offsets.
    pub(super) scale: __m512,
    pub(super) offset_scale: __m512,
    /// The factors 0 to 3 and 4 to 7, a byte each.
    pub(super) factors: [__m512i; 2],
    pub(super) offsets: [__m512i; 2],
}

impl Headers {
    /// Reads them. The 6 bits of each number are where `get_scale_min_k4` of
    /// <https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c> has them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn read(blocks: &[&[u8; 144]; 16]) -> Self {
        let [halves, factors, offsets, rest] = transpose_quarters(blocks, 0);
        let six = _mm512_set1_epi8(0b0011_1111);
        let four = _mm512_set1_epi8(0b0000_1111);
        let top = _mm512_set1_epi8(0b0011_0000);
        let high = |low_bits, top_bits| {
            let low = _mm512_and_si512(low_bits, four);
            _mm512_or_si512(low, _mm512_and_si512(_mm512_srli_epi32::<2>(top_bits), top))
        };
        Self {
            scale: widen_halves(halves),
            offset_scale: widen_halves(_mm512_srli_epi32::<16>(halves)),
            factors: [_mm512_and_si512(factors, six), high(rest, factors)],
            offsets: [
                _mm512_and_si512(offsets, six),
                high(_mm512_srli_epi32::<4>(rest), offsets),
            ],
        }
    }
}

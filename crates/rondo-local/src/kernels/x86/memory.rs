//! Loads and stores with their lengths checked, which kernels of all vector lengths need.

#![expect(
    unsafe_code,
    reason = "the instructions that load and store take bare pointers"
)]

use std::arch::x86_64::*;

/// A part of a block, at a place that is a constant and so is checked when the program is built.
#[inline]
pub(super) fn at<T, const N: usize>(block: &[T], start: usize) -> &[T; N] {
    let part = block.get(start..).and_then(<[T]>::first_chunk);
    part.expect("the parts of a block are within it")
}

#[inline]
#[target_feature(enable = "avx")]
pub(super) fn load_half(from: &[u8; 32]) -> __m256i {
    // SAFETY: the array is as long as the vector, and this load needs no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
pub(super) fn load_words(from: &[i16; 16]) -> __m256i {
    // SAFETY: see `load_half`.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
pub(super) fn load_quarter(from: &[u8; 16]) -> __m128i {
    // SAFETY: the array is as long as the vector, and this load needs no alignment. Every x86-64
    // processor has it.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
pub(super) fn load_quarter_words(from: &[i16; 8]) -> __m128i {
    // SAFETY: see `load_quarter`.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
pub(super) fn store_quarter(to: &mut [i32; 4], from: __m128i) {
    // SAFETY: see `load_quarter`.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), from) }
}

/// Asks for the block of weights that is `distance` bytes on. Processors fetch ahead by themselves,
/// but not across the end of a page, which here is after every 28 blocks.
#[inline]
#[target_feature(enable = "sse")]
pub(super) fn fetch_ahead<const N: usize>(block: &[u8; N], distance: usize) {
    for line in (0..N).step_by(64) {
        let line = block.as_ptr().wrapping_add(distance + line);
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }
}

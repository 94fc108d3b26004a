//! The kernels of processors with AVX-512 VNNI (Intel since Cascade Lake, AMD since Zen 4).

mod attend;
mod gate;
mod headers;
mod lanes;
mod panel;
mod round;
mod row;

use super::ByteKernel;
use super::numbers::{Numbers, SingleRow, in_fours};
use std::arch::is_x86_feature_detected;

/// The sizes of heads that [`Avx512::attend`] is for, and what positions must be a multiple of.
pub(super) const HEAD_SIZES: [usize; 2] = [64, 128];
pub(super) const POSITIONS: usize = 16;

/// A processor that has the instructions: holding this value shows that they may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Avx512(());

#[expect(
    unsafe_code,
    reason = "whether a processor has the instructions is found out when the program runs"
)]
impl Avx512 {
    /// Looks at the processor.
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("fma");
        has_all.then_some(Self(()))
    }

    pub(super) fn numbers(self, rows: &[f32], width: usize) -> Numbers {
        Numbers::new(rows, width, panel::TOGETHER, |block| {
            // SAFETY: `detect` has found the instructions.
            unsafe { round::round(block) }
        })
    }

    pub(super) fn multiply(
        self,
        kind: ByteKernel,
        bytes: &[u8],
        numbers: &Numbers,
        outs: &mut [&mut [f32]],
    ) {
        // SAFETY: `detect` has found the instructions.
        unsafe {
            match (numbers, kind) {
                (Numbers::Singles(rows), _) => in_fours(
                    rows,
                    outs,
                    |rows, outs| few(kind, bytes, rows, outs),
                    |row, out| few(kind, bytes, row, out),
                ),
                (Numbers::Batch(batch), ByteKernel::Q4K) => panel::q4k(bytes, batch, outs),
                (Numbers::Batch(batch), ByteKernel::Q6K) => panel::q6k(bytes, batch, outs),
            }
        }
    }

    pub(super) fn gate(self, numbers: &mut [f32], by: &[f32]) {
        // SAFETY: `detect` has found the instructions.
        unsafe { gate::gate(numbers, by) }
    }

    /// Mixes the values for each query of a head, whose size is one of [`HEAD_SIZES`].
    pub(super) fn attend(
        self,
        size: usize,
        queries: &[f32],
        (keys, values): (&[f32], &[f32]),
        position: usize,
        outs: &mut [&mut [f32]],
    ) {
        // SAFETY: `detect` has found the instructions.
        unsafe {
            match size {
                64 => attend::attend::<4>(queries, keys, values, position, outs),
                _ => attend::attend::<8>(queries, keys, values, position, outs),
            }
        }
    }
}

/// Multiplies a few rows, each of which has the same bits as it has by itself.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn few<const N: usize>(
    kind: ByteKernel,
    bytes: &[u8],
    rows: &[SingleRow; N],
    outs: &mut [&mut [f32]; N],
) {
    match kind {
        ByteKernel::Q4K => row::q4k(bytes, rows, outs),
        ByteKernel::Q6K => row::q6k(bytes, rows, outs),
    }
}

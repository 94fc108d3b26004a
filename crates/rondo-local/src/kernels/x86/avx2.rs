//! The kernels of processors with AVX2 and FMA (Intel since Haswell, AMD since Zen).

mod headers;
mod lanes;
mod panel;
mod round;
mod row;

use super::ByteKernel;
use super::numbers::{Numbers, SingleRow, in_fours};
use crate::blocks::Kind;
use crate::kernels::portable;
use std::arch::is_x86_feature_detected;

/// A processor that has the instructions: holding this value shows that they may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Avx2(());

#[expect(
    unsafe_code,
    reason = "whether a processor has the instructions is found out when the program runs"
)]
impl Avx2 {
    /// Looks at the processor.
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx2")
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

    /// [`portable::multiply`], with these instructions.
    pub(super) fn multiply_floats(
        self,
        kind: Kind,
        bytes: &[u8],
        inputs: usize,
        rows: &[f32],
        outs: &mut [&mut [f32]],
    ) {
        // SAFETY: `detect` has found the instructions.
        unsafe { multiply_floats(kind, bytes, inputs, rows, outs) }
    }

    pub(super) fn gate(self, numbers: &mut [f32], by: &[f32]) {
        // SAFETY: `detect` has found the instructions.
        unsafe { gate(numbers, by) }
    }

    pub(super) fn attend(
        self,
        size: usize,
        queries: &[f32],
        seen: (&[f32], &[f32]),
        position: usize,
        outs: &mut [&mut [f32]],
    ) {
        // SAFETY: `detect` has found the instructions.
        unsafe { attend(size, queries, seen, position, outs) }
    }
}

#[target_feature(enable = "avx2,f16c,fma")]
fn multiply_floats(kind: Kind, bytes: &[u8], inputs: usize, rows: &[f32], outs: &mut [&mut [f32]]) {
    portable::multiply::<true>(kind, bytes, inputs, rows, outs);
}

#[target_feature(enable = "avx2,f16c,fma")]
fn gate(numbers: &mut [f32], by: &[f32]) {
    portable::gate::<true>(numbers, by);
}

#[target_feature(enable = "avx2,f16c,fma")]
fn attend(
    size: usize,
    queries: &[f32],
    seen: (&[f32], &[f32]),
    position: usize,
    outs: &mut [&mut [f32]],
) {
    portable::attend::<true>(size, queries, seen, position, outs);
}

/// Multiplies a few rows, each of which has the same bits as it has by itself.
#[target_feature(enable = "avx2,f16c,fma")]
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

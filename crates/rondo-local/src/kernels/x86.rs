//! The kernels of x86-64 processors with AVX-512 VNNI (Intel since Cascade Lake, AMD since Zen 4).

mod attend;
mod gate;
mod headers;
mod lanes;
mod numbers;
mod panel;
mod row;

use super::Kind;
pub(super) use numbers::Numbers;

/// A processor that has the instructions: holding this value shows that they may be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arch(());

#[expect(
    unsafe_code,
    reason = "whether a processor has the instructions is found out when the program runs"
)]
impl Arch {
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

    /// Rounds rows of `width` numbers each to bytes.
    pub(super) fn numbers(self, rows: &[f32], width: usize) -> Numbers {
        Numbers::new(rows, width, |block| {
            // SAFETY: `detect` has found the instructions.
            unsafe { numbers::round(block) }
        })
    }

    /// Multiplies all rows of numbers with one unit of weights; `outs` has a piece of each row.
    pub(super) fn multiply(
        self,
        kind: Kind,
        bytes: &[u8],
        numbers: &Numbers,
        outs: &mut [&mut [f32]],
    ) {
        // SAFETY: `detect` has found the instructions.
        unsafe {
            match (numbers, kind) {
                (Numbers::Singles(rows), _) => {
                    for (row, out) in rows.iter().zip(outs) {
                        match kind {
                            Kind::Q4K => row::q4k(bytes, row, out),
                            Kind::Q6K => row::q6k(bytes, row, out),
                        }
                    }
                }
                (Numbers::Batch(batch), Kind::Q4K) => panel::q4k(bytes, batch, outs),
                (Numbers::Batch(batch), Kind::Q6K) => panel::q6k(bytes, batch, outs),
            }
        }
    }

    /// Multiplies each number's `x / (1 + exp(-x))` with the other number.
    pub(super) fn gate(self, numbers: &mut [f32], by: &[f32]) {
        // SAFETY: `detect` has found the instructions.
        unsafe { gate::gate(numbers, by) }
    }

    /// Mixes the values for each query of a head, whose size is one of [`super::HEAD_SIZES`].
    pub(super) fn attend(
        self,
        size: usize,
        queries: &[f32],
        (keys, values): (&[f32], &[f32]),
        seen: usize,
        outs: &mut [&mut [f32]],
    ) {
        // SAFETY: `detect` has found the instructions.
        unsafe {
            match size {
                64 => attend::attend::<4>(queries, keys, values, seen, outs),
                _ => attend::attend::<8>(queries, keys, values, seen, outs),
            }
        }
    }
}

//! The kernels of x86-64 processors.

mod avx2;
mod avx512;
mod memory;
mod numbers;

use super::{HeadContext, Inputs, Instructions};
use crate::blocks::Kind;
use avx2::Avx2;
use avx512::Avx512;
pub(super) use numbers::Numbers;

/// How far ahead weights are asked for, in bytes: 2 to 4 KiB did equally well, 1 and 8 less.
const AHEAD: usize = 3 << 10;

/// The kinds of blocks that meet numbers rounded to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteKernel {
    Q4K,
    Q6K,
}

impl ByteKernel {
    fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Q4K => Some(Self::Q4K),
            Kind::Q6K => Some(Self::Q6K),
            _ => None,
        }
    }
}

/// Instructions that this processor has: holding a value shows that they may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arch {
    /// AVX-512, with AVX2 for operations that have no kernel.
    Avx512(Avx512, Avx2),
    Avx2(Avx2),
}

impl Arch {
    pub(super) fn find(instructions: Instructions) -> Option<Self> {
        match instructions {
            Instructions::Avx512Vnni => Some(Self::Avx512(Avx512::detect()?, Avx2::detect()?)),
            Instructions::Avx2 => Avx2::detect().map(Self::Avx2),
            Instructions::Portable => None,
        }
    }

    /// Returns whether weights of a kind meet numbers that were rounded to bytes.
    pub(super) fn rounds(self, kind: Kind) -> bool {
        ByteKernel::of(kind).is_some()
    }

    /// Rounds rows of `width` numbers each, which are whole blocks.
    pub(super) fn numbers(self, rows: &[f32], width: usize) -> Numbers {
        match self {
            Self::Avx512(arch, _) => arch.numbers(rows, width),
            Self::Avx2(arch) => arch.numbers(rows, width),
        }
    }

    /// Multiplies all rows of numbers, rounded ones if there are such, with one unit of weights;
    /// `outs` has a piece of each row.
    pub(super) fn multiply(
        self,
        kind: Kind,
        bytes: &[u8],
        rounded: Option<&Numbers>,
        inputs: &Inputs<'_>,
        outs: &mut [&mut [f32]],
    ) {
        match (self, ByteKernel::of(kind).zip(rounded)) {
            (Self::Avx512(arch, _), Some((kind, numbers))) => {
                arch.multiply(kind, bytes, numbers, outs);
            }
            (Self::Avx2(arch), Some((kind, numbers))) => arch.multiply(kind, bytes, numbers, outs),
            (Self::Avx512(_, arch) | Self::Avx2(arch), None) => {
                arch.multiply_floats(kind, bytes, inputs.width, inputs.rows, outs);
            }
        }
    }

    /// Multiplies each number's `x / (1 + exp(-x))` with the other number.
    pub(super) fn gate(self, numbers: &mut [f32], by: &[f32]) {
        match self {
            Self::Avx512(arch, _) => arch.gate(numbers, by),
            Self::Avx2(arch) => arch.gate(numbers, by),
        }
    }

    /// Mixes the values for each query of a head, as [`super::attend`] says.
    pub(super) fn attend(self, queries: &[f32], seen: HeadContext<'_>, outs: &mut [&mut [f32]]) {
        let room = seen.keys.len() / seen.size.max(1);
        let (both, position) = ((seen.keys, seen.values), seen.position);
        match self {
            Self::Avx512(arch, _)
                if avx512::HEAD_SIZES.contains(&seen.size)
                    && room.is_multiple_of(avx512::POSITIONS) =>
            {
                arch.attend(seen.size, queries, both, position, outs);
            }
            Self::Avx512(_, arch) | Self::Avx2(arch) => {
                arch.attend(seen.size, queries, both, position, outs);
            }
        }
    }
}

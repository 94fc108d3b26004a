//! No processor of this architecture has kernels here.

use super::Kind;

/// There is none.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arch {}

/// Numbers to multiply with. They cannot be built here, since no [`Arch`] exists on this processor.
pub(super) struct Numbers;

impl Arch {
    pub(super) fn detect() -> Option<Self> {
        None
    }

    pub(super) fn numbers(self, _: &[f32], _: usize) -> Numbers {
        match self {}
    }

    pub(super) fn multiply(self, _: Kind, _: &[u8], _: &Numbers, _: &mut [&mut [f32]]) {
        match self {}
    }

    pub(super) fn gate(self, _: &mut [f32], _: &[f32]) {
        match self {}
    }

    pub(super) fn attend(
        self,
        _: usize,
        _: &[f32],
        _: (&[f32], &[f32]),
        _: usize,
        _: &mut [&mut [f32]],
    ) {
        match self {}
    }
}

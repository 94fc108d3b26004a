//! No processor of this architecture has kernels of its own here.

use super::{HeadContext, Inputs, Instructions};
use crate::blocks::Kind;

/// There is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arch {}

/// Numbers to multiply with. They cannot be built here, since no [`Arch`] exists on this processor.
pub(super) enum Numbers {}

impl Arch {
    pub(super) fn find(_: Instructions) -> Option<Self> {
        None
    }

    pub(super) fn rounds(self, _: Kind) -> bool {
        match self {}
    }

    pub(super) fn numbers(self, _: &[f32], _: usize) -> Numbers {
        match self {}
    }

    pub(super) fn multiply(
        self,
        _: Kind,
        _: &[u8],
        _: Option<&Numbers>,
        _: &Inputs<'_>,
        _: &mut [&mut [f32]],
    ) {
        match self {}
    }

    pub(super) fn gate(self, _: &mut [f32], _: &[f32]) {
        match self {}
    }

    pub(super) fn attend(self, _: &[f32], _: HeadContext<'_>, _: &mut [&mut [f32]]) {
        match self {}
    }
}

//! Request bodies of several pieces, which are sent without copying them together.

use bytes::Bytes;
use std::collections::VecDeque;

/// A body that is not copied; there is none where there are no pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces(VecDeque<Bytes>);

impl Pieces {
    /// Returns its length.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Returns its pieces, behind another one.
    pub(crate) fn after(mut self, first: Bytes) -> VecDeque<Bytes> {
        self.0.push_front(first);
        self.0
    }
}

impl From<Vec<Bytes>> for Pieces {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(pieces.into())
    }
}

//! Fingerprint of all that keys and values depend on besides their tokens: the weights, and the way of computing.

use crate::gguf::Gguf;
use crate::kernels::Instructions;
use crate::shape::Shape;
use sha2::{Digest as _, Sha256};

/// Raised when computing changes so that what was kept of it no longer fits.
const GENERATION: u32 = 1;
/// Tensors whose bytes are looked at, evenly spread over all, and how many of each.
const TENSORS: usize = 32;
const TENSOR_BYTES: usize = 4_096;

/// A fingerprint of weights and of the program that computes with them.
pub(crate) type Fingerprint = [u8; 32];

/// Returns the fingerprint of a file's weights.
///
/// Reading a gigabyte would take as long as what it saves, so of the weights it covers samples: other
/// weights of the same shape differ in nearly all of them. The file's length and the time of its last
/// change are covered too.
pub(crate) fn fingerprint(gguf: &Gguf, shape: &Shape, instructions: Instructions) -> Fingerprint {
    let mut hash = Sha256::new();
    let program = (
        GENERATION,
        env!("CARGO_PKG_VERSION"),
        instructions.to_string(),
    );
    hash.update(format!("{program:?} {shape:?} {:?}\n", gguf.written()));
    let names = gguf.tensor_names();
    for name in names.iter().step_by(names.len().div_ceil(TENSORS).max(1)) {
        let bytes = gguf.tensor_bytes(name);
        let middle = bytes.get(bytes.len() / 2..).unwrap_or_default();
        hash.update(format!("{name} {}\n", bytes.len()));
        hash.update(middle.get(..TENSOR_BYTES).unwrap_or(middle));
    }
    hash.finalize().into()
}

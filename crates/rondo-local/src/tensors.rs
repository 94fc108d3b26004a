//! Access to the blocks of a tensor, for kernels that are not candle's.

use candle_core::{CpuStorage, Result, Storage, Tensor, bail};

/// Lends the numbers of a tensor, row after row.
///
/// # Errors
/// When they are not floats in the processor's memory.
pub(crate) fn with_numbers<T>(
    tensor: &Tensor,
    then: impl FnOnce(&[f32]) -> Result<T>,
) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let (Storage::Cpu(CpuStorage::F32(numbers)), Some((start, end))) =
        (&*storage, layout.contiguous_offsets())
    else {
        bail!("only floats are computed with, and only on the processor");
    };
    then(numbers.get(start..end).unwrap_or_default())
}

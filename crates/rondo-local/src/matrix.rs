//! Matrices of quantised weights, multiplied with candle's kernels.
//!
//! On most processors candle computes from a copy of the weights in the order of the vector
//! instructions. Generating straight from the file's blocks, which are a quarter fewer bytes, was
//! tried and is slower by a tenth: unpacking them costs more than reading the copy.

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{DType, Device, Module as _, Result, Tensor};
use std::sync::Arc;

/// A matrix of `outputs` rows with `inputs` numbers each.
pub(crate) struct Matrix {
    product: QMatMul,
    inputs: usize,
}

impl Matrix {
    /// Builds a matrix over a tensor.
    ///
    /// # Errors
    /// When the tensor has not two dimensions.
    pub(crate) fn new(tensor: Arc<QTensor>) -> Result<Self> {
        let (_, inputs) = tensor.shape().dims2()?;
        let product = QMatMul::from_arc(tensor)?;
        Ok(Self { product, inputs })
    }

    /// Multiplies rows, `(count, inputs)` to `(count, outputs)`.
    ///
    /// # Errors
    /// When the rows have another length.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        self.product.forward(rows)
    }

    /// Multiplies the same rows with two matrices. A single row is then rounded once, and the
    /// threads meet once, which counts where a product takes a fraction of a millisecond.
    ///
    /// # Errors
    /// When the rows have another length.
    pub(crate) fn forward_both(&self, other: &Self, rows: &Tensor) -> Result<(Tensor, Tensor)> {
        if let (1, QMatMul::QTensor(one), QMatMul::QTensor(two)) =
            (rows.dim(0)?, &self.product, &other.product)
            && let Some(products) = QTensor::gemv_fused_shared_lhs(&[one, two], rows)?
            && let Ok([first, second]) = <[Tensor; 2]>::try_from(products)
        {
            return Ok((first, second));
        }
        Ok((self.forward(rows)?, other.forward(rows)?))
    }

    /// Makes the copy that candle computes from, which it would make at the first prompt. Two rows
    /// are the fewest for which it does.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn prepare(&self) -> Result<()> {
        let rows = Tensor::zeros((2, self.inputs), DType::F32, &Device::Cpu)?;
        self.forward(&rows).map(drop)
    }
}

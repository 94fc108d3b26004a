//! Matrices of quantised weights.

use crate::error::{LocalError, first_line};
use crate::gguf::Gguf;
use crate::kernels::{self, Weights};
use crate::tensors::with_numbers;
use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{DType, Device, Module as _, Result, Tensor};
use candle_nn::ops::silu;
use std::sync::Arc;

/// A matrix of `outputs` rows with `inputs` numbers each.
pub(crate) enum Matrix {
    /// Computed here.
    Own(Weights),
    /// Computed by candle, on most processors from a copy in the order of the vector instructions.
    Candle { product: QMatMul, inputs: usize },
}

impl Matrix {
    /// Reads a matrix out of a file.
    ///
    /// # Errors
    /// When it is missing, or has not two dimensions.
    pub(crate) fn read(gguf: &Gguf, name: &str) -> std::result::Result<Self, LocalError> {
        if let Some(weights) = gguf.weights(name) {
            return Ok(Self::Own(weights));
        }
        let candle = |tensor: QTensor| {
            let (_, inputs) = tensor.shape().dims2()?;
            let product = QMatMul::from_arc(Arc::new(tensor))?;
            Ok(Self::Candle { product, inputs })
        };
        candle(gguf.tensor(name)?)
            .map_err(|err: candle_core::Error| gguf.format_error(first_line(&err.to_string())))
    }

    /// Multiplies rows, `(count, inputs)` to `(count, outputs)`.
    ///
    /// # Errors
    /// When the rows have another length.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let [product] = Self::forward_all([self], rows)?;
        Ok(product)
    }

    /// Multiplies the same rows with several matrices. They are then rounded once, and the threads
    /// meet once, which counts where a product takes a fraction of a millisecond.
    ///
    /// # Errors
    /// When the rows have another length.
    pub(crate) fn forward_all<const N: usize>(
        matrices: [&Self; N],
        rows: &Tensor,
    ) -> Result<[Tensor; N]> {
        let own = matrices.iter().map(|it| match it {
            Self::Own(weights) => Some(weights),
            Self::Candle { .. } => None,
        });
        let products = match own.collect::<Option<Vec<_>>>() {
            Some(own) => multiply(&own, rows)?,
            None => match fused(&matrices, rows)? {
                Some(products) => products,
                None => {
                    let each = matrices.iter().map(|it| match it {
                        Self::Own(weights) => Ok(multiply(&[weights], rows)?.remove(0)),
                        Self::Candle { product, .. } => product.forward(rows),
                    });
                    each.collect::<Result<_>>()?
                }
            },
        };
        let products = <[Tensor; N]>::try_from(products);
        products.map_err(|_| candle_core::Error::msg("a product is missing"))
    }

    /// Computes a feed-forward layer: the same rows times two matrices, one product gated by the
    /// other, and that times a third. What is in between is left in `scratch`, for the next layer
    /// to overwrite.
    ///
    /// # Errors
    /// When the rows have another length, or the matrices do not fit each other.
    pub(crate) fn feed_forward(
        [gate, up, down]: [&Self; 3],
        rows: &Tensor,
        scratch: &mut Vec<f32>,
    ) -> Result<Tensor> {
        if let (Self::Own(gate), Self::Own(up), Self::Own(down)) = (gate, up, down) {
            with_numbers(rows, |numbers| kernels::gated(gate, up, numbers, scratch))?;
            let product = kernels::multiply(&[down], scratch)?.remove(0);
            return Tensor::from_vec(product, (rows.dim(0)?, down.outputs()), &Device::Cpu);
        }
        let [gate, up] = Self::forward_all([gate, up], rows)?;
        down.forward(&(silu(&gate)? * up)?)
    }

    /// Makes the copy that candle computes from, which it would make at the first prompt. Two rows
    /// are the fewest for which it does.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn prepare(&self) -> Result<()> {
        let Self::Candle { inputs, .. } = self else {
            return Ok(());
        };
        let rows = Tensor::zeros((2, *inputs), DType::F32, &Device::Cpu)?;
        self.forward(&rows).map(drop)
    }
}

fn multiply(weights: &[&Weights], rows: &Tensor) -> Result<Vec<Tensor>> {
    let count = rows.dim(0)?;
    let products = with_numbers(rows, |numbers| kernels::multiply(weights, numbers))?;
    let products = products.into_iter().zip(weights);
    products
        .map(|(product, it)| Tensor::from_vec(product, (count, it.outputs()), &Device::Cpu))
        .collect()
}

/// Multiplies a single row with several of candle's matrices, where it can do that at once.
fn fused(matrices: &[&Matrix], rows: &Tensor) -> Result<Option<Vec<Tensor>>> {
    let tensors = matrices.iter().map(|it| match it {
        Matrix::Candle {
            product: QMatMul::QTensor(tensor),
            ..
        } => Some(&**tensor),
        _ => None,
    });
    match tensors.collect::<Option<Vec<&QTensor>>>() {
        Some(tensors) if rows.dim(0)? == 1 => QTensor::gemv_fused_shared_lhs(&tensors, rows),
        _ => Ok(None),
    }
}

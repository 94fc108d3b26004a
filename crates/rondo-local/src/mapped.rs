//! Weights that stay in their file: quantised blocks of a memory map, where candle would copy them.
//!
//! The pages belong to the system's cache: they are read when they are first needed, shared by all
//! processes that ask the same model, and given up when memory is short.
//!
//! These are the only lines of the crate that the compiler cannot check. llama.cpp maps its files
//! with the same assumption: nobody shortens a file of weights while it is in use. Rondo itself
//! renames finished files into place and never writes to them again.
#![expect(
    unsafe_code,
    reason = "a file cannot be mapped, nor bytes be seen as blocks, without it"
)]

use candle_core::quantized::k_quants::{self, GgmlType};
use candle_core::quantized::{GgmlDType, QuantizedType};
use candle_core::{CpuStorage, Result, bail};
use half::f16;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

/// Maps a whole file.
///
/// # Errors
/// When the system refuses.
pub(crate) fn map(file: &File) -> io::Result<Arc<Mmap>> {
    // SAFETY: the file is only read, and files of weights are not changed in place (see above).
    let map = unsafe { Mmap::map(file)? };
    Ok(Arc::new(map))
}

/// Has the pages of a map brought in by a thread that nobody waits for: where the file is in the
/// system's cache that is done before the vocabulary is read, and the first prompt need not stop at
/// each page. It is a help alone, so what goes wrong with it is passed over.
pub(crate) fn bring_in(map: &Arc<Mmap>) {
    #[cfg(target_os = "linux")]
    {
        let map = Arc::clone(map);
        let thread = std::thread::Builder::new().name("rondo-weights".to_owned());
        let _ = thread.spawn(move || map.advise(memmap2::Advice::PopulateRead));
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = map.advise(memmap2::Advice::WillNeed);
    }
}

/// Returns the blocks of a tensor that begins at `start` of the map; `None` for kinds of numbers
/// that are not blocks, and for blocks that are not aligned.
///
/// # Errors
/// When the map is too short for them.
pub(crate) fn blocks(
    map: &Arc<Mmap>,
    start: usize,
    elements: usize,
    kind: GgmlDType,
) -> Result<Option<Box<dyn QuantizedType>>> {
    match kind {
        GgmlDType::Q4_0 => Blocks::<k_quants::BlockQ4_0>::boxed(map, start, elements),
        GgmlDType::Q4_1 => Blocks::<k_quants::BlockQ4_1>::boxed(map, start, elements),
        GgmlDType::Q5_0 => Blocks::<k_quants::BlockQ5_0>::boxed(map, start, elements),
        GgmlDType::Q5_1 => Blocks::<k_quants::BlockQ5_1>::boxed(map, start, elements),
        GgmlDType::Q8_0 => Blocks::<k_quants::BlockQ8_0>::boxed(map, start, elements),
        GgmlDType::Q2K => Blocks::<k_quants::BlockQ2K>::boxed(map, start, elements),
        GgmlDType::Q3K => Blocks::<k_quants::BlockQ3K>::boxed(map, start, elements),
        GgmlDType::Q4K => Blocks::<k_quants::BlockQ4K>::boxed(map, start, elements),
        GgmlDType::Q5K => Blocks::<k_quants::BlockQ5K>::boxed(map, start, elements),
        GgmlDType::Q6K => Blocks::<k_quants::BlockQ6K>::boxed(map, start, elements),
        _ => Ok(None),
    }
}

/// A part of a map.
#[derive(Clone)]
pub(crate) struct Held {
    map: Arc<Mmap>,
    start: usize,
    length: usize,
}

impl Held {
    /// Returns the `length` bytes from `start` on; `None` if the map ends before.
    pub(crate) fn new(map: &Arc<Mmap>, start: usize, length: usize) -> Option<Self> {
        map.get(start..start.checked_add(length)?)?;
        Some(Self {
            map: Arc::clone(map),
            start,
            length,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let bytes = self.map.get(self.start..self.start + self.length);
        bytes.unwrap_or_default()
    }
}

/// The blocks of one tensor.
struct Blocks<T> {
    held: Held,
    kind: PhantomData<fn() -> T>,
}

impl<T: GgmlType + Send + Sync + 'static> Blocks<T> {
    fn boxed(
        map: &Arc<Mmap>,
        start: usize,
        elements: usize,
    ) -> Result<Option<Box<dyn QuantizedType>>> {
        let bytes = elements.div_ceil(T::BLCK_SIZE).checked_mul(size_of::<T>());
        let Some(held) = bytes.and_then(|bytes| Held::new(map, start, bytes)) else {
            bail!("a tensor of {elements} numbers does not fit the file");
        };
        if !held.bytes().as_ptr().cast::<T>().is_aligned() {
            return Ok(None);
        }
        Ok(Some(Box::new(Self {
            held,
            kind: PhantomData,
        })))
    }

    fn blocks(&self) -> &[T] {
        let bytes = self.held.bytes();
        // SAFETY: `boxed` has checked that the beginning is aligned. A block is plain numbers, for
        // which any bytes will do: candle reads them the same way.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
    }

    fn row(&self, row: usize, width: usize) -> Option<&[T]> {
        let length = width / T::BLCK_SIZE;
        let first = row.checked_mul(length)?;
        self.blocks().get(first..first.checked_add(length)?)
    }
}

impl<T: GgmlType + Send + Sync + 'static> QuantizedType for Blocks<T> {
    fn dtype(&self) -> GgmlDType {
        T::DTYPE
    }

    fn matmul_t(&self, mkn: (usize, usize, usize), lhs: &[f32], dst: &mut [f32]) -> Result<()> {
        k_quants::matmul(mkn, lhs, self.blocks(), dst)
    }

    fn matmul_t_f16(&self, mkn: (usize, usize, usize), lhs: &[f16], dst: &mut [f16]) -> Result<()> {
        k_quants::matmul_f16(mkn, lhs, self.blocks(), dst)
    }

    fn embedding(&self, ids: &[u32], rows: usize, width: usize) -> Result<CpuStorage> {
        if !width.is_multiple_of(T::BLCK_SIZE) || width == 0 {
            bail!("rows of {width} numbers are no whole blocks");
        }
        let mut out = vec![0.0; ids.len() * width];
        for (id, out) in ids.iter().zip(out.chunks_exact_mut(width)) {
            let row = usize::try_from(*id).ok().filter(|row| *row < rows);
            let Some(row) = row.and_then(|row| self.row(row, width)) else {
                bail!("there is no row {id} of {rows}");
            };
            T::to_float(row, out);
        }
        Ok(CpuStorage::F32(out))
    }

    fn dequantize(&self, elements: usize) -> Result<CpuStorage> {
        let mut out = vec![0.0; elements];
        T::to_float(self.blocks(), &mut out);
        Ok(CpuStorage::F32(out))
    }

    fn storage_size_in_bytes(&self) -> usize {
        self.held.length
    }

    fn as_ptr(&self) -> *const u8 {
        self.held.bytes().as_ptr()
    }

    fn block_size(&self) -> usize {
        T::BLCK_SIZE
    }

    fn size(&self) -> usize {
        self.storage_size_in_bytes()
    }

    fn from_float(&mut self, _: &[f32]) {
        // Nothing here quantises, and the trait has no way to refuse.
        debug_assert!(false, "weights of a file cannot be written to");
    }

    fn from_float_imatrix(&mut self, _: &[f32], _: &[f32], _: usize) {
        debug_assert!(false, "weights of a file cannot be written to");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::quantized::{QMatMul, QStorage, QTensor};
    use candle_core::{Device, Module as _, Tensor};
    use std::io::Write as _;

    const ROWS: usize = 32;
    const WIDTH: usize = 512;

    fn numbers(count: usize) -> Tensor {
        let numbers = (0..count).map(|index| ((index * 37 % 101) as f32 - 50.0) / 50.0);
        Tensor::from_iter(numbers, &Device::Cpu).unwrap()
    }

    fn quantised(kind: GgmlDType) -> QTensor {
        let table = numbers(ROWS * WIDTH).reshape((ROWS, WIDTH)).unwrap();
        QTensor::quantize(&table, kind).unwrap()
    }

    fn mapped(bytes: &[u8], padding: usize) -> Arc<Mmap> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0; padding]).unwrap();
        file.write_all(bytes).unwrap();
        map(&file).unwrap()
    }

    #[test]
    fn mapped_blocks_compute_what_copied_ones_do() {
        let rows = numbers(3 * WIDTH).reshape((3, WIDTH)).unwrap();
        let ids = Tensor::new(&[31_u32, 0], &Device::Cpu).unwrap();
        for kind in [
            GgmlDType::Q4_1,
            GgmlDType::Q8_0,
            GgmlDType::Q4K,
            GgmlDType::Q6K,
        ] {
            let copied = quantised(kind);
            let map = mapped(&copied.data().unwrap(), 64);
            let storage = blocks(&map, 64, ROWS * WIDTH, kind).unwrap().unwrap();
            let mapped = QTensor::new(QStorage::Cpu(storage), (ROWS, WIDTH)).unwrap();
            let both = [copied, mapped].map(|tensor| {
                let found = tensor.embedding(&ids).unwrap();
                let product = QMatMul::from_qtensor(tensor).unwrap().forward(&rows);
                [found, product.unwrap()]
                    .map(|it| it.flatten_all().unwrap().to_vec1::<f32>().unwrap())
            });
            assert_eq!(both[0], both[1], "{kind:?}");
        }
    }

    #[test]
    fn blocks_past_the_end_are_refused_and_crooked_ones_left_to_a_copy() {
        let map = mapped(&quantised(GgmlDType::Q4K).data().unwrap(), 1);
        let elements = ROWS * WIDTH;
        assert!(blocks(&map, 2, elements, GgmlDType::Q4K).is_err());
        assert!(blocks(&map, usize::MAX, elements, GgmlDType::Q4K).is_err());
        assert!(blocks(&map, 1, elements, GgmlDType::Q4K).unwrap().is_none());
        assert!(blocks(&map, 0, 1, GgmlDType::F32).unwrap().is_none());
    }
}

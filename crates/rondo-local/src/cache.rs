//! The KV cache: keys and values of the tokens computed so far.

use crate::kernels::Seen;
use crate::tensors::with_numbers;
use candle_core::{DType, Device, Result, Tensor};

/// Positions by which a lane grows; copying at each token would cost more than what it saves.
const GROWTH: usize = 1024;

/// The keys and values of one layer: `(heads, positions, size)`, with room to grow.
#[derive(Debug)]
pub(crate) struct Lane {
    keys: Tensor,
    values: Tensor,
    capacity: usize,
    length: usize,
}

impl Lane {
    /// Builds an empty lane.
    pub(crate) fn new(heads: usize, size: usize) -> Result<Self> {
        let empty = || Tensor::zeros((heads, GROWTH, size), DType::F32, &Device::Cpu);
        Ok(Self {
            keys: empty()?,
            values: empty()?,
            capacity: GROWTH,
            length: 0,
        })
    }

    /// Appends keys and values of `(heads, new positions, size)`.
    pub(crate) fn append(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let added = keys.dim(1)?;
        self.reserve(self.length + added)?;
        self.keys.slice_set(keys, 1, self.length)?;
        self.values.slice_set(values, 1, self.length)?;
        self.length += added;
        Ok(())
    }

    /// Returns views on all keys and values, `(heads, positions, size)`.
    pub(crate) fn views(&self) -> Result<(Tensor, Tensor)> {
        let keys = self.keys.narrow(1, 0, self.length)?;
        Ok((keys, self.values.narrow(1, 0, self.length)?))
    }

    /// Lends all keys and values, and the room behind them.
    pub(crate) fn with_room<T>(&self, then: impl FnOnce(&Seen<'_>) -> Result<T>) -> Result<T> {
        let size = self.keys.dim(2)?;
        with_numbers(&self.keys, |keys| {
            with_numbers(&self.values, |values| {
                then(&Seen {
                    keys,
                    values,
                    per_head: self.capacity * size,
                    size,
                })
            })
        })
    }

    /// Returns how many positions there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Forgets what follows the first `length` positions.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Copies the lane, so that the copies grow apart. A tensor's own clone shares its memory.
    pub(crate) fn fork(&self) -> Result<Self> {
        Ok(Self {
            keys: self.keys.copy()?,
            values: self.values.copy()?,
            ..*self
        })
    }

    fn reserve(&mut self, wanted: usize) -> Result<()> {
        if wanted <= self.capacity {
            return Ok(());
        }
        let capacity = wanted.next_multiple_of(GROWTH);
        for side in [&mut self.keys, &mut self.values] {
            let (heads, _, size) = side.dims3()?;
            let grown = Tensor::zeros((heads, capacity, size), DType::F32, &Device::Cpu)?;
            grown.slice_set(&side.contiguous()?, 1, 0)?;
            *side = grown;
        }
        self.capacity = capacity;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(from: f32, count: usize) -> Tensor {
        let data: Vec<f32> = (0..count)
            .flat_map(|row| [from + row as f32, 0.5])
            .collect();
        Tensor::from_vec(data, (1, count, 2), &Device::Cpu).unwrap()
    }

    fn first_column(tensor: &Tensor) -> Vec<f32> {
        let column = tensor.narrow(2, 0, 1).unwrap().flatten_all().unwrap();
        column.to_vec1().unwrap()
    }

    #[test]
    fn a_lane_grows_past_its_room_and_keeps_what_it_has() {
        let mut lane = Lane::new(1, 2).unwrap();
        lane.append(&rows(0.0, GROWTH - 1), &rows(0.0, GROWTH - 1))
            .unwrap();
        lane.append(&rows(5000.0, 3), &rows(0.0, 3)).unwrap();
        let (keys, _) = lane.views().unwrap();
        let column = first_column(&keys);
        assert_eq!(column.len(), GROWTH + 2);
        assert_eq!(column[GROWTH - 2], (GROWTH - 2) as f32);
        assert_eq!(column[GROWTH - 1..], [5000.0, 5001.0, 5002.0]);
    }

    #[test]
    fn a_fork_is_independent() {
        let mut lane = Lane::new(1, 2).unwrap();
        lane.append(&rows(0.0, 4), &rows(0.0, 4)).unwrap();
        let mut fork = lane.fork().unwrap();
        fork.truncate(2);
        fork.append(&rows(70.0, 1), &rows(0.0, 1)).unwrap();
        lane.append(&rows(4.0, 1), &rows(0.0, 1)).unwrap();
        let [forked, kept] = [&fork, &lane].map(|lane| lane.views().unwrap().0);
        assert_eq!(first_column(&forked), [0.0, 1.0, 70.0]);
        assert_eq!(first_column(&kept), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }
}

//! Numbers rounded to bytes, a scale for every 256, as the kernels want them.

use super::super::{BLOCK, SINGLES_MAX, on_all_processors};
use super::lanes::{at, load_floats, store_quarter};
use std::arch::x86_64::*;

/// Rows of numbers.
pub(in super::super) enum Numbers {
    /// So few that each meets the weights by itself.
    Singles(Vec<Single>),
    Batch(Batch),
}

/// Many rows.
pub(in super::super) struct Batch {
    /// The blocks of all rows at one place, then those at the next.
    blocks: Vec<Block>,
    rows: usize,
}

/// One row.
pub(in super::super) struct Single {
    pub(super) columns: Vec<Column>,
    /// The scales of the columns, and those of the first 16 again, wherever that leads: kernels take
    /// 16 at once, and go on with the next row of weights where one ends.
    pub(super) scales: Vec<f32>,
}

/// Those of one row at one place.
#[derive(Clone)]
pub(super) struct Column {
    pub(super) block: Block,
    /// The numbers in the order in which a block of 4-bit weights has its halves of bytes: 32 that
    /// belong to the low ones, 32 more, and those that belong to the high ones of the same bytes.
    pub(super) nibbles: [[[i32; 4]; 4]; 4],
}

/// 256 numbers.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Block {
    /// The signed bytes, four and four.
    pub(super) fours: [[i32; 4]; 16],
    /// The sums of every 32 of the bytes, then those of every 16, as words and in pairs: 0 and 2,
    /// 1 and 3, 4 and 6 ..
    pub(super) sums: [i32; 12],
    /// What a byte of one stands for.
    pub(super) scale: f32,
}

impl Block {
    const ZERO: Self = Self {
        fours: [[0; 4]; 16],
        sums: [0; 12],
        scale: 0.0,
    };

    pub(super) fn sums_of_32(&self) -> &[i32; 4] {
        at(&self.sums, 0)
    }

    pub(super) fn sums_of_16(&self) -> &[i32; 8] {
        at(&self.sums, 4)
    }
}

impl Numbers {
    /// Rounds rows of `width` numbers, which are whole blocks.
    pub(super) fn new(
        rows: &[f32],
        width: usize,
        round: impl Fn(&[f32; BLOCK]) -> Block + Sync,
    ) -> Self {
        let count = rows.len() / width;
        let blocks = rows.as_chunks().0;
        let columns = width / BLOCK;
        if count <= SINGLES_MAX {
            let rows = blocks.chunks_exact(columns);
            let rows = rows.map(|row| Single::new(row.iter().map(&round)));
            return Self::Singles(rows.collect());
        }
        let mut rounded = vec![Block::ZERO; blocks.len()];
        let work = rounded.chunks_mut(count).enumerate();
        on_all_processors(work, |(column, rounded)| {
            let blocks = blocks.iter().skip(column).step_by(columns);
            for (rounded, block) in rounded.iter_mut().zip(blocks) {
                *rounded = round(block);
            }
        });
        Self::Batch(Batch {
            blocks: rounded,
            rows: count,
        })
    }
}

impl Batch {
    /// Returns the blocks of all rows, one place after another.
    pub(super) fn columns(&self) -> impl ExactSizeIterator<Item = &[Block]> {
        self.blocks.chunks_exact(self.rows.max(1))
    }
}

impl Single {
    fn new(blocks: impl Iterator<Item = Block>) -> Self {
        let columns: Vec<Column> = blocks.map(Column::new).collect();
        let scales = columns.iter().map(|column| column.block.scale);
        let scales = scales.cycle().take(columns.len() + 16).collect();
        Self { columns, scales }
    }
}

impl Column {
    fn new(block: Block) -> Self {
        let mut nibbles = [[[0; 4]; 4]; 4];
        let halves = nibbles.as_flattened_mut().as_chunks_mut::<2>().0;
        for (half, from) in halves.iter_mut().zip([0, 2, 1, 3, 4, 6, 5, 7]) {
            half.copy_from_slice(&block.fours[from * 2..][..2]);
        }
        Self { block, nibbles }
    }
}

/// Rounds a block.
#[target_feature(enable = "avx512f")]
pub(super) fn round(numbers: &[f32; BLOCK]) -> Block {
    let vectors = numbers.as_chunks().0;
    let mut largest = _mm512_setzero_ps();
    for vector in vectors {
        largest = _mm512_max_ps(largest, _mm512_abs_ps(load_floats(vector)));
    }
    let largest = _mm512_reduce_max_ps(largest);
    let up = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let mut block = Block {
        scale: largest / 127.0,
        ..Block::ZERO
    };
    let mut sums = [0_i16; 16];
    for ((vector, bytes), sum) in vectors.iter().zip(&mut block.fours).zip(&mut sums) {
        let whole = _mm512_cvtps_epi32(_mm512_mul_ps(load_floats(vector), _mm512_set1_ps(up)));
        store_quarter(bytes, _mm512_cvtepi32_epi8(whole));
        // At most 16 times 127.
        *sum = _mm512_reduce_add_epi32(whole) as i16;
    }
    let mut twice = [0_i16; 8];
    for (twice, [one, two]) in twice.iter_mut().zip(sums.as_chunks().0) {
        *twice = one + two;
    }
    let all = twice.as_chunks().0.iter().chain(sums.as_chunks().0);
    for (pairs, four) in block.sums.as_chunks_mut().0.iter_mut().zip(all) {
        *pairs = paired(*four);
    }
    block
}

fn paired([a, b, c, d]: [i16; 4]) -> [i32; 2] {
    let pair = |low: i16, high: i16| i32::from(low) & 0xffff | i32::from(high) << 16;
    [pair(a, c), pair(b, d)]
}

//! Numbers rounded to bytes, a scale for every 256, as the kernels want them.

use super::super::{BLOCK, SINGLES_MAX};
use crate::pool::on_all_processors;

/// Rows of numbers.
pub(in super::super) enum Numbers {
    /// So few that each meets the weights by itself.
    Singles(Vec<SingleRow>),
    Batch(Batch),
}

/// Many rows.
pub(in super::super) struct Batch {
    rows: usize,
    /// The bytes of all rows at one place, then those at the next. Of a place, those rows are
    /// next to each other, 16 bytes each, that are computed together ([`together`]): they are read
    /// from end to end.
    quarters: Vec<[i32; 4]>,
    /// Further facts about the rows at one place, then at the next.
    marks: Vec<Marks>,
}

/// Returns the first row that is computed together with a row, and how many are: as many as the first
/// size says as long as there are as many, then as the second, then each alone.
fn together(sizes: [usize; 2], rows: usize, row: usize) -> (usize, usize) {
    let mut start = 0;
    for size in sizes {
        let end = start + (rows - start) / size * size;
        if row < end {
            return (start + (row - start) / size * size, size);
        }
        start = end;
    }
    (row, 1)
}

/// One row.
pub(in super::super) struct SingleRow {
    pub(super) columns: Vec<Column>,
    /// The scales of the columns, and those of the first 16 again, wherever that leads: kernels take
    /// 16 at once, and continue with the next row of weights where one ends.
    pub(super) scales: Vec<f32>,
}

/// Those of one row at one place.
pub(super) struct Column {
    pub(super) block: Block,
    /// The numbers in the order in which a block of 4-bit weights has its halves of bytes: 32 that
    /// belong to the low ones, 32 more, and those that belong to the high ones of the same bytes.
    pub(super) nibbles: [[[i32; 4]; 4]; 4],
    /// The block's sums as words.
    pub(super) sums_of_32: [i16; 8],
    pub(super) sums_of_16: [i16; 16],
}

/// 256 numbers.
pub(super) struct Block {
    /// The signed bytes, four and four.
    pub(super) fours: [[i32; 4]; 16],
    pub(super) marks: Marks,
}

/// Facts about the bytes of 256 numbers.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    /// The sums of every 32 and of every 16 of the bytes.
    pub(super) sums_of_32: [f32; 8],
    pub(super) sums_of_16: [f32; 16],
    /// Value of a byte of one.
    pub(super) scale: f32,
}

impl Marks {
    pub(super) const NONE: Self = Self {
        sums_of_32: [0.0; 8],
        sums_of_16: [0.0; 16],
        scale: 0.0,
    };

    /// Sums up every 32 bytes from the sums of every 16.
    pub(super) fn sum_up(&mut self) {
        let pairs = self.sums_of_16.as_chunks().0;
        for (sum, [one, two]) in self.sums_of_32.iter_mut().zip(pairs) {
            *sum = one + two;
        }
    }
}

impl Numbers {
    /// Rounds rows of `width` numbers, which are whole blocks; `sizes` are those of [`together`].
    pub(super) fn new(
        rows: &[f32],
        width: usize,
        sizes: [usize; 2],
        round: impl Fn(&[f32; BLOCK]) -> Block + Sync,
    ) -> Self {
        let count = rows.len() / width;
        let blocks = rows.as_chunks().0;
        let columns = width / BLOCK;
        if count <= SINGLES_MAX {
            let rows = blocks.chunks_exact(columns);
            let rows = rows.map(|row| SingleRow::new(row.iter().map(&round)));
            return Self::Singles(rows.collect());
        }
        let mut batch = Batch {
            rows: count,
            quarters: vec![[0; 4]; blocks.len() * 16],
            marks: vec![Marks::NONE; blocks.len()],
        };
        let quarters = batch.quarters.chunks_exact_mut(count * 16);
        let places = quarters.zip(batch.marks.chunks_exact_mut(count));
        on_all_processors(places.enumerate(), |(), (place, (quarters, marks))| {
            let blocks = blocks.iter().skip(place).step_by(columns);
            for (row, (block, marks)) in blocks.zip(marks).enumerate() {
                let block = round(block);
                let (first, size) = together(sizes, count, row);
                let theirs = quarters[first * 16..].iter_mut();
                let own = theirs.skip(row - first).step_by(size);
                own.zip(block.fours).for_each(|(to, four)| *to = four);
                *marks = block.marks;
            }
        });
        Self::Batch(batch)
    }
}

/// Hands rows and their products on, four at a time and then each by itself.
pub(super) fn in_fours(
    rows: &[SingleRow],
    outs: &mut [&mut [f32]],
    mut four: impl FnMut(&[SingleRow; 4], &mut [&mut [f32]; 4]),
    mut one: impl FnMut(&[SingleRow; 1], &mut [&mut [f32]; 1]),
) {
    let (fours, rest) = rows.as_chunks();
    let (outs, last_outs) = outs.split_at_mut(fours.len() * 4);
    for (rows, outs) in fours.iter().zip(outs.as_chunks_mut().0) {
        four(rows, outs);
    }
    for (row, out) in rest.as_chunks().0.iter().zip(last_outs.as_chunks_mut().0) {
        one(row, out);
    }
}

impl Batch {
    /// Returns the bytes of all rows and what is known of them, one place after another.
    pub(super) fn columns(&self) -> impl ExactSizeIterator<Item = (&[[i32; 4]], &[Marks])> {
        let quarters = self.quarters.chunks_exact(self.rows * 16);
        quarters.zip(self.marks.chunks_exact(self.rows))
    }
}

impl SingleRow {
    fn new(blocks: impl Iterator<Item = Block>) -> Self {
        let columns: Vec<Column> = blocks.map(Column::new).collect();
        let scales = columns.iter().map(|column| column.block.marks.scale);
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
        // At most 32 times 127.
        Self {
            sums_of_32: block.marks.sums_of_32.map(|sum| sum as i16),
            sums_of_16: block.marks.sums_of_16.map(|sum| sum as i16),
            block,
            nibbles,
        }
    }
}

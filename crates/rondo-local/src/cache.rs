//! The KV cache: keys and values of the tokens computed so far.

use crate::half;
use crate::kernels::Room;

/// Positions by which a lane grows; copying at each token would cost more than what it saves.
const GROWTH: usize = 1024;

/// The keys and values of one layer: `(heads, positions, size)`, with room to grow.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    heads: usize,
    size: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
    capacity: usize,
    length: usize,
}

impl Lane {
    /// Builds an empty lane.
    pub(crate) fn new(heads: usize, size: usize) -> Self {
        Self {
            heads,
            size,
            keys: Vec::new(),
            values: Vec::new(),
            capacity: 0,
            length: 0,
        }
    }

    /// Appends keys and values of `(new positions, heads * size)`, as many of each.
    pub(crate) fn append(&mut self, keys: &[f32], values: &[f32]) {
        let width = (self.heads * self.size).max(1);
        let added = keys.len() / width;
        self.reserve(self.length + added);
        let at = self.length * self.size;
        let (per_head, size) = (self.capacity * self.size, self.size);
        for (side, new) in [(&mut self.keys, keys), (&mut self.values, values)] {
            for (head, side) in side.chunks_exact_mut(per_head).enumerate() {
                let to = side
                    .get_mut(at..)
                    .unwrap_or_default()
                    .chunks_exact_mut(size);
                let from = new.chunks_exact(size).skip(head).step_by(self.heads);
                to.zip(from).for_each(|(to, from)| to.copy_from_slice(from));
            }
        }
        self.length += added;
    }

    /// Returns all keys and values, and the room behind them.
    pub(crate) fn room(&self) -> Room<'_> {
        Room {
            keys: &self.keys,
            values: &self.values,
            per_head: self.capacity * self.size,
            size: self.size,
        }
    }

    /// Returns how many positions there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Forgets what follows the first `length` positions.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Returns how many bytes [`write`](Self::write) takes for so many positions.
    pub(crate) fn bytes(&self, positions: usize) -> usize {
        2 * half::BYTES * self.heads * positions * self.size
    }

    /// Writes the keys and then the values of the positions from index `from` on, in half precision;
    /// `None` if there are not as many, or a number is too large for it.
    pub(crate) fn write(&self, from: usize, to: &mut Vec<u8>) -> Option<()> {
        if from > self.length {
            return None;
        }
        let wanted = from * self.size..self.length * self.size;
        for side in [&self.keys, &self.values] {
            for head in side.chunks_exact((self.capacity * self.size).max(1)) {
                half::write(head.get(wanted.clone())?, to)?;
            }
        }
        Some(())
    }

    /// Appends the keys and values of so many positions as [`write`](Self::write) wrote them; `None`,
    /// and nothing is appended, if they are not as many bytes.
    pub(crate) fn read(&mut self, positions: usize, from: &[u8]) -> Option<()> {
        if from.len() != self.bytes(positions) {
            return None;
        }
        let length = self.length + positions;
        self.reserve(length);
        let per_head = self.capacity * self.size;
        let place = self.length * self.size..length * self.size;
        let mut heads = from.chunks_exact((positions * self.size * half::BYTES).max(1));
        for side in [&mut self.keys, &mut self.values] {
            for head in side.chunks_exact_mut(per_head.max(1)) {
                half::read(heads.next()?, head.get_mut(place.clone())?);
            }
        }
        self.length = length;
        Some(())
    }

    fn reserve(&mut self, wanted: usize) {
        if wanted <= self.capacity {
            return;
        }
        let capacity = wanted.next_multiple_of(GROWTH);
        let (old, new) = (self.capacity * self.size, capacity * self.size);
        for side in [&mut self.keys, &mut self.values] {
            let mut grown = vec![0.0; self.heads * new];
            let heads = grown
                .chunks_exact_mut(new)
                .zip(side.chunks_exact(old.max(1)));
            for (to, from) in heads {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            *side = grown;
        }
        self.capacity = capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(from: f32, count: usize) -> Vec<f32> {
        (0..count)
            .flat_map(|row| [from + row as f32, 0.5, -from - row as f32, 0.25])
            .collect()
    }

    /// The first number of each position that a head has.
    fn column(lane: &Lane, head: usize) -> Vec<f32> {
        let room = lane.room();
        let keys = room.keys.chunks(room.per_head).nth(head).unwrap();
        keys.chunks(2).take(lane.length()).map(|it| it[0]).collect()
    }

    #[test]
    fn a_lane_grows_past_its_room_and_keeps_what_it_has() {
        let mut lane = Lane::new(2, 2);
        let first = rows(0.0, GROWTH - 1);
        lane.append(&first, &first);
        lane.append(&rows(5000.0, 3), &rows(0.0, 3));
        let found = column(&lane, 0);
        assert_eq!(found.len(), GROWTH + 2);
        assert_eq!(found[GROWTH - 2], (GROWTH - 2) as f32);
        assert_eq!(found[GROWTH - 1..], [5000.0, 5001.0, 5002.0]);
        assert_eq!(column(&lane, 1)[GROWTH..], [-5001.0, -5002.0]);
    }

    #[test]
    fn what_was_written_is_read_by_a_lane_of_another_capacity() {
        let mut lane = Lane::new(2, 2);
        lane.append(&rows(1.0, GROWTH + 3), &rows(5.0, GROWTH + 3));
        let mut end = Vec::new();
        lane.write(GROWTH, &mut end).unwrap();
        assert_eq!(end.len(), lane.bytes(3));
        lane.truncate(2);
        let mut beginning = Vec::new();
        lane.write(0, &mut beginning).unwrap();
        let mut other = Lane::new(2, 2);
        other.read(2, &beginning).unwrap();
        other.read(3, &end).unwrap();
        assert_eq!(other.length(), 5);
        let last = GROWTH as f32;
        let both = [1.0, 2.0, last + 1.0, last + 2.0, last + 3.0];
        assert_eq!(column(&other, 0), both);
        assert_eq!(column(&other, 1), both.map(|it| -it));
        assert_eq!(other.room().values[1..3], [0.5, 6.0]);
        other.append(&rows(4.0, 1), &rows(4.0, 1));
        assert_eq!(column(&other, 0)[4..], [last + 3.0, 4.0]);
    }

    #[test]
    fn what_is_torn_or_too_large_is_not_kept() {
        let mut lane = Lane::new(2, 2);
        lane.append(&rows(1.0, 3), &rows(1.0, 3));
        let mut bytes = Vec::new();
        assert_eq!(lane.write(4, &mut bytes), None);
        lane.write(0, &mut bytes).unwrap();
        assert_eq!(lane.read(2, &bytes), None);
        assert_eq!(lane.read(3, &bytes[1..]), None);
        assert_eq!(lane.length(), 3);
        lane.append(&rows(70_000.0, 1), &rows(1.0, 1));
        assert_eq!(lane.write(3, &mut Vec::new()), None);
    }

    #[test]
    fn a_copy_is_independent() {
        let mut lane = Lane::new(2, 2);
        lane.append(&rows(0.0, 4), &rows(0.0, 4));
        let mut copy = lane.clone();
        copy.truncate(2);
        copy.append(&rows(70.0, 1), &rows(0.0, 1));
        lane.append(&rows(4.0, 1), &rows(0.0, 1));
        assert_eq!(column(&copy, 0), [0.0, 1.0, 70.0]);
        assert_eq!(column(&lane, 0), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }
}

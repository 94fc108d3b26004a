//! A file of which some is in memory alone.

use std::collections::BTreeSet;

/// Bytes that a disk writes at once.
pub(super) const SECTOR: usize = 512;

/// A file as its process sees it, and what of that is not on the disk.
pub(super) struct VolatileFile {
    bytes: Vec<u8>,
    /// The sectors that were written since the last sync, by number.
    unsynced: BTreeSet<usize>,
    /// Set if it was cut since the last sync.
    was_cut: bool,
}

impl VolatileFile {
    /// Begins with what is on the disk.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            unsynced: BTreeSet::new(),
            was_cut: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Reads as much as there is; returns how much that was.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let there = self.bytes.get(at..).unwrap_or_default();
        let count = there.len().min(into.len());
        for (to, from) in into.iter_mut().zip(there) {
            *to = *from;
        }
        count
    }

    /// Writes, and returns which sectors that concerns.
    pub(super) fn write(&mut self, at: usize, from: &[u8]) -> std::ops::Range<usize> {
        let end = at + from.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let place = self.bytes.iter_mut().skip(at);
        for (to, from) in place.zip(from) {
            *to = *from;
        }
        let sectors = at / SECTOR..end.div_ceil(SECTOR);
        self.unsynced.extend(sectors.clone());
        sectors
    }

    pub(super) fn cut(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.unsynced.split_off(&len.div_ceil(SECTOR));
        self.was_cut = true;
    }

    /// Returns a sector: where it begins, and what is in it.
    pub(super) fn sector(&self, number: usize) -> (usize, &[u8]) {
        let begin = number * SECTOR;
        let end = self.bytes.len().min(begin + SECTOR);
        (begin, self.bytes.get(begin..end).unwrap_or_default())
    }

    /// Returns the parts that a sync must write: the sectors, and the length if the file was cut. They count as
    /// written.
    pub(super) fn sync(&mut self) -> (BTreeSet<usize>, Option<usize>) {
        let cut = std::mem::take(&mut self.was_cut).then_some(self.bytes.len());
        (std::mem::take(&mut self.unsynced), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_at_once_and_synced_once() {
        let mut file = VolatileFile::of(b"old".to_vec());
        assert_eq!(file.write(SECTOR - 1, b"new"), 0..2);
        let mut read = [9; 8];
        assert_eq!(file.read(SECTOR - 1, &mut read), 3);
        assert_eq!(&read[..4], b"new\x09");
        assert_eq!(file.read(5 * SECTOR, &mut read), 0);
        assert_eq!(file.sync(), (BTreeSet::from([0, 1]), None));
        assert_eq!(file.sector(1), (SECTOR, &b"ew"[..]));
        assert_eq!(file.sync(), (BTreeSet::new(), None));
    }

    #[test]
    fn what_was_cut_off_is_not_written() {
        let mut file = VolatileFile::of(Vec::new());
        file.write(0, &[1; 3 * SECTOR]);
        file.cut(SECTOR + 1);
        assert_eq!(file.len(), SECTOR + 1);
        assert_eq!(file.sync(), (BTreeSet::from([0, 1]), Some(SECTOR + 1)));
    }
}

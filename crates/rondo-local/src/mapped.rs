//! Weights that stay in their file: parts of a memory map.
//!
//! The pages belong to the system's cache: they are read when they are first needed, shared by all
//! processes that ask the same model, and given up when memory is short.
//!
//! llama.cpp maps its files with the same assumption: no process shortens a file of weights while it is in
//! use. Rondo itself renames finished files into place and never writes to them again.
#![expect(unsafe_code, reason = "a file cannot be mapped without it")]

use memmap2::Mmap;
use std::fs::File;
use std::io;
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

/// Brings the pages of a map in on a thread that is not waited for: if the file is in the
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

/// A part of a map.
#[derive(Clone)]
pub(crate) struct MappedSlice {
    map: Arc<Mmap>,
    start: usize,
    length: usize,
}

impl MappedSlice {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_part_that_the_file_does_not_have_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1, 2, 3, 4]).unwrap();
        let map = map(&file).unwrap();
        let bytes = |start, length| Some(MappedSlice::new(&map, start, length)?.bytes().to_vec());
        assert_eq!(bytes(1, 3), Some(vec![2, 3, 4]));
        assert_eq!(bytes(4, 0), Some(vec![]));
        assert_eq!(bytes(1, 4), None);
        assert_eq!(bytes(usize::MAX, 1), None);
        assert_eq!(bytes(1, usize::MAX), None);
    }
}

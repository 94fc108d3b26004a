//! What is bound over itself before a command is executed, so that the command cannot write or move it.

use crate::nested::GIT;
use crate::protection::Protected;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What is protected by mounts, in the order in which they are made.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Covered(pub(crate) Vec<(CString, bool)>);

/// What stands before the path of something that is only read, and of something that is not.
const READ_ONLY: u8 = b'r';
const WRITABLE: u8 = b'w';

impl Covered {
    pub(crate) fn new(protected: &Protected) -> io::Result<Self> {
        let mountable = protected.paths.iter();
        let mountable = mountable.filter(|path| protected.can_be_mounted(path));
        let covered = mountable.map(|path| {
            let is_place = path.ends_with(GIT) && path.is_dir() || protected.own.contains(path);
            Ok((c_path(path)?, !is_place))
        });
        covered.collect::<io::Result<_>>().map(Self)
    }

    /// Returns it as bytes, for another process.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, is_read_only) in &self.0 {
            bytes.push(if *is_read_only { READ_ONLY } else { WRITABLE });
            bytes.extend_from_slice(path.as_bytes_with_nul());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let one = |part: &[u8]| {
            let (kind, path) = part.split_first().ok_or(io::ErrorKind::InvalidData)?;
            let is_read_only = match *kind {
                READ_ONLY => true,
                WRITABLE => false,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
            let path = CString::from_vec_with_nul(path.to_vec()).map_err(io::Error::other)?;
            Ok((path, is_read_only))
        };
        let parts = bytes.split_inclusive(|byte| *byte == 0);
        parts.map(one).collect::<io::Result<_>>().map(Self)
    }
}

pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_covered_is_read_as_it_was_written() {
        let covered = Covered(vec![
            (c"/a/.git".to_owned(), false),
            (c"/a/\xff \n".to_owned(), true),
        ]);
        assert_eq!(Covered::from_bytes(&covered.to_bytes()).unwrap(), covered);
        assert_eq!(Covered::from_bytes(b"").unwrap(), Covered::default());
        for strange in [&b"r/a"[..], b"x/a\0", b"\0", b"r/a\0w"] {
            Covered::from_bytes(strange).unwrap_err();
        }
    }
}

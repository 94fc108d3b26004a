//! Mounts over protected paths, made before a command is executed, so that the command cannot write or move them, and
//! the sockets that it cannot reach.

use crate::nested::GIT;
use crate::protection::Protected;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Protecting mounts, in the order in which they are made.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MountCovers(pub(crate) Vec<(CString, Cover)>);

/// How something is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cover {
    /// By itself, only to be read.
    ReadOnly,
    /// By itself, so that it stays in its place.
    Writable,
    /// By something else.
    Hidden,
}

impl Cover {
    /// Returns the text before a path in bytes.
    fn letter(self) -> u8 {
        match self {
            Self::ReadOnly => b'r',
            Self::Writable => b'w',
            Self::Hidden => b'h',
        }
    }

    fn of_letter(letter: u8) -> Option<Self> {
        let all = [Self::ReadOnly, Self::Writable, Self::Hidden];
        all.into_iter().find(|it| it.letter() == letter)
    }
}

impl MountCovers {
    pub(crate) fn new(protected: &Protected) -> io::Result<Self> {
        let mountable = protected.paths.iter();
        let mountable = mountable.filter(|path| protected.can_be_mounted(path));
        let covered = mountable.map(|path| {
            let is_place = path.ends_with(GIT) && path.is_dir() || protected.own.contains(path);
            let cover = match is_place {
                true => Cover::Writable,
                false => Cover::ReadOnly,
            };
            Ok((c_path(path)?, cover))
        });
        let sockets = protected.sockets.iter();
        let hidden = sockets.map(|path| Ok((c_path(path)?, Cover::Hidden)));
        covered.chain(hidden).collect::<io::Result<_>>().map(Self)
    }

    /// Returns it as bytes, for another process.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, cover) in &self.0 {
            bytes.push(cover.letter());
            bytes.extend_from_slice(path.as_bytes_with_nul());
        }
        bytes
    }

    /// Reads the bytes that [`Self::to_bytes`] returns.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let one = |part: &[u8]| {
            let (kind, path) = part.split_first().ok_or(io::ErrorKind::InvalidData)?;
            let cover = Cover::of_letter(*kind).ok_or(io::ErrorKind::InvalidData)?;
            let path = CString::from_vec_with_nul(path.to_vec()).map_err(io::Error::other)?;
            Ok((path, cover))
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
        let covered = MountCovers(vec![
            (c"/a/.git".to_owned(), Cover::Writable),
            (c"/a/\xff \n".to_owned(), Cover::ReadOnly),
            (c"/a/socket".to_owned(), Cover::Hidden),
        ]);
        assert_eq!(
            MountCovers::from_bytes(&covered.to_bytes()).unwrap(),
            covered
        );
        assert_eq!(
            MountCovers::from_bytes(b"").unwrap(),
            MountCovers::default()
        );
        for strange in [&b"r/a"[..], b"x/a\0", b"\0", b"r/a\0w"] {
            MountCovers::from_bytes(strange).unwrap_err();
        }
    }
}

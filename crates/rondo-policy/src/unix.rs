//! Facts about paths from the operating system.

use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Opens a file to read it. Anything else is refused: opening a pipe would wait for its writer, who
/// may never come.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// The most links that are followed on the way to a file; the kernel's own bound.
const LINKS_MAX: usize = 40;

/// Destination of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To this file or directory, named without links.
    To(PathBuf),
    /// To nothing that is there; this directory, named without links, is the last one that is.
    Ends(PathBuf),
    /// Through what names something else in each process: its directory, its root, its open files. Such a path
    /// cannot be looked at for another process.
    Differs,
    /// That is not known: a link that leads nowhere, a directory that may not be searched, too many links.
    Unknown,
}

/// Takes out `.` and `..`, as if no part of the path were a link.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Follows a path from a directory, absolute, that has no links in it and does not differ between processes.
pub(crate) fn way(directory: &Path, path: &Path) -> Way {
    way_past(directory, path, |_, _| {})
}

/// As [`way`]; `sees` gets each file and directory on the way below the first one, and where it leads if it is a link.
pub(crate) fn way_past(
    directory: &Path,
    path: &Path,
    mut sees: impl FnMut(&Path, Option<&Path>),
) -> Way {
    let owned = |part: Component<'_>| part.as_os_str().to_owned();
    let mut rest: VecDeque<OsString> = path.components().map(owned).collect();
    let mut at = directory.to_owned();
    // How much of what is ahead is written in links.
    let mut of_links = 0_usize;
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        let is_of_link = of_links > 0;
        of_links = of_links.saturating_sub(1);
        match part.as_encoded_bytes() {
            b"." => continue,
            b".." => {
                at.pop();
                continue;
            }
            b"/" => {
                // The root is not a link.
                at.push(part);
                continue;
            }
            _ => at.push(part),
        }
        if is_named_by_process(&at) {
            return Way::Differs;
        }
        let target = match std::fs::read_link(&at) {
            Ok(target) => target,
            // It is there, and no link.
            Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
                sees(&at, None);
                continue;
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound && !is_of_link => {
                at.pop();
                return Way::Ends(at);
            }
            Err(_) => return Way::Unknown,
        };
        sees(&at, Some(&target));
        links += 1;
        if links > LINKS_MAX {
            return Way::Unknown;
        }
        at.pop();
        if is_process_list(&at) {
            return Way::Differs;
        }
        for part in target.components().rev() {
            rest.push_front(owned(part));
            of_links += 1;
        }
    }
    if is_process_list(&at) {
        return Way::Differs;
    }
    Way::To(at)
}

/// Devices stand for open files and terminals of a process; `/dev/shm` holds files as others are.
fn is_named_by_process(path: &Path) -> bool {
    let is_device = path.starts_with("/dev") && path != Path::new("/dev");
    (is_device && !path.starts_with("/dev/shm")) || path.starts_with("/proc")
}

/// The list of processes may be mounted elsewhere too.
#[cfg(target_os = "linux")]
fn is_process_list(path: &Path) -> bool {
    let is_list = |found: rustix::fs::StatFs| found.f_type == rustix::fs::PROC_SUPER_MAGIC;
    rustix::fs::statfs(path).is_ok_and(is_list)
}

#[cfg(not(target_os = "linux"))]
fn is_process_list(_path: &Path) -> bool {
    false
}

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

/// Returns whether the way to a path leads through what names something else in each process: its
/// directory, its root, its open files. Such a path cannot be looked at for another process.
pub(crate) fn differs_by_process(path: &Path) -> bool {
    let owned = |part: Component<'_>| part.as_os_str().to_owned();
    let mut rest: VecDeque<OsString> = path.components().map(owned).collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        match part.as_encoded_bytes() {
            b"." => continue,
            b".." => {
                at.pop();
                continue;
            }
            _ => at.push(part),
        }
        if is_of_processes(&at) {
            return true;
        }
        let Ok(target) = std::fs::read_link(&at) else {
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return true;
        }
        at.pop();
        for part in target.components().rev() {
            rest.push_front(owned(part));
        }
    }
    false
}

/// Devices stand for open files and terminals of a process; `/dev/shm` holds files as others are.
fn is_of_processes(path: &Path) -> bool {
    let is_device = path.starts_with("/dev") && path != Path::new("/dev");
    (is_device && !path.starts_with("/dev/shm"))
        || path.starts_with("/proc")
        || is_process_list(path)
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

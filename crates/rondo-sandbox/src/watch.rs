//! Watch for names that are made in directories while a command runs.
//!
//! The process that supervises the command reads it in the loop that it has already. It lives as long as the command
//! does: if it is killed, its guard ends the command.

use crate::directory::Directory;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Mutex;

/// How many bytes of events are read at once.
const READ_BYTES: usize = 16 << 10;
/// How many events are taken at once, so that a command that makes many files does not keep its supervisor.
const EVENTS_MAX: usize = 4_096;

/// Watch of this process's latest command. Closing it takes the kernel milliseconds, for which the next
/// command of the same supervisor would wait.
static UNUSED: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Directories that are watched.
#[derive(Debug)]
pub(crate) struct Watch {
    /// None only once it is dropped.
    events: Option<OwnedFd>,
    /// The number that the kernel has for each; none for those that are not watched.
    numbers: Vec<Option<i32>>,
}

/// Created entries.
#[derive(Debug, Default)]
pub(crate) struct CreatedNames {
    names: HashSet<(usize, OsString)>,
    /// Set if there were more than the kernel keeps.
    is_unknown: bool,
}

impl CreatedNames {
    /// Returns whether a name was made in a directory, or might have been.
    pub(crate) fn contains(&self, place: usize, name: &OsStr) -> bool {
        // A file system may take both cases for the same.
        let is_same = |it: &(usize, OsString)| it.0 == place && it.1.eq_ignore_ascii_case(name);
        self.is_unknown || self.names.iter().any(is_same)
    }
}

impl Watch {
    /// Watches directories; those that are none are counted only. Returns none if there is nothing to watch.
    ///
    /// # Errors
    /// When the system watches no more.
    pub(crate) fn new<'a>(
        directories: impl Iterator<Item = Option<&'a Directory>>,
    ) -> io::Result<Option<Self>> {
        let directories: Vec<Option<&Directory>> = directories.collect();
        if directories.iter().all(Option::is_none) {
            return Ok(None);
        }
        let unused = UNUSED.lock().ok().and_then(|mut it| it.take());
        let events = match unused {
            Some(events) => events,
            None => inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(limit)?,
        };
        let watch = |directory: &Directory| {
            let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            // The watch is on the directory itself, wherever it is.
            inotify::add_watch(&events, directory.own_path(), flags).map_err(limit)
        };
        let numbers = directories.into_iter().map(|it| it.map(watch).transpose());
        let numbers = numbers.collect::<io::Result<_>>()?;
        Ok(Some(Self {
            events: Some(events),
            numbers,
        }))
    }

    /// Returns the descriptor that is readable when something was made.
    pub(crate) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().map(|it| it.as_fd())
    }

    /// Takes the names made since the last call. If that is not known, everything might have been.
    pub(crate) fn take(&self) -> CreatedNames {
        let mut made = CreatedNames::default();
        let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
        let Some(events) = &self.events else {
            return made;
        };
        let mut reader = Reader::new(events, &mut buffer);
        for _ in 0..EVENTS_MAX {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return made,
                Err(_) => break,
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                made.is_unknown = true;
                continue;
            }
            let Some(name) = event.file_name() else {
                continue;
            };
            let name = OsStr::from_bytes(name.to_bytes());
            // A directory can be there twice, and has one number then.
            let places = self.numbers.iter().enumerate();
            let places = places.filter(|it| *it.1 == Some(event.wd()));
            made.names
                .extend(places.map(|(place, _)| (place, name.to_owned())));
        }
        // The rest of the buffer would be lost.
        made.is_unknown = true;
        made
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(events) = self.events.take() else {
            return;
        };
        let mut numbers: Vec<i32> = self.numbers.iter().flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut removed = numbers.iter().map(|it| inotify::remove_watch(&events, *it));
        // A removed directory has no watch. Events of the others have numbers that no watch gets again.
        if removed.all(|it| matches!(it, Ok(()) | Err(Errno::INVAL)))
            && let Ok(mut unused) = UNUSED.lock()
        {
            *unused = Some(events);
        }
    }
}

fn limit(err: Errno) -> io::Error {
    let kind = io::Error::from(err).kind();
    let message =
        format!("failed to watch a directory (`fs.inotify` in sysctl sets the limits): {err}");
    io::Error::new(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_that_are_made_or_moved_are_told_even_of_a_directory_that_was_moved() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        fs::create_dir(path.join("was")).unwrap();
        let held = Directory::open(&path.join("was")).unwrap();
        let watch = Watch::new([None, Some(&held)].into_iter())
            .unwrap()
            .unwrap();
        fs::rename(path.join("was"), path.join("now")).unwrap();
        fs::write(path.join("now/a"), "").unwrap();
        fs::write(path.join("b"), "").unwrap();
        fs::rename(path.join("b"), path.join("now/b")).unwrap();
        let made = watch.take();
        let has = |made: &CreatedNames, name: &str| made.contains(1, OsStr::new(name));
        assert!(has(&made, "a") && has(&made, "b") && !has(&made, "c"));
        assert!(!made.contains(0, OsStr::new("a")));
        assert!(!has(&watch.take(), "a"));
    }

    #[test]
    fn what_was_made_in_a_directory_that_was_watched_before_is_not_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        let held = Directory::open(&path).unwrap();
        for round in ["a", "b", "c"] {
            let watch = Watch::new([Some(&held)].into_iter()).unwrap().unwrap();
            assert!(!watch.take().contains(0, OsStr::new("late")));
            fs::write(path.join(round), "").unwrap();
            assert!(watch.take().contains(0, OsStr::new(round)));
            fs::write(path.join("late"), "").unwrap();
            drop(watch);
            fs::remove_file(path.join("late")).unwrap();
        }
    }

    #[test]
    fn after_more_events_than_are_kept_everything_might_have_been_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        let held = Directory::open(&path).unwrap();
        let watch = Watch::new([Some(&held)].into_iter()).unwrap().unwrap();
        for number in 0..=EVENTS_MAX {
            fs::write(path.join(number.to_string()), "").unwrap();
        }
        assert!(watch.take().contains(0, OsStr::new("never-made")));
        assert!(Watch::new(std::iter::empty()).unwrap().is_none());
    }
}

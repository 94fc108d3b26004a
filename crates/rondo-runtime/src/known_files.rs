//! Texts of configuration files, each read again only if the file changed.

use crate::files::open_regular;
use rondo_core::clock::Clock;
use rondo_types::TimeMs;
use rustix::fs::{Stat, fstat, stat};
use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many files are kept; with one more, all are forgotten.
const FILES_MAX: usize = 256;
/// The bytes of a text that is kept; a longer one is read each time.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// The age of a change, in milliseconds, from which on a further one shows in the time of change. File systems note it in steps
/// of up to two seconds.
const STEP_MS: u64 = 2_000;

/// The files that a runtime has read. Clones share them.
#[derive(Clone)]
pub(crate) struct KnownFiles {
    texts: Arc<Mutex<Texts>>,
    now: fn() -> TimeMs,
}

type Texts = HashMap<PathBuf, (Stamp, Arc<str>)>;

/// Identity of a state of a file: a program that resets the modification time still changes the time of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_s: i64,
    changed_ns: u64,
}

impl Default for KnownFiles {
    fn default() -> Self {
        Self {
            texts: Arc::default(),
            now: || Clock::system().now(),
        }
    }
}

impl KnownFiles {
    /// Returns the text of a regular file of no more than `bytes_max` bytes.
    ///
    /// # Errors
    /// When it cannot be opened or read, is not a regular file, is larger, or is not UTF-8 text.
    pub(crate) fn read(&self, path: &Path, bytes_max: u64) -> io::Result<Arc<str>> {
        let seen = Stamp::of(&stat(path)?);
        if let Some((stamp, text)) = self.texts().get(path)
            && *stamp == seen
            && stamp.bytes <= bytes_max
        {
            return Ok(Arc::clone(text));
        }
        // Before the file is opened: a change while it is read is one that shows.
        let now = (self.now)();
        let file = open_regular(path)?;
        let stamp = Stamp::of(&fstat(&file)?);
        let mut text = String::new();
        file.take(bytes_max.saturating_add(1))
            .read_to_string(&mut text)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > bytes_max {
            let message = format!("it is larger than {bytes_max} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let text: Arc<str> = text.into();
        let mut texts = self.texts();
        if stamp.is_settled(now) && text.len() <= TEXT_BYTES_MAX {
            if texts.len() >= FILES_MAX {
                texts.clear();
            }
            texts.insert(path.to_owned(), (stamp, Arc::clone(&text)));
        } else {
            texts.remove(path);
        }
        Ok(text)
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stamp {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the types of these fields differ by platform; equal bits are equal values"
    )]
    fn of(known: &Stat) -> Self {
        Self {
            device: known.st_dev as u64,
            inode: known.st_ino as u64,
            bytes: known.st_size as u64,
            changed_s: known.st_ctime as i64,
            changed_ns: known.st_ctime_nsec as u64,
        }
    }

    /// Returns whether a change of the file from now on gives it another stamp.
    fn is_settled(&self, now: TimeMs) -> bool {
        let changed_s = u64::try_from(self.changed_s).unwrap_or(u64::MAX);
        let changed_ms = changed_s.saturating_mul(1_000) + self.changed_ns / 1_000_000;
        changed_ms.saturating_add(STEP_MS) <= now.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::notices::NoNotices;
    use crate::settings::Settings;
    use crate::table::Layer;
    use crate::trust_question::TrustAnswers;
    use std::fs;

    /// Reads as if all files had not changed for a minute.
    fn later() -> KnownFiles {
        KnownFiles {
            now: || TimeMs(Clock::system().now().0 + 60_000),
            ..KnownFiles::default()
        }
    }

    #[test]
    fn a_file_that_did_not_change_is_not_read_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        fs::write(&path, "a = 1").unwrap();
        let files = later();
        let first = files.read(&path, 9).unwrap();
        assert!(Arc::ptr_eq(&first, &files.read(&path, 9).unwrap()));
        assert_eq!(&*first, "a = 1");
        assert!(files.read(&path, 4).is_err(), "a lower bound holds");
        fs::remove_file(&path).unwrap();
        assert!(files.read(&path, 9).is_err());
    }

    #[test]
    fn a_file_that_another_of_the_same_size_and_time_replaced_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let (path, new) = (place.path().join("a"), place.path().join("b"));
        fs::write(&path, "a = 1").unwrap();
        fs::write(&new, "a = 2").unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let file = fs::File::options().write(true).open(&new).unwrap();
        file.set_modified(modified).unwrap();
        let files = later();
        assert_eq!(&*files.read(&path, 9).unwrap(), "a = 1");
        fs::rename(&new, &path).unwrap();
        assert_eq!(&*files.read(&path, 9).unwrap(), "a = 2");
    }

    #[test]
    fn a_file_that_changed_a_moment_ago_is_read_again_whatever_its_stamp() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        let files = KnownFiles::default();
        for text in ["a = 1", "a = 2", "a = 3"] {
            fs::write(&path, text).unwrap();
            assert_eq!(&*files.read(&path, 9).unwrap(), text);
        }
    }

    #[test]
    fn no_more_than_the_bound_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let files = later();
        for number in 0..=FILES_MAX {
            let path = place.path().join(number.to_string());
            fs::write(&path, "").unwrap();
            files.read(&path, 9).unwrap();
        }
        let long = place.path().join("long");
        fs::write(&long, "a".repeat(TEXT_BYTES_MAX + 1)).unwrap();
        files.read(&long, 1 << 20).unwrap();
        assert_eq!(files.texts().len(), 1);
    }

    #[test]
    fn settings_are_read_again_only_from_the_files_that_changed() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(project.path().join(".rondo")).unwrap();
        let user = format!("trusted_folders = [{:?}]", project.path());
        let config = project.path().join(".rondo/config.toml");
        let all = [
            (home.path().join("config.toml"), &*user),
            (home.path().join("policy.toml"), ""),
            (config.clone(), "max_steps = 3"),
            (project.path().join(".rondo/policy.toml"), ""),
            (project.path().join(".mcp.json"), "{}"),
        ];
        for (path, text) in &all {
            fs::write(path, text).unwrap();
        }
        let files = later();
        let load = || {
            let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
            let (answers, directory) = (TrustAnswers::default(), project.path().to_owned());
            let flags = Layer::default();
            let loaded =
                Settings::load_with(&answers, &files, env, directory, flags, &NoNotices).unwrap();
            let kept = all.each_ref().map(|(path, _)| {
                let texts = files.texts();
                Arc::clone(&texts[path].1)
            });
            (loaded.values.max_steps, kept)
        };
        let changed = |(_, one): &(_, [Arc<str>; 5]), (_, other): &(_, [Arc<str>; 5])| {
            let pairs = one.iter().zip(other);
            pairs.map(|(a, b)| !Arc::ptr_eq(a, b)).collect::<Vec<_>>()
        };
        let (first, second) = (load(), load());
        assert_eq!(first.0, Some(3));
        assert_eq!(changed(&first, &second), [false; 5]);
        let new = project.path().join("new");
        fs::write(&new, "max_steps = 4").unwrap();
        fs::rename(&new, &config).unwrap();
        let third = load();
        assert_eq!(third.0, Some(4));
        assert_eq!(changed(&second, &third), [false, false, true, false, false]);
    }
}

//! The prompt cache: keys and values of what prompts begin with, kept in files, so that a new process
//! need not compute them again.
//!
//! The files of a prompt are a chain: one for what all questions under a profile have in common, and one
//! for what those in the same directory have behind it. Each is found by the hash of all tokens up to its
//! end, and holds the state of its own tokens alone.
//!
//! It is a help alone. A file that is torn, damaged or of other weights counts as none and is removed;
//! one that cannot be written is not there the next time. Files appear whole, by renaming, so writers
//! do not disturb each other or readers. They hold the prompt's tokens, so only the user can read them.

#[cfg(test)]
mod tests;

use crate::engine::Engine;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// First bytes of a file; the last one is the format's version.
const MAGIC: &[u8; 8] = b"rondokv\x02";
/// Bytes of the checksum that a file ends with.
const CHECKSUM_BYTES: usize = 32;
/// Tokens of a file below which reading it saves nothing that anyone notices.
pub(crate) const TOKENS_MIN: usize = 24;
/// Bytes of a file: a thousand tokens of the default model take 28 MB.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// Files that are kept, and their bytes together. Those of directories are small.
const FILES_MAX: usize = 32;
const BYTES_MAX: u64 = 256 << 20;
/// How long an unread file is kept.
const UNUSED_MAX: Duration = Duration::from_hours(30 * 24);
/// How old a file is that its writer cannot still be at.
const WRITING_MAX: Duration = Duration::from_hours(1);
/// Files of the directory that are looked at.
const SEEN_MAX: usize = 1_024;
/// How names of whole files end, and of those that are being written.
const WHOLE: &str = "kv";
const WRITING: &str = "new";

/// A part of a prompt's beginning that has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// All tokens of the prompt up to its end.
    pub(crate) whole: &'a [u32],
    /// How many of them are before it.
    pub(crate) from: usize,
}

impl<'a> Part<'a> {
    fn own(&self) -> &'a [u32] {
        self.whole.get(self.from..).unwrap_or_default()
    }
}

/// A directory of states of prompts' beginnings.
#[derive(Debug, Clone)]
pub(crate) struct PromptCache {
    directory: PathBuf,
}

impl PromptCache {
    /// Keeps files in a directory, which is made when the first one is written.
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Lets the engine continue with a part, if its state is there and the engine's sequence begins with what
    /// is before it. The state of the sequence behind that is then forgotten.
    pub(crate) fn restore(&self, engine: &mut dyn Engine, part: Part<'_>) -> bool {
        let before = part.whole.get(..part.from).unwrap_or_default();
        if part.own().len() < TOKENS_MIN || !engine.sequence().starts_with(before) {
            return false;
        }
        let path = self.path(engine, part);
        let restored = match read(&path, part) {
            Ok(state) => {
                engine.truncate(part.from);
                engine.restore(part.own(), &state)
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound => return false,
            Err(err) => {
                tracing::debug!(error = %err, "a file of the prompt cache cannot be used");
                false
            }
        };
        if restored {
            touch(&path);
        } else {
            // Its place is wanted for one that can be used.
            let _ = fs::remove_file(&path);
        }
        restored
    }

    /// Keeps the state of a part that ends where the engine's sequence does. The engine continues with what
    /// a reader will have, so that a reply does not depend on who computed its beginning.
    pub(crate) fn keep(&self, engine: &mut dyn Engine, part: Part<'_>) {
        if part.own().len() < TOKENS_MIN || engine.sequence() != part.whole {
            return;
        }
        let Some(state) = engine.save(part.from) else {
            return;
        };
        if state.len() as u64 > FILE_BYTES_MAX / 2 {
            return;
        }
        engine.truncate(part.from);
        if !engine.restore(part.own(), &state) {
            return;
        }
        let written = self
            .prepare()
            .and_then(|()| write(&self.path(engine, part), part, &state));
        match written {
            Ok(()) => self.prune(SystemTime::now()),
            Err(err) => tracing::debug!(error = %err, "the prompt cache cannot be written"),
        }
    }

    fn path(&self, engine: &dyn Engine, part: Part<'_>) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(engine.fingerprint());
        hash.update(head(part));
        let name = HEXLOWER.encode(&hash.finalize());
        self.directory.join(name).with_extension(WHOLE)
    }

    fn prepare(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.directory)
    }

    /// Removes what is too old, too many or too large together, and what writers left behind.
    fn prune(&self, now: SystemTime) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let mut whole = Vec::new();
        for entry in entries.flatten().take(SEEN_MAX) {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let age = metadata
                .modified()
                .ok()
                .and_then(|at| now.duration_since(at).ok());
            let age = age.unwrap_or_default();
            match path.extension().and_then(|it| it.to_str()) {
                Some(WHOLE) => whole.push((age, metadata.len(), path)),
                Some(WRITING) if age > WRITING_MAX => drop(fs::remove_file(path)),
                _ => {}
            }
        }
        whole.sort();
        let mut bytes = 0_u64;
        for (index, (age, length, path)) in whole.into_iter().enumerate() {
            bytes = bytes.saturating_add(length);
            if index >= FILES_MAX || bytes > BYTES_MAX || age > UNUSED_MAX {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Marks a file as used now; if that fails, it is only removed earlier.
fn touch(path: &Path) {
    let file = File::options().append(true).open(path);
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

fn bytes_of(tokens: &[u32]) -> Vec<u8> {
    tokens
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect()
}

/// Returns the bytes of a file before its state.
fn head(part: Part<'_>) -> Vec<u8> {
    let [from, count] = [part.from, part.whole.len()].map(|it| (it as u64).to_le_bytes());
    [MAGIC.as_slice(), &from, &count, &bytes_of(part.whole)].concat()
}

fn write(path: &Path, part: Part<'_>, state: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let own = format!("{}-{number}.{WRITING}", std::process::id());
    let beside = path.with_extension(own);
    let head = head(part);
    let checksum = Sha256::new().chain_update(&head).chain_update(state);
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let written = options.open(&beside).and_then(|mut file| {
        for part in [&head, state, &checksum.finalize()] {
            file.write_all(part)?;
        }
        fs::rename(&beside, path)
    });
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Reads the state of a part from its file.
fn read(path: &Path, part: Part<'_>) -> io::Result<Vec<u8>> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > FILE_BYTES_MAX {
        return Err(damaged());
    }
    bytes.reserve_exact(usize::try_from(length).unwrap_or(0));
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let whole = bytes
        .len()
        .checked_sub(CHECKSUM_BYTES)
        .ok_or_else(damaged)?;
    let (body, checksum) = bytes.split_at(whole);
    let head = head(part);
    if !body.starts_with(&head) || Sha256::digest(body).as_slice() != checksum {
        return Err(damaged());
    }
    bytes.truncate(whole);
    bytes.drain(..head.len());
    Ok(bytes)
}

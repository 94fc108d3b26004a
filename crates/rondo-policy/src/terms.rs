//! Terms of an approval: a hash of the call and its circumstances, and the grants that it can leave.

use crate::analysis::{AllowedDirs, Analysis};
use crate::grants::safe_prefix;
use crate::lookup::Lookup;
use crate::unix;
use data_encoding::HEXLOWER;
use rondo_core::shown;
use rondo_types::text::{first_chars, with_mark};
use rondo_types::{Grant, GrantScope};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Changes whenever the same circumstances get another hash.
const VERSION: &str = "rondo call 1";
/// The most files of a command whose content is read.
pub(crate) const FILES_MAX: usize = 64;
/// The largest file that is read. Of larger ones, and of those beyond [`FILES_MAX`], it counts which file it is, how long,
/// and when it was changed.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;
/// The most characters of a call that its grant shows.
const SHOWN_CHARS_MAX: usize = 200;

/// A hash over parts, each with its length, so that no two lists of parts read the same.
struct Parts(Sha256);

impl Parts {
    fn new(tool: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.add(VERSION);
        parts.add(tool);
        parts
    }

    fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn end(self) -> String {
        HEXLOWER.encode(&self.0.finalize())
    }
}

/// Returns the hash of a command in its circumstances: what it says, the other arguments, its directory, the variables
/// that the user's shell has changed, and the content of the files that it would run.
pub(crate) fn of_command(
    tool: &str,
    (command, arguments): (&str, &Value),
    analysis: &Analysis,
    lookup: &Lookup<'_>,
) -> String {
    let mut parts = Parts::new(tool);
    match analysis.plain_words() {
        Some(words) => {
            parts.add("words");
            words.iter().for_each(|word| parts.add(word));
        }
        None => parts.add(command.trim()),
    }
    let mut rest = arguments.clone();
    if let Some(fields) = rest.as_object_mut() {
        for known in ["command", "argv", "working_directory", "timeout"] {
            fields.shift_remove(known);
        }
        fields.sort_keys();
    }
    parts.add(rest.to_string());
    parts.add(lookup.dirs.current().as_os_str().as_encoded_bytes());
    for (name, value) in lookup.changed() {
        parts.add(name.as_encoded_bytes());
        parts.add(value.as_encoded_bytes());
    }
    let mut read = 0;
    for file in analysis.code_files() {
        let path = lookup.dirs.current().join(file);
        if let Some(content) = content(&path, read < FILES_MAX) {
            read += 1;
            parts.add(path.as_os_str().as_encoded_bytes());
            parts.add(content);
        }
    }
    parts.end()
}

/// Returns the hash of another call: its arguments, the directory, and the file that it is about.
pub(crate) fn of_call(
    tool: &str,
    arguments: &Value,
    dirs: &AllowedDirs,
    file: Option<&str>,
) -> String {
    let mut parts = Parts::new(tool);
    let mut arguments = arguments.clone();
    arguments.sort_all_objects();
    parts.add(arguments.to_string());
    parts.add(dirs.current().as_os_str().as_encoded_bytes());
    if let Some(file) = file {
        parts.add(content(&dirs.current().join(file), true).unwrap_or_default());
    }
    parts.end()
}

/// Returns the permissions that an approval of a command can include from then on, the narrowest first.
pub(crate) fn offers_of_command(
    tool: &str,
    (command, hash): (&str, &str),
    analysis: &Analysis,
    dirs: &AllowedDirs,
) -> Vec<GrantScope> {
    let prefix = analysis.plain_effects().and_then(|commands| {
        let [command] = commands.as_slice() else {
            return None;
        };
        safe_prefix(command, dirs)
    });
    let prefix = prefix.map(|prefix| GrantScope::Commands {
        tool: tool.to_owned(),
        prefix,
    });
    std::iter::once(exactly(tool, hash, command))
        .chain(prefix)
        .collect()
}

/// Returns the scope of this call alone.
pub(crate) fn exactly(tool: &str, hash: &str, shown: &str) -> GrantScope {
    let line = shown::line(shown.trim());
    GrantScope::Call {
        tool: tool.to_owned(),
        hash: hash.to_owned(),
        shown: with_mark(first_chars(&line, SHOWN_CHARS_MAX), &line, "…"),
    }
}

/// Returns grants of these scopes.
pub(crate) fn grants(scopes: Vec<GrantScope>, despite_outside_text: bool) -> Vec<Grant> {
    let grant = |scope| Grant {
        scope,
        despite_outside_text,
    };
    scopes.into_iter().map(grant).collect()
}

/// Returns the hash of a file; `None` if there is none that can be read.
fn content(path: &Path, is_read: bool) -> Option<Vec<u8>> {
    let file = unix::open_regular(path).ok()?;
    let about = file.metadata().ok()?;
    let mut hash = Sha256::new();
    hash.update(about.len().to_le_bytes());
    if !is_read || about.len() > FILE_BYTES_MAX {
        // The time of the last change of anything about it, which no program can set.
        hash.update(about.ctime().to_le_bytes());
        hash.update(about.ctime_nsec().to_le_bytes());
        hash.update(about.ino().to_le_bytes());
        return Some(hash.finalize().to_vec());
    }
    let mut content = Vec::new();
    // It may have grown since.
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut content)
        .ok()?;
    hash.update(content);
    Some(hash.finalize().to_vec())
}

//! The paths that a repository's index has, and what records conflicts.
//!
//! `git` checks a path when it adds it to an index, and never when it reads one: `git restore .` then writes wherever the
//! index says, into `.git/hooks` or above the repository. So an index is read as `git` reads it, which is in two ways: from
//! the beginning, and in several threads from where its extensions say.

/// The length of the identifiers of objects, in bytes: of SHA-1, and of SHA-256.
const HASHES: [usize; 2] = [20, 32];
/// Signature of an index.
const SIGNATURE: &[u8] = b"DIRC";
/// The versions that there are.
const VERSIONS: [u32; 3] = [2, 3, 4];
/// The first version in which a path leaves out what it has in common with the one before.
const SHORTENED: u32 = 4;
/// The length of the fields that `git` keeps of a file in front of its identifier, in bytes.
const STAT_BYTES: usize = 40;
/// The flag of an entry that has more flags.
const EXTENDED: u16 = 0x4000;
/// The bits of an entry's flags that are the length of its path; all of them if it is longer.
const LENGTH: u16 = 0x0fff;
/// The extension that says where the entries end.
const END_OF_ENTRIES: &[u8] = b"EOIE";
/// The extension that says where each thread begins to read.
const OFFSETS: &[u8] = b"IEOT";

/// Returns a path in an index that `git` would not have added to it, or nothing if it has none.
///
/// # Errors
/// When it is not an index that `git` writes.
pub(crate) fn strange_path(index: &[u8]) -> Result<Option<Vec<u8>>, NoIndex> {
    // Which identifiers a repository has is a setting of it, by which a command could have it read otherwise than here.
    let read = HASHES.map(|hash| Index { bytes: index, hash }.strange_path());
    let [Err(NoIndex), Err(NoIndex)] = read else {
        return Ok(read.into_iter().filter_map(Result::ok).flatten().next());
    };
    Err(NoIndex)
}

/// Returns a path of a list of conflicts (`MERGE_RR`) that lies outside of the working tree.
pub(crate) fn strange_conflict(list: &[u8]) -> Option<Vec<u8>> {
    let paths = list.split(|it| *it == 0).filter_map(|record| {
        let mut parts = record.splitn(2, |it| *it == b'\t');
        parts.nth(1)
    });
    let mut strange = paths.filter(|it| is_strange(it));
    strange.next().map(<[u8]>::to_vec)
}

/// Returns whether a path leads out of a working tree, or into its repository, on any file system.
fn is_strange(path: &[u8]) -> bool {
    let is_strange_part = |part: &[u8]| {
        let ending = part.iter().rev().take_while(|it| b" .".contains(it));
        let name = part.get(..part.len() - ending.count()).unwrap_or_default();
        part == b"."
            || part == b".."
            || name.eq_ignore_ascii_case(b".git")
            || name.eq_ignore_ascii_case(b"git~1")
    };
    path.starts_with(b"/") || path.contains(&0) || path.split(|it| *it == b'/').any(is_strange_part)
}

/// Something else than an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoIndex;

struct Index<'a> {
    bytes: &'a [u8],
    /// The length of an identifier.
    hash: usize,
}

/// An entry of an index.
struct Entry {
    /// Offset of its beginning.
    at: usize,
    /// Path that a thread starting here would read, if that path is strange.
    alone: Option<Vec<u8>>,
}

impl Index<'_> {
    fn strange_path(&self) -> Result<Option<Vec<u8>>, NoIndex> {
        if self.part(0, SIGNATURE.len())? != SIGNATURE {
            return Err(NoIndex);
        }
        let version = self.number(4)?;
        if !VERSIONS.contains(&version) {
            return Err(NoIndex);
        }
        let mut strange = None;
        let mut entries: Vec<Entry> = Vec::new();
        let mut path = Vec::new();
        let mut at = 12;
        for _ in 0..self.number(8)? {
            let (alone, next) = self.take(at, version, &mut path)?;
            if strange.is_none() && is_strange(&path) {
                strange = Some(path.clone());
            }
            let alone = is_strange(alone).then(|| alone.to_vec());
            entries.push(Entry { at, alone });
            at = next;
        }
        let of_threads = self.check_extensions(at, &entries)?;
        Ok(strange.or(of_threads))
    }

    /// Reads the entry at a place, and makes `path`, that of the entry before, its own. Returns the path that it has without
    /// that, and the place of the next one.
    fn take(&self, at: usize, version: u32, path: &mut Vec<u8>) -> Result<(&[u8], usize), NoIndex> {
        let mut name_at = at + STAT_BYTES + self.hash;
        let flags = self.part(name_at, 2)?;
        let flags = flags.try_into().map(u16::from_be_bytes).unwrap_or_default();
        name_at += if flags & EXTENDED == 0 { 2 } else { 4 };
        if version >= SHORTENED {
            let (left_out, used) = self.variable(name_at)?;
            name_at += used;
            path.truncate(path.len().checked_sub(left_out).ok_or(NoIndex)?);
        } else {
            path.clear();
        }
        let length = match flags & LENGTH {
            LENGTH => self
                .bytes
                .get(name_at..)
                .and_then(|it| it.iter().position(|it| *it == 0)),
            length => usize::from(length).checked_sub(path.len()),
        };
        let length = length.ok_or(NoIndex)?;
        let alone = self.part(name_at, length)?;
        path.extend_from_slice(alone);
        let next = match version >= SHORTENED {
            true => name_at + length + 1,
            false => at + (name_at - at + length + 8) / 8 * 8,
        };
        Ok((alone, next))
    }

    /// Reads a number of which each byte has seven bits, as `git` writes it; returns how long it is.
    fn variable(&self, at: usize) -> Result<(usize, usize), NoIndex> {
        let mut value: usize = 0;
        for (place, byte) in self.bytes.iter().skip(at).enumerate() {
            value = value.checked_shl(7).ok_or(NoIndex)? | usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok((value, place + 1));
            }
            value = value.checked_add(1).ok_or(NoIndex)?;
            if value > self.bytes.len() {
                break;
            }
        }
        Err(NoIndex)
    }

    /// Looks at what follows the entries, up to the sum at the end; returns a strange path that a thread would read.
    fn check_extensions(
        &self,
        end_of_entries: usize,
        entries: &[Entry],
    ) -> Result<Option<Vec<u8>>, NoIndex> {
        let end = self.bytes.len().checked_sub(self.hash).ok_or(NoIndex)?;
        let mut strange = None;
        let mut at = end_of_entries;
        while at < end {
            let length = usize::try_from(self.number(at + 4)?).map_err(|_| NoIndex)?;
            let content = self.part(at + 8, length)?;
            if self.part(at, 4)? == OFFSETS {
                strange = strange.or(of_threads(content, entries)?);
            }
            at += 8 + length;
        }
        // It is looked for at this place, whatever is before it.
        let last = end.checked_sub(8 + 4 + self.hash);
        if let Some(last) = last.filter(|it| self.part(*it, 4) == Ok(END_OF_ENTRIES))
            && usize::try_from(self.number(last + 8)?) != Ok(end_of_entries)
        {
            return Err(NoIndex);
        }
        match at == end {
            true => Ok(strange),
            false => Err(NoIndex),
        }
    }

    fn number(&self, at: usize) -> Result<u32, NoIndex> {
        let bytes = self.part(at, 4)?;
        bytes
            .try_into()
            .map(u32::from_be_bytes)
            .map_err(|_| NoIndex)
    }

    fn part(&self, at: usize, length: usize) -> Result<&[u8], NoIndex> {
        let end = at.checked_add(length).ok_or(NoIndex)?;
        self.bytes.get(at..end).ok_or(NoIndex)
    }
}

/// Returns a strange path that a thread would read, which begins where the extension says.
///
/// # Errors
/// When one begins elsewhere than at an entry, or reads more entries than follow.
fn of_threads(extension: &[u8], entries: &[Entry]) -> Result<Option<Vec<u8>>, NoIndex> {
    let (_, blocks) = extension.split_at_checked(4).ok_or(NoIndex)?;
    let mut strange = None;
    let mut next = 0;
    for block in blocks.chunks(8) {
        let number = |part: Option<&[u8]>| {
            let bytes = part.and_then(|it| it.try_into().ok()).ok_or(NoIndex)?;
            usize::try_from(u32::from_be_bytes(bytes)).map_err(|_| NoIndex)
        };
        let (at, count) = (number(block.get(..4))?, number(block.get(4..))?);
        let first: &Entry = entries.get(next).filter(|it| it.at == at).ok_or(NoIndex)?;
        strange = strange.or_else(|| first.alone.clone());
        next += count;
    }
    match next == entries.len() {
        true => Ok(strange),
        false => Err(NoIndex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new(script: &str) -> Self {
            let repository = Self(tempfile::tempdir().unwrap());
            let done = Command::new("bash")
                .args(["-ec", script])
                .current_dir(repository.0.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
            repository
        }

        fn index(&self) -> Vec<u8> {
            std::fs::read(self.0.path().join(".git/index")).unwrap()
        }
    }

    /// Replaces a text in an index by one of the same length.
    fn with(index: &[u8], text: &str, other: &str) -> Vec<u8> {
        let (text, other) = (text.as_bytes(), other.as_bytes());
        let at = index.windows(text.len()).position(|it| it == text).unwrap();
        let mut index = index.to_vec();
        index[at..at + text.len()].copy_from_slice(other);
        index
    }

    const FILES: &str = "mkdir -p a/bbbb .github; touch .gitignore .github/x a/bbbb/c a/bbbb/.gitt '..x'; git add -A";

    #[test]
    fn what_git_writes_has_no_strange_path_in_any_version() {
        for script in [
            "git init -q",
            "git init -q --object-format=sha256",
            "git init -q; git config index.version 4",
            "git init -q; git config core.splitIndex true",
            "git init -q; git config index.skipHash true",
        ] {
            let long = "mkdir -p $(printf 'd%.0s' {1..200})/{1..30}; for i in */*/; do echo > $i/$(printf 'e%.0s' {1..200}); done";
            let repository = Repository::new(&format!(
                "{script}; {long}; {FILES}; git add -N a; git rm -q --cached ..x"
            ));
            assert_eq!(strange_path(&repository.index()), Ok(None), "{script}");
        }
    }

    #[test]
    fn an_index_that_git_reads_in_several_threads_is_read_as_these_read_it() {
        let repository = Repository::new(
            "git init -q; git config index.version 4; git config index.threads 3
             mkdir d; for i in $(seq 10000 40000); do echo \"100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\td/$i\"; done | git update-index --index-info",
        );
        let index = repository.index();
        assert!(index.windows(4).any(|it| it == OFFSETS));
        assert_eq!(strange_path(&index), Ok(None));
        // The extension leads a thread elsewhere than to an entry.
        let at = index.windows(4).position(|it| it == OFFSETS).unwrap();
        let mut moved = index.clone();
        moved[at + 15] ^= 1;
        assert_eq!(strange_path(&moved), Err(NoIndex));
        let last = index.len() - 20 - 32;
        assert_eq!(&index[last..last + 4], END_OF_ENTRIES);
        let mut moved = index.clone();
        moved[last + 11] ^= 1;
        assert_eq!(strange_path(&moved), Err(NoIndex));
    }

    #[test]
    fn a_path_into_the_repository_or_out_of_the_tree_is_strange() {
        for script in ["git init -q", "git init -q --object-format=sha256"] {
            let index = Repository::new(&format!("{script}; {FILES}")).index();
            for (text, other) in [
                ("a/bbbb/.gitt", "a/bbbb/.gIt "),
                ("a/bbbb/.gitt", "a/bbbb/git~1"),
                ("a/bbbb/c", ".git/a/c"),
                ("a/bbbb/c", "../a/b/c"),
                ("a/bbbb/c", "a/../../"),
                ("a/bbbb/c", "/bbbbb/c"),
                ("a/bbbb/c", "./bbbb/c"),
                ("a/bbbb/c", ".git\0/bc"),
            ] {
                let strange = strange_path(&with(&index, text, other)).unwrap();
                assert_eq!(strange.as_deref(), Some(other.as_bytes()), "{other}");
            }
        }
    }

    #[test]
    fn something_else_than_an_index_is_none() {
        let index = Repository::new(&format!("git init -q; {FILES}")).index();
        for length in 0..index.len() {
            assert_eq!(strange_path(&index[..length]), Err(NoIndex), "{length}");
        }
        for other in [&b"DIRC\0\0\0\x05\0\0\0\0"[..], b"", b"x"] {
            assert_eq!(strange_path(other), Err(NoIndex));
        }
    }

    #[test]
    fn a_conflict_outside_of_the_tree_is_strange() {
        assert_eq!(strange_conflict(b"aa\ta/b\0bb.1\tc d\0"), None);
        let strange = strange_conflict(b"aa\ta\0bb\t../.ssh/id\0");
        assert_eq!(strange.as_deref(), Some(&b"../.ssh/id"[..]));
    }
}

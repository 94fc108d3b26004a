//! The settings of a repository, read as `git` reads them.
//!
//! The interpretation by `git` counts, so each step follows its `config.c`. A file that `git` would refuse, or that is
//! written in a way that no program writes, is an error here: it is not judged at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The bound on a file whose settings are looked up, in bytes.
const BYTES_MAX: u64 = 256 << 10;

/// A setting of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setting {
    /// The section and the name in lower case, with what is between them as it is: `remote.Origin.url`.
    pub(crate) key: Vec<u8>,
    /// None if only the name is there, which is true.
    pub(crate) value: Option<Vec<u8>>,
}

/// The file is not what `git` reads as settings, or no program writes it so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl Setting {
    /// Returns the value as a path.
    pub(crate) fn path(&self) -> Option<&Path> {
        let value = self.value.as_deref()?;
        Some(Path::new(OsStr::from_bytes(value)))
    }

    /// Returns the section, what is between the section and the name, and the name.
    pub(crate) fn parts(&self) -> (&[u8], Option<&[u8]>, &[u8]) {
        let is_dot = |byte: &u8| *byte == b'.';
        let first = self.key.iter().position(is_dot).unwrap_or(0);
        let last = self.key.iter().rposition(is_dot).unwrap_or(0);
        let part = |from: usize, to: usize| self.key.get(from..to);
        let section = part(0, first).unwrap_or_default();
        let name = part(last.saturating_add(1), self.key.len()).unwrap_or_default();
        (section, part(first.saturating_add(1), last), name)
    }
}

/// Reads the settings of the file at a path; none if it cannot be read, is too long, or is no such file.
pub(crate) fn read(path: &Path) -> Vec<Setting> {
    // Opening a pipe would wait for a writer.
    if !path.metadata().is_ok_and(|it| it.is_file()) {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|it| it.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 <= BYTES_MAX => parse(&bytes).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Reads the settings of a file, in their order.
///
/// # Errors
/// When it is no such file.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Setting>, Unreadable> {
    // No program writes it, and what follows it would not be compared.
    if bytes.contains(&0) {
        return Err(Unreadable);
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut reader = Reader { rest: bytes };
    let mut settings = Vec::new();
    let mut section: Option<Vec<u8>> = None;
    loop {
        match reader.next() {
            None => return Ok(settings),
            Some(b'\n') => {}
            Some(byte) if is_space(byte) => {}
            Some(b'#' | b';') => reader.skip_line(),
            Some(b'[') => section = Some(reader.section()?),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let mut key = section.clone().ok_or(Unreadable)?;
                key.extend([b'.', byte.to_ascii_lowercase()]);
                settings.push(reader.setting(key)?);
            }
            Some(_) => return Err(Unreadable),
        }
    }
}

/// Mark that some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let rest = self.rest.strip_prefix(b"\r\n");
        if let Some(rest) = rest {
            self.rest = rest;
            return Some(b'\n');
        }
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Returns the next byte; the end of the file is the end of a line.
    fn next_of_line(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    fn skip_line(&mut self) {
        while self.next_of_line() != b'\n' {}
    }

    /// Reads the rest of `[section]`, `[section "between"]` or `[section.between]`.
    fn section(&mut self) -> Result<Vec<u8>, Unreadable> {
        let mut name = Vec::new();
        loop {
            match self.next().ok_or(Unreadable)? {
                b']' => return Ok(name),
                byte if is_space(byte) => return self.between(name, byte),
                byte if is_of_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Unreadable),
            }
        }
    }

    fn between(&mut self, mut name: Vec<u8>, mut byte: u8) -> Result<Vec<u8>, Unreadable> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(Unreadable);
            }
            byte = self.next_of_line();
        }
        if byte != b'"' {
            return Err(Unreadable);
        }
        name.push(b'.');
        loop {
            let byte = match self.next_of_line() {
                b'"' => break,
                b'\\' => self.next_of_line(),
                byte => byte,
            };
            if byte == b'\n' {
                return Err(Unreadable);
            }
            name.push(byte);
        }
        match self.next_of_line() {
            b']' => Ok(name),
            _ => Err(Unreadable),
        }
    }

    /// Reads the rest of a name, and its value.
    fn setting(&mut self, mut key: Vec<u8>) -> Result<Setting, Unreadable> {
        let mut byte = self.next_of_line();
        while is_of_key(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.next_of_line();
        }
        while byte == b' ' || byte == b'\t' {
            byte = self.next_of_line();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return Err(Unreadable),
        };
        Ok(Setting { key, value })
    }

    fn value(&mut self) -> Result<Vec<u8>, Unreadable> {
        let mut value = Vec::new();
        let mut is_quoted = false;
        // Where the spaces begin that end the line, if nothing else follows.
        let mut spaces_from = None;
        loop {
            let byte = self.next_of_line();
            if byte == b'\n' {
                value.truncate(spaces_from.unwrap_or(value.len()));
                return if is_quoted {
                    Err(Unreadable)
                } else {
                    Ok(value)
                };
            }
            if is_space(byte) && !is_quoted {
                spaces_from = spaces_from.or(Some(value.len()));
                if !value.is_empty() {
                    value.push(byte);
                }
                continue;
            }
            if matches!(byte, b'#' | b';') && !is_quoted {
                self.skip_line();
                value.truncate(spaces_from.unwrap_or(value.len()));
                return Ok(value);
            }
            spaces_from = None;
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.next_of_line() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(Unreadable),
                },
                byte => value.push(byte),
            }
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn listed(text: &str) -> Option<Vec<String>> {
        let settings = parse(text.as_bytes()).ok()?;
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let shown = |it: &Setting| match &it.value {
            Some(value) => format!("{}={}", lossy(&it.key), lossy(value)),
            None => lossy(&it.key),
        };
        Some(settings.iter().map(shown).collect())
    }

    #[test]
    fn sections_names_and_values_are_read_as_git_reads_them() {
        let text = "\u{feff}[Core] Bare = true ; x\r\n\tNoValue\n[remote \"O\\\"r\"]url = \" a;b\" c \\\n  d # e\n[a.B]c=\n";
        let expected = [
            "core.bare=true",
            "core.novalue",
            "remote.O\"r.url= a;b c   d",
            "a.b.c=",
        ];
        assert_eq!(listed(text).unwrap(), expected);
        let setting = Setting {
            key: b"remote.a.b.url".to_vec(),
            value: None,
        };
        assert_eq!(
            setting.parts(),
            (&b"remote"[..], Some(&b"a.b"[..]), &b"url"[..])
        );
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for text in [
            "a = b",
            "[core",
            "[core]\n= a",
            "[core]\na = \"b",
            "[core]\na = \\x",
            "[core \"a]\nb",
            "[core \"a\" ]",
            "[core a]",
            "[co_re]",
            "[core]\na b",
            "[core]\na\0 = b",
            "\u{feff}\u{feff}[core]",
            "[core]\n1a = b",
        ] {
            assert_eq!(listed(text), None, "{text:?}");
        }
    }

    /// Makes texts out of what settings are made of.
    struct Texts(u64);

    impl Texts {
        fn number(&mut self, below: usize) -> usize {
            // The generator of Marsaglia.
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).unwrap() % below
        }

        fn text(&mut self) -> String {
            const PARTS: [&str; 40] = [
                "[",
                "]",
                "[core]",
                "[core]\n",
                "[remote \"a\"]\n",
                "[a \"",
                "\"",
                "\\",
                "\\\n",
                "\n",
                "\n",
                "\n",
                "\r\n",
                "\r",
                " ",
                " ",
                "\t",
                "=",
                "=",
                " = ",
                "a",
                "bC",
                "url = x",
                "fsmonitor",
                "-",
                ".",
                "#",
                ";",
                "\\n",
                "\\\"",
                "\\t",
                "1",
                "true\n",
                "\u{b}",
                "\u{c}",
                "é",
                "[include]\npath=x\n",
                "'",
                "$",
                "_",
            ];
            let begin = ["", "\u{feff}", "[core]\n", "[core \"b\"]\n"];
            let mut text = begin[self.number(begin.len())].to_owned();
            for _ in 0..self.number(14) {
                text.push_str(PARTS[self.number(PARTS.len())]);
            }
            text
        }
    }

    #[test]
    fn generated_files_are_read_as_git_reads_them() {
        const FILES: usize = 400;
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config");
        let mut texts = Texts(0x2545_f491_4f6c_dd2f);
        let mut agreed = 0;
        for _ in 0..FILES {
            let text = texts.text();
            std::fs::write(&file, &text).unwrap();
            let mut git = Command::new("git");
            git.args(["config", "--no-includes", "--list", "-z", "--file"]);
            let output = git.arg(&file).output().unwrap();
            let Ok(settings) = parse(text.as_bytes()) else {
                // A line that git reads and this does not is a setting outside of a section.
                let mut settings = output.stdout.split(|it| *it == 0);
                let is_outside = |it: &[u8]| {
                    let key = it.split(|it| *it == b'\n').next().unwrap();
                    !key.is_empty() && !key.contains(&b'.')
                };
                assert!(
                    !output.status.success() || settings.any(is_outside),
                    "{text:?}"
                );
                continue;
            };
            assert!(output.status.success(), "{text:?}: {output:?}");
            let mut expected = Vec::new();
            for setting in settings {
                expected.extend(setting.key);
                if let Some(value) = setting.value {
                    expected.push(b'\n');
                    expected.extend(value);
                }
                expected.push(0);
            }
            assert_eq!(output.stdout, expected, "{text:?}");
            agreed += 1;
        }
        assert!(agreed > FILES / 8, "{agreed}");
    }
}

//! Completion of paths.

use std::path::{Path, PathBuf};

/// The bound on entries of a directory that are looked at.
const ENTRIES_MAX: usize = 5000;
/// What a shell takes for more than a character of a name.
const SPECIAL: &str = " \t\n\\'\"`$&|;<>()*?[]{}!#~";

/// How a name is written so that it stays one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    /// As it is.
    None,
    /// With a backslash before what a shell would take for something else.
    Shell,
    /// In double quotes where it has blanks, as behind an `@`.
    Attachment,
}

/// A path that could be meant.
pub(super) struct Found {
    /// As it is typed.
    pub(super) written: String,
    /// It ends with a slash then.
    pub(super) is_directory: bool,
}

/// Returns the paths that begin like the one that is typed, in order.
pub(super) fn complete(
    typed: &str,
    directory: &Path,
    home: Option<&Path>,
    quoting: Quoting,
) -> Vec<Found> {
    let typed = unquoted(typed, quoting);
    let (folder, prefix) = match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed.as_str()),
    };
    let Ok(entries) = std::fs::read_dir(place_of(folder, directory, home)) else {
        return Vec::new();
    };
    let mut found: Vec<Found> = entries
        .flatten()
        .take(ENTRIES_MAX)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
            let fits = name.starts_with(prefix) && !is_hidden && !name.contains(char::is_control);
            fits.then(|| found(folder, &name, entry.path().is_dir(), quoting))
        })
        .collect();
    found.sort_by(|one, other| one.written.cmp(&other.written));
    found
}

fn found(folder: &str, name: &str, is_directory: bool, quoting: Quoting) -> Found {
    let end = if is_directory { "/" } else { "" };
    Found {
        written: quoted(&format!("{folder}{name}{end}"), quoting),
        is_directory,
    }
}

fn place_of(folder: &str, directory: &Path, home: Option<&Path>) -> PathBuf {
    match (folder.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => directory.join(folder),
    }
}

fn quoted(path: &str, quoting: Quoting) -> String {
    match quoting {
        // The name goes on behind a directory, within the quotes.
        Quoting::Attachment if path.contains(char::is_whitespace) && path.ends_with('/') => {
            format!("\"{path}")
        }
        Quoting::Attachment if path.contains(char::is_whitespace) => format!("\"{path}\""),
        Quoting::None | Quoting::Attachment => path.to_owned(),
        Quoting::Shell => {
            let (home, rest) = match path.strip_prefix("~/") {
                Some(rest) => ("~/", rest),
                None => ("", path),
            };
            let mut written = home.to_owned();
            for c in rest.chars() {
                if SPECIAL.contains(c) {
                    written.push('\\');
                }
                written.push(c);
            }
            written
        }
    }
}

fn unquoted(typed: &str, quoting: Quoting) -> String {
    match quoting {
        Quoting::None => typed.to_owned(),
        Quoting::Attachment => typed.trim_start_matches('"').to_owned(),
        Quoting::Shell => {
            let mut plain = String::new();
            let mut chars = typed.chars();
            while let Some(c) = chars.next() {
                plain.extend(if c == '\\' { chars.next() } else { Some(c) });
            }
            plain
        }
    }
}

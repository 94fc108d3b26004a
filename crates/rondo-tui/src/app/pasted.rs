//! Images that are pasted as the path of their file, as terminals do with files that are dropped on them.

use crate::text::clean;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Bytes of a path at most.
const PATH_BYTES_MAX: usize = 4_096;
/// What the names of images end in.
const ENDINGS: [&str; 5] = ["gif", "jpeg", "jpg", "png", "webp"];

/// Returns the path that a text is, where it may be that of an image: as it is, in quotes, with backslashes before blanks,
/// or as a `file` URI.
pub(super) fn image_path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    if text.len() > PATH_BYTES_MAX || text.contains(char::is_control) {
        return None;
    }
    let path = match quoted(text) {
        Some(inner) => inner.to_owned(),
        None => match text.strip_prefix("file://") {
            Some(path) => decoded(path)?,
            None => text.replace("\\", ""),
        },
    };
    let path = PathBuf::from(path);
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    ENDINGS.contains(&ending.as_str()).then_some(path)
}

fn quoted(text: &str) -> Option<&str> {
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    within('\'').or_else(|| within('"'))
}

fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Returns the name that is shown for a file, and the word that attaches it; none where no word can name it.
pub(super) fn named(path: &Path) -> Option<(String, String)> {
    let text = path.to_str()?;
    let is_plain = !text.contains(['"', '\n']) && clean::typed(text) == text;
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or(text);
    is_plain.then(|| (clean::line(name), format!("@\"{text}\"")))
}

/// Returns the word that attaches a file, in quotes if its name has blanks.
pub(super) fn attaching(path: &str) -> String {
    let path = path.trim().trim_matches('"');
    match path.contains(char::is_whitespace) {
        true => format!("@\"{path}\""),
        false => format!("@{path}"),
    }
}

/// Returns where the word begins that attaches a file and ends with this text, and the part of the name that is typed: in
/// quotes it goes on behind blanks.
pub(super) fn attached_part(before: &str) -> Option<(usize, &str)> {
    let begins_word = |at: usize| {
        let text = before.get(..at).unwrap_or_default();
        text.chars().next_back().is_none_or(char::is_whitespace)
    };
    let quoted = before.rfind("@\"").filter(|at| begins_word(*at));
    let quoted = quoted.and_then(|at| Some((at, before.get(at + 2..)?)));
    if let Some(open) = quoted.filter(|(_, name)| !name.contains(['"', '\n'])) {
        return Some(open);
    }
    let from = before.rfind(char::is_whitespace);
    let from = from.map_or(0, |at| {
        let blank = before.get(at..).and_then(|it| it.chars().next());
        at + blank.map_or(1, char::len_utf8)
    });
    let part = before.get(from..)?.strip_prefix('@')?;
    (!part.starts_with('"')).then_some((from, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_images_are_told_however_they_are_pasted() {
        for text in [
            "/tmp/a b.png",
            "'/tmp/a b.png' ",
            "\"/tmp/a b.png\"",
            "/tmp/a\\ b.png",
            "file:///tmp/a%20b.png",
        ] {
            assert_eq!(image_path(text), Some("/tmp/a b.png".into()), "{text}");
        }
        assert_eq!(image_path("shots/A.JPG"), Some("shots/A.JPG".into()));
        for text in [
            "look at a.txt",
            "one.png\ntwo.png",
            "file:///tmp/%zz.png",
            "",
        ] {
            assert_eq!(image_path(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_with_blanks_is_attached_in_quotes() {
        assert_eq!(attaching("a.txt"), "@a.txt");
        assert_eq!(attaching("a b.txt"), "@\"a b.txt\"");
        assert_eq!(attaching("\"a b.txt\""), "@\"a b.txt\"");
    }

    #[test]
    fn the_typed_part_of_a_name_goes_on_behind_blanks_in_quotes() {
        assert_eq!(attached_part("look at @src/m"), Some((8, "src/m")));
        assert_eq!(attached_part("@\"a b"), Some((0, "a b")));
        assert_eq!(attached_part("x\u{3000}@a"), Some((4, "a")));
        assert_eq!(attached_part("@\"a b\" and @c"), Some((11, "c")));
        for text in ["", "a@b", "@\"a b\"", "@a b", "me@\"x y"] {
            assert_eq!(attached_part(text), None, "{text}");
        }
    }

    #[test]
    fn a_file_that_no_word_can_name_is_not_attached() {
        let named = |path: &str| named(Path::new(path));
        let word = "@\"/tmp/a b.png\"".to_owned();
        assert_eq!(named("/tmp/a b.png"), Some(("a b.png".to_owned(), word)));
        assert_eq!(named("/tmp/\".png"), None);
        assert_eq!(named("/tmp/\u{1b}[2J.png"), None);
    }
}

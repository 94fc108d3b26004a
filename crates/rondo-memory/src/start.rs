//! Excerpt of `MEMORY.md` for the beginning of a session.
//!
//! It is in the system prompt, so that every byte that changes costs the provider's cache. A memory saved while a
//! session runs is in its transcript anyway; it joins the prompt of that session on the next day, when the prompt's
//! date changes too. So only an edit of the file changes the prompt in between, which is the purpose of an edit.

use crate::calendar;
use crate::error::MemoryError;
use crate::folder::MAIN_FILE;
use crate::memories::Memories;
use crate::notes;
use crate::origin::Origin;
use crate::scope::Scope;
use rondo_core::clock::Clock;
use rondo_types::TimeMs;
use std::path::PathBuf;

/// The bound on lines of a file that a session is shown when it begins.
pub const START_LINES_MAX: usize = 200;
/// The bound on its bytes.
pub const START_BYTES_MAX: usize = 25 << 10;
/// Pointer to the rest.
const CUT: &str = "[cut: the file is longer; search_memory finds the rest]";

/// A `MEMORY.md` as a session is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartFile {
    /// Whose it is.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// Its first lines, within [`START_LINES_MAX`] and [`START_BYTES_MAX`], with each memory's date and author in short.
    pub text: String,
}

impl Memories {
    /// Returns the user's and the project's `MEMORY.md` for a session that began at a time, or begins now at 0. Files that are missing or
    /// empty are left out, and so are those that cannot be read, with a note of why.
    ///
    /// Left out are memories from turns that have read text from outside, and those that were saved today since the
    /// session began.
    #[must_use]
    pub fn at_start(&self, began: TimeMs) -> (Vec<StartFile>, Vec<String>) {
        let mut files = Vec::new();
        let mut problems = Vec::new();
        for folder in self.folders().filter(|it| it.scope != Scope::Chat) {
            let content = folder
                .open()
                .and_then(|open| open.map_or(Ok(None), |it| it.read(MAIN_FILE)));
            match content {
                Ok(content) => {
                    let content = content.unwrap_or_default();
                    let text = shown(
                        folder.scope,
                        &String::from_utf8_lossy(&content),
                        hidden_since(began),
                    );
                    if !text.trim().is_empty() {
                        files.push(StartFile {
                            scope: folder.scope,
                            path: folder.path().join(MAIN_FILE),
                            text,
                        });
                    }
                }
                Err(err @ MemoryError::Io { .. }) => {
                    tracing::warn!(error = err.line(), "no memories")
                }
                Err(err) => problems.push(err.line()),
            }
        }
        (files, problems)
    }
}

/// Returns from when on memories are left out: since the session began, or since midnight.
fn hidden_since(began: TimeMs) -> TimeMs {
    let now = Clock::system().now();
    match began {
        // All that is there was saved before.
        TimeMs(0) => now,
        began => began.max(calendar::midnight(now)),
    }
}

/// Returns whether a file is within the bounds of what is shown.
pub(crate) fn has_room_for(content: &str) -> bool {
    content.len() <= START_BYTES_MAX && content.lines().count() <= START_LINES_MAX
}

fn shown(scope: Scope, content: &str, hidden_since: TimeMs) -> String {
    let found = notes::parse(scope, MAIN_FILE, content);
    let is_hidden = |origin: &Origin| {
        origin.from_outside || origin.saved.is_some_and(|saved| saved >= hidden_since)
    };
    let hidden = found.iter().filter(|it| is_hidden(&it.origin));
    let hidden: Vec<_> = hidden.map(|it| it.lines.clone()).collect();
    let kept = notes::without_lines(content, &hidden);
    bounded(&in_short(&kept))
}

/// Returns the text with each origin as its date and author.
fn in_short(content: &str) -> String {
    let mut text = String::new();
    for line in content.lines() {
        let (memory, origin) = crate::origin::split(line);
        text.push_str(memory);
        if let Some(saved) = origin.saved {
            let day = calendar::local(saved).date();
            text.push_str(&format!(" [{day}, {}]", origin.by.as_str()));
        }
        text.push('\n');
    }
    text
}

fn bounded(text: &str) -> String {
    let text = text.trim_end();
    let mut kept = String::new();
    for (at, line) in text.lines().enumerate() {
        let room = START_BYTES_MAX.saturating_sub(kept.len());
        if at >= START_LINES_MAX || line.len() >= room {
            let part = line.get(..line.floor_char_boundary(room.saturating_sub(1)));
            if at < START_LINES_MAX && kept.is_empty() {
                kept.push_str(part.unwrap_or_default());
                kept.push('\n');
            }
            return kept + CUT;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Author;

    fn saved(at: u64, from_outside: bool) -> Origin {
        Origin {
            from_outside,
            ..Origin::new(Author::Model, TimeMs(at))
        }
    }

    #[test]
    fn what_was_saved_since_the_session_began_and_what_comes_from_outside_is_left_out() {
        let content =
            notes::with_memory("# Mine\n\n- by hand\n", "before", &saved(1_000_000, false));
        let content = notes::with_memory(&content, "since", &saved(2_000_000, false));
        let content = notes::with_memory(&content, "outside", &saved(1_000_000, true));
        let before = shown(Scope::User, &content, TimeMs(2_000_000));
        assert!(
            before.starts_with("# Mine\n\n- by hand\n\n## Saved\n\n- before [1970-01-01, model]"),
            "{before}"
        );
        assert!(
            !before.contains("since") && !before.contains("outside"),
            "{before}"
        );
        assert!(shown(Scope::User, &content, TimeMs(2_000_001)).contains("since"));
    }

    #[test]
    fn the_bound_on_lines_is_exact() {
        let lines = |count: usize| shown(Scope::User, &"- a\n".repeat(count), TimeMs(0));
        for count in [START_LINES_MAX - 1, START_LINES_MAX] {
            assert_eq!(lines(count).lines().count(), count);
            assert!(!lines(count).contains(CUT));
        }
        let beyond = lines(START_LINES_MAX + 1);
        assert_eq!(beyond.lines().count(), START_LINES_MAX + 1);
        assert!(beyond.ends_with(CUT));
    }

    #[test]
    fn the_bound_on_bytes_is_exact_and_cuts_at_a_line() {
        let text = |bytes: usize| bounded(&format!("- a\n{}", "b".repeat(bytes)));
        let line = START_BYTES_MAX - "- a\n".len() - 1;
        for bytes in [line - 1, line] {
            assert!(!text(bytes).contains(CUT), "{bytes}");
        }
        assert_eq!(text(line + 1), format!("- a\n{CUT}"));
        let one_line = bounded(&"ä".repeat(START_BYTES_MAX));
        assert!(one_line.len() <= START_BYTES_MAX + CUT.len() + 1 && one_line.ends_with(CUT));
    }

    #[test]
    fn a_file_has_room_up_to_the_bounds() {
        for (lines, is_within) in [(START_LINES_MAX, true), (START_LINES_MAX + 1, false)] {
            assert_eq!(has_room_for(&"a\n".repeat(lines)), is_within);
        }
        for (bytes, is_within) in [(START_BYTES_MAX, true), (START_BYTES_MAX + 1, false)] {
            assert_eq!(has_room_for(&"a".repeat(bytes)), is_within);
        }
    }
}

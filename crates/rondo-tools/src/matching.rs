//! The text of an edit, found in a file.

/// The bound on places named in a message.
const PLACES_MAX: usize = 8;

/// The bound on pairs of lines that are compared for a hint.
const HINT_WORK_MAX: usize = 20_000_000;

/// The bound on text quoted in a hint, in characters.
const HINT_CHARS_MAX: usize = 600;

/// What to look for in a text and what to put there, in the text's own line ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: String,
    pub(crate) new: String,
}

impl Edit {
    /// Fits an edit to a text. In a text whose lines mostly end in CRLF, line feeds of the edit
    /// stand for CRLF.
    pub(crate) fn fitted(text: &str, old: &str, new: &str) -> Self {
        Self::with_line_ends(ends_in_crlf(text), old, new)
    }

    /// Builds an edit of a text with such line ends.
    pub(crate) fn with_line_ends(are_crlf: bool, old: &str, new: &str) -> Self {
        let fit = |text: &str| {
            if are_crlf {
                crlf(text)
            } else {
                text.to_owned()
            }
        };
        Self {
            old: fit(old),
            new: fit(new),
        }
    }

    /// Returns the lengths of the texts before each match, in bytes; they stay as they are.
    pub(crate) fn gaps(&self, text: &str) -> Vec<usize> {
        let mut end = 0;
        let matches = text.match_indices(&self.old);
        matches
            .map(|(at, found)| {
                let gap = at - end;
                end = at + found.len();
                gap
            })
            .collect()
    }

    /// Returns the text that had these gaps before the edit, where it can have been made there.
    pub(crate) fn undone(&self, text: &str, gaps: &[usize]) -> Option<String> {
        let mut before = String::with_capacity(text.len());
        let mut rest = text;
        for gap in gaps {
            before.push_str(rest.get(..*gap)?);
            before.push_str(&self.old);
            rest = rest.get(*gap..)?.strip_prefix(self.new.as_str())?;
        }
        before.push_str(rest);
        Some(before)
    }

    /// Returns the lines, from 1, on which the text matches, overlapping matches included.
    pub(crate) fn places(&self, text: &str) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut line = 1;
        let mut from = 0;
        while let Some(rest) = text.get(from..)
            && let Some(found) = rest.find(&self.old)
            && lines.len() <= PLACES_MAX
        {
            line += rest
                .get(..found)
                .map_or(0, |skipped| skipped.matches('\n').count());
            lines.push(line);
            let first = self.old.chars().next();
            from += found + first.map_or(1, char::len_utf8);
            line += usize::from(first == Some('\n'));
        }
        lines
    }

    /// Returns how often a replacement of all would replace.
    pub(crate) fn count(&self, text: &str) -> usize {
        text.matches(&self.old).count()
    }

    /// Says where a text that does not match comes nearest.
    pub(crate) fn hint(&self, text: &str) -> String {
        if let Some(window) = same_but_for_blanks(text, &self.old) {
            return format!("; it differs only in white space from\n{window}");
        }
        let first = self
            .old
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty());
        let near = first.and_then(|first| {
            text.lines()
                .enumerate()
                .find(|(_, line)| line.contains(first))
        });
        match near {
            Some((index, line)) => format!(
                "; its first line stands on line {}: `{}`",
                index + 1,
                clip(line)
            ),
            None => String::new(),
        }
    }
}

/// Lists lines for a message, as `3, 7 and more`.
pub(crate) fn list(places: &[usize]) -> String {
    let shown: Vec<String> = places
        .iter()
        .take(PLACES_MAX)
        .map(ToString::to_string)
        .collect();
    let more = if places.len() > PLACES_MAX {
        " and more"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

/// Returns whether the lines of a text mostly end in CRLF.
pub(crate) fn ends_in_crlf(text: &str) -> bool {
    text.matches("\r\n").count() * 2 > text.matches('\n').count()
}

fn crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn same_but_for_blanks(text: &str, old: &str) -> Option<String> {
    let wanted: Vec<String> = old.trim().lines().map(squeezed).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len().saturating_mul(wanted.len()) > HINT_WORK_MAX {
        return None;
    }
    let squeezed_lines: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
    let at = squeezed_lines
        .windows(wanted.len())
        .position(|window| window == wanted)?;
    let window: Vec<&str> = lines.iter().skip(at).take(wanted.len()).copied().collect();
    Some(format!("line {}:\n{}", at + 1, clip(&window.join("\n"))))
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(HINT_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)),
    }
}

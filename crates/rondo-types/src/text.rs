//! Short texts out of long ones: the beginning, or the beginning and the end.

/// Returns the beginning of a text, at most so many bytes.
#[must_use]
pub fn first_bytes(text: &str, bytes_max: usize) -> &str {
    let end = text.floor_char_boundary(bytes_max);
    text.get(..end).unwrap_or_default()
}

/// Returns the beginning of a text, at most so many characters.
#[must_use]
pub fn first_chars(text: &str, chars_max: usize) -> &str {
    let end = text.char_indices().nth(chars_max);
    end.map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

/// Returns the end of a text, at most so many bytes.
#[must_use]
pub fn last_bytes(text: &str, bytes_max: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes_max));
    text.get(start..).unwrap_or_default()
}

/// Returns the last lines of a text, at most so many lines and bytes.
#[must_use]
pub fn last_lines(text: &str, lines_max: usize, bytes_max: usize) -> &str {
    let text = last_bytes(text, bytes_max);
    let before = text.rmatch_indices('\n').nth(lines_max.saturating_sub(1));
    before.map_or(text, |(at, _)| text.get(at + 1..).unwrap_or_default())
}

/// Splits a text of more than so many characters into its beginning, its middle and its end: the beginning and the end
/// have so many together.
#[must_use]
pub fn in_three(text: &str, chars_max: usize) -> Option<[&str; 3]> {
    let beginning = first_chars(text, chars_max - chars_max / 2);
    let rest = text.strip_prefix(beginning)?;
    let middle_chars = rest.chars().count().checked_sub(chars_max / 2)?;
    let middle = first_chars(rest, middle_chars);
    let end = rest.strip_prefix(middle)?;
    (middle_chars > 0).then_some([beginning, middle, end])
}

/// Returns the beginning of a text, with a mark behind it if the text is longer.
#[must_use]
pub fn with_mark(beginning: &str, text: &str, mark: &str) -> String {
    match beginning.len() < text.len() {
        true => format!("{beginning}{mark}"),
        false => beginning.to_owned(),
    }
}

/// Returns a text of at most so many characters. `…` stands for the end of a longer one.
#[must_use]
pub fn shortened(text: &str, chars_max: usize) -> String {
    match first_chars(text, chars_max) == text {
        true => text.to_owned(),
        false => format!("{}…", first_chars(text, chars_max.saturating_sub(1))),
    }
}

/// Returns the first line of a text, at most so many characters. `…` stands for the rest.
#[must_use]
pub fn first_line(text: &str, chars_max: usize) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        None => shortened(first, chars_max),
        Some(_) => format!("{}…", first_chars(first, chars_max.saturating_sub(1))),
    }
}

/// Returns a text of at most so many characters. `…` stands for the middle of a longer one, of which two thirds are the
/// beginning.
#[must_use]
pub fn without_middle(text: &str, chars_max: usize) -> String {
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let head = chars_max * 2 / 3;
    let tail = chars_max.saturating_sub(head + 1);
    let tail = text.chars().skip(count - tail);
    text.chars().take(head).chain(['…']).chain(tail).collect()
}

/// Returns a text, or so many bytes of a longer one: half of them from each end, with a line between them that says how many
/// bytes are left out.
#[must_use]
pub fn both_ends(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let head = first_bytes(text, bytes_max / 2);
    let tail = last_bytes(text, bytes_max / 2);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[{left_out} bytes left out]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_ends_before_the_character_that_does_not_fit() {
        for (max, bytes, chars) in [(0, "", ""), (1, "", "ä"), (2, "ä", "äb"), (9, "äbc", "äbc")]
        {
            assert_eq!(first_bytes("äbc", max), bytes, "{max}");
            assert_eq!(first_chars("äbc", max), chars, "{max}");
        }
    }

    #[test]
    fn an_end_begins_after_the_character_that_does_not_fit() {
        for (max, end) in [(0, ""), (1, "c"), (2, "c"), (3, "äc"), (9, "bäc")] {
            assert_eq!(last_bytes("bäc", max), end, "{max}");
        }
        for (lines, bytes, end) in [
            (0, 99, "d"),
            (1, 99, "d"),
            (2, 99, "c\nd"),
            (3, 99, "ab\nc\nd"),
            (3, 5, "b\nc\nd"),
            (9, 99, "ab\nc\nd"),
        ] {
            assert_eq!(last_lines("ab\nc\nd", lines, bytes), end, "{lines} {bytes}");
        }
    }

    #[test]
    fn a_text_past_its_bound_is_split_in_three() {
        assert_eq!(in_three("äbcde", 5), None);
        assert_eq!(in_three("äbcde", 4), Some(["äb", "c", "de"]));
        assert_eq!(in_three("äbcde", 3), Some(["äb", "cd", "e"]));
        assert_eq!(in_three("äbcde", 0), Some(["", "äbcde", ""]));
        assert_eq!(in_three("", 0), None);
    }

    #[test]
    fn a_beginning_is_marked_if_it_is_not_the_whole_text() {
        assert_eq!(with_mark("äb", "äbc", "..."), "äb...");
        assert_eq!(with_mark("äbc", "äbc", "..."), "äbc");
    }

    #[test]
    fn a_mark_stands_for_the_end_of_a_text_past_its_bound() {
        for (max, kept) in [(0, "…"), (1, "…"), (2, "ä…"), (3, "äbc"), (4, "äbc")] {
            assert_eq!(shortened("äbc", max), kept, "{max}");
        }
    }

    #[test]
    fn a_mark_stands_for_the_lines_after_the_first() {
        for (text, line) in [
            ("", ""),
            ("abcd", "abcd"),
            ("abcde", "abc…"),
            ("ab\n", "ab"),
            ("ab\nc", "ab…"),
            ("abcd\ne", "abc…"),
        ] {
            assert_eq!(first_line(text, 4), line, "{text:?}");
        }
    }

    #[test]
    fn a_text_past_its_bound_loses_its_middle() {
        for (max, kept) in [(9, "äbcdefghi"), (8, "äbcde…hi"), (1, "…"), (0, "…")] {
            assert_eq!(without_middle("äbcdefghi", max), kept, "{max}");
        }
        for (max, kept) in [
            (10, "äbcdefghi"),
            (9, "äbc\n[2 bytes left out]\nfghi"),
            (3, "\n[9 bytes left out]\ni"),
        ] {
            assert_eq!(both_ends("äbcdefghi", max), kept, "{max}");
        }
    }
}

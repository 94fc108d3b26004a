//! Texts of so many columns.

use textwrap::core::display_width;

/// Returns the most columns that a character takes: whatever is not ASCII may be two wide.
pub(crate) fn columns_max(character: char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
}

/// Returns the part of a line around its caret that fits into so many columns, with the cursor at the caret.
pub(crate) fn around_caret(before: &str, after: &str, columns: usize) -> String {
    let width = |text: &str| text.chars().map(columns_max).sum::<usize>();
    let room = columns.saturating_sub(width(after).min(columns / 3));
    let hidden = width(before).saturating_sub(room);
    let mut skipped = 0;
    let shown = before.chars().skip_while(|it| {
        let is_hidden = skipped < hidden;
        skipped += columns_max(*it);
        is_hidden
    });
    let shown: String = shown.collect();
    let mut left = columns.saturating_sub(width(&shown));
    let fits = |it: &char| {
        let (rest, is_over) = left.overflowing_sub(columns_max(*it));
        left = rest;
        !is_over
    };
    let after: String = after.chars().take_while(fits).collect();
    match after.is_empty() {
        true => shown,
        // Saved and found again, since only the terminal knows how wide a character is.
        false => format!("{shown}\x1b7{after}\x1b8"),
    }
}

/// Returns a text of at most so many columns. `…` stands for the end of a longer one.
pub(crate) fn shortened_to(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let kept = fitting(text.chars(), columns);
    format!("{}…", kept.trim_end())
}

/// Returns the first characters that leave a column for what says that others are left out.
pub(crate) fn fitting(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    let fits = |it: &char| {
        used += display_width(it.encode_utf8(&mut [0; 4]));
        used < columns
    };
    characters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_around_the_caret_is_shown() {
        for (before, after, columns, shown) in [
            ("0123456789", "", 20, "0123456789"),
            ("0123456789", "", 6, "456789"),
            ("0123456", "789", 6, "3456\x1b778\x1b8"),
            ("", "0123456789", 6, "\x1b7012345\x1b8"),
            ("", "0123456789", 0, ""),
        ] {
            assert_eq!(around_caret(before, after, columns), shown);
        }
    }
}

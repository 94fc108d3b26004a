//! Texts of so many columns.

use textwrap::core::display_width;

/// Returns the most columns that a character takes: whatever is not ASCII may be two wide.
pub(crate) fn columns_max(character: char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
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

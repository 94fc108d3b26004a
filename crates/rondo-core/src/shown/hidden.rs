//! Characters that a terminal hides, or that make it show others differently.

use unicode_general_category::{GeneralCategory, get_general_category as category};

/// Marks that may be on one character. Scripts need up to three; a heap of them covers other lines.
const MARKS_MAX: usize = 3;

/// A character without ink that no property tells from others.
const BRAILLE_BLANK: char = '\u{2800}';

/// Characters for which Unicode lets programs show nothing although their category is that of a letter or a mark: of
/// `Default_Ignorable_Code_Point` (DerivedCoreProperties.txt) all that is neither a format nor
/// unassigned. Unicode has set aside where more of them may come (`U+2060`, `U+FFF0`, `U+E0000`), and
/// what is unassigned is hidden anyway.
const IGNORED: [(char, char); 9] = [
    ('\u{34f}', '\u{34f}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180d}'),
    ('\u{180f}', '\u{180f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{e0100}', '\u{e01ef}'),
];

/// Characters without ink that ordinary text needs: soft hyphens, the break opportunities and joiners of Thai, Persian and
/// Indic scripts and of emoji, and variation selectors, which choose the form of the character before them.
const ORDINARY: [(char, char); 5] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{200b}', '\u{200d}'),
    ('\u{2060}', '\u{2060}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{e0100}', '\u{e01ef}'),
];

/// Returns whether a terminal shows nothing for a character, shows a blank, or moves others because of it.
///
/// Decided by Unicode properties, so that characters of future versions are covered: controls, format
/// characters (bidirectional ones and tags included), default-ignorable ones, line and paragraph separators,
/// private use, unassigned ones, and all white space but the space.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let is_ignored = IGNORED
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c));
    let is_without_ink = matches!(
        category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    );
    is_ignored || is_without_ink || c == BRAILLE_BLANK
}

/// Returns the text with hidden characters escaped, such as `\u{202e}`, except line breaks and tabs.
/// Combining marks without a base character, or stacked too high, are escaped too.
#[must_use]
pub fn visible(text: &str) -> String {
    spelt(text, |c| c == '\n' || c == '\t')
}

/// Like [`visible`], but on one line: line breaks and tabs are escaped as well.
#[must_use]
pub fn line(text: &str) -> String {
    spelt(text, |_| false)
}

/// Returns a text that is only read: like [`visible`], but with the hidden characters that ordinary text needs, such as
/// no-break spaces and the joiners of emoji. Control characters, bidirectional ones and tags are still escaped.
///
/// A text that a person approves is shown by [`visible`], since such characters can make it look like another one.
#[must_use]
pub fn readable(text: &str) -> String {
    spelt(text, |c| c == '\n' || c == '\t' || is_ordinary(c))
}

/// Like [`readable`], but on one line: line breaks and tabs are escaped as well.
#[must_use]
pub fn readable_line(text: &str) -> String {
    spelt(text, is_ordinary)
}

/// Returns whether a character is ordinary in text that is only read, although a terminal shows no ink for it.
#[must_use]
pub fn is_ordinary(c: char) -> bool {
    let is_in = |(first, last): &(char, char)| (*first..=*last).contains(&c);
    ORDINARY.iter().any(is_in) || category(c) == GeneralCategory::SpaceSeparator
}

fn spelt(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    // Nothing to stand on yet.
    let mut marks = MARKS_MAX;
    for c in text.chars() {
        let is_mark = is_mark(c);
        marks = match c {
            _ if is_mark && is_ordinary(c) && stays(c) => marks,
            _ if is_mark => marks.saturating_add(1),
            ' ' | '\n' | '\t' => MARKS_MAX,
            _ => 0,
        };
        if (is_mark && marks > MARKS_MAX) || (is_hidden(c) && !stays(c)) {
            match c {
                '\n' | '\t' | '\r' => shown.extend(c.escape_default()),
                _ => shown.extend(c.escape_unicode()),
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && matches!(
            category(c),
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_or_moves_others_is_spelt_out() {
        for hidden in [
            '\0',
            '\u{7}',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{1160}',
            '\u{1680}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{2000}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202e}',
            '\u{202f}',
            '\u{205f}',
            '\u{2060}',
            '\u{2065}',
            '\u{2066}',
            '\u{206a}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{e000}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{fff9}',
            '\u{fffe}',
            '\u{13430}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e0fff}',
            '\u{f0000}',
            '\u{10fffd}',
        ] {
            let spelt = hidden.escape_unicode().to_string();
            let shown = visible(&format!("a{hidden}b"));
            let is_spelt = shown == format!("a{spelt}b") || shown == "a\\rb";
            assert!(is_spelt, "{spelt}: {shown:?}");
        }
    }

    #[test]
    fn writing_stays_as_it_is() {
        for text in [
            "héllo → 世界 🦀 \t\n",
            "e\u{301}a\u{328}\u{301}",
            "हिन्दी ไทย עִבְרִית العَرَبِيَّة",
            "│ ∑ № ﬁ",
        ] {
            assert_eq!(visible(text), text);
        }
        assert_eq!(line("a\nb\tc\r"), "a\\nb\\tc\\r");
    }

    #[test]
    fn ordinary_text_without_ink_stays_where_it_is_only_read() {
        for text in [
            "\u{26a0}\u{fe0f} careful",
            "10\u{a0}km, 12\u{202f}%",
            "日本\u{3000}語",
            "می\u{200c}خواهم",
            "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f466}",
            "1\u{fe0f}\u{20e3}",
            "soft\u{ad}hyphen",
            "葛\u{e0100}",
        ] {
            assert_eq!(readable(text), text);
            assert_eq!(readable_line(text), text);
            assert_ne!(visible(text), text);
        }
    }

    #[test]
    fn text_that_is_only_read_cannot_steer_or_reorder_the_terminal() {
        for c in "\u{7}\u{1b}\u{9b}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0001}\u{e0041}\u{2028}".chars() {
            let spelt = c.escape_unicode();
            assert_eq!(readable(&format!("a{c}b")), format!("a{spelt}b"));
        }
        assert_eq!(readable_line("a\nb"), "a\\nb");
        assert_eq!(readable("\u{338}x"), "\\u{338}x");
    }

    #[test]
    fn heaps_of_marks_and_marks_on_nothing_are_spelt_out() {
        assert_eq!(
            visible("a\u{301}\u{301}\u{301}\u{301}"),
            "a\u{301}\u{301}\u{301}\\u{301}"
        );
        assert_eq!(visible("\u{338}x \u{20dd}"), "\\u{338}x \\u{20dd}");
    }
}

//! Cuts a long text into messages, with its formatting.

use super::{Entity, FormattedText, units};
use unicode_segmentation::UnicodeSegmentation as _;

/// Cuts a text into parts of at most `units_max` UTF-16 units (at least 2), preferably between paragraphs, else between
/// lines, else between words. Formatting continues in the next part. Parts are never empty; there may be none.
#[must_use]
pub fn split(formatted: &FormattedText, units_max: usize) -> Vec<FormattedText> {
    let mut parts = Vec::new();
    let mut rest = formatted.text.as_str();
    let mut begin = 0;
    while !rest.is_empty() {
        let cut = cut(rest, units_max.max(2));
        let (part, after) = rest.split_at(cut);
        let shown = part.trim_end();
        if !shown.trim().is_empty() {
            parts.push(FormattedText {
                text: shown.to_owned(),
                entities: within(&formatted.entities, begin, units(shown)),
            });
        }
        let next = after.trim_start_matches('\n');
        begin += units(part) + (after.len() - next.len());
        rest = next;
    }
    parts
}

/// Returns the place of the cut, in bytes.
fn cut(text: &str, units_max: usize) -> usize {
    let mut count = 0;
    let mut window = text.len();
    // A sequence shown as one character, such as a family of several emoji, stays whole.
    for (at, it) in text.grapheme_indices(true) {
        count += units(it);
        if count > units_max {
            window = at;
            break;
        }
    }
    if window == 0 {
        window = within_character(text, units_max);
    }
    if window == text.len() {
        return window;
    }
    let fits = text.get(..window).unwrap_or_default();
    // What begins with the break itself would be an empty part; one that is short wastes a message.
    let enough = window / 3;
    let after = |what: &str| fits.rfind(what).map(|at| at + what.len());
    let breaks = [after("\n\n"), after("\n"), after(" ")];
    let found = breaks.into_iter().flatten().find(|at| *at > enough);
    found.unwrap_or(window)
}

/// Returns the place of the cut in a text whose first character alone is longer than a message.
fn within_character(text: &str, units_max: usize) -> usize {
    let mut count = 0;
    let fits = text.char_indices().find(|(_, it)| {
        count += it.len_utf16();
        count > units_max
    });
    fits.map_or(text.len(), |(at, _)| at)
}

fn within(entities: &[Entity], begin: usize, length: usize) -> Vec<Entity> {
    let end = begin + length;
    let cut = entities.iter().filter_map(|entity| {
        let from = entity.at.start.max(begin);
        let to = entity.at.end.min(end);
        (from < to).then(|| Entity {
            kind: entity.kind,
            at: from - begin..to - begin,
            detail: entity.detail.clone(),
        })
    });
    cut.collect()
}

#[cfg(test)]
mod tests {
    use super::super::formatted;
    use super::*;
    use frankenstein::types::MessageEntityType as Kind;
    use proptest::prelude::*;

    fn texts(text: &str, max: usize) -> Vec<String> {
        let parts = split(&FormattedText::plain(text), max);
        parts.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn cuts_are_where_the_text_pauses() {
        assert_eq!(texts("short", 10), ["short"]);
        assert_eq!(texts("aaaa\n\nbb\ncc", 9), ["aaaa", "bb\ncc"]);
        assert_eq!(texts("aaaa bb\ncc dd", 11), ["aaaa bb", "cc dd"]);
        assert_eq!(texts("aaaa bbbb cccc", 10), ["aaaa bbbb", "cccc"]);
        assert_eq!(texts("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(texts(" \n \n", 3), Vec::<String>::new());
    }

    #[test]
    fn no_character_is_cut() {
        assert_eq!(texts("😀😀😀", 3), ["😀", "😀", "😀"]);
        assert_eq!(texts("😀😀😀", 4), ["😀😀", "😀"]);
        let family = "👩\u{200d}👩\u{200d}👧";
        let two = format!("ab{family}{family}");
        assert_eq!(texts(&two, 13), [format!("ab{family}"), family.to_owned()]);
        assert_eq!(texts(family, 4).concat(), family);
    }

    #[test]
    fn formatting_goes_on_in_the_next_part() {
        let code = format!("**b**\n```rust\n{}```", "x();\n".repeat(15));
        let parts = split(&formatted(&code), 30);
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0].entities[0].kind, Kind::Bold);
        for part in &parts {
            let pre = part
                .entities
                .iter()
                .find(|it| it.kind == Kind::Pre)
                .unwrap();
            assert_eq!(pre.detail.as_deref(), Some("rust"));
            assert_eq!(pre.at.end, units(&part.text));
        }
        assert_eq!(parts[1].entities[0].at.start, 0);
    }

    proptest! {
        #[test]
        fn every_part_fits_and_nothing_but_white_space_is_lost(
            markdown in "([a-z*_`#>\\-\\[\\]() \n|😀é]|\n\n){0,400}",
            max in 2usize..80,
        ) {
            let whole = formatted(&markdown);
            let parts = split(&whole, max);
            let black = |text: &str| text.chars().filter(|it| !it.is_whitespace()).collect::<String>();
            let joined: String = parts.iter().map(|it| black(&it.text)).collect();
            prop_assert_eq!(joined, black(&whole.text));
            for part in &parts {
                let length = units(&part.text);
                prop_assert!((1..=max).contains(&length));
                let text: Vec<u16> = part.text.encode_utf16().collect();
                for entity in &part.entities {
                    let covered = text.get(entity.at.clone());
                    prop_assert!(covered.is_some_and(|it| String::from_utf16(it).is_ok()));
                }
            }
        }
    }
}

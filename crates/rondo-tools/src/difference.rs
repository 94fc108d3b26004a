//! Search for characters of a text that differ from those of the file.

/// The fewest characters that have to be the same before a place counts as the one that was meant.
const SAME_CHARS_MIN: usize = 6;
/// The bound on a text whose place is looked for, in characters.
const LOOKED_FOR_MAX: usize = 2_000;
/// The bound on the work: bytes of the file, times the steps that are looked for.
const WORK_BYTES_MAX: usize = 256 << 20;

/// Returns the first character in which `old` differs from the place in `text` that has the most of its beginning.
pub(crate) fn describe(text: &str, old: &str) -> Option<String> {
    let ends: Vec<usize> = old
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .collect();
    let count = ends.len().min(LOOKED_FOR_MAX);
    let steps = usize::try_from(count.checked_ilog2().unwrap_or_default()).unwrap_or_default() + 2;
    if text.len().saturating_mul(steps) > WORK_BYTES_MAX {
        return None;
    }
    // If the text holds a beginning, it holds each shorter one.
    let beginning = |chars: usize| match chars {
        0 => "",
        _ => ends
            .get(chars - 1)
            .and_then(|end| old.get(..*end))
            .unwrap_or_default(),
    };
    let (mut same, mut other) = (0, count + 1);
    while same + 1 < other {
        let middle = usize::midpoint(same, other);
        match text.contains(beginning(middle)) {
            true => same = middle,
            false => other = middle,
        }
    }
    let wanted = old.get(beginning(same).len()..)?.chars().next()?;
    if same < SAME_CHARS_MIN.min(count / 2).max(2) {
        return None;
    }
    let start = text.find(beginning(same))?;
    let at = start + beginning(same).len();
    let there = text.get(at..)?.chars().next();
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    let there = there.map_or_else(
        || "the file ends".to_owned(),
        |it| format!("the file has {}", named(it)),
    );
    Some(format!(
        "the first {same} characters of `old_string` are there; on line {line}, column {column}, {there}, and `old_string` has {}",
        named(wanted)
    ))
}

/// Names a character so that it cannot be taken for another one.
fn named(c: char) -> String {
    let name = match c {
        '\t' => "a tab",
        '\n' => "a line feed",
        '\r' => "a carriage return",
        ' ' => "a space",
        '\u{a0}' => "a no-break space",
        '\u{200b}' => "a zero-width space",
        '\u{feff}' => "a byte order mark",
        '\u{2018}' | '\u{2019}' => "a curly single quote",
        '\u{201c}' | '\u{201d}' => "a curly double quote",
        '\u{2010}' | '\u{2011}' => "a hyphen that is not `-`",
        '\u{2013}' | '\u{2014}' => "a dash",
        c if c.is_ascii_graphic() => return format!("`{c}`"),
        c if c.is_control() || c.is_whitespace() => "a character without ink",
        c => return format!("`{c}` (U+{:04X})", u32::from(c)),
    };
    match c.is_ascii() && !c.is_ascii_control() || matches!(c, '\t' | '\n' | '\r') {
        true => name.to_owned(),
        false => format!("{name} (U+{:04X})", u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_other_character_is_named_with_its_place() {
        let text = "fn main() {\n\tlet it = \u{201c}x\u{201d};\n}\n";
        for (old, differs) in [
            (
                "fn main() {\n    let",
                "line 2, column 1, the file has a tab, and `old_string` has a space",
            ),
            (
                "let it = \"x\"",
                "line 2, column 11, the file has a curly double quote (U+201C), and `old_string` has `\"`",
            ),
            (
                "let it = \u{201c}y",
                "line 2, column 12, the file has `x`, and `old_string` has `y`",
            ),
            (
                "\u{201d};\n}\n\n",
                "line 4, column 1, the file ends, and `old_string` has a line feed",
            ),
            (
                "let it\u{a0}=",
                "line 2, column 8, the file has a space, and `old_string` has a no-break space (U+00A0)",
            ),
        ] {
            let said = describe(text, old).unwrap();
            assert!(said.ends_with(differs), "{old:?}: {said}");
        }
        for old in ["something else", "zzzz", "\u{4f60}\u{597d}"] {
            assert_eq!(describe(text, old), None, "{old}");
        }
        assert_eq!(describe("", "abc"), None);
    }
}

//! Escapes the characters of a line of Markdown that look like marks but are text by CommonMark's rules.
//!
//! The renderer removes every star, even one that opens nothing: `*.rs and *.toml` would lose both.

/// A run of the same mark.
struct Run {
    /// Where it stands in the pieces.
    at: usize,
    mark: char,
    opens: bool,
    closes: bool,
    /// How many of it are text so far.
    loose: usize,
    length: usize,
}

/// Escapes what looks like a mark and is none.
pub(super) fn escape_loose(line: &str) -> String {
    if line.starts_with("    ") && item_marker(line) == 0 || line.starts_with('\t') {
        return line.to_owned();
    }
    let (marker, text) = line.split_at(item_marker(line));
    let mut pieces = vec![marker.to_owned()];
    let mut runs: Vec<Run> = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '`' | '*' | '~' => rest.len() - rest.trim_start_matches(c).len(),
            '\\' => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            _ => rest.find(['`', '*', '~', '\\']).unwrap_or(rest.len()),
        };
        let (run, after) = rest.split_at(length);
        rest = after;
        match c {
            '`' => {
                let (piece, after) = code(run, after);
                pieces.push(piece);
                rest = after;
            }
            '*' | '~' => {
                let next = after.chars().next().unwrap_or(' ');
                let (mut opens, mut closes) = flanks(before, next);
                if length == 1 {
                    // CommonMark would take `*.rs and src/*/mod.rs` for emphasis; people mean files.
                    opens &= before != '/' && !matches!(next, '.' | '/');
                    closes &= before != '/' && next != '/';
                }
                runs.push(Run {
                    at: pieces.len(),
                    mark: c,
                    opens,
                    closes,
                    loose: length,
                    length,
                });
                pieces.push(String::new());
            }
            _ => pieces.push(run.to_owned()),
        }
        before = run.chars().next_back().unwrap_or(' ');
    }
    pair(&mut runs);
    for run in runs {
        let piece = format!("\\{}", run.mark).repeat(run.loose)
            + &run.mark.to_string().repeat(run.length - run.loose);
        if let Some(place) = pieces.get_mut(run.at) {
            *place = piece;
        }
    }
    pieces.concat()
}

/// Returns the length of the marker of a list item, with what stands before it; 0 without one.
pub(super) fn item_marker(line: &str) -> usize {
    let trimmed = line.trim_start_matches(' ');
    let indent = line.len() - trimmed.len();
    let digits = trimmed.len()
        - trimmed
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let marker = match trimmed.get(digits..) {
        Some(rest) if digits == 0 && rest.starts_with(['*', '-', '+']) => 1,
        Some(rest) if (1..=9).contains(&digits) && rest.starts_with(['.', ')']) => digits + 1,
        _ => return 0,
    };
    match trimmed.get(marker..) {
        Some(rest) if rest.starts_with(' ') => indent + marker + 1,
        _ => 0,
    }
}

/// Returns code as the renderer writes it, and what follows it; without an end, it is no code.
fn code<'a>(marks: &str, after: &'a str) -> (String, &'a str) {
    let mut from = 0;
    while let Some(at) = after.get(from..).and_then(|rest| rest.find('`')) {
        let (inner, end) = after.split_at(from + at);
        let length = end.len() - end.trim_start_matches('`').len();
        if length == marks.len() {
            let rest = end.get(length..).unwrap_or_default();
            let piece = if inner.contains('`') {
                inner.replace('`', "\\`")
            } else {
                format!("`{inner}`")
            };
            return (piece, rest);
        }
        from += at + length;
    }
    ("\\`".repeat(marks.len()), after)
}

/// Returns whether marks between these two characters can open, and whether they can close.
fn flanks(before: char, after: char) -> (bool, bool) {
    let side = |inner: char, outer: char| {
        !inner.is_whitespace()
            && (inner.is_alphanumeric() || outer.is_whitespace() || !outer.is_alphanumeric())
    };
    (side(after, before), side(before, after))
}

/// Gives every mark that closes something its opening one; both are text no more.
fn pair(runs: &mut [Run]) {
    for closing in 0..runs.len() {
        let (earlier, from) = runs.split_at_mut(closing);
        let Some(closer) = from.first_mut().filter(|run| run.closes) else {
            continue;
        };
        let openers = earlier.iter_mut().rev();
        for opener in openers.filter(|run| run.opens && run.mark == closer.mark) {
            let both = opener.loose.min(closer.loose);
            // One star is emphasis, two are strong; two tildes strike out, one does nothing.
            let taken = match closer.mark {
                '~' if opener.loose != 2 || closer.loose != 2 => 0,
                _ => both.min(3),
            };
            opener.loose -= taken;
            closer.loose -= taken;
            if closer.loose == 0 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_pair_stay_and_others_are_escaped() {
        for (line, escaped) in [
            (
                "**bold** and *it* and ***both***",
                "**bold** and *it* and ***both***",
            ),
            ("**bold *it***", "**bold *it***"),
            ("*.rs and *.toml", "\\*.rs and \\*.toml"),
            ("*.rs, src/*/a and */b", "\\*.rs, src/\\*/a and \\*/b"),
            ("2 * 3 * 4", "2 \\* 3 \\* 4"),
            ("* item *x*", "* item *x*"),
            ("1. **x** *y", "1. **x** \\*y"),
            ("`*.rs` and ``a`` and `", "`*.rs` and `a` and \\`"),
            ("~~gone~~ and ~~", "~~gone~~ and \\~\\~"),
            ("\\*literal\\*", "\\*literal\\*"),
            ("    code *x", "    code *x"),
            ("äö *ü* 世*界", "äö *ü* 世\\*界"),
        ] {
            assert_eq!(escape_loose(line), escaped);
        }
    }
}

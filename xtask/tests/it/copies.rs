//! Copied code: runs of identical lines in two places.
#![expect(
    clippy::indexing_slicing,
    reason = "positions come from the same lines; a wrong one fails the test that uses it"
)]

use crate::tree;
use std::collections::{BTreeMap, HashMap};

/// The lines from which a run counts.
const LINES_MIN: usize = 6;
/// The bound on pairs of files that share a run (a file with itself is a pair too). It may only fall; the aim is 60.
const PAIRS_MAX: usize = 87;

/// A counted line: its number, from 1, and its text, trimmed.
type Line<'a> = (usize, &'a str);

/// A run and its lines in both files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    lines: usize,
    first: (usize, usize),
    second: (usize, usize),
}

#[test]
fn few_places_hold_the_same_code() {
    let paths = tree::files_ending("rs");
    let sources: Vec<String> = paths.iter().map(|path| tree::read(path)).collect();
    let found = copies(&sources);
    let mut rows: Vec<(usize, String)> = found
        .iter()
        .map(|((a, b), copy)| {
            let (lines, first, second) = (copy.lines, copy.first, copy.second);
            let (a, b) = (&paths[*a], &paths[*b]);
            let row = format!(
                "{lines} lines: {a}:{}-{} and {b}:{}-{}",
                first.0, first.1, second.0, second.1
            );
            (lines, row)
        })
        .collect();
    rows.sort_by(|one, other| other.cmp(one));
    let rows: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
    assert!(
        rows.len() <= PAIRS_MAX,
        "{} pairs of files share {LINES_MIN} lines or more, {PAIRS_MAX} may; one piece can serve both:\n  {}",
        rows.len(),
        rows.join("\n  ")
    );
}

#[test]
fn a_run_is_found_across_comments_blank_lines_and_braces() {
    let run = |name: &str| format!("let {name} = 1;\nb();\nc();\nd();\ne();\nf();\n");
    let first = format!("use x::y;\n{}", run("a"));
    let second = "fn g() {\n    let a = 1;\n\n    // Why.\n    b();\n    {\n        c();\n    }\n    d();\n    e();\n    f();\n}\n";
    let found = copies(&[first.clone(), second.to_owned(), run("z")]);
    let copy = Run {
        lines: 6,
        first: (2, 7),
        second: (2, 11),
    };
    assert_eq!(found, BTreeMap::from([((0, 1), copy)]));
    assert!(copies(std::slice::from_ref(&first)).is_empty());
    assert_eq!(copies(&[format!("{first}{first}")]).len(), 1);
}

#[test]
fn imports_are_left_out_to_their_end() {
    let source = "pub(crate) use a::{\n    b,\n    c,\n};\nuse d::e;\nlet f = 1;\n";
    assert_eq!(lines_that_count(source), [(6, "let f = 1;")]);
}

/// Returns the longest run that each pair of sources shares. Within one source, overlapping runs do not count.
fn copies(sources: &[String]) -> BTreeMap<(usize, usize), Run> {
    let lines: Vec<Vec<Line<'_>>> = sources.iter().map(|text| lines_that_count(text)).collect();
    let mut places: HashMap<Vec<&str>, Vec<(usize, usize)>> = HashMap::new();
    for (file, lines) in lines.iter().enumerate() {
        for (at, window) in lines.windows(LINES_MIN).enumerate() {
            let text = window.iter().map(|(_, text)| *text).collect();
            places.entry(text).or_default().push((file, at));
        }
    }
    let mut found: BTreeMap<(usize, usize), Run> = BTreeMap::new();
    for places in places.values() {
        for (index, first) in places.iter().enumerate() {
            for second in &places[index + 1..] {
                if first.0 == second.0 && second.1 < first.1 + LINES_MIN {
                    continue;
                }
                let copy = shared(&lines, *first, *second);
                let longest = found.entry((first.0, second.0)).or_insert(copy);
                if (copy.lines, longest.first) > (longest.lines, copy.first) {
                    *longest = copy;
                }
            }
        }
    }
    found
}

/// Measures the run that begins at two positions.
fn shared(lines: &[Vec<Line<'_>>], first: (usize, usize), second: (usize, usize)) -> Run {
    let (a, b) = (&lines[first.0][first.1..], &lines[second.0][second.1..]);
    let most = if first.0 == second.0 {
        second.1 - first.1
    } else {
        a.len()
    };
    let equal = a.iter().zip(b).take(most);
    let length = equal.take_while(|(one, other)| one.1 == other.1).count();
    Run {
        lines: length,
        first: (a[0].0, a[length - 1].0),
        second: (b[0].0, b[length - 1].0),
    }
}

/// Returns the lines of code: no imports, comments, blank lines, or lines of punctuation alone.
fn lines_that_count(source: &str) -> Vec<Line<'_>> {
    let mut in_import = false;
    let mut found = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let line = line.trim();
        let code = line
            .trim_start_matches("pub ")
            .trim_start_matches("pub(crate) ");
        in_import |= code.starts_with("use ");
        if !in_import && !line.starts_with("//") && line.contains(char::is_alphanumeric) {
            found.push((index + 1, line));
        }
        in_import &= !line.ends_with(';');
    }
    found
}

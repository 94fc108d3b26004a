//! `sed`, `awk` and `jq` with simple, read-only programs.
//!
//! The known constructs are listed; a program with any other is asked about.

use super::options::Options;
use super::paths::AllowedDirs;
use super::programs;
use super::tables::NOTHING;
use super::words::Value;

const SED: Options = Options {
    flags: "nErsuz",
    values: "e",
    long: &["quiet", "silent", "regexp-extended", "null-data", "posix"],
    long_values: &["expression"],
    ..NOTHING
};

const AWK: Options = Options {
    values: "Fv",
    ..NOTHING
};

const JQ: Options = Options {
    flags: "acCejMnrRsS",
    long: &[
        "ascii-output",
        "color-output",
        "compact-output",
        "exit-status",
        "join-output",
        "monochrome-output",
        "null-input",
        "raw-input",
        "raw-output",
        "slurp",
        "sort-keys",
        "tab",
    ],
    long_values: &["indent"],
    ..NOTHING
};

/// Words of `awk` that read and write nothing but the line at hand.
const AWK_WORDS: &[&str] = &[
    "BEGIN", "END", "FILENAME", "FNR", "FS", "NF", "NR", "OFS", "OFMT", "ORS", "RLENGTH", "RS",
    "RSTART", "SUBSEP", "break", "continue", "count", "delete", "do", "else", "exit", "for",
    "gsub", "if", "in", "index", "int", "length", "line", "match", "name", "next", "print",
    "printf", "seen", "split", "sprintf", "sqrt", "sub", "substr", "sum", "tolower", "total",
    "toupper", "value", "while",
];

/// Functions of `jq` that depend on nothing but their input.
const JQ_WORDS: &[&str] = &[
    "add",
    "all",
    "and",
    "any",
    "arrays",
    "as",
    "ascii_downcase",
    "ascii_upcase",
    "booleans",
    "capture",
    "ceil",
    "contains",
    "def",
    "del",
    "elif",
    "else",
    "empty",
    "end",
    "endswith",
    "entries",
    "error",
    "explode",
    "false",
    "first",
    "flatten",
    "floor",
    "foreach",
    "from_entries",
    "fromjson",
    "group_by",
    "gsub",
    "has",
    "if",
    "implode",
    "in",
    "index",
    "indices",
    "inside",
    "isvalid",
    "iterables",
    "join",
    "keys",
    "keys_unsorted",
    "last",
    "leaf_paths",
    "length",
    "limit",
    "ltrimstr",
    "map",
    "map_values",
    "match",
    "max",
    "max_by",
    "min",
    "min_by",
    "not",
    "now",
    "nth",
    "null",
    "nulls",
    "numbers",
    "objects",
    "or",
    "path",
    "paths",
    "range",
    "recurse",
    "reduce",
    "reverse",
    "round",
    "rtrimstr",
    "scalars",
    "scan",
    "select",
    "sort",
    "sort_by",
    "split",
    "splits",
    "startswith",
    "strings",
    "sub",
    "tail",
    "test",
    "then",
    "to_entries",
    "todate",
    "tojson",
    "tonumber",
    "tostring",
    "tostream",
    "transpose",
    "true",
    "try",
    "catch",
    "type",
    "unique",
    "unique_by",
    "until",
    "utf8bytelength",
    "values",
    "walk",
    "while",
    "with_entries",
    "base64",
    "base64d",
    "csv",
    "html",
    "json",
    "sh",
    "text",
    "tsv",
    "uri",
];

pub(super) fn sed(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let args = programs::read(words, &SED)?;
    let mut scripts = Vec::new();
    let mut paths = args.operands.as_slice();
    if args
        .options
        .iter()
        .any(|option| matches!(*option, "e" | "expression"))
    {
        scripts = given(words)?;
    } else if let Some((script, rest)) = paths.split_first() {
        scripts.push(text(words, *script)?);
        paths = rest;
    }
    if scripts.is_empty() || !scripts.iter().all(|script| is_sed(script)) {
        return Err("its `sed` script is not of the simple kind that only prints".to_owned());
    }
    programs::check_paths(words, paths, dirs)
}

/// The values of `-e SCRIPT`, where each is in a word of its own.
fn given(words: &[Value]) -> Result<Vec<&str>, String> {
    let mut scripts = Vec::new();
    let mut words = words.iter().filter_map(Value::text);
    while let Some(word) = words.next() {
        let is_long = word == "--expression";
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        match short.and_then(|rest| rest.split_once('e')) {
            Some((_, "")) => scripts.push(words.next().unwrap_or_default()),
            None if is_long => scripts.push(words.next().unwrap_or_default()),
            None if word.starts_with("--expression=") => {
                scripts.push(word.trim_start_matches("--expression="));
            }
            Some(_) => return Err("its `sed` script is not understood".to_owned()),
            None => {}
        }
    }
    Ok(scripts)
}

fn text(words: &[Value], index: usize) -> Result<&str, String> {
    let word = words.get(index).and_then(Value::text);
    word.ok_or_else(|| "its program is not known".to_owned())
}

/// Returns whether a script is a list of addresses with `p`, `d`, `q`, `=` or `s/../../`, the latter
/// with flags that write and run nothing.
fn is_sed(script: &str) -> bool {
    if script.contains('\n') {
        return false;
    }
    let mut rest = script.trim_start_matches([' ', ';']);
    while !rest.is_empty() {
        let Some(after) = sed_command(rest) else {
            return false;
        };
        let after = after.trim_start_matches(' ');
        rest = match after.strip_prefix(';') {
            Some(more) => more.trim_start_matches([' ', ';']),
            None if after.is_empty() => after,
            None => return false,
        };
    }
    true
}

fn sed_command(script: &str) -> Option<&str> {
    let mut rest = sed_address(script)?;
    if let Some(after) = rest.strip_prefix(',') {
        let before = after.len();
        rest = sed_address(after.strip_prefix(['+', '~']).unwrap_or(after))?;
        if rest.len() == before {
            return None;
        }
    }
    rest = rest.trim_start_matches([' ', '!']);
    if let Some(rest) = rest.strip_prefix([
        'p', 'd', 'q', '=', 'P', 'D', 'n', 'N', 'G', 'h', 'H', 'g', 'x',
    ]) {
        return Some(rest);
    }
    let delimiter = rest.strip_prefix('s')?.chars().next()?;
    if !"/|#,:@%".contains(delimiter) {
        return None;
    }
    let rest = rest.strip_prefix('s')?.strip_prefix(delimiter)?;
    let rest = sed_pattern(rest, delimiter)?;
    let rest = sed_replacement(rest, delimiter)?;
    Some(rest.trim_start_matches(|c: char| "gpiI0123456789".contains(c)))
}

/// A number, `$`, `FIRST~STEP`, a pattern, or nothing.
fn sed_address(script: &str) -> Option<&str> {
    if let Some(pattern) = script.strip_prefix('/') {
        let rest = sed_pattern(pattern, '/')?;
        return Some(rest.strip_prefix('I').unwrap_or(rest));
    }
    if let Some(rest) = script.strip_prefix('$') {
        return Some(rest);
    }
    Some(script.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~'))
}

/// Versions do not agree whether a delimiter in square brackets ends the pattern.
fn sed_pattern(script: &str, delimiter: char) -> Option<&str> {
    let mut chars = script.chars();
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_brackets => return None,
            '\\' => {
                chars
                    .next()
                    .filter(|c| *c != delimiter || delimiter == '/')?;
            }
            c if c == delimiter => return (!in_brackets).then_some(chars.as_str()),
            '[' if in_brackets => return None,
            '[' => {
                in_brackets = true;
                if chars.as_str().trim_start_matches('^').starts_with(']') {
                    return None;
                }
            }
            ']' => in_brackets = false,
            _ => {}
        }
    }
    None
}

fn sed_replacement(script: &str, delimiter: char) -> Option<&str> {
    let mut chars = script.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars
                .next()
                .filter(|c| *c != delimiter || delimiter == '/')?;
        } else if c == delimiter {
            return Some(chars.as_str());
        }
    }
    None
}

pub(super) fn awk(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let args = programs::read(words, &AWK)?;
    let (program, paths) = args
        .operands
        .split_first()
        .ok_or("its program is not known")?;
    if !is_awk(text(words, *program)?) {
        return Err("its `awk` program is not of the simple kind that only prints".to_owned());
    }
    for index in paths {
        // `NAME=VALUE` sets a variable.
        if text(words, *index)?.contains('=') {
            return Err("its `awk` variables are not understood".to_owned());
        }
    }
    programs::check_paths(words, paths, dirs)
}

/// Returns whether a program is made of known words and of operators that open no file and start no
/// program: `|`, `<` and `@` are none of those, and `>` is one only outside of all braces, where
/// nothing is printed.
fn is_awk(program: &str) -> bool {
    let mut chars = program.chars().peekable();
    let mut braces = 0_usize;
    // The token before, if it tells a pattern from a division.
    let mut before = ';';
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                if !skip_string(&mut chars) {
                    return false;
                }
            }
            '/' if "{};(,!~&|\n".contains(before) => {
                if !skip_regex(&mut chars) {
                    return false;
                }
            }
            '|' if chars.next_if_eq(&'|').is_some() => {}
            '<' if chars.next_if_eq(&'=').is_some() => {}
            '{' => braces += 1,
            '}' if braces > 0 => braces -= 1,
            '>' if braces == 0 => {}
            ' ' | '\t' => continue,
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                let is_short = name.len() <= 2 && name.chars().all(|c| c.is_ascii_lowercase());
                if !is_short && !AWK_WORDS.contains(&name.as_str()) {
                    return false;
                }
            }
            c if c.is_ascii_digit() || "$+-*%=!~()[],;:?.&^\n".contains(c) => {}
            _ => return false,
        }
        before = c;
    }
    true
}

fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    while let Some(c) = chars.next() {
        match c {
            '"' => return true,
            '\n' => return false,
            '\\' if chars.next().is_none_or(|c| c == '\n') => return false,
            _ => {}
        }
    }
    false
}

/// Versions do not agree whether a slash in square brackets ends the pattern.
fn skip_regex(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        match c {
            '/' => return !in_brackets,
            '\n' => return false,
            '\\' if in_brackets || chars.next().is_none_or(|c| c == '\n') => return false,
            '[' if in_brackets => return false,
            '[' => {
                chars.next_if_eq(&'^');
                if chars.peek() == Some(&']') {
                    return false;
                }
                in_brackets = true;
            }
            ']' => in_brackets = false,
            _ => {}
        }
    }
    false
}

pub(super) fn jq(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let args = programs::read(words, &JQ)?;
    let Some((filter, paths)) = args.operands.split_first() else {
        return Ok(());
    };
    if !is_jq(text(words, *filter)?) {
        return Err("its `jq` filter is not of the simple kind that reads its input".to_owned());
    }
    programs::check_paths(words, paths, dirs)
}

/// Returns whether a filter names nothing but fields, variables of its own and known functions; `env`,
/// `$ENV`, `input_filename`, `import` and `include` are not among them.
fn is_jq(filter: &str) -> bool {
    if filter.contains("\\(") {
        return false;
    }
    let mut chars = filter.chars().peekable();
    let mut before = ' ';
    let mut before_blanks = ' ';
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                if !skip_string(&mut chars) {
                    return false;
                }
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                let is_key = matches!(before_blanks, '{' | ',') && is_before_colon(chars.clone());
                let is_named = match before {
                    '.' => true,
                    '$' => !name.starts_with('_') && name != "ENV",
                    _ => is_key || JQ_WORDS.contains(&name.as_str()),
                };
                if !is_named {
                    return false;
                }
            }
            c if c.is_ascii_digit() || " \t\n.,:;|()[]{}?+-*/%=<>!@$".contains(c) => {}
            _ => return false,
        }
        before = match (before, c) {
            // `..name` is not a field.
            ('.', '.') => ' ',
            _ => c,
        };
        if !c.is_whitespace() {
            before_blanks = c;
        }
    }
    true
}

fn is_before_colon(mut rest: std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    rest.find(|c| !c.is_whitespace()) == Some(':')
}

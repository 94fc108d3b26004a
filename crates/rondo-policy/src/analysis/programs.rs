//! Decides whether a simple command is read-only.

use super::options::{self, Options, ParsedArgs};
use super::paths::AllowedDirs;
use super::tables::{Operands, PROGRAMS, Program};
use super::words::Value;
use super::{git_commands, scripts, singular};

/// Tests of `find` without a value.
const FIND_PLAIN: [&str; 24] = [
    "-print",
    "-print0",
    "-ls",
    "-not",
    "!",
    "-o",
    "-or",
    "-a",
    "-and",
    "(",
    ")",
    ",",
    "-prune",
    "-empty",
    "-true",
    "-false",
    "-quit",
    "-depth",
    "-xdev",
    "-mount",
    "-readable",
    "-writable",
    "-executable",
    "-daystart",
];

/// Tests of `find` with a value that is not a file.
const FIND_VALUES: [&str; 25] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-perm",
    "-user",
    "-group",
    "-links",
    "-printf",
];

/// Tests of `find` with a value that is a file.
const FIND_FILES: [&str; 4] = ["-newer", "-anewer", "-cnewer", "-samefile"];

/// Operators of `test` that evaluate nothing; `-v` and `-R` run the substitutions of a subscript.
const TEST_OPERATORS: [&str; 34] = [
    "-f", "-d", "-e", "-s", "-r", "-w", "-x", "-L", "-h", "-z", "-n", "-p", "-S", "-b", "-c", "-g",
    "-u", "-k", "-O", "-G", "-t", "-N", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge",
    "-nt", "-ot", "-ef", "-",
];

/// Refuses a simple command that is not known to be read-only, or that may read outside of the allowed directories.
pub(super) fn check(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let Some((name, words)) = words.split_first() else {
        return Ok(());
    };
    let name = name.text().ok_or("its program is not known")?;
    match name {
        "true" | ":" | "echo" => check_shown(words, dirs),
        "printf" => singular::printf(words, |words| check_shown(words, dirs)),
        "test" => check_test(words, dirs),
        "[" => check_test(closed(words)?, dirs),
        "find" => check_find(words, dirs),
        "git" => git_commands::check(words, dirs),
        "sed" => scripts::sed(words, dirs),
        "awk" | "gawk" | "mawk" => scripts::awk(words, dirs),
        "jq" => scripts::jq(words, dirs),
        "date" => singular::date(words, dirs),
        "ps" => singular::ps(words),
        "command" => singular::command(words),
        "exit" | "break" | "continue" => singular::jump(words),
        _ if singular::is_version(name, words) => Ok(()),
        _ => {
            let table = match name {
                "egrep" | "fgrep" => "grep",
                name => name,
            };
            let program = PROGRAMS
                .iter()
                .find(|program| program.name == table)
                .ok_or_else(|| format!("`{name}` is not on the list of read-only programs"))?;
            check_program(program, words, dirs)
        }
    }
}

fn check_program(program: &Program, words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let args = read(words, &program.options)?;
    match program.operands {
        Operands::Text => Ok(()),
        Operands::Nothing if args.operands.is_empty() => Ok(()),
        Operands::Nothing => Err(format!(
            "the arguments of `{}` are not understood",
            program.name
        )),
        Operands::Files => check_files(words, &args.operands, dirs),
        Operands::Paths => check_paths(words, &args.operands, dirs),
        Operands::OnePath if !is_one_path(words, &args.operands) => {
            Err(format!("`{}` may write to a file", program.name))
        }
        Operands::OnePath => check_paths(words, &args.operands, dirs),
        Operands::PatternThenPaths(given_by) => {
            let is_given = args.options.iter().any(|option| given_by.contains(option));
            let skip = usize::from(!is_given);
            let (pattern, paths) = args.operands.split_at(skip.min(args.operands.len()));
            let is_known = |index: &usize| matches!(words.get(*index), Some(Value::Text(_)));
            if !pattern.iter().all(is_known) {
                return Err("its search pattern is not known".to_owned());
            }
            check_paths(words, paths, dirs)
        }
    }
}

/// A pattern may match several files.
fn is_one_path(words: &[Value], operands: &[usize]) -> bool {
    let is_known = |index: &usize| matches!(words.get(*index), Some(Value::Text(_)));
    operands.len() <= 1 && operands.iter().all(is_known)
}

/// Reads options; a word that may turn into several, or into an option, is refused.
pub(super) fn read<'a>(words: &'a [Value], known: &Options) -> Result<ParsedArgs<'a>, String> {
    if words
        .iter()
        .any(|word| matches!(word, Value::Dynamic | Value::Harmless))
    {
        return Err("some of its words are only known when it runs".to_owned());
    }
    let may_be_option =
        |word: &Value| matches!(word, Value::Pattern(text) if text.starts_with('-'));
    if words.iter().any(may_be_option) {
        return Err("a pattern may match an option".to_owned());
    }
    let texts: Vec<_> = words.iter().map(Value::text).collect();
    options::read(&texts, known)
}

pub(super) fn check_paths(
    words: &[Value],
    operands: &[usize],
    dirs: &AllowedDirs,
) -> Result<(), String> {
    for word in operands.iter().filter_map(|index| words.get(*index)) {
        check_path(word, dirs)?;
    }
    Ok(())
}

/// In a directory there may be links that are followed.
fn check_files(words: &[Value], operands: &[usize], dirs: &AllowedDirs) -> Result<(), String> {
    for word in operands.iter().filter_map(|index| words.get(*index)) {
        let path = word.text().ok_or("the files that it reads are not known")?;
        dirs.check(path)?;
        if dirs.current().join(path).is_dir() {
            return Err(format!("in `{path}` it may follow links"));
        }
    }
    Ok(())
}

fn check_path(word: &Value, dirs: &AllowedDirs) -> Result<(), String> {
    match word {
        Value::Text(path) => dirs.check(path),
        Value::Pattern(pattern) => dirs.check_pattern(pattern),
        Value::Harmless | Value::Dynamic => Err("the files that it reads are not known".to_owned()),
    }
}

/// Whatever the words are, they are only printed; a pattern shows the names it matches.
fn check_shown(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    for word in words {
        match word {
            Value::Text(_) | Value::Harmless => {}
            Value::Pattern(pattern) => dirs.check_pattern(pattern)?,
            Value::Dynamic => return Err("its output is not known".to_owned()),
        }
    }
    Ok(())
}

fn closed(words: &[Value]) -> Result<&[Value], String> {
    match words.split_last() {
        Some((last, words)) if last.text() == Some("]") => Ok(words),
        _ => Err("`[` is not closed".to_owned()),
    }
}

fn check_test(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    for word in words {
        let text = word.text().ok_or("its test is not known")?;
        let is_number = text.parse::<i64>().is_ok();
        if text.starts_with('-') && !is_number && !TEST_OPERATORS.contains(&text) {
            return Err(format!("the test `{text}` is not known to be read-only"));
        }
        dirs.check(text)?;
    }
    Ok(())
}

fn check_find(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let mut words = words.iter().peekable();
    while words
        .next_if(|word| matches!(word.text(), Some("-H" | "-P")))
        .is_some()
    {}
    let begins_test = |word: &Value| {
        word.text()
            .is_some_and(|text| text.starts_with('-') || matches!(text, "(" | ")" | "!" | ","))
    };
    while let Some(path) = words.next_if(|word| !begins_test(word)) {
        check_path(path, dirs)?;
    }
    while let Some(word) = words.next() {
        let test = word.text().ok_or("its tests are not known")?;
        if FIND_PLAIN.contains(&test) {
            continue;
        }
        let is_file = FIND_FILES.contains(&test);
        if !is_file && !FIND_VALUES.contains(&test) {
            return Err(format!("the test `{test}` is not known to be read-only"));
        }
        let value = words.next().and_then(Value::text);
        let value = value.ok_or_else(|| format!("the value of `{test}` is not known"))?;
        if is_file {
            dirs.check(value)?;
        }
    }
    Ok(())
}

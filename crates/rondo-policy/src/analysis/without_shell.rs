//! Commands of one program and its arguments, run without a shell: finds those that would pass text to a shell all the
//! same, or to another interpreter of code.
//!
//! Programs that run others are refused unless they are known to run words as words or code from files: a list of those
//! that do worse could not be complete.

use super::found::Analysis;
use super::words::Value;
use super::wrappers::{SHELLS, base, is_among, is_wrapper, runs_others};

/// Programs that run the file that their first argument names.
const LANGUAGES: &[&str] = &[
    "guile", "java", "julia", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python",
    "Rscript", "ruby", "tclsh", "ts-node", "tsx",
];

/// Modules of Python that run no code of their arguments.
const PYTHON_MODULES: &[&str] = &[
    "black",
    "compileall",
    "json.tool",
    "mypy",
    "pip",
    "pytest",
    "ruff",
    "unittest",
    "venv",
];

/// Programs that run their last arguments as a program with arguments.
const LAUNCHERS: &[&str] = &[
    "chrt", "env", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout",
];

/// Programs that run what files of the directory say.
const BUILDERS: &[&str] = &[
    "ant", "cmake", "gmake", "gradle", "just", "make", "mvn", "ninja", "nox", "task", "tox",
];

/// Returns why a command may not run if there is no shell.
pub(crate) fn refusal(analysis: &Analysis) -> Option<String> {
    if analysis.is_unknown() || analysis.simple.len() != 1 {
        return Some("it is not one program with arguments".to_owned());
    }
    let names = [analysis.names(), analysis.wrapped_names()].concat();
    if let Some(shell) = names.iter().find(|name| is_among(SHELLS, name)) {
        return Some(format!("`{shell}` is a shell"));
    }
    let with_effects = analysis.simple.iter().filter(|it| it.effect.is_some());
    with_effects
        .filter_map(|simple| check(&simple.words).err())
        .next()
}

fn check(words: &[Value]) -> Result<(), String> {
    let Some((name, rest)) = words.split_first() else {
        return Ok(());
    };
    let name = base(name.text().unwrap_or_default());
    if is_among(LANGUAGES, name) {
        return check_language(name, rest);
    }
    if is_among(LAUNCHERS, name) {
        return check_launcher(name, rest);
    }
    if is_among(BUILDERS, name) {
        return check_plain(name, rest);
    }
    match runs_others(words) {
        true => Err(format!("`{name}` may run what its arguments say")),
        false => Ok(()),
    }
}

fn check_language(name: &str, words: &[Value]) -> Result<(), String> {
    let mut words = words.iter().map(|it| it.text().unwrap_or_default());
    let is_python = is_among(&["python", "pypy"], name);
    let runs_file = match words.next() {
        Some("-m") if is_python => words.next().is_some_and(|it| PYTHON_MODULES.contains(&it)),
        // The system's files about the process itself contain its arguments.
        Some(file) => {
            !file.starts_with('-') && !file.starts_with("/proc/") && !file.starts_with("/dev/")
        }
        None => false,
    };
    match runs_file {
        true => Ok(()),
        false => Err(format!("`{name}` runs code here from files alone")),
    }
}

/// Wherever a program that runs others begins, it is checked: which words are options of the launcher does not matter.
fn check_launcher(name: &str, words: &[Value]) -> Result<(), String> {
    let set = words
        .iter()
        .filter(|it| it.text().is_some_and(|it| it.contains('=')));
    // `env` cuts a text into words by `-S`, and many a variable names a command for a shell.
    let splits = |it: &Value| {
        let text = it.text().unwrap_or_default();
        text.starts_with("--s")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains('S'))
    };
    if name == "env" && words.iter().any(splits) {
        return Err("`env` may cut a text into a command".to_owned());
    }
    for word in set {
        check_word(name, word)?;
    }
    for (at, word) in words.iter().enumerate() {
        if word.text().is_some_and(is_wrapper) {
            return check(words.get(at..).unwrap_or_default());
        }
    }
    Ok(())
}

fn check_plain(name: &str, words: &[Value]) -> Result<(), String> {
    for word in words {
        check_word(name, word)?;
        let text = word.text().unwrap_or_default();
        if text.starts_with("--ev") || text.starts_with("-E") {
            return Err(format!("`{name}` runs what this argument says"));
        }
    }
    Ok(())
}

/// Refuses a word that another reading could make several of.
fn check_word(name: &str, word: &Value) -> Result<(), String> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"_-./:=,@%+".contains(&it);
    let text = word.text().filter(|it| it.bytes().all(is_plain));
    match text {
        Some(_) => Ok(()),
        None => Err(format!("`{name}` may run what its arguments say")),
    }
}

//! Programs that are read-only with some arguments, and whose arguments follow no common rule.

use super::options::Options;
use super::paths::AllowedDirs;
use super::programs;
use super::tables::NOTHING;
use super::words::Value;

const DATE: Options = Options {
    flags: "uRn",
    values: "d",
    separate: "r",
    attached: "I",
    long: &["utc", "universal", "iso-8601", "rfc-email", "rfc-3339"],
    long_values: &["date"],
    ..NOTHING
};

/// Fields of `ps`; the environment of processes is not among them.
const FIELDS: [&str; 29] = [
    "%cpu", "%mem", "args", "cmd", "comm", "command", "cputime", "etime", "etimes", "euser",
    "lstart", "nlwp", "ni", "nice", "pcpu", "pgid", "pid", "pmem", "ppid", "pri", "rss", "ruser",
    "sid", "size", "stat", "time", "tty", "uid", "user",
];

/// Options of `ps`, as whole words: it reads letters in more than one way, and some of them show the
/// environment.
const PS: [&str; 15] = [
    "-A",
    "-e",
    "-f",
    "-l",
    "-F",
    "-ef",
    "-eF",
    "-el",
    "-ely",
    "-Af",
    "-AF",
    "--forest",
    "--no-headers",
    "-T",
    "-j",
];

/// Programs that say their version and end, and do not look into the directory for which version of
/// them that is to be.
const VERSIONED: [&str; 14] = [
    "bash", "cc", "clang", "cmake", "docker", "g++", "gcc", "git", "java", "make", "node", "perl",
    "python3", "ruby",
];

/// The most characters of the width in a format.
const WIDTH_CHARS_MAX: usize = 5;

/// Refuses options that set the clock.
pub(super) fn date(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let args = programs::read(words, &DATE)?;
    for index in &args.operands {
        let text = words.get(*index).and_then(Value::text);
        if !text.is_some_and(|text| text.starts_with('+')) {
            return Err("it may set the clock".to_owned());
        }
    }
    // The value of `-r` is a file, the other words are none; all may be checked.
    for text in words.iter().filter_map(Value::text) {
        dirs.check(text)?;
    }
    Ok(())
}

/// Refuses options that show the environment of other processes.
pub(super) fn ps(words: &[Value]) -> Result<(), String> {
    let unknown = || "its process listing is not known".to_owned();
    let texts: Option<Vec<&str>> = words.iter().map(Value::text).collect();
    let texts = texts.ok_or_else(unknown)?;
    if let [text] = texts.as_slice()
        && text.chars().all(|c| "afjluwx".contains(c))
    {
        return Ok(());
    }
    let mut texts = texts.into_iter();
    while let Some(text) = texts.next() {
        let is_known = match text {
            "-o" | "-eo" | "-Ao" => texts.next().is_some_and(|fields| {
                fields
                    .split(',')
                    .all(|field| FIELDS.contains(&field.trim_end_matches('=')))
            }),
            "-p" | "--pid" | "--ppid" => texts.next().is_some_and(|numbers| {
                numbers
                    .split(',')
                    .all(|number| number.parse::<u32>().is_ok())
            }),
            _ => {
                PS.contains(&text)
                    || text
                        .strip_prefix("--sort=")
                        .is_some_and(|field| FIELDS.contains(&field.trim_start_matches(['-', '+'])))
            }
        };
        if !is_known {
            return Err(unknown());
        }
    }
    Ok(())
}

/// `%n` sets a variable, and `-v` does.
pub(super) fn printf(
    words: &[Value],
    check_shown: impl Fn(&[Value]) -> Result<(), String>,
) -> Result<(), String> {
    let format = words.first().and_then(Value::text);
    let format = format.ok_or("its output is not known")?;
    if format.starts_with('-') {
        return Err(format!(
            "the option `{format}` is not known to be read-only"
        ));
    }
    let mut rest = format;
    while let Some((_, conversion)) = rest.split_once('%') {
        let after = conversion.trim_start_matches(|c: char| "-+ #.0123456789".contains(c));
        let mut chars = after.chars();
        if conversion.len() - after.len() > WIDTH_CHARS_MAX {
            return Err("it prints too much".to_owned());
        }
        if !chars.next().is_some_and(|c| "%sdiuxXocbqfgeE".contains(c)) {
            return Err("its format is not understood".to_owned());
        }
        rest = chars.as_str();
    }
    check_shown(words)
}

/// `command -v` says where a program is; without it the program runs.
pub(super) fn command(words: &[Value]) -> Result<(), String> {
    match words {
        [Value::Text(option), names @ ..]
            if matches!(option.as_str(), "-v" | "-V")
                && names
                    .iter()
                    .all(|name| name.text().is_some_and(|name| !name.starts_with('-'))) =>
        {
            Ok(())
        }
        _ => Err("`command` runs what it is given".to_owned()),
    }
}

pub(super) fn jump(words: &[Value]) -> Result<(), String> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match words {
        [] => Ok(()),
        [Value::Text(number)] if is_number(number) => Ok(()),
        _ => Err("the place where it continues is not known".to_owned()),
    }
}

/// Returns whether a program is asked for its version and nothing else.
pub(super) fn is_version(name: &str, words: &[Value]) -> bool {
    let asks = matches!(words, [Value::Text(word)] if word == "--version");
    asks && VERSIONED.contains(&name)
}

//! Choice of the commands that run without asking if the kernel lets them change and send nothing.
//!
//! The sandbox holds whatever runs in it, so this is no matter of safety but of sense: a command that is run for its
//! effect would only fail there, a file of the workspace is nobody's idea of a harmless program, and a path that the
//! sandbox hides would seem not to exist. All these are asked about.

use super::effect_tables::{
    BUILTINS, INLINE, NAMING, SHOWS_VARIABLES, has_effect, means_an_effect,
};
use super::paths::AllowedDirs;
use super::survey::{Placed, Redirected, Survey, resolved, text_of};
use super::words::{Value, Word, is_shown};
use super::{COMMAND_BYTES_MAX, NESTING_MAX, git_looks, is_odd, wrappers};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Directories that the sandbox shows as they are.
const SHOWN: [&str; 12] = [
    "/bin", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/snap", "/sys",
    "/usr",
];
/// Devices that a command may name.
const DEVICES: [&str; 8] = [
    "/dev/fd",
    "/dev/null",
    "/dev/random",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/tty",
    "/dev/urandom",
];
/// Entries of the shown directories that only the administrator may read.
const SECRET: [&str; 7] = [
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
];
/// Programs whose words are not paths.
const TEXT_ONLY: [&str; 9] = [
    ":", "echo", "expr", "false", "let", "printf", "seq", "set", "true",
];
/// Variables that change which code a program loads, and where it finds others.
const LOADING: [&str; 14] = [
    "BASH_ENV",
    "BASHOPTS",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "HOME",
    "NODE_OPTIONS",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "RUBYOPT",
    "SHELLOPTS",
];
/// Variables of the shell that hold no secret.
const OF_SHELL: [&str; 18] = [
    "BASH_VERSION",
    "COLUMNS",
    "EDITOR",
    "EUID",
    "FUNCNAME",
    "IFS",
    "LINENO",
    "LINES",
    "OPTARG",
    "OPTIND",
    "OSTYPE",
    "PAGER",
    "PIPESTATUS",
    "PPID",
    "REPLY",
    "TMPDIR",
    "TZ",
    "UID",
];

/// Returns the names of the programs that a command runs, if it may run without asking in the read-only sandbox.
pub(crate) fn programs(
    command: &str,
    dirs: &AllowedDirs,
    home: Option<&Path>,
) -> Option<Vec<String>> {
    let is_readable = command.len() <= COMMAND_BYTES_MAX && !command.chars().any(is_odd);
    if !is_readable || !dirs.contains(dirs.current()) {
        return None;
    }
    let mut look = ProgramNames {
        dirs,
        home,
        functions: HashSet::new(),
        names: Vec::new(),
        depth: 0,
    };
    let looks = look.text(command, Some(dirs.current()));
    looks.then_some(look.names)
}

struct ProgramNames<'a> {
    dirs: &'a AllowedDirs,
    home: Option<&'a Path>,
    functions: HashSet<String>,
    names: Vec<String>,
    depth: usize,
}

impl ProgramNames<'_> {
    /// Returns whether a text for a shell is read-only, as far as that is known.
    fn text(&mut self, text: &str, directory: Option<&Path>) -> bool {
        self.depth += 1;
        let Some(directory) = directory.filter(|_| self.depth <= NESTING_MAX) else {
            return false;
        };
        let Ok(survey) = Survey::new(text, directory, self.home) else {
            return false;
        };
        self.functions.extend(survey.functions.iter().cloned());
        let has_hidden_commands = |text: &String| text.contains("$(") || text.contains('`');
        let looks = !survey.documents.iter().any(has_hidden_commands)
            && survey.assignments.iter().all(is_harmless_assignment)
            && survey.redirected.iter().all(|it| self.is_read(it))
            && uses_known_variables(&survey)
            && survey.others.iter().all(|it| {
                self.shows(&it.words, it.directory.as_deref())
                    && !it.words.iter().any(hides_command)
            })
            && survey.commands.iter().all(|it| self.command(it));
        self.depth -= 1;
        looks
    }

    fn command(&mut self, placed: &Placed) -> bool {
        let directory = placed.directory.as_deref();
        let name = placed.words.first().map(text_of).unwrap_or_default();
        let operands = placed.words.get(1..).unwrap_or_default();
        let shows_paths = TEXT_ONLY.contains(&name) || self.shows(operands, directory);
        let stays = match name {
            "cd" | "pushd" => self.enters(placed),
            _ => true,
        };
        shows_paths && stays && self.words(&placed.words, directory)
    }

    /// Returns whether a simple command only looks.
    fn words(&mut self, words: &[Word], directory: Option<&Path>) -> bool {
        let Some((first, rest)) = words.split_first() else {
            return true;
        };
        let Some(name) = first.value.text() else {
            return false;
        };
        if self.functions.contains(name) {
            return true;
        }
        let texts: Vec<&str> = rest.iter().map(text_of).collect();
        if BUILTINS.contains(&name) {
            return is_harmless_builtin(name, &texts) && !rest.iter().any(hides_command);
        }
        self.names.push(name.to_owned());
        let base = wrappers::base(name);
        if matches!(texts.as_slice(), ["--version" | "--help"]) {
            return true;
        }
        if let Some(looks) = self.runs_another(base, rest, directory) {
            return looks;
        }
        match INLINE
            .iter()
            .find(|(it, _)| wrappers::is_among(&[it], base))
        {
            Some((language, options)) => is_harmless_code(language, options, rest),
            // One that runs others is let in only if these are known.
            None if wrappers::is_wrapper(base) && !is_among_checked(base) => false,
            None => !has_effect(base) && is_harmless_program(base, &texts),
        }
    }

    /// Judges a program that runs another one, which its words name; none if it is no such program.
    fn runs_another(
        &mut self,
        name: &str,
        rest: &[Word],
        directory: Option<&Path>,
    ) -> Option<bool> {
        let at = match name {
            "command" if matches!(rest.first().map(text_of), Some("-v" | "-V")) => {
                return Some(true);
            }
            "command" | "nohup" | "stdbuf" | "time" | "chronic" => past_options(rest, "ioe"),
            // With `-p` it changes a process that runs.
            "ionice" => past_options(rest, "cnp"),
            "nice" => past_options(rest, "n"),
            "timeout" => past_options(rest, "ks").map(|at| at + 1),
            "env" => past_options(rest, "uC").and_then(|at| self.past_variables(rest, at)),
            "xargs" => past_options(rest, "IndPLsaEe"),
            "find" => return Some(self.find(rest, directory)),
            _ if wrappers::SHELLS.contains(&name) => return Some(self.shell(rest, directory)),
            _ => return None,
        };
        let inner = at.and_then(|at| rest.get(at..)).unwrap_or_default();
        let is_missing = inner.is_empty() && name != "xargs";
        Some(at.is_some() && !is_missing && self.words(inner, directory))
    }

    fn past_variables(&self, rest: &[Word], from: usize) -> Option<usize> {
        let after = rest.get(from..)?;
        let is_assignment = |word: &&Word| text_of(word).contains('=');
        let count = after.iter().take_while(is_assignment).count();
        let all = after.iter().take(count);
        let mut names = all.filter_map(|word| text_of(word).split('=').next());
        names.all(is_harmless_name).then_some(from + count)
    }

    /// `find`, with the commands that it runs.
    fn find(&mut self, rest: &[Word], directory: Option<&Path>) -> bool {
        let mut words = rest;
        while let Some((word, after)) = words.split_first() {
            words = after;
            match text_of(word) {
                "-delete" | "-ok" | "-okdir" | "-fls" | "-fprint" | "-fprint0" | "-fprintf" => {
                    return false;
                }
                "-exec" | "-execdir" => {
                    let is_end = |word: &Word| matches!(text_of(word), ";" | "+");
                    let end = after.iter().position(is_end).unwrap_or(after.len());
                    let (inner, left) = after.split_at(end);
                    if inner.is_empty() || !self.words(inner, directory) {
                        return false;
                    }
                    words = left;
                }
                _ => {}
            }
        }
        true
    }

    /// A shell that is given a text.
    fn shell(&mut self, rest: &[Word], directory: Option<&Path>) -> bool {
        let Some((option, rest)) = rest.split_first() else {
            return false;
        };
        let is_text = matches!(text_of(option), "-c" | "-lc" | "-ec" | "-euc");
        let text = rest.first().and_then(|word| word.value.text());
        is_text && text.is_some_and(|text| self.text(text, directory))
    }

    fn enters(&self, placed: &Placed) -> bool {
        let operand = placed.words.get(1);
        operand.is_some_and(|word| {
            let is_back = text_of(word) == "-";
            is_back || self.is_inside(word, placed.directory.as_deref())
        })
    }

    fn is_inside(&self, word: &Word, directory: Option<&Path>) -> bool {
        match self.place(word, text_of(word), directory) {
            Some(place) => self.dirs.contains(&place),
            // A variable of the command's own.
            None => !matches!(word.value, Value::Text(_)),
        }
    }

    fn place(&self, word: &Word, text: &str, directory: Option<&Path>) -> Option<PathBuf> {
        match text == text_of(word) {
            true => resolved(&word.value, &word.written, directory, self.home),
            false => resolved(&Value::Text(text.to_owned()), text, directory, self.home),
        }
    }

    fn shows(&self, words: &[Word], directory: Option<&Path>) -> bool {
        words.iter().all(|word| self.is_seen(word, directory))
    }

    /// Returns whether the sandbox shows what a word names, if it names a file.
    fn is_seen(&self, word: &Word, directory: Option<&Path>) -> bool {
        let text = text_of(word);
        let value = text.split_once('=').map(|(_, value)| value);
        [Some(text), value]
            .into_iter()
            .flatten()
            .all(|text| self.is_seen_path(word, text, directory))
    }

    fn is_seen_path(&self, word: &Word, text: &str, directory: Option<&Path>) -> bool {
        let is_home = text.starts_with('~') || text.starts_with("$HOME");
        let leads_up = text.split('/').any(|part| part == "..");
        if !text.starts_with('/') && !is_home && !leads_up {
            return true;
        }
        let Some(place) = self.place(word, text, directory) else {
            return !matches!(word.value, Value::Text(_)) && !is_home;
        };
        if self.dirs.contains(&place) {
            return true;
        }
        if SECRET.iter().any(|it| place.starts_with(it)) || place.ends_with("environ") {
            return false;
        }
        let begins = |all: &[&str]| all.iter().any(|it| place.starts_with(it));
        // A missing file is no path but a pattern, or a script such as `/a/,/b/p`.
        let first: PathBuf = place.components().take(2).collect();
        begins(&SHOWN)
            || begins(&DEVICES)
            || (!is_home && place != Path::new("/") && !first.exists())
    }

    /// Returns whether a redirection changes no file.
    fn is_read(&self, redirected: &Redirected) -> bool {
        let text = text_of(&redirected.word);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match redirected.operator {
            "<<<" => true,
            "<" => self.is_seen(&redirected.word, redirected.directory.as_deref()),
            "<&" | ">&" if is_number || text == "-" => true,
            _ => DEVICES.contains(&text),
        }
    }
}

/// Returns the end of the program's options; those in `values` have a value, which may be the next word.
fn past_options(rest: &[Word], values: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(text) = rest.get(at).map(text_of) {
        if text == "--" {
            return Some(at + 1);
        }
        let Some(letters) = text.strip_prefix('-').filter(|it| !it.is_empty()) else {
            break;
        };
        at += 1;
        let is_short = !letters.starts_with('-');
        let takes_next =
            is_short && letters.len() == 1 && letters.chars().all(|c| values.contains(c));
        at += usize::from(takes_next);
    }
    Some(at)
}

/// Returns whether a program that can run others is looked at by [`is_harmless_program`].
fn is_among_checked(name: &str) -> bool {
    const CHECKED: [&str; 9] = [
        "awk", "fd", "fdfind", "gawk", "mawk", "nawk", "rg", "sed", "tar",
    ];
    CHECKED.contains(&name)
}

fn uses_known_variables(survey: &Survey) -> bool {
    let named = survey.commands.iter().filter(|placed| {
        let name = placed.words.first().map(text_of);
        name.is_some_and(|name| NAMING.contains(&name))
    });
    let named: HashSet<&str> = named
        .flat_map(|placed| placed.texts().skip(1))
        .filter_map(|text| text.split(['=', '[', '+', '-']).next())
        .collect();
    survey.used.iter().all(|name| {
        let is_special = !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_special
            || is_shown(name)
            || OF_SHELL.contains(&name.as_str())
            || survey.assigned.contains(name)
            || named.contains(name.as_str())
    })
}

fn is_harmless_assignment(word: &Word) -> bool {
    word.assigned_name().is_some_and(is_harmless_name) && !hides_command(word)
}

/// Returns whether a quoted text has a command in the place of an index, as in `let 'a[$(x)]'`: the shell runs it when it
/// takes the text for the name of a variable, or for arithmetic.
fn hides_command(word: &Word) -> bool {
    let Value::Text(text) = &word.value else {
        return false;
    };
    let mut after = text.split('[').skip(1);
    after.any(|index| index.contains("$(") || index.contains('`'))
}

/// `GIT_PAGER=cat` and its like are harmless; what makes a program load code is not.
fn is_harmless_name(name: &str) -> bool {
    let name = name.split('[').next().unwrap_or(name);
    let loads = ["LD_", "DYLD_", "PYTHON"]
        .iter()
        .any(|it| name.starts_with(it));
    let is_of_git = name.starts_with("GIT_") && name != "GIT_PAGER";
    !loads && !is_of_git && !LOADING.contains(&name)
}

fn is_harmless_builtin(name: &str, texts: &[&str]) -> bool {
    let operands = || texts.iter().filter(|text| !text.starts_with(['-', '+']));
    let shows_variables = SHOWS_VARIABLES.contains(&name)
        && ((texts.is_empty() || name != "set") && operands().next().is_none()
            || texts.iter().any(|text| text.starts_with("-p")));
    let mut names = operands().filter_map(|text| text.split('=').next());
    let is_naming = NAMING.contains(&name) && name != "printf";
    // It calls a command for every so many lines.
    let calls =
        ["mapfile", "readarray"].contains(&name) && texts.iter().any(|it| it.starts_with("-C"));
    !calls && !shows_variables && (!is_naming || names.all(is_harmless_name))
}

/// Returns whether an interpreter is given code in its words, and this only computes and shows something.
fn is_harmless_code(language: &str, options: &[&str], rest: &[Word]) -> bool {
    let texts: Vec<&str> = rest.iter().map(text_of).collect();
    let is_module =
        |name: &str| ["ast", "base64", "calendar", "dis", "json.tool", "tokenize"].contains(&name);
    if let ["-m", name, ..] = texts.as_slice() {
        return language == "python" && is_module(name);
    }
    let at = texts.iter().position(|text| options.contains(text));
    let code = at
        .and_then(|at| rest.get(at + 1))
        .and_then(|word| word.value.text());
    let is_in_place = texts
        .iter()
        .any(|text| text.starts_with("-i") || text.starts_with("-pi"));
    !is_in_place && code.is_some_and(|code| !means_an_effect(code))
}

/// Returns whether a program is not told to do what it could do besides looking.
fn is_harmless_program(name: &str, texts: &[&str]) -> bool {
    let has = |wanted: &[&str]| texts.iter().any(|text| wanted.contains(text));
    let begins = |wanted: &[&str]| {
        let begins = |text: &&str| wanted.iter().any(|it| text.starts_with(it));
        texts.iter().any(begins)
    };
    // `tar` takes its letters without a dash, too.
    let shows = |letters: &str| {
        let first = texts.first();
        let first = first.and_then(|it| it.strip_prefix('-').or((name == "tar").then_some(*it)));
        first.is_some_and(|first| first.contains(|c| letters.contains(c)))
    };
    let is_operand = |text: &&&str| !text.starts_with('-') && text.parse::<u32>().is_err();
    let operands = texts.iter().filter(is_operand).count();
    match name {
        "git" => git_looks::looks(texts),
        "sed" => !begins(&["-i", "--in-place", "-ni", "-Ei", "-ri"]),
        "sort" | "tree" => !begins(&["-o", "--output"]),
        "uniq" | "xxd" => operands < 2,
        "date" => !begins(&["-s", "--set"]),
        "hostname" | "domainname" => operands == 0,
        "yq" | "jq" => !begins(&["-i", "--in-place", "--inplace"]),
        "awk" | "gawk" | "mawk" | "nawk" => !texts.iter().any(|text| changes_in_awk(text)),
        "tail" => !has(&["-f", "-F", "--follow", "--retry"]) && !begins(&["--follow="]),
        "journalctl" | "dmesg" => !begins(&["-f", "--follow", "-w", "-C", "--clear", "--vacuum"]),
        "top" => begins(&["-b"]),
        "tar" | "bsdtar" => shows("t") || has(&["--list"]),
        "unzip" => shows("lvpZt"),
        "gzip" | "gunzip" | "bunzip2" => shows("lct") || begins(&["--list", "--stdout"]),
        "dpkg" => shows("lLsS") || has(&["--get-selections", "--print-architecture"]),
        "rpm" => shows("q"),
        "openssl" => matches!(
            texts.first(),
            Some(&("dgst" | "version" | "ciphers" | "asn1parse"))
        ),
        "rg" | "ugrep" => !begins(&["--pre"]),
        "fd" | "fdfind" => !has(&["-x", "-X", "--exec", "--exec-batch"]),
        "file" => !has(&["-C", "--compile"]),
        _ => true,
    }
}

fn changes_in_awk(script: &str) -> bool {
    let squeezed: String = script.chars().filter(|c| !c.is_whitespace()).collect();
    let marks = [
        "system(",
        ">\"",
        "|\"",
        "|&",
        "ENVIRON",
        "-iinplace",
        "fflush",
    ];
    marks.iter().any(|mark| squeezed.contains(mark))
}

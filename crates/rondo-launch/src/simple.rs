//! Commands that are one program and plain words: a shell would only look for the program and become it.
//!
//! `bash -c 'cargo test'` executes `cargo` in its own place, after it has read its own libraries. A program that is
//! certain to end so is executed at once. Wherever a shell might do anything else, it is left to a shell.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builtins of bash, under any name of bash. `true` and `false` are left out: the programs of these names do
/// the same.
const BUILTINS: [&str; 82] = [
    ".",
    ":",
    "[",
    "[[",
    "]]",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "{",
    "}",
    "!",
    "-",
];
/// Variables with which bash reads or does something first.
const OF_BASH: [&str; 4] = ["BASH_ENV", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT"];
/// Prefix of the variables in which functions are passed to bash.
const FUNCTIONS: &[u8] = b"BASH_FUNC_";

/// A program and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Simple<'a> {
    program: PathBuf,
    words: Vec<&'a str>,
}

impl<'a> Simple<'a> {
    /// Reads a command, which would run in `directory` with `variables`; none if it needs a shell, or its program is
    /// not found: a shell says so.
    pub(crate) fn of(
        command: &'a str,
        variables: &[(OsString, OsString)],
        directory: &Path,
    ) -> Option<Self> {
        let words: Vec<&str> = command.trim_matches([' ', '\n']).split(' ').collect();
        let words: Vec<&str> = words.into_iter().filter(|it| !it.is_empty()).collect();
        let (first, rest) = words.split_first()?;
        let is_program = first.bytes().all(is_of_name) && !BUILTINS.contains(first);
        if !is_program || !rest.iter().all(|it| it.bytes().all(is_plain)) {
            return None;
        }
        let means_more = |(name, _): &(OsString, OsString)| {
            OF_BASH.iter().any(|it| name == it) || name.as_bytes().starts_with(FUNCTIONS)
        };
        if variables.iter().any(means_more) {
            return None;
        }
        let path = variables.iter().find(|(name, _)| name == "PATH");
        let program = found(first, path.map(|it| it.1.as_os_str()), directory)?;
        Some(Self { program, words })
    }

    /// Takes words as they are: none of them means anything but itself.
    ///
    /// # Errors
    /// When the first word leads to no program.
    pub(crate) fn of_words(
        words: &'a [String],
        variables: &[(OsString, OsString)],
        directory: &Path,
    ) -> io::Result<Self> {
        let first = words.first().map(String::as_str).unwrap_or_default();
        let path = variables.iter().find(|(name, _)| name == "PATH");
        let program = found(first, path.map(|it| it.1.as_os_str()), directory);
        let program = program.ok_or_else(|| {
            let message = format!("there is no program `{first}`");
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        let words = words.iter().map(String::as_str).collect();
        Ok(Self { program, words })
    }

    /// Returns the command that executes it, with the variables that a shell would have set.
    pub(crate) fn command(&self, variables: &[(OsString, OsString)], directory: &Path) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(&self.program);
        let (first, rest) = self.words.split_first().unwrap_or((&"", &[]));
        let level = variables.iter().find(|(name, _)| name == "SHLVL");
        let level = level.map_or_else(|| "0".into(), |it| it.1.clone());
        command
            .arg0(first)
            .args(rest)
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("PWD", directory)
            .env("SHLVL", level)
            .env("_", &self.program);
        command
    }
}

/// Returns whether a byte means itself in a word, wherever it is.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./:=,@%+".contains(&byte)
}

/// As [`is_plain`], in the first word: `=` would set a variable, `%` name a job.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./+".contains(&byte)
}

/// Returns the file that a shell would execute.
fn found(name: &str, path: Option<&OsStr>, directory: &Path) -> Option<PathBuf> {
    let can_run = |file: &PathBuf| {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if name.contains('/') {
        return Some(directory.join(name)).filter(can_run);
    }
    let places: Vec<PathBuf> = std::env::split_paths(path?).collect();
    // One that is not absolute is looked for from where the command runs.
    if !places.iter().all(|it| it.is_absolute()) {
        return None;
    }
    places.into_iter().map(|it| it.join(name)).find(can_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let path = ("PATH", "/usr/bin:/bin");
        let all = std::iter::once(&path).chain(more);
        all.map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn words(command: &str) -> Option<Vec<String>> {
        let variables = variables(&[]);
        let simple = Simple::of(command, &variables, Path::new("/"))?;
        Some(simple.words.iter().map(|it| (*it).to_owned()).collect())
    }

    #[test]
    fn a_program_with_plain_words_needs_no_shell() {
        assert_eq!(words("true"), Some(vec!["true".to_owned()]));
        let listed = ["ls", "-la", "--color=never", "./a/b.txt", "a@b:c,d%e+f"];
        assert_eq!(
            words(&format!("  {}\n", listed.join("  "))).unwrap(),
            listed
        );
        assert_eq!(words("/bin/ls x").unwrap(), ["/bin/ls", "x"]);
    }

    #[test]
    fn whatever_a_shell_does_more_about_is_left_to_it() {
        for command in [
            "",
            " ",
            "ls;",
            "ls | cat",
            "ls > x",
            "ls &",
            "ls *",
            "ls ?",
            "ls [a]",
            "ls {a,b}",
            "ls ~",
            "ls $HOME",
            "ls `x`",
            "ls 'a'",
            "ls \"a\"",
            "ls \\a",
            "ls a\tb",
            "ls\nls",
            "ls #x",
            "ls !x",
            "ls ^x",
            "A=b ls",
            "A=b",
            "%1",
            "echo x",
            "cd /",
            "exit",
            "time ls",
            "exec ls",
            "[ a ]",
            "-x",
            ". /etc/profile",
            "no-such-program-x",
            "/etc/passwd",
            "ls é",
        ] {
            assert_eq!(words(command), None, "{command}");
        }
    }

    #[test]
    fn variables_that_bash_reads_leave_it_to_bash() {
        let none = |name| Simple::of("true", &variables(&[(name, "x")]), Path::new("/")).is_none();
        for name in ["BASH_ENV", "SHELLOPTS", "BASH_FUNC_true%%"] {
            assert!(none(name), "{name}");
        }
        assert!(!none("HOME"));
        let relative = vec![("PATH".into(), "bin:/usr/bin".into())];
        assert!(Simple::of("true", &relative, Path::new("/")).is_none());
        assert!(Simple::of("true", &[], Path::new("/")).is_none());
    }

    #[test]
    fn it_finds_what_a_shell_would_have_set() {
        let variables = variables(&[("SHLVL", "3"), ("OWN", "x")]);
        let simple = Simple::of("env", &variables, Path::new("/tmp")).unwrap();
        let mut command = simple.command(&variables, Path::new("/tmp"));
        let ours = command.current_dir("/tmp").output().unwrap();
        let mut bash = Command::new("bash");
        bash.args(["-c", "env"]).env_clear().current_dir("/tmp");
        let theirs = bash.envs(variables).output().unwrap();
        let lines = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&ours.stdout), lines(&theirs.stdout));
    }
}

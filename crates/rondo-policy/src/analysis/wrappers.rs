//! Wrappers: programs that run other programs, which their arguments name.
//!
//! A forbidden program is looked for in the arguments of a wrapper, and a wrapper is never allowed by its
//! name alone.

use super::words::Value;

/// Shells, which are wrappers as well.
pub(super) const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "busybox",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "osh",
    "pdksh",
    "posh",
    "powershell",
    "pwsh",
    "rbash",
    "sash",
    "sh",
    "tcsh",
    "toybox",
    "xonsh",
    "yash",
    "zsh",
];

/// Other programs that run what they are given as words, in a file or as input.
const WRAPPERS: &[&str] = &[
    // The shell's own.
    ".",
    "alias",
    "bind",
    "builtin",
    "command",
    "compgen",
    "complete",
    "coproc",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "function",
    "hash",
    "jobs",
    "let",
    "local",
    "mapfile",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "time",
    "trap",
    "typeset",
    // Languages.
    "awk",
    "bun",
    "bunx",
    "clojure",
    "dc",
    "deno",
    "ed",
    "elixir",
    "emacs",
    "erl",
    "ex",
    "expect",
    "gawk",
    "ghci",
    "groovy",
    "guile",
    "iex",
    "irb",
    "java",
    "jshell",
    "julia",
    "lua",
    "luajit",
    "m4",
    "mawk",
    "nawk",
    "nim",
    "node",
    "nodejs",
    "nvim",
    "ocaml",
    "original-awk",
    "osascript",
    "perl",
    "php",
    "pypy",
    "python",
    "R",
    "racket",
    "rake",
    "Rscript",
    "ruby",
    "runghc",
    "runhaskell",
    "sbcl",
    "scala",
    "sed",
    "swift",
    "tclsh",
    "ts-node",
    "tsx",
    "vi",
    "view",
    "vim",
    "vimdiff",
    "wish",
    // Users, groups, namespaces and roots.
    "bwrap",
    "capsh",
    "chroot",
    "doas",
    "fakechroot",
    "fakeroot",
    "firejail",
    "gosu",
    "login",
    "newgrp",
    "nsenter",
    "nsjail",
    "pkexec",
    "proot",
    "runcon",
    "runuser",
    "sandbox-exec",
    "setarch",
    "setpriv",
    "setuidgid",
    "sg",
    "su",
    "su-exec",
    "sudo",
    "sudoedit",
    "unshare",
    "usermod",
    "visudo",
    // How something runs.
    "arch",
    "caffeinate",
    "cgexec",
    "chpst",
    "chrt",
    "cpulimit",
    "daemon",
    "daemonize",
    "dumb-init",
    "env",
    "envdir",
    "faketime",
    "flock",
    "i386",
    "ionice",
    "launchctl",
    "linux32",
    "linux64",
    "logsave",
    "nice",
    "nohup",
    "numactl",
    "prlimit",
    "proxychains",
    "proxychains4",
    "schedtool",
    "setlock",
    "setsid",
    "softlimit",
    "start-stop-daemon",
    "stdbuf",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "timelimit",
    "timeout",
    "tini",
    "torsocks",
    "tsocks",
    "uclampset",
    "x86_64",
    // Again, later, or once for each.
    "at",
    "batch",
    "chronic",
    "cron",
    "crontab",
    "entr",
    "fd",
    "fdfind",
    "find",
    "hyperfine",
    "ifne",
    "inotifywait",
    "parallel",
    "retry",
    "rg",
    "run-one",
    "run-parts",
    "ts",
    "viddy",
    "watch",
    "watchexec",
    "watchman",
    "xargs",
    // Terminals, sessions and other machines.
    "abduco",
    "ansible",
    "dbus-launch",
    "dbus-run-session",
    "dtach",
    "gnome-terminal",
    "konsole",
    "kubectl",
    "lxc",
    "mosh",
    "nc",
    "ncat",
    "netcat",
    "open",
    "rlwrap",
    "rsh",
    "rsync",
    "screen",
    "script",
    "scriptreplay",
    "slurm",
    "socat",
    "srun",
    "ssh",
    "ssh-agent",
    "sshpass",
    "startx",
    "tmux",
    "tmate",
    "unbuffer",
    "vagrant",
    "xdg-open",
    "xinit",
    "xterm",
    "xvfb-run",
    // Debuggers and tracers.
    "bpftrace",
    "catchsegv",
    "eatmydata",
    "gdb",
    "lldb",
    "ltrace",
    "perf",
    "rr",
    "strace",
    "valgrind",
    // Builders and package managers.
    "ant",
    "cmake",
    "direnv",
    "gmake",
    "gradle",
    "guix",
    "just",
    "make",
    "mise",
    "mvn",
    "ninja",
    "nix",
    "nix-shell",
    "nox",
    "npx",
    "pipenv",
    "pipx",
    "poetry",
    "task",
    "tox",
    "uvx",
    // Options that name a program.
    "cpio",
    "csplit",
    "install",
    "less",
    "man",
    "more",
    "mysql",
    "pg",
    "psql",
    "split",
    "sqlite3",
    "tar",
    "zip",
];

/// Programs that are before another one and say how it runs.
pub(crate) const PREFIXES: &[&str] = &[
    "command", "doas", "env", "exec", "nice", "nohup", "sudo", "time", "timeout", "xargs",
];

/// Programs that add words from their input to the command that they run.
const ADDING: &[&str] = &["parallel", "rush", "xargs"];

/// Programs that read a program from their input when they are given no file.
const INTERPRETERS: &[&str] = &[
    "ash", "bash", "csh", "dash", "deno", "fish", "guile", "irb", "julia", "ksh", "lua", "mksh",
    "node", "nodejs", "perl", "php", "pwsh", "pypy", "python", "R", "ruby", "sh", "ssh", "su",
    "tclsh", "tcsh", "xargs", "zsh",
];

/// Programs that read their words as a shell does, expansions included.
const EXPANDING: &[&str] = &[
    "ash", "bash", "csh", "dash", "eval", "fish", "ksh", "mksh", "script", "sh", "ssh", "su",
    "tcsh", "trap", "watch", "zsh",
];

/// Programs whose words are names of files, or text.
const PLAIN: &[&str] = &[
    "cd", "chgrp", "chmod", "chown", "cp", "echo", "git", "kill", "ln", "mkdir", "mktemp", "mv",
    "popd", "printf", "pushd", "rm", "rmdir", "tee", "test", "touch", "truncate", "[",
];

/// Words of `git` after which it runs a program that follows.
const GIT_RUNS: [&str; 13] = [
    "-c",
    "-x",
    "--exec",
    "--config-env",
    "--exec-path",
    "--upload-pack",
    "--receive-pack",
    "bisect",
    "config",
    "difftool",
    "filter-branch",
    "mergetool",
    "submodule",
];

/// Programs whose first word says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "brew",
    "bun",
    "cargo",
    "docker",
    "gh",
    "git",
    "go",
    "jj",
    "kubectl",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
    "zig",
];

/// Commands of the shell that change how it reads, or where it finds, the commands after them.
const CHANGES_SHELL: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "cd",
    "command",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "hash",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
];

/// Subcommands behind which anything may be.
const SECOND_WRAPPERS: [&str; 10] = [
    "bisect",
    "config",
    "dlx",
    "eval",
    "exec",
    "rebase",
    "run",
    "shell",
    "submodule",
    "x",
];

/// Returns whether a subcommand runs what follows it, so that allowing it would allow everything: `npm exec`,
/// `docker run`.
#[must_use]
pub fn is_second_wrapper(word: &str) -> bool {
    SECOND_WRAPPERS.contains(&word)
}

/// Returns whether a program has subcommands, as in `cargo test`.
#[must_use]
pub fn has_subcommands(name: &str) -> bool {
    is_among(WITH_SUBCOMMANDS, base(name))
}

/// Returns whether a program is a wrapper, so that allowing it by name would allow everything: `sudo`,
/// `python3.12`, `/usr/bin/env`, `find`, `sed`.
#[must_use]
pub fn is_wrapper(name: &str) -> bool {
    let base = base(name);
    is_among(SHELLS, base)
        || is_among(WRAPPERS, base)
        || base.starts_with("ld-linux")
        || base.starts_with("ld-musl")
        || base.starts_with("ld.so")
        || base.starts_with("s6-")
}

/// Returns whether a simple command runs other programs, which its arguments name.
pub(super) fn runs_others(words: &[Value]) -> bool {
    let Some(name) = words.first().and_then(Value::text) else {
        return false;
    };
    let is_told = |word: &Value| {
        word.text().is_none_or(|text| {
            let option = text.split('=').next().unwrap_or(text);
            GIT_RUNS.contains(&option) || text == "rebase" || text == "ext::"
        })
    };
    is_wrapper(name) || (base(name) == "git" && words.iter().skip(1).any(is_told))
}

/// Builtins that read an index of an array in their words as arithmetic, in which what is substituted runs, and the option
/// with which they do; empty if they always do.
const READ_INDICES: &[(&str, &str)] = &[
    ("[", "-v"),
    ("declare", ""),
    ("export", ""),
    ("getopts", ""),
    ("let", ""),
    ("local", ""),
    ("mapfile", ""),
    ("printf", "-v"),
    ("read", ""),
    ("readarray", ""),
    ("readonly", ""),
    ("test", "-v"),
    ("typeset", ""),
    ("unset", ""),
    ("wait", "-p"),
];

/// Returns whether a builtin may run what is substituted within its words, though they are quoted.
pub(super) fn substitutes_in_words(words: &[Value]) -> bool {
    let texts = || words.iter().filter_map(Value::text);
    let name = texts().next().unwrap_or_default();
    let mut known = READ_INDICES.iter();
    let is_read = known
        .any(|(builtin, option)| *builtin == name && texts().any(|text| text.starts_with(option)));
    is_read && texts().any(|text| text.contains("$(") || text.contains('`'))
}

/// Returns whether a program adds words from its input to the command that it runs.
pub(super) fn adds_words(name: &str) -> bool {
    is_among(ADDING, base(name))
}

/// Returns whether a program reads a program from its input.
pub(super) fn is_interpreter(name: &str) -> bool {
    is_among(INTERPRETERS, base(name))
}

/// Returns whether a program reads its words as a shell does.
pub(super) fn is_shell(name: &str) -> bool {
    is_among(EXPANDING, base(name))
}

/// Returns whether a command may change how the shell reads those after it.
pub(super) fn changes_shell(words: &[Value]) -> bool {
    words
        .first()
        .is_none_or(|name| name.text().is_none_or(|name| CHANGES_SHELL.contains(&name)))
}

/// Returns the target of `cd`.
pub(super) fn directory(words: &[Value]) -> Option<&str> {
    match words {
        [Value::Text(name), Value::Text(directory)] if name == "cd" => Some(directory),
        _ => None,
    }
}

/// Returns the words of an unknown program that may be a program that it runs: words that are
/// names, the first of those in a string, and whatever is in an option.
pub(super) fn candidates(words: &[Value]) -> Vec<String> {
    let Some((name, words)) = words.split_first() else {
        return Vec::new();
    };
    let name = base(name.text().unwrap_or_default());
    if PLAIN.contains(&name) {
        return Vec::new();
    }
    // `bun` runs what its first word names, if that is not a command of its own.
    let skipped = usize::from(has_subcommands(name) && name != "bun");
    let mut found = Vec::new();
    for word in words.iter().skip(skipped) {
        let (Value::Text(text) | Value::Pattern(text)) = word else {
            continue;
        };
        if text.starts_with('-') || text.contains('=') {
            found.extend(tokens(text));
        } else {
            found.extend(tokens(text).next());
        }
    }
    found
}

/// Cuts text into what may be names of programs, quotes and escapes removed.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_name = |c: char| c.is_alphanumeric() || "_.+-/".contains(c);
    text.split(move |c: char| !is_name(c) && !"'\"\\".contains(c))
        .map(|token| token.replace(['\'', '"', '\\'], ""))
        .map(|token| token.trim_start_matches('-').to_owned())
        .filter(|token| token.starts_with(|c: char| c.is_alphabetic() || "/._".contains(c)))
}

pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// `python3.12` is `python`.
pub(super) fn is_among(names: &[&str], base: &str) -> bool {
    let unversioned = base.trim_end_matches(|c: char| c.is_ascii_digit() || "._-".contains(c));
    let has_version = !unversioned.is_empty() && unversioned.len() < base.len();
    names.contains(&base) || (has_version && names.contains(&unversioned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_paths_change_nothing() {
        for name in [
            "sudo",
            "/usr/bin/sudo",
            "python3",
            "python3.12",
            "lua5.4",
            ".",
            "ld-linux-x86-64.so.2",
            "perl5.36.0",
            "../bin/env",
            "i386",
            "x86_64",
            "proxychains4",
        ] {
            assert!(is_wrapper(name), "{name}");
        }
        for name in ["touch", "cargo", "ls", "git", "", "cp", "pip3"] {
            assert!(!is_wrapper(name), "{name}");
        }
    }
}

//! Tells the commands that bring text from other machines, so that their output is marked.

use super::analyse;
use super::found::Analysis;
use super::paths::AllowedDirs;
use super::wrappers::tokens;
use std::path::Path;

/// Programs whose output is what another machine says.
const FETCHERS: &[&str] = &[
    "aria2c", "aws", "axel", "az", "curl", "dig", "elinks", "ftp", "gcloud", "gh", "glab",
    "gsutil", "host", "http", "https", "httpie", "kubectl", "links", "lynx", "mosh", "nc", "ncat",
    "netcat", "npx", "nslookup", "rsync", "scp", "sftp", "socat", "ssh", "telnet", "uvx", "w3m",
    "wget", "whois", "xh", "yt-dlp",
];

/// Programs that bring something with some subcommands only.
const WITH_SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("brew", &["info", "install", "search", "upgrade"]),
    ("bun", &["add", "install", "x"]),
    (
        "cargo",
        &["add", "fetch", "info", "install", "search", "update"],
    ),
    ("docker", &["build", "pull", "run", "search"]),
    (
        "git",
        &["clone", "fetch", "ls-remote", "pull", "remote", "submodule"],
    ),
    ("go", &["get", "install", "mod"]),
    (
        "npm",
        &[
            "add", "ci", "exec", "i", "info", "install", "search", "update", "view",
        ],
    ),
    ("pip", &["download", "install"]),
    ("pip3", &["download", "install"]),
    ("pnpm", &["add", "dlx", "i", "install", "update"]),
    ("podman", &["build", "pull", "run", "search"]),
    ("uv", &["add", "pip", "sync", "tool"]),
    ("yarn", &["add", "dlx", "install"]),
];

/// Returns whether [`fetches`] may hold of a command; takes no look at the disk, and next to no time.
///
/// In a command whose words are literal, each program is named in its text.
#[must_use]
pub fn may_fetch(command: &str) -> bool {
    let is_literal = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./=,:+@".contains(&byte);
    let with_subcommands = WITH_SUBCOMMANDS.iter().map(|(program, _)| program);
    let mut programs = FETCHERS.iter().chain(with_subcommands);
    !command.bytes().all(is_literal) || programs.any(|it| command.contains(it))
}

/// Returns whether a command may bring text from another machine, as far as its programs tell: what code does that it
/// runs is not seen.
///
/// Reads directories and links to resolve paths; this may take as long as the disk does.
#[must_use]
pub fn fetches(command: &str) -> bool {
    let Ok(dirs) = AllowedDirs::new(Path::new("/"), &[]) else {
        return true;
    };
    let analysis = analyse(command, &dirs);
    if analysis.is_unknown() {
        return tokens(command).any(|token| names_fetcher(&token));
    }
    let wrapped = analysis.wrapped_names();
    wrapped.iter().any(|name| names_fetcher(name)) || runs_fetcher(&analysis)
}

fn runs_fetcher(analysis: &Analysis) -> bool {
    analysis.commands().any(|words| {
        let Some((program, rest)) = words.split_first() else {
            return false;
        };
        let program = base(program);
        let has = |word: &&str| rest.iter().any(|it| it == word);
        let known = WITH_SUBCOMMANDS.iter().find(|(name, _)| *name == program);
        FETCHERS.contains(&program) || known.is_some_and(|(_, words)| words.iter().any(has))
    })
}

fn names_fetcher(name: &str) -> bool {
    FETCHERS.contains(&base(name))
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

//! The read-only commands of `git`.

use super::options::Options;
use super::paths::AllowedDirs;
use super::tables::NOTHING;
use super::words::Value;
use super::{git_directory, programs};

const STATUS: Options = Options {
    flags: "sbvz",
    values: "",
    separate: "",
    attached: "u",
    long: &[
        "short",
        "branch",
        "porcelain",
        "long",
        "verbose",
        "untracked-files",
        "ignored",
        "ahead-behind",
        "no-ahead-behind",
        "show-stash",
        "no-renames",
        "column",
        "no-column",
    ],
    long_values: &[],
    numbers: false,
};

/// `log`, `diff`, `show` and what is built on them.
const HISTORY: Options = Options {
    flags: "abcgiEFPpRswzW",
    values: "nSGL",
    separate: "",
    attached: "UMCB",
    long: &[
        "oneline",
        "graph",
        "stat",
        "numstat",
        "shortstat",
        "dirstat",
        "summary",
        "patch",
        "no-patch",
        "all",
        "branches",
        "tags",
        "remotes",
        "abbrev-commit",
        "no-abbrev-commit",
        "abbrev",
        "name-only",
        "name-status",
        "decorate",
        "no-decorate",
        "merges",
        "no-merges",
        "first-parent",
        "reverse",
        "follow",
        "cached",
        "staged",
        "merge-base",
        "word-diff",
        "color",
        "no-color",
        "color-words",
        "no-ext-diff",
        "no-textconv",
        "check",
        "quiet",
        "exit-code",
        "find-renames",
        "no-renames",
        "relative-date",
        "date-order",
        "topo-order",
        "author-date-order",
        "ignore-all-space",
        "ignore-space-change",
        "ignore-blank-lines",
        "minimal",
        "patience",
        "histogram",
        "raw",
        "full-index",
        "no-prefix",
        "unified",
        "format",
        "pretty",
        "left-right",
        "cherry-pick",
        "no-notes",
        "root",
        "function-context",
        "ignore-case",
        "all-match",
        "invert-grep",
        "walk-reflogs",
        "simplify-by-decoration",
    ],
    long_values: &[
        "diff-filter",
        "max-count",
        "skip",
        "since",
        "after",
        "until",
        "before",
        "author",
        "committer",
        "grep",
        "date",
    ],
    numbers: true,
};

const BLAME: Options = Options {
    flags: "ceflnstw",
    values: "L",
    attached: "MC",
    long: &[
        "abbrev",
        "color-by-age",
        "color-lines",
        "line-porcelain",
        "porcelain",
        "root",
        "show-email",
        "show-name",
        "show-number",
        "show-stats",
    ],
    ..NOTHING
};

const GREP: Options = Options {
    flags: "EFGILPachilnopqrvwWz",
    values: "ABCem",
    long: &[
        "all-match",
        "and",
        "basic-regexp",
        "break",
        "cached",
        "color",
        "column",
        "count",
        "extended-regexp",
        "files-with-matches",
        "files-without-match",
        "fixed-strings",
        "full-name",
        "function-context",
        "heading",
        "ignore-case",
        "invert-match",
        "line-number",
        "name-only",
        "no-color",
        "null",
        "only-matching",
        "or",
        "perl-regexp",
        "quiet",
        "recursive",
        "show-function",
        "text",
        "word-regexp",
    ],
    long_values: &[
        "after-context",
        "before-context",
        "context",
        "max-count",
        "max-depth",
    ],
    numbers: true,
    ..NOTHING
};

const LS_FILES: Options = Options {
    flags: "cdmostuvz",
    values: "x",
    long: &[
        "abbrev",
        "cached",
        "deduplicate",
        "deleted",
        "directory",
        "eol",
        "exclude-standard",
        "full-name",
        "killed",
        "modified",
        "no-empty-directory",
        "others",
        "stage",
        "unmerged",
    ],
    long_values: &["exclude"],
    ..NOTHING
};

const LS_TREE: Options = Options {
    flags: "dlrtz",
    long: &[
        "abbrev",
        "full-name",
        "full-tree",
        "long",
        "name-only",
        "name-status",
        "object-only",
    ],
    ..NOTHING
};

const REV_PARSE: Options = Options {
    flags: "q",
    long: &[
        "abbrev-ref",
        "absolute-git-dir",
        "all",
        "branches",
        "git-common-dir",
        "git-dir",
        "is-bare-repository",
        "is-inside-git-dir",
        "is-inside-work-tree",
        "is-shallow-repository",
        "quiet",
        "remotes",
        "short",
        "show-cdup",
        "show-object-format",
        "show-prefix",
        "show-toplevel",
        "symbolic",
        "symbolic-full-name",
        "tags",
        "verify",
    ],
    ..NOTHING
};

const BRANCH: Options = Options {
    flags: "arv",
    long: &[
        "all",
        "color",
        "column",
        "contains",
        "ignore-case",
        "list",
        "merged",
        "no-color",
        "no-column",
        "no-contains",
        "no-merged",
        "points-at",
        "remotes",
        "show-current",
        "verbose",
    ],
    ..NOTHING
};

const TAG: Options = Options {
    flags: "il",
    attached: "n",
    long: &["color", "column", "ignore-case", "list", "no-column"],
    ..NOTHING
};

const DESCRIBE: Options = Options {
    long: &[
        "abbrev",
        "all",
        "always",
        "contains",
        "exact-match",
        "first-parent",
        "long",
        "tags",
    ],
    long_values: &["candidates", "exclude", "match"],
    ..NOTHING
};

const MERGE_BASE: Options = Options {
    flags: "a",
    long: &["all", "fork-point", "independent", "is-ancestor", "octopus"],
    ..NOTHING
};

const CAT_FILE: Options = Options {
    flags: "epst",
    ..NOTHING
};

const SHOW_REF: Options = Options {
    flags: "dqs",
    long: &[
        "abbrev",
        "branches",
        "dereference",
        "hash",
        "head",
        "heads",
        "quiet",
        "tags",
        "verify",
    ],
    ..NOTHING
};

const COUNT_OBJECTS: Options = Options {
    flags: "vH",
    long: &["human-readable", "verbose"],
    ..NOTHING
};

const SHORTLOG: Options = Options {
    flags: "censw",
    long: &[
        "all",
        "branches",
        "committer",
        "email",
        "merges",
        "no-merges",
        "numbered",
        "summary",
    ],
    long_values: &["after", "author", "before", "since", "until"],
    ..NOTHING
};

const WORKTREE: Options = Options {
    flags: "vz",
    long: &["porcelain", "verbose"],
    ..NOTHING
};

/// Operands of a `git` command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GitArguments {
    /// Revisions, files and directories.
    Anything,
    /// Nothing, unless one of these options makes it a question: else it makes what it is given.
    OnlyWith(&'static [&'static str]),
}

/// Refuses what is not known to only look inside the allowed directories.
pub(super) fn check(words: &[Value], dirs: &AllowedDirs) -> Result<(), String> {
    let mut dirs = dirs.clone();
    let mut words = words;
    loop {
        match words {
            [Value::Text(option), rest @ ..] if matches!(option.as_str(), "--no-pager" | "-P") => {
                words = rest;
            }
            [Value::Text(option), Value::Text(directory), rest @ ..] if option == "-C" => {
                dirs = inside(&dirs, directory)?;
                words = rest;
            }
            _ => break,
        }
    }
    let (name, rest) = words
        .split_first()
        .and_then(|(name, rest)| Some((name.text()?, rest)))
        .ok_or("its `git` command is not known")?;
    if matches!(name, "--version" | "version") && rest.is_empty() {
        return Ok(());
    }
    let (known, given, rest) = command(name, rest)?;
    let args = programs::read(rest, known)?;
    let is_asked = |option: &&str| args.options.contains(option);
    if name != "log" && is_asked(&"L") && known.values == HISTORY.values {
        // They do not know it and read its value as an option.
        return Err(format!("`-L` is not an option of `git {name}`"));
    }
    if name == "grep" && !is_asked(&"cached") {
        return Err("`git grep` follows links unless it has `--cached`".to_owned());
    }
    if let GitArguments::OnlyWith(options) = given
        && !args.operands.is_empty()
        && !options.iter().any(is_asked)
    {
        return Err(format!("`git {name}` may make what it is given"));
    }
    if rest
        .iter()
        .any(|word| !matches!(word, Value::Text(text) if !checks_signatures(text)))
    {
        return Err("a pattern or a signature check of `git` is not understood".to_owned());
    }
    programs::check_paths(rest, &args.operands, &dirs)?;
    git_directory::check(&dirs)
}

fn inside(dirs: &AllowedDirs, directory: &str) -> Result<AllowedDirs, String> {
    let outside = || format!("`{directory}` may lie outside the allowed directories");
    let inner = dirs
        .in_directory(directory.as_ref())
        .map_err(|_| outside())?;
    if inner.contains(inner.current()) {
        Ok(inner)
    } else {
        Err(outside())
    }
}

type GitCommand<'a> = (&'static Options, GitArguments, &'a [Value]);

/// Returns the options of a command, and its words without the name of a command in it.
fn command<'a>(name: &str, rest: &'a [Value]) -> Result<GitCommand<'a>, String> {
    let anything = |known| Ok((known, GitArguments::Anything, rest));
    let texts: Vec<&str> = rest.iter().map_while(Value::text).collect();
    match (name, texts.as_slice()) {
        ("status", _) => anything(&STATUS),
        ("log" | "diff" | "show" | "rev-list", _) => anything(&HISTORY),
        ("blame" | "annotate", _) => anything(&BLAME),
        ("grep", _) => anything(&GREP),
        ("ls-files", _) => anything(&LS_FILES),
        ("ls-tree", _) => anything(&LS_TREE),
        ("rev-parse", _) => anything(&REV_PARSE),
        ("describe", _) => anything(&DESCRIBE),
        ("merge-base", _) => anything(&MERGE_BASE),
        ("cat-file", _) => anything(&CAT_FILE),
        ("show-ref", _) => anything(&SHOW_REF),
        ("count-objects", _) => anything(&COUNT_OBJECTS),
        ("shortlog", _) => anything(&SHORTLOG),
        ("branch", _) => Ok((&BRANCH, GitArguments::OnlyWith(&BRANCH_LISTS), rest)),
        ("tag", _) => Ok((&TAG, GitArguments::OnlyWith(&["l", "list"]), rest)),
        ("remote", [] | ["-v" | "--verbose"]) if texts.len() == rest.len() => {
            Ok((&REMOTE, GitArguments::Anything, rest))
        }
        ("remote", ["get-url", ..]) => Ok((&REMOTE, GitArguments::Anything, after_first(rest))),
        ("stash", ["list" | "show", ..]) | ("reflog", ["show", ..]) => {
            Ok((&HISTORY, GitArguments::Anything, after_first(rest)))
        }
        ("reflog", []) if rest.is_empty() => anything(&HISTORY),
        ("worktree", ["list", ..]) => Ok((&WORKTREE, GitArguments::Anything, after_first(rest))),
        _ => Err(format!(
            "`git {name}` is not on the list of read-only commands"
        )),
    }
}

fn after_first(words: &[Value]) -> &[Value] {
    words.split_first().map_or(&[], |(_, rest)| rest)
}

const REMOTE: Options = Options {
    flags: "v",
    long: &["all", "push", "verbose"],
    ..NOTHING
};

/// Options that make `git branch` list.
const BRANCH_LISTS: [&str; 6] = [
    "list",
    "contains",
    "no-contains",
    "merged",
    "no-merged",
    "points-at",
];

/// Returns whether a format may make `git log` run `gpg`: `%G?`, `%+GK` and the like.
fn checks_signatures(format: &str) -> bool {
    format
        .split('%')
        .skip(1)
        .any(|rest| rest.trim_start_matches(['+', '-', ' ']).starts_with('G'))
}

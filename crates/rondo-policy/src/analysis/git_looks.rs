//! The commands of `git` that are run to see something.
//!
//! Not those that are known to have no effect, which `git_commands` tells: in the read-only sandbox, what a repository's
//! settings have `git` run can do nothing.

/// Subcommands that only show something.
const SHOWING: [&str; 41] = [
    "annotate",
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "fsck",
    "get-tar-commit-id",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "patch-id",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "stripspace",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "merge-tree",
];

/// Subcommands that show something where their next word is one of these; the empty word stands for none.
const SHOWING_WITH: &[(&str, &[&str])] = &[
    ("bisect", &["log", "view"]),
    ("bundle", &["list-heads", "verify"]),
    ("notes", &["", "list", "show"]),
    ("reflog", &["", "exists", "list", "show"]),
    ("remote", &["", "-v", "--verbose", "get-url"]),
    ("sparse-checkout", &["list"]),
    ("stash", &["list", "show"]),
    ("submodule", &["", "status", "summary"]),
    ("worktree", &["list"]),
];

/// Options of `git config` that show a setting.
const OF_CONFIG: [&str; 10] = [
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--list",
    "-l",
    "get",
    "list",
    "--get-color",
    "--get-colorbool",
];

/// Options of `git branch` and `git tag` that change something.
const OF_REFS: [&str; 28] = [
    "-d",
    "-D",
    "-m",
    "-M",
    "-c",
    "-C",
    "-f",
    "-u",
    "-t",
    "-s",
    "-F",
    "-e",
    "--delete",
    "--move",
    "--copy",
    "--force",
    "--set-upstream-to",
    "--unset-upstream",
    "--edit-description",
    "--track",
    "--create-reflog",
    "--annotate",
    "--sign",
    "--message",
    "--file",
    "--edit",
    "--local-user",
    "--cleanup",
];

/// Options of `git branch` and `git tag` after which a word is not a new name.
const LISTING: [&str; 14] = [
    "-l",
    "--list",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "--sort",
    "--format",
    "-a",
    "-r",
    "-v",
    "-vv",
    "--show-current",
];

/// Returns whether words behind `git` are those of a command that shows something.
pub(super) fn looks(words: &[&str]) -> bool {
    let mut words = words.iter().copied();
    let command = loop {
        match words.next() {
            Some("-C" | "--git-dir" | "--work-tree") => {
                words.next();
            }
            Some("-c") => {
                let setting = words.next().unwrap_or_default();
                let is_of_display = [
                    "color.",
                    "core.pager=cat",
                    "core.quotepath",
                    "log.",
                    "diff.rename",
                ];
                if !is_of_display.iter().any(|it| setting.starts_with(it)) {
                    return false;
                }
            }
            Some(
                "-P"
                | "--no-pager"
                | "-p"
                | "--paginate"
                | "--no-optional-locks"
                | "--literal-pathspecs",
            ) => {}
            Some("--version" | "--help" | "--exec-path" | "--html-path") => return true,
            Some(word) if word.starts_with("--git-dir=") || word.starts_with("--work-tree=") => {}
            Some(word) if word.starts_with('-') => return false,
            Some(word) => break word,
            None => return true,
        }
    };
    let rest: Vec<&str> = words.collect();
    let begins = |option: &str| {
        rest.iter()
            .any(|it| *it == option || it.starts_with(&format!("{option}=")))
    };
    let writes = begins("--output") || begins("--write-tree") || begins("--open-files-in-pager");
    let next = rest.first().copied().unwrap_or_default();
    match command {
        _ if writes => false,
        "config" => rest.iter().any(|it| OF_CONFIG.contains(it)) || is_one_setting(&rest),
        "branch" | "tag" => lists(&rest),
        "symbolic-ref" => {
            rest.iter().filter(|it| !it.starts_with('-')).count() == 1
                && !begins("-d")
                && !begins("--delete")
        }
        "reflog" if !["delete", "drop", "expire"].contains(&next) => true,
        "archive" => false,
        _ if SHOWING.contains(&command) => true,
        _ => SHOWING_WITH
            .iter()
            .any(|(name, shown)| *name == command && shown.contains(&next)),
    }
}

/// `git config user.name` shows a setting.
fn is_one_setting(rest: &[&str]) -> bool {
    let operands: Vec<_> = rest.iter().filter(|it| !it.starts_with('-')).collect();
    let is_plain = rest.iter().filter(|it| it.starts_with('-')).all(|it| {
        [
            "--global",
            "--local",
            "--show-origin",
            "--show-scope",
            "--system",
        ]
        .contains(it)
    });
    is_plain && operands.len() == 1 && operands.iter().all(|it| it.contains('.'))
}

fn lists(rest: &[&str]) -> bool {
    let option = |word: &str| word.split('=').next().unwrap_or(word).to_owned();
    let changes = rest.iter().any(|it| OF_REFS.contains(&option(it).as_str()));
    let is_listed = rest
        .iter()
        .any(|it| LISTING.contains(&option(it).as_str()) || it.starts_with("-n"));
    let has_operand = rest.iter().any(|it| !it.starts_with('-'));
    !changes && (is_listed || !has_operand)
}

//! Messages to the model about refusals of the sandbox.
//!
//! The record of a call has its result as the model read it and no other field for the sandbox, so [`changed_protected`] and
//! [`sandbox_note`] find the parts of the text again by `CHANGED` and `ASK`, which are therefore never reworded.

use rondo_launch::{CallStatus, LOST_MAX};
use rondo_policy::OUTSIDE_SANDBOX;
use rondo_sandbox::{Root, SandboxMode, SandboxSpec, UNDONE_MAX, UndoneChange, shown_path};
use rondo_types::ToolOutcome;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Messages of programs if the kernel refuses something. The kernel reports it to no one else.
const REFUSED: [&str; 11] = [
    // Files that are bound over themselves, such as `.git/config`, cannot be replaced.
    "Device or resource busy",
    "EBUSY",
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "EROFS",
    "EACCES",
    // Programs in Go.
    "device or resource busy",
    "read-only file system",
    "permission denied",
    "operation not permitted",
];
/// Messages of programs that reach no other machine.
const UNREACHED: [&str; 25] = [
    // Cargo and pip are told to be offline, and then say that there is no such package.
    "could not be found in registry index",
    "in registry `crates-io` with version",
    "in registry 'crates-io' with version",
    "No matching distribution found",
    "All attempts to connect to",
    // Poetry is given no time for requests.
    "Attempted to set connect timeout to 0",
    "ENOTCACHED",
    "NO_OFFLINE_META",
    "NO_OFFLINE_TARBALL",
    "Is the docker daemon running",
    // A server that an earlier command started ended with it.
    "Couldn't connect to server",
    "Network is unreachable",
    "network is unreachable",
    "No route to host",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "No address associated with hostname",
    "Failed to establish a new connection",
    "ENETUNREACH",
    "ENOTFOUND",
    "EAI_AGAIN",
    "dns error",
    "--offline",
    "offline mode",
];
/// Messages of programs that miss something.
const MISSING: [&str; 6] = [
    "No such file or directory",
    "ENOENT",
    "command not found",
    "does not appear to be a git repository",
    "does not exist",
    "is not write-able",
];
/// Messages of `git` if it cannot change the settings of a repository; some of its commands continue and succeed.
const SETTINGS_KEPT: [&str; 3] = [
    "could not write config file",
    "could not lock config file",
    "update of config-file failed",
];
/// A program that sets up hooks of `git` when packages are installed, by a setting of the repository. It succeeds if it cannot.
const HUSKY: &str = "husky";
/// Directory of hooks of other such programs.
const HOOKS: &str = ".git/hooks";
/// Messages of programs for which there is another way, and that way.
const KNOWN: [(&str, &str); 4] = [
    (
        "Unable to find a suitable destination",
        "the environment that `poetry` keeps in the home directory can be used but not changed; use one in the project: \
         `POETRY_VIRTUALENVS_IN_PROJECT=true`",
    ),
    (
        "ENOTCACHED",
        "it has no network, and `npm` has a separate cache; `npm_config_cache=~/.npm npm ci --offline` uses the user's cache",
    ),
    (
        "Failed to register url for submodule",
        "a new submodule is written into `.git/config`, which is protected; a person can run `git submodule update --init`",
    ),
    (
        "Invalid cross-device link",
        "a directory above protected files cannot be renamed, and files leave it only as copies: `mv` copies them, `git mv` \
         does not, so use `mv` and `git add`",
    ),
];
/// Parts of lines of a system package manager, which fails for an ordinary user anywhere.
const OF_SYSTEM: [&str; 4] = [
    "/var/lib/dpkg",
    "/var/lib/apt",
    "/var/cache/apt",
    "are you root?",
];
/// Messages that occur in no ordinary output, so that they count after a success too: a later command of the same line
/// may have succeeded.
const CERTAIN: [&str; 6] = [
    "Read-only file system",
    "read-only file system",
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "dns error",
];
/// Messages of `git` if a commit cannot be signed.
const UNSIGNED: [&str; 2] = ["gpg failed to sign", "failed to write commit object"];
/// Commands of `git` that run hooks.
const HOOKED: [&str; 10] = [
    "am",
    "checkout",
    "cherry-pick",
    "commit",
    "merge",
    "pull",
    "push",
    "rebase",
    "revert",
    "switch",
];
/// Programs that go through a directory that is not among their arguments.
const WALKERS: [&str; 7] = ["ack", "ag", "du", "fd", "find", "rg", "tree"];
/// Commands of `git` that go through the working tree.
const OF_TREE: [&str; 9] = [
    "add", "checkout", "clean", "commit", "diff", "grep", "restore", "stash", "status",
];
/// Beginning of the message if something protected was changed.
const CHANGED: &str = "the sandbox protects what the command changed: ";
/// End of the message.
const ASK: &str = ". If it needs more, call it with";
/// Things that were put back and are named.
const NAMED_MAX: usize = 8;

/// Files that are gone and are named, and so many that are hidden.
const LOST_NAMED_MAX: usize = 5;

/// Returns the note for a command that the sandbox refused something, or seems to have.
pub(crate) fn said(status: &CallStatus) -> Option<String> {
    let mode = status.sandbox?;
    let lost = of_lost(&status.lost);
    let undone = of_undone(&status.undone);
    let printed = &status.stdout;
    let has_failed = status.exit_code.is_some_and(|code| code != 0);
    let is_certain = || has_error(printed, &CERTAIN) || has_error(printed, &SETTINGS_KEPT);
    let guess = (has_failed || is_certain())
        .then(|| guess(mode, printed))
        .flatten();
    let said: Vec<String> = lost.into_iter().chain(undone).chain(guess).collect();
    (!said.is_empty()).then(|| {
        format!(
            "{}{ASK} `{OUTSIDE_SANDBOX}`: true and a `justification`: a person is asked",
            said.join("; ")
        )
    })
}

/// Returns whether a line that reads like an error of a program has one of these texts in it.
fn has_error(printed: &str, texts: &[&str]) -> bool {
    let reads_like_one = |line: &&str| {
        let line = line.trim_start().to_ascii_lowercase();
        ["error", "fatal", "warning"]
            .iter()
            .any(|it| line.starts_with(it))
            || line.contains(": ")
    };
    let mut lines = printed.lines().filter(reads_like_one);
    lines.any(|line| texts.iter().any(|it| line.contains(it)))
}

/// Returns why a command may have failed in the sandbox, by what it printed.
fn guess(mode: SandboxMode, printed: &str) -> Option<String> {
    let has = |texts: &[&str]| texts.iter().any(|it| printed.contains(it));
    let known = KNOWN.iter().find(|(text, _)| printed.contains(text));
    let reason = if let Some((_, way)) = known {
        way
    } else if has(&SETTINGS_KEPT) && printed.contains(HUSKY) {
        "`husky` did not set up the hooks of `git` because `.git/config` is protected: commits are not checked until a person \
         runs `npm run prepare`, or the equivalent of another package manager, in a terminal"
    } else if has_error_about(printed, HOOKS, &REFUSED) {
        "the hooks of `git` are protected: new hooks are set up only if a person runs the same command in a terminal"
    } else if has(&UNSIGNED) {
        "the keys that sign commits are hidden from it"
    } else if has(&SETTINGS_KEPT) {
        "`.git/config` is protected: upstream branches, remotes and other settings of the repository stay unchanged, \
         whatever `git` prints afterwards"
    } else if has(&UNREACHED) {
        "it has no network and cannot reach servers that an earlier command started; nothing can be downloaded"
    } else if is_refused(printed) {
        rules(mode)
    } else if has(&MISSING) && names_home(printed) {
        "in the home directory it can only read toolchains, their caches and the settings of `git`"
    } else {
        return None;
    };
    Some(format!(
        "it ran in a sandbox ({reason}), which may be why something failed"
    ))
}

/// Returns whether a line about a path has one of these texts in it.
fn has_error_about(printed: &str, path: &str, texts: &[&str]) -> bool {
    let mut lines = printed.lines().filter(|it| it.contains(path));
    lines.any(|line| texts.iter().any(|it| line.contains(it)))
}

/// Returns whether the kernel refused something that it would perhaps not have refused outside.
fn is_refused(printed: &str) -> bool {
    let has = |line: &str, texts: &[&str]| texts.iter().any(|text| line.contains(text));
    let is_of_system = |line: &&str| !rustix::process::geteuid().is_root() && has(line, &OF_SYSTEM);
    let mut lines = printed.lines().filter(|it| !is_of_system(it));
    lines.any(|line| has(line, &REFUSED))
}

/// Returns the note in a command's result about protected files that the command changed, for a person to read as well.
/// It may be
/// the text of an error, which has the details of it in its second line.
#[must_use]
pub fn changed_protected(result: &Value) -> Option<String> {
    let said = for_person(result)?;
    // Other sentences may be before it.
    Some(said.get(said.find(CHANGED)?..)?.to_owned())
}

/// Returns the note in a command's result about the sandbox besides [`changed_protected`]: what it refused or hid, as
/// far as that can be known. Advice for the model is left out.
#[must_use]
pub fn sandbox_note(result: &Value) -> Option<String> {
    let said = for_person(result)?;
    let said = said
        .split(CHANGED)
        .next()?
        .trim_end_matches(['.', ';', ' ']);
    (!said.is_empty()).then(|| said.to_owned())
}

fn for_person(result: &Value) -> Option<String> {
    let of_text = result.as_str().and_then(|text| {
        let json = text.split_once('\n').map_or(text, |(_, details)| details);
        serde_json::from_str::<Value>(json).ok()
    });
    let result = of_text.as_ref().unwrap_or(result);
    let of_error = result.get("details").and_then(|it| it.get("sandbox"));
    let said = result.get("sandbox").or(of_error)?.as_str()?;
    said.split(ASK).next().map(str::to_owned)
}

fn rules(mode: SandboxMode) -> &'static str {
    match mode {
        SandboxMode::ReadOnly => "it cannot change files and has no network",
        SandboxMode::WorkspaceWrite => {
            "it can change only ordinary files of the working directory and its repository, and has no network"
        }
    }
}

/// Returns whether a text has a path in the home directory in it.
fn names_home(text: &str) -> bool {
    let home = std::env::home_dir();
    let home = home.as_deref().and_then(Path::to_str);
    home.is_some_and(|it| it.len() > 1 && text.contains(it))
}

/// Names the hooks of `git` that did not run in a sandbox, if a command may have been to run some.
#[cfg(target_os = "linux")]
pub(crate) fn of_hooks(spec: &SandboxSpec, directory: &Path, command: &str) -> Option<String> {
    let words: Vec<&str> = command
        .split(|it: char| !it.is_alphanumeric() && it != '-')
        .collect();
    if !words.contains(&"git") || !words.iter().any(|it| HOOKED.contains(it)) {
        return None;
    }
    let hidden = rondo_sandbox::hidden_hooks(spec, directory)?;
    let names: Vec<String> = hidden.names.iter().map(|it| format!("`{it}`")).collect();
    Some(format!(
        "hooks of `git` do not run in the sandbox: {} in `{}`, which `core.hooksPath` of the repository names and the sandbox \
         hides",
        names.join(", "),
        hidden.directory.display()
    ))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_hooks(_: &SandboxSpec, _: &Path, _: &str) -> Option<String> {
    None
}

/// Names the files of its directories that the sandbox hides, if a command names them or a directory above them, if its
/// output does and it failed, or if it goes through its own directory. To the command they are empty, or cannot be
/// read.
pub(crate) fn of_hidden(
    spec: &SandboxSpec,
    directory: &Path,
    status: &CallStatus,
) -> Option<String> {
    let root_of = |hidden: &Path| {
        let mut roots = spec.writable.iter().map(Root::path);
        roots.find(|root| hidden.starts_with(root))
    };
    let hidden = spec.hidden.iter();
    let hidden: Vec<(&PathBuf, &Path)> = hidden.filter_map(|it| Some((it, root_of(it)?))).collect();
    if hidden.is_empty() {
        return None;
    }
    let named = places_named(directory, &status.command);
    let output = (status.exit_code != Some(0)).then_some(&*status.stdout);
    let hidden = hidden.into_iter().filter_map(|(hidden, root)| {
        let is_named = named
            .iter()
            .any(|it| hidden.starts_with(it) || it.starts_with(hidden));
        let name = hidden.file_name()?.to_str()?;
        let is_printed = output.is_some_and(|it| name.len() > 2 && it.contains(name));
        let shown = hidden.strip_prefix(root).unwrap_or(hidden);
        (is_named || is_printed).then(|| format!("`{}`", shown_path(shown)))
    });
    // Files that an ignore file and a rule hide are there twice.
    let hidden: BTreeSet<String> = hidden.collect();
    let more = match hidden.len().saturating_sub(LOST_NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let first: Vec<String> = hidden.into_iter().take(LOST_NAMED_MAX).collect();
    (!first.is_empty()).then(|| {
        format!(
            "`.rondoignore`, the setting `ignored_files` or a rule hides from commands: {}{more}",
            first.join(", ")
        )
    })
}

/// Returns the paths that words of a command would name, and its own directory if it goes through that. Nothing is
/// looked up: a disk
/// may hang.
fn places_named(directory: &Path, command: &str) -> Vec<PathBuf> {
    let ends_word = |it: char| it.is_whitespace() || "'\"`;|&<>(){}$=:".contains(it);
    let words: Vec<&str> = command
        .split(ends_word)
        .filter(|it| !it.is_empty())
        .collect();
    let has = |names: &[&str]| words.iter().any(|it| names.contains(it));
    let goes_through = has(&WALKERS) || has(&["git"]) && has(&OF_TREE);
    let own = goes_through.then_some(".");
    let places = words.iter().copied().chain(own);
    places.map(|it| directory.join(it)).collect()
}

/// Names those of these variables that a command, or its output if it failed, names and did not get.
pub(crate) fn of_variables(kept: &[OsString], status: &CallStatus) -> Option<String> {
    let has_failed = status.exit_code != Some(0);
    let output = has_failed.then_some(&status.stdout);
    let texts: Vec<&String> = output.into_iter().chain([&status.command]).collect();
    let is_named = |name: &&str| texts.iter().any(|text| has_name(text, name));
    let names = kept.iter().filter_map(|it| it.to_str());
    let named: Vec<String> = names
        .filter(is_named)
        .take(NAMED_MAX)
        .map(|it| format!("`{it}`"))
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "of the user's variables the sandbox does not pass {}; the setting `command_env` can add more",
            named.join(", ")
        )
    })
}

/// Returns whether a text has the name of a variable in it as a word of its own. Names without an underscore are looked for
/// as shells write them, since others may be any word.
fn has_name(text: &str, name: &str) -> bool {
    let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + name.len()..).unwrap_or_default();
        let is_whole = !before.ends_with(is_of_name) && !after.starts_with(is_of_name);
        is_whole && (name.contains('_') || before.ends_with('$') || before.ends_with("${"))
    })
}

/// Adds a sentence to what an outcome says of the sandbox.
pub(crate) fn add(outcome: &mut ToolOutcome, sentence: &str) {
    let value = match outcome {
        ToolOutcome::Ok(output) => &mut output.value,
        ToolOutcome::Error(error) => &mut error.details,
    };
    let Some(result) = value.as_object_mut() else {
        return;
    };
    let before = result.get("sandbox").and_then(Value::as_str);
    let said = match before {
        Some(before) => format!("{sentence}. {before}"),
        None => sentence.to_owned(),
    };
    result.insert("sandbox".to_owned(), said.into());
}

/// Names the files that are gone after a command.
fn of_lost(lost: &[String]) -> Option<String> {
    let named: Vec<String> = lost
        .iter()
        .take(LOST_NAMED_MAX)
        .map(|it| format!("`{it}`"))
        .collect();
    let more = match lost.len().saturating_sub(LOST_NAMED_MAX) {
        0 => String::new(),
        more if lost.len() >= LOST_MAX => format!(", and at least {more} more"),
        more => format!(", and {more} more"),
    };
    let verb = if lost.len() == 1 { "is" } else { "are" };
    (!named.is_empty()).then(|| {
        format!(
            "{}{more} {verb} gone now: a sandboxed command has its own temporary home directory and `/tmp`, which are deleted when \
             it ends",
            named.join(", ")
        )
    })
}

/// Names the protected files that were changed.
fn of_undone(undone: &[UndoneChange]) -> Option<String> {
    let named = undone.iter().take(NAMED_MAX).map(|it| {
        let path = shown_path(&it.path);
        let aside = it.aside.as_ref();
        let aside = aside.map_or_else(String::new, |aside| {
            format!(", yours is `{}` now", shown_path(aside))
        });
        let reason = it.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        match it.is_restored {
            true => format!("`{path}`{reason} was restored{aside}"),
            false => format!("`{path}`{reason} could not be restored{aside}"),
        }
    });
    let named: Vec<String> = named.collect();
    let more = match undone.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more if undone.len() >= UNDONE_MAX => format!(", and at least {more} more"),
        more => format!(", and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{CHANGED}{}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(stdout: &str, exit_code: i32) -> CallStatus {
        let status = json!({
            "version": 1, "state": "ended", "pid": 1, "start_time": 0, "command": "x",
            "stdout": stdout, "exit_code": exit_code, "sandbox": "workspace-write",
        });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_failure_that_looks_like_the_sandbox_offers_to_ask() {
        let refused = status("touch: cannot touch '/a': Read-only file system\n", 1);
        let text = said(&refused).unwrap();
        assert!(
            text.contains("may be why something failed")
                && text.contains("`outside_sandbox`: true")
        );
        assert_eq!(said(&status("Read-only file system", 0)), None);
        let compound = status("touch: cannot touch '/a': Read-only file system\nb\n", 0);
        assert!(said(&compound).is_some());
        assert_eq!(said(&status("1 test failed", 1)), None);
        let outside = CallStatus {
            sandbox: None,
            ..refused
        };
        assert_eq!(said(&outside), None);
    }

    #[test]
    fn a_person_reads_what_was_refused_and_not_what_the_model_may_do() {
        let refused = said(&status(
            "touch: cannot touch '/a': Read-only file system\n",
            1,
        ));
        let mut outcome = ToolOutcome::Ok(rondo_types::ToolOutput {
            value: json!({ "sandbox": refused }),
            ..rondo_types::ToolOutput::default()
        });
        let note = |outcome: &ToolOutcome| match outcome {
            ToolOutcome::Ok(output) => sandbox_note(&output.value),
            ToolOutcome::Error(_) => None,
        };
        let first = note(&outcome).unwrap();
        assert!(first.starts_with("it ran in a sandbox ("), "{first}");
        assert!(first.ends_with("may be why something failed"), "{first}");
        add(&mut outcome, "a hook did not run");
        assert_eq!(
            note(&outcome).unwrap(),
            format!("a hook did not run. {first}")
        );
        let changed = json!({"sandbox": format!("a hook did not run. {CHANGED}`.envrc`{ASK} x")});
        assert_eq!(
            sandbox_note(&changed).as_deref(),
            Some("a hook did not run")
        );
        let warned = format!("{CHANGED}`.envrc`");
        assert_eq!(
            changed_protected(&changed).as_deref(),
            Some(warned.as_str())
        );
        assert_eq!(sandbox_note(&json!({ "sandbox": warned })), None);
        assert_eq!(sandbox_note(&json!({"stdout": ""})), None);
    }

    #[test]
    fn a_failure_without_a_network_says_that_there_is_none() {
        for printed in [
            "npm error code EAI_AGAIN",
            "error: failed to get `a` as a dependency: you are in the offline mode (--offline)",
            "error: the crate `a` could not be found in registry index.",
            "ERROR: No matching distribution found for a",
            "Attempted to set connect timeout to 0, but the timeout cannot be set to a value less than or equal to 0.",
        ] {
            let text = said(&status(printed, 1)).unwrap();
            assert!(text.contains("it has no network"), "{printed}: {text}");
            assert_eq!(said(&status(printed, 0)), None);
        }
        let unresolved = status("curl: (6) Could not resolve host: example.org", 0);
        assert!(said(&unresolved).unwrap().contains("it has no network"));
    }

    #[test]
    fn what_can_be_done_instead_is_said_where_it_is_known() {
        for (printed, way) in [
            (
                "Unable to find a suitable destination for \"a.pth\"",
                "IN_PROJECT=true",
            ),
            ("npm error code ENOTCACHED", "npm_config_cache=~/.npm"),
            (
                "error: could not write config file .git/config: Device or resource busy\n\
                 fatal: Failed to register url for submodule path 'a'",
                "`git submodule update --init`",
            ),
            (
                "fatal: renaming 'docs/b' failed: Invalid cross-device link",
                "use `mv` and `git add`",
            ),
        ] {
            let text = said(&status(printed, 1)).unwrap();
            assert!(text.contains(way), "{text}");
        }
    }

    #[test]
    fn hooks_of_git_that_an_installation_could_not_set_up_are_said_in_the_words_of_a_user() {
        let npm = "> app@1.0.0 prepare\n> husky\n\nerror: could not write config file .git/config: Device or resource busy\n\n\
                   added 1 package in 592ms\n";
        let pnpm = ". prepare$ husky\n. prepare: error: could not lock config file .git/config: Read-only file system\n. prepare: Done\n";
        for printed in [npm, pnpm] {
            let text = said(&status(printed, 0)).unwrap();
            assert!(
                text.contains("`husky` did not set up the hooks of `git`"),
                "{text}"
            );
            assert!(text.contains("`npm run prepare`"), "{text}");
        }
        for printed in [
            "Error: open /w/.git/hooks/pre-commit: read-only file system",
            "[ERROR], Was not able to set git hooks. Error: EROFS: read-only file system, open '/w/.git/hooks/pre-commit'",
            "PermissionError: [Errno 13] Permission denied: '.git/hooks/pre-commit'",
        ] {
            let text = said(&status(printed, 1)).unwrap();
            assert!(text.contains("the hooks of `git` are protected"), "{text}");
        }
        let other = said(&status("open /w/.git/x: read-only file system", 1)).unwrap();
        assert!(
            other.contains("it can change only ordinary files"),
            "{other}"
        );
    }

    #[test]
    fn a_package_manager_of_the_system_fails_for_a_user_without_the_sandbox_too() {
        let printed = "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n\
                       E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?";
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(is_refused(printed), is_root);
        assert!(is_refused(&format!(
            "{printed}\ntouch: /x: Permission denied"
        )));
    }

    #[test]
    fn settings_of_git_that_stay_as_they_are_are_said_although_git_succeeded() {
        let printed = "error: could not write config file .git/config: Device or resource busy\n\
                       branch 'track' set up to track 'origin/main'.\n";
        let text = said(&status(printed, 0)).unwrap();
        assert!(text.contains("`.git/config` is protected"), "{text}");
    }

    #[test]
    fn what_is_hidden_is_said_if_it_may_be_the_reason() {
        let home = std::env::home_dir().unwrap();
        let path = home.join("notes").display().to_string();
        let text = said(&status(
            &format!("cat: {path}: No such file or directory"),
            1,
        ));
        assert!(
            text.unwrap()
                .contains("in the home directory it can only read")
        );
        assert_eq!(said(&status("cat: a: No such file or directory", 1)), None);
        let unsigned = "error: gpg failed to sign the data\nfatal: failed to write commit object";
        let text = said(&status(unsigned, 128)).unwrap();
        assert!(text.contains("the keys that sign commits"), "{text}");
    }

    #[test]
    fn what_was_put_back_is_said_whatever_the_exit_code_and_within_a_bound() {
        let mut status = status("", 0);
        let undone = UndoneChange {
            path: "/a/.envrc".into(),
            aside: Some("/a/.envrc.refused".into()),
            is_restored: true,
            reason: None,
        };
        status.undone = vec![undone; NAMED_MAX];
        let text = said(&status).unwrap();
        let of_person = changed_protected(&json!({ "sandbox": text }));
        assert!(
            of_person
                .as_ref()
                .unwrap()
                .ends_with("yours is `/a/.envrc.refused` now")
        );
        let of_error = json!({ "details": { "sandbox": text } });
        assert!(changed_protected(&of_error).is_some());
        let of_timeout = format!(
            "error (timeout): it ran too long\n{}",
            json!({ "sandbox": text })
        );
        assert_eq!(changed_protected(&of_timeout.into()), of_person);
        assert_eq!(changed_protected(&json!("error: none")), None);
        let mut with_hooks = ToolOutcome::Ok(rondo_types::ToolOutput {
            value: json!({ "sandbox": text }),
            ..rondo_types::ToolOutput::default()
        });
        add(&mut with_hooks, "hooks of `git` do not run in the sandbox");
        let ToolOutcome::Ok(with_hooks) = with_hooks else {
            unreachable!()
        };
        assert_eq!(changed_protected(&with_hooks.value), of_person);
        assert_eq!(
            changed_protected(&json!({ "sandbox": "it ran in a sandbox" })),
            None
        );
        assert!(text.contains("yours is `/a/.envrc.refused` now"), "{text}");
        assert!(!text.contains("and 1 more"), "{text}");
        status.undone.push(status.undone[0].clone());
        assert!(said(&status).unwrap().contains("and 1 more"));
        // Of more than these the number is not known.
        status.undone = vec![status.undone[0].clone(); UNDONE_MAX];
        let said = said(&status).unwrap();
        assert!(said.contains("and at least 992 more"), "{said}");
    }
}

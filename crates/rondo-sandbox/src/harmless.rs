//! Which settings of a repository run no program, and lead `git` nowhere else.
//!
//! The list names what is harmless: whatever a later version of `git` reads is not, until it was reviewed.

use crate::git_config::Setting;

/// Effect of a setting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect<'a> {
    /// It runs nothing and leads nowhere else.
    Harmless,
    /// It says which directory the files of the repository are in.
    Worktree(&'a [u8]),
    /// It runs a program or leads `git` elsewhere, or it is not known not to.
    Harmful,
}

/// Harmless values of a setting.
#[derive(Clone, Copy)]
enum Values {
    Any,
    /// No transport that is a program of its own, such as `ext::sh -c ...`.
    Address,
    OneOf(&'static [&'static str]),
    Worktree,
}

use Values::{Address, Any, OneOf, Worktree};

const SWITCH: Values = OneOf(&["true", "false", "yes", "no", "on", "off", "0", "1"]);

/// A section and a name, with `*` for all names of a section.
type KnownSetting = (&'static str, &'static str, Values);

/// Settings of sections that have no part in quotes.
const PLAIN: &[KnownSetting] = &[
    ("advice", "*", Any),
    ("apply", "whitespace", Any),
    ("author", "email", Any),
    ("author", "name", Any),
    ("branch", "autosetupmerge", Any),
    ("branch", "autosetuprebase", Any),
    ("branch", "sort", Any),
    ("checkout", "defaultremote", Any),
    ("checkout", "guess", Any),
    ("checkout", "workers", Any),
    ("color", "*", Any),
    ("column", "*", Any),
    ("commit", "cleanup", Any),
    ("commit", "gpgsign", SWITCH),
    ("commit", "status", Any),
    ("commit", "verbose", Any),
    ("committer", "email", Any),
    ("committer", "name", Any),
    ("core", "abbrev", Any),
    ("core", "autocrlf", Any),
    ("core", "bare", Any),
    ("core", "bigfilethreshold", Any),
    ("core", "checkroundtripencoding", Any),
    ("core", "checkstat", Any),
    ("core", "commentchar", Any),
    ("core", "commitgraph", Any),
    ("core", "compression", Any),
    ("core", "deltabasecachelimit", Any),
    ("core", "eol", Any),
    ("core", "filemode", Any),
    ("core", "fscache", Any),
    ("core", "fsmonitor", OneOf(&["true", "false"])),
    ("core", "fsync", Any),
    ("core", "fsyncmethod", Any),
    ("core", "fsyncobjectfiles", Any),
    ("core", "hidedotfiles", Any),
    ("core", "ignorecase", Any),
    ("core", "logallrefupdates", Any),
    ("core", "longpaths", Any),
    ("core", "loosecompression", Any),
    ("core", "maxtreedepth", Any),
    ("core", "multipackindex", Any),
    ("core", "packedgitlimit", Any),
    ("core", "packedgitwindowsize", Any),
    ("core", "precomposeunicode", Any),
    ("core", "preloadindex", Any),
    ("core", "protecthfs", Any),
    ("core", "protectntfs", Any),
    ("core", "quotepath", Any),
    ("core", "repositoryformatversion", Any),
    ("core", "safecrlf", Any),
    ("core", "sharedrepository", Any),
    ("core", "sparsecheckout", Any),
    ("core", "sparsecheckoutcone", Any),
    ("core", "splitindex", Any),
    ("core", "symlinks", Any),
    ("core", "trustctime", Any),
    ("core", "untrackedcache", Any),
    ("core", "warnambiguousrefs", Any),
    ("core", "whitespace", Any),
    ("core", "worktree", Worktree),
    ("diff", "algorithm", Any),
    ("diff", "colormoved", Any),
    ("diff", "colormovedws", Any),
    ("diff", "context", Any),
    ("diff", "ignoresubmodules", Any),
    ("diff", "indentheuristic", Any),
    ("diff", "interhunkcontext", Any),
    ("diff", "mnemonicprefix", Any),
    ("diff", "noprefix", Any),
    ("diff", "relative", Any),
    ("diff", "renamelimit", Any),
    ("diff", "renames", Any),
    ("diff", "submodule", Any),
    ("diff", "wordregex", Any),
    ("extensions", "*", Any),
    ("feature", "experimental", Any),
    ("feature", "manyfiles", Any),
    ("fetch", "fsckobjects", Any),
    ("fetch", "parallel", Any),
    ("fetch", "prune", Any),
    ("fetch", "prunetags", Any),
    ("fetch", "recursesubmodules", Any),
    ("fetch", "writecommitgraph", Any),
    ("gc", "aggressivedepth", Any),
    ("gc", "aggressivewindow", Any),
    ("gc", "auto", Any),
    ("gc", "autodetach", Any),
    ("gc", "autopacklimit", Any),
    ("gc", "bigpackthreshold", Any),
    ("gc", "cruftpacks", Any),
    ("gc", "logexpiry", Any),
    ("gc", "maxcruftsize", Any),
    ("gc", "packrefs", Any),
    ("gc", "pruneexpire", Any),
    ("gc", "reflogexpire", Any),
    ("gc", "reflogexpireunreachable", Any),
    ("gc", "rerereresolved", Any),
    ("gc", "rerereunresolved", Any),
    ("gc", "worktreepruneexpire", Any),
    ("gc", "writecommitgraph", Any),
    ("help", "autocorrect", Any),
    ("i18n", "*", Any),
    ("index", "*", Any),
    ("init", "defaultbranch", Any),
    ("lfs", "allowincompletepush", Any),
    ("lfs", "concurrenttransfers", Any),
    ("lfs", "fetchexclude", Any),
    ("lfs", "fetchinclude", Any),
    ("lfs", "locksverify", Any),
    ("lfs", "repositoryformatversion", Any),
    ("lfs", "setlockablereadonly", Any),
    ("log", "abbrevcommit", Any),
    ("log", "date", Any),
    ("log", "decorate", Any),
    ("log", "follow", Any),
    ("maintenance", "auto", Any),
    ("maintenance", "strategy", Any),
    ("merge", "autostash", Any),
    ("merge", "conflictstyle", Any),
    ("merge", "ff", Any),
    ("merge", "log", Any),
    ("merge", "renamelimit", Any),
    ("merge", "renames", Any),
    ("merge", "stat", Any),
    ("pack", "*", Any),
    ("protocol", "version", Any),
    ("pull", "ff", Any),
    ("pull", "rebase", Any),
    ("push", "autosetupremote", Any),
    ("push", "default", Any),
    ("push", "followtags", Any),
    ("push", "recursesubmodules", Any),
    ("rebase", "abbreviatecommands", Any),
    ("rebase", "autosquash", Any),
    ("rebase", "autostash", Any),
    ("rebase", "missingcommitscheck", Any),
    ("rebase", "stat", Any),
    ("rebase", "updaterefs", Any),
    ("receive", "denycurrentbranch", Any),
    ("receive", "denydeletes", Any),
    ("receive", "denynonfastforwards", Any),
    ("receive", "fsckobjects", Any),
    ("remote", "pushdefault", Address),
    ("repack", "*", Any),
    ("rerere", "autoupdate", Any),
    ("rerere", "enabled", Any),
    ("stash", "*", Any),
    ("status", "*", Any),
    ("submodule", "active", Any),
    ("submodule", "alternateerrorstrategy", Any),
    ("submodule", "alternatelocation", Any),
    ("submodule", "fetchjobs", Any),
    ("submodule", "propagatebranches", Any),
    ("submodule", "recurse", Any),
    ("tag", "gpgsign", SWITCH),
    ("tag", "sort", Any),
    ("transfer", "fsckobjects", Any),
    ("user", "email", Any),
    ("user", "name", Any),
    ("user", "useconfigonly", Any),
    ("worktree", "guessremote", Any),
    ("worktree", "userelativepaths", Any),
];

/// Settings of sections with a part in quotes, whatever that is.
const QUALIFIED: &[KnownSetting] = &[
    ("branch", "description", Any),
    ("branch", "gh-merge-base", Any),
    ("branch", "github-pr-owner-number", Any),
    ("branch", "merge", Any),
    ("branch", "pushremote", Address),
    ("branch", "rebase", Any),
    ("branch", "remote", Address),
    ("branch", "vscode-merge-base", Any),
    ("color", "*", Any),
    ("lfs", "access", OneOf(&["none", "basic", "negotiate"])),
    ("lfs", "locksverify", Any),
    ("remote", "fetch", Any),
    ("remote", "followremotehead", Any),
    ("remote", "gh-resolved", Any),
    ("remote", "mirror", Any),
    ("remote", "partialclonefilter", Any),
    ("remote", "promisor", Any),
    ("remote", "prune", Any),
    ("remote", "prunetags", Any),
    ("remote", "push", Any),
    ("remote", "pushurl", Address),
    ("remote", "skipdefaultupdate", Any),
    ("remote", "skipfetchall", Any),
    ("remote", "tagopt", OneOf(&["--tags", "--no-tags"])),
    ("remote", "url", Address),
    ("submodule", "active", Any),
    ("submodule", "branch", Any),
    ("submodule", "fetchrecursesubmodules", Any),
    ("submodule", "ignore", Any),
    ("submodule", "shallow", Any),
    (
        "submodule",
        "update",
        OneOf(&["checkout", "rebase", "merge", "none"]),
    ),
    ("submodule", "url", Address),
];

/// Settings that Git LFS writes into each repository that uses it: a part in quotes, a name and a value.
const OF_LFS: [(&str, &str); 4] = [
    ("clean", "git-lfs clean -- %f"),
    ("smudge", "git-lfs smudge -- %f"),
    ("process", "git-lfs filter-process"),
    ("required", "true"),
];

impl Setting {
    /// Returns its effect.
    pub(crate) fn effect(&self) -> Effect<'_> {
        let (section, between, name) = self.parts();
        let value = self.value.as_deref();
        if (section, between) == (b"filter", Some(b"lfs")) {
            let is_known =
                |it: &(&str, &str)| it.0.as_bytes() == name && Some(it.1.as_bytes()) == value;
            return match OF_LFS.iter().any(is_known) {
                true => Effect::Harmless,
                false => Effect::Harmful,
            };
        }
        let known = if between.is_some() { QUALIFIED } else { PLAIN };
        let fits = |it: &&KnownSetting| {
            it.0.as_bytes() == section && (it.1 == "*" || it.1.as_bytes() == name)
        };
        let Some((_, _, values)) = known.iter().find(fits) else {
            return Effect::Harmful;
        };
        let is_harmless = match values {
            Any => true,
            Worktree => return Effect::Worktree(value.unwrap_or_default()),
            // A missing value counts as true.
            OneOf(known) => value.is_none_or(|it| known.iter().any(|one| one.as_bytes() == it)),
            Address => value.is_none_or(is_plain_address),
        };
        if is_harmless {
            Effect::Harmless
        } else {
            Effect::Harmful
        }
    }
}

/// Returns whether an address names no transport, as `ext::sh -c ...` does, and is no option.
fn is_plain_address(address: &[u8]) -> bool {
    let has_transport = address.windows(2).any(|it| it == b"::");
    // An address of version 6 is in brackets.
    let is_bracketed = address.contains(&b'[') && address.windows(3).any(|it| it == b"://");
    (!has_transport || is_bracketed) && !address.starts_with(b"-")
}

/// Returns whether a hook is one that Git LFS writes, which does nothing but call it.
pub(crate) fn is_hook_of_lfs(name: &str, text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let mut lines = text.lines().filter(|it| !it.trim().is_empty());
    let call = format!("git lfs {name} \"$@\"");
    let is_check = |line: &str| {
        let message = line
            .strip_prefix("command -v git-lfs >/dev/null 2>&1 || { ")
            .and_then(|it| it.strip_suffix("; exit 2; }"))
            .and_then(|it| {
                it.strip_prefix("printf >&2 \"\\n%s\\n\\n\" ")
                    .or_else(|| it.strip_prefix("echo >&2 "))
            })
            .and_then(|it| it.strip_prefix('"')?.strip_suffix('"'));
        // Nothing in these quotes may mean more than itself.
        message.is_some_and(|it| !it.contains(['"', '$', '`', '\\']) || is_older_message(it))
    };
    lines.next() == Some("#!/bin/sh")
        && lines.next().is_some_and(is_check)
        && lines.next() == Some(&*call)
        && lines.next().is_none()
}

/// Older versions of Git LFS write escaped line ends into their message.
fn is_older_message(message: &str) -> bool {
    !message.replace("\\n", "").contains(['"', '$', '`', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_config::parse;

    fn is_harmful(text: &str) -> bool {
        let settings = parse(text.as_bytes()).unwrap();
        let mut effects = settings.iter().map(Setting::effect);
        effects.any(|it| it == Effect::Harmful)
    }

    #[test]
    fn what_runs_a_program_or_leads_elsewhere_is_harmful() {
        for text in [
            "[core]\nfsmonitor = touch x",
            "[core]\nhooksPath = hooks",
            "[core]\nsshCommand = x",
            "[core]\neditor = x",
            "[core]\npager = x",
            "[core]\naskPass = x",
            "[core]\ngitProxy = x",
            "[core]\nalternateRefsCommand = x",
            "[core]\nattributesFile = x",
            "[alias]\nst = !x",
            "[filter \"x\"]\nclean = x",
            "[filter \"lfs\"]\nclean = x",
            "[diff \"x\"]\ncommand = x",
            "[diff \"x\"]\ntextconv = x",
            "[diff]\nexternal = x",
            "[merge \"x\"]\ndriver = x",
            "[merge]\ntool = x",
            "[include]\npath = x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[credential]\nhelper = !x",
            "[credential \"https://a\"]\nhelper = !x",
            "[url \"a\"]\ninsteadOf = b",
            "[gpg]\nprogram = x",
            "[gpg \"ssh\"]\ndefaultKeyCommand = x",
            "[remote \"a\"]\nurl = ext::sh -c x",
            "[remote \"a\"]\nurl = -x",
            "[remote \"a\"]\nuploadpack = x",
            "[remote \"a\"]\nvcs = x",
            "[remote \"a\"]\nproxy = x",
            "[submodule \"a\"]\nupdate = !x",
            "[protocol \"ext\"]\nallow = always",
            "[sequence]\neditor = x",
            "[pager]\nlog = x",
            "[browser \"x\"]\ncmd = x",
            "[tar \"x\"]\ncommand = x",
            "[trailer \"x\"]\ncommand = x",
            "[uploadpack]\npackObjectsHook = x",
            "[http]\nproxy = x",
            "[lfs \"customtransfer.x\"]\npath = x",
            "[branch \"a\"]\nmergeOptions = -s x",
            "[init]\ntemplateDir = x",
            "[core \"x\"]\nbare = true",
            "[interactive]\ndiffFilter = x",
            "[sendemail]\nsmtpServer = x",
            "[pull]\noctopus = x",
            "[gc]\nrecentObjectsHook = x",
        ] {
            assert!(is_harmful(text), "{text}");
        }
    }

    #[test]
    fn what_ordinary_programs_write_is_harmless() {
        for text in [
            "[core]\nrepositoryformatversion = 0\nfilemode = true\nbare = false\nlogallrefupdates = true\n",
            "[remote \"origin\"]\nurl = git@github.com:a/b.git\nfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[remote \"a\"]\nurl = ssh://git@[::1]:22/a\nurl = ../a\nurl = /srv/a.git\n",
            "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main\nrebase = true\n",
            "[submodule]\nactive = .\n[submodule \"a/b\"]\nurl = https://a/b\nupdate = rebase\n",
            "[extensions]\nworktreeConfig = true\nobjectFormat = sha256\n",
            "[filter \"lfs\"]\nclean = git-lfs clean -- %f\nsmudge = git-lfs smudge -- %f\nprocess = git-lfs filter-process\nrequired = true\n",
            "[lfs]\nrepositoryformatversion = 0\n[lfs \"https://a/info/lfs\"]\naccess = basic\n",
            "[user]\nname = A\nemail = a@b\n[core]\nfsmonitor = false\n",
        ] {
            assert!(!is_harmful(text), "{text}");
        }
    }

    #[test]
    fn a_hook_of_lfs_is_known_and_nothing_that_only_resembles_it() {
        let hook = |message: &str, call: &str| {
            format!(
                "#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || {{ {message}; exit 2; }}\n{call}\n"
            )
        };
        let call = "git lfs pre-push \"$@\"";
        let message = "printf >&2 \"\\n%s\\n\\n\" \"It's 'core.hookspath'; none.\"";
        let is_known = |text: &str| is_hook_of_lfs("pre-push", text.as_bytes());
        assert!(is_known(&hook(message, call)));
        assert!(is_known(&hook("echo >&2 \"\\nThis is used.\\n\"", call)));
        for other in [
            hook("echo >&2 \"$(x)\"", call),
            hook("echo >&2 \"\"; x; echo \"\"", call),
            hook(message, "git lfs post-merge \"$@\""),
            hook(message, "x\ngit lfs pre-push \"$@\""),
            hook(message, "git lfs pre-push \"$@\"\nx"),
        ] {
            assert!(!is_known(&other), "{other}");
        }
    }
}

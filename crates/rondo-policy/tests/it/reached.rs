//! Rules about files, by whichever way a command reaches these.

use crate::gate::Fixture;
use rondo_core::ports::Verdict;
use rondo_policy::rules::{AnyOf, Decision, RuleDirs, RuleSpec, Rules};
use rondo_policy::{Confined, ReadOnlySandbox};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// A gate that denies `secrets/**` of a repository and `~/.ssh/**`.
struct Guarded {
    fixture: Fixture,
    home: tempfile::TempDir,
}

impl Guarded {
    fn new() -> Self {
        let mut fixture = Fixture::new();
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(home.path().join(".ssh/id"), "KEY").unwrap();
        let work = fixture.work.path().canonicalize().unwrap();
        for directory in ["secrets/deep", "src", "other"] {
            std::fs::create_dir_all(work.join(directory)).unwrap();
        }
        std::fs::write(work.join("secrets/k"), "KEY").unwrap();
        std::fs::write(work.join("src/a.rs"), "").unwrap();
        let made = Command::new("git")
            .args(["init", "-q"])
            .current_dir(&work)
            .status();
        assert!(made.unwrap().success());
        let paths = ["secrets/**", "~/.ssh/**"].map(str::to_owned);
        let rule = RuleSpec {
            path: Some(AnyOf::Many(paths.to_vec())),
            ..RuleSpec::new(Decision::Deny)
        };
        let mut rules = Rules::default();
        let dirs = RuleDirs {
            working: &work,
            home: Some(home.path()),
        };
        rules.add(vec![rule], "test", dirs).unwrap();
        fixture.options.rules = Arc::new(rules);
        Self { fixture, home }
    }

    async fn exec(&self, command: &str) -> Verdict {
        let home = self.home.path().to_string_lossy();
        self.fixture.exec(&command.replace("HOME_DIR", &home)).await
    }

    fn sandbox(&self) -> ReadOnlySandbox {
        let home: PathBuf = self.home.path().to_owned();
        ReadOnlySandbox::new(["exec"], Some(&home), || true)
    }
}

/// Commands that name a denied file, by whatever way.
const DENIED: &[&str] = &[
    "cd ~/.ssh && cat id",
    "cd HOME_DIR/.ssh && cat id",
    "cd HOME_DIR; cat .ssh/id",
    "env -C ~/.ssh cat id",
    "env --chdir=HOME_DIR/.ssh cat id",
    "sudo env -C HOME_DIR/.ssh cat id",
    "cd secrets && rm k",
    "cd secrets && cat k",
    "(cd secrets; cat k)",
    "cd src/../secrets && cat k",
    "cd ./secrets/deep && cat ../k",
    "cd src && cat ../secrets/k",
    "cd src && cat < ../secrets/k",
    "cd src && for f in ../secrets/*; do cat $f; done",
    "pushd secrets && cat k",
    "git -C secrets show :k",
    "git -C secrets log -p -- k",
    "git show HEAD:secrets/k",
    "git show HEAD~3:secrets/k | head",
    "git cat-file -p HEAD:secrets/k",
    "cd src && git show HEAD:secrets/k",
    "cd src && git show HEAD:../secrets/k",
    "tar -C secrets -cf - k",
    "make -C secrets k",
];

/// Commands that go through a directory with denied files, or of which it cannot be told.
const ASKED: &[&str] = &[
    "cp -r ~/.ssh x",
    "cp -a HOME_DIR x",
    "grep -r KEY secrets",
    "grep -r KEY .",
    "grep -rn KEY",
    "rg KEY",
    "cd secrets",
    "ls secrets",
    "find secrets -type f | xargs cat",
    "find . -exec cat {} +",
    "rm -r secrets",
    "mv secrets other/",
    "tar -cf x.tar secrets",
    "tar -cf x.tar .",
    "zip -r x.zip .",
    "diff -r secrets other",
    "git grep KEY",
    "git grep KEY HEAD",
    "git grep KEY -- secrets",
    "git log -p -- secrets",
    "git show HEAD -- secrets",
    "git show HEAD:secrets",
    "git archive HEAD",
    "d=secrets; cd $d && cat k",
];

/// Commands that reach no denied file.
const OTHERS: &[&str] = &[
    "ls",
    "cat src/a.rs",
    "cd src && cat a.rs",
    "grep -r KEY src",
    "grep KEY src/a.rs",
    "git status",
    "git log --oneline",
    "git show HEAD:src/a.rs",
    "find . -name '*.rs'",
];

#[tokio::test]
async fn a_rule_about_files_holds_whichever_way_a_command_reaches_them() {
    let mut guarded = Guarded::new();
    for yolo in [false, true] {
        guarded.fixture.options.yolo = yolo;
        let mut passed = Vec::new();
        for command in DENIED {
            if !matches!(guarded.exec(command).await, Verdict::Deny { .. }) {
                passed.push(command);
            }
        }
        assert_eq!(passed, Vec::<&&str>::new(), "yolo: {yolo}");
    }
}

#[tokio::test]
async fn a_directory_with_such_files_is_asked_about_if_it_is_read_as_a_whole() {
    let mut guarded = Guarded::new();
    for yolo in [false, true] {
        guarded.fixture.options.yolo = yolo;
        let mut passed = Vec::new();
        for command in ASKED {
            if guarded.exec(command).await == Verdict::Allow {
                passed.push(command);
            }
        }
        assert_eq!(passed, Vec::<&&str>::new(), "yolo: {yolo}");
    }
    let asked = guarded.exec("grep -r KEY .").await;
    let Verdict::Ask { prompt, .. } = asked else {
        panic!("{asked:?}");
    };
    assert!(prompt.contains("reads a directory with files"), "{prompt}");
}

#[tokio::test]
async fn what_reaches_none_of_them_is_not_asked_about() {
    let guarded = Guarded::new();
    let mut asked = Vec::new();
    for command in OTHERS {
        if guarded.exec(command).await != Verdict::Allow {
            asked.push(command);
        }
    }
    assert_eq!(asked, Vec::<&&str>::new());
}

#[tokio::test]
async fn a_sandbox_that_hides_them_answers_what_cannot_be_told_but_not_what_is_named_or_in_history()
{
    let mut guarded = Guarded::new();
    let sandbox = guarded.sandbox().hiding_denied_files(true);
    guarded.fixture.options.read_only = Some(sandbox);
    for command in [
        "grep -r KEY .",
        "for f in *; do grep -c KEY \"$f\"; done",
        "x=src; cat $x/a.rs",
    ] {
        assert_eq!(guarded.exec(command).await, Verdict::Allow, "{command}");
    }
    for command in ["git grep KEY HEAD", "git show HEAD:secrets", "cp -r . ../x"] {
        let verdict = guarded.exec(command).await;
        assert!(
            matches!(verdict, Verdict::Ask { .. }),
            "{command}: {verdict:?}"
        );
    }
    let named = guarded.exec("cd secrets && cat k").await;
    assert!(matches!(named, Verdict::Deny { .. }), "{named:?}");
    guarded.fixture.options.confined = Some(Confined {
        may_write: true,
        reaches_hosts: false,
        is_enough: true,
        protected: &[],
        kept: Vec::new(),
        tools: Vec::new(),
    });
    assert_eq!(guarded.exec("cp -r . ../x").await, Verdict::Allow);
    guarded.fixture.options.read_only = Some(guarded.sandbox());
    let asked = guarded.exec("cp -r . ../x").await;
    assert!(matches!(asked, Verdict::Ask { .. }), "{asked:?}");
}

#[tokio::test]
async fn what_yields_to_the_sandbox_runs_in_it_though_something_else_allows_it() {
    let mut guarded = Guarded::new();
    guarded.fixture.options.read_only = Some(guarded.sandbox().hiding_denied_files(true));
    guarded.fixture.options.yolo = true;
    let command = "for f in *; do grep -r KEY \"$f\"; done";
    assert_eq!(guarded.exec(command).await, Verdict::Allow);
    let id = rondo_types::CallId::new("c");
    let arguments = serde_json::json!({ "command": command });
    let session = rondo_types::SessionId::new("s");
    let looking = &guarded.fixture.options.looking;
    assert!(looking.take(&session, &id, &arguments));
}

//! Commands that run without asking in the read-only sandbox.

use crate::gate::Fixture;
use rondo_core::ports::Verdict;
use rondo_policy::ReadOnlySandbox;
use rondo_policy::rules::{Decision, RuleDirs, RuleSpec, Rules};
use rondo_types::ToolKind;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Commands from shell histories, one a line; a here-document continues over several.
const HARMLESS: &str = include_str!("harmless.txt");

/// Commands that need approval: for their purpose, their targets, or the programs that they run.
const ASKED: &[&str] = &[
    // What changes files.
    "rm README.md",
    "for f in *; do rm \"$f\"; done",
    "for f in *.md; do mv \"$f\" \"${f%.md}.txt\"; done",
    "find . -name '*.tmp' -delete",
    "find . -type f -exec rm {} +",
    "find . -name x | xargs rm",
    "find . -exec sh -c 'rm \"$1\"' _ {} \\;",
    "ls | xargs -I{} mv {} {}.bak",
    "x=$(mktemp); echo \"$x\"",
    "echo $(touch pwned)",
    "echo \"${x:-$(touch pwned)}\"",
    "a=($(touch pwned)); echo",
    "time touch pwned",
    "timeout 5 touch pwned",
    "nice -n 5 cp README.md b",
    "env A=b touch pwned",
    "command rm README.md",
    "bash -c 'rm README.md'",
    "sh -c 'for f in *; do rm $f; done'",
    "f() { rm README.md; }; f",
    "[[ -f x ]] || touch x",
    "diff <(touch a) <(ls)",
    "ls > out.txt",
    "for f in *; do echo $f; done >> out.txt",
    "ls | tee out.txt",
    "sed -i s/a/b/ README.md",
    "for f in *; do sed -i 's/a/b/' $f; done",
    "perl -pi -e 's/a/b/' README.md",
    "perl -i -pe 's/a/b/' README.md",
    "sort -o README.md README.md",
    "awk '{print > \"out\"}' README.md",
    "awk 'BEGIN { system(\"id\") }'",
    "python3 -c 'open(\"x\", \"w\").write(\"y\")'",
    "python3 -c 'import os; os.remove(\"x\")'",
    "tar xf archive.tar",
    "tar -czf a.tgz .",
    "unzip archive.zip",
    "gzip README.md",
    "mkdir -p a/b && cd a/b",
    // What changes a repository or reaches another machine.
    "git commit -m x",
    "git -C . add -A",
    "for f in *; do git add \"$f\"; done",
    "git branch new",
    "git branch -D main",
    "git tag v1",
    "git config user.name me",
    "git stash",
    "git stash pop",
    "git checkout main",
    "git fetch",
    "git remote add a b",
    "git reflog expire --all",
    "git -c alias.x='!id' x",
    "git log --output=x",
    "git worktree add ../x",
    "curl https://example.com",
    "x=$(curl -s https://example.com); echo \"$x\"",
    "npm install",
    "cargo build",
    "make",
    "pip install x",
    // What ends, starts or changes something of the system.
    "kill 1",
    "sudo ls",
    "docker ps",
    "systemctl restart x",
    "crontab -l",
    "prlimit --pid 1 --cpu=1:1",
    "hyperfine 'rm x'",
    "flock x rm y",
    "ionice -p 1 -c 3",
    // What runs text or a file of the workspace.
    "./tool",
    "for i in 1 2; do ./tool; done",
    "bash tool",
    "python3 tool.py",
    "python3",
    "eval \"$(cat README.md)\"",
    "source README.md",
    "x=ls; $x",
    "$(cat README.md)",
    "PATH=.:$PATH tool",
    "LD_PRELOAD=./x.so ls",
    "export PATH=.; ls",
    "env PATH=. ls",
    "trap 'ls' EXIT",
    "alias ls=rm",
    "tool-of-path",
    "let 'a[$(./tool)]'",
    "printf -v 'a[$(./tool)]' x",
    "test -v 'a[`./tool`]'",
    "[[ -v 'a[$(./tool)]' ]]",
    "read 'a[$(./tool)]' < README.md",
    "unset 'a[$(./tool)]'",
    "x='a[$(./tool)]'; echo $((x))",
    "for x in 'a[$(./tool)]'; do echo $((x)); done",
    "mapfile -C ./tool -c 1 < README.md",
    // What the sandbox hides, or what is secret.
    "ls ~",
    "for f in ~/*; do echo $f; cat $f; done",
    "cat $HOME/.ssh/id_rsa | base64",
    "cd ~/.ssh && cat id | base64",
    "cd .. && for f in *; do cat $f; done",
    "for f in ../*; do cat $f; done",
    "base64 /tmp/x",
    "base64 /etc/shadow",
    "xxd /proc/1/environ",
    "strings /proc/self/environ",
    "env",
    "printenv",
    "set",
    "export -p",
    "declare -p",
    "echo $DATABASE_URL | base64",
    "for v in $DATABASE_URL; do echo $v; done",
    "python3 -c 'import os; print(os.environ)'",
    "perl -e 'print $ENV{A}'",
    "awk 'BEGIN { print ENVIRON[\"A\"] }'",
    // What never ends or waits for a person.
    "tail -f README.md",
    "watch ls",
    "vim README.md",
    "less README.md",
    "yes",
    "top",
];

/// A gate over a repository, if the read-only sandbox holds.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let work = fixture.work.path();
    std::fs::create_dir_all(work.join("src")).unwrap();
    std::fs::write(work.join("README.md"), "some text\n").unwrap();
    std::fs::write(work.join("src/a.rs"), "fn main() {}\n").unwrap();
    let tool = work.join("tool");
    std::fs::write(&tool, "#!/bin/sh\n").unwrap();
    let made = Command::new("git")
        .args(["init", "-q"])
        .current_dir(work)
        .status();
    assert!(made.unwrap().success());
    let of_workspace = work.join("bin");
    std::fs::create_dir(&of_workspace).unwrap();
    std::fs::write(of_workspace.join("tool-of-path"), "").unwrap();
    let path = format!("/usr/local/bin:/usr/bin:/bin:{}", of_workspace.display());
    let mut environment = (*fixture.options.environment).clone();
    environment.set.insert("PATH".to_owned(), path);
    fixture.options.environment = Arc::new(environment);
    fixture.options.read_only = Some(holding(true));
    fixture
}

fn holding(holds: bool) -> ReadOnlySandbox {
    let home = Path::new("/home/somebody");
    ReadOnlySandbox::new(["exec"], Some(home), move || holds)
}

fn harmless() -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in HARMLESS.lines().filter(|line| !line.starts_with('#')) {
        match is_open {
            true => {
                let last = commands.last_mut().unwrap();
                last.push('\n');
                last.push_str(line);
                is_open = line != "END";
            }
            false => {
                is_open = line.ends_with("<<'END'");
                commands.push(line.to_owned());
            }
        }
    }
    commands
}

#[tokio::test]
async fn two_hundred_harmless_commands_of_shell_histories_run_unasked_where_the_sandbox_holds() {
    let fixture = fixture();
    let commands = harmless();
    assert!(commands.len() >= 200, "{}", commands.len());
    let mut asked = Vec::new();
    for command in &commands {
        if fixture.exec(command).await != Verdict::Allow {
            asked.push(command);
        }
    }
    assert_eq!(asked, Vec::<&String>::new());
}

#[tokio::test]
async fn what_is_run_for_its_effect_or_hidden_by_the_sandbox_is_asked_about_all_the_same() {
    let fixture = fixture();
    let mut allowed = Vec::new();
    for command in ASKED {
        if fixture.exec(command).await == Verdict::Allow {
            allowed.push(command);
        }
    }
    assert_eq!(allowed, Vec::<&&str>::new());
}

#[tokio::test]
async fn without_the_whole_sandbox_and_for_other_tools_it_is_asked_about_as_before() {
    let mut fixture = fixture();
    let is_ask = |verdict: Verdict| matches!(verdict, Verdict::Ask { .. });
    let command = "for f in *; do wc -l $f; done";
    assert_eq!(fixture.exec(command).await, Verdict::Allow);
    let arguments = json!({ "command": command });
    let other = fixture.of_kind(ToolKind::Execute, "terminal", arguments);
    assert!(is_ask(other.await));
    let outside = json!({ "command": command, "outside_sandbox": true });
    assert!(is_ask(
        fixture.of_kind(ToolKind::Execute, "exec", outside).await
    ));
    fixture.options.read_only = Some(holding(false));
    assert!(is_ask(fixture.exec(command).await));
    fixture.options.read_only = None;
    assert!(is_ask(fixture.exec(command).await));
}

#[tokio::test]
async fn a_call_that_is_held_is_noted_for_the_tool_that_runs_it() {
    let fixture = fixture();
    let noted = async |command: &str| {
        let _ = fixture.exec(command).await;
        let id = rondo_types::CallId::new("c");
        let session = rondo_types::SessionId::new("s");
        let calls = fixture.options.looking.clone();
        calls.take(&session, &id, &json!({ "command": command }))
    };
    assert!(noted("for f in *; do wc -l $f; done").await);
    assert!(!noted("for f in *; do rm $f; done").await);
}

#[tokio::test]
async fn the_sandbox_is_tried_only_for_a_command_that_would_be_asked_about() {
    let mut fixture = fixture();
    let tried = Arc::new(AtomicBool::new(false));
    let noting = Arc::clone(&tried);
    fixture.options.read_only = Some(ReadOnlySandbox::new(["exec"], None, move || {
        noting.store(true, Ordering::Relaxed);
        true
    }));
    let _ = fixture.exec("ls").await;
    let _ = fixture.exec("rm x").await;
    assert!(!tried.load(Ordering::Relaxed));
    let _ = fixture.exec("time ls").await;
    assert!(tried.load(Ordering::Relaxed));
}

#[tokio::test]
async fn rules_that_ask_or_deny_and_a_plan_count_before_the_sandbox() {
    let mut fixture = fixture();
    let rule = RuleSpec {
        command: serde_json::from_value(json!(["wc"])).unwrap(),
        ..RuleSpec::new(Decision::Deny)
    };
    let mut rules = Rules::default();
    let dirs = RuleDirs {
        working: fixture.work.path(),
        home: None,
    };
    rules.add(vec![rule], "test", dirs).unwrap();
    fixture.options.rules = Arc::new(rules);
    let denied = fixture.exec("for f in *; do wc -l $f; done").await;
    assert!(matches!(denied, Verdict::Deny { .. }), "{denied:?}");
    let hidden = fixture.exec("for f in *; do x${f}; done").await;
    assert!(matches!(hidden, Verdict::Ask { .. }), "{hidden:?}");
    fixture.options.looks_only = true;
    let looks = fixture.exec("for f in *; do head -1 $f; done").await;
    assert_eq!(looks, Verdict::Allow);
    let changes = fixture.exec("for f in *; do touch $f; done").await;
    assert!(matches!(changes, Verdict::Deny { .. }));
}

//! Rules that users and projects write, and the denials that are built in.

use crate::gate::Fixture;
use rondo_core::ports::Verdict;
use rondo_policy::ToolPatterns;
use rondo_policy::rules::{AnyOf, DENIALS, Decision, RuleDirs, RuleSpec, Rules};
use rondo_types::ToolKind;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// A rule about a command; `|` is between alternatives.
fn about(command: &str, decision: Decision) -> RuleSpec {
    let any = |word: &str| AnyOf::Many(word.split('|').map(str::to_owned).collect());
    RuleSpec {
        command: command.split(' ').map(any).collect(),
        ..RuleSpec::new(decision)
    }
}

fn of_path(path: &str, decision: Decision) -> RuleSpec {
    RuleSpec {
        path: Some(AnyOf::One(path.to_owned())),
        ..RuleSpec::new(decision)
    }
}

impl Fixture {
    fn with(mut self, specs: Vec<RuleSpec>) -> Self {
        let working = self.work.path().canonicalize().unwrap();
        let dirs = RuleDirs {
            working: &working,
            home: Some(Path::new("/home/me")),
        };
        let rules = Arc::make_mut(&mut self.options.rules);
        rules.add(specs, "policy.toml", dirs).unwrap();
        self
    }

    pub(crate) async fn decision(&self, command: &str) -> Decision {
        match self.exec(command).await {
            Verdict::Allow => Decision::Allow,
            Verdict::Ask { .. } => Decision::Ask,
            Verdict::Deny { .. } => Decision::Deny,
        }
    }
}

#[track_caller]
fn refused(spec: RuleSpec) -> String {
    let dirs = RuleDirs {
        working: Path::new("/work"),
        home: None,
    };
    let error = Rules::default().add(vec![spec], "policy.toml", dirs);
    error.unwrap_err().to_string()
}

#[tokio::test]
async fn the_strictest_rule_counts_whatever_their_order() {
    let rules = vec![
        about("git push|fetch", Decision::Deny),
        about("git", Decision::Allow),
        about("git commit", Decision::Ask),
    ];
    for specs in [rules.clone(), rules.into_iter().rev().collect()] {
        let gate = Fixture::new().with(specs);
        assert_eq!(gate.decision("git add a").await, Decision::Allow);
        assert_eq!(gate.decision("git commit -m a").await, Decision::Ask);
        assert_eq!(gate.decision("git push origin").await, Decision::Deny);
        assert_eq!(gate.decision("git fetch").await, Decision::Deny);
        assert_eq!(gate.decision("git add a && git push").await, Decision::Deny);
        assert_eq!(gate.decision("git add a && touch b").await, Decision::Ask);
    }
}

#[tokio::test]
async fn a_rule_that_restricts_holds_however_the_command_is_wrapped_and_one_that_allows_does_not() {
    let denies = Fixture::new().with(vec![about("git push", Decision::Deny)]);
    let allows = Fixture::new().with(vec![about("touch", Decision::Allow)]);
    for (restricted, allowed) in [
        ("/usr/bin/git push", "/usr/bin/touch a"),
        ("git -C sub push", "FOO=1 touch a"),
        ("sudo git push", "sudo touch a"),
        ("env A=1 git push --force", "env A=1 touch a"),
        ("bash -c 'git push'", "bash -c 'touch a'"),
        ("echo a | xargs git push", "echo a | xargs touch"),
        ("if true; then git push; fi", "touch a > b"),
        ("python3 -c 'run([\"git\", \"push\"])'", "touch a &"),
        ("bash <<'X'\ngit push\nX", "t() { touch a; }; t"),
        ("a=$(git push)", "touch $(rm b)"),
    ] {
        assert_eq!(
            denies.decision(restricted).await,
            Decision::Deny,
            "{restricted}"
        );
        assert_eq!(allows.decision(allowed).await, Decision::Ask, "{allowed}");
    }
    assert_eq!(
        allows.decision("touch a b && touch c").await,
        Decision::Allow
    );
}

#[tokio::test]
async fn what_cannot_be_told_is_asked_about_where_a_rule_denies_even_if_all_calls_are_allowed() {
    let mut gate = Fixture::new().with(vec![about("git push", Decision::Deny)]);
    gate.options.yolo = true;
    assert_eq!(gate.decision("touch a").await, Decision::Allow);
    assert_eq!(gate.decision("git push").await, Decision::Deny);
    for hidden in [
        "$PROGRAM push",
        "eval \"$LINE\"",
        "bash -c \"$X\"",
        "a=(1 2); \"${a[@]}\"",
    ] {
        assert_eq!(gate.decision(hidden).await, Decision::Ask, "{hidden}");
    }
    let long = format!("echo {}; touch a", "x".repeat(600_000));
    assert_eq!(gate.decision(&long).await, Decision::Ask);
}

#[tokio::test]
async fn words_from_input_may_complete_a_command_that_a_rule_denies() {
    let denied = vec![
        about("git commit|push", Decision::Deny),
        about("rm", Decision::Deny),
    ];
    let mut gate = Fixture::new().with(denied);
    gate.options.yolo = true;
    for completed in [
        "printf 'commit\n-m\nx\n' | xargs git",
        "xargs git < words",
        "xargs -n4 /usr/bin/git < words",
        "parallel git < words",
        "sudo xargs git < words",
        "bash -c 'xargs git < words'",
        "printf 'rm x' > f; xargs -n2 nice < f",
        "xargs -d '\n' sh < words",
        "xargs env A=1 < words",
    ] {
        assert_ne!(
            gate.decision(completed).await,
            Decision::Allow,
            "{completed}"
        );
    }
    for told in [
        "xargs cargo < words",
        "ls | xargs wc -l",
        "git log | xargs echo",
        "echo xargs; git log",
    ] {
        assert_eq!(gate.decision(told).await, Decision::Allow, "{told}");
    }
}

#[tokio::test]
async fn a_rule_that_asks_is_lifted_where_all_calls_are_allowed() {
    let mut gate = Fixture::new().with(vec![about("ls", Decision::Ask)]);
    assert_eq!(gate.decision("ls").await, Decision::Ask);
    gate.options.yolo = true;
    assert_eq!(gate.decision("ls").await, Decision::Allow);
}

#[tokio::test]
async fn a_path_is_meant_however_it_is_written_and_wherever_links_lead() {
    let gate = Fixture::new().with(vec![
        of_path("secrets/**", Decision::Deny),
        of_path("~/.ssh/**", Decision::Deny),
        of_path("notes/*.txt", Decision::Allow),
    ]);
    let root = gate.work.path();
    for directory in ["secrets", "notes"] {
        std::fs::create_dir(root.join(directory)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("secrets"), root.join("plain")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("notes/out.txt")).unwrap();
    for path in [
        "secrets/key",
        "./secrets//key",
        "a/../secrets/key",
        "plain/key",
        "/home/me/.ssh/id",
    ] {
        let verdict = gate.of_kind(ToolKind::Edit, "write_file", json!({"path": path}));
        assert!(matches!(verdict.await, Verdict::Deny { .. }), "{path}");
        for command in [
            format!("touch {path}"),
            format!("echo a > '{path}'"),
            format!("dd of={path}"),
            format!("cat < {path}"),
        ] {
            assert_eq!(gate.decision(&command).await, Decision::Deny, "{command}");
        }
    }
    for command in [
        "cat ~/.ssh/id",
        "cp \"$HOME/.ssh/id\" a",
        "cat ${HOME}/.ssh/id",
    ] {
        assert_eq!(gate.decision(command).await, Decision::Deny, "{command}");
    }
    let writes = |path: &str| gate.of_kind(ToolKind::Edit, "write_file", json!({ "path": path }));
    assert_eq!(writes("notes/a.txt").await, Verdict::Allow);
    for path in ["notes/out.txt", "notes/a.md", "other.txt"] {
        assert!(matches!(writes(path).await, Verdict::Ask { .. }), "{path}");
    }
}

#[tokio::test]
async fn a_page_is_judged_by_its_host_and_a_spelling_that_hides_it_helps_nobody() {
    let of_hosts = |hosts: &[&str], decision| RuleSpec {
        host: Some(AnyOf::Many(
            hosts.iter().map(|it| (*it).to_owned()).collect(),
        )),
        ..RuleSpec::new(decision)
    };
    let gate = Fixture::new().with(vec![
        of_hosts(&["docs.rs", "*.rust-lang.org"], Decision::Allow),
        of_hosts(&["evil.example", "*.evil.example"], Decision::Deny),
    ]);
    let fetch = |url: &str| gate.of_kind(ToolKind::Fetch, "web_fetch", json!({ "url": url }));
    for url in ["https://docs.rs/serde", "https://doc.rust-lang.org/std/"] {
        assert_eq!(fetch(url).await, Verdict::Allow, "{url}");
    }
    for url in [
        "https://rust-lang.org/",
        "https://docs.rs.other.example/",
        "https://other.example/?docs.rs",
    ] {
        assert!(matches!(fetch(url).await, Verdict::Ask { .. }), "{url}");
    }
    for url in [
        "https://evil.example/",
        "https://a.EVIL.example./",
        "https://docs.rs@evil.example/",
        "https://docs.rs\\@evil.example/",
        "https://evil%2eexample/",
        "http://2130706433/",
    ] {
        assert!(matches!(fetch(url).await, Verdict::Deny { .. }), "{url}");
    }
    // A rule for hosts says nothing about other calls.
    assert_eq!(gate.decision("touch a").await, Decision::Ask);
    assert_eq!(gate.decision("ls").await, Decision::Allow);
    let searched = gate.of_kind(ToolKind::Fetch, "web_search", json!({"query": "x"}));
    assert!(matches!(searched.await, Verdict::Ask { .. }));
    let other = gate.of_kind(ToolKind::Other, "post", json!({"url": "https://docs.rs/"}));
    assert!(matches!(other.await, Verdict::Ask { .. }));
}

#[tokio::test]
async fn a_tool_is_denied_with_the_message_of_its_rule() {
    let gate = Fixture::new().with(vec![RuleSpec {
        tool: Some(AnyOf::One("remote".to_owned())),
        message: Some("Not on Mondays.".to_owned()),
        ..RuleSpec::new(Decision::Deny)
    }]);
    let denied = gate.of_kind(ToolKind::Other, "remote", json!({})).await;
    let reason = "Not on Mondays.".to_owned();
    assert_eq!(denied, Verdict::Deny { reason });
}

#[test]
fn a_rule_whose_examples_do_not_hold_is_refused() {
    let mut spec = about("git push|fetch", Decision::Deny);
    spec.matches = vec!["git fetch origin".to_owned(), "git pull".to_owned()];
    assert_eq!(
        refused(spec.clone()),
        "rule 1: its example `git pull` of `match` does not fit it"
    );
    spec.id = Some("no-push".to_owned());
    spec.matches.pop();
    spec.not_match = vec!["git log".to_owned(), "sudo git push".to_owned()];
    assert_eq!(
        refused(spec),
        "rule 1 (`no-push`): its example `sudo git push` of `not_match` fits it"
    );
    let mut spec = of_path("a/*.rs", Decision::Deny);
    spec.matches = vec!["a/b.txt".to_owned()];
    assert!(refused(spec).contains("does not fit"));
}

#[test]
fn a_rule_that_fits_nothing_or_passes_a_bound_is_refused() {
    assert!(refused(RuleSpec::new(Decision::Deny)).contains("it needs `tool`"));
    assert!(refused(of_path("~/a", Decision::Deny)).contains("home directory"));
    assert!(refused(of_path("a[", Decision::Deny)).contains("not a pattern"));
    assert!(refused(about("", Decision::Deny)).contains("is empty"));
    let mut both = about("rm", Decision::Allow);
    both.path = Some(AnyOf::One("a".to_owned()));
    assert!(refused(both).contains("not both"));
    let mut long = RuleSpec::new(Decision::Deny);
    long.tool = Some(AnyOf::Many(vec!["a".to_owned(); 65]));
    assert!(refused(long).contains("more than 64"));
}

/// Commands that a denial is for, by its id.
const DENIED: &[(&str, &[&str])] = &[
    (
        "remove-root",
        &[
            "rm -rf /",
            "rm -fr /*",
            "rm -r --no-preserve-root /",
            "rm --recursive --force //",
            "/bin/rm -Rf /usr",
            "rm -rf -- /etc/",
            "rm -rf /tmp/../etc/.",
            "sudo rm -rf /",
            "sudo -u root env A=1 rm -r -f /var",
            "bash -c 'rm -rf /'",
            "bash -c \"sudo bash -c 'rm -rf /*'\"",
            "cd / && rm -rf *",
            "cd /etc; rm -rf .",
            "true | rm -rf /",
            "echo $(rm -rf /)",
            "if true; then rm -rf /; fi",
            "python3 -c 'import os; os.system(\"rm -rf /\")'",
            "python3 -c \"subprocess.run(['rm', '-rf', '/'])\"",
            "sh <<'X'\nrm -rf /\nX",
            "x=1; ((x++)); rm -rf /",
            "find / -delete",
            "find /usr -type f -exec rm {} +",
            "nohup timeout 9 rm -rf / &",
            "eval 'rm -rf /'",
            "xargs rm -rf / < list",
            "'r'm -r\"f\" '/'",
            "\\rm -rf /",
        ],
    ),
    (
        "remove-home",
        &[
            "rm -rf ~",
            "rm -rf ~/",
            "rm -rf ~/*",
            "rm -rf $HOME",
            "rm -rf \"$HOME\"/",
            "rm -rf \"${HOME}\"",
            "rm -rf /home/me",
            "rm -rf /home/me/*",
            "cd && rm -rf *",
            "cd ~ && rm -rf .",
            "sudo rm -rf ~",
            "bash -c 'rm -rf ~'",
            "find ~ -delete",
        ],
    ),
    (
        "raw-disk",
        &[
            "dd if=/dev/zero of=/dev/sda",
            "sudo dd if=a of=/dev/nvme0n1 bs=1M",
            "cat a > /dev/sda1",
            "echo a | sudo tee /dev/vda",
            "cp a /dev/mmcblk0",
            "shred /dev/sdb",
            "wipefs -a /dev/sdb",
            "blkdiscard /dev/nvme0n1",
            "bash -c 'cat a >/dev/sda'",
        ],
    ),
    (
        "make-file-system",
        &[
            "mkfs /dev/sda1",
            "mkfs.ext4 -F /dev/sda1",
            "sudo mkfs.xfs $DISK",
            "mke2fs /dev/vdb",
            "mkswap /dev/sdc",
        ],
    ),
    (
        "shut-down",
        &[
            "shutdown -h now",
            "sudo reboot",
            "poweroff",
            "/sbin/halt",
            "init 0",
            "systemctl poweroff",
            "sudo systemctl -f reboot",
            "echo b > /proc/sysrq-trigger",
        ],
    ),
    (
        "kill-all",
        &["kill -9 -1", "kill -KILL -1", "sudo kill -s TERM -1"],
    ),
    (
        "fork-bomb",
        &[
            ":(){ :|:& };:",
            ":() { : | : & } ; :",
            "bomb() { bomb | bomb & }; bomb",
            "function f() { f | f & }; f",
            "bash -c ':(){ :|:& };:'",
        ],
    ),
];

/// Similar commands, and everyday work.
const NOT_DENIED: &[&str] = &[
    "rm -rf target",
    "rm -rf ./*",
    "rm -rf /tmp/build",
    "rm -rf ~/project/target",
    "rm -rf /home/me/project/*",
    "rm /etc/old.conf",
    "rm -f /",
    "echo rm -rf /",
    "echo 'rm -rf /'",
    "git commit -m 'never rm -rf / again'",
    "grep -r 'rm -rf /' .",
    "find . -name '*.o' -delete",
    "find / -name core -delete",
    "dd if=/dev/sda of=disk.img",
    "dd if=/dev/zero of=disk.img",
    "echo a > /dev/null",
    "echo a > /dev/tty",
    "mkfs.ext4 disk.img",
    "systemctl status",
    "shutdown --help",
    "kill -9 1234",
    "kill -1 1234",
    "f() { g | h & }; f",
    "cp a /dev/shm/b",
    "cd / && rm -rf /tmp/a",
];

#[tokio::test]
async fn a_catastrophe_is_denied_in_every_mode_until_its_denial_is_lifted() {
    let mut gate = Fixture::new().with(Vec::new());
    gate.options.yolo = true;
    gate.options.allowed_tools = ToolPatterns::parse(["exec"]).unwrap();
    let mut wrong = Vec::new();
    for (id, commands) in DENIED {
        let denial = DENIALS.iter().find(|it| it.id == *id).unwrap();
        for command in *commands {
            let reason = denial.what.to_owned();
            let verdict = gate.exec(command).await;
            if verdict != (Verdict::Deny { reason }) {
                wrong.push((command, verdict));
            }
        }
    }
    for command in NOT_DENIED {
        let verdict = gate.exec(command).await;
        if verdict != Verdict::Allow {
            wrong.push((command, verdict));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for denial in DENIALS {
        let rules = Arc::make_mut(&mut gate.options.rules);
        rules.lift(denial.id).unwrap();
    }
    for (_, commands) in DENIED {
        for command in *commands {
            assert_eq!(gate.exec(command).await, Verdict::Allow, "{command}");
        }
    }
    assert!(
        Arc::make_mut(&mut gate.options.rules)
            .lift("none")
            .unwrap_err()
            .contains("remove-root")
    );
}

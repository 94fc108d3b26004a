//! Terms of an approval, and the grants that it can leave.

use crate::gate::confined;
use rondo_core::ports::{Gate as _, GateRequest, Terms, Verdict};
use rondo_policy::rules::{GrantSpec, RuleDirs, Rules};
use rondo_policy::{
    AllowedDirs, Answers, GateOptions, StandardGate, ToolPatterns, Variables, Workdir,
};
use rondo_types::{Effects, Grant, GrantScope, ToolHints, ToolKind, ToolSpec};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct World {
    folder: tempfile::TempDir,
    _spill: tempfile::TempDir,
    pub(crate) options: GateOptions,
    pub(crate) has_outside_text: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        // As in a host: the directory of the output of commands may be read, too.
        let spill = tempfile::Builder::new().prefix(".spill").tempdir().unwrap();
        let dirs = AllowedDirs::new(folder.path(), &[spill.path().to_owned()]).unwrap();
        Self {
            options: GateOptions::new(dirs),
            folder,
            _spill: spill,
            has_outside_text: false,
        }
    }

    /// Puts commands into a sandbox, and continues asking.
    fn in_sandbox(mut self) -> Self {
        self.options.confined = Some(rondo_policy::Confined {
            reaches_hosts: false,
            may_write: true,
            is_enough: false,
            protected: &[],
            kept: Vec::new(),
            tools: Vec::new(),
        });
        self
    }

    pub(crate) fn rules(&mut self, text: &str) {
        let specs: Value = serde_json::from_str(text).unwrap();
        let dirs = RuleDirs {
            working: self.folder.path(),
            home: None,
        };
        let specs = serde_json::from_value(specs).unwrap();
        let rules = Arc::make_mut(&mut self.options.rules);
        rules.add(specs, "test", dirs).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn gate(&self) -> StandardGate {
        StandardGate::new(self.options.clone())
    }

    fn request(&self, spec: ToolSpec, arguments: Value) -> GateRequest {
        GateRequest {
            has_outside_text: self.has_outside_text,
            ..GateRequest::new(spec, arguments)
        }
    }

    fn command(&self, command: &str) -> GateRequest {
        self.request(tool("exec", ToolKind::Execute), json!({"command": command}))
    }

    pub(crate) async fn check(&self, command: &str) -> Verdict {
        self.gate().check(&self.command(command)).await
    }

    async fn terms(&self, command: &str) -> Terms {
        self.gate().terms(&self.command(command)).await
    }

    async fn hash(&self, command: &str) -> String {
        self.terms(command).await.hash
    }

    /// Allows a call as the user would, by the offer that reads so.
    async fn allow(&self, request: &GateRequest, offer: &str) {
        let offers = self.gate().terms(request).await.offers;
        let offer = offers.iter().find(|it| it.to_string() == offer);
        self.gate()
            .remember(offer.unwrap_or_else(|| panic!("{offers:?}")));
    }

    async fn offers(&self, command: &str) -> Vec<String> {
        let offers = self.terms(command).await.offers;
        offers.iter().map(ToString::to_string).collect()
    }

    pub(crate) async fn of_tool(&self, spec: ToolSpec, arguments: Value) -> Verdict {
        self.gate().check(&self.request(spec, arguments)).await
    }
}

pub(crate) fn tool(name: &str, kind: ToolKind) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        kind,
        ..ToolSpec::default()
    }
}

pub(crate) fn asks(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Ask { .. })
}

#[tokio::test]
async fn the_hash_of_a_command_tells_its_words_directory_variables_and_files() {
    let mut world = World::new();
    fs::write(world.path().join("run.sh"), "echo 1").unwrap();
    let plain = world.hash("bash run.sh").await;
    assert_eq!(plain.len(), 64);
    assert_eq!(world.hash("bash   'run.sh'").await, plain, "as it is read");
    for other in [
        "bash run.sh x",
        "bash -x run.sh",
        "bash run.sh | cat",
        "bash $X",
        "FOO=1 bash run.sh",
    ] {
        assert_ne!(world.hash(other).await, plain, "{other}");
    }
    assert_ne!(
        world.hash("echo '$X' > a").await,
        world.hash("echo $X > a").await
    );
    let spec = tool("exec", ToolKind::Execute);
    let elsewhere = json!({"command": "bash run.sh", "working_directory": "sub"});
    let elsewhere = world.request(spec.clone(), elsewhere);
    assert_ne!(world.gate().terms(&elsewhere).await.hash, plain);
    let sooner = world.request(spec, json!({"command": "bash run.sh", "timeout": 3}));
    assert_eq!(world.gate().terms(&sooner).await.hash, plain);

    fs::write(world.path().join("run.sh"), "echo 2").unwrap();
    let changed = world.hash("bash run.sh").await;
    assert_ne!(changed, plain);
    let workdir = Workdir::new(fs::canonicalize(world.path()).unwrap());
    let own = || std::env::vars_os().collect::<Vec<_>>();
    workdir.set_environment(own().into_iter().collect());
    world.options.workdir = Some(workdir.clone());
    assert_eq!(world.hash("bash run.sh").await, changed);
    let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    for (name, value, is_another) in [
        ("NODE_OPTIONS", "--require ./x.js", true),
        ("SHLVL", "7", false),
        ("X_API_KEY", "withheld from commands", false),
    ] {
        let variables = own().into_iter().chain([pair(name, value)]);
        workdir.set_environment(variables.collect::<Variables>());
        assert_eq!(
            world.hash("bash run.sh").await != changed,
            is_another,
            "{name}"
        );
    }
    let without_home = own().into_iter().filter(|(name, _)| name != "PATH");
    workdir.set_environment(without_home.collect());
    assert_ne!(
        world.hash("bash run.sh").await,
        changed,
        "a variable that is gone"
    );
}

#[tokio::test]
async fn files_beyond_the_bounds_still_count() {
    const FILES_MAX: usize = 64;
    const FILE_BYTES_MAX: usize = 1 << 20;
    let world = World::new();
    for size in [FILE_BYTES_MAX - 1, FILE_BYTES_MAX, FILE_BYTES_MAX + 1] {
        let file = world.path().join("run.sh");
        fs::write(&file, vec![b'#'; size]).unwrap();
        let before = world.hash("bash run.sh").await;
        assert_eq!(world.hash("bash run.sh").await, before);
        // Another file in its place has another number and another time of change.
        let other = world.path().join("other");
        fs::write(&other, vec![b'\n'; size]).unwrap();
        fs::rename(other, file).unwrap();
        assert_ne!(world.hash("bash run.sh").await, before, "{size}");
    }
    let name = |n: usize| format!("f{n}");
    for count in [FILES_MAX - 1, FILES_MAX, FILES_MAX + 1] {
        (0..count).for_each(|n| fs::write(world.path().join(name(n)), "a").unwrap());
        let words: Vec<String> = (0..count).map(name).collect();
        let command = format!("cat {} | bash {}", "x", words.join(" "));
        let before = world.hash(&command).await;
        let other = world.path().join("other");
        fs::write(&other, "b").unwrap();
        fs::rename(other, world.path().join(name(count - 1))).unwrap();
        assert_ne!(world.hash(&command).await, before, "{count}");
    }
}

#[tokio::test]
async fn one_command_is_allowed_exactly() {
    let world = World::new();
    fs::write(world.path().join("run.sh"), "echo 1").unwrap();
    let command = "make && ./run.sh";
    assert!(asks(&world.check(command).await));
    world
        .allow(&world.command(command), "exec, exactly: make && ./run.sh")
        .await;
    assert_eq!(world.check(command).await, Verdict::Allow);
    for other in ["make && ./run.sh x", "make", "./run.sh", "make; ./run.sh"] {
        assert!(asks(&world.check(other).await), "{other}");
    }
    fs::write(world.path().join("run.sh"), "rm -rf ~").unwrap();
    assert!(asks(&world.check(command).await), "its file is another one");
}

#[tokio::test]
async fn only_prefixes_that_are_safe_to_extend_are_offered() {
    let world = World::new().in_sandbox();
    for (command, offered) in [
        ("cargo test -p x", Some("exec(cargo test *)")),
        ("cd sub && cargo test", Some("exec(cargo test *)")),
        ("git commit -m 'a b'", Some("exec(git commit *)")),
        ("touch a b", Some("exec(touch *)")),
        ("mkdir -p a/b", Some("exec(mkdir *)")),
        ("npm test", Some("exec(npm test *)")),
        ("git push origin", None),
        ("git stash clear", None),
        ("git push --receive-pack='sh -c x' y", None),
        ("git -c core.pager=x commit", None),
        ("git commit --exec x", None),
        ("cargo run", None),
        ("cargo +nightly test", None),
        ("cargo publish", None),
        ("npm install x", None),
        ("npm run x", None),
        ("rm a", None),
        ("bash -c ls", None),
        ("sudo cargo test", None),
        ("env A=1 cargo test", None),
        ("A=1 cargo test", None),
        ("cargo test > log", None),
        ("cargo test | tee log", None),
        ("cargo test &", None),
        ("cargo test; make", None),
        ("cargo $X", None),
        ("./cargo test", None),
        ("python3 x.py", None),
        ("curl x", None),
        ("touch ../a", None),
        ("touch ~/a", None),
        ("touch .git/hooks/x", None),
        ("cp a AGENTS.md", None),
        ("cp --target-directory=/etc a", None),
        ("cp -t /etc a", None),
        ("cd sub && touch a", None),
        ("docker run x", None),
    ] {
        let offers = world.offers(command).await;
        assert!(offers[0].starts_with("exec, exactly: "), "{offers:?}");
        assert_eq!(offers.get(1).map(String::as_str), offered, "{command}");
    }
}

#[tokio::test]
async fn a_prefix_allows_what_is_safe_to_extend_as_it_is_extended() {
    let world = World::new().in_sandbox();
    std::os::unix::fs::symlink("/etc", world.path().join("out")).unwrap();
    for (command, offer) in [
        ("git commit -m a", "exec(git commit *)"),
        ("touch a", "exec(touch *)"),
    ] {
        world.allow(&world.command(command), offer).await;
    }
    for command in [
        "git commit",
        "git commit -am b",
        "touch b c",
        "ls && touch b",
        "git commit && touch x",
    ] {
        assert_eq!(world.check(command).await, Verdict::Allow, "{command}");
    }
    for command in [
        "git commit --exec=x",
        "git -C / commit",
        "git push",
        "touch b; rm b",
        "touch $(pwd)",
        "touch b > c",
        "touch out/x",
        "touch -r /etc/shadow b",
        "touch .rondo/policy.toml",
        "cd sub && touch b",
        "sudo touch b",
        "GIT_DIR=x git commit",
    ] {
        assert!(asks(&world.check(command).await), "{command}");
    }
}

#[tokio::test]
async fn what_a_rule_asks_about_is_not_offered_and_not_allowed_by_a_grant() {
    let mut world = World::new().in_sandbox();
    world
        .allow(&world.command("touch a"), "exec(touch *)")
        .await;
    world.rules(r#"[{"command": ["touch"], "decision": "ask"}]"#);
    assert!(asks(&world.check("touch a").await));
    assert_eq!(world.offers("touch a").await, [""; 0]);
    world.rules(r#"[{"command": ["touch"], "decision": "deny"}]"#);
    assert!(matches!(world.check("touch a").await, Verdict::Deny { .. }));
}

#[tokio::test]
async fn calls_that_run_no_command_are_allowed_by_their_tool_or_exactly() {
    let world = World::new();
    let other =
        |value: u32| world.request(tool("remote", ToolKind::Other), json!({"a": value, "b": 1}));
    let offers = world.gate().terms(&other(1)).await.offers;
    let [exact, whole] = offers.as_slice() else {
        panic!("{offers:?}")
    };
    assert!(matches!(&exact.scope, GrantScope::Call { .. }), "{exact:?}");
    world.gate().remember(exact);
    assert_eq!(world.gate().check(&other(1)).await, Verdict::Allow);
    assert!(asks(&world.gate().check(&other(2)).await));
    world.gate().remember(whole);
    assert_eq!(world.gate().check(&other(2)).await, Verdict::Allow);
    let edit = world.request(
        tool("write_file", ToolKind::Edit),
        json!({"path": "a", "content": "x"}),
    );
    world.allow(&edit, "write_file").await;
    assert_eq!(world.gate().check(&edit).await, Verdict::Allow);
    std::os::unix::fs::symlink(".git", world.path().join("link")).unwrap();
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        ".rondo/init.lua",
        ".envrc",
        "AGENTS.md",
        "link/config",
        "/etc/hosts",
    ] {
        let edit = json!({"path": path, "content": "x"});
        let edit = world.request(tool("write_file", ToolKind::Edit), edit);
        assert!(asks(&world.gate().check(&edit).await), "{path}");
        assert_eq!(world.gate().terms(&edit).await.offers, [], "{path}");
    }
}

/// Outside of the sandbox an option of nearly any program reads or writes any file.
#[tokio::test]
async fn a_prefix_counts_only_in_the_sandbox() {
    let inside = World::new().in_sandbox();
    let commit = inside.command("git commit -m a");
    inside.allow(&commit, "exec(git commit *)").await;
    let mut outside = World::new();
    outside.options.grants = inside.options.grants.clone();
    let Verdict::Ask { prompt, .. } = outside.check("git commit -F ../.ssh/id_rsa").await else {
        panic!("it is asked about");
    };
    assert!(
        prompt.contains("allowed only in the sandbox (`--sandbox workspace-write`)"),
        "{prompt}"
    );
    let offers = outside.offers("git commit -m a").await;
    assert_eq!(offers.len(), 1, "{offers:?}");
    assert!(offers[0].starts_with("exec, exactly: "), "{offers:?}");
    let arguments = json!({"command": "git commit -m a", "outside_sandbox": true});
    let asking = inside.request(tool("exec", ToolKind::Execute), arguments);
    assert!(asks(&inside.gate().check(&asking).await));
}

/// Files in a directory have names that do not show in the command, and a link in the target leads anywhere.
#[tokio::test]
async fn a_copy_into_a_directory_is_judged_by_the_names_that_it_makes() {
    let mut world = World::new();
    world.has_outside_text = true;
    world.options.allowed_tools = ToolPatterns::parse(["exec"]).unwrap();
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(to, world.path().join(name)).unwrap();
    fs::create_dir(world.path().join("b")).unwrap();
    link("../../.bashrc", "b/x");
    link("/etc", "out");
    link("../nowhere", "dangling");
    for command in [
        "cp a/x b",
        "cp x b/",
        "ln -s y x b",
        "mv c/x b",
        "cp -a c/. .",
        "cp -r c d",
        "mkdir -p out/new/deep",
        "mkdir -p dangling/new",
        "touch dangling",
        "cp a dangling",
    ] {
        assert!(asks(&world.check(command).await), "{command}");
    }
    for command in ["cp a/y b", "mv y b/z", "mkdir -p new/deep", "touch new"] {
        assert_eq!(world.check(command).await, Verdict::Allow, "{command}");
    }
}

#[tokio::test]
async fn a_change_of_a_file_is_another_call_once_the_file_is_another_one() {
    let world = World::new();
    let edit = world.request(
        tool("write_file", ToolKind::Edit),
        json!({"path": "a", "content": "x"}),
    );
    let absent = world.gate().terms(&edit).await.hash;
    fs::write(world.path().join("a"), "1").unwrap();
    let there = world.gate().terms(&edit).await.hash;
    fs::write(world.path().join("a"), "2").unwrap();
    let changed = world.gate().terms(&edit).await.hash;
    assert!(absent != there && there != changed);
}

#[tokio::test]
async fn what_is_allowed_for_ever_is_written_and_counts_as_it_was_given() {
    let world = World::new().in_sandbox();
    let requests = [world.command("make all"), world.command("touch a")];
    let mut written = Vec::new();
    for request in &requests {
        let offers = world.gate().terms(request).await.offers;
        written.push(GrantSpec::of(offers.last().unwrap()));
    }
    let text = serde_json::to_string(&written).unwrap();
    let mut again = World {
        options: world.options.clone(),
        ..World::new()
    };
    again.options.grants = rondo_policy::Grants::default();
    let mut rules = Rules::default();
    rules.grant(serde_json::from_str(&text).unwrap()).unwrap();
    again.options.rules = Arc::new(rules);
    assert!(again.options.confined.is_some());
    for command in ["make all", "touch a", "touch b"] {
        assert_eq!(again.check(command).await, Verdict::Allow, "{command}");
    }
    for command in ["make", "make all x", "touch /x"] {
        assert!(asks(&again.check(command).await), "{command}");
    }
}

#[test]
fn a_grant_that_cannot_be_used_says_why() {
    let wrong = |text: &str| {
        let specs = serde_json::from_str(text).unwrap();
        Rules::default().grant(specs).unwrap_err()
    };
    assert!(wrong(r#"[{"tool": ""}]"#).contains("grant 1: it needs a `tool`"));
    assert!(wrong(r#"[{"tool": "t", "hash": "ab"}]"#).contains("64 hexadecimal"));
    assert!(wrong(r#"[{"tool": "t", "runs": "x"}]"#).contains("hash"));
    let hash = "a".repeat(64);
    assert!(
        wrong(&format!(
            r#"[{{"tool": "t", "command": ["x"], "hash": "{hash}"}}]"#
        ))
        .contains("not both")
    );
    let many = |count: usize| {
        let all = vec![serde_json::from_str::<GrantSpec>(r#"{"tool": "t"}"#).unwrap(); count];
        Rules::default().grant(all)
    };
    assert_eq!(many(Grant::COUNT_MAX - 1), Ok(()));
    assert_eq!(many(Grant::COUNT_MAX), Ok(()));
    assert!(many(Grant::COUNT_MAX + 1).is_err());
}

#[test]
fn the_oldest_grant_gives_way_beyond_the_bound() {
    let grants = rondo_policy::Grants::default();
    let numbered = |number: usize| Grant {
        scope: GrantScope::Tool {
            tool: number.to_string(),
        },
        despite_outside_text: false,
    };
    (0..=Grant::COUNT_MAX).for_each(|number| grants.add(numbered(number)));
    let list = grants.list();
    assert_eq!((list.len(), &list[0]), (Grant::COUNT_MAX, &numbered(1)));
    grants.add(numbered(1));
    assert_eq!(grants.list().last(), Some(&numbered(1)));
}

#[tokio::test]
async fn after_text_from_outside_rules_do_not_let_data_out_or_writes_outside() {
    let mut world = World::new();
    world.rules(
        r#"[{"command": ["cargo"], "decision": "allow"}, {"command": ["curl"], "decision": "allow"},
            {"command": ["touch"], "decision": "allow"}, {"tool": ["web", "mail", "write_file"], "decision": "allow"}]"#,
    );
    world.options.allowed_tools = ToolPatterns::parse(["exec(git push *)", "run_code"]).unwrap();
    let fetch = ToolSpec {
        effects: Effects::ReadOnly,
        ..tool("web", ToolKind::Fetch)
    };
    let look = ToolSpec {
        effects: Effects::ReadOnly,
        ..tool("read_file", ToolKind::Read)
    };
    let lookup = ToolSpec {
        effects: Effects::ReadOnly,
        hints: ToolHints::new(false, true, true),
        ..tool("search", ToolKind::Search)
    };
    let write = |path: &str| {
        (
            tool("write_file", ToolKind::Edit),
            json!({"path": path, "content": ""}),
        )
    };
    for (spec, arguments, is_asked) in [
        (fetch.clone(), json!({"url": "http://x"}), true),
        (lookup, json!({}), true),
        (tool("mail", ToolKind::Other), json!({}), true),
        (
            tool("run_code", ToolKind::Execute),
            json!({"code": "1"}),
            true,
        ),
        (look, json!({"path": "a"}), false),
        (write("a").0, write("a").1, false),
        (write("../a").0, write("../a").1, true),
        (write("/etc/a").0, write("/etc/a").1, true),
    ] {
        world.has_outside_text = false;
        let before = world.of_tool(spec.clone(), arguments.clone()).await;
        assert_eq!(before, Verdict::Allow, "{} {arguments}", spec.name);
        world.has_outside_text = true;
        let after = world.of_tool(spec.clone(), arguments.clone()).await;
        assert_eq!(asks(&after), is_asked, "{} {arguments}", spec.name);
    }
    for (command, is_asked) in [
        ("ls", false),
        ("touch a", false),
        ("cargo test", true),
        ("curl http://x", true),
        ("touch /tmp/a", true),
        ("git push origin", true),
        ("cargo test > log", true),
    ] {
        assert_eq!(asks(&world.check(command).await), is_asked, "{command}");
    }
}

#[tokio::test]
async fn after_text_from_outside_the_users_own_word_still_counts() {
    let mut world = World::new();
    world
        .allow(&world.command("make"), "exec, exactly: make")
        .await;
    assert_eq!(world.check("make").await, Verdict::Allow);
    world.has_outside_text = true;
    let Verdict::Ask { prompt, .. } = world.check("make").await else {
        panic!("it was given before such text")
    };
    assert!(prompt.contains("contains text from outside"), "{prompt}");
    world
        .allow(&world.command("make"), "exec, exactly: make")
        .await;
    assert_eq!(
        world.check("make").await,
        Verdict::Allow,
        "given knowing of it"
    );
    world.options.yolo = true;
    assert_eq!(world.check("curl http://x").await, Verdict::Allow);
}

#[tokio::test]
async fn after_text_from_outside_a_sandbox_still_holds_commands() {
    let mut world = World::new();
    world.has_outside_text = true;
    world.options.confined = Some(confined());
    assert_eq!(world.check("make && curl http://x").await, Verdict::Allow);
    world.options.allowed_tools = ToolPatterns::parse(["web"]).unwrap();
    let fetch = ToolSpec {
        effects: Effects::ReadOnly,
        ..tool("web", ToolKind::Fetch)
    };
    assert!(asks(&world.of_tool(fetch, json!({})).await));
}

#[test]
fn commands_that_bring_text_from_elsewhere_are_told_by_their_programs() {
    use rondo_policy::analysis::{fetches, may_fetch};
    for command in [
        "curl http://x",
        "cd a && curl -o b http://x | tee c",
        "/usr/bin/wget x",
        "git clone http://x",
        "git -C a pull",
        "sudo curl x",
        "bash -c 'curl x'",
        "echo $(curl x)",
        "npm install x",
        "pip install x",
        "gh issue view 1",
        "if true; then curl x; fi; f() { (( x",
    ] {
        assert!(fetches(command) && may_fetch(command), "{command}");
    }
    for command in [
        "ls",
        "grep -rn curl .",
        "cargo test",
        "git status",
        "git commit -m pull",
        "make",
    ] {
        let is_message = command.contains("-m pull");
        assert_eq!(fetches(command), is_message, "{command}");
    }
}

#[test]
fn of_a_command_that_is_taken_as_it_stands_the_text_alone_tells_whether_it_can_fetch() {
    use rondo_policy::analysis::{fetches, may_fetch};
    for command in [
        "true",
        "ls -la src",
        "A=1 make -j4 test",
        "/usr/bin/env true",
    ] {
        assert!(!may_fetch(command) && !fetches(command), "{command}");
    }
    // What the shell makes of these is not looked at.
    for command in [
        "c''url x", "c\\url x", "$A x", "{curl,x}", "true # x", "true\nls", "w?et x",
    ] {
        assert!(may_fetch(command), "{command}");
    }
}

#[tokio::test]
async fn what_tells_nobody_more_than_the_answer_is_no_way_out_for_text_from_outside() {
    let mut world = World::new();
    world.has_outside_text = true;
    let say = async |world: &World, chat: &str| {
        let arguments = json!({"text": "x", "chat": chat});
        world
            .of_tool(tool("message", ToolKind::Other), arguments)
            .await
    };
    assert!(asks(&say(&world, "own").await));
    world.options.answers =
        Answers::new(|tool, arguments| tool == "message" && arguments["chat"] == "own");
    assert_eq!(say(&world, "own").await, Verdict::Allow);
    assert!(asks(&say(&world, "other").await));
    world.rules(r#"[{"tool": "message", "decision": "ask"}]"#);
    assert!(asks(&say(&world, "own").await));
    world.options.disallowed_tools = ToolPatterns::parse(["message"]).unwrap();
    let verdict = say(&world, "own").await;
    assert!(matches!(verdict, Verdict::Deny { .. }), "{verdict:?}");
}

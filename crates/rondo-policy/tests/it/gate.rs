use rondo_core::ports::{Gate, GateRequest, Verdict};
use rondo_policy::rules::Decision;
use rondo_policy::{
    AllowedDirs, Confined, GateOptions, StandardGate, ToolPatterns, Variables, Workdir,
};
use rondo_types::{Effects, ToolKind, ToolSpec};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) work: TempDir,
    pub(crate) options: GateOptions,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        let options = GateOptions::new(AllowedDirs::new(work.path(), &[]).unwrap());
        Self { work, options }
    }

    pub(crate) async fn exec(&self, command: &str) -> Verdict {
        self.of_kind(ToolKind::Execute, "exec", json!({ "command": command }))
            .await
    }

    pub(crate) async fn of_kind(&self, kind: ToolKind, name: &str, arguments: Value) -> Verdict {
        let spec = ToolSpec {
            name: name.to_owned(),
            kind,
            ..ToolSpec::default()
        };
        self.check(spec, arguments).await
    }

    async fn tool(&self, name: &str, effects: Effects, arguments: Value) -> Verdict {
        let spec = ToolSpec {
            name: name.to_owned(),
            effects,
            ..ToolSpec::default()
        };
        self.check(spec, arguments).await
    }

    async fn check(&self, spec: ToolSpec, arguments: Value) -> Verdict {
        let request = GateRequest {
            session: rondo_types::SessionId::new("s"),
            call_id: rondo_types::CallId::new("c"),
            ..GateRequest::new(spec, arguments)
        };
        StandardGate::new(self.options.clone())
            .check(&request)
            .await
    }
}

fn is_ask(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Ask { .. })
}

fn is_deny(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deny { .. })
}

/// Returns a sandbox that holds everything, reaches no hosts and writes in the project.
pub(crate) fn confined() -> Confined {
    Confined {
        reaches_hosts: false,
        may_write: true,
        is_enough: true,
        protected: &[],
        kept: Vec::new(),
        tools: Vec::new(),
    }
}

#[tokio::test]
async fn code_of_a_persons_session_is_asked_about_whatever_is_allowed() {
    let mut fixture = Fixture::new();
    let run_code = |fixture: &Fixture| {
        let fixture = fixture.options.clone();
        async move {
            let fixture = Fixture {
                work: tempfile::tempdir().unwrap(),
                options: fixture,
            };
            let code = json!({ "code": "open('x', 'w')" });
            fixture.tool("run_code", Effects::Writes, code).await
        }
    };
    let confined = confined();
    fixture.options.confined = Some(confined.clone());
    fixture.options.yolo = true;
    assert!(is_ask(&run_code(&fixture).await));
    fixture.options.yolo = false;
    assert!(is_ask(&run_code(&fixture).await));
    let tools = vec!["run_code".to_owned()];
    fixture.options.confined = Some(Confined { tools, ..confined });
    assert!(is_ask(&run_code(&fixture).await));
    fixture.options.yolo = true;
    assert_eq!(run_code(&fixture).await, Verdict::Allow);
}

#[tokio::test]
async fn a_kept_place_is_asked_about_if_it_lies_in_the_directories_and_not_around_them() {
    let mut fixture = Fixture::new();
    let work = fixture.work.path().canonicalize().unwrap();
    fixture.options.confined = Some(Confined {
        reaches_hosts: false,
        may_write: true,
        is_enough: true,
        protected: &[],
        kept: vec![work.join("own"), work.parent().unwrap().to_owned()],
        tools: Vec::new(),
    });
    for (path, is_asked) in [
        ("own", true),
        ("own/a", true),
        ("a", false),
        ("b/own", false),
    ] {
        let arguments = json!({ "path": path });
        let verdict = fixture
            .of_kind(ToolKind::Edit, "write_file", arguments)
            .await;
        assert_eq!(is_ask(&verdict), is_asked, "{path}");
    }
}

#[tokio::test]
async fn a_file_that_makes_or_changes_a_repository_is_asked_about_in_whatever_order() {
    let parts = ["objects/x", "refs/x", "HEAD", "config"];
    let mut fixture = Fixture::new();
    fixture.options.confined = Some(Confined {
        reaches_hosts: false,
        may_write: true,
        is_enough: true,
        protected: &[".git"],
        kept: Vec::new(),
        tools: Vec::new(),
    });
    let write = async |path: &str| {
        let arguments = json!({ "path": path });
        fixture
            .of_kind(ToolKind::Edit, "write_file", arguments)
            .await
    };
    for last in 0..parts.len() {
        let folder = format!("docs/{last}");
        for part in parts.iter().enumerate().filter(|it| it.0 != last) {
            let path = format!("{folder}/{}", part.1);
            // Three of these parts are not a repository whose settings are read.
            let is_whole = last == 3 && part.0 == 2;
            assert_eq!(is_ask(&write(&path).await), is_whole, "{path}");
            let path = fixture.work.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let last = format!("{folder}/{}", parts[last]);
        assert!(is_ask(&write(&last).await), "{last}");
        assert!(!is_ask(&write(&format!("{folder}/notes")).await));
        assert!(!is_ask(&write(&format!("{folder}/sub/config")).await));
    }
    std::fs::create_dir(fixture.work.path().join("w")).unwrap();
    std::fs::write(fixture.work.path().join("w/HEAD"), "").unwrap();
    assert!(is_ask(&write("w/commondir").await));
    assert!(!is_ask(&write("config").await));
}

#[tokio::test]
async fn a_command_line_is_known_by_the_tools_kind_and_not_by_its_name() {
    let fixture = Fixture::new();
    let command = || json!({ "command": "ls" });
    let sh = fixture.of_kind(ToolKind::Execute, "sh", command()).await;
    assert_eq!(sh, Verdict::Allow);
    let named = fixture.of_kind(ToolKind::Other, "exec", command()).await;
    assert!(is_ask(&named), "{named:?}");
    let code = fixture.of_kind(ToolKind::Execute, "run_code", json!({ "code": "ls" }));
    assert!(is_ask(&code.await));
}

#[tokio::test]
async fn looking_is_allowed_and_the_rest_is_asked_about() {
    let fixture = Fixture::new();
    assert_eq!(fixture.exec("ls | wc -l").await, Verdict::Allow);
    assert!(is_ask(&fixture.exec("touch x").await));
    assert!(is_ask(&fixture.exec("if then").await));
    let read = fixture.tool("read_file", Effects::ReadOnly, json!({}));
    assert_eq!(read.await, Verdict::Allow);
    assert!(is_ask(
        &fixture.tool("write_file", Effects::Writes, json!({})).await
    ));
}

#[tokio::test]
async fn the_question_shows_everything_that_will_happen() {
    let fixture = Fixture::new();
    let Verdict::Ask { prompt, .. } = fixture.exec("touch x\u{1b}[2K\u{202e} y").await else {
        panic!("asked")
    };
    let place = std::fs::canonicalize(fixture.work.path()).unwrap();
    assert!(prompt.contains("touch x\\u{1b}[2K\\u{202e} y"), "{prompt}");
    assert!(prompt.contains(&place.display().to_string()));
    assert!(!prompt.contains('\u{1b}'));
    let arguments = json!({ "path": "a", "content": "b" });
    let Verdict::Ask { prompt, .. } = fixture.tool("write_file", Effects::Writes, arguments).await
    else {
        panic!("asked")
    };
    assert!(prompt.contains("write_file") && prompt.contains("\n  content: b"));
}

#[tokio::test]
async fn yolo_allows_what_is_not_refused() {
    let mut fixture = Fixture::new();
    fixture.options.yolo = true;
    fixture.options.disallowed_tools =
        ToolPatterns::parse(["exec(git push)", "web_fetch"]).unwrap();
    assert_eq!(fixture.exec("touch x").await, Verdict::Allow);
    let write = fixture.tool("write_file", Effects::Writes, json!({})).await;
    assert_eq!(write, Verdict::Allow);
    for command in [
        "git push",
        "/usr/bin/git push",
        "ls; git push --force",
        "echo $(git push)",
        "$G push",
        "bash -c 'git push'",
        "select",
    ] {
        assert!(is_deny(&fixture.exec(command).await), "{command}");
    }
    assert_eq!(fixture.exec("git pull").await, Verdict::Allow);
    assert!(is_deny(
        &fixture
            .tool("web_fetch", Effects::ReadOnly, json!({}))
            .await
    ));
}

#[tokio::test]
async fn what_is_refused_is_refused_behind_other_programs_too() {
    let mut fixture = Fixture::new();
    fixture.options.yolo = true;
    fixture.options.disallowed_tools =
        ToolPatterns::parse(["exec(rm *)", "exec(git push *)"]).unwrap();
    for command in [
        "sudo rm x",
        "sudo -u nobody rm x",
        "doas rm x",
        "unshare rm x",
        "unshare -r /bin/rm x",
        "taskset 1 rm x",
        "chrt 0 rm x",
        "setpriv --no-new-privs rm x",
        "prlimit --nproc=9 rm x",
        "watch rm x",
        "watch 'rm x'",
        "ssh-agent rm x",
        "setarch x86_64 rm x",
        "systemd-run --user rm x",
        "some-wrapper-of-mine -v rm x",
        "some-wrapper-of-mine 'rm x'",
        "tar cf x.tar --checkpoint-action=exec='rm x' .",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "python3.12 -c 'import os; os.system(\"rm x\")'",
        "perl -e 'exec \"rm\"'",
        "bash -c 'r$@m x'",
        "sh -c 'r?m x'",
        "env bash -c 'r${x}m x'",
        "bash <<'E'\nr$@m x\nE",
        "echo 'r$@m x' | sh",
        "cat script | sh",
        "EDITOR='rm x' git commit",
        "PAGER=rm man ls",
        "PS4='$(rm x)'; set -x; ls",
        "mapfile -C rm -c 1 x",
        "hash -p /bin/rm ls; ls x",
        "docker run image rm x",
        "cat <<$'E'\nx\nE\nrm x\n$'E'",
        "git rebase --exec 'rm x' main",
        "git -c alias.x='!rm x' x",
        "git bisect run rm x",
        "git submodule foreach 'rm x'",
        "git -C . push",
        "git --no-pager push --force",
        "git -c push.default=current push",
        "coproc rm x",
        "time rm x",
        "( rm x )",
        "if true; then rm x; fi",
        "cd / && rm x",
    ] {
        assert!(is_deny(&fixture.exec(command).await), "{command}");
    }
    for command in [
        "touch x",
        "cargo test",
        "cargo rm serde",
        "git pull",
        "git rm x",
        "git commit -m 'rm it'",
        "env A=1 python3 -m pytest tests/*.py",
        "timeout 5 cargo test *.rs",
        "touch r*",
        "printf '%s' '$(rm x)'",
        "unset a",
        "grep -rn rm .",
        "find . -name rm",
        "cp rm x",
        "for f in a b; do touch $f; done",
        "touch $(pwd)",
        "bash -c 'touch x'",
        "time cargo test",
        "[[ -f x ]] && touch y",
    ] {
        assert_eq!(fixture.exec(command).await, Verdict::Allow, "{command}");
    }
}

#[tokio::test]
async fn what_follows_an_allowed_change_of_the_shell_is_asked_about() {
    let mut fixture = Fixture::new();
    fixture.options.allowed_tools = ToolPatterns::parse([
        "exec(cd *)",
        "exec(pushd *)",
        "exec(export *)",
        "exec(touch *)",
    ])
    .unwrap();
    for command in ["cd /", "pushd /", "export A=b", "touch x; ls"] {
        assert_eq!(fixture.exec(command).await, Verdict::Allow, "{command}");
    }
    for command in [
        "cd / && cat etc/passwd",
        "pushd /; ls etc",
        "export PATH=.; ls",
        "for x in a b; do ls etc; cd /; done",
        "f() { cd /; }; f; ls etc",
        "cd /; cat < etc/passwd",
    ] {
        assert!(is_ask(&fixture.exec(command).await), "{command}");
    }
}

#[tokio::test]
async fn allowed_commands_must_all_be_allowed() {
    let mut fixture = Fixture::new();
    fixture.options.allowed_tools =
        ToolPatterns::parse(["exec(cargo test)", "exec(git *)", "edit_file"]).unwrap();
    for command in [
        "cargo test",
        "cargo test -p x 2>&1 | tail -5",
        "git add . && git commit -m \"$(pwd)\"",
    ] {
        assert_eq!(fixture.exec(command).await, Verdict::Allow, "{command}");
    }
    for command in [
        "cargo testing",
        "cargo",
        "cargo test; rm x",
        "cargo test > out",
        "PATH=. cargo test",
        "git log $(rm x)",
        "gitk",
        "git log &",
    ] {
        assert!(is_ask(&fixture.exec(command).await), "{command}");
    }
    let edit = fixture.tool("edit_file", Effects::Writes, json!({})).await;
    assert_eq!(edit, Verdict::Allow);
    fixture.options.allowed_tools = ToolPatterns::parse(["exec"]).unwrap();
    assert_eq!(fixture.exec("rm x > y").await, Verdict::Allow);
}

#[tokio::test]
async fn hub_33_blacklisted_programs_are_refused_wherever_they_hide() {
    let mut of_set = Fixture::new();
    let hub = rondo_core::profile::builtin("hub").unwrap();
    for name in &hub.rule_sets {
        let rules = Arc::make_mut(&mut of_set.options.rules);
        rules.put_in_force(name, "hub").unwrap();
    }
    // As a profile lists them, and journals have it that were written before there were sets.
    let mut of_list = Fixture::new();
    let programs = BLACKLIST.map(str::to_owned);
    Arc::make_mut(&mut of_list.options.rules).forbid_programs(&programs, "hub");
    for mut fixture in [of_set, of_list] {
        fixture.options.yolo = true;
        blacklisted_programs_are_refused(&fixture).await;
    }
}

/// The programs that the design of the chat gateway refuses.
const BLACKLIST: [&str; 9] = [
    "rm", "sudo", "dd", "mkfs", "shutdown", "reboot", "passwd", "visudo", "su",
];

async fn blacklisted_programs_are_refused(fixture: &Fixture) {
    for program in BLACKLIST {
        assert!(is_deny(&fixture.exec(program).await), "{program}");
    }
    for command in [
        "rm x",
        "/bin/rm x",
        "sudo ls",
        "r''m x",
        "\\rm x",
        "ls; rm x",
        "ls | xargs rm",
        "find . -exec rm {} +",
        "env rm x",
        "nohup rm x",
        "bash -c 'rm x'",
        "bash -c 'r\"\"m x'",
        "eval 'rm x'",
        "echo $(rm x)",
        "echo \"`rm x`\"",
        "echo 'rm x' | sh",
        "sh <<< 'rm x'",
        "bash <<'E'\nrm x\nE",
        "echo cm0geA== | base64 -d | bash",
        "$RM x",
        "$(echo rm) x",
        "bash -c \"$X\"",
        "f() { rm x; }; f",
        "mkfs.ext4 /dev/sda",
        "dd if=/dev/zero of=x",
        "shutdown now",
        "time rm x",
        "busybox rm x",
        "echo ${x:-$(rm x)}",
        "if then",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "cat <(rm x)",
        "trap 'rm x' EXIT",
        "test -v 'a[$(rm x)]'",
        "[ -v 'a[`rm x`]' ]",
        "unset 'a[$(rm x)]'",
        "printf -v 'a[$(rm x)]' x",
        "builtin unset 'a[$(rm x)]'",
        "env /bin/r? x",
        "find . -exec /bin/r? {} +",
        "timeout 5 /bin/[^a]m x",
        "xargs /bin/r*",
        "command /bin/?m x",
        "touch rm; env r? x",
        "git -c alias.z='!/bin/r? x' z",
        "GIT_SSH_COMMAND='/bin/r? x' git fetch",
        "env /sbin/mkf?.ext4 x",
        "env a* b* c* d* e* f* g* h* i* j* k* l* m* n* o* p* q* s* t* u* v* w* y* z* \
         aa* bb* cc* dd* ee* ff* gg* hh* ii*",
    ] {
        assert!(is_deny(&fixture.exec(command).await), "{command}");
    }
    for command in [
        "ls",
        "touch x",
        "echo rm",
        "cargo test",
        "git commit -m 'rm it'",
    ] {
        assert_eq!(fixture.exec(command).await, Verdict::Allow, "{command}");
    }
}

#[tokio::test]
async fn a_working_directory_counts() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.work.path().join("sub")).unwrap();
    let run = |directory: &'static str, command: &'static str| {
        let arguments = json!({ "command": command, "working_directory": directory });
        fixture.of_kind(ToolKind::Execute, "exec", arguments)
    };
    assert_eq!(run("sub", "ls ..").await, Verdict::Allow);
    assert!(is_ask(&run("sub", "ls ../..").await));
    assert!(is_ask(&run("/", "ls").await));
    assert!(is_deny(&run("nowhere", "ls").await));
}

#[test]
fn patterns_that_cannot_be_read_are_errors() {
    for pattern in ["", "(", "exec(git", "exec)", "a b", "exec(git) x"] {
        assert!(ToolPatterns::parse([pattern]).is_err(), "{pattern}");
    }
}

async fn asked(verdict: impl Future<Output = Verdict>) -> String {
    match verdict.await {
        Verdict::Ask { prompt, .. } => prompt,
        other => panic!("not asked about: {other:?}"),
    }
}

#[tokio::test]
async fn the_question_shows_the_path_before_the_content_and_the_end_of_all() {
    let fixture = Fixture::new();
    let content = format!("{}\nlast line", "x".repeat(9_000));
    let arguments = json!({ "content": content, "path": "important.txt" });
    let write = fixture.tool("write_file", Effects::Writes, arguments);
    let prompt = asked(write).await;
    assert!(
        prompt.starts_with("`write_file` wants to run with\n  path: important.txt\n"),
        "{prompt}"
    );
    assert!(prompt.contains("content: (2 lines, 9010 characters)"));
    assert!(prompt.ends_with("\n  │ last line"), "{prompt}");
}

#[tokio::test]
async fn the_question_about_a_long_command_names_its_programs_and_shows_its_end() {
    let fixture = Fixture::new();
    let place = std::fs::canonicalize(fixture.work.path()).unwrap();
    let command = format!(
        "touch a\n{}rm -rf b\n{}echo done",
        "echo x\n".repeat(100),
        "echo y\n".repeat(100)
    );
    let prompt = asked(fixture.exec(&command)).await;
    let head = format!(
        "`exec` wants to run touch, echo, rm in {}\n  command: (203 lines, ",
        place.display()
    );
    assert!(prompt.starts_with(&head), "{prompt}");
    assert!(prompt.contains("\n  │ echo done\nReason: "));
}

#[tokio::test]
async fn the_question_shows_what_else_a_command_is_given() {
    let fixture = Fixture::new();
    let arguments = json!({ "timeout": 7, "command": "touch \u{e0041}x" });
    let prompt = asked(fixture.of_kind(ToolKind::Execute, "exec", arguments)).await;
    assert!(
        prompt.contains("\n  command: touch \\u{e0041}x\n  timeout: 7\n"),
        "{prompt}"
    );
}

impl Fixture {
    /// Sets what commands find in their environment.
    fn with_variables(&mut self, variables: &[(&str, &str)]) {
        let workdir = Workdir::new(self.work.path().to_owned());
        let pairs = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        workdir.set_environment(pairs.collect::<Variables>());
        self.options.workdir = Some(workdir);
    }
}

#[tokio::test]
async fn a_program_that_lies_in_the_workspace_is_not_taken_for_one_that_looks() {
    let mut fixture = Fixture::new();
    let bin = fixture.work.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("ls"), "#!/bin/sh\ntouch x\n").unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&bin, outside.path().join("link")).unwrap();
    let link = outside.path().join("link").display().to_string();
    for path in [
        "bin:/bin",
        "./bin:/usr/bin:/bin",
        &format!("{}:/usr/bin:/bin", bin.display()),
        &format!("{link}:/usr/bin:/bin"),
    ] {
        fixture.with_variables(&[("PATH", path)]);
        assert!(is_ask(&fixture.exec("ls").await), "{path}");
        assert!(is_ask(&fixture.exec("pwd | ls").await), "{path}");
        assert_eq!(fixture.exec("pwd").await, Verdict::Allow, "{path}");
        assert_eq!(fixture.exec("wc -l < bin/ls").await, Verdict::Allow);
    }
    fixture.with_variables(&[("PATH", ":/usr/bin:/bin")]);
    assert_eq!(fixture.exec("ls").await, Verdict::Allow);
    assert!(is_ask(&fixture.exec("cd bin && ls").await));
    fixture.with_variables(&[("PATH", &format!("/usr/bin:/bin:{}", bin.display()))]);
    assert_eq!(fixture.exec("ls").await, Verdict::Allow);
}

#[tokio::test]
async fn a_lookalike_is_asked_about_beside_what_is_allowed_by_name() {
    let mut fixture = Fixture::new();
    std::fs::write(fixture.work.path().join("ls"), "").unwrap();
    fixture.options.allowed_tools = ToolPatterns::parse(["exec(touch *)"]).unwrap();
    fixture.with_variables(&[("PATH", "/usr/bin:/bin")]);
    assert_eq!(fixture.exec("ls; touch x").await, Verdict::Allow);
    fixture.with_variables(&[("PATH", ".:/usr/bin:/bin")]);
    assert!(is_ask(&fixture.exec("ls").await));
    assert!(is_ask(&fixture.exec("ls; touch x").await));
}

#[tokio::test]
async fn variables_that_have_a_program_load_something_are_asked_about() {
    let mut fixture = Fixture::new();
    let inside = fixture.work.path().join("rc").display().to_string();
    for (name, value, command) in [
        ("RIPGREP_CONFIG_PATH", "rc", "rg x"),
        ("RIPGREP_CONFIG_PATH", &inside, "rg x"),
        ("LD_PRELOAD", "./evil.so", "ls"),
        ("LD_PRELOAD", &inside, "ls"),
        ("LD_LIBRARY_PATH", "/usr/lib:", "ls"),
        ("LD_AUDIT", "evil.so", "ls"),
        ("GIT_EXTERNAL_DIFF", "/bin/evil", "git status"),
        ("GIT_DIR", "/elsewhere", "git status"),
        ("GIT_CONFIG_COUNT", "1", "git status"),
        ("GIT_TRACE", "/tmp/written", "git status"),
        ("BASH_FUNC_ls%%", "() { touch x; }", "ls"),
    ] {
        fixture.with_variables(&[("PATH", "/usr/bin:/bin"), (name, value)]);
        assert!(is_ask(&fixture.exec(command).await), "{name}={value}");
    }
    for (name, value, command) in [
        ("RIPGREP_CONFIG_PATH", "/etc/ripgreprc", "rg x"),
        ("RIPGREP_CONFIG_PATH", "rc", "ls"),
        ("LD_PRELOAD", "libjemalloc.so.2", "ls"),
        ("LD_LIBRARY_PATH", "/opt/lib", "ls"),
        ("GIT_DIR", "/elsewhere", "ls"),
        ("BASH_FUNC_module%%", "() { x; }", "ls"),
        // They do not reach commands.
        ("BASH_ENV", "evil", "ls"),
        ("CDPATH", "/", "cd . && ls"),
        ("POSIXLY_CORRECT", "1", "ls"),
    ] {
        fixture.with_variables(&[("PATH", "/usr/bin:/bin"), (name, value)]);
        assert_eq!(
            fixture.exec(command).await,
            Verdict::Allow,
            "{name}={value}"
        );
    }
}

/// A search path with a directory outside, which has a program of that name and a link to it by way of the workspace.
#[tokio::test]
async fn a_program_that_was_found_outside_is_looked_for_again_where_the_workspace_can_lead_elsewhere()
 {
    let mut fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    let (real, by_link) = (outside.path().join("real"), outside.path().join("by-link"));
    std::fs::create_dir(&real).unwrap();
    std::fs::create_dir(&by_link).unwrap();
    std::fs::write(real.join("ls"), "").unwrap();
    let work = std::fs::canonicalize(fixture.work.path()).unwrap();
    let within = work.join("link");
    std::os::unix::fs::symlink(real.join("ls"), &within).unwrap();
    std::os::unix::fs::symlink(&within, by_link.join("ls")).unwrap();
    let workdir = Workdir::new(work.clone());
    fixture.options.workdir = Some(workdir.clone());
    let gate = StandardGate::new(fixture.options.clone());
    let path = |entries: &[&std::path::Path]| {
        let value = std::env::join_paths(entries).unwrap();
        workdir.set_environment([(OsString::from("PATH"), value)].into_iter().collect());
    };
    let decision = || gate.explain("exec", "ls").pop().unwrap().decision;
    // Once found plainly outside, and still so whatever is beside it.
    path(&[&real]);
    assert_eq!(decision(), Decision::Allow);
    assert_eq!(decision(), Decision::Allow);
    // By a link that the workspace can turn elsewhere.
    path(&[&by_link]);
    assert_eq!(decision(), Decision::Allow);
    std::fs::remove_file(&within).unwrap();
    std::fs::write(work.join("own"), "").unwrap();
    std::os::unix::fs::symlink(work.join("own"), &within).unwrap();
    assert_eq!(decision(), Decision::Ask);
    // A directory of the workspace comes first, and is empty at first.
    let bin = work.join("bin");
    std::fs::create_dir(&bin).unwrap();
    path(&[&bin, &real]);
    assert_eq!(decision(), Decision::Allow);
    std::fs::write(bin.join("ls"), "").unwrap();
    assert_eq!(decision(), Decision::Ask);
}

/// Directories outside from which programs load libraries: by a link, and through a directory that is not there yet.
#[tokio::test]
async fn libraries_are_looked_for_again_where_their_directory_can_come_to_lead_into_the_workspace()
{
    let mut fixture = Fixture::new();
    let place = tempfile::tempdir().unwrap();
    let outside = std::fs::canonicalize(place.path()).unwrap();
    let work = std::fs::canonicalize(fixture.work.path()).unwrap();
    let workdir = Workdir::new(work.clone());
    fixture.options.workdir = Some(workdir.clone());
    let gate = StandardGate::new(fixture.options.clone());
    let decision = |libraries: &std::path::Path| {
        let variables = [
            ("PATH", "/usr/bin".into()),
            ("LD_LIBRARY_PATH", libraries.into()),
        ];
        let variables = variables.map(|(name, value): (_, OsString)| (OsString::from(name), value));
        workdir.set_environment(variables.into_iter().collect());
        gate.explain("exec", "ls").pop().unwrap().decision
    };
    let link = outside.join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    assert_eq!(decision(&link), Decision::Allow);
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&work, &link).unwrap();
    assert_eq!(decision(&link), Decision::Ask);
    let (parent, name) = (work.parent().unwrap(), work.file_name().unwrap());
    assert_eq!(outside.parent(), Some(parent));
    let through = outside.join("later/../..").join(name);
    assert_eq!(decision(&through), Decision::Allow);
    std::fs::create_dir_all(outside.join("later")).unwrap();
    assert_eq!(decision(&through), Decision::Ask);
}

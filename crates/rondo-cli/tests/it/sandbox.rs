//! Commands that the kernel confines, and what is allowed for that.

use crate::harness::{TestEnv, ask_args, calls, says, serve};
use serde_json::json;

/// Most containers do not let a process confine itself; then a turn that needs it does not start.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
pub(crate) fn is_enforced() -> bool {
    let is_full = rondo_runtime::confined::is_full();
    if !is_full {
        let found = rondo_runtime::confined::enforced();
        eprintln!("not run, since the sandbox is not enforced here: {found:?}");
    }
    is_full
}

async fn result_of(env: &TestEnv, flags: &[&str], command: &str) -> (Option<i32>, String) {
    let server = serve(vec![
        calls("exec", &json!({ "command": command })),
        says("Done."),
    ])
    .await;
    let args = [flags, &["do it"]].concat();
    let shown = env.ask(&server, &args).await;
    let requests = server.requests();
    let result = requests.get(1).map(|it| it.json()["messages"].to_string());
    (shown.code, result.unwrap_or(shown.stderr))
}

#[tokio::test]
async fn gs_f2_what_stays_inside_the_sandbox_runs_unasked_and_changes_nothing_outside() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("made");
    let script = format!(
        "echo a > made.txt; echo b > {}; cat ~/.config/rondo/config.toml; echo end",
        target.display()
    );
    let (code, result) = result_of(&env, &["--approval", "auto"], &script).await;
    assert_eq!(code, Some(0), "{result}");
    assert!(result.contains("end"), "{result}");
    assert!(env.project().join("made.txt").exists(), "{result}");
    assert!(!target.exists(), "{result}");
}

/// Starts the program as an ordinary user, with the files that user needs: root may do more than others.
#[cfg(target_os = "linux")]
const AS_ORDINARY_USER: &str = "exec 9< \"$0\"
if [ $(id -u) = 0 ]; then
  chmod 755 \"$HOME\"/.. && chown -R 65534:65534 \"$HOME\" . && as='setpriv --reuid 65534 --regid 65534 --clear-groups'
fi
exec $as /proc/self/fd/9 \"$@\"";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_ordinary_user_has_the_whole_sandbox() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let doctor = ["doctor", "-m", "openai/m"];
    let output = env.wrapped(AS_ORDINARY_USER, &doctor).output().await;
    let shown = env.shown(&output.unwrap());
    assert!(
        shown.stdout.contains("\nok sandbox "),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_of_an_ordinary_user_are_held_one_after_another() {
    if !is_enforced() {
        return;
    }
    let commands = [
        "touch /tmp/left-behind; ls -A /tmp",
        "ls -A /tmp; id -u",
        "ls -A /tmp; touch made",
    ];
    let steps = commands.map(|it| calls("exec", &json!({ "command": it })));
    let server = serve(steps.into_iter().chain([says("Done.")]).collect()).await;
    let env = TestEnv::new().var("OPENAI_API_KEY", "sk-0123456789abcdef");
    let url = server.url("/v1");
    let args = [
        "ask",
        "-m",
        "openai/m",
        "--base-url",
        &url,
        "--approval",
        "auto",
        "do it",
    ];
    let output = env.wrapped(AS_ORDINARY_USER, &args).output().await;
    let shown = env.shown(&output.unwrap());
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let requests = server.requests();
    let results = requests.last().map(|it| it.json()["messages"].to_string());
    let results = results.unwrap_or_default();
    assert_eq!(results.matches("left-behind\\").count(), 1, "{results}");
    assert!(env.project().join("made").exists(), "{results}");
    assert!(!std::path::Path::new("/tmp/left-behind").exists());
}

#[tokio::test]
async fn what_the_sandbox_does_not_hold_is_asked_about() {
    if !is_enforced() {
        return;
    }
    for (tool, arguments) in [
        ("write_file", json!({"path": "AGENTS.md", "content": "x"})),
        (
            "write_file",
            json!({"path": "a/.git/hooks/x", "content": "x"}),
        ),
        (
            "write_file",
            json!({"path": ".Rondo/config.toml", "content": "x"}),
        ),
    ] {
        let server = serve(vec![calls(tool, &arguments), says("Done.")]).await;
        let env = TestEnv::new();
        let shown = env.ask(&server, &["--approval", "auto", "do it"]).await;
        assert_eq!(shown.code, Some(44), "{shown:?}");
        assert!(std::fs::read_dir(env.project()).unwrap().next().is_none());
    }
    let server = serve(vec![
        calls("write_file", &json!({"path": "a/made.txt", "content": "x"})),
        says("Done."),
    ])
    .await;
    let env = TestEnv::new();
    let shown = env.ask(&server, &["--approval", "auto", "do it"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(env.project().join("a/made.txt").exists());
}

/// With only a part of the tree to write, `git` would leave the rest behind and say that it succeeded.
#[tokio::test]
async fn in_a_subdirectory_git_changes_the_whole_tree_and_what_is_protected_stays() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let made = std::process::Command::new("bash")
        .args(["-c", "git init -q -b main . && git config user.name A && git config user.email a@b && mkdir -p crates/app \
               && echo one > notes.md && touch crates/app/a && git add -A && git commit -qm one && git switch -qc both \
               && echo two > notes.md && echo n > crates/app/new && git commit -qam two && git add -A && git commit -qm three \
               && git switch -q main"])
        .current_dir(env.project())
        .status();
    assert!(made.unwrap().success());
    let command = "git switch both && git status --porcelain && cat ../../notes.md; touch ../../../out; \
                   echo x > ../../.envrc; git config core.fsmonitor x";
    let flags = ["--approval", "auto", "-C", "crates/app"];
    let (code, result) = result_of(&env, &flags, command).await;
    assert_eq!(code, Some(0), "{result}");
    assert!(result.contains("two"), "{result}");
    let notes = std::fs::read_to_string(env.project().join("notes.md")).unwrap();
    assert_eq!(notes, "two\n", "{result}");
    assert!(env.project().join("crates/app/new").exists(), "{result}");
    assert!(!env.project().join("../out").exists(), "{result}");
    assert!(!env.project().join(".envrc").exists(), "{result}");
    let config = std::fs::read_to_string(env.project().join(".git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
    let status = std::process::Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(env.project())
        .output();
    let status = String::from_utf8(status.unwrap().stdout).unwrap();
    assert!(!status.contains("notes.md"), "{status}");
}

#[tokio::test]
async fn an_agents_own_python_runs_in_the_sandbox_and_changes_nothing_outside() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("made");
    let code = format!(
        "open('made.txt', 'w').write('a')\ntry:\n    open({target:?}, 'w').write('b')\nexcept OSError as e:\n    print('refused', e.errno)"
    );
    let server = serve(vec![
        calls("eval_expr", &json!({"expr": format!("exec({code:?})")})),
        says("Done."),
    ])
    .await;
    let flags = [
        "--profile",
        "python",
        "--yolo",
        "--sandbox",
        "workspace-write",
        "do it",
    ];
    let shown = env.ask(&server, &flags).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let result = server.requests()[1].json()["messages"].to_string();
    assert!(env.project().join("made.txt").exists(), "{result}");
    assert!(!target.exists() && result.contains("refused"), "{result}");
}

#[tokio::test]
async fn yolo_in_a_sandbox_stays_in_it() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let flags = ["--yolo", "--sandbox", "read-only"];
    let tries = "touch made.txt; echo \"code $?\"; echo \"caches in <$GOCACHE$XDG_CACHE_HOME>\"";
    let (code, result) = result_of(&env, &flags, tries).await;
    assert_eq!(code, Some(0), "{result}");
    assert!(result.contains("code 1"), "{result}");
    // What it leaves in a cache would be run by later commands.
    assert!(result.contains("caches in <>"), "{result}");
    assert!(!env.project().join("made.txt").exists());
}

#[tokio::test]
async fn a_denial_holds_in_the_sandbox_too() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let (_, result) = result_of(&env, &["--approval", "auto"], "rm -rf /").await;
    assert!(result.contains("it removes the root directory"), "{result}");
}

#[tokio::test]
async fn allowing_what_the_sandbox_holds_needs_one() {
    let env = TestEnv::new();
    let flags = ["--approval", "auto", "--sandbox", "off"];
    let (code, said) = result_of(&env, &flags, "true").await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`sandbox` is `off`"), "{said}");
}

#[tokio::test]
async fn there_is_no_sandbox_around_a_home_directory() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let home = env.home();
    for directory in [home.to_str().unwrap(), "/"] {
        let flags = ["--approval", "auto", "-C", directory];
        let (code, said) = result_of(&env, &flags, "true").await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("your home directory is in it"), "{said}");
    }
}

#[tokio::test]
async fn whatever_is_allowed_tools_keep_to_what_the_sandbox_allows() {
    if !is_enforced() {
        return;
    }
    let write = |path: &str| json!({"path": path, "content": "x"});
    for (mode, path, code, is_made) in [
        ("workspace-write", "made.txt", 0, true),
        ("workspace-write", "AGENTS.md", 44, false),
        ("workspace-write", ".git/config", 44, false),
        ("read-only", "made.txt", 0, false),
    ] {
        let server = serve(vec![calls("write_file", &write(path)), says("Done.")]).await;
        let env = TestEnv::new();
        let flags = [
            "--yolo",
            "--allowed-tools",
            "write_file",
            "--sandbox",
            mode,
            "do it",
        ];
        let shown = env.ask(&server, &flags).await;
        assert_eq!(shown.code, Some(code), "{mode} {path}: {shown:?}");
        assert_eq!(env.project().join(path).exists(), is_made, "{mode} {path}");
    }
}

#[tokio::test]
async fn what_only_looks_is_held_to_it_in_every_mode() {
    if !is_enforced() {
        return;
    }
    let looks = "test -w seen.txt && echo may write || echo held";
    for flags in [
        &[][..],
        &["--yolo"],
        &["--plan"],
        &["--approval", "auto"],
        &["--sandbox", "off"],
    ] {
        let env = TestEnv::new();
        env.write("seen.txt", "");
        let (code, result) = result_of(&env, flags, looks).await;
        assert_eq!(code, Some(0), "{flags:?}: {result}");
        assert!(result.contains("held"), "{flags:?}: {result}");
    }
}

#[tokio::test]
async fn running_outside_of_the_sandbox_is_asked_about_in_every_mode() {
    if !is_enforced() {
        return;
    }
    let arguments = json!({
        "command": "touch made.txt", "outside_sandbox": true, "justification": "it is slow inside",
    });
    for (flags, code) in [
        (&["--approval", "auto"][..], 44),
        (&["--yolo", "--sandbox", "workspace-write"], 44),
        (&["--yolo"], 0),
    ] {
        let server = serve(vec![calls("exec", &arguments), says("Done.")]).await;
        let env = TestEnv::new();
        let shown = env.ask(&server, &[flags, &["do it"]].concat()).await;
        assert_eq!(shown.code, Some(code), "{flags:?}: {shown:?}");
        assert_eq!(env.project().join("made.txt").exists(), code == 0);
        let says = "asked to run outside the sandbox, which always needs approval";
        assert_eq!(shown.stderr.contains(says), code == 44, "{shown:?}");
        let tools = server.requests()[0].json()["tools"].to_string();
        assert_eq!(tools.contains("outside_sandbox"), code == 44, "{tools}");
    }
}

/// Runs the binary if it is given no namespaces, as in most containers.
fn without_namespaces(env: &TestEnv, args: &[&str]) -> tokio::process::Command {
    // Without capabilities, since who may mount needs no namespace of users.
    let script = "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all \"$@\"' - \"$0\" \"$@\"";
    env.wrapped(script, args)
}

#[tokio::test]
async fn where_there_are_no_namespaces_less_holds_and_it_is_said() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let shown = env.shown(
        &without_namespaces(&env, &["doctor"])
            .output()
            .await
            .unwrap(),
    );
    assert!(
        shown.stdout.contains("sandbox          in part"),
        "{shown:?}"
    );
    let outside = env.home().join("made");
    let script = format!(
        "echo a > made.txt; echo b > .envrc; echo c > {}; echo end",
        outside.display()
    );
    let server = serve(vec![
        calls("exec", &json!({ "command": script })),
        says("Done."),
    ])
    .await;
    let url = server.url("/v1");
    let args = ask_args(&url, &["--approval", "auto", "do it"]);
    let shown = env.shown(&without_namespaces(&env, &args).output().await.unwrap());
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown
            .stderr
            .contains("the sandbox protects only in part here"),
        "{shown:?}"
    );
    let result = server.requests()[1].json()["messages"].to_string();
    assert!(
        result.contains("end") && result.contains(".envrc.refused"),
        "{result}"
    );
    assert!(env.project().join("made.txt").exists() && !env.project().join(".envrc").exists());
    assert!(!outside.exists());
}

/// Asks the proxy that the command's environment names for a host, and prints what it says.
const ASK_PROXY: &str = "python3 -c 'import urllib.request as r, urllib.error as e
try: r.urlopen(\"http://other.example/\", timeout=20)
except e.HTTPError as error: print(error.read().decode())
except Exception as error: print(error)'";

#[tokio::test]
async fn hosts_that_a_rule_allows_are_reached_by_a_proxy_and_no_other() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let (_, without) = result_of(&env, &["--approval", "auto"], ASK_PROXY).await;
    assert!(!without.contains("no rule lets"), "{without}");
    env.user_policy("[[rule]]\nhost = \"docs.example\"\ndecision = \"allow\"\n");
    let (code, result) = result_of(&env, &["--approval", "auto"], ASK_PROXY).await;
    assert_eq!(code, Some(0), "{result}");
    let refused = "rondo: no rule lets commands reach `other.example`";
    assert!(result.contains(refused), "{result}");
    // A rule for pages that the model reads is none for commands.
    env.user_policy("[[rule]]\ntool = \"web_fetch\"\nhost = \"*.example\"\ndecision = \"allow\"\n");
    let (_, result) = result_of(&env, &["--approval", "auto"], ASK_PROXY).await;
    assert!(!result.contains("no rule lets"), "{result}");
}

#[tokio::test]
async fn what_configures_rondo_git_and_shells_is_kept_where_a_directory_holds_it() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    env.user_config("");
    let (home, project) = (env.home(), env.project());
    std::fs::create_dir_all(project.join("dots")).unwrap();
    env.write("dots/rc", "mine").write("dots/included", "");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(project.join(target), home.join(name)).unwrap();
    };
    link("dots/rc", ".bashrc");
    let settings = format!(
        "[include]\npath = {}\n",
        project.join("dots/included").display()
    );
    env.write("dots/git", settings);
    link("dots/git", ".gitconfig");
    let script = "for it in rc git included; do echo evil > dots/$it; done; mv dots moved; echo a > dots/other; echo end";
    let (code, result) = result_of(&env, &["--approval", "auto"], script).await;
    assert!(code == Some(0) && result.contains("end"), "{result}");
    assert_eq!(
        std::fs::read_to_string(project.join("dots/rc")).unwrap(),
        "mine"
    );
    assert_eq!(
        std::fs::read_to_string(project.join("dots/included")).unwrap(),
        ""
    );
    assert!(project.join("dots/other").exists());
    let config = home.join(".config");
    let config = config.to_str().unwrap();
    let script =
        "echo evil > rondo/init.lua; mkdir git && echo evil > git/config; echo a > other; echo end";
    let (code, result) = result_of(&env, &["-C", config, "--approval", "auto"], script).await;
    assert!(code == Some(0) && result.contains("end"), "{result}");
    assert!(home.join(".config/other").exists());
    assert!(!home.join(".config/rondo/init.lua").exists() && !home.join(".config/git").exists());
    let written = serve(vec![
        calls(
            "write_file",
            &json!({ "path": "rondo/init.lua", "content": "evil" }),
        ),
        says("Done."),
    ])
    .await;
    env.ask(&written, &["-C", config, "--approval", "auto", "do it"])
        .await;
    assert!(!home.join(".config/rondo/init.lua").exists());
    let own = home.join(".config/rondo");
    let (code, _) = result_of(
        &env,
        &["-C", own.to_str().unwrap(), "--approval", "auto"],
        "true",
    )
    .await;
    assert_eq!(code, Some(2));
    let local = home.join(".local");
    let local = local.to_str().unwrap();
    for flags in [&["-C", local, "--approval", "auto"][..], &["-C", local]] {
        let (_, result) = result_of(&env, flags, "find share state -type f; echo end").await;
        assert!(
            result.contains("end") && !result.contains("journal"),
            "{result}"
        );
    }
}

//! Commands that the kernel confines, and what is allowed for that.

use crate::harness::{TestEnv, calls, says, serve};
use serde_json::json;

/// Most containers do not let a process confine itself; then a turn that needs it does not start.
#[expect(clippy::print_stderr, reason = "what is not run is said")]
fn is_enforced() -> bool {
    let tried = rondo_runtime::confined::works();
    if let Err(err) = &tried {
        eprintln!("not run, since the sandbox is not enforced here: {err}");
    }
    tried.is_ok()
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

#[tokio::test]
async fn yolo_in_a_sandbox_stays_in_it() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    let flags = ["--yolo", "--sandbox", "read-only"];
    let (code, result) = result_of(&env, &flags, "touch made.txt; echo \"code $?\"").await;
    assert_eq!(code, Some(0), "{result}");
    assert!(result.contains("code 1"), "{result}");
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

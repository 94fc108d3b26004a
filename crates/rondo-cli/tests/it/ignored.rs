//! Commands that run without asking in the read-only sandbox, and files that none of them sees.

use crate::harness::{TestEnv, calls, says, serve};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Most containers do not let a process confine itself; then such a command is asked about.
fn is_enforced() -> bool {
    rondo_runtime::confined::is_full()
}

async fn result_of(
    env: &TestEnv,
    flags: &[&str],
    tool: &str,
    arguments: &Value,
) -> (Option<i32>, String) {
    let server = serve(vec![calls(tool, arguments), says("Done.")]).await;
    let shown = env.ask(&server, &[flags, &["do it"]].concat()).await;
    let requests = server.requests();
    let result = requests.get(1).map(|it| it.json()["messages"].to_string());
    (shown.code, result.unwrap_or(shown.stderr))
}

#[tokio::test]
async fn a_loop_of_programs_of_the_system_runs_unasked_and_has_no_effect() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    env.write("a.txt", "one\n");
    let command = json!({ "command": "for f in *.txt; do echo \"seen $(wc -l < \"$f\")\"; done" });
    let (code, result) = result_of(&env, &[], "exec", &command).await;
    assert_eq!(code, Some(0), "{result}");
    assert!(result.contains("seen 1"), "{result}");
    let sly = json!({ "command": "f=made; x=cp; python3 -c 'from pathlib import *; Path(\"made\").hardlink_to(\"a.txt\")'; echo end" });
    let (code, result) = result_of(&env, &[], "exec", &sly).await;
    assert_eq!(code, Some(0), "{result}");
    assert!(
        result.contains("end") && !env.project().join("made").exists(),
        "{result}"
    );
    let effect = json!({ "command": "for f in *.txt; do cp \"$f\" made; done" });
    assert_eq!(result_of(&env, &[], "exec", &effect).await.0, Some(44));
}

#[tokio::test]
async fn an_ignored_file_is_seen_by_no_tool_and_no_command_in_the_sandbox() {
    if !is_enforced() {
        return;
    }
    let env = TestEnv::new();
    env.write(".rondoignore", "/private/\n*.pem\n");
    env.write("private/k", "CANARY\n");
    env.write("a.pem", "CANARY\n");
    env.write("b.txt", "text\n");
    for (flags, tool, arguments) in [
        (&[][..], "read_file", json!({ "path": "a.pem" })),
        (&["--yolo"], "read_file", json!({ "path": "private/k" })),
        (&["--yolo"], "search_files", json!({ "pattern": "CANARY" })),
        (&["--yolo"], "exec", json!({ "command": "cat a.pem" })),
        (
            &["--yolo"],
            "exec",
            json!({ "command": "cd private && cat k" }),
        ),
        (&[], "exec", json!({ "command": "grep -rs CANAR[Y] ." })),
        (
            &[],
            "exec",
            json!({ "command": "for f in * */*; do cat \"$f\"; done" }),
        ),
        (
            &["--yolo"],
            "exec",
            json!({ "command": "for f in * */*; do cat \"$f\"; done" }),
        ),
        (
            &["--approval", "auto"],
            "exec",
            json!({ "command": "cp -r . /tmp/x; cat /tmp/x/*" }),
        ),
        (
            &["--approval", "auto"],
            "exec",
            json!({ "command": "echo a > c; cat c */*" }),
        ),
    ] {
        let (code, result) = result_of(&env, flags, tool, &arguments).await;
        assert_eq!(code, Some(0), "{flags:?} {arguments}: {result}");
        assert!(
            !result.contains("CANARY\\n"),
            "{flags:?} {arguments}: {result}"
        );
    }
    let protected = json!({ "command": "echo > .rondoignore; cat .rondoignore" });
    let (_, result) = result_of(&env, &["--approval", "auto"], "exec", &protected).await;
    assert!(result.contains("*.pem"), "{result}");
}

/// No rule can name such a file; the tools and the sandbox hide it themselves.
#[tokio::test]
async fn an_ignored_file_whose_name_is_no_text_or_a_pattern_is_hidden_and_stops_nothing() {
    if !is_enforced() {
        return;
    }
    for name in [&b"a\xff.pem"[..], b"a[1].pem"] {
        let env = TestEnv::new();
        env.write(".rondoignore", "*.pem\n");
        let file = env.project().join(OsStr::from_bytes(name));
        std::fs::write(file, "CANARY\n").unwrap();
        env.write("b.txt", "text\n");
        for (tool, arguments, expected) in [
            ("exec", json!({ "command": "cat *; echo over" }), "over"),
            ("list_files", json!({}), "b.txt"),
            ("search_files", json!({ "pattern": "[A-Z]|text" }), "b.txt"),
        ] {
            let (code, result) = result_of(&env, &[], tool, &arguments).await;
            assert_eq!(code, Some(0), "{tool}: {result}");
            let (_, result) = result
                .rsplit_once("\"role\":\"tool\"")
                .unwrap_or(("", &result));
            assert!(
                result.contains(expected) && !result.contains("CANARY"),
                "{tool}: {result}"
            );
        }
    }
}

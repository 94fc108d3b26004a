//! Names of files and directories that are not text.

use crate::fixture::{Fixture, result};
use crate::sandbox::{is_enforced, spec};
use rondo_core::ports::Tool as _;
use rondo_exec::{ExecOptions, ExecTool};
use rondo_sandbox::SandboxMode;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A fixture with a directory of such a name, and a file of such a name in it.
fn place() -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    let directory = fixture.path().join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(OsStr::from_bytes(b"a\xff.pem")), "a key").unwrap();
    (fixture, directory)
}

async fn run(options: ExecOptions, fixture: &Fixture, command: &str) -> Value {
    let invocation = fixture.invocation(json!({ "command": command }));
    result(ExecTool::exec(options).call(invocation).await)
}

#[tokio::test]
async fn a_command_in_a_directory_whose_name_is_no_text_has_its_result() {
    let (fixture, directory) = place();
    let options = ExecOptions {
        directory: directory.clone(),
        ..fixture.options.clone()
    };
    let told = run(options, &fixture, "echo *; cat *; pwd").await;
    assert_eq!(told["exitCode"], 0, "{told}");
    let shown = format!("a\u{fffd}.pem\na key{}\n", directory.to_string_lossy());
    assert_eq!(told["stdout"], shown.as_str(), "{told}");
}

#[tokio::test]
async fn the_whole_output_is_kept_in_a_directory_whose_name_is_no_text() {
    let (fixture, directory) = place();
    let options = ExecOptions {
        state_dir: directory.clone(),
        ..fixture.options.clone()
    };
    let told = run(options, &fixture, "seq 100000").await;
    assert_eq!(told["truncated"], true, "{told}");
    let whole = fs::metadata(directory.join("key-1.out")).unwrap();
    assert_eq!(whole.len(), 588_895);
}

#[tokio::test]
async fn a_command_in_the_sandbox_has_its_result_beside_names_that_are_no_text() {
    if !is_enforced() {
        return;
    }
    let (fixture, directory) = place();
    let mut options = fixture.options.clone();
    let mut spec = spec(&fixture, SandboxMode::WorkspaceWrite);
    spec.hidden = vec![directory.join(OsStr::from_bytes(b"a\xff.pem"))];
    spec.home = Some(directory.clone());
    options.sandbox = Some(spec.clone());
    let told = run(options, &fixture, "cat d*/*; echo over").await;
    let shown = told["stdout"].as_str().unwrap();
    assert!(
        !shown.contains("a key") && shown.ends_with("over\n"),
        "{told}"
    );
    // The same if the directory is what the command works in.
    let options = ExecOptions {
        directory: directory.clone(),
        sandbox: Some(rondo_sandbox::SandboxSpec {
            writable: vec![directory.clone().into()],
            hidden: Vec::new(),
            ..spec
        }),
        ..fixture.options.clone()
    };
    let mut invocation = fixture.invocation(json!({ "command": "touch made; mkdir .git; ls" }));
    invocation.idempotency_key = "key-2".to_owned();
    let told = result(ExecTool::exec(options).call(invocation).await);
    assert_eq!(told["exitCode"], 0, "{told}");
    assert!(directory.join("made").exists(), "{told}");
}

//! Commands and their judgment follow the user's shell.

use crate::fixture::{Fixture, failure, result};
use crate::shell::Kept;
use rondo_core::ports::{Gate, GateRequest, Tool, Verdict};
use rondo_exec::ExecTool;
use rondo_policy::{AllowedDirs, GateOptions, StandardGate, Workdir};
use rondo_types::CallId;
use serde_json::{Value, json};

fn variables(pairs: &[(&str, &str)]) -> rondo_policy::Variables {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    pairs.collect()
}

#[tokio::test]
async fn commands_start_where_the_shell_is_from_the_next_call_on() {
    let kept = Kept::new("bash");
    let mut fixture = Fixture::new();
    fixture.options.workdir = Some(kept.workdir.clone());
    let tool = ExecTool::exec(fixture.options.clone());
    let count = std::cell::Cell::new(0);
    let run = async |arguments: Value| {
        let mut invocation = fixture.invocation(arguments);
        count.set(count.get() + 1);
        invocation.idempotency_key = format!("key-{}", count.get());
        tool.call(invocation).await
    };
    kept.run("mkdir -p sub/inner; cd sub; export A=1 SOME_API_KEY=x PAGER=less; B=2")
        .await;
    let seen = json!({ "command": "echo \"${PWD##*/} $A ${B-none} ${SOME_API_KEY-none} $PAGER\"" });
    assert_eq!(
        result(run(seen.clone()).await)["stdout"],
        "sub 1 none none cat\n"
    );
    let inner = json!({ "command": "pwd", "working_directory": "inner" });
    let inner = result(run(inner).await);
    assert!(
        inner["stdout"].as_str().unwrap().ends_with("/sub/inner\n"),
        "{inner}"
    );
    kept.run("cd ..; unset A").await;
    let expected = format!(
        "{}  none none cat\n",
        kept.path().file_name().unwrap().display()
    );
    assert_eq!(result(run(seen).await)["stdout"], expected);
}

#[tokio::test]
async fn a_directory_that_is_gone_is_an_error() {
    let mut fixture = Fixture::new();
    fixture.options.workdir = Some(Workdir::new(fixture.path().join("gone")));
    let error = failure(fixture.call(json!({ "command": "pwd" })).await);
    assert!(error.message.contains("failed to start pty"), "{error:?}");
}

#[test]
fn a_place_is_shared_and_stays_absolute() {
    let workdir = Workdir::new("/one".into());
    let other = workdir.clone();
    other.set_directory(std::path::Path::new("relative"));
    assert_eq!(workdir.directory(), std::path::Path::new("/one"));
    other.set_directory(std::path::Path::new("/two"));
    assert_eq!(workdir.directory(), std::path::Path::new("/two"));
    assert_eq!(workdir.environment(), None);
    other.set_environment(variables(&[("A", "1")]));
    assert_eq!(workdir.environment(), Some(variables(&[("A", "1")])));
}

#[tokio::test]
async fn what_is_judged_is_judged_where_it_would_run() {
    let inside = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(inside.path().join("sub")).unwrap();
    std::fs::write(inside.path().join("x"), "").unwrap();
    let workdir = Workdir::new(inside.path().join("sub"));
    // Not the environment of the tests' user, which may name libraries.
    workdir.set_environment(variables(&[("PATH", "/usr/bin:/bin")]));
    let mut options = GateOptions::new(AllowedDirs::new(inside.path(), &[]).unwrap());
    options.workdir = Some(workdir.clone());
    let gate = StandardGate::new(options);
    let check = async |arguments: Value| {
        let spec = ExecTool::exec(Fixture::new().options).spec().into();
        let call_id = CallId::new("c");
        gate.check(&GateRequest {
            session: rondo_types::SessionId::new("s"),
            turn: rondo_types::TurnId::new("s-1"),
            step: 1,
            call_id,
            spec,
            arguments,
            has_outside_text: false,
        })
        .await
    };
    let look = json!({ "command": "cat ../x" });
    assert_eq!(check(look.clone()).await, Verdict::Allow);
    workdir.set_directory(inside.path());
    assert!(matches!(check(look.clone()).await, Verdict::Ask { .. }));
    workdir.set_directory(outside.path());
    let asked = check(json!({ "command": "cat x" })).await;
    assert!(
        matches!(&asked, Verdict::Ask { prompt, .. } if prompt.contains(&outside.path().display().to_string()))
    );
    workdir.set_directory(&outside.path().join("gone"));
    assert!(matches!(check(look).await, Verdict::Deny { .. }));
}

//! The published description against what the routes do, by a program that reads it and tries them.

use crate::world::World;
use rondo_hub::users::Role;
use rondo_testkit::{ReplyScript, Script, openai};
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// Program that `cargo xtask test` installs.
const PROGRAM: &str = "../../target/xtask/schemathesis/bin/st";
/// Cases of each route.
const CASES: &str = "60";

/// A stream has no end that could be waited for; the other tests open it.
const ENDLESS: &str = "stream_events";

#[tokio::test]
async fn schemathesis_finds_nothing() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
    assert!(
        program.exists(),
        "`cargo xtask test` installs {}",
        program.display()
    );
    let reply = openai::streamed(&ReplyScript::text(["Hello."]).usage(1, 1));
    let world = World::new(Script::repeat(reply)).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "Hi.").await;
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(program)
        .arg("run")
        .arg(format!("http://{}/openapi.json", world.address))
        .args(["--header", &format!("Authorization: Bearer {key}")])
        .args(["--exclude-operation-id", ENDLESS])
        .args(["--max-examples", CASES, "--seed", "7", "--no-color"])
        .args(["--request-timeout", "20", "--suppress-health-check", "all"])
        .args(["--generation-database", "none"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    world.stop().await;
}

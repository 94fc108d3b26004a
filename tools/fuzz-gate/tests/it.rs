//! Commands that slipped past the gate once.

use std::process::Command;

#[test]
fn what_slipped_past_is_asked_about_and_what_is_not_has_no_effects_in_bash() {
    let done = Command::new(env!("CARGO_BIN_EXE_rondo-fuzz-gate"))
        .arg("--replay")
        .output()
        .expect("the task starts");
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

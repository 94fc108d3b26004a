//! The units of services: a service manager takes them, and they keep what the hub promises.

use crate::tree;
use std::fs;
use std::io::ErrorKind;
use std::process::Command;

const UNIT: &str = "packaging/systemd/rondo-hub.service";
/// Program that the unit starts, which does not exist while it is verified.
const PROGRAM: &str = "%h/.local/bin/rondo";

#[test]
fn a_stop_of_the_unit_leaves_surviving_calls_alone_and_waits_for_the_hub() {
    let unit = tree::read(UNIT);
    let value = |name: &str| {
        let found = unit.lines().filter_map(|line| line.strip_prefix(name));
        let values: Vec<_> = found.filter_map(|it| it.strip_prefix('=')).collect();
        assert_eq!(values.len(), 1, "{name}");
        values.concat()
    };
    assert_eq!(value("KillMode"), "process");
    assert_eq!(value("ExecStart"), format!("{PROGRAM} serve"));
    // The longest drain is 25 s and what is left to send has 5 s.
    assert!(value("TimeoutStopSec").parse::<u32>().expect("seconds") > 30);
}

#[test]
fn the_unit_is_verified_where_there_is_a_service_manager() {
    let text = tree::read(UNIT).replace(PROGRAM, "/bin/sh");
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("rondo-hub.service");
    fs::write(&file, text).expect("a file");
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output();
    match verified {
        Ok(verified) => {
            let said = String::from_utf8_lossy(&verified.stderr);
            assert!(verified.status.success() && said.is_empty(), "{said}");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
    }
}

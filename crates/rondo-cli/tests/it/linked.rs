//! How the program is linked.

use std::process::Command;

/// The compiler is told to leave a part of this to the linker (`.cargo/config.toml`, `build.rs`).
#[test]
fn addresses_that_the_loader_filled_in_cannot_be_overwritten() {
    let mut readelf = Command::new("readelf");
    readelf
        .env("LC_ALL", "C")
        .args(["--wide", "--program-headers", "--dynamic"]);
    let read = readelf.arg(env!("CARGO_BIN_EXE_rondo")).output().unwrap();
    let said = String::from_utf8_lossy(&read.stdout);
    for sign in ["GNU_RELRO", "BIND_NOW", "NOW PIE"] {
        assert!(said.contains(sign), "no {sign}");
    }
}

//! Has the linker put the functions that a turn calls side by side, pack the relocations and protect what they filled
//! in; `cargo xtask layout` writes the list and says what it is good for.
//!
//! Names hold the versions of compiler and crates: what the linker does not know of a list that is
//! behind stays where it would be anyway. Only the linker that rustup's toolchains bring is asked,
//! since others end with an error on this flag.

use std::env::var;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=layout");
    println!("cargo::rerun-if-changed=build.rs");
    if var("CARGO_CFG_TARGET_OS").is_ok_and(|it| it == "linux") {
        // All addresses are found at the start, and can then not be overwritten; see `.cargo/config.toml`.
        println!("cargo::rustc-link-arg-bin=rondo=-Wl,-z,now");
    }
    if let Some(list) = list() {
        println!(
            "cargo::rustc-link-arg-bin=rondo=-Wl,--symbol-ordering-file={list},--no-warn-symbol-ordering"
        );
        if loads_packed() {
            println!("cargo::rustc-link-arg-bin=rondo=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// The list's path, if this build can make use of it.
fn list() -> Option<String> {
    let target = var("TARGET").ok()?;
    if var("PROFILE").ok()? != "release" || !brings_lld(&target)? {
        return None;
    }
    let list = format!("{}/layout/{target}.txt", var("CARGO_MANIFEST_DIR").ok()?);
    // The compiler's driver splits what follows `-Wl` at commas.
    (Path::new(&list).is_file() && !list.contains(',')).then_some(list)
}

/// `true` if binaries for `target` are linked by the toolchain's own linker: it is rustc's choice on
/// this target, unless flags or configuration name another.
fn brings_lld(target: &str) -> Option<bool> {
    let named = format!(
        "CARGO_TARGET_{}_LINKER",
        target.to_uppercase().replace('-', "_")
    );
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if var("RUSTC_LINKER").is_ok() || var(named).is_ok() || flags.contains("link") {
        return Some(false);
    }
    // A toolchain has cargo in its `bin`; a distribution's own may lack the linker.
    let cargo = var("CARGO").ok()?;
    let toolchain = Path::new(&cargo).parent()?.parent()?;
    let linker = format!("lib/rustlib/{target}/bin/gcc-ld/ld.lld");
    Some(target == "x86_64-unknown-linux-gnu" && toolchain.join(linker).exists())
}

/// `true` if the binary runs with packed relocations, which the C library reads since 2.36: unpacked, they are 3 MB of
/// every process. A binary for another machine keeps them unpacked.
fn loads_packed() -> bool {
    if var("HOST").ok() != var("TARGET").ok() {
        return false;
    }
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = said.ok().and_then(|it| String::from_utf8(it.stdout).ok());
    version.is_some_and(|it| minor_of_glibc_2(&it).is_some_and(|minor| minor >= 36))
}

/// Reads `glibc 2.MINOR`.
fn minor_of_glibc_2(version: &str) -> Option<u32> {
    version.trim().strip_prefix("glibc 2.")?.parse().ok()
}

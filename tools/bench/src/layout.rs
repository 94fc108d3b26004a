//! Records which functions a run calls, for the linker to put side by side.
//!
//! The binary holds 19 MB of code, of which a turn runs 2.7 MB. If a function is called for the
//! first time, the system maps its page with those around it, up to 2 MB since Linux 6.18 if the
//! page cache holds large pieces: scattered, they made 11 MB of the process's memory. The list is
//! sorted, so that a new one differs only where the program does.

use crate::bench::{Journaling, Program, Server};
use anyhow::{Context, Result, bail};
use rondo_tool_support::workspace;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A release binary with symbols, instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs one turn under valgrind and writes the functions of the binary that were called to
/// `crates/rondo-cli/layout/TARGET.txt`. Leaves a binary with symbols in `target/release`.
///
/// # Errors
/// When the binary cannot be built or run, valgrind is missing, or no function was seen.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let binary = match &args.binary {
        Some(file) => file.canonicalize()?,
        None => workspace::release_binary_with_symbols()?,
    };
    let called = called(&binary)?;
    if called.is_empty() {
        bail!("`{}` has no symbols", binary.display());
    }
    let file = workspace::root()
        .join("crates/rondo-cli/layout")
        .join(format!("{}.txt", target()?));
    let lines: Vec<&str> = called.iter().map(String::as_str).collect();
    fs::write(&file, lines.join("\n") + "\n")?;
    println!("{} functions in {}", lines.len(), file.display());
    Ok(true)
}

fn called(binary: &Path) -> Result<BTreeSet<String>> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("callgrind");
    let tracer = [
        "valgrind".to_owned(),
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        "--demangle=no".to_owned(),
        format!("--callgrind-out-file={}", out.display()),
    ];
    let program = Program::new(binary.to_owned())?.under(&tracer);
    let server = Server::start()?;
    program.converse(&server, "text", 0, Journaling::Durable)?;
    let written = fs::read_to_string(&out).context("valgrind left no figures")?;
    Ok(functions(&written, binary))
}

/// Reads the names of a file in callgrind's format: `ob=(1) path` says whose the functions that
/// follow are, `fn=(2) name` names one, `cob` and `cfn` what is called. Each names a number once,
/// wherever it comes first, and uses the number after that
/// (<https://valgrind.org/docs/manual/cl-format.html>).
fn functions(written: &str, binary: &Path) -> BTreeSet<String> {
    let binary = binary.to_string_lossy();
    let mut names = HashMap::new();
    let mut own = None;
    let mut ours = false;
    let mut found = BTreeSet::new();
    for line in written.lines() {
        let Some((kind, rest)) = line.split_once('=') else {
            continue;
        };
        let (number, name) = numbered(rest);
        match kind {
            "ob" | "cob" if name == Some(&*binary) => own = Some(number),
            "fn" | "cfn" => drop(name.map(|name| names.insert(number, name))),
            _ => {}
        }
        match kind {
            "ob" => ours = own == Some(number),
            "fn" if ours => drop(found.insert(number)),
            _ => {}
        }
    }
    let named = found.into_iter().filter_map(|number| names.get(number));
    // A second activation of a function that calls itself reads `name'2`.
    let named = named.filter_map(|name| name.split('\'').next());
    // Code without a name reads as its address, and `(below main)`.
    let named =
        named.filter(|name| name.starts_with(|first: char| first.is_alphabetic() || first == '_'));
    named.map(str::to_owned).collect()
}

fn numbered(text: &str) -> (&str, Option<&str>) {
    match text.split_once(' ') {
        Some((number, name)) => (number, Some(name)),
        None => (text, None),
    }
}

fn target() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let said = String::from_utf8(output.stdout)?;
    said.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("`rustc -vV` names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_the_binary_each_once() {
        let written = "ob=(1) /lib/ld.so\nfn=(1) start\n0 1\nob=(2) /bin/rondo\nfn=(2) main\n0 1\n\
                       cob=(1)\ncfn=(4) end\ncfn=(5) walk\nfn=(3) walk'2\nob=(1)\nfn=(4)\nob=(2)\nfn=(2)\nfn=(5)\n";
        let found = functions(written, Path::new("/bin/rondo"));
        assert_eq!(Vec::from_iter(found), ["main", "walk"]);
    }
}

//! Files that no tool may read.

use crate::bench::Bench;
use rondo_tools::{DeniedFiles, HiddenPaths, Workspace, WorkspaceError};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A workspace with ignored files, and a rule that denies `denied`.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.file(
        ".rondoignore",
        "\u{feff}# keys\n*.pem\n/private/\n.env*\n!.env.example\n",
    );
    for name in [
        "a.pem",
        "private/k",
        "private/deep/k",
        "denied/k",
        "env/b.pem",
        ".env",
        "own.txt",
    ] {
        bench.file(name, "KEY\n");
    }
    bench.file("src/a.rs", "KEY of nothing\n");
    bench.file(".env.example", "KEY of nothing\n");
    bench.link("private/k", "link");
    bench.link("private", "linked");
    let denied = bench.inside.path().canonicalize().unwrap().join("denied");
    let denies = DeniedFiles::new(move |path| path.starts_with(&denied));
    let workspace = Workspace::open(bench.inside.path()).unwrap();
    let hiding = workspace.hiding(&["own.txt".to_owned()], Some(&denies));
    bench.workspace = Arc::new(hiding.unwrap());
    bench
}

#[tokio::test]
async fn an_ignored_file_is_neither_read_nor_written_whatever_leads_to_it() {
    let bench = bench();
    for path in [
        "a.pem",
        "./a.pem",
        "src/../a.pem",
        "private/k",
        "private/deep/k",
        "link",
        "linked/k",
        ".env",
        "env/b.pem",
        "own.txt",
    ] {
        let refused = bench.failed("read_file", json!({ "path": path })).await;
        assert_eq!(refused, format!("`{path}` is ignored by .rondoignore"));
        for (tool, arguments) in [
            ("write_file", json!({ "path": path, "content": "a" })),
            (
                "edit_file",
                json!({ "path": path, "old_text": "KEY", "new_text": "a", "old_string": "KEY", "new_string": "a" }),
            ),
        ] {
            let outcome = bench.call(tool, arguments).await;
            assert!(
                matches!(outcome, rondo_types::ToolOutcome::Error(_)),
                "{tool} {path}"
            );
        }
    }
    for path in ["private/new", "new.pem", "linked/new"] {
        let arguments = json!({ "path": path, "content": "a" });
        let refused = bench.failed("write_file", arguments).await;
        assert!(refused.contains("is ignored by .rondoignore"), "{refused}");
    }
    assert_eq!(bench.content("a.pem"), "KEY\n");
    let shown = bench
        .text("read_file", json!({ "path": ".env.example" }))
        .await;
    assert!(shown.contains("KEY of nothing"));
}

#[tokio::test]
async fn searches_and_lists_leave_out_what_is_ignored_or_denied_by_a_rule() {
    let bench = bench();
    let found = bench
        .text("search_files", json!({ "pattern": "KEY" }))
        .await;
    assert!(
        found.ends_with("in 1 files, 1 searched]\nsrc/a.rs\n1:KEY of nothing\n\n"),
        "{found}"
    );
    let below = bench
        .text(
            "search_files",
            json!({ "pattern": "KEY", "path": "denied" }),
        )
        .await;
    assert!(below.contains("0 matching lines"), "{below}");
    let listed = bench.text("list_files", json!({})).await;
    for name in ["a.pem", "private", "denied", "b.pem", "own.txt"] {
        assert!(!listed.contains(name), "{name}: {listed}");
    }
    for path in ["private", "linked"] {
        let refused = bench
            .failed("search_files", json!({ "pattern": "KEY", "path": path }))
            .await;
        assert!(refused.contains("is ignored"), "{refused}");
    }
}

#[test]
fn what_is_hidden_is_found_with_a_directory_standing_for_all_in_it() {
    let bench = bench();
    let root = bench.inside.path().canonicalize().unwrap();
    let mut found = bench.workspace.find_hidden();
    found.ignored.sort();
    let ignored = [".env", "a.pem", "env/b.pem", "own.txt", "private"];
    let expected = HiddenPaths {
        ignored: ignored.map(|it| root.join(it)).to_vec(),
        denied: vec![root.join("denied")],
        closed: Vec::new(),
        is_complete: true,
    };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_a_hidden_link_leads_to_is_hidden_by_its_own_name_too() {
    for looks_first in [false, true] {
        let mut bench = Bench::new();
        bench.file(".rondoignore", "key\nvault\nround\n");
        bench.file("real/k", "KEY\n");
        bench.file("shared/deep/v", "KEY\n");
        bench.file("open", "KEY\n");
        for (target, link) in [("real/k", "key"), ("shared/deep", "vault"), (".", "round")] {
            bench.link(target, link);
        }
        let workspace = Workspace::open(bench.inside.path()).unwrap();
        bench.workspace = Arc::new(workspace.hiding(&[], None).unwrap());
        if looks_first {
            assert!(bench.workspace.find_hidden().is_complete);
        }
        for path in ["real/k", "shared/deep/v", "key", "vault/v"] {
            let refused = bench.failed("read_file", json!({ "path": path })).await;
            assert_eq!(refused, format!("`{path}` is ignored by .rondoignore"));
        }
        let found = bench.text("search_files", json!({"pattern": "KEY"})).await;
        assert!(
            found.contains("open") && !found.contains("real/k"),
            "{found}"
        );
    }
}

/// Runs a test again as a user without privileges, from whom a mode takes a permission away.
fn as_ordinary_user(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("tests");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
    let done = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--exact", test])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    false
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_hidden_as_a_whole() {
    if !as_ordinary_user("hidden::a_directory_that_cannot_be_looked_into_is_hidden_as_a_whole") {
        return;
    }
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o000, 0o311, 0o444] {
        let bench = Bench::new();
        bench.file(".rondoignore", "*.pem\n");
        bench.file("sub/deep/x.pem", "KEY\n");
        let root = bench.inside.path().canonicalize().unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let hiding = workspace.hiding(&[], None).unwrap();
        set(&root.join("sub"), mode);
        let found = hiding.find_hidden();
        set(&root.join("sub"), 0o755);
        let expected = HiddenPaths {
            closed: vec![root.join("sub")],
            is_complete: true,
            ..HiddenPaths::default()
        };
        assert_eq!(found, expected, "{mode:o}");
        set(&root, 0o311);
        let found = hiding.find_hidden();
        set(&root, 0o755);
        assert!(!found.is_complete);
    }
}

#[test]
fn ignore_files_above_in_the_same_repository_count_and_those_of_another_do_not() {
    let bench = Bench::new();
    bench.file(".rondoignore", "*.never\n");
    bench.file("repository/.git/HEAD", "");
    bench.file("repository/.rondoignore", "*.key\n/sub/deep/own\n*.pem\n");
    bench.file("repository/sub/.rondoignore", "!kept.key\n*.txt\n");
    for name in [
        "top.key",
        "a.txt",
        "sub/a.txt",
        "sub/deep/b.key",
        "sub/deep/kept.key",
        "sub/deep/own/c",
        "sub/deep/d.never",
    ] {
        bench.file(&format!("repository/{name}"), "KEY\n");
    }
    let top = bench
        .inside
        .path()
        .canonicalize()
        .unwrap()
        .join("repository");
    let workspace = Workspace::open(top.join("sub/deep")).unwrap();
    let mut found = workspace.hiding(&[], None).unwrap().find_hidden();
    found.ignored.sort();
    let names = ["sub/a.txt", "sub/deep/b.key", "sub/deep/own", "top.key"];
    assert_eq!(found.ignored, names.map(|it| top.join(it)));
    assert!(found.is_complete);
}

#[test]
fn no_more_is_found_than_the_bound_and_it_is_said() {
    let mut bench = Bench::new();
    bench.file(".rondoignore", "*.pem\n");
    for number in 0..256 {
        bench.file(&format!("{number}.pem"), "");
    }
    let open = |bench: &Bench| {
        let workspace = Workspace::open(bench.inside.path()).unwrap();
        Arc::new(workspace.hiding(&[], None).unwrap())
    };
    bench.workspace = open(&bench);
    let found = bench.workspace.find_hidden();
    assert!(found.ignored.len() == 256 && found.is_complete);
    bench.file("one-more.pem", "");
    assert!(!bench.workspace.find_hidden().is_complete);
    std::fs::remove_file(bench.path(".rondoignore")).unwrap();
    bench.workspace = open(&bench);
    let nothing = HiddenPaths {
        is_complete: true,
        ..HiddenPaths::default()
    };
    assert_eq!(bench.workspace.find_hidden(), nothing);
}

#[test]
fn an_ignore_file_that_cannot_be_used_is_an_error() {
    let bench = Bench::new();
    let hiding = || {
        let workspace = Workspace::open(bench.inside.path()).unwrap();
        workspace.hiding(&[], None)
    };
    for content in [
        "a{b\n".as_bytes(),
        b"\xff\xfe",
        "x\n".repeat(200_000).as_bytes(),
    ] {
        bench.file(".rondoignore", content);
        let refused = hiding();
        assert!(
            matches!(refused, Err(WorkspaceError::Ignored { .. })),
            "{refused:?}"
        );
    }
    std::fs::remove_file(bench.path(".rondoignore")).unwrap();
    std::fs::create_dir(bench.path(".rondoignore")).unwrap();
    assert!(matches!(hiding(), Err(WorkspaceError::Ignored { .. })));
}

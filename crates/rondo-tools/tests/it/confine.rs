use crate::bench::Bench;
use rondo_tools::{Workspace, file_tools};
use serde_json::{Value, json};
use std::sync::Arc;

/// Calls that would touch `path`, one of each tool.
fn touching(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "x"})),
        (
            "edit_file",
            json!({"path": path, "old_string": "SECRET", "new_string": "x"}),
        ),
        ("list_files", json!({"path": path})),
        ("search_files", json!({"path": path, "pattern": "SECRET"})),
    ]
}

async fn refused(bench: &Bench, path: &str) {
    for (tool, arguments) in touching(path) {
        let message = bench.failed(tool, arguments).await;
        assert!(message.contains("outside"), "{tool} {path}: {message}");
        assert!(!message.contains("SECRET"), "{tool} {path}: {message}");
    }
    let secret = std::fs::read_to_string(bench.outside.path().join("secret")).unwrap();
    assert_eq!(secret, "SECRET");
}

#[tokio::test]
async fn hub_32_absolute_paths_outside_are_refused() {
    let bench = Bench::new();
    let secret = bench.outside.path().join("secret");
    for path in [
        secret.to_str().unwrap(),
        bench.outside.path().to_str().unwrap(),
        "/etc/passwd",
        "/",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/dev/null",
    ] {
        refused(&bench, path).await;
    }
}

#[tokio::test]
async fn hub_32_dots_that_lead_outside_are_refused() {
    let bench = Bench::new();
    bench.file("d/f", "");
    let name = bench.outside.path().file_name().unwrap().to_str().unwrap();
    let absolute = format!("{}/../{name}/secret", bench.inside.path().display());
    for path in [
        format!("../{name}/secret"),
        format!("d/../../{name}/secret"),
        format!("./d/./../../{name}"),
        absolute,
        "..".to_owned(),
    ] {
        refused(&bench, &path).await;
    }
}

#[tokio::test]
async fn hub_32_links_that_lead_outside_are_refused() {
    let bench = Bench::new();
    let name = bench.outside.path().file_name().unwrap().to_str().unwrap();
    bench.link(bench.outside.path().join("secret"), "absolute");
    bench.link(format!("../{name}/secret"), "relative");
    bench.link(bench.outside.path(), "directory");
    bench.link("directory", "twice");
    bench.link("/proc/self/root", "proc");
    for path in [
        "absolute",
        "relative",
        "directory/secret",
        "twice/secret",
        "proc/etc/passwd",
    ] {
        refused(&bench, path).await;
    }
}

#[tokio::test]
async fn hub_32_a_link_to_nothing_outside_creates_nothing() {
    let bench = Bench::new();
    let target = bench.outside.path().join("new");
    bench.link(&target, "dangling");
    bench
        .failed("write_file", json!({"path": "dangling", "content": "x"}))
        .await;
    bench
        .failed("write_file", json!({"path": "dangling/a", "content": "x"}))
        .await;
    assert!(!target.exists());
}

#[tokio::test]
async fn hub_32_walks_show_nothing_behind_links() {
    let bench = Bench::new();
    bench.file("a", "SECRET of our own");
    bench.link(bench.outside.path(), "out");
    bench.link(bench.outside.path().join("secret"), "leak");
    assert_eq!(
        bench.text("list_files", json!({})).await,
        "[.: 3 files with bytes and lines, 0 directories; the longest is a with 1 lines; the largest is a with 17 bytes]\na\t17\t1\nleak@\nout@\n"
    );
    assert_eq!(
        bench
            .text("search_files", json!({"pattern": "SECRET"}))
            .await,
        "[`SECRET`: 1 matching lines in 1 files, 1 searched]\na\n1:SECRET of our own\n\n"
    );
}

#[tokio::test]
async fn hub_32_links_and_dots_that_stay_inside_are_followed() {
    let bench = Bench::new();
    bench.file("d/real", "one\n");
    bench.link("d/real", "link");
    bench.link("d", "dir");
    for path in ["link", "dir/real", "d/../link", "./d/real"] {
        let text = bench.text("read_file", json!({"path": path})).await;
        assert!(text.ends_with("\none\n"), "{path}: {text}");
    }
    bench
        .ok("write_file", json!({"path": "link", "content": "two\n"}))
        .await;
    assert_eq!(bench.content("d/real"), "two\n");
    assert!(bench.path("link").is_symlink());
}

#[tokio::test]
async fn hub_32_absolute_paths_beneath_a_root_are_accepted_under_either_name() {
    let bench = Bench::new();
    bench.file("f", "one\n");
    let alias = bench.outside.path().join("alias");
    std::os::unix::fs::symlink(bench.inside.path(), &alias).unwrap();
    let aliased = Bench {
        workspace: Arc::new(Workspace::open(&alias).unwrap()),
        ..bench
    };
    for path in [alias.join("f"), aliased.path("f")] {
        let text = aliased.text("read_file", json!({"path": path})).await;
        assert_eq!(text, "[f: lines 1-1 of 1, 4 bytes]\none\n");
    }
}

#[tokio::test]
async fn read_only_directories_are_read_and_not_written() {
    let bench = Bench::new();
    let spilled = bench.spill.path().join("out.txt");
    std::fs::write(&spilled, "spilled\n").unwrap();
    let path = spilled.to_str().unwrap();
    let text = bench.text("read_file", json!({"path": path})).await;
    assert!(text.ends_with("spilled\n"), "{text}");
    let text = bench
        .text(
            "search_files",
            json!({"path": bench.spill.path(), "pattern": "sp"}),
        )
        .await;
    assert!(text.contains(path), "{text}");
    for (tool, arguments) in [
        ("write_file", json!({"path": path, "content": "x"})),
        (
            "edit_file",
            json!({"path": path, "old_string": "s", "new_string": "x"}),
        ),
    ] {
        let message = bench.failed(tool, arguments).await;
        assert!(message.contains("may only be read"), "{message}");
    }
    assert_eq!(std::fs::read_to_string(&spilled).unwrap(), "spilled\n");
}

#[tokio::test]
async fn paths_that_are_none_are_refused() {
    let bench = Bench::new();
    for path in ["a\0b".to_owned(), "x".repeat(4_097)] {
        bench.invalid("read_file", json!({"path": path})).await;
    }
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_without_waiting() {
    let bench = Bench::new();
    let made = std::process::Command::new("mkfifo")
        .arg(bench.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    bench.file("d/f", "");
    for path in ["pipe", "socket", "d"] {
        bench.failed("read_file", json!({"path": path})).await;
        bench
            .failed("write_file", json!({"path": path, "content": "x"}))
            .await;
        bench
            .failed(
                "edit_file",
                json!({"path": path, "old_string": "a", "new_string": "b"}),
            )
            .await;
    }
    bench
        .failed("search_files", json!({"path": "pipe", "pattern": "x"}))
        .await;
    bench.text("search_files", json!({"pattern": "x"})).await;
}

#[test]
fn a_directory_that_cannot_be_opened_is_an_error_that_names_it() {
    let err = Workspace::open("/nonexistent/dir").unwrap_err();
    assert_eq!(
        err.to_string(),
        "failed to open directory `/nonexistent/dir`"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(Workspace::open(file.path()).is_err());
}

#[test]
fn the_workspace_names_its_directories() {
    let bench = Bench::new();
    let dirs: Vec<bool> = bench
        .workspace
        .dirs()
        .map(|(_, writable)| writable)
        .collect();
    assert_eq!(dirs, [true, false]);
    let canonical = bench.inside.path().canonicalize().unwrap();
    assert_eq!(bench.workspace.working_dir(), canonical);
    assert_eq!(file_tools(&bench.workspace).len(), 5);
}

#[tokio::test]
async fn no_link_is_followed_to_a_file_that_is_written_where_commands_plant_them() {
    let mut bench = Bench::new();
    bench.file("hooks/old", "SECRET");
    bench.link("hooks", "folder");
    bench.link("hooks/old", "file");
    let workspace = Workspace::open(bench.inside.path()).unwrap();
    bench.workspace = Arc::new(workspace.without_links());
    for path in [
        "folder/new",
        "folder/old",
        "file",
        "folder/../folder/new",
        "folder/a/b",
    ] {
        for (tool, arguments) in touching(path).into_iter().skip(1).take(2) {
            let message = bench.failed(tool, arguments).await;
            assert!(
                message.contains("link") || message.contains("exist"),
                "{tool} {path}: {message}"
            );
        }
    }
    let names = std::fs::read_dir(bench.path("hooks")).unwrap();
    assert_eq!(names.count(), 1);
    assert_eq!(
        std::fs::read_to_string(bench.path("hooks/old")).unwrap(),
        "SECRET"
    );
    for path in ["a/b/made", "a/../a/made", "hooks/old"] {
        bench
            .ok("write_file", json!({"path": path, "content": "x"}))
            .await;
        assert_eq!(std::fs::read_to_string(bench.path(path)).unwrap(), "x");
    }
    let message = bench
        .failed("write_file", json!({"path": "a/../../x", "content": "x"}))
        .await;
    assert!(message.contains("outside"), "{message}");
}

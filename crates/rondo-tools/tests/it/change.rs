use crate::bench::{Bench, invocation};
use rondo_core::ports::Tool;
use rondo_tools::{
    ChangeLog, DiffKind, FileBefore, FileChange, WriteFile, file_tools_with_log, preview,
};
use rondo_types::{CallId, ToolOutcome};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn look(bench: &Bench, tool: &str, arguments: &Value) -> Result<FileChange, String> {
    preview(&bench.workspace, tool, arguments).unwrap()
}

fn lines(change: &FileChange) -> Vec<String> {
    let lines = change.lines.iter().flatten();
    let marked = lines.filter(|line| line.kind != DiffKind::Place);
    marked
        .map(|line| format!("{:?} {}", line.kind, line.text))
        .collect()
}

#[test]
fn a_look_shows_what_an_edit_changes_and_changes_nothing() {
    let bench = Bench::new();
    bench.file("poem", "roses are red\nviolets are blue\n");
    let edit = json!({"path": "poem", "old_string": "blue", "new_string": "purple"});
    let change = look(&bench, "edit_file", &edit).unwrap();
    assert_eq!(
        lines(&change),
        [
            "Same roses are red",
            "Removed violets are blue",
            "Added violets are purple"
        ]
    );
    assert_eq!((change.counts, change.before), ((1, 1), FileBefore::Text));
    assert_eq!(bench.content("poem"), "roses are red\nviolets are blue\n");
    let edit = json!({"path": "poem", "old_string": "\nviolets are blue", "new_string": ""});
    let change = look(&bench, "edit_file", &edit).unwrap();
    assert_eq!(
        lines(&change),
        ["Same roses are red", "Removed violets are blue"]
    );
}

#[tokio::test]
async fn a_look_says_what_the_call_would_fail_with() {
    let bench = Bench::new();
    bench.file("f", "a\na\n");
    bench.link(bench.outside.path(), "away");
    bench.link("../../etc/passwd", "up");
    for (tool, arguments) in [
        (
            "edit_file",
            json!({"path": "f", "old_string": "b", "new_string": "c"}),
        ),
        (
            "edit_file",
            json!({"path": "f", "old_string": "a", "new_string": "c"}),
        ),
        (
            "edit_file",
            json!({"path": "none", "old_string": "a", "new_string": "c"}),
        ),
        ("write_file", json!({"path": "away/secret", "content": ""})),
        ("write_file", json!({"path": "up", "content": ""})),
        ("write_file", json!({"path": "/etc/passwd", "content": ""})),
        ("write_file", json!({"path": ".", "content": ""})),
        (
            "write_file",
            json!({"path": "new/f", "content": "", "create_parents": false}),
        ),
        (
            "write_file",
            json!({"path": bench.spill.path().join("f"), "content": ""}),
        ),
    ] {
        let seen = look(&bench, tool, &arguments).unwrap_err();
        let failed = bench.failed(tool, arguments.clone()).await;
        assert_eq!(seen, failed, "{arguments}");
    }
    assert!(look(&bench, "write_file", &json!({"path": 1})).is_err());
    assert_eq!(
        preview(&bench.workspace, "read_file", &json!({"path": "f"})),
        None
    );
}

#[test]
fn what_a_write_replaces_is_told_whatever_it_is() {
    let bench = Bench::new();
    bench.file("real/text", "old\n");
    bench.file("binary", [0xff, 0, 1]);
    bench.file("nul", "a\0b");
    let path = bench.file("closed", "x");
    bench.link("real", "dir");
    let look = |path: &str| {
        look(
            &bench,
            "write_file",
            &json!({"path": path, "content": "new\n"}),
        )
        .unwrap()
    };
    let change = look("dir/text");
    assert_eq!(change.leads_to.as_deref(), Some("real/text"));
    assert_eq!(lines(&change), ["Removed old", "Added new"]);
    for (path, leads_to) in [
        ("fresh", None),
        ("a/b/fresh", None),
        ("./dir/fresh", Some("real/fresh")),
        ("dir/a/fresh", Some("real/a/fresh")),
    ] {
        let change = look(path);
        assert_eq!(change.leads_to.as_deref(), leads_to);
        assert_eq!(
            (lines(&change), &change.before),
            (vec!["Added new".to_owned()], &FileBefore::Absent)
        );
    }
    assert!(!bench.path("a").exists());
    assert_eq!(look("binary").before, FileBefore::Other { bytes: 3 });
    assert_eq!(look("nul").before, FileBefore::Other { bytes: 3 });
    assert_eq!(look("binary").lines, None);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads everything.
    let closed = look("closed").before;
    assert!(matches!(closed, FileBefore::Unreadable | FileBefore::Text));
}

/// Returns the change of a call's file, as its log has it.
async fn noted(bench: &Bench, tool: &str, arguments: Value) -> Option<FileChange> {
    let log = ChangeLog::default();
    log.enable();
    let tools = file_tools_with_log(&bench.workspace, &log, None);
    let tool = tools.iter().find(|it| it.spec().name == tool).unwrap();
    tool.call(invocation(arguments, CancellationToken::new()))
        .await;
    log.take(&CallId::new("c"))
}

#[tokio::test]
async fn a_call_notes_what_was_really_there() {
    let bench = Bench::new();
    bench.file("f", "one\n");
    let write = json!({"path": "f", "content": "three\n"});
    let asked = look(&bench, "write_file", &write).unwrap();
    bench.file("f", "two\n");
    let done = noted(&bench, "write_file", write.clone()).await.unwrap();
    assert_eq!(lines(&done), ["Removed two", "Added three"]);
    assert!(!done.begins_as(&asked));
    let edit = json!({"path": "f", "old_string": "three", "new_string": "four"});
    let asked = look(&bench, "edit_file", &edit).unwrap();
    let done = noted(&bench, "edit_file", edit.clone()).await.unwrap();
    assert_eq!(lines(&done), ["Removed three", "Added four"]);
    assert!(done.begins_as(&asked) && done == asked);
    assert_eq!(noted(&bench, "edit_file", edit).await, None);
}

#[tokio::test]
async fn nothing_is_noted_before_the_log_is_enabled() {
    let bench = Bench::new();
    let log = ChangeLog::default();
    let tool = WriteFile::new(Arc::clone(&bench.workspace)).with_log(log.clone());
    let arguments = json!({"path": "f", "content": "x"});
    let outcome = tool
        .call(invocation(arguments, CancellationToken::new()))
        .await;
    assert!(matches!(outcome, ToolOutcome::Ok(_)), "{outcome:?}");
    assert_eq!(log.take(&CallId::new("c")), None);
}

use crate::bench::Bench;
use data_encoding::HEXLOWER;
use rondo_types::{ChangedFile, FileVersion};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::os::unix::fs::PermissionsExt;

fn names(bench: &Bench) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(bench.inside.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_is_created_then_replaced_and_nothing_else_stays() {
    let bench = Bench::new();
    let output = bench
        .ok("write_file", json!({"path": "f", "content": "één\n"}))
        .await;
    assert_eq!(
        output.value,
        json!({"path": "f", "status": "created", "bytes": 6})
    );
    let output = bench
        .ok("write_file", json!({"path": "f", "content": ""}))
        .await;
    assert_eq!(
        output.value,
        json!({"path": "f", "status": "replaced", "bytes": 0})
    );
    assert_eq!(bench.content("f"), "");
    assert_eq!(names(&bench), ["f"]);
}

#[tokio::test]
async fn missing_directories_are_made_unless_told_not_to() {
    let bench = Bench::new();
    bench
        .ok("write_file", json!({"path": "a/b/c", "content": "x"}))
        .await;
    assert_eq!(bench.content("a/b/c"), "x");
    let arguments = json!({"path": "n/c", "content": "x", "create_parents": false});
    assert_eq!(
        bench.failed("write_file", arguments).await,
        "the directory of `n/c` does not exist"
    );
    assert!(!bench.path("n").exists());
}

#[tokio::test]
async fn permission_bits_are_kept() {
    let bench = Bench::new();
    let path = bench.file("script", "#!/bin/sh\n");
    for mode in [0o755, 0o600, 0o444] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        bench
            .ok(
                "write_file",
                json!({"path": "script", "content": format!("{mode}")}),
            )
            .await;
        let now = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(now, mode);
        assert_eq!(bench.content("script"), format!("{mode}"));
    }
}

#[tokio::test]
async fn a_reader_sees_the_old_content_or_the_new() {
    let bench = Bench::new();
    let path = bench.file("f", "old");
    let before = std::fs::File::open(&path).unwrap();
    bench
        .ok("write_file", json!({"path": "f", "content": "new"}))
        .await;
    assert_eq!(std::io::read_to_string(before).unwrap(), "old");
    assert_eq!(bench.content("f"), "new");
}

#[tokio::test]
async fn what_an_interrupted_call_left_is_replaced() {
    let bench = Bench::new();
    bench.file(".rondo-s-t-c.tmp", "torn");
    bench
        .ok("write_file", json!({"path": "f", "content": "x"}))
        .await;
    assert_eq!(names(&bench), ["f"]);
}

#[tokio::test]
async fn directories_are_not_written() {
    let bench = Bench::new();
    bench.file("d/f", "");
    for path in ["d", ".", "d/", "", "d/.."] {
        let message = bench
            .failed("write_file", json!({"path": path, "content": "x"}))
            .await;
        assert!(message.contains("directory"), "{path}: {message}");
    }
    bench
        .failed("write_file", json!({"path": "d/f/g", "content": "x"}))
        .await;
}

fn sha256(text: &str) -> FileVersion {
    FileVersion::Sha256(HEXLOWER.encode(&Sha256::digest(text)))
}

#[tokio::test]
async fn the_changed_file_is_told_with_its_hashes_before_and_after() {
    let bench = Bench::new();
    let write = async |content: &str| {
        let arguments = json!({"path": "d/f", "content": content});
        bench.ok("write_file", arguments).await.changes
    };
    let change = |before, after| {
        let path = "d/f".to_owned();
        vec![ChangedFile {
            path,
            before,
            after,
        }]
    };
    let expected = change(FileVersion::Absent, sha256("one"));
    assert_eq!(write("one").await, expected);
    let expected = change(sha256("one"), sha256("two"));
    assert_eq!(write("two").await, expected);
    assert_eq!(write("two").await, []);
    let arguments = json!({"path": "d/f", "old_string": "w", "new_string": "oo"});
    let edited = bench.ok("edit_file", arguments).await.changes;
    assert_eq!(edited, change(sha256("two"), sha256("tooo")));
}

//! Properties of a file that a write and an edit preserve.

use crate::bench::{Bench, invocation};
use rondo_types::SessionId;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;
use tokio_util::sync::CancellationToken;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a command that only root may run; returns whether it could be run.
fn can(program: &str, arguments: &[&str]) -> bool {
    let run = Command::new(program).args(arguments).output();
    run.is_ok_and(|it| it.status.success())
}

/// Changes a file by each tool.
async fn write_and_edit(bench: &Bench, name: &str) {
    let arguments = json!({"path": name, "content": "one\ntwo\n"});
    bench.ok("write_file", arguments).await;
    let arguments = json!({"path": name, "old_string": "two", "new_string": "three"});
    bench.ok("edit_file", arguments).await;
    assert_eq!(bench.content(name), "one\nthree\n");
}

#[tokio::test]
async fn owner_and_group_are_kept() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let path = bench.file("f", "old\n");
    chown(&path, Some(1000), Some(33)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_and_edit(&bench, "f").await;
    let now = fs::metadata(&path).unwrap();
    assert_eq!(
        (now.uid(), now.gid(), now.mode() & 0o7777),
        (1000, 33, 0o640)
    );
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

#[tokio::test]
async fn extended_attributes_and_access_control_lists_are_kept() {
    let bench = Bench::new();
    let path = bench.file("f", "old\n");
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(&path, name, value, rustix::fs::XattrFlags::empty()).is_ok()
    };
    // Version 2: user::rw-, user:1000:r--, group::r--, mask::r--, other::---.
    let entries: [(u16, u16, u32); 5] = [
        (1, 6, u32::MAX),
        (2, 4, 1000),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permission, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permission.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let (has_list, has_note) = (
        set("system.posix_acl_access", &list),
        set("user.note", b"mine"),
    );
    let mode = fs::metadata(&path).unwrap().mode();
    write_and_edit(&bench, "f").await;
    assert_eq!(fs::metadata(&path).unwrap().mode(), mode);
    if has_list {
        assert_eq!(attribute(&path, "system.posix_acl_access"), Some(list));
    }
    if has_note {
        assert_eq!(attribute(&path, "user.note").as_deref(), Some(&b"mine"[..]));
    }
}

#[tokio::test]
async fn a_file_that_is_mounted_is_written_in_place() {
    let bench = Bench::new();
    let (path, source) = (
        bench.file("f", "old\n"),
        bench.outside.path().join("secret"),
    );
    let (path, source) = (path.to_str().unwrap(), source.to_str().unwrap());
    if !is_root() || !can("mount", &["--bind", source, path]) {
        return;
    }
    write_and_edit(&bench, "f").await;
    let kept = fs::read_to_string(source);
    assert!(can("umount", &[path]));
    assert_eq!(kept.unwrap(), "one\nthree\n");
    assert_eq!(bench.content("f"), "old\n");
}

#[tokio::test]
async fn a_file_that_can_be_written_in_a_directory_that_cannot_is_changed() {
    let bench = Bench::new();
    let (path, directory) = (bench.file("d/f", "a longer old text\n"), bench.path("d"));
    let (path, directory) = (path.to_str().unwrap(), directory.to_str().unwrap());
    // For root only a file system that is read-only is closed.
    let is_closed = match is_root() {
        true => {
            can("mount", &["--bind", directory, directory])
                && can("mount", &["--bind", path, path])
                && can("mount", &["-o", "remount,ro,bind", directory])
        }
        false => can("chmod", &["555", directory]),
    };
    if is_closed {
        write_and_edit(&bench, "d/f").await;
    }
    let opened = match is_root() {
        true => {
            can("umount", &[path]);
            can("umount", &[directory])
        }
        false => can("chmod", &["755", directory]),
    };
    assert!(opened || !is_closed);
}

#[tokio::test]
async fn that_a_changed_file_is_read_only_is_said() {
    let bench = Bench::new();
    let path = bench.file("f", "old\n");
    for mode in [0o444, 0o400, 0o644] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let write = json!({"path": "f", "content": "old\n"});
        let edit = json!({"path": "f", "old_string": "old", "new_string": "new"});
        for (tool, arguments) in [("write_file", write), ("edit_file", edit)] {
            let value = bench.ok(tool, arguments).await.value;
            let note = value["note"].as_str().unwrap_or_default();
            assert_eq!(
                note.contains("read-only"),
                mode & 0o200 == 0,
                "{tool}: {value}"
            );
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
    }
}

#[tokio::test]
async fn a_whole_file_keeps_its_byte_order_mark_and_its_line_ends() {
    for (before, content, after, note) in [
        (
            "a\r\nb\r\n",
            "c\nd\n",
            "c\r\nd\r\n",
            Some("lines end in CRLF as before"),
        ),
        (
            "\u{feff}a\n",
            "c\n",
            "\u{feff}c\n",
            Some("the byte order mark was kept"),
        ),
        (
            "\u{feff}a\r\n",
            "c\n",
            "\u{feff}c\r\n",
            Some("lines end in CRLF as before; the byte order mark was kept"),
        ),
        ("a\r\n", "c\r\nd\n", "c\r\nd\n", None),
        ("a\n", "c\r\n", "c\r\n", None),
        ("\u{feff}a\n", "\u{feff}c\n", "\u{feff}c\n", None),
        ("a\r\n", "", "", None),
    ] {
        let bench = Bench::new();
        bench.file("f", before);
        let output = bench
            .ok("write_file", json!({"path": "f", "content": content}))
            .await;
        assert_eq!(bench.content("f"), after, "{before:?}");
        assert_eq!(output.value["note"].as_str(), note, "{before:?}");
        assert_eq!(output.value["bytes"], after.len());
    }
}

#[tokio::test]
async fn a_text_in_another_encoding_is_named_with_the_way_to_convert_it() {
    let bench = Bench::new();
    let utf_16: Vec<u8> = "\u{feff}Gr\u{fc}n\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    bench.file("wide", utf_16);
    bench.file("old one", b"Gr\xfcn\n");
    let edit = |path: &str| json!({"path": path, "old_string": "n", "new_string": "m"});
    let wide = "`wide` is UTF-16 text (little-endian), not UTF-8. To edit it, convert it by a command and back afterwards: \
                `iconv -f UTF-16LE -t UTF-8 wide` prints it as UTF-8";
    assert_eq!(bench.failed("edit_file", edit("wide")).await, wide);
    assert_eq!(
        bench.failed("read_file", json!({"path": "wide"})).await,
        wide
    );
    let message = bench.failed("edit_file", edit("old one")).await;
    assert!(
        message.contains("is text in Latin-1, Windows-1252"),
        "{message}"
    );
    assert!(
        message.contains("`iconv -f WINDOWS-1252 -t UTF-8 'old one'`"),
        "{message}"
    );
    let text = bench.text("read_file", json!({"path": "old one"})).await;
    assert!(text.contains("not all UTF-8 (`iconv"), "{text}");
    let value = bench
        .ok("write_file", json!({"path": "wide", "content": "x"}))
        .await
        .value;
    assert!(
        value["note"].as_str().unwrap().contains("is UTF-16 text"),
        "{value}"
    );
}

#[tokio::test]
async fn what_somebody_else_changed_since_it_was_read_is_shown_and_not_written_over() {
    let bench = Bench::new();
    let write = json!({"path": "f", "content": "three\n"});
    let edit = json!({"path": "./f", "old_string": "b", "new_string": "c"});
    for (tool, arguments, after) in [
        ("write_file", write.clone(), "three\n"),
        ("edit_file", edit.clone(), "mine\nc\n"),
    ] {
        bench.file("f", "a\nb\n");
        bench
            .text("read_file", json!({"path": "f", "limit": 1}))
            .await;
        bench.file("f", "mine\nb\n");
        let message = bench.failed(tool, arguments.clone()).await;
        let begin = "`f` was changed since it was last read or written by a file tool, so nothing was written";
        assert!(message.replace("./f", "f").starts_with(begin), "{message}");
        assert!(message.contains("-a\n+mine\n"), "{message}");
        assert_eq!(bench.content("f"), "mine\nb\n");
        // The model has seen it now.
        bench.ok(tool, arguments).await;
        assert_eq!(bench.content("f"), after);
    }
    // What the tools themselves wrote is known.
    bench
        .ok("write_file", json!({"path": "f", "content": "b\n"}))
        .await;
    bench.ok("edit_file", edit).await;
    bench.ok("write_file", write.clone()).await;
    // A file that was never read, and one that is gone, are written.
    bench.file("new", "x");
    bench
        .ok("write_file", json!({"path": "new", "content": "y"}))
        .await;
    fs::remove_file(bench.path("f")).unwrap();
    bench.ok("write_file", write).await;
    // Another session has not read it.
    bench.file("f", "other\n");
    let mut invocation = invocation(
        json!({"path": "f", "content": "z"}),
        CancellationToken::new(),
    );
    invocation.session = SessionId::new("another");
    assert!(bench.tool("write_file").call(invocation).await.is_ok());
}

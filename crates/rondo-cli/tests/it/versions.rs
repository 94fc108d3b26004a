//! The commands on stores that each version of the format wrote.

use crate::harness::TestEnv;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A version's folder, and its sessions with their turns.
const VERSIONS: [(&str, &[(&str, u64)]); 2] = [
    (
        "v1",
        &[
            ("plain", 2),
            ("resumed", 2),
            ("forked", 2),
            ("compacted", 4),
        ],
    ),
    (
        "v2",
        &[
            ("plain", 2),
            ("resumed", 2),
            ("forked", 2),
            ("compacted", 4),
            ("celled", 2),
        ],
    ),
];

fn folder(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/journal")
        .join(version)
}

/// A home with the store that a version wrote.
fn home(version: &str) -> TestEnv {
    let env = TestEnv::new();
    let sessions = env.home().join(".local/share/rondo/sessions");
    fs::create_dir_all(&sessions).unwrap();
    fs::copy(
        folder(version).join("journal.db"),
        sessions.join("journal.db"),
    )
    .unwrap();
    env
}

/// Returns an exported file without what its first line says of its end, which older ones do not say.
fn unannounced(file: &str) -> (Value, &str) {
    let (head, records) = file.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(head).unwrap();
    for name in ["records", "end_hash"] {
        head.as_object_mut().unwrap().remove(name);
    }
    (head, records)
}

#[tokio::test]
async fn each_session_is_listed_shown_checked_exported_and_replayed_as_it_was() {
    for (version, sessions) in VERSIONS {
        let env = home(version);
        let list = env.run(&["session", "list", "--json"]).await.lines();
        assert_eq!(list.len(), sessions.len());
        for (name, turns) in sessions {
            let row = list.iter().find(|it| it["id"] == *name).unwrap();
            assert_eq!(
                (&row["turns"], &row["state"]),
                (&(*turns).into(), &"done".into())
            );
            let shown = env
                .run(&["session", "show", name, "--format", "json"])
                .await;
            let shown = shown.lines();
            let told = shown[0]["turns"].as_array().unwrap().iter();
            let told = told.filter(|turn| turn["number"] != 0).count();
            assert_eq!(told as u64, *turns, "{name}");
            let kept = fs::read_to_string(folder(version).join(format!("{name}.jsonl"))).unwrap();
            let exported = env.run(&["session", "export", name]).await;
            assert_eq!(unannounced(&exported.stdout), unannounced(&kept), "{name}");
            let replayed = env.run(&["replay", name, "--strict"]).await;
            assert_eq!(replayed.code, Some(0), "{name}: {replayed:?}");
        }
        let checked = env.run(&["session", "fsck"]).await;
        assert_eq!(
            (checked.code, checked.stdout.lines().count()),
            (Some(0), sessions.len())
        );
    }
}

#[tokio::test]
async fn a_store_of_a_newer_major_version_is_refused_and_says_what_to_do() {
    let env = home("v1");
    let path = env.home().join(".local/share/rondo/sessions/journal.db");
    // The version of the tables: SQLite's `user_version`, four bytes from the sixtieth on.
    let mut bytes = fs::read(&path).unwrap();
    bytes[63] = 2;
    fs::write(&path, &bytes).unwrap();
    for command in [&["session", "list"][..], &["replay", "plain"], &["resume"]] {
        let refused = env.run(command).await;
        assert_eq!(refused.code, Some(54), "{refused:?}");
        for part in ["has version 2", "knows 1 and older", "install the version"] {
            assert!(refused.stderr.contains(part), "{part}: {refused:?}");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

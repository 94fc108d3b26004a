//! Bits of the file are flipped: what each session had is read, restored, or said to be damaged where it is.

use crate::support::{id, say};
use rondo_core::ports::Seq;
use rondo_core::session_store::StoreError;
use rondo_journal::{Durability, Entry, JournalError, Options, Store};
use rondo_types::TimeMs;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Bits that are flipped, spread over the file by a prime step.
const FLIPS: usize = 60;

const NAMES: [&str; 3] = ["a", "b", "fork"];

fn options() -> Options {
    Options {
        durability: Durability::Normal,
        ..Options::default()
    }
}

/// A journal of three sessions that share a body, and what they hold.
async fn filled(dir: &Path) -> Vec<Vec<Entry>> {
    let store = Store::open(dir, options()).unwrap();
    let shared = "shared ".repeat(2_400);
    for name in ["a", "b"] {
        let session = store.create(&id(name), TimeMs(1)).unwrap();
        say(
            &session,
            Seq(0),
            &["one", &shared, "three", &"four ".repeat(700), "five"],
        )
        .await;
    }
    store
        .fork(&id("a"), Seq(3), &id("fork"), TimeMs(1))
        .unwrap();
    say(&store.own(&id("fork")).unwrap(), Seq(3), &["left"]).await;
    let held = NAMES.map(|name| store.read_all(&id(name)).unwrap());
    held.to_vec()
}

#[tokio::test]
async fn after_any_flipped_bit_a_session_is_whole_restored_or_cut_where_it_is_damaged() {
    let dir = TempDir::new().unwrap();
    let held = filled(dir.path()).await;
    let path = dir.path().join("journal.db");
    let sound = fs::read(&path).unwrap();
    let (mut restored, mut lost, mut unreadable) = (0, 0, 0);
    for number in 0..FLIPS {
        let bit = number * 7_919_993 % (sound.len() * 8);
        for name in ["journal.db-wal", "journal.db-shm"] {
            let _ = fs::remove_file(dir.path().join(name));
        }
        let mut changed = sound.clone();
        *changed.get_mut(bit / 8).unwrap() ^= 1 << (bit % 8);
        fs::write(&path, changed).unwrap();
        let is_malformed = match Store::open(dir.path(), options()) {
            Ok(store) => store.malformed().unwrap().is_some(),
            Err(JournalError::Database(_)) => true,
            // A version of another one.
            Err(JournalError::TooNew { .. }) => continue,
            Err(error) => panic!("{bit}: {error}"),
        };
        if is_malformed && let Err(error) = Store::salvage(dir.path(), options()) {
            // The list of the tables cannot be read.
            assert!(
                matches!(error, JournalError::NotAJournal { .. }),
                "{bit}: {error:?}"
            );
            unreadable += 1;
            continue;
        }
        let store = Store::open(dir.path(), options()).unwrap();
        for (name, held) in NAMES.iter().zip(&held) {
            match store.repair(&id(name)) {
                Ok(report) => {
                    let sound = usize::try_from(report.sound).unwrap();
                    let is_cut = !report.cut.is_empty();
                    lost += usize::from(sound < held.len());
                    restored += usize::try_from(report.mended).unwrap();
                    let read = store.read_all(&id(name)).unwrap();
                    assert_eq!(read.get(..sound), held.get(..sound), "{bit}: {name}");
                    assert!(is_cut || report.defect.is_none(), "{bit}: {report:?}");
                    assert_eq!(
                        store.check(&id(name)).unwrap().defect,
                        None,
                        "{bit}: {name}"
                    );
                }
                Err(JournalError::Store(StoreError::Unknown { .. })) => lost += 1,
                Err(error) => panic!("{bit}: {name}: {error:?}"),
            }
        }
    }
    // Most of the file are bodies.
    assert!(restored > FLIPS / 8, "{restored}");
    assert!(
        lost < FLIPS / 8 && unreadable < FLIPS / 8,
        "{lost} {unreadable}"
    );
}

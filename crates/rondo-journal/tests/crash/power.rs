//! Takes a process's power away while it submits mail and acknowledges it: what it said of it is there.

use crate::mail::{self, KILLS, Said, check, check_repeated, killed_after, lines_of, run, session};
use rondo_journal::{Durability, Options, Store};
use rondo_testkit::power::PowerLoss;
use std::path::Path;
use tempfile::TempDir;

/// The first argument of a victim; its directory, how power is lost and whether it waits for the disk follow.
pub(crate) const VICTIM_ARG: &str = "__power";
const WAITS: &str = "waits";
/// So few that the log is copied into the file again and again.
const CHECKPOINT_PAGES: u32 = 40;
/// Of a hundred sectors, those that reach the disk unsynced.
const STRAYS: [u64; 3] = [0, 30, 80];

/// Works on a disk that forgets what was not synced.
pub(crate) fn victim(args: &[String]) {
    let [dir, loss, waits] = args else {
        panic!("a victim has three arguments")
    };
    let loss: PowerLoss = loss.parse().unwrap();
    loss.install();
    let options = Options {
        durability: match waits == WAITS {
            true => Durability::Full,
            false => Durability::Normal,
        },
        checkpoint_pages: CHECKPOINT_PAGES,
        ..Options::default()
    };
    mail::victim(Path::new(dir), false, options);
}

/// Takes a victim's power away, and returns what it had said.
async fn powerless_after(kill: usize, dir: &Path, waits: &str) -> Said {
    let loss = PowerLoss {
        strays: STRAYS[kill % STRAYS.len()],
        seed: kill as u64,
        at: None,
    };
    let arguments = [VICTIM_ARG, dir.to_str().unwrap(), &loss.word(), waits];
    killed_after(lines_of(kill), arguments).await
}

/// The test of a journal that waits for the disk.
pub(crate) fn lost() {
    run(async {
        let dir = TempDir::new().unwrap();
        let mut most = 0;
        for kill in 0..KILLS {
            let said = powerless_after(kill, dir.path(), WAITS).await;
            let store = Store::open(dir.path(), Options::default()).unwrap();
            check(&store, &said, true).await;
            check_repeated(&store, &said).await;
            most = said.values().map(|it| it.1).max().unwrap_or(most);
        }
        assert!(most > 0, "they lost power before they did anything");
    });
}

/// The test of one that does not: it shows that the disk forgets.
pub(crate) fn lost_unsynced() {
    run(async {
        let dir = TempDir::new().unwrap();
        let mut lost = 0;
        for kill in 0..KILLS {
            let said = powerless_after(kill, dir.path(), "").await;
            let store = Store::open(dir.path(), Options::default()).unwrap();
            lost += said.iter().filter(|it| is_lost(&store, it)).count();
        }
        assert!(lost > 0, "nothing was lost although nothing was synced");
    });
}

/// Returns whether a record is gone of which a victim said that it was kept.
fn is_lost(store: &Store, (number, (word, n)): &(&u64, &(String, u64))) -> bool {
    let records = store.load(&session(**number)).map_or(0, |it| it.len());
    word == "kept" && (records as u64) <= *n
}

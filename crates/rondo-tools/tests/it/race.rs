use crate::bench::Bench;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Attempts of each race.
const ATTEMPTS: usize = 400;

/// Attempts within which an implementation that checks first and opens later is caught.
const NAIVE_ATTEMPTS_MAX: usize = 1_000_000;

/// Exchanges the directory `d` for a link to the outside and back, at once, until told to stop.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(bench: &Bench) -> Self {
        bench.file("d/secret", "ours");
        bench.link(bench.outside.path(), "link");
        let (directory, link) = (bench.path("d"), bench.path("link"));
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let (tx, rx) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let exchange = || renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE);
            while !flag.load(Ordering::Relaxed) {
                exchange().unwrap();
                exchange().unwrap();
                // Only the first round is waited for.
                let _ = tx.try_send(());
            }
        });
        rx.recv().unwrap();
        Self {
            stop,
            thread: Some(thread),
        }
    }

    fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn the_race_is_lost_by_checking_before_opening() {
    let bench = Bench::new();
    let swapper = Swapper::start(&bench);
    let path = bench.path("d/secret");
    let inside = bench.inside.path().canonicalize().unwrap();
    let leaks = || {
        let is_inside = path
            .canonicalize()
            .is_ok_and(|real| real.starts_with(&inside));
        is_inside && std::fs::read_to_string(&path).is_ok_and(|text| text == "SECRET")
    };
    assert!((0..NAIVE_ATTEMPTS_MAX).any(|_| leaks()));
    swapper.stop();
}

#[tokio::test]
async fn hub_32_a_directory_swapped_for_a_link_never_leaks_what_is_outside() {
    let bench = Bench::new();
    let swapper = Swapper::start(&bench);
    let mut seen_ours = 0;
    for _ in 0..ATTEMPTS {
        for (tool, arguments) in [
            ("read_file", json!({"path": "d/secret"})),
            (
                "search_files",
                json!({"path": "d", "pattern": "SECRET|ours"}),
            ),
            ("search_files", json!({"pattern": "SECRET|ours"})),
        ] {
            let outcome = format!("{:?}", bench.call(tool, arguments).await);
            let without_pattern = outcome.replace("SECRET|ours", "");
            assert!(!without_pattern.contains("SECRET"), "{outcome}");
            seen_ours += usize::from(without_pattern.contains("ours"));
        }
    }
    swapper.stop();
    assert!(seen_ours > 0);
}

#[tokio::test]
async fn hub_32_a_directory_swapped_for_a_link_is_never_written_through() {
    let bench = Bench::new();
    let swapper = Swapper::start(&bench);
    for round in 0..ATTEMPTS {
        let content = format!("ours {round}");
        bench
            .call(
                "write_file",
                json!({"path": "d/secret", "content": content, "create_parents": false}),
            )
            .await;
        bench
            .call(
                "edit_file",
                json!({"path": "d/secret", "old_string": "ours", "new_string": "our"}),
            )
            .await;
    }
    swapper.stop();
    let outside: Vec<_> = std::fs::read_dir(bench.outside.path()).unwrap().collect();
    assert_eq!(outside.len(), 1);
    let secret = std::fs::read_to_string(bench.outside.path().join("secret")).unwrap();
    assert_eq!(secret, "SECRET");
}

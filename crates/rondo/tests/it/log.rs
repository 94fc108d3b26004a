//! Log of turns, for tests to read.
//!
//! One subscriber for all tests, which keeps lines by thread, since a test has a thread of its own.
//! One for each test would race with the others for whether a line is wanted at all.

use std::cell::RefCell;
use std::io;
use std::sync::Once;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

static STARTED: Once = Once::new();

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what is logged at INFO and above. Must be called before the first turn.
pub(crate) fn start_logging() {
    STARTED.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_ansi(false)
            .with_writer(|| OfThread)
            .finish()
            .init();
    });
}

/// Returns the lines of this test that hold a text.
pub(crate) fn logged(text: &str) -> Vec<String> {
    let bytes = BYTES.with_borrow(Clone::clone);
    let all = String::from_utf8(bytes).unwrap();
    let lines = all.lines().filter(|line| line.contains(text));
    lines.map(str::to_owned).collect()
}

struct OfThread;

impl io::Write for OfThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BYTES.with_borrow_mut(|all| all.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

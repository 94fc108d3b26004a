//! Properties of any text that is taken for the records of a session, one a line. A fuzz target includes this file, and
//! a test feeds it the fuzzer's findings.

use rondo_core::history::History;
use rondo_core::ports::Record;

/// Fails when a record is read as another one than it is written, or its session cannot be followed.
pub(crate) fn check(input: &[u8]) {
    let mut history = History::default();
    for line in input.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Record>(line) else {
            history.skip();
            continue;
        };
        let written = serde_json::to_vec(&record).unwrap();
        let again: Record = serde_json::from_slice(&written).unwrap();
        assert_eq!(again, record, "it is read as another one");
        history.take(&record);
        let _ = (history.transcript(), history.before_open_turn());
    }
    let kept = serde_json::to_vec(&history).unwrap();
    let again: History = serde_json::from_slice(&kept).unwrap();
    assert_eq!(again.transcript(), history.transcript());
    assert_eq!(again.grants(), history.grants());
}

#[cfg(test)]
mod tests {
    use super::check;
    use std::path::Path;

    /// Feeds the check what the fuzzer starts from, and what it found.
    #[test]
    fn the_corpus_of_records_is_read_as_it_is_written() {
        let corpus = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fuzz/corpus/journal_record"
        );
        let files = std::fs::read_dir(Path::new(corpus)).unwrap();
        let inputs = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        assert!(inputs.inspect(|it| check(it)).count() >= 3);
    }
}

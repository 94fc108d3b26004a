//! Properties of the judgment of any text. A fuzz target includes this file, and a test feeds it the fuzzer's
//! findings.

use rondo_policy::analysis::{Judgement, is_complete, judge};
use rondo_policy::rules::Decision;
use rondo_policy::{AllowedDirs, GateOptions, StandardGate};
use std::sync::LazyLock;

struct Place {
    dirs: AllowedDirs,
    gate: StandardGate,
    _folder: tempfile::TempDir,
}

/// A directory with a file and a directory in it.
static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("a"), "x").unwrap();
    let dirs = AllowedDirs::new(folder.path(), &[]).unwrap();
    let gate = StandardGate::new(GateOptions::new(dirs.clone()));
    Place {
        dirs,
        gate,
        _folder: folder,
    }
});

/// Fails when the judgment breaks a promise.
pub(crate) fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let place = &*PLACE;
    let judged = judge(text, &place.dirs);
    assert_eq!(
        judge(text, &place.dirs),
        judged,
        "it depends on more than the text"
    );
    let explained = place.gate.explain("exec", text);
    let whole = explained.last().map(|it| it.decision);
    match judged {
        Judgement::ReadOnly => {
            // What is read-only ends with its text: what follows on another line is judged too.
            let more = format!("{text}\nrm -rf src");
            let judged = judge(&more, &place.dirs);
            assert_ne!(judged, Judgement::ReadOnly, "{more:?}");
            assert!(is_complete(text), "{text:?}");
        }
        Judgement::Effects { .. } | Judgement::Unknown { .. } => {
            assert_ne!(whole, Some(Decision::Allow), "{text:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use std::path::Path;

    /// Feeds the checks what the fuzzer starts from, and what it found.
    #[test]
    fn the_corpus_of_commands_is_judged_as_promised() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/command");
        let files = std::fs::read_dir(Path::new(corpus)).unwrap();
        let mut count = 0;
        for file in files {
            check(&std::fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count >= 10, "{count}");
    }
}

//! Tests: files of the prompt cache, and what may happen to them.

use super::*;
use crate::error::LocalError;
use crate::vocabulary::Vocabulary;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

/// An engine whose state is a byte for each token.
#[derive(Clone, Default)]
struct Bytes {
    weights: u8,
    sequence: Vec<u32>,
}

fn state_of(weights: u8, tokens: &[u32]) -> Vec<u8> {
    tokens
        .iter()
        .map(|it| it.to_le_bytes()[0] ^ weights)
        .collect()
}

impl Engine for Bytes {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        unreachable!("a cache has tokens already")
    }

    fn context_tokens(&self) -> usize {
        1_024
    }

    fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    fn truncate(&mut self, length: usize) {
        self.sequence.truncate(length);
    }

    fn extend(&mut self, tokens: &[u32]) -> Result<Vec<f32>, LocalError> {
        self.sequence.extend_from_slice(tokens);
        Ok(vec![0.0])
    }

    fn fingerprint(&self) -> [u8; 32] {
        [self.weights; 32]
    }

    fn save(&self, from: usize) -> Option<Vec<u8>> {
        Some(state_of(self.weights, self.sequence.get(from..)?))
    }

    fn restore(&mut self, tokens: &[u32], state: &[u8]) -> bool {
        let fits = state == state_of(self.weights, tokens);
        if fits {
            self.sequence.extend_from_slice(tokens);
        }
        fits
    }

    fn fork(&self) -> Result<Box<dyn Engine>, LocalError> {
        Ok(Box::new(self.clone()))
    }
}

fn engine(weights: u8, tokens: &[u32]) -> Bytes {
    Bytes {
        weights,
        sequence: tokens.to_vec(),
    }
}

fn tokens(from: u32) -> Vec<u32> {
    (from..from + TOKENS_MIN as u32).collect()
}

fn part(whole: &[u32]) -> Part<'_> {
    Part { whole, from: 0 }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_is_kept_is_restored_for_the_same_weights_and_tokens_alone() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("cache/prompts");
    let cache = PromptCache::in_directory(directory.clone());
    let words = tokens(7);
    cache.keep(&mut engine(1, &words), part(&words));
    let mut fresh = engine(1, &[]);
    assert!(cache.restore(&mut fresh, part(&words)));
    assert_eq!(fresh.sequence(), words);
    for (weights, other) in [
        (2, words.clone()),
        (1, tokens(8)),
        (1, [words, tokens(99)].concat()),
    ] {
        let mut fresh = engine(weights, &[3]);
        assert!(!cache.restore(&mut fresh, part(&other)));
        assert_eq!(fresh.sequence(), [3], "a miss leaves the engine as it was");
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let found = files(&directory);
    assert_eq!(
        (found.len(), mode(&directory), mode(&found[0])),
        (1, 0o700, 0o600)
    );
}

#[test]
fn a_part_is_restored_behind_what_stood_before_it_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let cache = PromptCache::in_directory(home.path().to_owned());
    let (first, second) = (tokens(0), tokens(500));
    let both = [first.clone(), second.clone()].concat();
    let behind = Part {
        whole: &both,
        from: first.len(),
    };
    let mut computed = engine(1, &first);
    cache.keep(&mut computed, part(&first));
    computed.extend(&second).unwrap();
    cache.keep(&mut computed, behind);
    assert_eq!(computed.sequence(), both);
    let mut sizes: Vec<u64> = files(home.path())
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .collect();
    sizes.sort_unstable();
    let more = 4 * second.len() as u64;
    assert_eq!(sizes, [sizes[0], sizes[0] + more], "each has its own state");

    let mut fresh = engine(1, &[]);
    assert!(!cache.restore(&mut fresh, behind), "the first is missing");
    assert!(cache.restore(&mut fresh, part(&first)));
    fresh.extend(&[3, 4]).unwrap();
    assert!(cache.restore(&mut fresh, behind));
    assert_eq!(fresh.sequence(), both);
    let mut other = engine(1, &tokens(1));
    assert!(!cache.restore(&mut other, behind));
    assert_eq!(other.sequence(), tokens(1));
}

#[test]
fn short_beginnings_and_those_that_are_not_computed_are_not_kept() {
    let home = tempfile::tempdir().unwrap();
    let cache = PromptCache::in_directory(home.path().to_owned());
    let words = tokens(0);
    cache.keep(&mut engine(1, &words[1..]), part(&words[1..]));
    cache.keep(&mut engine(1, &tokens(1)), part(&words));
    assert!(files(home.path()).is_empty());
}

#[test]
fn a_file_that_is_cut_or_changed_anywhere_counts_as_none_and_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let cache = PromptCache::in_directory(home.path().to_owned());
    let words = tokens(0);
    cache.keep(&mut engine(1, &words), part(&words));
    let path = files(home.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let changed = (0..whole.len()).flat_map(|at| {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        [whole[..at].to_vec(), flipped]
    });
    for bytes in changed.chain([[whole.as_slice(), b"x"].concat()]) {
        fs::write(&path, bytes).unwrap();
        assert!(!cache.restore(&mut engine(1, &[]), part(&words)));
        assert!(!path.exists());
    }
    // What is longer than any file is not read.
    File::create(&path)
        .unwrap()
        .set_len(FILE_BYTES_MAX + 1)
        .unwrap();
    assert!(!cache.restore(&mut engine(1, &[]), part(&words)));
    fs::write(&path, &whole).unwrap();
    assert!(cache.restore(&mut engine(1, &[]), part(&words)));
}

#[test]
fn files_are_bounded_in_number_bytes_and_age_and_the_last_used_stay() {
    let home = tempfile::tempdir().unwrap();
    let cache = PromptCache::in_directory(home.path().to_owned());
    let now = SystemTime::now();
    let add = |name: &str, bytes: u64, age: Duration| {
        let file = File::create(home.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(now - age).unwrap();
    };
    let names = || {
        let mut names: Vec<_> = files(home.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    add("old.kv", 1, UNUSED_MAX + Duration::from_secs(1));
    add("left.1-0.new", 1, WRITING_MAX + Duration::from_secs(1));
    add("being-written.2-0.new", 1, Duration::from_secs(5));
    add("other.txt", 1, UNUSED_MAX * 2);
    for minute in 1..=FILES_MAX as u64 + 2 {
        add(
            &format!("{minute:02}.kv"),
            1,
            Duration::from_secs(60 * minute),
        );
    }
    cache.prune(now);
    let kept = |count: usize| {
        let numbered = (1..=count).map(|minute| format!("{minute:02}.kv"));
        let mut all: Vec<_> = numbered.collect();
        all.extend(["being-written.2-0.new".to_owned(), "other.txt".to_owned()]);
        all
    };
    assert_eq!(names(), kept(FILES_MAX));
    add("03.kv", BYTES_MAX - 2, Duration::from_secs(180));
    cache.prune(now);
    assert_eq!(names(), kept(3));
}

#[test]
fn a_file_that_is_read_counts_as_used() {
    let home = tempfile::tempdir().unwrap();
    let cache = PromptCache::in_directory(home.path().to_owned());
    let words = tokens(0);
    cache.keep(&mut engine(1, &words), part(&words));
    let path = files(home.path()).remove(0);
    let long_ago = SystemTime::now() - UNUSED_MAX * 2;
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(long_ago).unwrap();
    assert!(cache.restore(&mut engine(1, &[]), part(&words)));
    cache.prune(SystemTime::now());
    assert!(path.exists());
}

#[test]
fn many_writers_and_readers_of_one_file_see_it_whole_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let cache = PromptCache::in_directory(home.path().to_owned());
    let words: Vec<u32> = (0..50_000).collect();
    let found = std::thread::scope(|scope| {
        let work = |_| {
            let found = (0..20).filter(|_| {
                cache.keep(&mut engine(1, &words), part(&words));
                cache.restore(&mut engine(1, &[]), part(&words))
            });
            found.count()
        };
        let threads: Vec<_> = (0..8).map(|it| scope.spawn(move || work(it))).collect();
        threads
            .into_iter()
            .map(|it| it.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(found, 160);
    assert_eq!(files(home.path()).len(), 1);
}

#[test]
fn a_directory_that_cannot_be_written_costs_nothing_but_the_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = PromptCache::in_directory(file.join("prompts"));
    let words = tokens(0);
    let mut computed = engine(1, &words);
    cache.keep(&mut computed, part(&words));
    assert_eq!(computed.sequence(), words);
    assert!(!cache.restore(&mut computed, part(&tokens(1))));
    assert_eq!(computed.sequence(), words);
}

//! Tests: files that are whole are read, and what is cut or changed is refused or read, within bounds.

use super::header::{self, DIMENSIONS_MAX, ENTRIES_MAX, NAME_BYTES_MAX, TENSORS_MAX, Value};
use super::*;
use std::io::Write as _;

/// Builds files piece by piece.
#[derive(Clone, Default)]
struct File(Vec<u8>);

impl File {
    fn new(version: u32, tensors: u64, entries: u64) -> Self {
        let start = Self(b"GGUF".to_vec());
        start.four(version).eight(tensors).eight(entries)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn four(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn eight(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn text(self, text: &str) -> Self {
        self.eight(text.len() as u64).bytes(text.as_bytes())
    }

    fn number(self, key: &str, number: u32) -> Self {
        self.text(key).four(4).four(number)
    }

    fn tensor(self, name: &str, dimensions: &[u64], kind: u32, offset: u64) -> Self {
        let named = self.text(name).four(dimensions.len() as u32);
        let sized = dimensions
            .iter()
            .fold(named, |file, size| file.eight(*size));
        sized.four(kind).eight(offset)
    }

    fn aligned(mut self, to: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
        self
    }

    fn refusal(&self) -> String {
        header::read(&self.0).unwrap_err()
    }

    fn open(&self) -> Gguf {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&self.0).unwrap();
        Gguf::open(file.path()).unwrap()
    }
}

/// A file with an entry of each kind that is looked for, and two tensors.
fn whole() -> File {
    let file = File::new(3, 2, 8)
        .text("a.text")
        .four(8)
        .text("hello\0")
        .number("a.number", 7)
        .text("a.fraction")
        .four(6)
        .bytes(&0.5_f32.to_le_bytes())
        .text("texts")
        .four(9)
        .four(8)
        .eight(2)
        .text("one")
        .text("")
        .text("numbers")
        .four(9)
        .four(5)
        .eight(3)
        .bytes(&[1_i32, -2, 3].map(i32::to_le_bytes).concat())
        .text("nested")
        .four(9)
        .four(9)
        .eight(1)
        .four(0)
        .eight(2)
        .bytes(&[1, 2])
        .text("truth")
        .four(7)
        .bytes(&[1])
        .text("below")
        .four(5)
        .bytes(&(-1_i32).to_le_bytes());
    file.tensor("vector", &[3], 0, 0)
        .tensor("matrix", &[32, 2], 8, 32)
        .aligned(32)
        .bytes(&[1.0_f32, 2.0, 3.0].map(f32::to_le_bytes).concat())
        .aligned(32)
        .bytes(&[0; 68])
}

#[test]
fn entries_and_tensors_are_found_by_name_and_kind() {
    let gguf = whole().open();
    assert_eq!(gguf.text("a.text"), Some("hello"));
    assert_eq!(gguf.number("a.number"), Some(7));
    assert_eq!(gguf.fraction("a.fraction"), Some(0.5));
    assert_eq!(gguf.texts("texts"), Some(vec!["one", ""]));
    assert_eq!(gguf.numbers("numbers"), Some(vec![1, -2, 3]));
    assert_eq!(gguf.number("below"), None);
    assert_eq!(gguf.number("a.text"), None);
    assert_eq!(gguf.text("a.number"), None);
    assert_eq!(gguf.texts("numbers"), None);
    assert_eq!(gguf.numbers("nested"), None);
    assert_eq!(gguf.number("truth"), None);
    assert_eq!(gguf.vector("vector").unwrap(), [1.0, 2.0, 3.0]);
    let matrix = gguf.matrix("matrix").unwrap();
    assert_eq!((matrix.outputs(), matrix.inputs()), (2, 32));
    for misused in [gguf.matrix("vector").err(), gguf.matrix("other").err()] {
        assert!(matches!(misused, Some(LocalError::Format { .. })));
    }
    assert!(gguf.vector("matrix").is_err());
}

#[test]
fn the_data_begins_where_the_alignment_says() {
    let file = |alignment: u32| {
        File::new(2, 1, 1)
            .number("general.alignment", alignment)
            .tensor("v", &[1], 0, 0)
    };
    let gguf = file(64).aligned(64).bytes(&2.5_f32.to_le_bytes()).open();
    assert_eq!(gguf.vector("v").unwrap(), [2.5]);
    for wrong in [0, 1 << 21] {
        let refusal = file(wrong).aligned(64).bytes(&[0; 64]).refusal();
        assert!(refusal.contains("general.alignment"), "{refusal}");
    }
}

#[test]
fn other_files_and_versions_are_refused() {
    assert!(File(b"GGML".repeat(9)).refusal().contains("GGUF"));
    assert!(File(Vec::new()).refusal().contains("ends"));
    for version in [1, 4, 3_u32.swap_bytes()] {
        let refusal = File::new(version, 0, 0).refusal();
        assert!(refusal.contains("version"), "{refusal}");
    }
}

#[test]
fn counts_above_their_bounds_are_refused_before_anything_is_read() {
    let refused = |tensors, entries| File::new(3, tensors, entries).refusal();
    assert!(refused(TENSORS_MAX, 0).contains("ends"));
    assert!(refused(TENSORS_MAX + 1, 0).contains("65536"));
    assert!(refused(0, ENTRIES_MAX).contains("ends"));
    assert!(refused(0, ENTRIES_MAX + 1).contains("4096"));
    let named = |length| File::new(3, 0, 1).number(&"k".repeat(length), 1);
    assert!(header::read(&named(NAME_BYTES_MAX).0).is_ok());
    assert!(named(NAME_BYTES_MAX + 1).refusal().contains("1025 bytes"));
    let shaped = |count: u32| File::new(3, 1, 0).tensor("t", &vec![1; count as usize], 99, 0);
    assert!(header::read(&shaped(DIMENSIONS_MAX).0).is_ok());
    assert!(shaped(DIMENSIONS_MAX + 1).refusal().contains("dimensions"));
    assert!(shaped(0).refusal().contains("dimensions"));
}

#[test]
fn lengths_that_lead_out_of_the_file_are_refused() {
    let entry = |kind: u32| File::new(3, 0, 1).text("key").four(kind);
    for file in [
        entry(8).eight(u64::MAX),
        entry(8).eight(1),
        entry(9).four(8).eight(u64::MAX),
        entry(9).four(10).eight(u64::MAX / 8),
        entry(9).four(9).eight(u64::MAX).bytes(&[0; 64]),
        File::new(3, 0, 1).eight(1 << 60),
    ] {
        assert!(file.refusal().contains("ends"));
    }
    for file in [entry(13), entry(9).four(77).eight(1)] {
        assert!(file.refusal().contains("unknown kind"));
    }
    let mut deep = entry(9);
    for _ in 0..100_000 {
        deep = deep.four(9).eight(1);
    }
    assert!(deep.refusal().contains("nested"));
}

#[test]
fn tensors_that_are_not_whole_are_refused() {
    let file = |dimensions: &[u64], kind, offset| {
        let file = File::new(3, 1, 0).tensor("t", dimensions, kind, offset);
        file.aligned(32).bytes(&[0; 144])
    };
    assert!(header::read(&file(&[256, 1], 12, 0).0).is_ok());
    for (dimensions, kind, offset, what) in [
        (&[256, 1][..], 12, 1, "ends at"),
        (&[256, 2], 12, 0, "ends at"),
        (&[256, u64::MAX], 12, 0, "whole blocks"),
        (&[1 << 40, 1 << 40], 0, 0, "whole blocks"),
        (&[256, 1], 12, u64::MAX, "ends at"),
        (&[128, 1], 12, 0, "whole blocks"),
    ] {
        let refusal = file(dimensions, kind, offset).refusal();
        assert!(refusal.contains(what), "{refusal}");
    }
    // Two rows of half a block each are as long as a block.
    let gguf = file(&[128, 2], 12, 0).open();
    assert!(gguf.matrix("t").is_err());
    let gguf = file(&[256, 1], 16, u64::MAX).open();
    let refusal = gguf.matrix("t").err().unwrap().to_string();
    assert!(refusal.contains("kind 16"), "{refusal}");
}

#[test]
fn names_that_come_twice_are_refused() {
    let entries = File::new(3, 0, 2).number("key", 1).number("key", 2);
    assert!(entries.refusal().contains("two entries `key`"));
    let tensors = File::new(3, 2, 0);
    let tensors = tensors.tensor("t", &[0], 0, 0).tensor("t", &[0], 0, 0);
    assert!(tensors.aligned(32).refusal().contains("two tensors `t`"));
}

/// Looks at all that a file has, as far as it can be opened.
fn look(file: &[u8]) {
    let Ok(header) = header::read(file) else {
        return;
    };
    for value in header.entries.values() {
        if let Value::Array(array) = value {
            let texts = array.texts(file).unwrap_or_default();
            let numbers = array.numbers(file).unwrap_or_default();
            // What is held is never more than the file paid for.
            assert!(texts.len() * 8 <= file.len() && numbers.len() * 4 <= file.len());
        }
    }
    for tensor in header.tensors.values() {
        assert!(tensor.place.end <= file.len());
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let File(file) = whole();
    for length in 0..file.len() {
        assert!(header::read(&file[..length]).is_err(), "{length}");
    }
    assert!(header::read(&file).is_ok());
}

#[test]
fn a_file_with_changed_bytes_is_refused_or_read() {
    let File(file) = whole();
    for at in 0..file.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] ^= change;
            look(&changed);
        }
        // Lengths and counts of all sizes.
        for bits in [0, 8, 16, 31, 32, 47, 63] {
            let mut changed = file.clone();
            let number = (1_u64 << bits).to_le_bytes();
            let end = (at + 8).min(file.len());
            changed[at..end].copy_from_slice(&number[..end - at]);
            look(&changed);
        }
    }
}

//! Searching by vectors, with a model of words: texts that share none are found, and words count without it.

use crate::support::{SECRET, Scene};
use async_trait::async_trait;
use rondo_core::ports::{Embedder, EmbeddingUse};
use rondo_memory::Memories;
use rondo_types::{ErrorClass, ModelError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Knows two topics, and keeps what it was sent.
#[derive(Default)]
struct Topics {
    sent: Mutex<Vec<(String, EmbeddingUse)>>,
    is_broken: AtomicBool,
    /// Texts of memories get no vector, ever.
    is_slow: AtomicBool,
    /// Counts for less than words, and takes one text at a time.
    is_weak: bool,
}

#[async_trait]
impl Embedder for Topics {
    fn name(&self) -> String {
        "test/topics".to_owned()
    }

    fn weight(&self) -> f64 {
        if self.is_weak { 0.2 } else { 1.0 }
    }

    fn texts_max(&self) -> usize {
        if self.is_weak { 1 } else { 64 }
    }

    async fn embed(
        &self,
        texts: &[String],
        used: EmbeddingUse,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(ModelError::new(ErrorClass::Overloaded, "too busy"));
        }
        if self.is_slow.load(Ordering::Relaxed) && used == EmbeddingUse::Stored {
            std::future::pending::<()>().await;
        }
        assert!(!self.is_weak || texts.len() == 1);
        self.sent
            .lock()
            .unwrap()
            .extend(texts.iter().map(|it| (it.clone(), used)));
        let topic = |text: &String, words: &[&str]| {
            if words.iter().any(|it| text.contains(it)) {
                1.0
            } else {
                0.1
            }
        };
        let of = |text| {
            vec![
                topic(text, &["cat", "pet"]),
                topic(text, &["car", "vehicle"]),
            ]
        };
        Ok(texts.iter().map(of).collect())
    }
}

fn scene() -> (Scene, Arc<Topics>, Memories) {
    scene_with(Topics::default())
}

fn scene_with(topics: Topics) -> (Scene, Arc<Topics>, Memories) {
    let scene = Scene::new();
    let lines = format!(
        "- The cat is called Mia.\n- The car is blue.\n- The key of the car is {SECRET}.\n"
    );
    scene.write("data/memory/MEMORY.md", &lines);
    let topics = Arc::new(topics);
    let mut options = scene.options();
    options.embedder = Some(Arc::clone(&topics) as _);
    let memories = Memories::new(options);
    (scene, topics, memories)
}

#[tokio::test]
async fn what_shares_no_word_is_found_and_each_text_is_embedded_once() {
    let (scene, topics, memories) = scene();
    for _ in 0..2 {
        let found = memories.search("pet", 3).await.unwrap();
        assert_eq!(found.hits[0].memory.text, "The cat is called Mia.");
        assert_eq!(found.notes, Vec::<String>::new());
    }
    let stored = |used| {
        topics
            .sent
            .lock()
            .unwrap()
            .iter()
            .filter(|it| it.1 == used)
            .count()
    };
    assert_eq!(
        (stored(EmbeddingUse::Stored), stored(EmbeddingUse::Query)),
        (3, 2)
    );
    let sent = topics
        .sent
        .lock()
        .unwrap()
        .iter()
        .any(|(text, _)| text.contains(SECRET));
    assert!(!sent, "secrets are not sent");
    // A text that moves to another file keeps its vector.
    scene.write("data/memory/MEMORY.md", "");
    scene.write(
        "data/memory/2026-01-01.md",
        "- The cat is called Mia.\n- The dog is called Rex.\n",
    );
    memories.search("pet", 3).await.unwrap();
    assert_eq!(stored(EmbeddingUse::Stored), 4);
}

#[tokio::test]
async fn without_vectors_words_count_and_the_search_says_so() {
    let (_scene, topics, memories) = scene();
    topics.is_broken.store(true, Ordering::Relaxed);
    let found = memories.search("cat", 3).await.unwrap();
    assert_eq!(found.hits[0].memory.text, "The cat is called Mia.");
    assert_eq!(found.notes.len(), 1);
    assert!(
        found.notes[0].contains("`test/topics` made no vectors"),
        "{:?}",
        found.notes
    );
}

#[tokio::test]
async fn ranks_by_vectors_count_as_much_as_their_model_says() {
    let weak = Topics {
        is_weak: true,
        ..Topics::default()
    };
    for (topics, weight) in [(weak, 0.2), (Topics::default(), 1.0)] {
        let (_scene, _topics, memories) = scene_with(topics);
        let found = memories.search("pet", 1).await.unwrap();
        assert_eq!(found.hits[0].memory.text, "The cat is called Mia.");
        // It is the first of the only list that has it.
        assert!((found.hits[0].score - weight / 61.0).abs() < 1e-12);
    }
}

#[tokio::test(start_paused = true)]
async fn vectors_that_are_there_count_when_others_take_too_long() {
    let (scene, topics, memories) = scene();
    memories.search("pet", 3).await.unwrap();
    scene.write("data/memory/2026-01-01.md", "- The dog is called Rex.\n");
    topics.is_slow.store(true, Ordering::Relaxed);
    let found = memories.search("pet", 3).await.unwrap();
    assert_eq!(found.hits[0].memory.text, "The cat is called Mia.");
    assert_eq!(
        found.notes,
        ["not all memories got vectors within 10s; the next searches make the others"]
    );
}

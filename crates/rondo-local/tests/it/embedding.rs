//! Vectors of texts by tiny weights: what is asked comes, once weights are there, which are given back.

use crate::tiny::file;
use rondo_core::ports::{Embedder, EmbeddingUse};
use rondo_local::{CpuEngine, LocalEmbedder, LocalError};
use rondo_types::{ErrorClass, ModelError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a state is looked at that comes by itself, and how long it is waited for.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

fn embedder(path: PathBuf) -> LocalEmbedder {
    LocalEmbedder::new("local/tiny", move || Ok(path.clone()))
}

async fn embed(embedder: &LocalEmbedder, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
    let texts: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
    embedder.embed(&texts, EmbeddingUse::Stored).await
}

#[tokio::test]
async fn each_text_has_a_vector_and_the_same_one_every_time() {
    for family in ["llama", "qwen2", "qwen3"] {
        let embedder = embedder(file(family));
        let long = "a long story ".repeat(1_000);
        let vectors = embed(&embedder, &["the cat", "the car", "the cat", &long, ""])
            .await
            .unwrap();
        assert_eq!(vectors.len(), 5, "{family}");
        assert_eq!(vectors[0], vectors[2]);
        assert_ne!(vectors[0], vectors[1]);
        let usable = |vector: &Vec<f32>| {
            vector.len() == vectors[0].len()
                && vector.iter().all(|it| it.is_finite())
                && vector.iter().any(|it| *it != 0.0)
        };
        assert!(vectors.iter().all(usable), "{family}");
    }
}

#[test]
fn of_a_text_that_is_too_long_the_end_is_left_out() {
    let engine = CpuEngine::load(&file("qwen2"), 64).unwrap();
    let long = "a long story ".repeat(100);
    let longer = format!("{long}with another end");
    assert_eq!(engine.embed(&long).unwrap(), engine.embed(&longer).unwrap());
    assert_ne!(
        engine.embed(&long).unwrap(),
        engine.embed("a long story ").unwrap()
    );
    let narrow = CpuEngine::load(&file("qwen2"), 2).unwrap();
    let refused = narrow.embed("a").unwrap_err();
    assert!(
        matches!(refused, LocalError::ContextTooLong { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn weights_that_are_missing_or_broken_are_looked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.gguf");
    let found = Arc::new(Mutex::new(None::<PathBuf>));
    let finds = Arc::clone(&found);
    let embedder = LocalEmbedder::new("local/tiny", move || {
        let found = finds.lock().unwrap().clone();
        found.ok_or_else(|| ModelError::new(ErrorClass::NotFound, "fetch them"))
    });
    let missing = embed(&embedder, &["a"]).await.unwrap_err();
    assert_eq!(missing.message, "fetch them");
    *found.lock().unwrap() = Some(path.clone());
    let gone = embed(&embedder, &["a"]).await.unwrap_err();
    assert_eq!(gone.class, ErrorClass::NotFound, "{gone}");
    std::fs::write(&path, "not weights").unwrap();
    let broken = embed(&embedder, &["a"]).await.unwrap_err();
    assert!(broken.message.contains("model.gguf"), "{broken}");
    std::fs::copy(file("qwen2"), &path).unwrap();
    assert_eq!(embed(&embedder, &["a"]).await.unwrap().len(), 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn weights_are_loaded_when_they_are_wanted_and_given_back_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.gguf");
    std::fs::copy(file("qwen2"), &path).unwrap();
    let embedder = embedder(path.clone()).released_after(LOOK);
    assert!(!is_mapped(&path));
    for _ in 0..2 {
        embed(&embedder, &["a"]).await.unwrap();
        let released = async {
            while is_mapped(&path) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, released).await.unwrap();
    }
    let kept = self::embedder(path.clone()).released_after(PATIENCE);
    embed(&kept, &["a"]).await.unwrap();
    assert!(is_mapped(&path));
}

#[cfg(target_os = "linux")]
fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(path.to_str().unwrap())
}

//! A long session as the full screen opens it: many short turns of one call each, and nothing summed up.

use crate::Failure;
use crate::sessions::store;
use crate::turns::{Scene, turn};
use rondo_journal::Durability;
use rondo_types::{SessionId, TimeMs, Transcript};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "talk";
/// Results of a few lines.
const SCENE: Scene = Scene {
    context_tokens: None,
    result_bytes: 600,
};

/// Builds a session of so many turns in a directory, and returns how many messages it has.
pub(crate) async fn build(dir: &Path, turns: u32) -> Result<usize, Failure> {
    let store = store(dir, Durability::Normal)?;
    let session = Arc::new(store.create(&SessionId::new(NAME), TimeMs(1))?);
    let mut history = Transcript::new();
    for number in 1..=turns {
        history = turn(SCENE, &session, number, history).await?.transcript;
    }
    Ok(history.len())
}

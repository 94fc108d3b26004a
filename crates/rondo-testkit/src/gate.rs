//! A gate in a script, at which the server waits until the test opens it.

use std::sync::Arc;
use tokio::sync::watch;

/// A gate in a script: the server stops there until the test opens it.
///
/// Clones are the same gate. It tells the test when the server has reached it, so that a test needs
/// no time to know what was sent.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Door>);

#[derive(Debug)]
struct Door {
    open: watch::Sender<bool>,
    reached: watch::Sender<bool>,
}

impl Gate {
    /// Builds a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Door {
            open: watch::Sender::new(false),
            reached: watch::Sender::new(false),
        }))
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Waits until a server is at the gate; everything scripted before it has been sent.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn reached(&self) {
        wait_true(&self.0.reached).await;
    }

    pub(crate) async fn pass(&self) {
        self.0.reached.send_replace(true);
        wait_true(&self.0.open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

async fn wait_true(flag: &watch::Sender<bool>) {
    flag.subscribe()
        .wait_for(|value| *value)
        .await
        .expect("the sender is borrowed, so it is alive");
}

//! Files to send: each message has its own in a directory, which is removed once nothing needs it any more.
//!
//! Uses of the files are looked up each time, so that no crash leaves a file forever or removes one too early.

use crate::channel::ChannelError;
use crate::hub::{Core, OUTGOING_DIR};
use crate::outgoing::Details;
use rondo_core::clock::Clock;
use rondo_core::ports::{MailboxError, OPEN_ROWS_MAX};
use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often it is looked for directories that nothing needs.
const LOOK: Duration = Duration::from_mins(10);
/// Newer files may belong to a call whose message is not queued yet.
const YOUNG: Duration = Duration::from_hours(1);

/// Why it was not looked.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error(transparent)]
    Disk(#[from] io::Error),
    #[error(transparent)]
    Outbox(#[from] MailboxError),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("a row of the outbox cannot be read: {0}")]
    Row(#[from] serde_json::Error),
    #[error("too many waiting messages name files that are still needed")]
    TooMany,
}

impl Core {
    /// Removes what nothing needs, now and from time to time, until `stop` fires.
    pub(crate) async fn remove_left_over(&self, stop: &CancellationToken) {
        loop {
            if let Err(error) = self.look_for_left_over().await {
                tracing::warn!(%error, "files that were sent are not removed");
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn look_for_left_over(&self) -> Result<(), Unknown> {
        let directory = self.directory.join(OUTGOING_DIR);
        let found = spawn_blocking(move || old_directories(&directory));
        let mut left_over = found.await.map_err(io::Error::other)??;
        if left_over.is_empty() {
            return Ok(());
        }
        // A channel shows a message before the outbox removes it, so none is missed in this order.
        let open = self.outbox.unsent().await?;
        if open.len() >= OPEN_ROWS_MAX {
            return Err(Unknown::TooMany);
        }
        let mut needed = Vec::new();
        for row in &open {
            needed.extend(Details::of_row(row)?.files);
        }
        for channel in self.channels() {
            needed.extend(channel.shown_files().await?);
        }
        let needed = needed.iter().filter_map(|it| it.path.parent());
        let needed: HashSet<&Path> = needed.collect();
        left_over.retain(|it| !needed.contains(it.as_path()));
        let removed = spawn_blocking(move || left_over.iter().try_for_each(fs::remove_dir_all));
        Ok(removed.await.map_err(io::Error::other)??)
    }
}

fn old_directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut old = Vec::new();
    for entry in entries {
        let entry = entry?;
        let changed = entry.metadata()?.modified()?;
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Duration::from_millis(Clock::system().now().0);
        if now.saturating_sub(changed) > YOUNG {
            old.push(entry.path());
        }
    }
    Ok(old)
}

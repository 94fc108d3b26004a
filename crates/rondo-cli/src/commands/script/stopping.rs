//! Ways to stop a script: signals, which are watched by a thread of their own, since a script may keep the one that it
//! runs on.

use crate::error::{CliError, Result};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a script may take to end once it is told to.
const GRACE: Duration = Duration::from_secs(15);

/// Watches for signals until the process ends.
pub(super) struct Stopping {
    cancel: CancellationToken,
    stop: Arc<OnceLock<Stop>>,
}

impl Stopping {
    /// Begins to watch. The first signal stops the script; a second one ends the process at once, and so does a script
    /// that does not end in time.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start() -> Result<Self> {
        let cancel = CancellationToken::new();
        let stop = Arc::new(OnceLock::new());
        let (of_thread, noted) = (cancel.clone(), Arc::clone(&stop));
        let failed = |err: std::io::Error| {
            let context = "failed to watch for signals";
            CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
        };
        let watching = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let mut signals = {
            let _here = watching.enter();
            Signals::listen()
        };
        let watch = move || {
            watching.block_on(async move {
                let stop = signals.next().await;
                noted.get_or_init(|| stop);
                of_thread.cancel();
                tokio::select! {
                    biased;
                    again = signals.next() => exit(Exit::of_stop(again)),
                    () = tokio::time::sleep(GRACE) => exit(Exit::of_stop(stop)),
                }
            });
        };
        let thread = Builder::new().name("signals".to_owned());
        thread.spawn(watch).map_err(failed)?;
        Ok(Self { cancel, stop })
    }

    /// Returns the token that a signal cancels.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the signal that stopped the script.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop.get().copied()
    }
}

#[expect(
    clippy::exit,
    reason = "the script did not end when it was told to, or the user asked twice"
)]
fn exit(exit: Exit) -> ! {
    std::process::exit(i32::from(exit.code()))
}

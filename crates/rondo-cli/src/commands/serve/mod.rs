//! `rondo serve`: runs the hub until it is told to stop; `onboard`: sets it up.

mod channels;
pub(super) mod onboard;

use crate::cli::ServeArgs;
use crate::error::{CliError, Result};
use crate::exit::{Exit, Stop};
use crate::output::Output;
use crate::signals::Signals;
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::{Layer, Notices, Runtime};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Notes go to the log: nobody watches the terminal of a gateway.
struct Logged;

impl Notices for Logged {
    fn note(&self, text: &str) {
        tracing::warn!("{text}");
    }
}

/// Runs the command.
///
/// # Errors
/// When the configuration makes no sense, or the journal cannot be used.
pub(super) fn run(args: &ServeArgs, env: Env, output: &Output) -> Result<Exit> {
    // Of the user alone: a project says nothing of the hub.
    let settings = Settings::load(env.clone(), "/".into(), Layer::default(), output)?;
    let hub_config = HubConfig::of(&settings)?;
    let channels = channels::of(&hub_config, &settings)?;
    if args.check {
        let names: Vec<&str> = channels.iter().map(|it| it.name()).collect();
        output.note(&format!(
            "the configuration is sound; channels: {}",
            names.join(", ")
        ));
        return Ok(Exit::Answer);
    }
    let flags = config::flags(Layer::default(), &settings);
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads())
        .enable_all()
        .build()
        .map_err(|err| CliError::caused(Exit::Error, err))?;
    let runtime = Runtime::new(env, flags, Arc::new(Logged));
    let ended = threads.block_on(async {
        let hub = Hub::open(runtime, &hub_config, channels)?;
        let stop = CancellationToken::new();
        let mut signals = Signals::listen();
        output.note("the hub is open; Ctrl-C stops it");
        let running = hub.run(stop.clone());
        tokio::pin!(running);
        let stopped = tokio::select! {
            ended = &mut running => return ended.map(|()| None),
            stopped = signals.next() => stopped,
        };
        stop.cancel();
        tokio::select! {
            ended = &mut running => ended.map(|()| Some(stopped)),
            // Whoever asks again does not want to wait; nothing is lost.
            _ = signals.next() => Ok(Some(stopped)),
        }
    })?;
    // Turns that stand still before they ask a model go on in the next process.
    threads.shutdown_background();
    Ok(match ended {
        // A service manager asked, and everything is in order.
        Some(Stop::Terminate | Stop::PipeClosed) | None => Exit::Answer,
        Some(Stop::Interrupt) => Exit::Interrupted,
    })
}

/// One thread for each core, and two at the least: one that waits for the disk delays no other.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |it| it.get().max(2))
}

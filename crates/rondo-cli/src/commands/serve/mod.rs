//! `rondo serve`: runs the hub until it is told to stop; `onboard`: sets it up.

mod channels;
mod check;
pub(super) mod onboard;

use crate::cli::ServeArgs;
use crate::error::Result;
use crate::executor;
use crate::exit::{Exit, Stop};
use crate::output::Output;
use crate::signals::Signals;
use rondo_hub::channel::Channel;
use rondo_hub::extending::TurnExtensions;
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::{Extensions, Layer, Notices, Runtime};
use rondo_script::OwnInit;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Notes go to the log: the terminal of a gateway is not watched.
struct LogNotices;

impl Notices for LogNotices {
    fn note(&self, text: &str) {
        tracing::warn!("{text}");
    }
}

/// The owner's `init.lua`, which runs again for each turn.
struct OwnFile(OwnInit);

impl TurnExtensions for OwnFile {
    fn of_turn(&self) -> rondo_runtime::error::Result<Extensions> {
        Ok(self.0.of_turn()?.extensions())
    }
}

/// Reads the owner's `init.lua`. Its commands start in the hub's directory.
fn own_file(
    runtime: &Runtime,
    hub_config: &HubConfig,
    mut settings: Settings,
) -> Result<Option<OwnFile>> {
    settings.directory = hub_config.directory(&settings);
    let own = OwnInit::read(runtime, &settings, Arc::new(LogNotices))?;
    Ok(own.map(OwnFile))
}

/// Opens the hub. Without the owner's file, if there is one, no turn begins.
fn open(
    runtime: Runtime,
    hub_config: &HubConfig,
    channels: Vec<Arc<dyn Channel>>,
    own_file: Option<OwnFile>,
) -> rondo_runtime::error::Result<Hub> {
    let hub = Hub::open(runtime, hub_config, channels)?;
    if let Some(own_file) = own_file {
        hub.extend_turns(Arc::new(own_file));
    }
    Ok(hub)
}

/// Runs the command.
///
/// # Errors
/// When the configuration makes no sense, the owner's `init.lua` fails, or the journal cannot be used.
pub(super) fn run(args: &ServeArgs, env: Env, output: &Output) -> Result<Exit> {
    // Of the user alone: a project says nothing of the hub.
    let settings = Settings::load(env.clone(), "/".into(), Layer::default(), output)?;
    let hub_config = HubConfig::of(&settings)?;
    let channels = channels::of(&hub_config, &settings)?;
    let flags = config::flags(Layer::default(), &settings);
    if args.check {
        let of_turns = Settings::load(env.clone(), "/".into(), flags.clone(), output)?;
        check::check(&hub_config, &channels, &of_turns)?;
    }
    let runtime = Runtime::new(env, flags, Arc::new(LogNotices));
    let own_file = own_file(&runtime, &hub_config, settings)?;
    if args.check {
        let names: Vec<&str> = channels.iter().map(|it| it.name()).collect();
        output.note(&format!(
            "the configuration is valid; channels: {}",
            names.join(", ")
        ));
        return Ok(Exit::Answer);
    }
    let workers = threads();
    rondo_exec::bound_heaps(workers);
    let threads = executor::of_threads(workers)?;
    let ended = threads.block_on(async {
        let hub = open(runtime, &hub_config, channels, own_file)?;
        let stop = CancellationToken::new();
        let mut signals = Signals::listen();
        output.note("the hub is running; Ctrl-C stops it");
        let running = hub.run(stop.clone());
        tokio::pin!(running);
        let stopped = tokio::select! {
            ended = &mut running => return ended.map(|()| None),
            stopped = signals.next() => stopped,
        };
        stop.cancel();
        tokio::select! {
            ended = &mut running => ended.map(|()| Some(stopped)),
            // A second request means that the user does not want to wait; nothing is lost.
            _ = signals.next() => Ok(Some(stopped)),
        }
    })?;
    // Turns that stand still before they ask a model continue in the next process.
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

//! The process that is killed: a hub.

use crate::messenger::WireChannel;
use rondo_hub::channel::Delivery;
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::env::Env;
use rondo_runtime::{Layer, NoNotices, Runtime};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Says that this process is one.
pub(crate) const ARGUMENT: &str = "--be-the-hub";

/// Starts one.
pub(crate) fn start(
    home: &Path,
    messenger: &str,
    model: &str,
    delivery: Delivery,
    people: usize,
) -> Child {
    let delivery = serde_json::to_string(&delivery).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args([
            ARGUMENT,
            home.to_str().unwrap(),
            messenger,
            model,
            &delivery,
            &people.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Is one, until it is killed or told to end.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [home, messenger, model, delivery, people] = args else {
        return ExitCode::FAILURE;
    };
    let env = Env::of(&[
        ("RONDO_HOME", home),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", model),
    ]);
    let people: usize = people.parse().unwrap();
    let users = (0..people).map(|n| format!("[users.p{n}]\nrole = 'owner'\nids = ['wire:p{n}']\n"));
    let hub_config: HubConfig = toml::from_str(&users.collect::<String>()).unwrap();
    let channel = WireChannel {
        messenger: messenger.parse().unwrap(),
        delivery: serde_json::from_str(delivery).unwrap(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let plain = Runtime::new(env.clone(), Layer::default(), Arc::new(NoNotices));
        let flags = config::flags(Layer::default(), &plain.settings("/".into()).unwrap());
        let settings = Runtime::new(env, flags, Arc::new(NoNotices));
        let hub = Hub::open(settings, &hub_config, vec![Arc::new(channel)]).unwrap();
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::spawn(async move {
            let mut term =
                tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
            term.recv().await;
            stopping.cancel();
        });
        hub.run(stop).await.unwrap();
    });
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

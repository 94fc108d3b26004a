//! The process that is killed: a hub.

use crate::messenger::WireChannel;
use rondo_hub::channel::Delivery;
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::env::Env;
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_testkit::power::PowerLoss;
use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Argument that makes this process the hub.
pub(crate) const ARGUMENT: &str = "--be-the-hub";
/// Stands for a disk that keeps power.
const NO_LOSS: &str = "-";

/// Setup of a victim.
pub(crate) struct Order {
    pub(crate) home: String,
    pub(crate) messenger: SocketAddr,
    pub(crate) model: String,
    pub(crate) delivery: Delivery,
    pub(crate) people: usize,
    pub(crate) loss: Option<PowerLoss>,
}

impl Order {
    fn args(&self) -> [String; 6] {
        [
            self.home.clone(),
            self.messenger.to_string(),
            self.model.clone(),
            serde_json::to_string(&self.delivery).unwrap(),
            self.people.to_string(),
            self.loss.map_or(NO_LOSS.to_owned(), |it| it.word()),
        ]
    }

    fn of(args: &[String]) -> Option<Self> {
        let [home, messenger, model, delivery, people, loss] = args else {
            return None;
        };
        Some(Self {
            home: home.clone(),
            messenger: messenger.parse().ok()?,
            model: model.clone(),
            delivery: serde_json::from_str(delivery).ok()?,
            people: people.parse().ok()?,
            loss: loss.parse().ok(),
        })
    }
}

/// Starts one.
pub(crate) fn start(order: &Order) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg(ARGUMENT)
        .args(order.args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Is one, until it is killed or told to end.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let Some(order) = Order::of(args) else {
        return ExitCode::FAILURE;
    };
    if let Some(loss) = order.loss {
        loss.install();
    }
    // As `rondo serve` does.
    rondo_exec::bound_heaps(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let ended = runtime.block_on(serve(&order));
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn serve(order: &Order) -> rondo_runtime::error::Result<()> {
    let env = Env::of(&[
        ("RONDO_HOME", &order.home),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &order.model),
    ]);
    let users =
        (0..order.people).map(|n| format!("[users.p{n}]\nrole = 'owner'\nids = ['wire:p{n}']\n"));
    let hub_config: HubConfig = toml::from_str(&users.collect::<String>()).unwrap();
    let channel = WireChannel {
        messenger: order.messenger,
        delivery: order.delivery,
    };
    let mut flags = Layer::default();
    if order.delivery == Delivery::Edit {
        // Only what is streamed is shown while it is written.
        let streaming = toml::Table::from_iter([("streaming".to_owned(), true.into())]);
        flags.profiles.insert("hub".to_owned(), streaming);
    }
    let plain = Runtime::new(env.clone(), flags.clone(), Arc::new(NoNotices));
    let flags = config::flags(flags, &plain.settings("/".into())?);
    let settings = Runtime::new(env, flags, Arc::new(NoNotices));
    let hub = Hub::open(settings, &hub_config, vec![Arc::new(channel)])?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        let mut term =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        term.recv().await;
        stopping.cancel();
    });
    hub.run(stop).await
}

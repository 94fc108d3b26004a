//! State that outlives a hub: its files, its messenger and its model.

use crate::messenger::{Event, Messenger};
use crate::victim::{self, Order};
use rondo_core::ports::Outbox as _;
use rondo_hub::channel::{Delivery, OutboxKind};
use rondo_journal::{Options, Store};
use rondo_testkit::power::PowerLoss;
use rondo_testkit::{Script, Server};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

/// How long a hub that was told to stop may take.
const STOP_MAX: Duration = Duration::from_secs(30);
/// How long to wait until nothing is left to send, once everything was answered.
const IDLE_MAX: Duration = Duration::from_secs(20);

pub(crate) struct World {
    home: TempDir,
    pub(crate) messenger: Messenger,
    pub(crate) model: Server,
    pub(crate) delivery: Delivery,
    people: usize,
}

impl World {
    pub(crate) async fn new(script: Script, delivery: Delivery, people: usize) -> Self {
        Self::at(tempfile::tempdir().unwrap(), script, delivery, people).await
    }

    pub(crate) async fn at(
        home: TempDir,
        script: Script,
        delivery: Delivery,
        people: usize,
    ) -> Self {
        Self {
            home,
            messenger: Messenger::start().await,
            model: Server::start(script).await,
            delivery,
            people,
        }
    }

    /// Writes the configuration of the hubs that are started from now on.
    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.home.path().join("config.toml"), config).unwrap();
    }

    /// Starts a hub, whose disk may lose power with it.
    pub(crate) fn start(&self, loss: Option<PowerLoss>) -> Child {
        victim::start(&Order {
            home: self.home.path().to_str().unwrap().to_owned(),
            messenger: self.messenger.address(),
            model: self.model.url("/v1"),
            delivery: self.delivery,
            people: self.people,
            loss,
        })
    }

    /// Returns the journal, which no hub on a disk that loses power may have open meanwhile.
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.home.path().join("data/sessions"), Options::default()).unwrap()
    }

    /// Waits until nothing is left to send, and returns how often something was sent again in doubt.
    pub(crate) async fn doubts_once_idle(&self) -> u64 {
        let store = self.store();
        let mut changed = store.outbox_changed();
        let idle = async {
            while store.counts().await.unwrap().open > 0 {
                // What another process changes is not told.
                let _ = timeout(Duration::from_millis(50), changed.changed()).await;
            }
        };
        let _ = timeout(IDLE_MAX, idle).await;
        store.counts().await.unwrap().doubts
    }

    /// Keeps the files for inspection.
    pub(crate) fn keep(self) -> PathBuf {
        self.home.keep()
    }
}

/// Tells a hub to stop; returns whether it did.
pub(crate) async fn stop(hub: &mut Child) -> bool {
    let pid = hub.id().and_then(|it| i32::try_from(it).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    // One that is gone already needs no telling.
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    timeout(STOP_MAX, hub.wait()).await.is_ok()
}

pub(crate) fn event(person: &str, number: usize, text: &str) -> Event {
    Event {
        id: format!("n{number}"),
        chat: person.to_owned(),
        group: false,
        sender: person.to_owned(),
        mentioned: true,
        text: text.to_owned(),
        pressed: None,
    }
}

/// Presses what is asked, as a person would: each question once.
pub(crate) async fn press(messenger: Messenger) {
    let mut pressed = BTreeSet::new();
    loop {
        for sent in messenger.all_seen() {
            if sent.kind == OutboxKind::Question && pressed.insert(sent.key.clone()) {
                messenger.press(&sent.chat, &sent.chat, &sent.choices[0]);
            }
        }
        sleep(Duration::from_millis(10)).await;
    }
}

//! A bot, its server, and a hub that keeps what it is handed.

use async_trait::async_trait;
use rondo_http::{Network, Transport};
use rondo_hub::channel::{
    Channel as _, ChannelError, ChatKey, Choice, Inbound, OutboxKind, Outgoing,
};
use rondo_hub::inbox::{Inbox, InboxError, InboxResult, Receiver};
use rondo_telegram::{Api, BotToken, Telegram, TelegramSettings};
use rondo_testkit::telegram::BotServer;
use rondo_types::AnswerValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "4200000001:AAfakefakefakefakefakefakefakefake0";
pub(crate) const QUESTION: &str = "abcdefghijklmnopqrstuv";

pub(crate) fn api(url: &str) -> Api {
    let transport = Transport::new(Network::default()).expect("the network is usual");
    Api::new(
        transport,
        url,
        BotToken::parse(TOKEN).expect("it has the shape of one"),
    )
}

pub(crate) async fn bot() -> (BotServer, Api) {
    let server = BotServer::start(TOKEN).await;
    let api = api(&server.url());
    (server, api)
}

pub(crate) fn telegram(api: &Api) -> Arc<Telegram> {
    telegram_with(api, TelegramSettings::default())
}

pub(crate) fn telegram_with(api: &Api, settings: TelegramSettings) -> Arc<Telegram> {
    Arc::new(Telegram::new(api.clone(), settings))
}

pub(crate) fn message(chat_id: &str, text: &str) -> Outgoing {
    Outgoing {
        key: format!("k-{chat_id}"),
        chat: ChatKey {
            channel: "telegram".to_owned(),
            account: String::new(),
            chat_id: chat_id.to_owned(),
            topic: None,
        },
        kind: OutboxKind::Final,
        text: text.to_owned(),
        files: Vec::new(),
        choices: Vec::new(),
        reply_to: None,
        placeholder: None,
        attempts: 0,
    }
}

pub(crate) fn question(chat_id: &str) -> Outgoing {
    let deny = AnswerValue::Deny {
        reason: "no".to_owned(),
    };
    let choices = [("Allow", AnswerValue::Approve), ("Deny", deny)];
    let choices = choices.map(|(label, value)| Choice {
        label: label.to_owned(),
        token: QUESTION.to_owned(),
        value,
    });
    Outgoing {
        kind: OutboxKind::Question,
        choices: choices.to_vec(),
        ..message(chat_id, "May it?")
    }
}

/// Keeps what it is handed, once.
#[derive(Clone)]
pub(crate) struct Hub(Arc<State>);

struct State {
    events: watch::Sender<Vec<Inbound>>,
    refusals: Mutex<HashMap<String, Vec<InboxError>>>,
    admitted: Mutex<Option<Vec<String>>>,
    decision: Mutex<InboxResult>,
    /// States that the channel reported.
    told: watch::Sender<Vec<String>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self(Arc::new(State {
            events: watch::Sender::new(Vec::new()),
            refusals: Mutex::default(),
            admitted: Mutex::default(),
            decision: Mutex::new(InboxResult::Accepted),
            told: watch::Sender::new(Vec::new()),
        }))
    }
}

pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ChannelError>>,
}

impl Running {
    pub(crate) async fn stopped(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("it ends well");
    }
}

impl Hub {
    pub(crate) fn receiving(telegram: Arc<Telegram>) -> (Self, Running) {
        let hub = Self::default();
        let stop = CancellationToken::new();
        let (inbox, stopped) = (hub.inbox(), stop.clone());
        let task = tokio::spawn(async move { telegram.receive(inbox, stopped).await });
        (hub, Running { stop, task })
    }

    pub(crate) fn inbox(&self) -> Inbox {
        Inbox::new(Arc::new(self.clone()))
    }

    pub(crate) async fn events(&self, count: usize) -> Vec<Inbound> {
        let mut events = self.0.events.subscribe();
        let events = events.wait_for(|it| it.len() >= count).await;
        events.expect("the sender is kept").clone()
    }

    /// States that the channel reported, once there are so many.
    pub(crate) async fn told(&self, count: usize) -> Vec<String> {
        let mut told = self.0.told.subscribe();
        let told = told.wait_for(|it| it.len() >= count).await;
        told.expect("the sender is kept").clone()
    }

    pub(crate) fn refuse(&self, chat_id: &str, errors: Vec<InboxError>) {
        let mut refusals = self.0.refusals.lock().expect("no panic");
        refusals.insert(chat_id.to_owned(), errors);
    }

    pub(crate) fn admit_only(&self, senders: &[&str]) {
        let senders = senders.iter().map(|it| (*it).to_owned()).collect();
        *self.0.admitted.lock().expect("no panic") = Some(senders);
    }

    pub(crate) fn decide(&self, taken: InboxResult) {
        *self.0.decision.lock().expect("no panic") = taken;
    }
}

#[async_trait]
impl Receiver for Hub {
    async fn admits(&self, event: &Inbound) -> bool {
        let admitted = self.0.admitted.lock().expect("no panic");
        admitted
            .as_ref()
            .is_none_or(|it| it.contains(&event.sender.id))
    }

    async fn take(&self, event: Inbound) -> Result<InboxResult, InboxError> {
        let mut refusals = self.0.refusals.lock().expect("no panic");
        if let Some(error) = refusals.get_mut(&event.chat.chat_id).and_then(Vec::pop) {
            return Err(error);
        }
        let decision = *self.0.decision.lock().expect("no panic");
        let is_known = |it: &Inbound| it.event_id == event.event_id;
        if self.0.events.borrow().iter().any(is_known) {
            return Ok(InboxResult::Duplicate);
        }
        if decision == InboxResult::Accepted {
            self.0.events.send_modify(|events| events.push(event));
        }
        Ok(decision)
    }

    fn receives(&self, _: &str) {
        self.0.told.send_modify(|it| it.push("receives".to_owned()));
    }

    fn receives_nothing(&self, _: &str, reason: &str) {
        self.0.told.send_modify(|it| it.push(reason.to_owned()));
    }
}

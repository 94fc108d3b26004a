//! The channel itself: its endpoints, each of which is a chat.

use crate::{Signer, listener, outbound};
use async_trait::async_trait;
use rondo_http::Transport;
use rondo_hub::channel::{
    Abilities, Channel, ChannelError, ChatKey, Delivery, Outgoing, Receipt, SendError,
};
use rondo_hub::inbox::Inbox;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The channel's name.
pub const NAME: &str = "webhook";

/// The channel. Clones are the same channel.
#[derive(Debug, Clone)]
pub struct Webhook(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) listen: SocketAddr,
    pub(crate) endpoints: BTreeMap<String, Endpoint>,
    pub(crate) transport: Transport,
    /// Address of the listener, once it is known.
    pub(crate) address: watch::Sender<Option<SocketAddr>>,
}

/// A program that sends messages, and gets the replies.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Checks its requests, and signs those to it.
    pub signer: Signer,
    /// Address for its replies.
    pub reply_url: String,
}

impl Webhook {
    /// Builds the channel. The name of an endpoint is that of its chat, and of its sender.
    #[must_use]
    pub fn new(
        listen: SocketAddr,
        endpoints: BTreeMap<String, Endpoint>,
        transport: Transport,
    ) -> Self {
        Self(Arc::new(Inner {
            listen,
            endpoints,
            transport,
            address: watch::Sender::default(),
        }))
    }

    /// Waits until it listens, and returns where.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn address(&self) -> Option<SocketAddr> {
        let mut address = self.0.address.subscribe();
        let bound = address.wait_for(Option::is_some).await;
        bound.ok().and_then(|it| *it)
    }
}

pub(crate) fn chat(endpoint: &str, topic: Option<String>) -> ChatKey {
    ChatKey {
        channel: NAME.to_owned(),
        account: String::new(),
        chat_id: endpoint.to_owned(),
        topic,
    }
}

#[async_trait]
impl Channel for Webhook {
    fn name(&self) -> &str {
        NAME
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            delivery: Delivery::Key,
            drafts: false,
            typing: false,
            buttons: true,
        }
    }

    async fn receive(&self, inbox: Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        listener::run(&self.0, inbox, stop).await
    }

    async fn tell_unnoted(&self, _: &ChatKey, _: String) {
        // The answer to a request says that it was not taken.
    }

    async fn send(&self, message: &Outgoing) -> Result<Receipt, SendError> {
        outbound::send(&self.0, message).await
    }
}

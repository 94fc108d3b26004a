//! The channel `api`: chats over HTTP, for programs and for `rondo chat`.
//!
//! # Layout
//! - [`Api`]: the channel. `listener` serves its connections, `places` bounds what each key takes, `guard` refuses what is not addressed to this hub or comes from
//!   a stranger's page, `limiter` bounds how often keys are tried.
//! - `routes`: the table of all routes, each a `route`; `openapi` describes them. `call`: a request and who sent it.
//! - `chats`, `events`, `files`, `inbound`, `service`: the work of the routes.
//! - `messages`: messages delivered to the chats, as rows in the journal's file; `submissions`: names that callers used
//!   there.
//! - `revoked`: ends streams of revoked keys.

mod call;
mod chats;
mod error;
mod events;
mod files;
mod guard;
mod inbound;
mod limiter;
mod listener;
mod messages;
mod metrics;
mod openapi;
mod places;
mod revoked;
mod route;
mod routes;
mod service;
mod submissions;

pub use messages::{
    GivenAnswer, Message as ChatMessage, MessageChoice as ChatMessageChoice,
    MessageKind as ChatMessageKind,
};

use crate::channel::{
    Abilities, Channel, ChannelError, ChatKey, Delivery, Outgoing, OutgoingFile, Receipt, SendError,
};
use crate::hub::{Core, Hub};
use crate::inbox::Inbox;
use crate::keys::{KeyHash, Keys};
use crate::users::Role;
use async_trait::async_trait;
use error::ApiError;
use guard::Hosts;
use limiter::Limiter;
use listener::{Limits, Server};
use messages::Messages;
use metrics::Figures;
use revoked::OpenKeys;
use rondo_core::clock::Clock;
use rondo_core::ports::MailboxError;
use rondo_runtime::service::SessionHandle;
use serde::Deserialize;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use submissions::Submissions;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The channel's name.
pub const NAME: &str = "api";
/// The port that the API listens at if nothing else is configured, of loopback alone.
pub const PORT: u16 = 7456;

/// How the API listens: the table `[hub.channels.api]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiOptions {
    /// Enables the API.
    pub enabled: bool,
    /// The address that it listens at. Anything but loopback takes a user with a key.
    pub listen: SocketAddr,
    /// The names, with their ports unless those are the scheme's own, that requests may be addressed to beside that
    /// address: those of a proxy in front.
    pub hosts: Vec<String>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: SocketAddr::from(([127, 0, 0, 1], PORT)),
            hosts: Vec::new(),
        }
    }
}

/// The channel over HTTP. Clones are the same channel.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    options: ApiOptions,
    parts: OnceLock<Parts>,
    /// Address of the listener, once it is known.
    address: watch::Sender<Option<SocketAddr>>,
}

/// Parts of a running channel.
struct Parts {
    /// The hub has its channels, so they do not have it.
    core: Weak<Core>,
    known: Keys,
    messages: Messages,
    submissions: Submissions,
    keys: OpenKeys,
    limiter: Limiter,
    figures: Arc<Figures>,
}

/// State that the routes share.
struct Shared {
    api: Arc<Inner>,
    inbox: Inbox,
    /// Fires when the hub stops.
    stop: CancellationToken,
}

impl Inner {
    fn parts(&self) -> Result<&Parts, ChannelError> {
        self.parts.get().ok_or_else(|| ChannelError::Setup {
            message: "the API is not attached to a hub".to_owned(),
        })
    }
}

impl Parts {
    /// Returns the user that a key belongs to, and what they may do now.
    async fn user(&self, key: &KeyHash) -> Result<Option<(String, Role)>, MailboxError> {
        let Some(name) = self.known.user(key).await? else {
            return Ok(None);
        };
        let Some(core) = self.core.upgrade() else {
            return Ok(None);
        };
        let user = core.users.user(&name).await?;
        Ok(user.map(|it| (name, it.role)))
    }
}

impl Shared {
    fn parts(&self) -> Result<&Parts, ApiError> {
        let parts = self.api.parts.get();
        parts.ok_or_else(|| ApiError::later("the hub is starting"))
    }

    fn core(&self) -> Result<Arc<Core>, ApiError> {
        let core = self.parts()?.core.upgrade();
        core.ok_or_else(|| ApiError::later("the hub is stopping"))
    }

    /// Returns the session that a chat talks to now.
    async fn session(&self, chat: &ChatKey) -> Result<SessionHandle, ApiError> {
        let core = self.core()?;
        let known = core.chats.find(chat).await;
        let known = known.map_err(|error| ApiError::internal(&error))?;
        let id = known.map_or_else(|| chat.session(0), |it| it.session());
        Ok(core.session(&id))
    }
}

impl Api {
    /// Returns the channel. It serves once its hub runs.
    #[must_use]
    pub fn new(options: ApiOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            parts: OnceLock::new(),
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

    async fn serve(
        &self,
        listener: TcpListener,
        inbox: Inbox,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        let parts = self.0.parts()?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        inbox.receives(NAME);
        let shared = Shared {
            api: Arc::clone(&self.0),
            inbox,
            stop: stop.clone(),
        };
        let server = Server {
            router: routes::router(Arc::new(shared)),
            hosts: Hosts::new(address, &self.0.options.hosts),
            limits: Limits::default(),
            figures: Arc::clone(&parts.figures),
        };
        tracing::info!(%address, "the API listens");
        self.0.address.send_replace(Some(address));
        tokio::select! {
            () = listener::serve(Arc::new(server), listener, stop) => {}
            () = parts.keys.watch(parts) => {}
        }
        Ok(())
    }

    /// Refuses to listen if others reach it before anyone has a key, so that an address is not opened by mistake.
    async fn check_exposure(&self) -> Result<(), ChannelError> {
        let listen = self.0.options.listen;
        if guard::is_local(listen.ip()) {
            return Ok(());
        }
        let keys = self.0.parts()?.known.list().await;
        match keys.map_err(|error| failed(&error))?.is_empty() {
            false => Ok(()),
            // It is tried again, so that a key may be added while the hub runs.
            true => Err(ChannelError::Failed {
                message: format!(
                    "the API would listen at {listen}, which others can reach, and no user has a key: `rondo users add NAME` creates one"
                ),
            }),
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> ChannelError {
    ChannelError::Failed {
        message: format!("the API failed: {error}"),
    }
}

#[async_trait]
impl Channel for Api {
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

    fn opened(&self, hub: &Hub) {
        let core = hub.core();
        let parts = Parts {
            core: Arc::downgrade(core),
            known: Keys::new(Arc::clone(&core.store)),
            messages: Messages::new(Arc::clone(&core.store)),
            submissions: Submissions::new(Arc::clone(&core.store)),
            keys: OpenKeys::default(),
            limiter: Limiter::default(),
            figures: Arc::default(),
        };
        // The first hub is the one that it is a channel of.
        let _: Result<(), Parts> = self.0.parts.set(parts);
    }

    async fn receive(&self, inbox: Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        self.check_exposure().await?;
        let listen = self.0.options.listen;
        let bound = TcpListener::bind(listen).await;
        let listener = bound.map_err(|error| ChannelError::not_bound("the API", listen, &error))?;
        self.serve(listener, inbox, stop).await
    }

    async fn shown_files(&self) -> Result<Vec<OutgoingFile>, ChannelError> {
        let files = self.0.parts()?.messages.all_files().await;
        files.map_err(|error| failed(&error))
    }

    async fn tell_unnoted(&self, _: &ChatKey, _: String) {
        // The answer to a request says that it was not taken.
    }

    async fn send(&self, message: &Outgoing) -> Result<Receipt, SendError> {
        let later = |reason: String| SendError::Retry {
            after: None,
            reason,
        };
        let parts = self.0.parts().map_err(|error| later(error.to_string()))?;
        let added = parts.messages.add(message, Clock::system().now()).await;
        let number = added.map_err(|error| later(error.to_string()))?;
        Ok(Receipt(
            number.map_or_else(String::new, |it| it.to_string()),
        ))
    }
}

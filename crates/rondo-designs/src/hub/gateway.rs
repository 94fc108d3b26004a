//! Takes messages as they come in, and answers them side by side.

use super::agent_loop::AgentLoop;
use super::types::{InboundMessage, OUTBOUND_CHARS_MAX};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// How many messages of one chat may wait for the one that is being answered.
pub const CHAT_MESSAGES_MAX: usize = 20;
/// How long turns may continue after a shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(10);

const TOO_MANY: &str =
    "Sorry, too many of your messages are waiting. Please send this one again later.";
const SHUTTING_DOWN: &str = "Sorry, I am shutting down. Please send this again later.";

/// The chats that something is done for.
#[derive(Default)]
struct Chats {
    /// Waiting messages of each chat that is being answered.
    waiting: HashMap<String, VecDeque<InboundMessage>>,
    /// Each returns the session that it worked for.
    tasks: JoinSet<String>,
}

impl AgentLoop {
    /// Answers messages until a shutdown is asked for.
    ///
    /// Chats are answered at the same time, the messages of one chat in their order. Every message is answered: by the
    /// model, or by what went wrong. Messages of white space alone are ignored. After the shutdown no further message is
    /// taken; turns under way get ten seconds, are then stopped, and their sessions are kept either way.
    ///
    /// # Cancel safety
    /// Dropping the future ends all turns at once. Use the token.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let stop = CancellationToken::new();
        let mut chats = Chats::default();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(ended) = chats.tasks.join_next() => self.go_on(&mut chats, ended, &stop),
                message = self.chat_hub().next_inbound() => match message {
                    Some(message) => self.take(&mut chats, message, &stop).await,
                    None => break,
                },
            }
        }
        self.drain(chats, &stop).await;
    }

    async fn take(&self, chats: &mut Chats, message: InboundMessage, stop: &CancellationToken) {
        if message.content.trim().is_empty() {
            return;
        }
        let session_id = message.session_id();
        match chats.waiting.get_mut(&session_id) {
            None => {
                chats.waiting.insert(session_id.clone(), VecDeque::new());
                self.start(chats, session_id, message, stop);
            }
            Some(waiting) if waiting.len() < CHAT_MESSAGES_MAX => waiting.push_back(message),
            Some(_) => self.chat_hub().send(message.reply(TOO_MANY)).await,
        }
    }

    fn start(
        &self,
        chats: &mut Chats,
        session_id: String,
        message: InboundMessage,
        stop: &CancellationToken,
    ) {
        let (agent, stop) = (self.clone(), stop.clone());
        chats.tasks.spawn(async move {
            agent.answer(&message, &stop).await;
            session_id
        });
    }

    async fn answer(&self, message: &InboundMessage, stop: &CancellationToken) {
        let reply = match self.process(message, stop).await {
            Ok(reply) => reply,
            Err(error) => {
                let is_recoverable = error.is_recoverable();
                tracing::warn!(chat_id = message.chat_id, %error, is_recoverable, "no answer");
                message.reply(error.reply())
            }
        };
        for piece in reply.split(OUTBOUND_CHARS_MAX) {
            self.chat_hub().send(piece).await;
        }
    }

    /// Begins with the next message of a chat, or forgets that it is busy.
    fn go_on(&self, chats: &mut Chats, ended: Result<String, JoinError>, stop: &CancellationToken) {
        let session_id = match ended {
            Ok(session_id) => session_id,
            // The loop turns panics of tools into results, so this is a defect; no chat may wait forever for it.
            Err(error) => {
                tracing::error!(%error, "a chat's task panicked");
                chats.waiting.retain(|_, waiting| !waiting.is_empty());
                return;
            }
        };
        let next = chats.waiting.get_mut(&session_id);
        match next.and_then(VecDeque::pop_front) {
            Some(message) => self.start(chats, session_id, message, stop),
            None => drop(chats.waiting.remove(&session_id)),
        }
    }

    async fn drain(&self, mut chats: Chats, stop: &CancellationToken) {
        let waiting = std::mem::take(&mut chats.waiting);
        for message in waiting.into_values().flatten() {
            self.chat_hub().send(message.reply(SHUTTING_DOWN)).await;
        }
        let all = async { while chats.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, all).await.is_err() {
            stop.cancel();
            while chats.tasks.join_next().await.is_some() {}
        }
    }
}

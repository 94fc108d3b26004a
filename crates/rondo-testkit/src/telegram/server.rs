//! The scripted Bot API server.

use super::faults::{Fault, refused};
use super::form::Form;
use super::seen::{Draft, SeenMessage};
use super::state::State;
use super::updates::{self, Place};
use super::{methods, spec};
use crate::{Recorded, Response, Script, Server};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A Bot API server on loopback, with one bot.
#[derive(Debug)]
pub struct BotServer {
    server: Server,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    token: String,
    state: Mutex<State>,
    /// Counts requests, so that tests wait for what they cause.
    handled: watch::Sender<usize>,
}

impl BotServer {
    /// Starts a server that knows one bot, by its token.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn start(token: &str) -> Self {
        let shared = Arc::new(Shared {
            token: token.to_owned(),
            state: Mutex::new(State::new()),
            handled: watch::Sender::new(0),
        });
        let answering = Arc::clone(&shared);
        let script = Script::answering(move |request| answering.answer(request));
        Self {
            server: Server::start(script).await,
            shared,
        }
    }

    /// Returns the address that stands in for `https://api.telegram.org`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url("")
    }

    /// Returns all requests, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.requests()
    }

    /// Sends a text of a person to the bot and returns the update's id.
    pub fn say(&self, place: Place, from: i64, text: &str) -> i64 {
        let entities = updates::entities(text);
        self.write(place, from, &json!({ "text": text, "entities": entities }))
    }

    /// Sends a message of a person with these fields to the bot and returns the update's id.
    pub fn write(&self, place: Place, from: i64, content: &Value) -> i64 {
        let mut state = self.shared.state();
        let id = state.take_message_id();
        let mut message = updates::message(place, &updates::person(from), id);
        for (name, value) in content.as_object().into_iter().flatten() {
            message[name] = value.clone();
        }
        state.push("message", message)
    }

    /// Sends an update of any kind to the bot and returns its id.
    pub fn push(&self, kind: &str, content: Value) -> i64 {
        self.shared.state().push(kind, content)
    }

    /// Delivers an update once more, as after a confirmation that was lost, or late, or out of order.
    pub fn push_again(&self, update: Value) {
        let mut state = self.shared.state();
        let id = update["update_id"].as_i64().unwrap_or_default();
        state.waiting.insert(id, update);
        state.wake();
    }

    /// Presses a button below a message of the bot and returns the update's id.
    ///
    /// # Panics
    /// When there is no such button, which fails the test.
    pub fn press(&self, message: &SeenMessage, from: i64, label: &str) -> i64 {
        let button = message.buttons.iter().find(|(text, _)| text == label);
        let (_, data) = button.expect("there is such a button");
        let mut state = self.shared.state();
        let shown = state.sent(message);
        let id = format!("press-{}", state.next_update);
        let query = json!({
            "id": id,
            "from": updates::person(from),
            "message": shown,
            "chat_instance": "1",
            "data": data,
        });
        state.push("callback_query", query)
    }

    /// Puts a file where the bot can get it, under an id.
    pub fn add_file(&self, id: &str, bytes: impl Into<Bytes>) {
        self.shared
            .state()
            .files
            .insert(id.to_owned(), bytes.into());
    }

    /// Adds a fault for the next request of a method; several faults meet as many requests.
    pub fn fail(&self, method: &str, fault: Fault) {
        let mut state = self.shared.state();
        state
            .faults
            .entry(method.to_owned())
            .or_default()
            .push_back(fault);
    }

    /// Sets a fault for all requests about a chat; `None` ends that.
    pub fn fail_chat(&self, chat_id: i64, fault: Option<Fault>) {
        let mut state = self.shared.state();
        match fault {
            Some(fault) => state.chat_faults.insert(chat_id, fault),
            None => state.chat_faults.remove(&chat_id),
        };
    }

    /// Deletes a topic.
    pub fn lose_thread(&self, thread_id: i64) {
        self.shared.state().lost_threads.push(thread_id);
    }

    /// Sets a field of what `getMe` says of the bot.
    pub fn set_me(&self, field: &str, value: Value) {
        self.shared.state().me[field] = value;
    }

    /// Sets a webhook, which keeps updates from being polled.
    pub fn set_webhook(&self, url: &str) {
        self.shared.state().webhook = Some(url.to_owned());
    }

    /// Returns the messages of the bot that a person sees in a chat, in the order in which they came.
    #[must_use]
    pub fn seen(&self, chat_id: i64) -> Vec<SeenMessage> {
        let state = self.shared.state();
        let seen = state.seen.iter().filter(|it| it.chat_id == chat_id);
        seen.cloned().collect()
    }

    /// Returns the messages of the bot in all chats, in the order in which they came.
    #[must_use]
    pub fn all_seen(&self) -> Vec<SeenMessage> {
        self.shared.state().seen.clone()
    }

    /// Returns the texts of [`BotServer::seen`].
    #[must_use]
    pub fn texts(&self, chat_id: i64) -> Vec<String> {
        self.seen(chat_id).into_iter().map(|it| it.text).collect()
    }

    /// Returns the drafts that were shown.
    #[must_use]
    pub fn drafts(&self) -> Vec<Draft> {
        self.shared.state().drafts.clone()
    }

    /// Returns the bot's actions that were shown, as chat and action.
    #[must_use]
    pub fn actions(&self) -> Vec<(i64, String)> {
        self.shared.state().actions.clone()
    }

    /// Returns the answers to pressed buttons, as the query's id and what was shown.
    #[must_use]
    pub fn pressed(&self) -> Vec<(String, Option<String>)> {
        self.shared.state().pressed.clone()
    }

    /// Returns the commands that clients list for the bot.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        self.shared.state().commands.clone()
    }

    /// Returns how many updates have not been confirmed.
    #[must_use]
    pub fn unconfirmed(&self) -> usize {
        self.shared.state().waiting.len()
    }

    /// Returns the requests that broke the API's description, of which there should be none.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.shared.state().violations.clone()
    }

    /// Waits until a condition holds; it is looked at after each request.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut handled = self.shared.handled.subscribe();
        while !holds(self) {
            let _ = handled.changed().await;
        }
    }

    /// Waits until a person sees this many messages of the bot in a chat, and returns them.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn shown(&self, chat_id: i64, count: usize) -> Vec<SeenMessage> {
        self.until(|it| it.seen(chat_id).len() >= count).await;
        self.seen(chat_id)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Recorded) -> Response {
        let response = self.respond(request);
        self.handled.send_modify(|count| *count += 1);
        response
    }

    fn respond(&self, request: &Recorded) -> Response {
        if let Some(path) = request
            .path
            .strip_prefix(&format!("/file/bot{}/", self.token))
        {
            return self.file(path);
        }
        let Some(method) = request.path.strip_prefix(&format!("/bot{}/", self.token)) else {
            return refused(401, "Unauthorized", &Value::Null);
        };
        let form = match Form::read(request) {
            Ok(form) => form,
            Err(reason) => return self.violated(vec![reason]),
        };
        let violations = spec::violations(method, &form);
        if !violations.is_empty() {
            return self.violated(violations);
        }
        let mut state = self.state();
        match state.fault(method, form.number("chat_id")) {
            None => methods::run(&mut state, method, &form),
            Some(fault) => {
                if fault.lands() {
                    drop(methods::run(&mut state, method, &form));
                }
                fault.response()
            }
        }
    }

    fn violated(&self, violations: Vec<String>) -> Response {
        let response = refused(
            400,
            &format!("Bad Request: {}", violations.join("; ")),
            &Value::Null,
        );
        self.state().violations.extend(violations);
        response
    }

    fn file(&self, path: &str) -> Response {
        let mut state = self.state();
        if let Some(fault) = state.fault("file", None) {
            return fault.response();
        }
        let id = path.strip_prefix("documents/").unwrap_or_default();
        match state.files.get(id) {
            Some(bytes) => Response::new(200)
                .header("content-type", "application/octet-stream")
                .framing(crate::Framing::Length)
                .send(bytes.clone()),
            None => refused(404, "Not Found", &Value::Null),
        }
    }
}

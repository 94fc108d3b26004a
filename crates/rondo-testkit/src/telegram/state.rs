//! State of the server: waiting updates, chats, faults, and violations of the rules.

use super::faults::{Fault, refused};
use super::seen::{Draft, SeenMessage};
use super::updates::{Place, bot};
use crate::{Gate, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Everything that the server knows. Chats keep all messages: tests are short.
#[derive(Debug)]
pub(super) struct State {
    pub(super) me: Value,
    pub(super) webhook: Option<String>,
    pub(super) next_update: i64,
    pub(super) next_message: i64,
    pub(super) waiting: BTreeMap<i64, Value>,
    /// The highest offset that was asked for.
    pub(super) confirmed: i64,
    /// Opened when something is there for the poll that waits.
    pub(super) poll: Option<Gate>,
    pub(super) seen: Vec<SeenMessage>,
    pub(super) drafts: Vec<Draft>,
    pub(super) actions: Vec<(i64, String)>,
    pub(super) pressed: Vec<(String, Option<String>)>,
    pub(super) commands: Vec<String>,
    pub(super) files: HashMap<String, Bytes>,
    pub(super) faults: HashMap<String, VecDeque<Fault>>,
    pub(super) chat_faults: HashMap<i64, Fault>,
    /// The topics that were deleted.
    pub(super) lost_threads: Vec<i64>,
    pub(super) violations: Vec<String>,
}

impl State {
    pub(super) fn new() -> Self {
        let mut me = bot();
        me["can_join_groups"] = json!(true);
        me["can_read_all_group_messages"] = json!(false);
        Self {
            me,
            webhook: None,
            next_update: 700_000_001,
            next_message: 1,
            waiting: BTreeMap::new(),
            confirmed: 0,
            poll: None,
            seen: Vec::new(),
            drafts: Vec::new(),
            actions: Vec::new(),
            pressed: Vec::new(),
            commands: Vec::new(),
            files: HashMap::new(),
            faults: HashMap::new(),
            chat_faults: HashMap::new(),
            lost_threads: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Queues an update and wakes the poll that waits for one.
    pub(super) fn push(&mut self, kind: &str, content: Value) -> i64 {
        let id = self.next_update;
        self.next_update += 1;
        let mut update = json!({ "update_id": id });
        update[kind] = content;
        self.waiting.insert(id, update);
        self.wake();
        id
    }

    pub(super) fn wake(&mut self) {
        if let Some(gate) = self.poll.take() {
            gate.open();
        }
    }

    pub(super) fn take_message_id(&mut self) -> i64 {
        let id = self.next_message;
        self.next_message += 1;
        id
    }

    /// Takes the next fault of a method, or what is wrong with the chat as such.
    pub(super) fn fault(&mut self, method: &str, chat_id: Option<i64>) -> Option<Fault> {
        let once = self.faults.get_mut(method).and_then(VecDeque::pop_front);
        let of_chat = || chat_id.and_then(|id| self.chat_faults.get(&id).cloned());
        once.or_else(of_chat)
    }

    /// Returns a message of the bot as the API describes it.
    pub(super) fn sent(&self, seen: &SeenMessage) -> Value {
        let place = match (seen.chat_id, seen.thread_id) {
            (id, Some(thread)) if id < 0 => Place::Topic(id, thread),
            (id, _) if id < 0 => Place::Group(id),
            (id, _) => Place::Private(id),
        };
        let mut message = super::updates::message(place, &bot(), seen.message_id);
        message["text"] = json!(seen.text);
        message
    }
}

/// Builds the answer to a method that was carried out.
pub(super) fn done(result: &Value) -> Response {
    Response::json(200, &json!({ "ok": true, "result": result }))
}

/// Builds the error of a request that makes no sense.
pub(super) fn bad(description: &str) -> Response {
    refused(400, &format!("Bad Request: {description}"), &Value::Null)
}

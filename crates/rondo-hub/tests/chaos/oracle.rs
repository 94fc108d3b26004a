//! Check of the messages that people saw. Nothing here looks at the hub's own tables.

use crate::messenger::{Messenger, Sent};
use crate::model;
use crate::tally::Tally;
use rondo_hub::channel::{Delivery, OutboxKind};
use rondo_testkit::Server;
use std::collections::BTreeSet;

/// A task that a person gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) chat: String,
    pub(crate) number: usize,
}

/// Messages that a case expects.
pub(crate) struct Expected<'a> {
    pub(crate) seed: u64,
    pub(crate) delivery: Delivery,
    /// In the order in which they came.
    pub(crate) given: &'a [Given],
}

/// Returns whether every task has its answer.
pub(crate) fn all_answered(messenger: &Messenger, given: &[Given]) -> bool {
    let seen = messenger.all_seen();
    given
        .iter()
        .all(|task| seen.iter().any(|it| settles(it, task)))
}

/// Returns whether all jobs have run that the model was told are set up.
pub(crate) fn all_timed(messenger: &Messenger, model: &Server, given: &[Given]) -> bool {
    let seen = messenger.all_seen();
    promised(model, given).all(|task| seen.iter().any(|it| settles_timed(it, &task)))
}

impl Expected<'_> {
    /// Looks at what people saw; the hub says that it sent something again in doubt so many times.
    pub(crate) fn look(&self, messenger: &Messenger, model: &Server, tally: &mut Tally) {
        self.look_at_repeats(messenger, tally);
        let chats: BTreeSet<&str> = self.given.iter().map(|it| it.chat.as_str()).collect();
        for chat in chats {
            self.look_at_chat(chat, messenger, model, tally);
        }
        for task in self.given {
            self.look_aside(task, messenger, model, tally);
        }
    }

    fn problem(&self, tally: &mut Tally, problem: &str) {
        tally.problem(format!("seed {} {:?}: {problem}", self.seed, self.delivery));
    }

    fn look_at_repeats(&self, messenger: &Messenger, tally: &mut Tally) {
        let seen = messenger.all_seen();
        let mut keys = BTreeSet::new();
        let messages = seen.iter().filter(|it| !it.is_draft);
        let repeats = messages.filter(|it| !keys.insert(&it.key)).count() as u64;
        tally.repeats += repeats;
        if repeats > tally.doubts {
            let text = format!(
                "{repeats} messages were seen again, the hub counted {}",
                tally.doubts
            );
            self.problem(tally, &text);
        }
        tally.drafts += seen.iter().filter(|it| it.is_draft).count() as u64;
        let wrong = messenger.wrong_edits();
        if !wrong.is_empty() {
            self.problem(
                tally,
                &format!("messages were replaced by others: {wrong:?}"),
            );
        }
        if self.delivery == Delivery::Key && repeats > 0 {
            let text = format!("{repeats} messages were seen again although they have keys");
            self.problem(tally, &text);
        }
    }

    fn look_at_chat(&self, chat: &str, messenger: &Messenger, model: &Server, tally: &mut Tally) {
        let mut first = BTreeSet::new();
        let seen = messenger.seen(chat).into_iter();
        let finals = seen.filter(|it| it.kind == OutboxKind::Final && !it.is_draft);
        let finals = finals.filter(|it| first.insert(it.key.clone()));
        // A scheduled job answers no message.
        let (finals, timed): (Vec<Sent>, Vec<Sent>) = finals.partition(|it| it.reply_to.is_some());
        let given: Vec<&Given> = self.given.iter().filter(|it| it.chat == chat).collect();
        tally.answers += finals.len() as u64;
        tally.timed += timed.len() as u64;
        tally.edits += finals.iter().filter(|it| it.edits.is_some()).count() as u64;
        let is_right = finals.len() == given.len()
            && finals
                .iter()
                .zip(&given)
                .all(|(sent, task)| settles(sent, task));
        if !is_right {
            let got: Vec<&str> = finals.iter().map(|it| it.text.as_str()).collect();
            let text = format!("{chat} was given {given:?} and saw {got:?}");
            self.problem(tally, &text);
        }
        for task in promised(model, self.given).filter(|it| it.chat == chat) {
            let count = timed.iter().filter(|it| settles_timed(it, &task)).count();
            let is_aside = timed.iter().any(|it| it.text.ends_with("Stopped."));
            if count != 1 && !is_aside {
                let text = format!("timed task {} was answered {count} times", task.number);
                self.problem(tally, &text);
            }
        }
    }

    /// A quarantined message must have been worked on, and its chat must have been told.
    fn look_aside(&self, task: &Given, messenger: &Messenger, model: &Server, tally: &mut Tally) {
        let seen = messenger.seen(&task.chat);
        if !seen.iter().any(|it| stops(it, task)) {
            return;
        }
        tally.aside += 1;
        let is_told = seen.iter().any(|it| it.text.contains("quarantined"));
        let tries = model::most_tries(&model.requests(), task.number);
        if !is_told || tries == 0 {
            let text = format!(
                "task {} was quarantined, told: {is_told}, tried {tries} times at one place",
                task.number
            );
            self.problem(tally, &text);
        }
    }
}

/// Returns the timed tasks that the model was told are set up.
fn promised(model: &Server, given: &[Given]) -> impl Iterator<Item = Given> {
    let requests = model.requests();
    let promised: BTreeSet<usize> = requests
        .iter()
        .filter_map(|it| model::promised(&it.json()))
        .collect();
    let given = given.to_vec();
    given
        .into_iter()
        .filter(move |it| promised.contains(&it.number))
}

pub(crate) fn answers(sent: &Sent, task: &Given) -> bool {
    let is_final = sent.kind == OutboxKind::Final && !sent.is_draft;
    is_final && sent.chat == task.chat && sent.text == model::answer(task.number)
}

/// `true` if a message says that the work on a task was stopped, as it is when it is quarantined.
fn stops(sent: &Sent, task: &Given) -> bool {
    let of_task = sent.reply_to.as_deref() == Some(&format!("m-n{}", task.number));
    of_task && sent.chat == task.chat && sent.text.ends_with("Stopped.")
}

fn settles(sent: &Sent, task: &Given) -> bool {
    answers(sent, task) || stops(sent, task)
}

fn settles_timed(sent: &Sent, task: &Given) -> bool {
    let timed = Given {
        number: model::timed(task.number),
        ..task.clone()
    };
    answers(sent, &timed)
}

//! A session's transcript, from its records: what the next turn begins with.
//!
//! Unlike [`redrive`](crate::redrive), which decides everything again, this only gathers facts. So
//! it needs none of what the turns ran with, and another version reads them just as well.

mod last_turn;
mod turn;

#[cfg(test)]
mod tests;

pub use last_turn::last_turn;

use crate::outside_text::OutsideTextFold;
use crate::pairing::paired;
use crate::ports::{Record, RecordBody, Seq};
use rondo_types::{CallId, Grant, Message, Question, TodoItem, ToolOutcome, Transcript, TurnId};
use serde::{Deserialize, Serialize};
use turn::TurnFold;

pub(crate) use turn::UnstartedCalls;

/// History of a session, built from its records. It takes them one by one, in their order, from the first.
///
/// It serializes, so that it can be stored and continue from there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct History {
    transcript: Transcript,
    records: u64,
    turns: u32,
    open: Option<TurnFold>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    todo: Vec<TodoItem>,
    #[serde(default)]
    outside_text: OutsideTextFold,
    #[serde(default)]
    grants: Vec<Grant>,
    /// The open question about the folder, and the place of its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder_question: Option<(Question, u64)>,
}

/// A turn whose end is not recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTurn {
    /// The turn.
    pub turn: TurnId,
    /// Its place in the session, from 1.
    pub number: u32,
    /// The place of its first record.
    pub first: Seq,
    /// Open questions, in the order in which they were asked. Their subjects name no session.
    pub questions: Vec<Question>,
    /// Set if it is parked: no process runs it, and it waits for the answers.
    pub is_parked: bool,
}

impl History {
    /// Takes all of the records given.
    #[must_use]
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut history = Self::default();
        records.into_iter().for_each(|record| history.take(record));
        history
    }

    /// Takes the records of one turn, with what was said before it.
    #[must_use]
    pub fn following(before: Transcript, turn: &[Record]) -> Self {
        let mut history = Self {
            transcript: before,
            turns: 1,
            ..Self::default()
        };
        turn.iter().for_each(|record| history.take(record));
        history
    }

    /// Returns the calls without a result of the turn whose end is not recorded, and whether each was begun.
    pub(crate) fn open_calls(&self) -> Vec<(CallId, bool)> {
        self.open
            .as_ref()
            .map_or_else(Vec::new, TurnFold::open_calls)
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        self.records += 1;
        if !record.body.is_of_turn() {
            return self.take_folder_question(&record.body);
        }
        self.outside_text.take(record);
        if let RecordBody::Answered { answer } = &record.body
            && let Some(grant) = &answer.remember
        {
            self.remember(grant);
        }
        if let RecordBody::TurnStarted {
            turn_number,
            history,
            initial_history,
            unbegun_not_run,
            ..
        } = &record.body
        {
            self.abandon(*history, UnstartedCalls::recorded(*unbegun_not_run));
            if self.turns == 0 {
                self.transcript.clone_from(initial_history);
            }
            let number = match turn_number {
                0 => self.turns.saturating_add(1),
                number => *number,
            };
            self.turns = self.turns.max(number);
        }
        if let RecordBody::ToolFinished {
            outcome: ToolOutcome::Ok(output),
            ..
        } = &record.body
            && let Some(todo) = &output.todo
        {
            self.todo.clone_from(todo);
        }
        let place = (Seq(self.records), self.turns);
        let open = self
            .open
            .get_or_insert_with(|| TurnFold::new(record, place, &self.transcript));
        open.take(record, Seq(self.records), &mut self.transcript);
        if let RecordBody::Final { .. } = record.body {
            self.open = None;
        }
    }

    fn take_folder_question(&mut self, body: &RecordBody) {
        match body {
            RecordBody::FolderAsked { question } => {
                self.folder_question = Some((question.clone(), self.records));
            }
            RecordBody::FolderAnswered { answer } => {
                self.folder_question
                    .take_if(|(question, _)| question.hash == answer.hash);
            }
            _ => {}
        }
    }

    /// Returns the open question about the session's folder, if there is one. Its subject names no session.
    #[must_use]
    pub fn folder_question(&self) -> Option<Question> {
        let (question, record) = self.folder_question.as_ref()?;
        let mut question = question.clone();
        question.subject.record = *record;
        Some(question)
    }

    /// Returns all open questions of the session: about its folder, and those of its open turn.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        let of_turn = self.open_turn().map(|it| it.questions);
        let of_folder = self.folder_question();
        of_folder
            .into_iter()
            .chain(of_turn.into_iter().flatten())
            .collect()
    }

    fn remember(&mut self, grant: &Grant) {
        self.grants.retain(|it| it != grant);
        if self.grants.len() >= Grant::COUNT_MAX {
            self.grants.remove(0);
        }
        self.grants.push(grant.clone());
    }

    /// Returns the permissions of the user for the rest of the session, the oldest first. They may count only if the
    /// user's own program wrote the records: an imported file can claim anything.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns whether a result of any turn held text from outside.
    #[must_use]
    pub fn has_outside_text(&self) -> bool {
        self.outside_text.is_present()
    }

    /// Counts a record that says nothing to this version.
    pub fn skip(&mut self) {
        self.records += 1;
    }

    /// Returns the place of the last record taken.
    #[must_use]
    pub fn head(&self) -> Seq {
        Seq(self.records)
    }

    /// Returns how many turns began.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Returns the session's to-do list; empty if there is none.
    #[must_use]
    pub fn todo(&self) -> &[TodoItem] {
        &self.todo
    }

    /// Returns the turn that was cut off, if the last one was.
    #[must_use]
    pub fn open_turn(&self) -> Option<OpenTurn> {
        self.open.as_ref().map(TurnFold::place)
    }

    /// Returns the messages so far, each call with its result: those of a turn that was cut off
    /// included. Of its calls without an end, those whose beginning is recorded read `in_doubt`, and
    /// the others `not_run`.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        let mut transcript = self.transcript.clone();
        if let Some(open) = &self.open {
            open.clone()
                .give_up(&mut transcript, UnstartedCalls::NotRun);
        }
        paired(transcript)
    }

    /// Returns the messages that came before the turn that was cut off, which is what
    /// [`resume_turn`](crate::resume_turn) wants; all of them if none was.
    #[must_use]
    pub fn before_open_turn(&self) -> Transcript {
        let before = match &self.open {
            Some(open) => open.before(&self.transcript),
            None => self.transcript.clone(),
        };
        paired(before)
    }

    /// Returns the results of the calls that the turn was cut off in, as far as they have one; none
    /// if it was not.
    pub(crate) fn open_results(&self, unbegun: UnstartedCalls) -> Option<Message> {
        let open = self.open.as_ref()?;
        Some(open.clone().results(unbegun))
    }

    /// Another turn begins though one is open. It either continued from the messages of that one, or
    /// from those before it, which their number tells.
    fn abandon(&mut self, history: u32, unbegun: UnstartedCalls) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let before = open.before(&self.transcript);
        if u32::try_from(before.len()) == Ok(history) {
            self.transcript = before;
        } else {
            open.give_up(&mut self.transcript, unbegun);
            self.transcript = paired(std::mem::take(&mut self.transcript));
        }
    }
}

//! The change of a file that a question is about: shown as a difference, of which hunks can be left out.
//!
//! What `edit_file` changes is in its arguments. What `write_file` changes depends on the file, which is read beside the
//! loop once its question is looked at. Where the file is another one when the answer comes, the runtime asks again.

use super::{App, Layer};
use crate::text::clean;
use crate::transcript::{Around, Change, Choice, Diff};
use rondo_core::redact::Secrets;
use rondo_core::shown;
use rondo_runtime::service::{FileBefore, Replaced, WRITE_FILE};
use rondo_types::AnswerValue;
use serde_json::Value;

/// The argument of a call that writes a whole file.
const CONTENT: &str = "content";
/// Arguments of a call that puts one text in another's place.
const BEFORE: &str = "old_string";
const AFTER: &str = "new_string";

/// A change that a call proposes.
#[derive(Debug)]
pub(super) struct Proposal {
    arguments: Value,
    /// The file as it was when the question was shown, where the change depends on it.
    replaced: Option<Replaced>,
    change: Change,
    diff: Diff,
    /// For each hunk, whether it is kept; empty where none can be left out.
    is_kept: Vec<bool>,
    selected: usize,
}

impl Proposal {
    /// Of a call whose arguments say all of it.
    pub(super) fn of_edit(arguments: &Value) -> Option<Self> {
        let text = |name: &str| arguments.get(name)?.as_str();
        let change = Change::between(text(BEFORE)?, text(AFTER)?)?;
        let diff = change.diff(Around::All, clean::exact)?;
        Some(Self::of(arguments, None, change, diff))
    }

    /// Of a call that replaces a file.
    pub(super) fn of_write(
        arguments: &Value,
        replaced: Replaced,
        secrets: &Secrets,
    ) -> Option<Self> {
        let before = replaced.text.as_deref()?;
        let change = Change::between(before, arguments.get(CONTENT)?.as_str()?)?;
        let hidden = change.without(secrets);
        let shown = hidden.as_ref().unwrap_or(&change);
        let diff = shown.diff(Around::Context, clean::exact)?;
        let is_new = replaced.before == FileBefore::Absent;
        let mut proposal = Self::of(arguments, Some(replaced), change, diff);
        // What stays of the file would be recorded with the answer.
        if is_new || hidden.is_some() {
            proposal.is_kept.clear();
        }
        Some(proposal)
    }

    fn of(arguments: &Value, replaced: Option<Replaced>, change: Change, diff: Diff) -> Self {
        // Of one hunk there is no part.
        let count = Some(change.count()).filter(|it| *it > 1).unwrap_or(0);
        Self {
            arguments: arguments.clone(),
            replaced,
            change,
            diff,
            is_kept: vec![true; count],
            selected: 0,
        }
    }

    /// Takes none of it apart, as a call that may run again runs as it was.
    pub(super) fn undivided(mut self) -> Self {
        self.is_kept.clear();
        self
    }

    /// Returns what is asked before the difference, and what behind it.
    pub(super) fn around(&self, prompt: &str) -> Option<(String, String)> {
        let (head, foot) = prompt.split_once(&shown::call(&self.arguments))?;
        let mut rest = self.arguments.clone();
        rest.as_object_mut()?
            .retain(|name, _| ![BEFORE, AFTER, CONTENT].contains(&name.as_str()));
        let mut head = format!("{head}{}", shown::call(&rest));
        if let Some(replaced) = &self.replaced {
            if let Some(path) = &replaced.leads_to {
                head.push_str(&format!("\n  leads to: {}", shown::line(path)));
            }
            head.push_str(match (&replaced.before, self.change.count()) {
                (FileBefore::Absent, _) => "\n  a new file",
                (_, 0) => "\n  the file has this content already",
                _ => "\n  changes the file",
            });
        }
        Some((head, foot.trim_start_matches('\n').to_owned()))
    }

    pub(super) fn diff(&self) -> &Diff {
        &self.diff
    }

    /// Returns which hunks are kept, where some can be left out.
    pub(super) fn choice(&self) -> Option<Choice<'_>> {
        (!self.is_kept.is_empty()).then_some(Choice {
            is_kept: &self.is_kept,
            selected: self.selected,
        })
    }

    /// Returns how many hunks are kept, where some are left out.
    pub(super) fn kept(&self) -> Option<(usize, usize)> {
        let kept = self.is_kept.iter().filter(|it| **it).count();
        (kept < self.is_kept.len()).then_some((kept, self.is_kept.len()))
    }

    /// Selects another hunk. Returns whether there is one to select.
    pub(super) fn select(&mut self, goes_back: bool) -> bool {
        let last = self.is_kept.len().saturating_sub(1);
        self.selected = match goes_back {
            true => self.selected.saturating_sub(1),
            false => (self.selected + 1).min(last),
        };
        !self.is_kept.is_empty()
    }

    /// Leaves the selected hunk out, or takes it in again. Returns whether it could.
    pub(super) fn toggle(&mut self) -> bool {
        match self.is_kept.get_mut(self.selected) {
            Some(is_kept) => {
                *is_kept = !*is_kept;
                true
            }
            None => false,
        }
    }

    /// Returns a yes to what is kept; `None` where nothing is.
    pub(super) fn approved(&self) -> Option<AnswerValue> {
        let Some((kept, count)) = self.kept() else {
            return Some(AnswerValue::Approve);
        };
        if kept == 0 {
            return None;
        }
        let field = match self.replaced {
            Some(_) => CONTENT,
            None => AFTER,
        };
        let mut value = self.arguments.clone();
        let text = self.change.with(&self.is_kept);
        value
            .as_object_mut()?
            .insert(field.to_owned(), Value::String(text));
        let left_out = format!(
            "the user applied {kept} of the {count} hunks of this change and left out:\n{}",
            self.change.left_out(&self.is_kept)
        );
        Some(AnswerValue::Value {
            value,
            left_out: Some(left_out),
        })
    }
}

impl App {
    /// Has the change shown that the question in the panel is about.
    pub(super) fn propose(&mut self) {
        let Layer::Review(review) = &mut self.layer else {
            return;
        };
        let Some(question) = review.wants_proposal() else {
            return;
        };
        let Some((name, arguments)) = self.story.call_asked_about(question) else {
            return;
        };
        review.leaves_out(shown::command_left_out(&arguments));
        match name == WRITE_FILE {
            true => review.look(arguments),
            false => review.propose(Proposal::of_edit(&arguments)),
        }
    }

    /// Returns the arguments of a call whose file is to be read, and the question about it.
    pub(crate) fn wants_look(&mut self) -> Option<(String, Value)> {
        let Layer::Review(review) = &mut self.layer else {
            return None;
        };
        review.wants_look()
    }

    /// The file that a question is about was read.
    pub(crate) fn looked(&mut self, hash: &str, arguments: &Value, found: Replaced) {
        let Layer::Review(review) = &mut self.layer else {
            return;
        };
        if review.question().is_none_or(|it| it.hash != hash) {
            return;
        }
        match (&found.text, &found.before) {
            (Some(_), _) => match Proposal::of_write(arguments, found, &self.secrets) {
                Some(proposal) => review.propose(Some(proposal)),
                None => review.tell("it is too long to be shown as a difference".to_owned()),
            },
            (None, FileBefore::Other { bytes }) => review.tell(format!(
                "it replaces {bytes} bytes that are not text, or too many to compare"
            )),
            (None, _) => review.tell("it replaces a file that cannot be read".to_owned()),
        }
    }

    /// The file that a question is about cannot be written as it is now.
    pub(crate) fn cannot_look(&mut self, hash: &str, why: &str) {
        if let Layer::Review(review) = &mut self.layer
            && review.question().is_some_and(|it| it.hash == hash)
        {
            review.tell(format!(
                "as the file is now, it fails: {}",
                shown::line(why)
            ));
        }
    }
}

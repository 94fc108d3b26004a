//! The change of a file that a question is about: shown as a difference, of which hunks can be left out.
//!
//! The texts of `edit_file` are in its arguments; where they are in the file, and the content that `write_file` replaces,
//! are known once the file is read, beside the loop, when the question is opened. If the file has changed by the time of
//! the answer, the runtime asks again.

use super::{App, Layer};
use crate::text::clean;
use crate::transcript::{Change, Choice, Diff, ShownContext};
use rondo_core::redact::Secrets;
use rondo_core::shown;
use rondo_runtime::service::{EDIT_FILE, FileBefore, ReplacedFile, WRITE_FILE};
use rondo_types::AnswerValue;
use serde_json::Value;

/// The argument of a call that writes a whole file.
const CONTENT: &str = "content";
/// Arguments of a call that puts one text in another's place.
const BEFORE: &str = "old_string";
const AFTER: &str = "new_string";
/// The argument by which a call replaces the text in every place.
const IN_ALL_PLACES: &str = "replace_all";

/// A change that a call proposes.
#[derive(Debug)]
pub(super) struct Proposal {
    arguments: Value,
    /// The file as it was when the question was shown, once it is read.
    replaced: Option<ReplacedFile>,
    /// The change of the argument that is answered with if hunks are left out.
    change: Change,
    /// The name of that argument.
    field: &'static str,
    /// The places of the file that change.
    places: usize,
    diff: Diff,
    /// For each hunk, whether it is kept; empty where none can be left out.
    is_kept: Vec<bool>,
    selected: usize,
}

impl Proposal {
    /// Builds the change of an edit from its arguments alone.
    pub(super) fn of_edit(arguments: &Value) -> Option<Self> {
        let text = |name: &str| arguments.get(name)?.as_str();
        let change = Change::between(text(BEFORE)?, text(AFTER)?)?;
        let diff = change.diff(ShownContext::All, clean::exact)?;
        Some(Self::of(arguments, None, change, diff))
    }

    /// Builds the change of an edit with its lines in the file, in every place that it changes.
    fn of_edit_in(arguments: &Value, replaced: ReplacedFile, secrets: &Secrets) -> Option<Self> {
        let of_arguments = Self::of_edit(arguments)?;
        let file = Change::between(replaced.text.as_deref()?, replaced.after.as_deref()?)?;
        let hidden = file.without(secrets);
        let shown = hidden.as_ref().unwrap_or(&file);
        let diff = shown.diff(ShownContext::Context, clean::exact)?;
        let is_in_all = arguments.get(IN_ALL_PLACES).and_then(Value::as_bool) == Some(true);
        // A hunk of the file that is left out has to be one of the arguments.
        let is_same = hidden.is_none() && file.count() == of_arguments.change.count();
        let mut proposal = Self {
            replaced: Some(replaced),
            places: file.count(),
            diff,
            ..of_arguments
        };
        if is_in_all || !is_same {
            proposal.is_kept.clear();
        }
        Some(proposal)
    }

    /// Builds the change of a call that replaces a file.
    pub(super) fn of_write(
        arguments: &Value,
        replaced: ReplacedFile,
        secrets: &Secrets,
    ) -> Option<Self> {
        let before = replaced.text.as_deref()?;
        let change = Change::between(before, arguments.get(CONTENT)?.as_str()?)?;
        let hidden = change.without(secrets);
        let shown = hidden.as_ref().unwrap_or(&change);
        let diff = shown.diff(ShownContext::Context, clean::exact)?;
        let is_new = replaced.before == FileBefore::Absent;
        let mut proposal = Self::of(arguments, Some(replaced), change, diff);
        // What stays of the file would be recorded with the answer.
        if is_new || hidden.is_some() {
            proposal.is_kept.clear();
        }
        Some(proposal)
    }

    fn of(arguments: &Value, replaced: Option<ReplacedFile>, change: Change, diff: Diff) -> Self {
        // Of one hunk there is no part.
        let count = Some(change.count()).filter(|it| *it > 1).unwrap_or(0);
        Self {
            arguments: arguments.clone(),
            field: match arguments.get(CONTENT) {
                Some(_) => CONTENT,
                None => AFTER,
            },
            places: change.count(),
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
            head.push_str(&match (&replaced.before, self.places) {
                (FileBefore::Absent, _) => "\n  a new file".to_owned(),
                (_, 0) => "\n  the file has this content already".to_owned(),
                (_, 1) => "\n  changes the file".to_owned(),
                (_, places) => format!("\n  changes the file in {places} places"),
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
        let mut value = self.arguments.clone();
        let text = self.change.with(&self.is_kept);
        value
            .as_object_mut()?
            .insert(self.field.to_owned(), Value::String(text));
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
        review.is_about(&arguments);
        match name.as_str() {
            WRITE_FILE | EDIT_FILE => review.look(name, arguments),
            _ => review.propose(Proposal::of_edit(&arguments)),
        }
    }

    /// Returns the hash of a question, and the tool and the arguments of its call, whose file has to be read.
    pub(crate) fn wants_look(&mut self) -> Option<(String, String, Value)> {
        let Layer::Review(review) = &mut self.layer else {
            return None;
        };
        review.wants_look()
    }

    /// The file that a question is about was read.
    pub(crate) fn looked(&mut self, hash: &str, arguments: &Value, found: ReplacedFile) {
        let Layer::Review(review) = &mut self.layer else {
            return;
        };
        if review.question().is_none_or(|it| it.hash != hash) {
            return;
        }
        if found.after.is_some() {
            // The change of a file that is too long is shown as its arguments have it.
            let in_file = Proposal::of_edit_in(arguments, found, &self.secrets);
            return review.propose(in_file.or_else(|| Proposal::of_edit(arguments)));
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

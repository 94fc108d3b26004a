//! Folders that a person must review: a command changed something protected there, or that was not checked.
//!
//! Until the person accepts the differences, nothing runs without asking there and nothing is loaded from it.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::paths::Paths;
use crate::settings::Settings;
use crate::trust_question::{self, TrustAnswers};
use async_trait::async_trait;
use rondo_core::observe::{Moment, Observer};
use rondo_core::ports::{Gate, GateRequest, Terms, Verdict};
use rondo_core::{EventSender, clock::Clock, shown};
use rondo_sandbox::{Ledger, SandboxMode, shown_path};
use rondo_types::{AskReason, EventBody, Grant};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

mod described;

pub use described::{QUESTION, described};
pub use rondo_sandbox::{Difference, DifferenceKind};

/// The directory of the ledger in the state directory.
const LEDGER: &str = "ledger";
/// The bound on files that a warning names.
const NAMED_MAX: usize = 8;
/// Addition to the question about a call.
const MUST_BE_REVIEWED: &str = "A sandboxed command left changes in protected files of this folder";
/// How to get out of it.
const HOW: &str =
    "`rondo doctor --review` in that folder shows what changed, and asks whether you accept it";

/// The directories of a session, as far as a person must review them.
#[derive(Debug, Clone)]
pub struct Review {
    ledger: Ledger,
    directories: Vec<PathBuf>,
}

impl Review {
    /// Looks at the working directory of these settings, and those that were added to it.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let added = settings.values.add_dirs.iter().flatten();
        let added = added.map(|it| settings.directory.join(it));
        let all: Vec<PathBuf> = added.chain([settings.directory.clone()]).collect();
        let real: Vec<PathBuf> = all.iter().filter_map(|it| it.canonicalize().ok()).collect();
        Self::of_directories(&settings.paths, real.into_iter().chain(all))
    }

    /// Looks at one directory. `real` is its path without links, if it exists.
    #[must_use]
    pub(crate) fn of_directory(paths: &Paths, directory: &Path, real: Option<&Path>) -> Self {
        let all = real.into_iter().chain([directory]).map(Path::to_owned);
        Self::of_directories(paths, all)
    }

    fn of_directories(paths: &Paths, directories: impl Iterator<Item = PathBuf>) -> Self {
        let mut all: Vec<PathBuf> = directories.collect();
        all.sort();
        all.dedup();
        Self {
            ledger: Ledger::at(ledger(paths)),
            directories: all,
        }
    }

    /// Returns the differences, by path.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        self.ledger.differences(&self.directories)
    }

    /// Returns whether a person must review the directories. Costs one system call if no command runs anywhere and nothing
    /// differs.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        !self.differences().is_empty()
    }

    /// Forgets the differences: the person has seen them.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn accept(&self) -> Result<()> {
        self.ledger.accept(&self.directories).map_err(|err| {
            let what = "failed to note that the differences are accepted";
            SetupError::because(SetupErrorKind::Other, what, err)
        })
    }

    /// Returns whether nothing has to be reviewed, or the user accepts the differences now.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn is_done(&self, answers: &TrustAnswers) -> Result<bool> {
        let differences = self.differences();
        if differences.is_empty() {
            return Ok(true);
        }
        // A file that has changed since it was shown is not accepted.
        let question = trust_question::of_differences(&differences);
        let is_accepted = answers.answer(&question) == Some(true);
        if !is_accepted || self.differences() != differences {
            return Ok(false);
        }
        self.accept()?;
        Ok(true)
    }

    /// Returns the warning at the start of each turn; `None` if there is nothing to review.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let differences = self.differences();
        let first = differences.first()?;
        let files = differences.iter().take(NAMED_MAX);
        let files: Vec<String> = files.map(|it| format!("`{}`", named(it))).collect();
        let more = match differences.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!(
            "`{}` must be reviewed: a sandboxed command left changes in protected files ({}{more}). Until you accept them, \
             every call needs approval, and the folder's configuration, scripts and instructions are not loaded. {HOW}",
            shown_path(&first.root),
            files.join(", "),
        ))
    }
}

/// Returns the path of a difference below its directory, and its kind.
fn named(difference: &Difference) -> String {
    let below = difference.path.strip_prefix(&difference.root);
    let path = match below {
        Ok(below) if !below.as_os_str().is_empty() => shown_path(below),
        _ => return format!("{}: not checked", shown_path(&difference.path)),
    };
    match difference.kind {
        DifferenceKind::Unchecked => format!("{path}: not checked"),
        DifferenceKind::Added => format!("{path}: added"),
        DifferenceKind::Removed => format!("{path}: removed"),
        DifferenceKind::Changed => path,
    }
}

/// Returns the directory of the ledger.
pub(crate) fn ledger(paths: &Paths) -> PathBuf {
    paths.state.join(LEDGER)
}

/// A gate that has every call asked about while the directories must be reviewed.
pub(crate) struct ReviewGate {
    inner: Arc<dyn Gate>,
    review: Review,
}

impl ReviewGate {
    pub(crate) fn new(inner: Arc<dyn Gate>, review: Review) -> Self {
        Self { inner, review }
    }
}

#[async_trait]
impl Gate for ReviewGate {
    async fn check(&self, request: &GateRequest) -> Verdict {
        let verdict = self.inner.check(request).await;
        if matches!(verdict, Verdict::Deny { .. }) || !self.review.is_needed() {
            return verdict;
        }
        let (question, mut reasons) = match verdict {
            Verdict::Ask { prompt, reasons } => (prompt, reasons),
            Verdict::Allow | Verdict::Deny { .. } => {
                let arguments = shown::call(&request.arguments);
                let question = format!("`{}` wants to run with\n{arguments}", request.spec.name);
                (question, Vec::new())
            }
        };
        reasons.push(AskReason::UnreviewedFolder);
        Verdict::Ask {
            prompt: format!(
                "{question}\n{MUST_BE_REVIEWED}, so nothing runs here without asking: {HOW}."
            ),
            reasons,
        }
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        let mut terms = self.inner.terms(request).await;
        if self.review.is_needed() {
            // An answer is for this call alone.
            terms.offers.clear();
        }
        terms
    }

    fn remember(&self, grant: &Grant) {
        self.inner.remember(grant);
    }
}

/// Warns the person at the start of a turn, and once a command of it leaves something to review.
pub(crate) struct ReviewWarnings {
    review: Review,
    events: EventSender,
    /// Latest message.
    said: Mutex<Option<String>>,
}

impl ReviewWarnings {
    /// Returns the sender of a turn that also warns; the same one if no command of the turn can leave something to review,
    /// and there is nothing now.
    pub(crate) fn attach(
        events: EventSender,
        review: Review,
        sandbox: Option<SandboxMode>,
    ) -> EventSender {
        let may_change = sandbox == Some(SandboxMode::WorkspaceWrite);
        if !may_change && !review.is_needed() {
            return events;
        }
        let warnings = Self {
            review,
            events: events.clone(),
            said: Mutex::default(),
        };
        events.observed_by(Arc::new(warnings))
    }

    fn send(&self, text: String) {
        let body = EventBody::Warning { text };
        self.events.send(Clock::system().now(), body);
    }

    /// Names the files that must be reviewed, unless that was done before.
    fn warn(&self) {
        let warning = self.review.warning();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if *said == warning {
            return;
        }
        said.clone_from(&warning);
        drop(said);
        if let Some(text) = warning {
            self.send(text);
        }
    }
}

impl Observer for ReviewWarnings {
    fn observe(&self, moment: &Moment<'_>) {
        match moment {
            Moment::Event(EventBody::StepStarted { .. }) => self.warn(),
            Moment::Event(EventBody::ToolCallFinished { result, .. }) => {
                if let Some(text) = rondo_exec::changed_protected(result) {
                    self.send(text);
                }
                self.warn();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

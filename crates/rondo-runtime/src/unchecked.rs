//! Folders that cannot be checked completely after a sandboxed command, or in which not every file that commands may
//! not read can be found: a person is asked before the first command that would run there without asking.
//!
//! A folder is checked once in a process, before that command. Files that become unreadable later are named in the
//! results of the commands themselves.

use crate::confined;
use crate::settings::Settings;
use async_trait::async_trait;
use rondo_core::ports::{Gate, GateRequest, QuestionReply, Terms, Verdict};
use rondo_core::{Approver, shown};
use rondo_policy::{LookingCalls, OUTSIDE_SANDBOX};
use rondo_sandbox::{SandboxMode, SandboxSpec, Unchecked, shown_path};
use rondo_types::{AnswerValue, AskReason, Grant, Question};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::task::spawn_blocking;

/// Reason in the question about a command.
const CANNOT_BE_CHECKED: &str = "The sandbox cannot check everything below the working directories, so what a command changes there may stay unnoticed";
/// Reason in the question if files that must be hidden may be left.
const CANNOT_BE_HIDDEN: &str = "There are too many files below the working directories to find all that `.rondoignore` or a rule hides, so this command may read one of them";
/// Further effect of a yes.
const AND_THE_NEXT: &str =
    "A yes also lets later commands run here without asking, until this process ends.";
/// The bound on places that a question names.
const NAMED_MAX: usize = 8;
/// The bound on combinations of folders that a process remembers; beyond it the oldest one is looked at again.
const FOLDERS_MAX: usize = 256;

/// The folders that a process has looked at.
#[derive(Debug, Default)]
pub(crate) struct CheckedFolders(Mutex<Vec<(FolderQuestion, FolderFindings)>>);

/// Reason of a question, with its folders.
#[derive(Debug, PartialEq, Eq)]
enum FolderQuestion {
    /// Changes that cannot be checked.
    Changes(Vec<PathBuf>),
    /// Hidden files that may be left.
    Reading(Vec<PathBuf>),
}

/// Findings in a folder, and the user's answer. Clones share both.
#[derive(Debug, Clone, Default)]
struct FolderFindings {
    /// Looked for by the first command; others wait for it.
    question: Arc<OnceLock<Option<String>>>,
    is_accepted: Arc<OnceLock<()>>,
}

impl CheckedFolders {
    fn of(&self, concern: FolderQuestion) -> FolderFindings {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|it| it.0 == concern) {
            return found.clone();
        }
        if known.len() >= FOLDERS_MAX {
            known.remove(0);
        }
        let found = FolderFindings::default();
        known.push((concern, found.clone()));
        found
    }
}

impl FolderFindings {
    /// Returns the question to a person; `None` if they agreed before, or `look`, which is called the first
    /// time, finds nothing.
    fn question(&self, look: impl FnOnce() -> Option<String>) -> Option<String> {
        let question = self.question.get_or_init(look).as_ref();
        let is_open = self.is_accepted.get().is_none();
        question.filter(|_| is_open).cloned()
    }
}

/// Returns the files that cannot be checked in the working directory of these settings and those that were added to it;
/// `None` if everything can. Lists all directories.
#[must_use]
pub fn of(settings: &Settings) -> Option<String> {
    let added = settings.values.add_dirs.iter().flatten();
    let added = added.map(|it| settings.directory.join(it));
    let named: Vec<PathBuf> = added.chain([settings.directory.clone()]).collect();
    let all = confined::with_repositories(settings, &named);
    listed(&rondo_sandbox::unchecked(&SandboxSpec::new(
        SandboxMode::WorkspaceWrite,
        all,
    )))
}

fn listed(places: &[Unchecked]) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    let mut text = format!("{CANNOT_BE_CHECKED}:");
    for it in places.iter().take(NAMED_MAX) {
        let _ = write!(
            text,
            "\n  {}: {}",
            shown_path(&it.path),
            shown::line(&it.reason)
        );
    }
    if let Some(more) = places.len().checked_sub(NAMED_MAX).filter(|it| *it > 0) {
        let _ = write!(text, "\n  and {more} more");
    }
    Some(text)
}

/// The sandbox of a turn's commands, and what its process knows of their folders. Clones share it.
#[derive(Clone)]
pub(crate) struct CommandFolders {
    pub(crate) checked: Arc<CheckedFolders>,
    pub(crate) sandbox: Option<SandboxSpec>,
    /// The sandbox that the user chose while the turn runs.
    pub(crate) chosen: Option<Arc<OnceLock<SandboxSpec>>>,
    /// The working directory and those that were added, if not all files in them are hidden from commands that should
    /// be.
    pub(crate) half_hidden: Option<Arc<[PathBuf]>>,
}

impl CommandFolders {
    fn sandbox_now(&self) -> Option<&SandboxSpec> {
        let chosen = self.chosen.as_ref().and_then(|it| it.get());
        let sandbox = chosen.or(self.sandbox.as_ref());
        sandbox.filter(|it| it.mode == SandboxMode::WorkspaceWrite)
    }

    /// Returns the folders that a sandbox is to check after commands, with that sandbox.
    fn changed(&self) -> Option<(FolderFindings, &SandboxSpec)> {
        let spec = self.sandbox_now()?;
        let roots = spec.writable.iter().map(|it| it.path().to_owned());
        let concern = FolderQuestion::Changes(roots.collect());
        Some((self.checked.of(concern), spec))
    }

    /// Returns the folders whose hidden files commands may read, if some may be left.
    fn read(&self) -> Option<FolderFindings> {
        let directories = self.half_hidden.as_deref()?;
        Some(
            self.checked
                .of(FolderQuestion::Reading(directories.to_vec())),
        )
    }
}

/// A gate that asks before the first command that would run without asking in such a folder.
pub(crate) struct UncheckedGate {
    pub(crate) inner: Arc<dyn Gate>,
    pub(crate) folders: CommandFolders,
    /// The calls that the read-only sandbox holds, which change nothing.
    pub(crate) looking: LookingCalls,
}

impl UncheckedGate {
    /// Returns the question about a call that would run without asking, and why.
    async fn question(&self, request: &GateRequest) -> Option<(String, Vec<AskReason>)> {
        let (spec, arguments) = (&request.spec, &request.arguments);
        spec.kind.command_line(arguments)?;
        if arguments.get(OUTSIDE_SANDBOX) == Some(&true.into()) {
            return None;
        }
        let (session, call_id) = (&request.session, &request.call_id);
        let looks = self.looking.holds(session, call_id, arguments);
        let of_reading = self.folders.read().and_then(|found| {
            let question = found.question(|| Some(format!("{CANNOT_BE_HIDDEN}.")))?;
            Some((question, AskReason::UnhiddenFiles))
        });
        let of_changes = match self.folders.changed().filter(|_| !looks) {
            Some((found, sandbox)) => changes_question(&found, sandbox).await,
            None => None,
        };
        let of_changes = of_changes.map(|question| (question, AskReason::UncheckedFolder));
        let (questions, reasons): (Vec<_>, Vec<_>) =
            of_reading.into_iter().chain(of_changes).unzip();
        let has_some = !questions.is_empty();
        has_some.then(|| (format!("{}\n{AND_THE_NEXT}", questions.join("\n")), reasons))
    }
}

/// Returns the question about a call that may change unchecked files. Lists all directories the first time.
async fn changes_question(found: &FolderFindings, sandbox: &SandboxSpec) -> Option<String> {
    let (looked, sandbox) = (found.clone(), sandbox.clone());
    let look = move || looked.question(|| listed(&rondo_sandbox::unchecked(&sandbox)));
    let looked = spawn_blocking(look).await;
    looked.unwrap_or_else(|_| Some(format!("{CANNOT_BE_CHECKED}.")))
}

#[async_trait]
impl Gate for UncheckedGate {
    async fn check(&self, request: &GateRequest) -> Verdict {
        let verdict = self.inner.check(request).await;
        if verdict != Verdict::Allow {
            return verdict;
        }
        match self.question(request).await {
            Some((question, reasons)) => Verdict::Ask {
                prompt: format!(
                    "`{}` wants to run with\n{}\n{question}",
                    shown::line(&request.spec.name),
                    shown::call(&request.arguments)
                ),
                reasons,
            },
            None => verdict,
        }
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        self.inner.terms(request).await
    }

    fn remember(&self, grant: &Grant) {
        self.inner.remember(grant);
    }
}

/// Remembers that the user let a command run in such a folder.
pub(crate) struct UncheckedApprover {
    pub(crate) inner: Arc<dyn Approver>,
    pub(crate) folders: CommandFolders,
}

#[async_trait]
impl Approver for UncheckedApprover {
    async fn ask(&self, question: &Question) -> QuestionReply {
        let is_for = |reason| question.reasons.contains(&reason);
        let changed = self.folders.changed().map(|it| it.0);
        let changed = changed.filter(|_| is_for(AskReason::UncheckedFolder));
        let read = self.folders.read();
        let read = read.filter(|_| is_for(AskReason::UnhiddenFiles));
        let founds: Vec<FolderFindings> = changed.into_iter().chain(read).collect();
        if founds.is_empty() {
            return self.inner.ask(question).await;
        }
        if founds.iter().all(|it| it.is_accepted.get().is_some()) {
            return QuestionReply::approved(question, "the answer before");
        }
        let reply = self.inner.ask(question).await;
        let is_yes = match &reply {
            QuestionReply::Answered(answer, _) => answer.value == AnswerValue::Approve,
            QuestionReply::Later { .. } => false,
        };
        if is_yes {
            for found in &founds {
                let _ = found.is_accepted.set(());
            }
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::standard_gate;
    use rondo_core::ports::question_about_call;
    use rondo_policy::{AllowedDirs, GateOptions, ToolPatterns, Workdir};
    use rondo_types::{
        CallId, Effects, QuestionKind, QuestionSubject, SessionId, ToolKind, ToolSpec, TurnId,
    };
    use serde_json::json;
    use std::path::Path;

    fn request(call: &str, command: &str) -> GateRequest {
        GateRequest {
            session: SessionId::new("s"),
            turn: TurnId::new("t"),
            step: 1,
            call_id: CallId::new(call),
            spec: Arc::new(ToolSpec {
                name: "exec".to_owned(),
                kind: ToolKind::Execute,
                effects: Effects::Writes,
                ..ToolSpec::default()
            }),
            arguments: json!({ "command": command }),
            has_outside_text: false,
        }
    }

    /// Says yes or no to every question.
    struct Says(bool);

    #[async_trait]
    impl Approver for Says {
        async fn ask(&self, question: &Question) -> QuestionReply {
            match self.0 {
                true => QuestionReply::approved(question, "ada"),
                false => QuestionReply::denied(question, "ada", ""),
            }
        }
    }

    fn folders(directory: &Path) -> CommandFolders {
        CommandFolders {
            checked: Arc::default(),
            sandbox: Some(SandboxSpec::new(SandboxMode::WorkspaceWrite, [directory])),
            chosen: None,
            half_hidden: None,
        }
    }

    fn gate(directory: &Path, folders: &CommandFolders) -> UncheckedGate {
        let mut options = GateOptions::new(AllowedDirs::new(directory, &[]).unwrap());
        options.allowed_tools = ToolPatterns::parse(["exec"]).unwrap();
        // Not the environment of the tests' user, which may name libraries.
        let workdir = Workdir::new(directory.to_owned());
        let variables = [("PATH".into(), "/usr/bin:/bin".into())];
        workdir.set_environment(variables.into_iter().collect());
        options.workdir = Some(workdir);
        let looking = options.looking.clone();
        UncheckedGate {
            inner: standard_gate(options),
            folders: folders.clone(),
            looking,
        }
    }

    /// Answers a question that the gate asks for these reasons.
    async fn answered(folders: &CommandFolders, reasons: &[AskReason], is_yes: bool) {
        let approver = UncheckedApprover {
            inner: Arc::new(Says(is_yes)),
            folders: folders.clone(),
        };
        let subject = QuestionSubject {
            tool: "exec".to_owned(),
            ..QuestionSubject::default()
        };
        let (call, kind) = (CallId::new("c"), QuestionKind::Approval);
        let question = question_about_call(subject, &call, kind, String::new(), &Terms::default());
        let question = Question {
            reasons: reasons.to_vec(),
            ..question
        };
        approver.ask(&question).await;
    }

    /// A folder with a protected file that has a second name.
    fn linked() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("other.md"), "a").unwrap();
        std::fs::hard_link(
            folder.path().join("other.md"),
            folder.path().join("AGENTS.md"),
        )
        .unwrap();
        folder
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_first_command_is_asked_about_and_the_question_says_what_cannot_be_checked() {
        let folder = linked();
        let folders = folders(folder.path());
        let gate = gate(folder.path(), &folders);
        let Verdict::Ask { prompt, reasons } = gate.check(&request("1", "make")).await else {
            panic!("it runs unasked");
        };
        assert_eq!(reasons, [AskReason::UncheckedFolder]);
        assert!(prompt.contains(CANNOT_BE_CHECKED), "{prompt}");
        let place = "AGENTS.md: it has a second hard link, by which it can be changed";
        assert!(prompt.contains(place), "{prompt}");
        // A command that only looks changes nothing.
        assert_eq!(gate.check(&request("2", "ls")).await, Verdict::Allow);

        answered(&folders, &reasons, false).await;
        assert_ne!(gate.check(&request("3", "make")).await, Verdict::Allow);
        for other in [AskReason::NotAllowed, AskReason::UnhiddenFiles] {
            answered(&folders, &[other], true).await;
            assert_ne!(gate.check(&request("5", "make")).await, Verdict::Allow);
        }
        answered(&folders, &reasons, true).await;
        assert_eq!(gate.check(&request("6", "make")).await, Verdict::Allow);
    }

    #[tokio::test]
    async fn a_folder_that_can_be_checked_is_not_asked_about_and_looked_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let folders = folders(folder.path());
        let gate = gate(folder.path(), &folders);
        assert_eq!(gate.check(&request("1", "make")).await, Verdict::Allow);
        std::fs::write(folder.path().join("other.md"), "a").unwrap();
        let linked = folder.path().join("AGENTS.md");
        std::fs::hard_link(folder.path().join("other.md"), linked).unwrap();
        assert_eq!(gate.check(&request("2", "make")).await, Verdict::Allow);
        let again = CommandFolders {
            checked: Arc::default(),
            ..folders
        };
        let again = self::gate(folder.path(), &again);
        let is_asked = again.check(&request("3", "make")).await != Verdict::Allow;
        assert_eq!(is_asked, cfg!(target_os = "linux"));
    }

    #[tokio::test]
    async fn commands_are_asked_about_once_if_hidden_files_may_be_left_also_those_that_only_look() {
        let folder = tempfile::tempdir().unwrap();
        let half = Some(Arc::from([folder.path().to_owned()]));
        let folders = CommandFolders {
            half_hidden: half,
            ..folders(folder.path())
        };
        let gate = gate(folder.path(), &folders);
        let look = request("1", "cat src/q*");
        gate.looking
            .note(&look.session, &look.call_id, &look.arguments, true);
        let Verdict::Ask { prompt, reasons } = gate.check(&look).await else {
            panic!("it runs unasked");
        };
        assert_eq!(reasons, [AskReason::UnhiddenFiles]);
        assert!(prompt.contains(CANNOT_BE_HIDDEN), "{prompt}");
        assert_ne!(gate.check(&request("2", "make")).await, Verdict::Allow);
        answered(&folders, &reasons, true).await;
        for (call, command) in [("3", "make"), ("4", "cat a")] {
            assert_eq!(gate.check(&request(call, command)).await, Verdict::Allow);
        }
    }
}

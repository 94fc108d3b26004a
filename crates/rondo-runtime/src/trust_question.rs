//! Questions about a folder before something of it is used: its settings, the servers of its project, and the changes
//! that a sandboxed command left in its protected files.

use crate::env::Env;
use crate::mcp::WaitingServer;
use crate::parking::{self, MailApprover};
use crate::project::UntrustedProject;
use crate::review::{self, Difference, DifferenceKind};
use crate::sanitize;
use crate::secrets;
use crate::sessions::Conversation;
use data_encoding::HEXLOWER;
use rondo_core::redact::Secrets;
use rondo_core::session_store::SessionInfo;
use rondo_core::storage::Store;
use rondo_core::{Approver, QuestionReply};
use rondo_types::{Answer, AnswerValue, Question, QuestionId, QuestionKind, QuestionSubject};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::runtime::Builder;

/// The bound on settings and servers that a question names.
const LINES_MAX: usize = 12;
/// The bound on columns of each.
const COLUMNS_MAX: usize = 120;
/// The bound on the questions that a process remembers to be denied: each folder asks three at most.
const DENIED_MAX: usize = 1000;
/// The bound on the differences in a question, in bytes.
const DIFFERENCES_BYTES_MAX: usize = 16 << 10;

/// Returns the question whether to trust a folder, so that all its settings apply. Its hash covers the folder, the file
/// and all settings that are ignored without trust.
pub(crate) fn of_settings(project: &UntrustedProject) -> Question {
    let settings = project.ignored.iter();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let mut agreed = vec![path_bytes(&project.folder), path_bytes(&project.file)];
    agreed.extend(settings.iter().map(String::as_bytes));
    let prompt = format!(
        "`{}` has settings that apply only in a trusted folder:\n{}\
         The model reads its texts, and its profiles and tools decide what runs without asking.\n\
         Trust {} from now on?",
        project.file.display(),
        listed(&settings),
        project.folder.display(),
    );
    question("trust-settings", &agreed, &prompt)
}

/// Returns the question whether to accept what a sandboxed command left changed in protected files. Its hash covers the
/// files, with their content before and now.
pub(crate) fn of_differences(differences: &[Difference]) -> Question {
    let mut agreed = Vec::new();
    for it in differences {
        agreed.extend([path_bytes(&it.root), path_bytes(&it.path), kind(it.kind)]);
        for content in [&it.before, &it.now] {
            let is_there: &[u8] = if content.is_some() { b"+" } else { b"-" };
            agreed.extend([is_there, content.as_deref().unwrap_or_default()]);
        }
    }
    let prompt = format!(
        "A sandboxed command left changes in protected files:\n{}{}",
        bounded(review::described(differences)),
        review::QUESTION,
    );
    question("trust-changes", &agreed, &prompt)
}

/// Returns the question whether servers of a trusted project may be started. Its hash covers the folder, and each
/// server with all that configures it: `consents` are their hashes.
pub(crate) fn of_servers(
    folder: &Path,
    servers: &[WaitingServer],
    consents: &[String],
) -> Question {
    let names = servers.iter().map(|it| it.name.as_bytes());
    let mut agreed = vec![path_bytes(folder)];
    agreed.extend(names.chain(consents.iter().map(String::as_bytes)));
    let lines = servers.iter();
    let lines: Vec<String> = lines
        .map(|it| format!("{}: {}", it.name, it.described))
        .collect();
    let file = servers.first().map(|it| it.file.display().to_string());
    let prompt = format!(
        "`{}` adds servers that were not started here before:\n{}\
         The model reads what they offer; programs are confined to this folder.\n\
         Start them from now on?",
        file.unwrap_or_default(),
        listed(&lines),
    );
    question("trust-servers", &agreed, &prompt)
}

fn question(id: &str, agreed: &[&[u8]], prompt: &str) -> Question {
    let of_folder = (QuestionId(id.to_owned()), QuestionKind::Trust);
    let hash = hash_of([id.as_bytes()].into_iter().chain(agreed.iter().copied()));
    let prompt = sanitize::plain(prompt);
    Question::new(of_folder, None, prompt, hash, QuestionSubject::default())
}

/// Returns SHA-256 of some parts, in hex. No two lists of parts are hashed alike.
pub(crate) fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    HEXLOWER.encode(&hasher.finalize())
}

fn kind(kind: DifferenceKind) -> &'static [u8] {
    match kind {
        DifferenceKind::Added => b"added",
        DifferenceKind::Changed => b"changed",
        DifferenceKind::Removed => b"removed",
        DifferenceKind::Unchecked => b"unchecked",
    }
}

fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Returns the first of these on a line each.
fn listed(all: &[String]) -> String {
    let mut lines = String::new();
    for it in all.iter().take(LINES_MAX) {
        let line = format!("  {it}").replace('\n', " ");
        lines.extend(line.chars().take(COLUMNS_MAX).chain(['\n']));
    }
    if let Some(more) = all.len().checked_sub(LINES_MAX).filter(|it| *it > 0) {
        lines.push_str(&format!("  and {more} more\n"));
    }
    lines
}

/// Returns as many lines of a text as fit into a question.
fn bounded(text: String) -> String {
    if text.len() <= DIFFERENCES_BYTES_MAX {
        return text;
    }
    let mut shown = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if shown.len() + line.len() >= DIFFERENCES_BYTES_MAX {
            let more = lines.count() + 1;
            shown.push_str(&format!(
                "[{more} more lines, which `rondo doctor --review` shows]\n"
            ));
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// The answers to questions about folders that come up while settings are read, and the approver that is asked in place.
/// Clones share all of it.
#[derive(Clone, Default)]
pub(crate) struct TrustAnswers {
    state: Arc<Mutex<State>>,
    /// The session whose settings are read.
    session: Option<Arc<AskingSession>>,
    /// Secrets that no question shows.
    secrets: Secrets,
    /// The questions without an answer.
    open: Arc<Mutex<Vec<Question>>>,
}

#[derive(Default)]
struct State {
    approver: Option<Arc<dyn Approver>>,
    /// The hashes of the questions that were answered with no in this process.
    denied: VecDeque<String>,
}

impl State {
    /// Keeps a no. The oldest one gives way to it: its question is asked again if it comes up again.
    fn deny(&mut self, hash: &str) {
        if self.denied.iter().any(|it| it == hash) {
            return;
        }
        if self.denied.len() >= DENIED_MAX {
            self.denied.pop_front();
        }
        self.denied.push_back(hash.to_owned());
    }
}

/// A session whose settings are read: it records what is asked, and its mailbox has answers.
#[derive(Clone)]
pub(crate) struct AskingSession {
    /// Its journal and mailbox.
    pub(crate) store: Store,
    /// Facts about the session.
    pub(crate) info: SessionInfo,
    /// The answer that its owner has taken and recorded.
    pub(crate) taken: Option<Answer>,
}

impl TrustAnswers {
    /// Puts questions to an approver while settings are read, or to no one.
    pub(crate) fn ask(&self, approver: Option<Arc<dyn Approver>>) {
        self.state().approver = approver;
    }

    /// Returns the same answers while the settings of a session, or of none, are read. Files of a folder may hold the keys of
    /// an environment, which no question shows.
    pub(crate) fn of(&self, session: Option<AskingSession>, env: &Env) -> Self {
        Self {
            state: Arc::clone(&self.state),
            session: session.map(Arc::new),
            secrets: secrets::of_usual_names(env),
            open: Arc::default(),
        }
    }

    /// Returns the answer to a question: the one that was given, or that of the approver; `None` if there is none.
    pub(crate) fn answer(&self, question: &Question) -> Option<bool> {
        let question = &Question {
            prompt: self.secrets.text(question.prompt.clone()),
            ..question.clone()
        };
        let answer = self.given(question).or_else(|| self.put(question));
        match answer {
            None => self.open().push(question.clone()),
            Some(false) => self.state().deny(&question.hash),
            Some(true) => {}
        }
        answer
    }

    /// Returns the questions without an answer.
    pub(crate) fn unanswered(&self) -> Vec<Question> {
        self.open().clone()
    }

    /// Returns the answer in the session's mailbox, which is recorded then, or that of this process.
    fn given(&self, question: &Question) -> Option<bool> {
        let is_denied = self.state().denied.contains(&question.hash);
        let Some(session) = &self.session else {
            return is_denied.then_some(false);
        };
        if let Some(taken) = session.taken.as_ref().filter(|it| it.hash == question.hash) {
            return Some(taken.value == AnswerValue::Approve);
        }
        let given = parking::answers(&session.store, &session.info.id).ok()?;
        let given = given
            .into_iter()
            .rfind(|(answer, _)| answer.hash == question.hash);
        let Some((answer, mail)) = given else {
            return is_denied.then_some(false);
        };
        let is_yes = answer.value == AnswerValue::Approve;
        // The process that owns the session takes it otherwise.
        waited_for(async {
            let conversation = Conversation::take(&session.store, &session.info).ok()?;
            conversation.record_folder_answer(answer, mail).await.ok()
        })??;
        Some(is_yes)
    }

    /// Asks in place.
    fn put(&self, question: &Question) -> Option<bool> {
        let approver = self.state().approver.clone()?;
        let session = self.session.clone();
        let reply = waited_for(async {
            match session {
                Some(session) => session.ask(approver, question).await,
                None => approver.ask(question).await,
            }
        });
        match reply? {
            QuestionReply::Answered(answer, _) if answer.hash == question.hash => {
                Some(answer.value == AnswerValue::Approve)
            }
            QuestionReply::Answered(..) | QuestionReply::Later { .. } => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskingSession {
    /// Asks once the question is recorded, so that another process can answer it too. One that cannot be recorded, such as
    /// since another process owns the session, is asked in place alone.
    async fn ask(&self, host: Arc<dyn Approver>, question: &Question) -> QuestionReply {
        let taken = Conversation::take(&self.store, &self.info);
        let Ok(conversation) = taken else {
            return host.ask(question).await;
        };
        let Ok(question) = conversation.record_folder_question(question).await else {
            return host.ask(question).await;
        };
        let approver = MailApprover {
            host,
            store: self.store.clone(),
            session: self.info.id.clone(),
        };
        let reply = approver.ask(&question).await;
        if let QuestionReply::Answered(answer, mail) = &reply {
            let answer = answer.clone();
            // The answer counts, recorded or not.
            conversation.record_folder_answer(answer, *mail).await.ok();
        }
        reply
    }
}

/// Waits on a thread of its own, since settings are read in asynchronous code as well as outside of it.
fn waited_for<T: Send>(work: impl Future<Output = T> + Send) -> Option<T> {
    let wait = move || {
        let tasks = Builder::new_current_thread().enable_all().build().ok()?;
        Some(tasks.block_on(work))
    };
    thread::scope(|scope| scope.spawn(wait).join())
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests;

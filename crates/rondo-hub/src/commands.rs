//! Commands in chats: what begins with a slash.

use crate::authorise::{Action, authorise};
use crate::chats::first_session;
use crate::hub::Core;
use crate::inbox::InboxResult;
use crate::questions;
use crate::receive::Event;
use rondo_core::ports::{HostCommit, MailBody, MailboxError, NewMail};
use rondo_core::session::Delivery;
use rondo_runtime::compaction::too_early;
use rondo_runtime::form::{Form, FormStep};
use rondo_runtime::usage::{self, UsageSum};
use rondo_types::text::first_bytes;
use rondo_types::units::{counted, dollars, tokens};
use rondo_types::{AnswerValue, QuestionKind, TimeMs};
use serde_json::Value;

/// Bytes of what follows a command.
const REST_BYTES_MAX: usize = 4 << 10;

/// A command of a chat, with what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Begins again, with nothing of what was said.
    New,
    /// Stops the turn that runs.
    Stop,
    /// Says whether a turn runs, and what waits.
    Status,
    /// Summarizes the conversation.
    Compact(String),
    /// Says which model answers, or has another one answer from the next message on.
    Model(String),
    /// Lets what is asked about run: all of it, or the question of that number, and perhaps what it offers from then on.
    Approve {
        /// The number of the question.
        number: Option<usize>,
        /// Also gives the offered grant until a new conversation is started.
        always: bool,
    },
    /// Denies it.
    Deny(Option<usize>, String),
    /// Gives the values that a running call asks for, a line each.
    Answer(String),
    /// Shows the usage.
    Usage,
    /// Lists the skills, shows one, or switches one on.
    Skills(String),
    /// Lists the commands.
    Help,
    /// A command that is not known.
    Unknown(String),
}

/// The commands, as channels may list them: the word, and what it does.
pub const COMMANDS: [(&str, &str); 12] = [
    ("new", "begin anew, with nothing of what was said"),
    ("reset", "the same as /new"),
    ("stop", "stop the running turn"),
    ("status", "show the status of this chat"),
    ("compact", "replace the conversation with a summary of it"),
    (
        "model",
        "say which model answers: /model, or choose one: /model NAME",
    ),
    (
        "approve",
        "allow a pending call: /approve, /approve NUMBER, /approve always",
    ),
    (
        "deny",
        "deny a pending call: /deny REASON or /deny NUMBER REASON",
    ),
    (
        "answer",
        "give the values that a tool requests: /answer, then one line for each",
    ),
    ("usage", "show usage of this chat and of today"),
    (
        "skills",
        "list the skills: /skills, /skills show NAME, /skills enable NAME HASH",
    ),
    ("help", "list the commands"),
];

impl Command {
    /// Reads a command; `None` if the text is not a command. A name after the word, as in `/stop@bot`, is passed over.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.trim().strip_prefix('/')?;
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let word = word.split('@').next().unwrap_or(word);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // A path, such as `/etc/hosts`, is something that is said.
        if word.is_empty() || !word.chars().all(is_word) {
            return None;
        }
        let rest = first_bytes(rest.trim(), REST_BYTES_MAX);
        Some(match word.to_ascii_lowercase().as_str() {
            "new" | "reset" => Self::New,
            "stop" => Self::Stop,
            "status" => Self::Status,
            "compact" => Self::Compact(rest.to_owned()),
            "model" => Self::Model(rest.to_owned()),
            "approve" => {
                let (number, rest) = numbered(rest);
                Self::Approve {
                    number,
                    always: rest.eq_ignore_ascii_case("always"),
                }
            }
            "deny" => {
                let (number, reason) = numbered(rest);
                Self::Deny(number, reason.to_owned())
            }
            "answer" => Self::Answer(rest.to_owned()),
            "usage" => Self::Usage,
            "skills" => Self::Skills(rest.to_owned()),
            "help" | "start" => Self::Help,
            other => Self::Unknown(other.to_owned()),
        })
    }

    fn action(&self) -> Action {
        match self {
            Self::New | Self::Compact(_) => Action::Reset,
            Self::Stop => Action::Stop,
            Self::Model(name) if !name.is_empty() => Action::ChooseModel,
            Self::Approve { .. } | Self::Answer(_) => Action::Approve,
            Self::Deny(..) => Action::Deny,
            Self::Skills(_) => Action::Administer,
            Self::Status | Self::Usage | Self::Model(_) | Self::Help | Self::Unknown(_) => {
                Action::Look
            }
        }
    }
}

/// Splits a number off the beginning.
fn numbered(rest: &str) -> (Option<usize>, &str) {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match first.parse() {
        Ok(number) => (Some(number), after.trim()),
        Err(_) => (None, rest),
    }
}

/// Does what a command says, and answers it.
pub(crate) async fn run(
    core: &Core,
    event: &Event<'_>,
    command: &Command,
) -> Result<InboxResult, MailboxError> {
    if let Err(denied) = authorise(&event.actor, command.action(), event.chat.kind) {
        return core.tell(event, format!("Not done: {denied}.")).await;
    }
    match command {
        Command::New => new(core, event).await,
        Command::Stop => stop(core, event).await,
        Command::Status => status(core, event).await,
        Command::Compact(focus) => compact(core, event, focus).await,
        Command::Model(name) => model(core, event, name).await,
        Command::Approve { number, always } => {
            let given = (AnswerValue::Approve, *always);
            answer(core, event, *number, given).await
        }
        Command::Deny(number, reason) => {
            let reason = match reason.is_empty() {
                true => "denied in the chat".to_owned(),
                false => reason.clone(),
            };
            let given = (AnswerValue::Deny { reason }, false);
            answer(core, event, *number, given).await
        }
        Command::Answer(lines) => give(core, event, lines).await,
        Command::Usage => tell_usage(core, event).await,
        Command::Skills(rest) => skills(core, event, rest.clone()).await,
        Command::Help => core.tell(event, help()).await,
        Command::Unknown(word) => {
            let text = format!("There is no command /{word}.\n\n{}", help());
            core.tell(event, text).await
        }
    }
}

fn help() -> String {
    let lines = COMMANDS.map(|(word, what)| format!("/{word}: {what}"));
    lines.join("\n")
}

async fn new(core: &Core, event: &Event<'_>) -> Result<InboxResult, MailboxError> {
    let before = event.chat.session();
    let anew = event.chat.anew();
    let mut commit = HostCommit {
        rows: anew.rows(),
        // The running turn is stopped; its end is still reported here.
        mail: vec![cancel(event, &before)],
        ..HostCommit::default()
    };
    commit.rows.extend(
        event
            .rows()
            .into_iter()
            .filter(|it| it.table == crate::host::OWNER_CHATS),
    );
    if !core.shown.is_running(&before) {
        commit.mail.clear();
    }
    let taken = core
        .done(event, commit, "Started a new conversation.".to_owned())
        .await?;
    core.wake(&before);
    Ok(taken)
}

fn cancel(event: &Event<'_>, session: &rondo_types::SessionId) -> NewMail {
    NewMail {
        session: session.clone(),
        key: event.inbound.event_id.clone(),
        actor: event.actor.id.clone(),
        at_ms: TimeMs(event.inbound.at_ms),
        body: MailBody::Cancel,
    }
}

async fn stop(core: &Core, event: &Event<'_>) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let mut asked = questions::of_session(&*core.store, &session).await?;
    asked.retain(|it| it.kind != QuestionKind::Trust);
    if !core.shown.is_running(&session) && asked.is_empty() {
        return core.tell(event, "Nothing runs.".to_owned()).await;
    }
    let commit = HostCommit {
        mail: vec![cancel(event, &session)],
        ..HostCommit::default()
    };
    // The turn's own end says that it was stopped.
    let taken = core.done(event, commit, String::new()).await?;
    core.wake(&session);
    Ok(taken)
}

async fn status(core: &Core, event: &Event<'_>) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let waiting = core.session(&session).waiting().await?;
    let mut asked = questions::of_session(&*core.store, &session).await?;
    asked.retain(|it| it.kind != QuestionKind::Trust);
    let runs = match core.shown.is_running(&session) {
        true => "A turn runs.",
        false if !asked.is_empty() => "A turn is waiting for answers.",
        false => "Nothing runs.",
    };
    let mut lines = vec![runs.to_owned()];
    if waiting > 0 {
        lines.push(format!("Waiting messages: {waiting}"));
    }
    let asked = asked.iter().enumerate();
    lines.extend(asked.map(|(index, it)| format!("Question {}: {}", index + 1, it.prompt)));
    lines.push(format!("Session: `{session}`"));
    lines.push(format!(
        "You are: {} ({})",
        event.actor.user, event.actor.role
    ));
    core.tell(event, lines.join("\n")).await
}

async fn compact(core: &Core, event: &Event<'_>, focus: &str) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let handle = core.session(&session);
    if !core.shown.is_running(&session) && handle.waiting().await? == 0 {
        let history = handle.messages().await;
        let early = history.map(|it| too_early(&it));
        let text = match early {
            Ok(None) => None,
            Ok(Some(early)) => Some(format!("There is nothing to sum up yet: {early}.")),
            Err(error) => Some(format!("Not done: {}.", error.line())),
        };
        if let Some(text) = text {
            return core.tell(event, text).await;
        }
    }
    let mail = NewMail {
        session: session.clone(),
        key: event.inbound.event_id.clone(),
        actor: event.actor.id.clone(),
        at_ms: TimeMs(event.inbound.at_ms),
        body: MailBody::Message {
            message: rondo_runtime::compaction::question(focus),
            delivery: Delivery::Compact,
        },
    };
    let commit = HostCommit {
        mail: vec![mail],
        rows: event.rows(),
        ..HostCommit::default()
    };
    let taken = core.done(event, commit, String::new()).await?;
    core.wake(&session);
    Ok(taken)
}

async fn model(core: &Core, event: &Event<'_>, name: &str) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let named = Some(name.to_owned()).filter(|it| !it.is_empty());
    let chosen = core.session(&session).model(named.clone()).await;
    let chosen = match (chosen, named) {
        (Ok(chosen), Some(_)) => chosen,
        (Ok(chosen), None) => {
            let text = format!("Model: {chosen}\n/model NAME chooses another one.");
            return core.tell(event, text).await;
        }
        (Err(error), _) => {
            return core
                .tell(event, format!("Not done: {}.", error.line()))
                .await;
        }
    };
    let Some(row) = core.models.row(&session, &chosen) else {
        let text = "Not done: too many chats have a model of their own.".to_owned();
        return core.tell(event, text).await;
    };
    let mut commit = HostCommit {
        rows: event.rows(),
        ..HostCommit::default()
    };
    commit.rows.push(row);
    let text = format!("From the next message on: {chosen}.");
    let taken = core.done(event, commit, text).await?;
    if taken == InboxResult::Accepted {
        core.models.set(&session, chosen);
    }
    Ok(taken)
}

async fn answer(
    core: &Core,
    event: &Event<'_>,
    number: Option<usize>,
    (value, remembers): (AnswerValue, bool),
) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let mut asked = questions::of_session(&*core.store, &session).await?;
    // An owner is asked about the folder elsewhere, and answers it by itself.
    asked.retain(|it| it.kind != QuestionKind::Trust);
    let chosen = match number {
        None => asked,
        Some(number) => asked
            .into_iter()
            .skip(number.wrapping_sub(1))
            .take(1)
            .collect(),
    };
    if chosen.is_empty() {
        let text = match number {
            None => "There is no open question here.".to_owned(),
            Some(number) => format!("There is no question {number} here."),
        };
        return core.tell(event, text).await;
    }
    let answering = questions::Answering {
        asked: &chosen,
        value,
        remembers,
    };
    core.answer(event, &session, answering).await
}

/// Answers the first question for values.
async fn give(core: &Core, event: &Event<'_>, lines: &str) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let asked = questions::of_session(&*core.store, &session).await?;
    let found = asked.iter().find_map(|it| match &it.kind {
        QuestionKind::Input { schema } => Some((it, schema)),
        _ => None,
    });
    let Some((asked, schema)) = found else {
        return core
            .tell(event, "No values are requested here.".to_owned())
            .await;
    };
    match filled(schema, lines) {
        Ok(value) => {
            let answering = questions::Answering {
                asked: std::slice::from_ref(asked),
                value,
                remembers: false,
            };
            core.answer(event, &session, answering).await
        }
        Err(why) => core.tell(event, format!("Not done: {why}")).await,
    }
}

/// Returns the value of a form that is filled in a line for each field, or why it is not.
fn filled(schema: &Value, lines: &str) -> Result<AnswerValue, String> {
    let Some(mut form) = Form::of(schema) else {
        return match serde_json::from_str(lines) {
            Ok(value) => Ok(AnswerValue::value(value)),
            Err(error) => Err(format!("the values are not JSON: {error}.")),
        };
    };
    let mut lines = lines.lines();
    loop {
        let field = form.prompt();
        let Some(line) = lines.next() else {
            return Err(format!("a line is missing for:\n{field}"));
        };
        match form.answer(line) {
            FormStep::Next(None) => {}
            FormStep::Next(Some(why)) => return Err(why),
            FormStep::Done(value) => return Ok(AnswerValue::value(value)),
            FormStep::Declined(reason) => {
                let reason = reason.to_owned();
                return Ok(AnswerValue::Deny { reason });
            }
        }
    }
}

async fn tell_usage(core: &Core, event: &Event<'_>) -> Result<InboxResult, MailboxError> {
    let session = event.chat.session();
    let first = first_session(&session);
    let today = core.service.usage(usage::midnight(), move |session| {
        first_session(session) == first
    });
    let text = match (core.session(&session).used().await, today.await) {
        (Ok(all), Ok(today)) => format!(
            "This conversation: {}.\nThis chat today: {}.",
            summed(&all),
            summed(&today)
        ),
        (Err(error), _) | (_, Err(error)) => format!("It is not known: {}.", error.line()),
    };
    core.tell(event, text).await
}

fn summed(sum: &UsageSum) -> String {
    format!(
        "{}, {}, {}",
        counted(sum.requests, "request"),
        tokens(sum.usage),
        dollars(sum.cost.usd())
    )
}

async fn skills(core: &Core, event: &Event<'_>, rest: String) -> Result<InboxResult, MailboxError> {
    let workspace = core.workspace();
    let work = tokio::task::spawn_blocking(move || crate::tools::skills_command(&workspace, &rest));
    let text = work.await;
    let text = text.unwrap_or_else(|error| format!("It is not known: {error}."));
    core.tell(event, text).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_what_is_said() {
        let parse = Command::parse;
        assert_eq!(parse("hello"), None);
        assert_eq!(parse("/etc/hosts is what?"), None);
        assert_eq!(parse("/"), None);
        assert_eq!(parse(" /new "), Some(Command::New));
        assert_eq!(parse("/reset"), Some(Command::New));
        assert_eq!(parse("/STOP@rondo_bot now"), Some(Command::Stop));
        let approve = |number, always| Some(Command::Approve { number, always });
        assert_eq!(parse("/approve"), approve(None, false));
        assert_eq!(parse("/approve 2"), approve(Some(2), false));
        assert_eq!(parse("/approve always"), approve(None, true));
        assert_eq!(parse("/approve 2 always"), approve(Some(2), true));
        let deny = |number, reason: &str| Some(Command::Deny(number, reason.to_owned()));
        assert_eq!(parse("/deny not now"), deny(None, "not now"));
        assert_eq!(parse("/deny 1 not now"), deny(Some(1), "not now"));
        assert_eq!(parse("/dance"), Some(Command::Unknown("dance".to_owned())));
        for (word, _) in COMMANDS {
            let command = parse(&format!("/{word}"));
            assert!(
                !matches!(command, None | Some(Command::Unknown(_))),
                "{word}"
            );
        }
    }
}

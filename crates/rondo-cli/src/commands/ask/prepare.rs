//! Settings, input and session of `rondo ask`, before anything is asked.

use super::input::read_input;
use super::parked::waits;
use crate::approver::TerminalApprover;
use crate::cli::{AskArgs, ColorChoice, OutputFormat};
use crate::commands::report::{current_dir, output_of};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::{Output, SharedOutput, has_person};
use crate::process_end;
use rondo_core::ports::Mail;
use rondo_core::session_store::SessionInfo;
use rondo_runtime::env::Env;
use rondo_runtime::secrets;
use rondo_runtime::service::OpenedSession;
use rondo_runtime::sessions::{Conversation, WatchedJournal, directory_name};
use rondo_runtime::settings::{Settings, Values};
use rondo_runtime::spec::{TurnSpec, is_same_model};
use rondo_runtime::tools;
use rondo_runtime::values::ApprovalMode;
use rondo_runtime::{Runtime, Session, SessionOptions, SessionSource};
use rondo_script::Init;
use rondo_types::{Message, SessionId};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Message to another model that continues a turn.
const GO_ON: &str = "Go on with this.";

/// Task of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskMode {
    /// Something new is asked.
    Ask,
    /// Resumes a turn that was cut off, and asks nothing else.
    Resume,
}

/// Everything that is known before anything is asked.
pub(super) struct PreparedAsk {
    pub(super) runtime: Runtime,
    pub(super) values: Values,
    pub(super) known: KnownSession,
    pub(super) output: Output,
    pub(super) format: OutputFormat,
    pub(super) answer_file: Option<PathBuf>,
    /// Set if no terminal holds it.
    pub(super) is_detached: bool,
}

/// The session's id, and what knows whether it is recorded.
#[derive(Clone)]
pub(super) struct KnownSession {
    pub(super) id: SessionId,
    pub(super) journal: Arc<WatchedJournal>,
}

/// The session, and the work in it.
pub(super) struct PreparedSession {
    pub(super) session: OpenedSession,
    pub(super) schema: Option<Value>,
    /// The turns that end before the one of the command begins: that which was cut off, and those of messages that wait.
    pub(super) earlier: usize,
}

/// Reads everything, and takes the session.
///
/// # Errors
/// When something cannot be read or is invalid, or the session cannot be opened.
pub(super) fn prepare(
    args: &AskArgs,
    mode: AskMode,
    env: Env,
    color: Option<ColorChoice>,
    early: Output,
) -> Result<(PreparedAsk, PreparedSession)> {
    let options = SessionOptions {
        directory: working_directory(args.turn.directory.as_deref())?,
        is_directory_named: args.turn.directory.is_some(),
    };
    let notices = SharedOutput::new(early);
    let runtime = Runtime::new(env, args.layer(), Arc::clone(&notices) as _);
    runtime.ask_about_folders(TerminalApprover::for_folders(runtime.env(), &early));
    let mut session = find(&runtime, args, mode, &options, &early)?;
    let output = output_of(&session.settings.values, &session.settings.env, color);
    notices.set(output);
    if mode == AskMode::Ask {
        // A turn that goes on has the limits that it began with.
        process_end::bound(session.settings.values.deadline.map(|it| it.0))?;
    }
    if let Some(init) = Init::load(&runtime, &session.settings, &(Arc::clone(&notices) as _))? {
        runtime.extend(init.extensions());
    }
    if mode == AskMode::Ask {
        session.keep_model()?;
    }
    let secrets = secrets::of_env(&session.settings);
    let asked = match mode {
        AskMode::Resume => None,
        AskMode::Ask => Some(asked(args, &session.settings, &output)?),
    };
    let (schema, message, spec) = match asked {
        Some(asked) => (asked.schema, Some(asked.message), Some(asked.spec)),
        None => (None, None, None),
    };
    let message = message.map(|message| secrets.message(message));
    let title = message.as_ref().map(Message::text).unwrap_or_default();
    session.open(title)?;
    if args.is_fork && mode == AskMode::Ask {
        session.leave_cut_off();
    }
    let (message, spec) = match left_to_other_model(&mut session, &output)? {
        true if mode == AskMode::Resume => {
            let spec = TurnSpec::of(&session.settings, &output)?;
            (Some(Message::user(GO_ON)), Some(spec))
        }
        _ => (message, spec),
    };
    if let Some(conversation) = session.conversation() {
        conversation.note_lost_end(&output);
        if may_go_on(conversation, &output) {
            session.allow_cut_off();
        }
    }
    keep_parking(&mut session, args.detached);
    let values = session.settings.values.clone();
    let (known, opened) = to_do(session, message.zip(spec), schema, &output)?;
    let prepared = PreparedAsk {
        format: values.output_format.unwrap_or(OutputFormat::Text),
        answer_file: args.output.clone(),
        is_detached: args.detached,
        values,
        runtime,
        known,
        output,
    };
    Ok((prepared, opened))
}

/// Finds the session that the arguments mean.
///
/// # Errors
/// When there is none, or it is of another directory and the user does not agree to that.
fn find(
    runtime: &Runtime,
    args: &AskArgs,
    mode: AskMode,
    options: &SessionOptions,
    early: &Output,
) -> Result<Session> {
    let source = source(args, mode);
    let mut found = runtime.find(&source, options)?;
    if source == SessionSource::Latest
        && let Some(info) = found.from_elsewhere(&options.directory)
    {
        let id = &info.id;
        let way = match mode {
            AskMode::Ask => format!("rondo ask --session {id} ..."),
            AskMode::Resume => format!("rondo resume {id}"),
        };
        agree_to_go_elsewhere(info, &options.directory, &way, early)?;
    }
    if args.is_fork {
        // Permissions given in the session that this is a fork of are asked about again.
        let values = &mut found.settings.values;
        values.yolo = args.turn.yolo.then_some(true);
        values.allowed_tools.clone_from(&args.turn.allowed_tools);
    }
    Ok(found)
}

/// Asks a person whether to continue the session of another directory there, if none was begun in this one. `way` is
/// the command that continues it without asking.
///
/// # Errors
/// When there is no user to agree, or they do not.
pub(crate) fn agree_to_go_elsewhere(
    info: &SessionInfo,
    here: &Path,
    way: &str,
    output: &Output,
) -> Result<()> {
    let (id, there, title) = (&info.id, &info.directory, &info.title);
    let here = directory_name(here);
    let question = format!(
        "No session was started in `{here}`. The latest one is `{id}` in `{there}`: \"{title}\".\nContinue it there?"
    );
    if has_person() && output.is_confirmed(&question) {
        return Ok(());
    }
    let message = format!("no session was started in `{here}`");
    Err(CliError::new(Exit::NoSession, message).hint(format!(
        "the latest one is in `{there}`: `{way}` continues it there"
    )))
}

/// Leaves a turn that was cut off to another model that the user has named: the one that it asked may be gone. Returns
/// whether it did. A turn that waits for answers stays, and so does one that came from a file.
///
/// # Errors
/// When that model is not known here.
fn left_to_other_model(session: &mut Session, output: &Output) -> Result<bool> {
    let conversation = session.conversation().filter(|it| !it.needs_consent);
    let cut_off = conversation.and_then(|it| it.cut_off.as_ref());
    let cut_off = cut_off.filter(|it| it.questions.is_empty() && session.settings.names_model());
    let Some(asked) = cut_off.and_then(|it| it.models.first()) else {
        return Ok(false);
    };
    let named = TurnSpec::of(&session.settings, output)?.target.full_name();
    if is_same_model(asked, &named) {
        return Ok(false);
    }
    output.note(&format!(
        "the last turn was cut off while it used `{asked}`; `{named}` continues from there"
    ));
    session.leave_cut_off();
    Ok(true)
}

/// Returns the turns to run in a session.
///
/// # Errors
/// When there is none, the session waits for answers, or the mailbox cannot be read.
fn to_do(
    mut session: Session,
    message: Option<(Message, TurnSpec)>,
    schema: Option<Value>,
    output: &Output,
) -> Result<(KnownSession, PreparedSession)> {
    if is_waiting(&session) {
        let message = message.map(|(message, _)| message);
        return Err(waits_or_queued(&mut session, message)?);
    }
    let conversation = session.begin(String::new())?;
    let known = KnownSession {
        id: conversation.session.clone(),
        journal: Arc::clone(&conversation.journal),
    };
    let mail = session.mail()?;
    let earlier = earlier(&session, &mail, output);
    if session.conversation().is_some_and(|it| it.needs_consent) {
        // Only a turn that was cut off and came from a file is refused.
        session.cut_off()?;
    }
    if earlier == 0 && message.is_none() {
        return Err(nothing_to_resume(&known.id));
    }
    let opened = PreparedSession {
        session: OpenedSession {
            session,
            mail,
            message,
        },
        schema,
        earlier,
    };
    Ok((known, opened))
}

/// Asks whether a turn that came from a file may continue, if there is such a turn and a user at the terminal.
fn may_go_on(conversation: &Conversation, output: &Output) -> bool {
    let Some(cut_off) = conversation
        .cut_off
        .as_ref()
        .filter(|_| conversation.needs_consent)
    else {
        return false;
    };
    let (session, models) = (&conversation.session, cut_off.models.join(", "));
    has_person() && output.is_confirmed(&format!(
        "Session `{session}` was imported, and its last turn was cut off. The author of the file chose its messages, its limits and its models ({models}).\nResume it?"
    ))
}

/// Something new that is asked.
struct NewQuestion {
    spec: TurnSpec,
    schema: Option<Value>,
    message: Message,
}

fn asked(args: &AskArgs, settings: &Settings, output: &Output) -> Result<NewQuestion> {
    let spec = TurnSpec::of(settings, output)?;
    for name in tools::unknown(&spec.profile, settings) {
        output.note(&format!(
            "no tool is named `{name}`, so this entry has no effect"
        ));
    }
    let timeout = spec.profile.limits.turn_timeout;
    let (schema, message) = read_input(
        args,
        &settings.directory,
        settings.mcp.names(),
        timeout,
        *output,
    )?;
    Ok(NewQuestion {
        spec,
        schema,
        message,
    })
}

/// Counts the turns that come before that of the command, and says so if one was cut off.
fn earlier(session: &Session, mail: &[Mail], output: &Output) -> usize {
    let conversation = session.conversation();
    let cut_off = conversation.and_then(|it| Some((&it.session, it.cut_off.as_ref()?)));
    if let Some((id, cut_off)) = cut_off {
        let stands = match cut_off.questions.is_empty() {
            true => "was cut off",
            false => "was waiting for an answer",
        };
        output.note(&format!(
            "the last turn of session `{id}` {stands} and is resumed"
        ));
    }
    let queued = mail.iter().filter(|it| it.body.is_message());
    usize::from(cut_off.is_some()) + queued.count()
}

fn nothing_to_resume(session: &SessionId) -> CliError {
    let message = format!("session `{session}` has no turn to resume");
    let hint = format!("`rondo ask --session {session} ...` starts a new turn");
    CliError::new(Exit::NoSession, message).hint(hint)
}

/// Parks a turn if it asks something and no user is here: a detached one, and one that was parked before and
/// continues without a terminal. The settings may say otherwise.
fn keep_parking(session: &mut Session, is_detached: bool) {
    let cut_off = session.conversation().and_then(|it| it.cut_off.as_ref());
    let was_parked = cut_off.is_some_and(|it| it.was_parked);
    let approval = &mut session.settings.values.approval;
    if is_detached || was_parked && !has_person() {
        approval.get_or_insert(ApprovalMode::Park);
    }
}

/// Returns whether the session's turn could only wait again: it has open questions, and no user is at a terminal to
/// answer.
fn is_waiting(session: &Session) -> bool {
    let open = session.open_questions();
    let can_answer = match session.settings.values.approval {
        Some(ApprovalMode::Deny) => true,
        Some(ApprovalMode::Park) => false,
        Some(ApprovalMode::Ask | ApprovalMode::Auto) | None => has_person(),
    };
    let is_allowed = session.settings.values.yolo == Some(true);
    !open.is_empty() && !can_answer && !is_allowed
}

/// Queues a message to a session that waits, if there is one, and returns the note for the user.
fn waits_or_queued(session: &mut Session, message: Option<Message>) -> Result<CliError> {
    let is_queued = message.is_some();
    if let Some(message) = message {
        // On a thread that may block.
        Handle::current().block_on(session.submit(message))?;
    }
    let id = session.info()?.id;
    Ok(waits(&id, &session.open_questions(), is_queued))
}

/// Returns the session that the arguments select.
pub(crate) fn source(args: &AskArgs, mode: AskMode) -> SessionSource {
    match &args.turn.session {
        Some(id) => SessionSource::Id(id.clone()),
        None if mode == AskMode::Resume || args.turn.continue_latest => SessionSource::Latest,
        None => SessionSource::New,
    }
}

/// Returns the directory that is worked in: the one that is named, or the process's own.
///
/// # Errors
/// When it is none.
pub(crate) fn working_directory(named: Option<&Path>) -> Result<PathBuf> {
    let Some(named) = named else {
        let hint = "`cd` to a directory that exists, or name one by its absolute path: `-C DIR`";
        return current_dir().map_err(|error| error.hint(hint));
    };
    let directory = match named.is_absolute() {
        true => named.to_owned(),
        false => current_dir()?.join(named),
    };
    if directory.is_dir() {
        return Ok(directory);
    }
    Err(CliError::new(
        Exit::Input,
        format_args!("`{}` is not a directory", named.display()),
    ))
}

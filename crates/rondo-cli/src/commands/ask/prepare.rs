use super::input::read_input;
use crate::cli::{AskArgs, ColorChoice, OutputFormat};
use crate::commands::run::{current_dir, output_of};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::sanitize;
use rondo_core::redact::Secrets;
use rondo_journal::{SessionInfo, Store};
use rondo_runtime::SetupError;
use rondo_runtime::calls;
use rondo_runtime::env::Env;
use rondo_runtime::plan::{TurnPlan, go_on_with};
use rondo_runtime::secrets;
use rondo_runtime::sessions::{self, Conversation, CutOff, LastAsked};
use rondo_runtime::settings::Settings;
use rondo_runtime::tools;
use rondo_types::Message;
use rustix::termios::isatty;
use serde_json::Value;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// Bytes of a typed answer.
const ANSWER_BYTES_MAX: u64 = 4096;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum AskMode {
    /// Something new is asked.
    Ask,
    /// What was cut off is carried on, and nothing else.
    Resume,
}

/// Everything that is known before anything is asked.
pub(super) struct Prepared {
    pub(super) settings: Settings,
    pub(super) output: Output,
    pub(super) format: OutputFormat,
    pub(super) schema: Option<Value>,
    pub(super) answer_file: Option<PathBuf>,
    pub(super) secrets: Secrets,
    pub(super) conversation: Conversation,
    /// The turns to run, in order: one, or two where something was cut off.
    pub(super) turns: Vec<Planned>,
}

/// One turn to run.
pub(super) struct Planned {
    pub(super) plan: TurnPlan,
    pub(super) work: TurnStart,
}

/// What a turn begins with.
pub(crate) enum TurnStart {
    /// A message.
    Message(Box<Message>),
    /// What is recorded of it.
    CutOff(Box<CutOff>),
}

impl TurnStart {
    /// Returns the same work, with these secrets kept out of what is asked: the key of who answers is
    /// known only once it is built.
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        match self {
            Self::Message(message) => Self::Message(Box::new(secrets.message(*message))),
            Self::CutOff(cut_off) => Self::CutOff(cut_off),
        }
    }
}

/// Reads everything, and takes the session.
///
/// # Errors
/// When something cannot be read or makes no sense, or the session cannot be had.
pub(super) fn prepare(
    args: &AskArgs,
    mode: AskMode,
    env: Env,
    color: Option<ColorChoice>,
    early: Output,
) -> Result<Prepared> {
    let directory = working_directory(args.turn.directory.as_deref())?;
    let mut settings = Settings::load(env.clone(), directory, args.layer(), &early)?;
    let place = Place::find(args, mode, &settings)?;
    if let Some(own) = place.directory(args, &settings)? {
        settings = Settings::load(env, own, args.layer(), &early)?;
    }
    if args.is_fork {
        // What was allowed in the session that this is a fork of is asked about again.
        settings.values.yolo = args.turn.yolo.then_some(true);
        settings
            .values
            .allowed_tools
            .clone_from(&args.turn.allowed_tools);
    }
    let output = output_of(&settings.values, &settings.env, color);
    if let (AskMode::Ask, Some(last)) = (mode, place.asked()?) {
        go_on_with(&last, &mut settings, &output)?;
    }
    let secrets = secrets::of_env(&settings);
    let asked = match mode {
        AskMode::Resume => None,
        AskMode::Ask => Some(asked(args, &settings, &output)?),
    };
    let (schema, message, plan) = match asked {
        Some(asked) => (asked.schema, Some(asked.message), Some(asked.plan)),
        None => (None, None, None),
    };
    let message = message.map(|message| secrets.message(message));
    let title = message.as_ref().map(Message::text).unwrap_or_default();
    let mut conversation = place.conversation(&settings, title)?;
    let mut carried = match mode {
        AskMode::Ask if args.is_fork => conversation.leave_open_turn(),
        _ => conversation.cut_off.take(),
    };
    conversation.note_lost_end(&output);
    if let Some(cut_off) = &mut carried {
        ask_for_consent(cut_off, &conversation, &output);
    }
    let turns = planned(
        carried,
        plan.zip(message),
        &conversation,
        &settings,
        &output,
    )?;
    Ok(Prepared {
        format: settings.values.output_format.unwrap_or(OutputFormat::Text),
        answer_file: args.output.clone(),
        settings,
        output,
        schema,
        secrets,
        conversation,
        turns,
    })
}

/// Asks whether a turn that came from a file may go on, where somebody sits at a terminal.
fn ask_for_consent(cut_off: &mut CutOff, conversation: &Conversation, output: &Output) {
    let has_terminal = isatty(io::stdin()) && isatty(io::stderr());
    if !(cut_off.needs_consent && has_terminal) {
        return;
    }
    let (session, models) = (&conversation.session, cut_off.models.join(", "));
    output.stderr(&sanitize::plain(&format!(
        "Session `{session}` was imported, and its last turn was cut off. Whoever wrote the file chose \
         its messages, its limits and its models ({models}).\nCarry it on? [y/N, then Enter] "
    )));
    let mut answer = String::new();
    let read = io::stdin()
        .lock()
        .take(ANSWER_BYTES_MAX)
        .read_line(&mut answer);
    cut_off.needs_consent = !(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"));
}

/// Something new that is asked.
struct Asked {
    plan: TurnPlan,
    schema: Option<Value>,
    message: Message,
}

fn asked(args: &AskArgs, settings: &Settings, output: &Output) -> Result<Asked> {
    let plan = TurnPlan::of(settings, output)?;
    for name in tools::unknown(&plan.profile, settings) {
        output.note(&format!(
            "no tool is named `{name}`, so nothing is allowed or forbidden by it"
        ));
    }
    let timeout = plan.profile.limits.turn_timeout;
    let (schema, message) = read_input(args, &settings.directory, timeout, *output)?;
    Ok(Asked {
        plan,
        schema,
        message,
    })
}

fn planned(
    carried: Option<Box<CutOff>>,
    new: Option<(TurnPlan, Message)>,
    conversation: &Conversation,
    settings: &Settings,
    output: &Output,
) -> Result<Vec<Planned>> {
    let mut turns = Vec::new();
    if let Some(cut_off) = carried {
        output.note(&format!(
            "the last turn of session `{}` was cut off and is carried on",
            conversation.session
        ));
        turns.push(Planned {
            plan: TurnPlan::of_cut_off(&cut_off, settings, output)?,
            work: TurnStart::CutOff(cut_off),
        });
    }
    if let Some((plan, message)) = new {
        let work = TurnStart::Message(Box::new(message));
        turns.push(Planned { plan, work });
    }
    if turns.is_empty() {
        let session = &conversation.session;
        let message = format!("no turn of session `{session}` was cut off");
        let hint = format!("`rondo ask --session {session} ...` says something new in it");
        return Err(CliError::new(Exit::NoSession, message).hint(hint));
    }
    Ok(turns)
}

/// Where the session is, before it is taken.
enum Place {
    Nowhere,
    /// A new one, in a journal that is being opened: that takes a moment, in which other things are
    /// read.
    New(JoinHandle<Result<Store, SetupError>>),
    Known(Store, Box<SessionInfo>),
}

impl Place {
    fn find(args: &AskArgs, mode: AskMode, settings: &Settings) -> Result<Self> {
        let goes_on =
            mode == AskMode::Resume || args.turn.continue_latest || args.turn.session.is_some();
        if !goes_on {
            if settings.values.ephemeral == Some(true) {
                return Ok(Self::Nowhere);
            }
            let settings = settings.clone();
            let opening = thread::Builder::new()
                .name("journal".to_owned())
                .spawn(move || sessions::open(&settings));
            return opening.map(Self::New).map_err(no_thread);
        }
        if settings.values.ephemeral == Some(true) {
            let message = "a session that goes on cannot be ephemeral";
            return Err(CliError::new(Exit::Usage, message));
        }
        let store = sessions::open(settings)?;
        let info = match &args.turn.session {
            Some(text) => sessions::find(&store, text)?,
            None => sessions::latest(&store, &settings.directory)?,
        };
        Ok(Self::Known(store, Box::new(info)))
    }

    /// Returns the session's own directory, where that is another one and nobody named any.
    ///
    /// # Errors
    /// When it is gone.
    fn directory(&self, args: &AskArgs, settings: &Settings) -> Result<Option<PathBuf>> {
        match self {
            Self::Known(_, info) if args.turn.directory.is_none() => {
                Ok(sessions::own_directory(info, &settings.directory)?)
            }
            _ => Ok(None),
        }
    }

    /// Returns whom the session's latest turn asked, where it goes on.
    ///
    /// # Errors
    /// When its records cannot be read.
    fn asked(&self) -> Result<Option<LastAsked>> {
        match self {
            Self::Known(store, info) => Ok(LastAsked::last(store, info)?),
            _ => Ok(None),
        }
    }

    fn conversation(self, settings: &Settings, title: String) -> Result<Conversation> {
        let (store, begun) = match self {
            Self::Nowhere => return Ok(Conversation::ephemeral()),
            Self::New(opening) => {
                let lost = |_| CliError::new(Exit::Error, "the journal's thread panicked");
                let store = opening.join().map_err(lost)??;
                let begun = Conversation::begin(&store, &settings.directory, title);
                (store, begun?)
            }
            Self::Known(store, info) => {
                let taken = Conversation::take(&store, &info);
                (store, taken?)
            }
        };
        calls::prune(&settings.paths, &begun.session, &store);
        Ok(begun)
    }
}

fn no_thread(err: std::io::Error) -> CliError {
    let context = "failed to start a thread";
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}

/// Returns the directory that is worked in: the one that is named, or the process's own.
///
/// # Errors
/// When it is none.
pub(crate) fn working_directory(named: Option<&Path>) -> Result<PathBuf> {
    let current = current_dir()?;
    let Some(named) = named else {
        return Ok(current);
    };
    let directory = current.join(named);
    if directory.is_dir() {
        return Ok(directory);
    }
    Err(CliError::new(
        Exit::Input,
        format_args!("`{}` is not a directory", named.display()),
    ))
}

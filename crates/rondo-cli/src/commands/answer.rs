//! `rondo answer`: answers a question that a session waits with, and lets the session continue.

use super::ask::{self, AskCommand, AskMode};
use super::editor;
use super::report::{current_dir, print_early_result};
use crate::cli::{AnswerArgs, ColorChoice, OutputFormat};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use rondo_hub::chats::Chats;
use rondo_hub::exclusive::is_served;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::error::{SetupError, SetupErrorKind};
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::parking::{self, ParkedSession};
use rondo_runtime::settings::Settings;
use rondo_tui::question::{Remember, shown_change};
use rondo_types::{AnswerValue, Grant, Question, QuestionKind};
use rustix::termios::isatty;
use serde_json::Value;
use std::io::{self, BufRead as _, Write as _};
use std::sync::Arc;

/// The bound on edited arguments, in bytes.
const ARGUMENTS_BYTES_MAX: u64 = 1 << 20;

/// Runs the command.
///
/// # Errors
/// When the session does not wait for that answer, or the answer makes no sense.
pub(super) fn run(
    args: AnswerArgs,
    env: Env,
    color: Option<ColorChoice>,
    format: OutputFormat,
    output: &Output,
) -> Result<Exit> {
    let session = answered(&args, &env, output).inspect_err(|error| {
        print_early_result(error, format, output);
    })?;
    let Some(session) = session else {
        return Ok(Exit::Answer);
    };
    Ok(ask::run(AskCommand {
        args: args.options.going_on(Some(session)),
        mode: AskMode::Resume,
        env,
        color,
        format,
    }))
}

/// Keeps the answer, and returns the session if it can continue; `None` if another process continues it.
fn answered(args: &AnswerArgs, env: &Env, output: &Output) -> Result<Option<String>> {
    let settings = Settings::load(env.clone(), current_dir()?, Layer::default(), output)?;
    let mut parked = ParkedSession::find(&settings, &args.waiting)?;
    if parked.is_answered {
        output.note(&format!(
            "session `{}` was already answered and continues with that answer",
            parked.session
        ));
    } else {
        let (question, word) = chosen(&parked, &args.words)?;
        let remember = remembered(word, question, &UserPolicy::of(&settings.paths), output)?;
        let value = match remember {
            Some(_) => AnswerValue::Approve,
            None => value(word, args, question, &parked, env)?,
        };
        let question = question.clone();
        let mut answer = question.answered(&parking::user(env), value);
        answer.remember = remember;
        let runtime = executor::of_this_thread()?;
        runtime.block_on(parked.answer(answer))?;
        if runtime.block_on(parked.is_taken(&question))? {
            let session = &parked.session;
            output.note(&format!(
                "the process that runs session `{session}` continues with the answer"
            ));
            return Ok(None);
        }
    }
    let session = parked.session.to_string();
    if parked.open.is_empty() {
        if executor::of_this_thread()?.block_on(is_of_chat(&parked))? {
            // The gateway knows the tools of whoever asked, and sends the reply.
            output.note(&match is_served(&settings.paths.sessions()) {
                true => format!("the gateway goes on with session `{session}`"),
                false => format!(
                    "the answer is kept: session `{session}` goes on with it once `rondo serve` runs"
                ),
            });
            return Ok(None);
        }
        if parked.goes_on()? {
            return Ok(Some(session));
        }
        output.note(&format!(
            "the answer is saved and applies from the next turn of session `{session}`"
        ));
        return Ok(None);
    }
    let waits = format!(
        "the answer is saved; session `{session}` {}",
        ask::waiting(&parked.open)
    );
    Err(CliError::new(Exit::Parked, waits))
}

/// Returns whether the session is one of a gateway's chats.
async fn is_of_chat(parked: &ParkedSession) -> Result<bool> {
    let chats = Chats::new(Arc::clone(parked.store()) as _);
    let chat = chats.of_session(&parked.session).await;
    let failed = |error| {
        let context = "failed to read what the gateway notes";
        SetupError::because(SetupErrorKind::Journal, context, error)
    };
    Ok(chat.map_err(failed)?.is_some())
}

/// Returns what an answer lets run beside the call, once the user agreed to the change of their rules that it takes.
fn remembered(
    word: &str,
    question: &Question,
    policy: &UserPolicy,
    output: &Output,
) -> Result<Option<Grant>> {
    let grant = match Remember::chosen_by(word, &question.offers) {
        Some(Remember::InSession(grant)) => return Ok(Some(grant)),
        Some(Remember::ForEver(grant)) => grant,
        None => return Ok(None),
    };
    if !isatty(io::stdin()) {
        let message = "the change to your rules cannot be shown without a terminal";
        let hint =
            "to allow it in this session only, use `a` instead of `f`, or `x` instead of `fx`"
                .to_owned();
        return Err(CliError::new(Exit::ApprovalNeeded, message).hint(hint));
    }
    let change = policy.with(&grant)?;
    let diff = shown_change(&change);
    output.stderr(&format!("{diff}Write this and run it? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if !(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")) {
        return Err(CliError::new(
            Exit::ApprovalNeeded,
            "nothing was written, and the question stays open",
        ));
    }
    change.save()?;
    output.note(&format!("written to `{}`", change.path().display()));
    Ok(Some(grant))
}

/// Returns the question that is meant, and the word that answers it.
fn chosen<'a>(parked: &'a ParkedSession, words: &'a [String]) -> Result<(&'a Question, &'a str)> {
    let (name, word) = match words {
        [name, word] => (Some(name), word),
        [word, ..] => (None, word),
        [] => return Err(CliError::new(Exit::Usage, "there is no answer")),
    };
    let open = &parked.open;
    let found = match (name, open.as_slice()) {
        (Some(name), _) => open.iter().find(|it| it.id.0 == **name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    found.map(|it| (it, word.as_str())).ok_or_else(|| {
        let message = match name {
            Some(name) => format!("there is no open question `{name}`; the open questions are:"),
            None => "several questions are open:".to_owned(),
        };
        let hint = format!("`rondo answer {} QUESTION y`", parked.session);
        CliError::new(Exit::Usage, format!("{message}{}", ask::listed(open))).hint(hint)
    })
}

fn value(
    word: &str,
    args: &AnswerArgs,
    question: &Question,
    parked: &ParkedSession,
    env: &Env,
) -> Result<AnswerValue> {
    let reason = args.reason.clone();
    let value = match word {
        "y" | "yes" => AnswerValue::Approve,
        "n" | "no" => {
            let denied = |reason| AnswerValue::Deny { reason };
            return Ok(reason.map_or_else(AnswerValue::no, denied));
        }
        "edit" => edited(&parked.arguments(question), env)?,
        json => read_arguments(json)?,
    };
    if reason.is_some() {
        let message = "`--reason` requires the answer `n`";
        return Err(CliError::new(Exit::Usage, message));
    }
    let is_value = matches!(value, AnswerValue::Value { .. });
    if let (QuestionKind::Input { schema }, false) = (&question.kind, is_value) {
        let message = "the question asks for a value";
        let hint = format!("answer with a JSON object that fits {schema}, or `n`");
        return Err(CliError::new(Exit::Usage, message).hint(hint));
    }
    if is_value && let Some(message) = takes_no_value(&question.kind) {
        return Err(CliError::new(Exit::Usage, message).hint("answer with `y` or `n`"));
    }
    Ok(value)
}

fn takes_no_value(kind: &QuestionKind) -> Option<&'static str> {
    match kind {
        QuestionKind::Repeat => {
            Some("a call that was cut off can only run again unchanged, or not at all")
        }
        QuestionKind::Permission => Some("this question of a running call takes only yes or no"),
        QuestionKind::Trust => Some("a question about trust takes only yes or no"),
        QuestionKind::Budget => Some("a question about a budget takes only yes or no"),
        _ => None,
    }
}

fn read_arguments(json: &str) -> Result<AnswerValue> {
    match serde_json::from_str(json) {
        Ok(value @ Value::Object(_)) => Ok(AnswerValue::value(value)),
        _ => {
            let message = format!("`{json}` is not an answer");
            let hint = "answer with `y`, `n`, `edit`, `a` or `x` if the question offers it, or a JSON object with the arguments to run the call with";
            Err(CliError::new(Exit::Usage, message).hint(hint))
        }
    }
}

/// Lets the user change the arguments of a call in their editor.
fn edited(arguments: &Value, env: &Env) -> Result<AnswerValue> {
    let failed = |err: std::io::Error| {
        let context = "failed to open the arguments in an editor";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    };
    let mut file = tempfile::Builder::new();
    let mut file = file
        .prefix("arguments-")
        .suffix(".json")
        .tempfile()
        .map_err(failed)?;
    writeln!(file, "{arguments:#}").map_err(failed)?;
    editor::edit(env, file.path())?;
    let size = std::fs::metadata(file.path()).map_err(failed)?.len();
    if size > ARGUMENTS_BYTES_MAX {
        return Err(CliError::new(
            Exit::Input,
            "the arguments are larger than a megabyte",
        ));
    }
    let text = std::fs::read_to_string(file.path()).map_err(failed)?;
    read_arguments(text.trim())
}

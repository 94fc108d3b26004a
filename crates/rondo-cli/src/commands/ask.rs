//! `rondo ask`: one question, one turn, one answer.

use super::run::{current_dir, fresh_id, output_of, print_early_result, report, write_failed};
use crate::approver::TerminalApprover;
use crate::cli::{AskArgs, ColorChoice, OutputFormat};
use crate::env::Env;
use crate::error::{CliError, Result};
use crate::exit::{Circumstances, Exit, Stop};
use crate::output::Output;
use crate::prompt::{self, Prompt};
use crate::render::{JsonView, TextView, View};
use crate::screen::Screen;
use crate::settings::Settings;
use crate::target::Choice;
use crate::telemetry::Telemetry;
use crate::turn_loop::{self, Ended, Signals};
use crate::{embedded, fallbacks, profiles, tools, transport};
use rondo_core::clock::Clock;
use rondo_core::events;
use rondo_core::ports::MemoryJournal;
use rondo_core::{Model, TurnSetup, control, run_turn};
use rondo_schema::Validator;
use rondo_types::{
    ErrorClass, Message, ModelError, Outcome, Profile, SessionId, StopReason, TurnId,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::Builder;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The bound on a schema file, in bytes.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

/// Runs the command; `format` is what the arguments announced before they were parsed.
pub(super) fn run(
    args: AskArgs,
    env: Env,
    color: Option<ColorChoice>,
    format: OutputFormat,
) -> Exit {
    let early = Output::detect(&env, color, args.quiet);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(prepare_and_ask(args, env, color, early, format));
            // Blocking work that ignores its cancellation must not keep the process.
            runtime.shutdown_background();
            done
        }
        Err(err) => {
            let context = "failed to start the runtime";
            let error = CliError::caused(Exit::Error, anyhow::Error::new(err).context(context));
            Err(Early { error, format })
        }
    };
    result.unwrap_or_else(|early_end| {
        print_early_result(&early_end.error, early_end.format, &early);
        report(&early_end.error, &early)
    })
}

/// Reads what the turn needs beside the signals, so that one of them ends with a result too.
async fn prepare_and_ask(
    args: AskArgs,
    env: Env,
    color: Option<ColorChoice>,
    early: Output,
    format: OutputFormat,
) -> Result<Exit, Early> {
    let mut signals = Signals::listen();
    let preparing = spawn_blocking(move || prepare(&args, env, color, early));
    let prepared = tokio::select! {
        biased;
        stop = signals.next() => Err(stopped_early(stop)),
        prepared = preparing => prepared.unwrap_or_else(|err| {
            Err(CliError::caused(Exit::Error, anyhow::Error::new(err)))
        }),
    };
    let prepared = prepared.map_err(|error| Early { error, format })?;
    let format = prepared.format;
    let limit = prepared.profile.limits.turn_timeout;
    let model = tokio::select! {
        biased;
        stop = signals.next() => Err(stopped_early(stop)),
        model = model(&prepared, limit) => model,
    };
    let done = match model {
        Ok(model) => ask(prepared, model).await,
        Err(error) => Err(error),
    };
    done.map_err(|error| Early { error, format })
}

fn stopped_early(stop: Stop) -> CliError {
    CliError::new(Exit::of_stop(stop), "stopped before anything was asked")
}

/// A failure before the turn, and what standard output is to carry.
struct Early {
    error: CliError,
    format: OutputFormat,
}

/// Everything that is known before anything is asked.
struct Prepared {
    settings: Settings,
    output: Output,
    format: OutputFormat,
    message: Message,
    profile: Profile,
    choice: Choice,
    fallbacks: Vec<Choice>,
    tool_names: Vec<String>,
    schema: Option<Value>,
    answer_file: Option<PathBuf>,
}

impl Prepared {
    /// Returns all who may be asked.
    fn choices(&self) -> impl Iterator<Item = &Choice> {
        std::iter::once(&self.choice).chain(&self.fallbacks)
    }

    /// Returns the variables that may hold a key.
    fn key_variables(&self) -> Vec<String> {
        let variables = self.choices().flat_map(Choice::key_variables);
        variables.cloned().collect()
    }

    /// Returns who was asked last.
    fn asked(&self, outcome: &Outcome) -> &Choice {
        let name = outcome.model.as_deref();
        self.choices()
            .find(|choice| Some(choice.full_name().as_str()) == name)
            .unwrap_or(&self.choice)
    }
}

fn prepare(
    args: &AskArgs,
    env: Env,
    color: Option<ColorChoice>,
    early: Output,
) -> Result<Prepared> {
    let directory = working_directory(args.directory.as_deref())?;
    let settings = Settings::load(env, directory, args, &early)?;
    let output = output_of(&settings.values, &settings.env, color);
    let choice = Choice::make(&settings)?;
    let profile = profiles::resolve(&settings, profile_name(&choice, &settings))?.profile;
    check_dialect(&profile)?;
    let tool_names = tools::wanted(&profile, &settings);
    choice.check(&profile, tool_names.len())?;
    let fallbacks = fallbacks::choose(&choice, &profile, tool_names.len(), &settings, &output)?;
    for name in tools::unknown(&profile, &settings) {
        output.note(&format!(
            "no tool is named `{name}`, so nothing is allowed or forbidden by it"
        ));
    }
    let (schema, prompt) = read_input(args, &settings.directory, profile.limits.turn_timeout)?;
    if let Some(note) = prompt.note {
        output.note(note);
    }
    Ok(Prepared {
        format: settings.values.output_format.unwrap_or(OutputFormat::Text),
        message: prompt.message,
        answer_file: args.output.clone(),
        settings,
        output,
        profile,
        choice,
        fallbacks,
        tool_names,
        schema,
    })
}

/// Reads what the turn begins with, within the time that a turn has: a pipe or a terminal among the
/// files may never end.
fn read_input(
    args: &AskArgs,
    directory: &Path,
    timeout: Option<Duration>,
) -> Result<(Option<Value>, Prompt)> {
    let schema_file = args.output_schema.as_ref().map(|path| directory.join(path));
    let (words, directory) = (args.prompt.clone(), directory.to_owned());
    let read = move || {
        let schema = schema_file.as_deref().map(read_schema).transpose()?;
        Ok((schema, prompt::read(&words, &directory)?))
    };
    let Some(timeout) = timeout else {
        return read();
    };
    let (read_tx, read_rx) = mpsc::sync_channel(1);
    let spawned = Builder::new().name("input".to_owned()).spawn(move || {
        // Nobody waits any more only when the process is about to end.
        let _ = read_tx.send(read());
    });
    spawned.map_err(|err| {
        let context = "failed to start a thread";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })?;
    read_rx.recv_timeout(timeout).unwrap_or_else(|_| {
        let message = "the deadline came before the input was read to its end";
        Err(CliError::new(Exit::Deadline, message)
            .hint("is something writing to standard input and to the files that are named?"))
    })
}

fn working_directory(named: Option<&Path>) -> Result<PathBuf> {
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

/// A small model needs limits and words of its own, unless the user chooses others.
fn profile_name<'a>(choice: &Choice, settings: &'a Settings) -> &'a str {
    match (&settings.values.profile, &choice.weights) {
        (None, Some(_)) => embedded::PROFILE,
        _ => settings.profile_name(),
    }
}

/// A design's own dialect may be newer than this program; any other is the caller's to choose.
fn check_dialect(profile: &Profile) -> Result<()> {
    let Some(dialect) = &profile.dialect else {
        return Ok(());
    };
    if rondo_wire::dialect(dialect).is_some() {
        return Ok(());
    }
    let name = &profile.name;
    Err(CliError::new(
        Exit::Config,
        format_args!("profile `{name}` speaks the dialect `{dialect}`, which this version does not have"),
    )
    .hint(format!(
        "choose another profile with `--profile`, or set `dialect` and `system_prompt` under `[profiles.{name}]` in the configuration; the dialects are: {}",
        rondo_wire::dialect_names().join(", ")
    )))
}

fn read_schema(path: &Path) -> Result<Value> {
    let context = || format!("failed to read the schema `{}`", path.display());
    let size = std::fs::metadata(path).map(|meta| meta.len());
    let text = size.and_then(|size| {
        if size > SCHEMA_BYTES_MAX {
            return Err(std::io::Error::other("it is larger than a megabyte"));
        }
        std::fs::read_to_string(path)
    });
    let text = text
        .map_err(|err| CliError::caused(Exit::Input, anyhow::Error::new(err).context(context())))?;
    let schema = serde_json::from_str(&text)
        .map_err(|err| CliError::caused(Exit::Input, anyhow::Error::new(err).context(context())))?;
    Validator::new(&schema)
        .map_err(|err| CliError::caused(Exit::Input, anyhow::Error::new(err).context(context())))?;
    Ok(schema)
}

/// Finds what the model needs, a key or its weights, and builds it.
async fn model(prepared: &Prepared, limit: Option<Duration>) -> Result<Arc<dyn Model>> {
    let Prepared {
        settings,
        output,
        profile,
        choice,
        ..
    } = prepared;
    if let Some(weights) = embedded::prepare(choice, settings, output).await? {
        return embedded::model(choice, weights);
    }
    let key = key_in_time(choice, settings, limit).await?;
    let dialect = choice.dialect_under(profile);
    let model = transport::http_model(choice, key, dialect, profile.streaming, settings)?;
    Ok(Arc::new(model))
}

async fn ask(prepared: Prepared, model: Arc<dyn Model>) -> Result<Exit> {
    let Prepared {
        settings,
        output,
        profile,
        choice,
        ..
    } = &prepared;
    let now = Clock::system().now();
    let id = fresh_id(now);
    let session = SessionId::new(format!("s-{id}"));
    let keys = prepared.key_variables();
    let offer = tools::offer(&prepared.tool_names, &keys, settings, &session)?;
    if !offer.missing.is_empty() {
        output.note(&format!(
            "profile `{}` names tools that this version does not have: {}",
            profile.name,
            offer.missing.join(", ")
        ));
    }
    tracing::info!(
        model = choice.full_name(),
        base_url = choice.shown_url(),
        profile = profile.name,
        tools = offer.tools.specs().len(),
        "asking"
    );
    let screen = Screen::new();
    let approver = Arc::new(TerminalApprover::new(&settings.env, screen.clone()));
    let setup = TurnSetup {
        session,
        turn: TurnId::new(format!("t-{id}")),
        turn_number: 1,
        model,
        fallbacks: fallbacks::models(&prepared.fallbacks, profile, settings)?,
        gate: tools::gate(&offer, profile, settings)?,
        tools: offer.tools,
        approver: Arc::clone(&approver) as _,
        journal: Arc::new(MemoryJournal::default()),
        profile: Arc::new(profile.clone()),
        system: system_prompt(profile, settings),
        response_schema: prepared.schema.clone(),
        seed: now.0,
    };
    let (events_tx, events_rx) = events::channel(setup.session.clone(), setup.turn.clone());
    let telemetry = Telemetry::start(&settings.env, output).await;
    let events_tx = telemetry.observe(events_tx);
    let view = view(prepared.format, prepared.output, screen);
    let (handle, turn_control) = control();
    let message = prepared.message.clone();
    let turn = run_turn(setup, Vec::new(), message, events_tx, turn_control);
    let (outcome, ended) = tokio::join!(turn, turn_loop::show(events_rx, view, handle));
    let ended = ended.map_err(|err| {
        let context = "failed to start a thread";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })?;
    let exit = finish(outcome, ended, &approver, &prepared).await;
    telemetry.finish().await;
    exit
}

/// Finds the key within the time that a turn has: the command that prints it may wait for somebody.
async fn key_in_time(
    choice: &Choice,
    settings: &Settings,
    limit: Option<Duration>,
) -> Result<Option<String>> {
    let finding = choice.key(settings);
    let Some(limit) = limit else {
        return finding.await;
    };
    timeout(limit, finding).await.unwrap_or_else(|_| {
        let message = "the deadline came before the `api_key_command` printed the key";
        Err(CliError::new(Exit::Deadline, message))
    })
}

fn system_prompt(profile: &Profile, settings: &Settings) -> Vec<String> {
    let own = profile.system_prompt.clone();
    let appended = settings.values.append_system_prompt.clone();
    own.into_iter()
        .chain(appended)
        .filter(|block| !block.trim().is_empty())
        .collect()
}

fn view(format: OutputFormat, output: Output, screen: Screen) -> Box<dyn View> {
    match format {
        OutputFormat::Text => Box::new(TextView::new(output, screen)),
        OutputFormat::Json => Box::new(JsonView::new(output, false)),
        OutputFormat::StreamJson => Box::new(JsonView::new(output, true)),
    }
}

async fn finish(
    outcome: Outcome,
    mut ended: Ended,
    approver: &TerminalApprover,
    prepared: &Prepared,
) -> Result<Exit> {
    let circumstances = Circumstances {
        strict_complete: prepared.settings.values.strict_complete == Some(true),
        approval_missing: approver.was_missing(),
        stopped_by: ended.stopped_by,
    };
    let mut exit = Exit::of_outcome(&outcome, circumstances);
    // Before the result is shown, which says how the process ends.
    let unwritten = match prepared.answer_file.clone() {
        Some(path) => {
            let text = outcome.text.clone();
            let written = ended.block_on(move || write_answer(&path, &text)).await;
            written.map_err(write_failed).flatten().err()
        }
        None => None,
    };
    if let Some(error) = &unwritten {
        exit = error.exit;
    }
    let (outcome, shown) = ended.finish(outcome, exit).await;
    match shown {
        Err(err) if err.kind() == std::io::ErrorKind::BrokenPipe => return Ok(exit),
        shown => shown.map_err(write_failed)?,
    }
    explain(&outcome, exit, circumstances, prepared);
    if let Some(error) = &unwritten {
        prepared.output.error(error);
    }
    tracing::info!(
        stop_reason = outcome.stop_reason.as_str(),
        steps = outcome.steps,
        tool_calls = outcome.tool_calls,
        elapsed_ms = outcome.elapsed_ms,
        "done"
    );
    Ok(exit)
}

fn write_answer(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|err| {
        let context = format!("failed to write the answer to `{}`", path.display());
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })
}

/// Says on standard error why there is no answer, or why it is less than it could be.
fn explain(outcome: &Outcome, exit: Exit, circumstances: Circumstances, prepared: &Prepared) {
    let output = &prepared.output;
    match &outcome.error {
        Some(error) if !outcome.answered => {
            let error = failure(error, exit, prepared.asked(outcome));
            output.error(&error);
        }
        _ if outcome.stop_reason == StopReason::Cancelled => output.note("the turn was stopped"),
        _ if !outcome.answered => {
            let error = CliError::new(
                exit,
                format_args!("there is no answer: {}", stopped_by(outcome.stop_reason)),
            );
            output.error(&match limit_flag(outcome.stop_reason) {
                Some(flag) => error.hint(format!("raise the limit with `{flag}`")),
                None => error,
            });
        }
        _ if outcome.degraded => output.note(&format!(
            "the answer is incomplete: {}",
            match outcome.stop_reason {
                StopReason::Complete => "it was cut short",
                reason => stopped_by(reason),
            }
        )),
        _ => {}
    }
    if circumstances.approval_missing {
        output.hint(
            "a call needed approval and there was no terminal to ask on; allow it with `--allowed-tools 'exec(COMMAND *)'`, or everything with `--yolo`",
        );
    }
}

fn failure(error: &ModelError, exit: Exit, choice: &Choice) -> CliError {
    let shown = CliError::new(exit, error);
    match error.class {
        ErrorClass::Auth => match choice.key_variables().first() {
            Some(variable) => shown.hint(format!("check the key in `{variable}`")),
            None => shown,
        },
        ErrorClass::Network => shown.hint(format!(
            "is a server listening at `{}`? `rondo doctor --probe -m {}` looks closer",
            choice.shown_url(),
            choice.full_name()
        )),
        ErrorClass::NotFound => shown.hint(format!(
            "check the model's name `{}` and the address `{}`",
            choice.model,
            choice.shown_url()
        )),
        ErrorClass::Unsupported => {
            let variable = choice.provider.model_env.as_deref();
            let also = variable.map_or(String::new(), |name| format!(", or set `{name}`"));
            shown.hint(format!(
                "choose a model that can, with `-m provider/model`{also}"
            ))
        }
        ErrorClass::Quota => shown.hint("check the account's plan and billing at the provider"),
        ErrorClass::ContextTooLong => {
            shown.hint("ask with less text, or choose a model with a larger context")
        }
        _ => shown,
    }
}

fn stopped_by(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Complete => "the model gave none",
        StopReason::MaxSteps => "the limit on steps was reached",
        StopReason::MaxToolCalls => "the limit on tool calls was reached",
        StopReason::MaxTokens => "the limit on tokens was reached",
        StopReason::MaxCost => "the limit on money was reached",
        StopReason::StepTimeout => "a step took too long",
        StopReason::Deadline => "the deadline came",
        StopReason::InvalidResponse => "the model's replies could not be used",
        StopReason::NoProgress => "the model went in circles",
        StopReason::Refused => "the model or its provider refused",
        StopReason::Cancelled => "the turn was stopped",
        StopReason::Error => "a request failed",
    }
}

fn limit_flag(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::MaxSteps => Some("--max-steps"),
        StopReason::MaxToolCalls => Some("--max-tool-calls"),
        StopReason::MaxTokens => Some("--max-tokens-total"),
        StopReason::MaxCost => Some("--max-budget-usd"),
        StopReason::Deadline => Some("--deadline"),
        _ => None,
    }
}

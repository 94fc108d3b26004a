use super::answer_file;
use super::explain::{Said, explain, stopped_by};
use super::prepare::{Planned, Prepared, TurnStart};
use crate::approver::TerminalApprover;
use crate::changes::Changes;
use crate::cli::OutputFormat;
use crate::commands::run::{fresh_id, write_failed};
use crate::error::{CliError, Result};
use crate::exit::{Circumstances, Exit, Stop};
use crate::output::{Output, give_up};
use crate::render::sanitize::plain;
use crate::render::{JsonView, SilentView, TextView, View};
use crate::screen::Screen;
use crate::turn_loop::{self, Brake, Ended};
use rondo_core::clock::Clock;
use rondo_core::ports::ProcessEnd;
use rondo_core::redact::Secrets;
use rondo_core::{
    Approver, EventSender, Gate, ResumeError, Tool, TurnControl, TurnSetup, control, events,
    resume_turn, run_turn,
};
use rondo_policy::GateOptions;
use rondo_runtime::SetupError;
use rondo_runtime::context::system_prompt;
use rondo_runtime::plan::{ConnectedModel, TurnPlan};
use rondo_runtime::sessions::Conversation;
use rondo_runtime::settings::Settings;
use rondo_runtime::telemetry::Telemetry;
use rondo_runtime::{fallbacks, tools};
use rondo_types::{Outcome, Transcript, TurnId};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Runs one turn and shows it. The session has its messages then.
///
/// # Errors
/// When it cannot begin, or nobody takes what it shows.
pub(super) async fn run(
    prepared: &mut Prepared,
    planned: Planned,
    connected: ConnectedModel,
    is_last: bool,
) -> Result<Exit> {
    let Planned { plan, work } = planned;
    let secrets = prepared.secrets.clone().with(connected.key.clone());
    let work = work.without(&secrets);
    let screen = Screen::new();
    let env = &prepared.settings.env;
    let changes = Changes::default();
    let approver = TerminalApprover::new(env, &prepared.output, screen.clone(), changes.clone());
    let approver = Arc::new(approver);
    let scene = TurnContext {
        settings: &prepared.settings,
        output: &prepared.output,
        conversation: &prepared.conversation,
        schema: prepared.schema.clone(),
        live: Vec::new(),
        changes: changes.clone(),
    };
    let asking = Arc::clone(&approver) as _;
    let gate = tools::standard_gate;
    let setup = setup(&scene, &plan, connected, asking, &gate, &secrets)?;
    let turn = match &work {
        TurnStart::Message(_) => setup.turn.clone(),
        TurnStart::CutOff(cut_off) => cut_off.turn(),
    };
    let (events_tx, events_rx) = events::channel(setup.session.clone(), turn);
    let telemetry = Telemetry::start(env, &prepared.output).await;
    let events_tx = telemetry.observe(events_tx);
    let text = || TextView::new(prepared.output, screen, changes);
    let view = view(prepared.format, prepared.output, text, is_last);
    let (handle, turn_control) = control();
    let brake = Brake::new(handle);
    let strict = prepared.settings.values.strict_complete == Some(true);
    let turn_control = turn_control.noting_end(end_note(&approver, &brake, strict));
    let history = prepared.conversation.history.clone();
    let (over_tx, over_rx) = oneshot::channel();
    let timeout = plan.profile.limits.turn_timeout;
    let turn = async {
        let outcome = drive(setup, history, work, events_tx, turn_control).await;
        // Nobody listens once all of it was shown.
        let _ = over_tx.send(());
        outcome
    };
    let showing = turn_loop::show(events_rx, view, brake, over_rx, timeout);
    let (outcome, ended) = tokio::join!(turn, showing);
    let outcome = outcome?;
    prepared.conversation.took(&outcome);
    let ended = ended.map_err(|err| {
        let context = "failed to start a thread";
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })?;
    let exit = finish(outcome, ended, &approver, &plan, prepared, is_last).await;
    telemetry.finish().await;
    exit
}

/// Says how the process ends by an outcome, for the record of the turn's end: as [`finish`] does, before
/// anybody is shown anything.
fn end_note(
    approver: &Arc<TerminalApprover>,
    brake: &Brake,
    strict_complete: bool,
) -> impl FnOnce(&Outcome) -> ProcessEnd + use<> {
    let (approver, brake) = (Arc::clone(approver), brake.clone());
    move |outcome| {
        let denied = approver.denied().into_iter();
        let mut process = ProcessEnd {
            exit_code: 0,
            strict_complete,
            needed_approval: denied.map(|call| call.id).collect(),
            stopped_by: brake.stopped_by().map(Stop::record),
        };
        let exit = Exit::of_outcome(outcome, Circumstances::recorded(&process));
        process.exit_code = i32::from(exit.code());
        process
    }
}

/// What a turn is set up from, beside who answers it.
pub(crate) struct TurnContext<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) output: &'a Output,
    pub(crate) conversation: &'a Conversation,
    /// The JSON Schema that the answer must fit.
    pub(crate) schema: Option<Value>,
    /// Tools that are there already.
    pub(crate) live: Vec<Arc<dyn Tool>>,
    /// Where what calls make of files is shown from.
    pub(crate) changes: Changes,
}

/// Builds the gate of a turn from what opens and closes it.
pub(crate) type MakeGate<'a> = &'a dyn Fn(GateOptions) -> Result<Arc<dyn Gate>, SetupError>;

/// Runs a turn to its outcome, from its beginning or from what is recorded of it.
///
/// # Errors
/// When a turn that was cut off cannot be carried on.
pub(crate) async fn drive(
    setup: TurnSetup,
    history: Transcript,
    work: TurnStart,
    events: EventSender,
    control: TurnControl,
) -> Result<Outcome> {
    match work {
        TurnStart::Message(message) => {
            Ok(run_turn(setup, history, *message, events, control).await)
        }
        TurnStart::CutOff(turn) => resume_turn(setup, history, &turn.records, events, control)
            .await
            .map_err(cannot_go_on),
    }
}

/// Puts together everything that a turn runs with.
///
/// # Errors
/// When its tools or its models cannot be built.
pub(crate) fn setup(
    scene: &TurnContext<'_>,
    plan: &TurnPlan,
    connected: ConnectedModel,
    approver: Arc<dyn Approver>,
    gate: MakeGate<'_>,
    secrets: &Secrets,
) -> Result<TurnSetup> {
    let TurnContext {
        settings,
        output,
        conversation,
        schema,
        live,
        changes,
    } = scene;
    let profile = &plan.profile;
    let now = Clock::system().now();
    let session = conversation.session.clone();
    let keys = plan.key_variables();
    let names = &plan.tool_names;
    let toolset = tools::toolset(names, &keys, profile, settings, &session, live, secrets)?;
    changes.watch(&toolset, secrets, output.stderr_terminal);
    if !toolset.missing.is_empty() {
        output.note(&format!(
            "profile `{}` names tools that this version does not have: {}",
            profile.name,
            toolset.missing.join(", ")
        ));
    }
    tracing::info!(
        session = session.as_str(),
        model = plan.target.full_name(),
        base_url = plan.target.shown_url(),
        profile = profile.name,
        tools = toolset.tools.specs().len(),
        "asking"
    );
    Ok(TurnSetup {
        session,
        turn: TurnId::new(format!("t-{}", fresh_id(now))),
        turn_number: conversation.turns.saturating_add(1),
        model: connected.model,
        fallbacks: fallbacks::models(&plan.fallbacks, profile, settings)?,
        gate: gate(tools::gate_options(&toolset, profile, settings)?)?,
        system: system_prompt(profile, settings)
            .into_iter()
            .map(|block| secrets.text(block))
            .collect(),
        tools: toolset.tools.redacted(secrets),
        approver,
        journal: Arc::clone(&conversation.journal) as _,
        profile: Arc::new(profile.clone()),
        response_schema: schema.clone(),
        answer_check: None,
        seed: now.0,
    })
}

fn cannot_go_on(error: ResumeError) -> CliError {
    let hint = match &error {
        ResumeError::OtherModels { .. } => {
            "give the models of the turn their keys and addresses again, as they were when it began"
        }
        ResumeError::Finished | ResumeError::Redrive(_) => {
            "`rondo fork SESSION --at STEP` goes on from an earlier step"
        }
    };
    let context = "the turn that was cut off cannot be carried on";
    CliError::caused(Exit::Journal, anyhow::Error::new(error).context(context)).hint(hint)
}

/// A turn that only comes before the one that was asked for is told in a note.
fn view(
    format: OutputFormat,
    output: Output,
    text: impl FnOnce() -> TextView,
    is_last: bool,
) -> Box<dyn View> {
    match format {
        OutputFormat::StreamJson => Box::new(JsonView::new(output, true)),
        _ if !is_last => Box::new(SilentView),
        OutputFormat::Text => Box::new(text()),
        OutputFormat::Json => Box::new(JsonView::new(output, false)),
    }
}

async fn finish(
    outcome: Outcome,
    mut ended: Ended,
    approver: &TerminalApprover,
    plan: &TurnPlan,
    prepared: &Prepared,
    is_last: bool,
) -> Result<Exit> {
    let denied = approver.denied();
    let circumstances = Circumstances {
        strict_complete: prepared.settings.values.strict_complete == Some(true),
        approval_missing: !denied.is_empty(),
        journal_failed: prepared.conversation.journal.has_failed(),
        stopped_by: ended.stopped_by,
    };
    let mut exit = Exit::of_outcome(&outcome, circumstances);
    // Before the result is shown, which says how the process ends; but a pipe may have no reader, and must
    // not keep the result.
    let text = plain(&outcome.text);
    let written = match prepared.answer_file.as_deref().filter(|_| is_last) {
        Some(path) => answer_file::write(path, text.clone(), &mut ended).await,
        None => Ok(None),
    };
    if let Err(error) = &written {
        exit = error.exit;
    }
    let (outcome, shown) = ended.finish(outcome, exit, denied.clone()).await;
    let written = match written {
        Ok(Some(pipe)) => pipe.write(text, &mut ended).await,
        written => written.map(drop),
    };
    match shown {
        Err(err) if is_unread(&err) => return Ok(exit.unread(ended.stopped_by)),
        shown => shown.map_err(write_failed)?,
    }
    let mut said = explain(&outcome, exit, circumstances, &denied, plan);
    if !is_last {
        said.push(Said::Note(carried_on(&outcome)));
    }
    if let Err(error) = written {
        exit = error.exit;
        said.push(Said::Error(error));
    }
    let output = prepared.output;
    let print = move || said.iter().for_each(|it| it.print(&output));
    let give_up_at = ended.give_up_at();
    if ended.block_on(give_up_at, print).await.is_err() {
        give_up();
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

fn carried_on(outcome: &Outcome) -> String {
    let end = match outcome.answered {
        true => "it has its answer",
        false => stopped_by(outcome.stop_reason),
    };
    format!("the turn that was cut off is over: {end}\n{}", outcome.text)
}

/// Returns whether nobody reads standard output, or nobody read it for too long.
fn is_unread(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::TimedOut
    )
}

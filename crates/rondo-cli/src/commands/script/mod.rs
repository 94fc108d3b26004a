//! `rondo run`: a script in Lua.
//!
//! # Layout
//! - `host`: its streams, its user and its gate; `reading`: scripts that are not run;
//!   `replaying`: those that run over their records alone; `stopping`: signals and the end of its time.

mod host;
mod reading;
mod replaying;
mod stopping;

use super::ask::{how_to_answer, working_directory};
use super::report::{output_of, report};
use crate::approver::TerminalApprover;
use crate::changes::Changes;
use crate::cli::{ColorChoice, RunArgs};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::{Output, SharedOutput};
use crate::process_end;
use crate::screen::Screen;
use host::Host;
pub(super) use replaying::{changed_script, replayed};
use rondo_core::clock::Clock;
use rondo_core::ports::RecordBody;
use rondo_runtime::env::Env;
use rondo_runtime::script::ScriptSession;
use rondo_runtime::settings::Settings;
use rondo_runtime::values::TimeSpan;
use rondo_runtime::{Runtime, parking};
use rondo_script::{Init, Script, ScriptEnd, ScriptError};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use stopping::Stopping;

/// Bytes of a script.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// How the process of a script ends: with a code of the script's own, or with one of ours.
pub(super) enum ScriptExit {
    /// The script chose it.
    Own(u8),
    /// It is one of ours.
    Ours(Exit),
}

impl ScriptExit {
    /// Returns the number that the process ends with.
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::Own(code) => *code,
            Self::Ours(exit) => exit.code(),
        }
    }
}

/// Runs the command.
pub(super) fn run(
    args: RunArgs,
    env: Env,
    color: Option<ColorChoice>,
    early: Output,
) -> ScriptExit {
    match start(args, env, color, early) {
        Ok(exit) => exit,
        Err(error) => ScriptExit::Ours(report(&error, &early)),
    }
}

fn start(args: RunArgs, env: Env, color: Option<ColorChoice>, early: Output) -> Result<ScriptExit> {
    if args.turn.continue_latest || args.turn.session.is_some() {
        let message = "a script has no session to continue";
        return Err(CliError::new(Exit::Usage, message)
            .hint("`--resume` continues a script that was cut off"));
    }
    let Some((name, arguments)) = args.script.split_first() else {
        return Err(CliError::new(Exit::Usage, "no script given"));
    };
    let (name, arguments) = (name.clone(), arguments.to_vec());
    if args.new {
        return reading::begun(&name, &early).map(ScriptExit::Ours);
    }
    let directory = working_directory(args.turn.directory.as_deref())?;
    let script = read(&name, arguments)?;
    if args.check {
        return reading::looked_at(&script, &early).map(ScriptExit::Ours);
    }
    let resume = args.resume.clone();
    let notices = SharedOutput::new(early);
    let runtime = Runtime::new(env, args.into_layer(), Arc::clone(&notices) as _);
    runtime.ask_about_folders(TerminalApprover::for_folders(runtime.env(), &early));
    let mut settings = runtime.settings(directory)?;
    process_end::bound(settings.values.deadline.map(|it| it.0))?;
    let output = output_of(&settings.values, &settings.env, color);
    notices.set(output);
    if let Some(init) = Init::load(&runtime, &settings, &(Arc::clone(&notices) as _))? {
        runtime.extend(init.extensions());
    }
    let deadline = &mut settings.values.deadline;
    *deadline = process_end::shortened(deadline.map(|it| it.0)).map(TimeSpan);
    let stopping = Stopping::start()?;
    let tasks = executor::of_this_thread()?;
    let job = Job {
        script,
        resume,
        runtime,
        settings,
        output,
    };
    let ended = tasks.block_on(job.run(&stopping));
    tasks.shutdown_background();
    ended
}

/// A script that is about to run.
struct Job {
    script: Script,
    /// The session that it continues with.
    resume: Option<String>,
    runtime: Runtime,
    settings: Settings,
    output: Output,
}

impl Job {
    async fn run(self, stopping: &Stopping) -> Result<ScriptExit> {
        let Self {
            script,
            resume,
            runtime,
            settings,
            output,
        } = self;
        let (session, records) = match resume {
            None => (ScriptSession::new(runtime.clone(), settings.clone()), None),
            Some(id) => {
                let id = match id.as_str() {
                    "latest" => ScriptSession::latest(&settings, &script.name)?,
                    _ => id,
                };
                let resumed = ScriptSession::resume(runtime.clone(), settings.clone(), &id);
                let (session, records) = resumed.await?;
                note_changes(&script, &records, &output);
                (session, Some(records))
            }
        };
        let screen = Screen::new();
        let approver = TerminalApprover::new(&settings, &output, screen, Changes::default());
        let approver = Arc::new(approver);
        let host = Host::new(
            output,
            parking::approver(&settings, Arc::clone(&approver) as _),
        );
        let name = script.name.clone();
        let cancel = stopping.token();
        let ended = rondo_script::run(script, session, records, Arc::new(host), cancel).await;
        if let Some(call) = approver.denied().first() {
            output.hint(&format!(
                "a call of `{}` needed approval and there was no terminal to ask on; `allow` of `rondo.agent` or `--allowed-tools` allows it",
                call.tool
            ));
        }
        let exit = told(ended, &name, stopping, &output);
        process_end::set_code(match &exit {
            Ok(exit) => exit.code(),
            Err(error) => error.exit.code(),
        });
        runtime.close().await;
        exit
    }
}

/// Says how a script ended.
fn told(ended: ScriptEnd, name: &str, stopping: &Stopping, output: &Output) -> Result<ScriptExit> {
    let resume = ended
        .session
        .as_ref()
        .map(|session| format!("`rondo run --resume={session} {name}` continues from there"));
    let error = match ended.result {
        Ok(code) => return Ok(ScriptExit::Own(code)),
        Err(error) => error,
    };
    let message = error.to_string();
    let hinted = |error: CliError| match &resume {
        Some(hint) => error.hint(hint),
        None => error,
    };
    let error = match error {
        ScriptError::Syntax(_) => CliError::new(Exit::Input, message),
        ScriptError::Raised(_) => hinted(CliError::new(Exit::Error, message)),
        ScriptError::Setup { error, .. } => {
            let shown = CliError::new(Exit::of_setup(error.kind), message);
            match error.hint {
                Some(hint) => shown.hint(hint),
                None => hinted(shown),
            }
        }
        ScriptError::Diverged(_) | ScriptError::RecordsEnd(_) => {
            CliError::new(Exit::Differs, message).hint(
                "run it again without `--resume`, or restore the recorded version of the script",
            )
        }
        ScriptError::Stopped => {
            let exit = stopping.stop().map_or(Exit::Interrupted, Exit::of_stop);
            hinted(CliError::new(exit, message))
        }
        ScriptError::Deadline => hinted(CliError::new(Exit::Deadline, message)),
        ScriptError::Parked { session, questions } => {
            output.note(&super::ask::waiting(&questions));
            let answer = how_to_answer(&session, &questions);
            let then = resume.map_or_else(String::new, |it| format!("; then {it}"));
            CliError::new(Exit::Parked, message).hint(format!("{answer}{then}"))
        }
        ScriptError::Output(err) => CliError::caused(Exit::PipeClosed, err),
    };
    let exit = error.exit;
    if exit != Exit::PipeClosed {
        output.error(&error);
    }
    Ok(ScriptExit::Ours(exit))
}

fn note_changes(script: &Script, records: &[RecordBody], output: &Output) {
    if let Some(RecordBody::ScriptStarted(run)) = records.first()
        && run.source != script.source
    {
        output.note(&format!(
            "`{}` changed since its session began; each call is compared with the records",
            script.name
        ));
    }
}

/// Reads a script.
///
/// # Errors
/// When it cannot be read, or is not text.
fn read(name: &str, arguments: Vec<String>) -> Result<Script> {
    let failed = |err: std::io::Error| {
        let context = format!("failed to read the script `{name}`");
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    };
    let mut source = String::new();
    let file = std::fs::File::open(name).map_err(failed)?;
    let mut bounded = file.take(SCRIPT_BYTES_MAX + 1);
    bounded.read_to_string(&mut source).map_err(failed)?;
    if u64::try_from(source.len()).is_ok_and(|it| it > SCRIPT_BYTES_MAX) {
        return Err(failed(std::io::Error::other(
            "it is longer than a megabyte",
        )));
    }
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    Ok(Script {
        name: name.to_owned(),
        source,
        directory: folder.to_owned(),
        arguments,
        seed: Clock::system().now().0,
    })
}

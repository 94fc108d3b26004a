//! `rondo attach`: shows the turn of a session that another process works on, and leaves again.

use super::ask::{how_to_answer, waiting};
use super::report::{current_dir, write_failed};
use crate::changes::Changes;
use crate::cli::{AttachArgs, ColorChoice, OutputFormat};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::{Circumstances, Exit};
use crate::output::Output;
use crate::render::{FinishedTurn, JsonView, TextView, View};
use crate::screen::Screen;
use crate::show_turn::Signals;
use rondo_core::session_store::SessionState;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::watch::{SessionWatch, is_last};
use rondo_types::{EventBody, Outcome, Question};
use std::time::Duration;
use tokio::time::sleep;

/// How often it is looked whether something was recorded.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// When there is no such session, or its process ended without an end of its turn.
pub(super) fn run(
    args: &AttachArgs,
    env: Env,
    color: Option<ColorChoice>,
    output: &Output,
) -> Result<Exit> {
    let layer = Layer {
        color,
        ..Layer::default()
    };
    let settings = Settings::load(env, current_dir()?, layer, output)?;
    let watch = SessionWatch::open(&settings, &args.session)?;
    let runtime = executor::of_this_thread()?;
    let format = args.format();
    let view: Box<dyn View> = match format {
        OutputFormat::Text => Box::new(TextView::new(*output, Screen::new(), Changes::default())),
        OutputFormat::Json => Box::new(JsonView::new(*output, false)),
        OutputFormat::StreamJson => Box::new(JsonView::new(*output, true)),
    };
    let listener = Listener {
        watch,
        view,
        format,
        output: *output,
    };
    runtime.block_on(listener.listen())
}

struct Listener {
    watch: SessionWatch,
    view: Box<dyn View>,
    format: OutputFormat,
    output: Output,
}

/// How a turn's events ended.
enum LastEvent {
    Over(Box<Outcome>),
    Waits(Vec<Question>),
}

impl Listener {
    async fn listen(mut self) -> Result<Exit> {
        let mut signals = Signals::listen();
        loop {
            // Before the records: what is recorded after it is seen by the next look.
            let state = self.watch.state()?;
            let seen = self.watch.look()?;
            if self.format == OutputFormat::Text {
                seen.said
                    .iter()
                    .for_each(|it| self.output.note(&format!("asked: {it}")));
            }
            let mut last = None;
            for event in seen.events {
                if is_last(&event.body) {
                    last = match &event.body {
                        EventBody::Parked { questions } => {
                            Some(LastEvent::Waits(questions.clone()))
                        }
                        _ => seen.outcome.clone().map(Box::new).map(LastEvent::Over),
                    };
                } else {
                    last = None;
                }
                self.view.event(event).map_err(write_failed)?;
            }
            match last {
                Some(LastEvent::Over(outcome)) => return self.over(&outcome, seen.exit_code),
                Some(LastEvent::Waits(questions)) => return self.waits(&questions),
                None if state != SessionState::Running => return Err(self.nobody_works(state)),
                None => {}
            }
            tokio::select! {
                biased;
                stop = signals.next() => {
                    self.output.note("the turn goes on in the background");
                    return Ok(Exit::of_stop(stop));
                }
                () = sleep(LOOK_UP) => self.view.tick(),
            }
        }
    }

    fn over(mut self, outcome: &Outcome, exit_code: Option<i32>) -> Result<Exit> {
        let exit = match exit_code {
            Some(code) => Exit::of_code(Some(code)),
            None => Exit::of_outcome(outcome, Circumstances::default()),
        };
        let finished = FinishedTurn {
            outcome,
            exit,
            denied: &[],
        };
        self.view.finish(&finished).map_err(write_failed)?;
        Ok(exit)
    }

    fn waits(mut self, questions: &[Question]) -> Result<Exit> {
        self.view.park(Exit::Parked).map_err(write_failed)?;
        if self.format == OutputFormat::Text {
            self.output
                .note(&format!("the turn {}", waiting(questions)));
            self.output
                .hint(&how_to_answer(&self.watch.session, questions));
        }
        Ok(Exit::Parked)
    }

    fn nobody_works(&self, state: SessionState) -> CliError {
        let session = &self.watch.session;
        if state == SessionState::CutOff {
            let message = format!("no process works on session `{session}`: its turn was cut off");
            let hint = format!("`rondo resume {session}` carries it on");
            return CliError::new(Exit::Error, message).hint(hint);
        }
        let message = format!("nothing was asked in session `{session}` yet");
        CliError::new(Exit::NoSession, message)
    }
}

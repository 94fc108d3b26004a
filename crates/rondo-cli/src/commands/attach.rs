//! `rondo attach`: shows the turn of a session that another process works on, and leaves again.

use super::ask::{how_to_answer, waiting};
use super::report::{current_dir, write_failed};
use crate::changes::Changes;
use crate::cli::{AttachArgs, ColorChoice, OutputFormat};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::{Exit, ExitFacts};
use crate::output::Output;
use crate::render::{FinishedTurn, JsonView, TextView, View};
use crate::screen::Screen;
use crate::show_turn::{Signals, TICK};
use rondo_core::session_store::SessionState;
use rondo_runtime::env::Env;
use rondo_runtime::service::{SessionHandle, SessionService, Subscription, TurnEnding, UpdateBody};
use rondo_runtime::{Layer, Runtime, SessionOptions};
use rondo_types::{EventBody, Question, TurnEvent};
use std::pin::pin;
use std::sync::Arc;
use tokio::time::sleep;

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
    let directory = current_dir()?;
    let runtime = Runtime::new(env, layer, Arc::new(*output));
    let format = args.format();
    executor::of_this_thread()?.block_on(async {
        let service = SessionService::open_to_read(runtime, directory.clone())?;
        let options = SessionOptions::in_directory(&directory);
        let session = service.find(&args.session, options).await?;
        let view: Box<dyn View> = match format {
            OutputFormat::Text => {
                Box::new(TextView::new(*output, Screen::new(), Changes::default()))
            }
            OutputFormat::Json => Box::new(JsonView::new(*output, false)),
            OutputFormat::StreamJson => Box::new(JsonView::new(*output, true)),
        };
        let listener = Listener {
            session,
            view,
            format,
            output: *output,
            last: None,
        };
        listener.listen().await
    })
}

struct Listener {
    session: SessionHandle,
    view: Box<dyn View>,
    format: OutputFormat,
    output: Output,
    /// The last event that was shown, if it ends the turn for now.
    last: Option<LastEvent>,
}

/// How a turn's events end until someone does something about the turn.
enum LastEvent {
    Over,
    Waits(Vec<Question>),
}

impl LastEvent {
    fn of(event: &EventBody) -> Option<Self> {
        match event {
            EventBody::Result(_) => Some(Self::Over),
            EventBody::Parked { questions } => Some(Self::Waits(questions.clone())),
            _ => None,
        }
    }
}

impl Listener {
    async fn listen(mut self) -> Result<Exit> {
        let mut signals = Signals::listen();
        let session = self.session.clone();
        let mut updates = session.subscribe_to_latest();
        self.show_latest_turn(&mut updates).await?;
        let mut at_rest = pin!(session.at_rest_everywhere());
        let mut is_at_rest = false;
        // A spinner moves; whatever else is shown waits for news.
        let is_lively = self.format == OutputFormat::Text && self.output.stderr_erases;
        loop {
            // Before the records: what is recorded after it is seen the next time.
            let state = match is_at_rest {
                true => session.state().await?,
                false => SessionState::Running,
            };
            while !matches!(self.last, Some(LastEvent::Over))
                && let Some(update) = updates.next_of_past().await?
            {
                self.show(update.body)?;
            }
            match self.last.take() {
                Some(LastEvent::Over) => return self.over(updates.ending()),
                Some(LastEvent::Waits(questions)) => return self.waits(&questions),
                None if state != SessionState::Running => {
                    self.end_row()?;
                    return Err(self.nobody_works(state));
                }
                None => {}
            }
            if std::mem::take(&mut is_at_rest) {
                at_rest.set(session.at_rest_everywhere());
            }
            tokio::select! {
                biased;
                stop = signals.next() => {
                    self.end_row()?;
                    self.output.note("the turn continues in the background");
                    return Ok(Exit::of_stop(stop));
                }
                update = updates.next() => self.show(update?.body)?,
                rests = &mut at_rest => {
                    rests?;
                    is_at_rest = true;
                }
                () = sleep(TICK), if is_lively => self.view.tick(),
            }
        }
    }

    /// Shows the latest turn up to now.
    async fn show_latest_turn(&mut self, updates: &mut Subscription) -> Result<()> {
        let mut turn = Vec::new();
        while let Some(update) = updates.next_of_past().await? {
            if matches!(update.body, UpdateBody::Asked { .. }) {
                turn.clear();
            }
            turn.push(update.body);
        }
        turn.into_iter().try_for_each(|it| self.show(it))
    }

    fn show(&mut self, update: UpdateBody) -> Result<()> {
        match update {
            UpdateBody::Asked { message, .. } => self.note_asked(&message.text()),
            UpdateBody::Turn { event } => self.show_event(*event)?,
            // No record holds these: only a listener in the process that works on the session receives them.
            UpdateBody::Session { .. }
            | UpdateBody::Cell { .. }
            | UpdateBody::Failed { .. }
            | UpdateBody::Missed { .. }
            | UpdateBody::Reset => {}
        }
        Ok(())
    }

    fn show_event(&mut self, event: TurnEvent) -> Result<()> {
        if let EventBody::Steered { text, .. } = &event.body {
            self.note_asked(text);
        }
        self.last = LastEvent::of(&event.body);
        self.view.event(event).map_err(write_failed)
    }

    fn note_asked(&self, text: &str) {
        if self.format == OutputFormat::Text {
            self.output.note(&format!("asked: {text}"));
        }
    }

    fn over(mut self, ending: Option<TurnEnding>) -> Result<Exit> {
        let Some(TurnEnding { outcome, process }) = ending else {
            let message = "the end of the turn could not be read";
            return Err(CliError::new(Exit::Journal, message));
        };
        let exit = match process {
            Some(process) => Exit::of_code(Some(process.exit_code)),
            None => Exit::of_outcome(&outcome, ExitFacts::default()),
        };
        let finished = FinishedTurn {
            outcome: &outcome,
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
                .hint(&how_to_answer(self.session.id(), questions));
        }
        Ok(Exit::Parked)
    }

    /// Ends the row of a text that is not complete.
    fn end_row(&mut self) -> Result<()> {
        self.view.park(Exit::Error).map_err(write_failed)
    }

    fn nobody_works(&self, state: SessionState) -> CliError {
        let session = self.session.id();
        if state == SessionState::CutOff {
            let message =
                format!("no process is running session `{session}`: its turn was cut off");
            let hint = format!("`rondo resume {session}` resumes it");
            return CliError::new(Exit::Error, message).hint(hint);
        }
        let message = format!("session `{session}` has no turn yet");
        CliError::new(Exit::NoSession, message)
    }
}

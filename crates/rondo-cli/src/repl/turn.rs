//! Runs and shows one turn of the agent, and handles the keyboard meanwhile.

use super::approver;
use super::keyboard::Keyboard;
use super::ledger::BookkeepingView;
use super::talk::AgentChat;
use crate::changes::Changes;
use crate::commands::ask;
use crate::error::{CliError, Result};
use crate::exit::{Circumstances, Exit, Stop};
use crate::render::TextView;
use crate::screen::Screen;
use crate::show_turn::{self, Brake, Ended, Signals};
use rondo_core::ports::Seq;
use rondo_core::{Journal as _, control, events};
use rondo_runtime::granting::UserPolicy;
use rondo_runtime::parking;
use rondo_runtime::spec::{ConnectedModel, TurnSpec};
use rondo_runtime::{TurnBuilder, TurnStart};
use rondo_types::{Message, Outcome};
use std::sync::Arc;
use tokio::sync::oneshot;

/// How a turn ended, for the prompt.
pub(super) struct TurnEnd {
    /// What the process was told from outside meanwhile.
    pub(super) stopped_by: Option<Stop>,
    /// What was said to the turn, or to the prompt, and not delivered yet.
    pub(super) undelivered: Vec<String>,
    /// What was typed and not entered.
    pub(super) typed: String,
}

impl TurnEnd {
    /// Adds what an earlier turn left.
    pub(super) fn after(mut self, earlier: Self) -> Self {
        self.undelivered.splice(0..0, earlier.undelivered);
        self.typed.insert_str(0, &earlier.typed);
        self
    }
}

impl AgentChat {
    /// Runs a turn of the session and shows it, and then those of messages that wait. The session has its messages then.
    ///
    /// # Errors
    /// When it cannot begin.
    pub(super) async fn turn(&mut self, spec: &TurnSpec, start: TurnStart) -> Result<TurnEnd> {
        let over = self.one_turn(spec, start).await?;
        if over.stopped_by.is_some() {
            return Ok(over);
        }
        Ok(match self.ask_all_queued().await? {
            Some(next) => next.after(over),
            None => over,
        })
    }

    /// Asks the first message that waits in the session's mailbox, if there is one.
    ///
    /// # Errors
    /// When its turn cannot begin, or the mailbox cannot be read.
    async fn ask_queued(&mut self) -> Result<Option<TurnEnd>> {
        let Some(start) = self.session.queued()?.into_iter().next() else {
            return Ok(None);
        };
        let spec = self.spec()?;
        let start = self.written_here(start);
        self.one_turn(&spec, start).await.map(Some)
    }

    /// Asks the messages that wait in the session's mailbox.
    ///
    /// # Errors
    /// When a turn cannot begin, or the mailbox cannot be read.
    pub(super) async fn ask_all_queued(&mut self) -> Result<Option<TurnEnd>> {
        let mut all: Option<TurnEnd> = None;
        while all.as_ref().is_none_or(|it| it.stopped_by.is_none())
            && let Some(next) = self.ask_queued().await?
        {
            all = Some(match all {
                Some(earlier) => next.after(earlier),
                None => next,
            });
        }
        Ok(all)
    }

    async fn one_turn(&mut self, spec: &TurnSpec, start: TurnStart) -> Result<TurnEnd> {
        let screen = Screen::new();
        let mut keyboard = self.keyboard(screen.clone())?;
        let mut signals = Signals::listen();
        let connected = tokio::select! {
            biased;
            stop = signals.next() => return Ok(over(&mut keyboard, Some(stop))),
            () = keyboard.stopped() => {
                self.output.note("stopped before anything was asked");
                return Ok(over(&mut keyboard, None));
            }
            connected = self.session.connect(spec) => connected?,
        };
        self.serve(spec, start, connected, &mut keyboard, screen, signals)
            .await
    }

    /// Takes the keyboard until the value is dropped.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn keyboard(&self, screen: Screen) -> Result<Keyboard> {
        let keys = self.terminal.listen().map_err(no_terminal)?;
        let policy = UserPolicy::of(&self.session.settings.paths);
        let (names, secrets) = (self.key_names.clone(), self.secrets.clone());
        Ok(Keyboard::new(keys, self.output, screen, policy).keeping(names, secrets))
    }

    async fn serve(
        &mut self,
        spec: &TurnSpec,
        start: TurnStart,
        connected: ConnectedModel,
        keyboard: &mut Keyboard,
        screen: Screen,
        signals: Signals,
    ) -> Result<TurnEnd> {
        let changes = Changes::default();
        let user = parking::user(&self.session.settings.env);
        let (approver, mut questions) = approver::channel(screen.clone(), changes.clone(), user);
        let secrets = self.secrets.clone();
        let approver = Arc::new(approver);
        let mut builder = TurnBuilder::new(spec.clone(), start, connected, approver, secrets);
        builder.live = self.live_tools(&spec.profile);
        builder.workdir = Some(self.workdir.clone());
        builder.terminal = self.terminal_seen.clone();
        let turn = self.session.turn(builder)?;
        let is_kept = !self.session.is_ephemeral();
        keyboard.submit_to(is_kept.then(|| self.session.message_box()).transpose()?);
        changes.watch(turn.toolset(), turn.secrets(), self.output.stderr_terminal);
        let (events_tx, events_rx) = events::channel(turn.session().clone(), turn.id());
        let events_tx = self.session.runtime().observe(events_tx).await;
        let view = TextView::new(self.output, screen, changes);
        let view = Box::new(BookkeepingView::new(view, self.books.clone()));
        let (handle, turn_control) = control();
        let before = self.head();
        let (over_tx, over_rx) = oneshot::channel();
        let both = async {
            let turn = async {
                let outcome = turn.run(events_tx, turn_control).await;
                // The receiver is gone once all of it was shown.
                let _ = over_tx.send(());
                outcome
            };
            // The user at this terminal stops it and lets it go on.
            let brake = Brake::new(handle.clone());
            tokio::join!(
                turn,
                show_turn::show(events_rx, view, brake, signals, over_rx, None)
            )
        };
        let (outcome, ended) = tokio::select! {
            both = both => both,
            never = keyboard.serve(&handle, &mut questions) => match never {},
        };
        keyboard.submit_rest().await;
        self.submitted.append(&mut keyboard.submitted);
        self.note_presence(before);
        // Nothing but the prompt answers here, and it does so at once.
        let outcome = outcome?.outcome().ok_or_else(unexpectedly_parked)?;
        self.session.finished(&outcome);
        let ended = ended.map_err(|err| {
            let context = "failed to start a thread";
            CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
        })?;
        let mut over = over(keyboard, ended.stopped_by);
        let outcome = self.finish(outcome, ended, spec).await?;
        // What waits in the mailbox is asked next. What is entered at the prompt is text.
        if !is_kept {
            let undelivered = outcome.undelivered_steering.iter().map(Message::text);
            over.undelivered.splice(0..0, undelivered);
        }
        Ok(over)
    }

    /// What the agent ran in the Python session, ran in the interpreter that there is.
    fn note_presence(&mut self, before: Seq) {
        self.sync_presence();
        let (first, last) = (Seq(before.0 + 1), self.head());
        if let Some(conversation) = self.session.conversation() {
            self.presence.add(&conversation.session, first, last);
        }
    }

    /// Returns the session's latest record.
    fn head(&self) -> Seq {
        self.current().map_or(Seq(0), |it| it.journal.at())
    }

    async fn finish(&self, outcome: Outcome, mut ended: Ended, spec: &TurnSpec) -> Result<Outcome> {
        let circumstances = Circumstances {
            journal_failed: self.session.has_journal_failed(),
            stopped_by: ended.stopped_by,
            ..Circumstances::default()
        };
        let exit = Exit::of_outcome(&outcome, circumstances);
        let (outcome, shown) = ended.finish(outcome, exit, Vec::new()).await;
        if ended.was_given_up() {
            return Ok(Arc::unwrap_or_clone(outcome));
        }
        shown.map_err(crate::commands::report::write_failed)?;
        for said in ask::explain(&outcome, exit, circumstances, &[], spec) {
            said.print(&self.output);
        }
        Ok(Arc::unwrap_or_clone(outcome))
    }
}

fn unexpectedly_parked() -> CliError {
    CliError::new(Exit::Parked, "the turn waits for an answer")
}

fn over(keyboard: &mut Keyboard, stopped_by: Option<Stop>) -> TurnEnd {
    TurnEnd {
        stopped_by,
        undelivered: std::mem::take(&mut keyboard.queue),
        typed: keyboard.take_typed(),
    }
}

pub(super) fn no_terminal(err: std::io::Error) -> CliError {
    let context = "failed to set the terminal";
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}

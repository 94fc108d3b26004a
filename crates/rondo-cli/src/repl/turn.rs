//! Runs and shows the turns of the agent, and handles the keyboard meanwhile.

use super::approver::{self, PromptQuestion};
use super::host::{BegunTurn, Stage};
use super::keyboard::Keyboard;
use super::talk::LineSession;
use crate::changes::Changes;
use crate::commands::ask;
use crate::error::{CliError, Result};
use crate::exit::{Exit, ExitFacts, Stop};
use crate::hosted::{HostEvent, end_of_turn, next_news};
use crate::render::TextView;
use crate::screen::Screen;
use crate::show_turn::{self, Brake, Ended, Signals};
use rondo_core::session::Delivery;
use rondo_core::{TurnEnd as CoreEnd, events};
use rondo_runtime::service::{Subscription, Ticket};
use rondo_runtime::values::ApprovalMode;
use rondo_types::{Message, Outcome};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How turns ended, for the prompt.
#[derive(Default)]
pub(super) struct TurnEnd {
    /// What the process was told from outside meanwhile.
    pub(super) stopped_by: Option<Stop>,
    /// The lines that were entered for the prompt.
    pub(super) undelivered: Vec<String>,
    /// What was typed and not entered.
    pub(super) typed: String,
}

impl TurnEnd {
    /// Adds what a later turn left.
    fn and(&mut self, later: Self) {
        self.stopped_by = later.stopped_by;
        self.undelivered.extend(later.undelivered);
        self.typed.push_str(&later.typed);
    }
}

/// What the session does next.
pub(super) enum Request {
    /// It asks this.
    Ask(Message),
    /// It sums up what was said, with an eye on this.
    Compact(String),
    /// It goes on with what it has to do.
    GoOn,
}

/// What a wait for the next turn comes to.
enum Next {
    Begun(Box<BegunTurn>),
    /// It was stopped before it began, by a key or by a signal.
    Stopped(Option<Stop>),
    Failed(CliError),
    /// Nothing is left to do.
    Rest,
}

/// What shows a turn and answers its questions.
struct Shown {
    keyboard: Keyboard,
    screen: Screen,
    changes: Changes,
    questions: mpsc::Receiver<PromptQuestion>,
    signals: Signals,
    /// What the host takes for the turn, until the turn is about to begin.
    stage: Option<Stage>,
    /// The events of the turn, once it is about to begin.
    updates: Option<Subscription>,
}

impl LineSession {
    /// Does what is requested, and shows the turns of it: the one that was cut off first, then those of messages that wait.
    ///
    /// # Errors
    /// When a turn cannot begin; what was requested is withdrawn then.
    pub(super) async fn turns(&mut self, request: Request) -> Result<TurnEnd> {
        self.hand_over();
        self.link.open();
        let ticket = match request {
            Request::Ask(message) => {
                Some(self.handle.submit(message, Delivery::Queue).await).transpose()
            }
            Request::Compact(focus) => Some(self.handle.compact(&focus).await).transpose(),
            Request::GoOn => {
                self.handle.resume();
                Ok(None)
            }
        };
        let done = match ticket {
            Ok(ticket) => self.show_turns(ticket.as_ref()).await,
            Err(error) => Err(error.into()),
        };
        self.link.close();
        done
    }

    async fn show_turns(&mut self, ticket: Option<&Ticket>) -> Result<TurnEnd> {
        let mut all = TurnEnd::default();
        loop {
            let mut shown = self.place()?;
            let begun = match self.next_turn(&mut shown).await {
                Next::Begun(begun) => begun,
                Next::Stopped(by) => {
                    self.link.close();
                    // A journal that cannot be written ends the turn by itself.
                    let _ = self.handle.cancel().await;
                    self.withdraw(ticket).await;
                    all.and(over(&mut shown.keyboard, by));
                    if by.is_none() {
                        self.output.note("stopped before anything was asked");
                    }
                    return Ok(all);
                }
                Next::Failed(error) => {
                    self.withdraw(ticket).await;
                    return Err(error);
                }
                Next::Rest => {
                    self.link.all_asked();
                    all.and(over(&mut shown.keyboard, None));
                    return Ok(all);
                }
            };
            self.note_begun(&begun, ticket);
            let journal = Arc::clone(&begun.journal);
            all.and(self.serve(*begun, shown).await?);
            // If its end is not recorded, what was shown says why, and nothing can follow.
            if all.stopped_by.is_some() || journal.has_failed() {
                self.link.close();
                self.handle.at_rest().await;
                return Ok(all);
            }
        }
    }

    /// Makes the place of the next turn.
    fn place(&self) -> Result<Shown> {
        let (screen, changes) = (Screen::new(), Changes::default());
        let keyboard = self.keyboard(screen.clone())?;
        let (approver, questions) =
            approver::channel(screen.clone(), changes.clone(), self.output, &self.settings);
        let stage = Stage {
            approver,
            changes: changes.clone(),
            shows_changes: self.output.stderr_terminal,
        };
        Ok(Shown {
            keyboard,
            screen,
            changes,
            questions,
            signals: Signals::listen(),
            stage: Some(stage),
            updates: None,
        })
    }

    /// Waits for the next turn, until a key or a signal stops what is under way.
    async fn next_turn(&mut self, shown: &mut Shown) -> Next {
        loop {
            let told = tokio::select! {
                biased;
                stop = shown.signals.next() => return Next::Stopped(Some(stop)),
                () = shown.keyboard.stopped() => return Next::Stopped(None),
                () = self.link.asked() => {
                    shown.updates = Some(self.handle.subscribe_to_next());
                    if let Some(stage) = shown.stage.take() {
                        self.link.stage(stage);
                    }
                    continue;
                }
                told = next_news(&mut self.link.news, &self.handle) => told,
            };
            match told {
                Some(HostEvent::Begun(begun)) => return Next::Begun(begun),
                Some(HostEvent::Failed(error)) => return Next::Failed((*error).into()),
                Some(HostEvent::Ended(_)) => {}
                None => return Next::Rest,
            }
        }
    }

    /// Takes back what was requested and did not begin.
    async fn withdraw(&mut self, ticket: Option<&Ticket>) {
        self.link.close();
        self.handle.at_rest().await;
        if let Some(ticket) = ticket {
            // If it cannot be taken back, it waits in the mailbox, and is asked next.
            let _ = ticket.withdraw().await;
            self.handle.at_rest().await;
        }
    }

    /// Says which turn is about to be shown, unless it is the one that was requested.
    fn note_begun(&self, begun: &BegunTurn, ticket: Option<&Ticket>) {
        match &begun.message {
            None => self.output.note("the turn that was cut off is carried on"),
            Some((key, _)) if ticket.is_some_and(|it| it.id.0 == *key) => {}
            Some((_, text)) => {
                let note = format!("the message that was queued is asked now: {text}");
                self.output.note(&note);
            }
        }
    }

    /// Takes the keyboard until the value is dropped.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn keyboard(&self, screen: Screen) -> Result<Keyboard> {
        let keys = self.terminal.listen().map_err(no_terminal)?;
        let (names, secrets) = (self.key_names.clone(), self.secrets.clone());
        Ok(Keyboard::new(keys, self.output, screen).keeping(names, secrets))
    }

    async fn serve(&mut self, begun: BegunTurn, shown: Shown) -> Result<TurnEnd> {
        let Shown {
            mut keyboard,
            screen,
            changes,
            mut questions,
            signals,
            updates,
            ..
        } = shown;
        let mut updates = updates.unwrap_or_else(|| self.handle.subscribe_to_next());
        keyboard.submit_to(self.handle.clone());
        let (events_tx, events_rx) = events::channel(begun.session.clone(), begun.id.clone());
        let view = Box::new(TextView::new(self.output, screen, changes));
        let (over_tx, over_rx) = oneshot::channel();
        let brake = Brake::new(begun.handle.clone());
        let both = async {
            let turn = async {
                let news = &mut self.link.news;
                let end = end_of_turn(news, &mut updates, &self.handle, &events_tx).await;
                drop(events_tx);
                // The receiver is gone once all of it was shown.
                let _ = over_tx.send(());
                end
            };
            let showing = show_turn::show(events_rx, view, brake, signals, over_rx, None);
            tokio::join!(turn, showing)
        };
        let (end, ended) = tokio::select! {
            both = both => both,
            never = keyboard.serve(&begun.handle, &mut questions) => match never {},
        };
        keyboard.submit_rest().await;
        let entered = std::mem::take(&mut keyboard.submitted);
        self.link.entered(entered.into_iter().map(|it| it.0));
        // Nothing but the prompt answers here, and it does so at once.
        let CoreEnd::Done(outcome) = end? else {
            return Err(unexpectedly_parked());
        };
        if begun.offer.as_ref().is_some_and(|it| it.is_chosen()) {
            self.settings.values.approval = Some(ApprovalMode::Auto);
            self.hand_over();
        }
        let ended = ended.map_err(|err| {
            let context = "failed to start a thread";
            CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
        })?;
        self.context_tokens = ended.context_tokens.or(self.context_tokens);
        let over = over(&mut keyboard, ended.stopped_by);
        self.finish(*outcome, ended, &begun).await?;
        Ok(over)
    }

    async fn finish(&self, outcome: Outcome, mut ended: Ended, begun: &BegunTurn) -> Result<()> {
        let circumstances = ExitFacts {
            journal_failed: begun.journal.has_failed(),
            stopped_by: ended.stopped_by,
            ..ExitFacts::default()
        };
        let exit = Exit::of_outcome(&outcome, circumstances);
        let (outcome, shown) = ended.finish(outcome, exit, Vec::new()).await;
        if ended.was_given_up() {
            return Ok(());
        }
        shown.map_err(crate::commands::report::write_failed)?;
        for said in ask::explain(&outcome, exit, circumstances, &[], &begun.spec) {
            said.print(&self.output);
        }
        Ok(())
    }
}

fn unexpectedly_parked() -> CliError {
    CliError::new(Exit::Parked, "the turn waits for an answer")
}

fn over(keyboard: &mut Keyboard, stopped_by: Option<Stop>) -> TurnEnd {
    let held = keyboard.take_held();
    let mut undelivered = std::mem::take(&mut keyboard.queue);
    undelivered.extend(held);
    TurnEnd {
        stopped_by,
        undelivered,
        typed: keyboard.take_typed(),
    }
}

pub(super) fn no_terminal(err: std::io::Error) -> CliError {
    let context = "failed to set the terminal";
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}

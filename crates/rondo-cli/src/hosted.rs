//! Follows the turns of a session that a command works on as its host: the host's news, and the events of each turn.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_core::clock::Clock;
use rondo_core::{EventSender, TurnEnd};
use rondo_runtime::SetupError;
use rondo_runtime::service::{SessionHandle, Subscription, Update, UpdateBody};
use rondo_types::EventBody;
use tokio::sync::mpsc;

/// The bound on unread news of the host.
pub(crate) const NEWS_MAX: usize = 64;

/// News for the host about its turns; `B` is its state of one that begins.
pub(crate) enum HostEvent<B> {
    /// A turn is about to run.
    Begun(Box<B>),
    /// It is over.
    Ended(Box<Result<TurnEnd, SetupError>>),
    /// The session could not be taken, or the turn not begun.
    Failed(Box<SetupError>),
}

/// Passes on the host's news. It is read at once unless a turn is being shown to its end, in which there is little.
pub(crate) fn tell<B>(news: &mpsc::Sender<HostEvent<B>>, told: HostEvent<B>) {
    let _ = news.try_send(told);
}

/// Returns the host's next news; `None` if nothing works on the session any more.
pub(crate) async fn next_news<B>(
    news: &mut mpsc::Receiver<HostEvent<B>>,
    session: &SessionHandle,
) -> Option<HostEvent<B>> {
    tokio::select! {
        biased;
        told = news.recv() => told,
        () = session.at_rest() => news.try_recv().ok(),
    }
}

/// Passes on the events of the turn that runs, and returns how it ended.
///
/// # Errors
/// When it could not be resumed.
pub(crate) async fn end_of_turn<B>(
    news: &mut mpsc::Receiver<HostEvent<B>>,
    updates: &mut Subscription,
    session: &SessionHandle,
    events: &EventSender,
) -> Result<TurnEnd> {
    let end = loop {
        tokio::select! {
            biased;
            update = updates.next() => pass_on(update?, events),
            told = next_news(news, session) => match told {
                Some(HostEvent::Ended(end)) => break *end,
                // The mailbox could not be read, which matters to no turn that runs.
                Some(HostEvent::Failed(_) | HostEvent::Begun(_)) => {}
                None => return Err(stopped_elsewhere()),
            },
        }
    };
    while let Some(update) = updates.next_of_past().await? {
        pass_on(update, events);
    }
    Ok(end?)
}

fn pass_on(update: Update, events: &EventSender) {
    match update.body {
        UpdateBody::Turn { event } => events.send(event.at, event.body),
        UpdateBody::Missed { .. } => {
            let body = EventBody::DeltasDropped { count: 1 };
            events.send(Clock::system().now(), body);
        }
        UpdateBody::Asked { .. }
        | UpdateBody::Session { .. }
        | UpdateBody::Cell { .. }
        | UpdateBody::Failed { .. }
        | UpdateBody::Reset => {}
    }
}

/// The error of a turn that another process stopped.
pub(crate) fn stopped_elsewhere() -> CliError {
    let message = "another process stopped the turn before it began";
    CliError::new(Exit::Terminated, message)
}

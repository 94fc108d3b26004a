//! Says messages to the session one after the other, so that they wait in the order in which they were sent: what is
//! attached to one may take a while to read.

use super::Program;
use super::effects::EffectResult;
use crate::app::PendingMessage;
use crate::prompt::slash;
use rondo_core::session::Delivery;
use rondo_runtime::Runtime;
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::service::{SessionHandle, SessionService};
use rondo_runtime::settings::Settings;
use rondo_types::{Message, Part};
use std::sync::Arc;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::spawn_blocking;

/// Messages that were sent and not taken by the session yet.
const UNSAID_MAX: usize = 64;

/// A message to submit.
pub(super) struct Submission {
    pub(super) session: SessionHandle,
    /// Files that it names are beneath their directory, and servers are theirs.
    pub(super) settings: Settings,
    /// The words, or `/SERVER:PROMPT ARGUMENT...`.
    pub(super) text: String,
    /// Attachments of the message.
    pub(super) attached: Vec<String>,
    pub(super) delivery: Delivery,
}

/// Queue of submitted messages.
pub(super) struct Submissions(Sender<Submission>);

impl Submissions {
    /// Submits what is put here until it is dropped, and reports the results.
    pub(super) fn start(
        program: &Arc<dyn Program>,
        service: &SessionService,
        done: Sender<EffectResult>,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(UNSAID_MAX);
        let (program, runtime) = (Arc::clone(program), service.runtime().clone());
        tokio::spawn(say_all(program, runtime, receiver, done));
        Self(sender)
    }

    /// Puts a message behind the others.
    ///
    /// # Errors
    /// When too many were not taken yet.
    pub(super) fn add(&self, submission: Submission) -> Result<()> {
        let put = self.0.try_send(submission);
        put.map_err(|_| SetupError::new(SetupErrorKind::Input, "too many messages are waiting"))
    }
}

async fn say_all(
    program: Arc<dyn Program>,
    runtime: Runtime,
    mut submissions: Receiver<Submission>,
    done: Sender<EffectResult>,
) {
    while let Some(submission) = submissions.recv().await {
        let result = match say(&program, &runtime, submission, &done).await {
            Ok(waiting) => EffectResult::Submitted(waiting),
            Err(error) => EffectResult::Failed(Box::new(error)),
        };
        if done.send(result).await.is_err() {
            // Without the loop there is no receiver.
            return;
        }
    }
}

async fn say(
    program: &Arc<dyn Program>,
    runtime: &Runtime,
    submission: Submission,
    done: &Sender<EffectResult>,
) -> Result<PendingMessage> {
    let Submission {
        session,
        settings,
        text,
        attached,
        delivery,
    } = submission;
    let message = match slash::server_prompt(&text) {
        Some(asked) => of_server(runtime, &settings, asked).await?,
        None => of_words(program, runtime, &settings, &text, done).await?,
    };
    let message = with_attached(message, &attached);
    let ticket = session.submit(message, delivery).await?;
    Ok(PendingMessage {
        ticket: ticket.id,
        text,
        attached,
        delivery,
    })
}

/// Builds the message of words, with the files and the resources that they name.
async fn of_words(
    program: &Arc<dyn Program>,
    runtime: &Runtime,
    settings: &Settings,
    text: &str,
    done: &Sender<EffectResult>,
) -> Result<Message> {
    let (reader, typed) = (Arc::clone(program), text.to_owned());
    let (directory, notes) = (settings.directory.clone(), done.clone());
    let message = spawn_blocking(move || {
        // Without the loop a note cannot be shown.
        let note = |text: &str| drop(notes.blocking_send(EffectResult::Note(text.to_owned())));
        reader.message(&typed, &directory, &note)
    })
    .await;
    let message = message.unwrap_or_else(|err| {
        let context = "failed to read what was attached";
        Err(SetupError::because(SetupErrorKind::Other, context, err))
    });
    let message = runtime.with_resources(settings, Arc::new(message?)).await?;
    Ok(Arc::unwrap_or_clone(message))
}

/// Builds the message that a prompt of a server makes. Its words are the server's: no files and no resources are read for
/// them.
async fn of_server(
    runtime: &Runtime,
    settings: &Settings,
    (server, prompt, rest): (&str, &str, &str),
) -> Result<Message> {
    slash::check_server(settings, server)?;
    let arguments = slash::arguments(rest);
    let parts = runtime.server_prompt(settings, server, prompt, &arguments);
    let mut message = Message::user("");
    message.parts = parts.await?;
    Ok(message)
}

/// Puts what goes along behind the words, which name the session. Nothing in it is read as the name of a file.
fn with_attached(mut message: Message, attached: &[String]) -> Message {
    let parts = attached.iter().map(|it| Part::text(format!("\n\n{it}")));
    message.parts.extend(parts);
    message
}

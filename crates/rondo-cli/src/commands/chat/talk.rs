//! A conversation with a hub: sends lines, shows what comes, and begins its stream again if that breaks.

use super::failed;
use super::lines::Lines;
use crate::commands::report::write_failed;
use crate::error::Result;
use crate::exit::{Exit, Stop};
use crate::output::Output;
use crate::show_turn::Signals;
use rondo_hub::api::{ChatMessage, ChatMessageKind};
use rondo_hub::client::{ChatEventBody, Client, ClientError, Events, EventsFrom, submission_name};
use rondo_types::AnswerValue;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::sleep;

/// The pause before a stream is begun again, which doubles with each failure.
const RETRY: Duration = Duration::from_millis(500);
/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_secs(15);
/// How often a submission is tried.
const SUBMITS_MAX: u32 = 6;

/// A conversation.
pub(super) struct Talk {
    client: Client,
    chat: String,
    output: Output,
    is_interactive: bool,
    from: EventsFrom,
    /// Set while an answer is awaited.
    is_waiting: bool,
    /// How the question that was asked last can be answered.
    choices: Vec<(String, AnswerValue)>,
    /// Part of the answer that was shown while it was written.
    shown: String,
    /// How often the stream failed since something came by it.
    failures: u32,
    exit: Exit,
}

impl Talk {
    pub(super) fn new(client: Client, chat: String, output: Output, is_interactive: bool) -> Self {
        Self {
            client,
            chat,
            output,
            is_interactive,
            from: EventsFrom::Now,
            is_waiting: false,
            choices: Vec::new(),
            shown: String::new(),
            failures: 0,
            exit: Exit::Answer,
        }
    }

    pub(super) async fn run(mut self, mut lines: Lines) -> Result<Exit> {
        let mut signals = Signals::listen();
        let mut events = self.listen().await?;
        self.prompt();
        let mut is_over = false;
        loop {
            if is_over && !self.is_waiting {
                return Ok(self.exit);
            }
            // A program's lines are answered one by one; a person may say more meanwhile.
            let takes_lines = !is_over && (!self.is_waiting || lines.is_terminal);
            tokio::select! {
                stop = signals.next() => {
                    if !self.is_waiting || stop != Stop::Interrupt {
                        return Ok(Exit::of_stop(stop));
                    }
                    self.stop().await?;
                }
                line = lines.next(), if takes_lines => match line {
                    Some(line) => self.line(&line).await?,
                    None => is_over = true,
                },
                event = next(&mut events) => match event {
                    Some(Ok(Some(event))) => {
                        self.failures = 0;
                        self.from = EventsFrom::After(event.id);
                        self.event(event.body)?;
                    }
                    Some(Ok(None)) => events = self.listen_again(None).await?,
                    Some(Err(error)) => events = self.listen_again(Some(error)).await?,
                    None => {}
                },
            }
            if events.is_none() && self.is_waiting {
                events = self.listen().await?;
            }
        }
    }

    /// Begins to listen; `None` if the chat does not exist before its first message.
    async fn listen(&mut self) -> Result<Option<Events>> {
        match self.client.events(&self.chat, &self.from).await {
            Ok(events) => Ok(Some(events)),
            Err(error) if error.is_not_found() => {
                self.from = EventsFrom::Start;
                Ok(None)
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn listen_again(&mut self, error: Option<ClientError>) -> Result<Option<Events>> {
        if let Some(error) = &error {
            tracing::debug!(%error, "the stream broke");
        }
        loop {
            let pause = RETRY * 2_u32.saturating_pow(self.failures);
            sleep(pause.min(RETRY_MAX)).await;
            self.failures = self.failures.saturating_add(1);
            match self.client.events(&self.chat, &self.from).await {
                Ok(events) => return Ok(Some(events)),
                Err(error) if error.is_final() => return Err(failed(error)),
                Err(error) if self.failures == 1 => self.output.note(&error.to_string()),
                Err(error) => tracing::debug!(%error, "the stream cannot be begun"),
            }
        }
    }

    /// Sends a line, or answers a question with it.
    async fn line(&mut self, line: &str) -> Result<()> {
        if line.trim().is_empty() {
            self.prompt();
            return Ok(());
        }
        let number: Option<usize> = line.trim().parse().ok();
        let chosen = number.and_then(|it| self.choices.get(it.checked_sub(1)?));
        match chosen.cloned() {
            Some((token, value)) => {
                self.choices.clear();
                let (client, chat) = (self.client.clone(), self.chat.clone());
                retried(async |name| client.answer(&chat, name, &token, &value).await).await?;
            }
            None => {
                let (client, chat) = (self.client.clone(), self.chat.clone());
                retried(async |name| client.send(&chat, name, line).await).await?;
            }
        }
        self.is_waiting = true;
        self.exit = Exit::Answer;
        Ok(())
    }

    async fn stop(&self) -> Result<()> {
        let (client, chat) = (self.client.clone(), self.chat.clone());
        retried(async |name| client.cancel(&chat, name).await).await
    }

    fn event(&mut self, body: ChatEventBody) -> Result<()> {
        match body {
            ChatEventBody::Message { message } => self.message(&message),
            ChatEventBody::Update { update } if self.is_interactive => self.update(&update),
            _ => Ok(()),
        }
    }

    /// Shows the answer while it is written.
    fn update(&mut self, update: &Value) -> Result<()> {
        let event = update.get("event");
        let word = |key: &str| event?.get(key)?.as_str();
        match word("type") {
            Some("step_started") => {
                self.end_line()?;
                self.shown.clear();
                Ok(())
            }
            Some("text_delta") => {
                let text = word("text").unwrap_or_default();
                self.shown.push_str(text);
                self.output.stdout(text).map_err(write_failed)
            }
            _ => Ok(()),
        }
    }

    fn end_line(&self) -> Result<()> {
        match self.shown.is_empty() || self.shown.ends_with('\n') {
            true => Ok(()),
            false => self.output.stdout("\n").map_err(write_failed),
        }
    }

    fn message(&mut self, message: &ChatMessage) -> Result<()> {
        self.end_line()?;
        let is_shown = message.kind == ChatMessageKind::Final
            && !self.shown.is_empty()
            && self.shown.trim() == message.text.trim();
        self.shown.clear();
        let mut text = String::new();
        if !is_shown && !message.text.is_empty() {
            let _ = writeln!(text, "{}", message.text.trim_end());
        }
        for file in &message.files {
            let _ = writeln!(text, "[file: {file}]");
        }
        if message.kind == ChatMessageKind::Question {
            let choices = message.choices.iter();
            let choices = choices.map(|it| (it.token.clone(), it.answer.clone().into()));
            self.choices = choices.collect();
            for (index, choice) in message.choices.iter().enumerate() {
                let _ = writeln!(text, "  {}) {}", index + 1, choice.label);
            }
            self.exit = Exit::Parked;
        }
        self.output.stdout(&text).map_err(write_failed)?;
        if message.kind != ChatMessageKind::Message {
            self.is_waiting = false;
            self.prompt();
        }
        Ok(())
    }

    fn prompt(&self) {
        if self.is_interactive {
            self.output.stderr("> ");
        }
    }
}

/// Waits for an event, if there is a stream.
async fn next(
    events: &mut Option<Events>,
) -> Option<Result<Option<rondo_hub::client::ChatEvent>, ClientError>> {
    match events {
        Some(events) => Some(events.next().await),
        None => std::future::pending().await,
    }
}

/// Submits something under one name until it is known to have arrived.
async fn retried(submit: impl AsyncFn(&str) -> Result<(), ClientError>) -> Result<()> {
    let name = submission_name().map_err(failed)?;
    let mut tries = 0;
    loop {
        let error = match submit(&name).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        tries += 1;
        if error.is_final() || tries >= SUBMITS_MAX {
            return Err(failed(error));
        }
        sleep((RETRY * 2_u32.pow(tries - 1)).min(RETRY_MAX)).await;
    }
}

//! A script's streams, its user and its gate.

use crate::output::{Output, has_person};
use async_trait::async_trait;
use rondo_core::Approver;
use rondo_runtime::error::Result;
use rondo_runtime::sanitize::plain;
use rondo_script::{ScriptHost, StdinRead, UserQuestion};
use rondo_tui::call_line;
use rondo_types::{EventBody, TurnEvent};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Bytes of a typed answer.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// The host of a script on the command line.
pub(super) struct Host {
    output: Output,
    approver: Arc<dyn Approver>,
}

impl Host {
    /// Creates the host; `approver` answers questions.
    pub(super) fn new(output: Output, approver: Arc<dyn Approver>) -> Self {
        Self { output, approver }
    }
}

#[async_trait]
impl ScriptHost for Host {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        if self.output.stdout_terminal {
            // Much of a script's output comes from models.
            return self.output.stdout(&String::from_utf8_lossy(bytes));
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    fn stderr(&self, bytes: &[u8]) {
        self.output.stderr(&plain(&String::from_utf8_lossy(bytes)));
    }

    async fn stdin(&self, what: StdinRead, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let read = spawn_blocking(move || read(what, bytes_max)).await;
        read.map_err(io::Error::other)?
    }

    async fn ask(&self, question: &UserQuestion) -> Result<String, String> {
        let default = question.default.clone();
        if !has_person() {
            return default.ok_or_else(|| "there is no terminal to ask on".to_owned());
        }
        let (question, output) = (question.clone(), self.output);
        let asked = spawn_blocking(move || ask(&question, &output)).await;
        asked.map_err(|err| err.to_string())?
    }

    fn approver(&self) -> Arc<dyn Approver> {
        Arc::clone(&self.approver)
    }

    fn event(&self, agent: &str, event: &TurnEvent) {
        if self.output.quiet || !self.output.stderr_terminal {
            return;
        }
        if let EventBody::ToolCallPending {
            name, arguments, ..
        } = &event.body
        {
            let columns = self.output.columns();
            let line = call_line(name, arguments, columns.saturating_sub(agent.len() + 3));
            self.output
                .stderr(&format!("{}: {}\n", plain(agent), plain(&line)));
        }
    }
}

fn read(what: StdinRead, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let bound = u64::try_from(bytes_max)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut stdin = io::stdin().lock().take(bound);
    let mut bytes = Vec::new();
    match what {
        StdinRead::All => stdin.read_to_end(&mut bytes)?,
        StdinRead::Line | StdinRead::WholeLine => stdin.read_until(b'\n', &mut bytes)?,
    };
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!(
            "it is longer than {bytes_max} bytes"
        )));
    }
    if bytes.is_empty() && what != StdinRead::All {
        return Ok(None);
    }
    if what == StdinRead::Line && bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(Some(bytes))
}

/// Asks until the answer is one of the choices, if there are some.
fn ask(question: &UserQuestion, output: &Output) -> Result<String, String> {
    let choices = match question.choices.is_empty() {
        true => String::new(),
        false => format!(" ({})", question.choices.join("/")),
    };
    let default = match &question.default {
        Some(default) => format!(" [{default}]"),
        None => String::new(),
    };
    loop {
        output.stderr(&plain(&format!("{}{choices}{default} ", question.text)));
        let mut answer = String::new();
        let mut stdin = io::stdin().lock().take(ANSWER_BYTES_MAX);
        let read = stdin
            .read_line(&mut answer)
            .map_err(|err| err.to_string())?;
        if read == 0 {
            return Err("standard input has ended".to_owned());
        }
        let answer = match (answer.trim(), &question.default) {
            ("", Some(default)) => default.clone(),
            (answer, _) => answer.to_owned(),
        };
        if question.choices.is_empty() || question.choices.contains(&answer) {
            return Ok(answer);
        }
    }
}

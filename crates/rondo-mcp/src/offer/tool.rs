//! A tool of a server as a tool of a turn.

use super::argument_name::{ArgumentNames, restored};
use super::catalog::{Catalog, Change, Entry};
use crate::client;
use crate::running::RunningServer;
use async_trait::async_trait;
use rondo_core::ports::{QUESTION_BYTES_MAX, Tool, ToolInvocation};
use rondo_types::text::first_bytes;
use rondo_types::{ToolErrorCode, ToolOutcome, ToolSpec};
use std::sync::Arc;

/// A tool that is called over the connection to its server.
pub(crate) struct Callable {
    spec: ToolSpec,
    /// Its own name.
    name: String,
    /// The names of its arguments that stand for others.
    argument_names: ArgumentNames,
    running: Arc<RunningServer>,
    catalog: Arc<Catalog>,
}

impl Callable {
    pub(crate) fn new(entry: &Entry, running: Arc<RunningServer>, catalog: Arc<Catalog>) -> Self {
        Self {
            spec: entry.offered.spec.clone(),
            name: entry.offered.definition.name.clone(),
            argument_names: entry.offered.definition.argument_names(),
            running,
            catalog,
        }
    }

    /// Asks whether the tool may be what it has become.
    async fn agreed(&self, diff: &str, invocation: &ToolInvocation) -> Result<(), ToolOutcome> {
        let server = &self.running.server().name;
        let tool = rondo_core::shown::line(&self.name);
        let head = format!(
            "The server `{server}` describes its tool `{tool}` differently from when it was accepted:\n"
        );
        let room = QUESTION_BYTES_MAX - head.len().min(QUESTION_BYTES_MAX) - 64;
        let diff = first_bytes(diff, room);
        let asked = invocation
            .asker
            .approval(format!("{head}{diff}\nAccept it, and call it?"));
        match asked.await {
            Ok(()) => {
                self.running.accept(&self.name);
                Ok(())
            }
            Err(why) => {
                self.catalog.take_off(server, &self.name);
                self.running.note(format!(
                    "the tool `{tool}` of the server `{server}` is set aside because it changed; \
                     `rondo mcp test {server}` shows the difference and asks"
                ));
                let message = format!("the tool has changed since it was accepted: {why}");
                Err(ToolOutcome::error(ToolErrorCode::Denied, message))
            }
        }
    }
}

#[async_trait]
impl Tool for Callable {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, mut invocation: ToolInvocation) -> ToolOutcome {
        let arguments = std::mem::take(&mut invocation.arguments);
        invocation.arguments = restored(&self.argument_names, arguments);
        let server = self.running.server();
        let ready = tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => {
                return ToolOutcome::error(ToolErrorCode::Cancelled, "the call was cancelled");
            }
            ready = self.running.ready() => ready,
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err(why) => {
                let message = format!("the server `{}` cannot be reached: {why}", server.name);
                return ToolOutcome::error(ToolErrorCode::Failed, message);
            }
        };
        match self.catalog.change_of(&server.name, &self.name) {
            Change::Same => {}
            Change::Gone => {
                let message = format!("the server `{}` no longer offers this tool", server.name);
                return ToolOutcome::error(ToolErrorCode::Failed, message);
            }
            Change::Changed(diff) => {
                if let Err(outcome) = self.agreed(&diff, &invocation).await {
                    return outcome;
                }
            }
        }
        let (peer, shared) = (&ready.peer, &ready.shared);
        let read = client::call(
            peer,
            shared,
            &server.name,
            &self.name,
            server.timeouts,
            &invocation,
        )
        .await;
        let file = self
            .running
            .result_file(&invocation.session, &invocation.call_id);
        read.kept_in(file).await
    }
}

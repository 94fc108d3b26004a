//! A server of the Model Context Protocol that a script starts for its agents.

use super::session::ScriptSession;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::mcp::McpSetup;
use rondo_core::Tool;
use rondo_core::ports::{ToolScope, ToolSource};
use rondo_mcp::Servers;
use rondo_mcp::config::{Origin, Placeholders, WrittenServer};
use rondo_types::{SessionId, ToolSpec, TurnId};
use serde_json::Value;
use std::sync::Arc;

/// A server that runs until this is dropped.
pub struct ScriptServer {
    name: String,
    servers: Servers,
}

impl ScriptServer {
    /// Starts a server and waits until it offers its tools: the one that the configuration has under this name, or one
    /// that is described as there.
    ///
    /// # Errors
    /// When there is no such server, its description makes no sense, or it does not start.
    ///
    /// # Cancel safety
    /// Cancel safe: the server is ended.
    pub async fn start(script: &ScriptSession, name: &str, written: Option<Value>) -> Result<Self> {
        let failed = |why: String| {
            let message = format!("the server `{name}` cannot be used: {why}");
            SetupError::new(SetupErrorKind::Config, message)
        };
        let mut settings = script.settings().clone();
        let mut server = match written {
            None => {
                let mut known = settings.mcp.servers.iter();
                let found = known.find(|it| it.name == name).cloned();
                found.ok_or_else(|| failed("the configuration has none of this name".to_owned()))?
            }
            Some(written) => {
                let written: WrittenServer =
                    serde_json::from_value(written).map_err(|err| failed(err.to_string()))?;
                let env = &settings.env;
                let made = written.server(
                    name,
                    Origin::User,
                    Placeholders::Shell,
                    &|variable: &str| env.text(variable),
                    &settings.directory,
                );
                made.map_err(|aside| failed(aside.why))?
            }
        };
        // The script has chosen it for its agents, so none of its tools is held back.
        server.always_load = true;
        settings.mcp = McpSetup {
            servers: vec![server],
            ..McpSetup::default()
        };
        let servers = script.runtime().servers_to_test(&settings)?;
        let servers = servers.ok_or_else(|| failed("it was not started".to_owned()))?;
        let report = servers.report(name).await;
        match report.and_then(|it| it.failure) {
            Some(why) => Err(failed(why)),
            None => Ok(Self {
                name: name.to_owned(),
                servers,
            }),
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its tools for the turns of a conversation.
    #[must_use]
    pub fn source(&self, session: &SessionId) -> Arc<dyn ToolSource> {
        self.servers.source(session)
    }

    /// Returns its tools.
    #[must_use]
    pub fn tools(&self, session: &SessionId) -> Vec<ToolSpec> {
        let tools = self.on_offer(session).into_iter();
        tools.map(|it| it.spec()).collect()
    }

    /// Returns the tool of this name, with or without the prefix that models see.
    #[must_use]
    pub fn tool(&self, session: &SessionId, name: &str) -> Option<Arc<dyn Tool>> {
        let long = format!("{}{}__{name}", rondo_mcp::PREFIX, self.name);
        let mut tools = self.on_offer(session).into_iter();
        tools.find(|it| {
            let known = it.spec().name;
            known == name || known == long
        })
    }

    fn on_offer(&self, session: &SessionId) -> Vec<Arc<dyn Tool>> {
        let scope = ToolScope {
            session: session.clone(),
            turn: TurnId::new(""),
            step: 1,
        };
        self.source(session).tools(&scope)
    }

    /// Ends it, and waits for that for a bounded time.
    pub async fn close(&self) {
        self.servers.close().await;
    }
}

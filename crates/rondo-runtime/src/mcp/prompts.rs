//! Prompts and resources of servers, for a person who names them.

use super::mentions;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::runtime::Runtime;
use crate::settings::Settings;
use rondo_core::shown;
use rondo_types::{Message, Part};
use std::sync::Arc;

impl Runtime {
    /// Reads the resources of servers that a message names as `@server:uri`, and adds them to it.
    ///
    /// # Errors
    /// When one cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is kept.
    pub async fn with_resources(
        &self,
        settings: &Settings,
        message: Arc<Message>,
    ) -> Result<Arc<Message>> {
        let Some(servers) = self.servers(settings)? else {
            return Ok(message);
        };
        let message = Arc::unwrap_or_clone(message);
        let message = mentions::with_resources(message, &servers).await?;
        Ok(message.into())
    }

    /// Returns the text and media of a server's prompt, whose arguments are given in the order in which it lists them.
    ///
    /// # Errors
    /// When there is no such server or prompt, or too few or too many arguments.
    ///
    /// # Cancel safety
    /// Cancel safe: the request is withdrawn.
    pub async fn server_prompt(
        &self,
        settings: &Settings,
        server: &str,
        prompt: &str,
        arguments: &[String],
    ) -> Result<Vec<Part>> {
        let failed = |why: String| {
            let shown = shown::line(prompt);
            let context = format!("failed to get the prompt `{shown}` of the server `{server}`");
            SetupError::because(SetupErrorKind::Input, context, why)
        };
        let servers = self.servers(settings)?;
        let servers = servers.ok_or_else(|| failed("there are no servers".to_owned()))?;
        let known = servers.prompts(server).await.map_err(failed)?;
        let found = known.iter().find(|it| it.name == prompt);
        let found = found.ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|it| it.name.as_str()).collect();
            failed(format!("it has only: {}", names.join(", ")))
        })?;
        let needed = found.arguments.iter().filter(|it| it.1).count();
        if arguments.len() < needed || arguments.len() > found.arguments.len() {
            let names = found
                .arguments
                .iter()
                .map(|(name, is_needed)| match is_needed {
                    true => name.clone(),
                    false => format!("[{name}]"),
                });
            let names: Vec<String> = names.collect();
            return Err(failed(format!("it takes: {}", names.join(" "))));
        }
        let names = found.arguments.iter().map(|it| it.0.clone());
        let arguments = names.zip(arguments.iter().cloned()).collect();
        let got = servers.prompt(server, prompt, arguments).await;
        got.map_err(failed)
    }
}

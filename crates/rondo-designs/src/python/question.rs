//! Runs one question, within its bounds.

use super::bridge::{Bridge, ProviderModel, serve};
use super::capabilities::CapabilityProvider;
use super::types::LlmProvider;
use crate::run::{AllowAll, Run};
use anyhow::{Context as _, ensure};
use rondo_core::{Model, Toolbox, profile as profiles};
use rondo_types::{Message, Profile, Transcript};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Limits of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// Requests to the provider, corrective ones included; at least 1.
    pub max_steps: usize,
    /// Of one request, in milliseconds.
    pub per_step_timeout_ms: u64,
    /// Of the whole question, in milliseconds, time in capabilities included.
    pub total_timeout_ms: u64,
    /// Corrective requests after replies that cannot be used: one budget for all kinds of them.
    pub invalid_response_retries: usize,
}

impl Default for AgentConfig {
    /// Returns six steps, 8 s a step, 20 s in all, and one corrective retry.
    fn default() -> Self {
        Self {
            max_steps: 6,
            per_step_timeout_ms: 8_000,
            total_timeout_ms: 20_000,
            invalid_response_retries: 1,
        }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAnswer {
    /// The model's answer; if there is none, what stopped it and what the capabilities found.
    pub text: String,
    /// Set if it is less than what the model would have given.
    pub degraded: bool,
}

/// Answers one question. Nothing is kept between questions.
///
/// # Errors
/// When nothing can be asked: `max_steps` is 0. Failures on the way give a degraded answer.
///
/// # Cancel safety
/// Dropping the future ends the request or the capability under way.
pub async fn run_question<P: LlmProvider, C: CapabilityProvider>(
    provider: &P,
    capabilities: &C,
    question: &str,
    config: &AgentConfig,
) -> anyhow::Result<AgentAnswer> {
    let profile = profile(config)?;
    // The loop owns what it runs with; what is only lent is served from here.
    let (bridge, jobs) = Bridge::new();
    let model = provider.model();
    let model = model.unwrap_or_else(|| Arc::new(ProviderModel::new(&bridge)) as Arc<dyn Model>);
    let tools = Toolbox::new(bridge.into_tools()).context("the capabilities cannot be offered")?;
    let run = Run {
        model,
        tools,
        gate: Arc::new(AllowAll),
        system: profile.system_prompt.clone().into_iter().collect(),
        profile,
        history: Transcript::new(),
        input: Message::user(question),
    };
    let never = CancellationToken::new();
    let outcome = tokio::select! {
        outcome = run.finish(&never, drop) => outcome,
        never = serve(provider, capabilities, jobs) => match never {},
    };
    Ok(AgentAnswer {
        text: outcome.text,
        degraded: outcome.degraded,
    })
}

fn profile(config: &AgentConfig) -> anyhow::Result<Profile> {
    ensure!(config.max_steps > 0, "`max_steps` must be at least 1");
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut profile = profiles::builtin("python").context("the profile cannot be read")?;
    profile.limits.max_steps = count(config.max_steps);
    profile.limits.invalid_retries = count(config.invalid_response_retries);
    profile.limits.step_timeout = Some(Duration::from_millis(config.per_step_timeout_ms));
    profile.limits.turn_timeout = Some(Duration::from_millis(config.total_timeout_ms));
    Ok(profile)
}

//! The agents of a script: what model they ask, with what tools, under what limits.

use super::session::ScriptSession;
use crate::error::Result;
use crate::mcp::McpSetup;
use crate::profiles;
use crate::settings::Settings;
use crate::spec::{TurnSpec, profile_name};
use crate::target::ModelTarget;
use rondo_types::{Effort, RemainingLimits};
use serde_json::Value;
use std::time::Duration;

/// The bound on steps of an agent that names neither a profile nor a bound, unless the settings do.
const STEPS_DEFAULT: u32 = 10;

/// A model of a script.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentModel {
    /// Its name, as `provider/model` or of a tier; the settings' own if there is none.
    pub name: Option<String>,
    /// Base URL of the model.
    pub base_url: Option<String>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Tokens of one reply.
    pub max_output_tokens: Option<u32>,
    /// How much it reasons.
    pub effort: Option<Effort>,
}

/// An agent of a script.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptAgent {
    /// Name of the agent in messages.
    pub name: String,
    /// Model of the agent.
    pub model: AgentModel,
    /// The profile; if there is none, the prompt and the tools are the script's alone.
    pub profile: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// The names of its tools; those of its profile if there are none.
    pub tools: Option<Vec<String>>,
    /// Patterns of calls that run without a question.
    pub allowed: Vec<String>,
    /// Limits of each of its turns.
    pub limits: RemainingLimits,
    /// The JSON Schema that its answers fit.
    pub schema: Option<Value>,
}

impl ScriptAgent {
    /// Returns the settings of its turns.
    pub(super) fn settings(&self, of: &Settings) -> Settings {
        let mut settings = of.clone();
        let values = &mut settings.values;
        if let Some(model) = &self.model.name {
            values.model = Some(model.clone());
        }
        if let Some(base_url) = &self.model.base_url {
            values.base_url = Some(base_url.clone());
        }
        if let Some(profile) = &self.profile {
            values.profile = Some(profile.clone());
        }
        values.agent = None;
        if !self.allowed.is_empty() {
            let allowed = values.allowed_tools.get_or_insert_default();
            allowed.extend(self.allowed.iter().cloned());
        }
        // Those that it has come with the host, chosen by the script.
        settings.mcp = McpSetup::default();
        settings
    }

    /// Returns the models, the profile and the tools of a turn that begins now.
    ///
    /// # Errors
    /// When the settings name no model, or one that cannot do what the agent needs.
    pub(super) fn spec(
        &self,
        script: &ScriptSession,
        settings: &Settings,
        time: Option<Duration>,
    ) -> Result<TurnSpec> {
        let target = ModelTarget::make(settings)?;
        let mut profile = profiles::resolve(settings, profile_name(&target, settings))?.profile;
        if self.profile.is_none() && settings.values.profile.is_none() {
            profile.context = false;
            profile.system_prompt = None;
            profile.tools.clear();
        }
        if let Some(system) = &self.system {
            profile.system_prompt = Some(system.clone());
        }
        if let Some(tools) = &self.tools {
            profile.tools.clone_from(tools);
        }
        let sampling = &mut profile.sampling;
        sampling.temperature = self.model.temperature.or(sampling.temperature);
        sampling.max_output_tokens = self.model.max_output_tokens.or(sampling.max_output_tokens);
        sampling.effort = self.model.effort.or(sampling.effort);
        let mut limits = self.limits.applied_to(profile.limits);
        if self.profile.is_none()
            && self.limits.steps.is_none()
            && settings.values.max_steps.is_none()
        {
            limits.max_steps = limits.max_steps.min(STEPS_DEFAULT);
        }
        let limits = script.left().applied_to(limits);
        let time = RemainingLimits {
            time,
            ..RemainingLimits::default()
        };
        profile.limits = time.applied_to(limits);
        TurnSpec::new(profile, target, settings, script.runtime().notices())
    }
}

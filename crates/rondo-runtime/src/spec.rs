//! The models, profile and tools of a turn, chosen before it starts.

use crate::agents::Agents;
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::notices::Notices;
use crate::providers::name_of_today;
use crate::request_limits::RequestLimits;
use crate::sessions::{CutOff, LatestModels};
use crate::settings::Settings;
use crate::target::ModelTarget;
use crate::{embedded, fallbacks, profiles, tools, transport};
use rondo_core::Model;
use rondo_types::{Outcome, Profile};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The models, profile and tools of a turn.
#[derive(Clone)]
pub struct TurnSpec {
    /// The effective profile.
    pub profile: Arc<Profile>,
    /// The model to use first.
    pub target: ModelTarget,
    /// The models to use if it fails, in order.
    pub fallbacks: Vec<ModelTarget>,
    /// The names of the tools to offer.
    pub tool_names: Vec<String>,
}

/// A model port that is ready for requests, and its API key if it uses one.
#[derive(Clone)]
pub struct ConnectedModel {
    pub model: Arc<dyn Model>,
    pub key: Option<String>,
}

impl TurnSpec {
    /// Chooses the models, profile and tools that the settings name.
    ///
    /// # Errors
    /// When the settings name no model, or one that cannot do what the profile needs.
    pub fn of(settings: &Settings, notices: &dyn Notices) -> Result<Self> {
        let Some(name) = &settings.values.agent else {
            let target = ModelTarget::make(settings)?;
            let profile = profiles::resolve(settings, profile_name(&target, settings))?.profile;
            check_dialect(&profile)?;
            return Self::new(profile, target, settings, notices);
        };
        let agents = Agents::find(settings);
        let agent = agents.named(name)?;
        for note in &agent.notes {
            notices.note(&format!("agent `{name}`: {note}"));
        }
        let mut settings = settings.clone();
        if let Some(model) = agent.model.as_ref().filter(|_| !settings.names_model()) {
            settings.values.model = Some(model.clone());
        }
        let target = ModelTarget::make(&settings)?;
        let mut profile = profiles::resolve(&settings, profile_name(&target, &settings))?.profile;
        check_dialect(&profile)?;
        profile.tools.retain(|it| agent.gets(it));
        profile.system_prompt = Some(agent.prompt.clone());
        Self::new(profile, target, &settings, notices)
    }

    /// Restores the models and profile of an interrupted turn; permissions are today's.
    ///
    /// # Errors
    /// When its models are unknown to this configuration, or at another address now.
    pub(crate) fn of_cut_off(
        turn: &CutOff,
        settings: &Settings,
        notices: &dyn Notices,
    ) -> Result<Self> {
        let mut settings = settings.clone();
        let mut models = turn.models.iter().cloned();
        settings.values.model = models.next();
        settings.values.fallbacks = Some(models.collect());
        let recorded = turn.addresses.first().map_or("", String::as_str);
        let target = at_its_address(recorded, turn.is_imported, &mut settings)?;
        let profile = permitted_now(turn.profile.clone(), turn.is_imported, &settings);
        let spec = Self::new(profile, target, &settings, notices)?;
        let recorded = turn.addresses.iter().skip(1);
        for (fallback, recorded) in spec.fallbacks.iter().zip(recorded) {
            if is_elsewhere(fallback, recorded) {
                return Err(moved(fallback, recorded));
            }
        }
        Ok(spec)
    }

    /// Chooses the tools and the fallbacks of a model under a profile.
    ///
    /// # Errors
    /// When the model cannot do what the profile needs.
    pub(crate) fn new(
        profile: Profile,
        target: ModelTarget,
        settings: &Settings,
        notices: &dyn Notices,
    ) -> Result<Self> {
        let tool_names = tools::wanted(&profile, settings);
        target.check(&profile, tool_names.len())?;
        let fallbacks = fallbacks::choose(&target, &profile, tool_names.len(), settings, notices)?;
        Ok(Self {
            profile: Arc::new(profile),
            target,
            fallbacks,
            tool_names,
        })
    }

    /// Returns a fingerprint of everything that the model's connection depends on. It contains keys: compare
    /// it, never show it.
    pub(crate) fn connected_from(&self, settings: &Settings) -> String {
        let target = &self.target;
        format!(
            "{} {} {} {} {:?} {:?} {:?} {:?}",
            target.full_name(),
            target.base_url,
            target.dialect_under(&self.profile),
            self.profile.streaming,
            target.provider,
            target.key_in_env(settings),
            settings.values.ca_file,
            settings.values.web_search,
        )
    }

    /// Finds the key or the weights of the model and builds its port.
    ///
    /// # Errors
    /// When a key or weights are missing, or the key does not come within the turn's time limit.
    pub(crate) async fn connect(
        &self,
        settings: &Settings,
        notices: &dyn Notices,
        limits: &RequestLimits,
    ) -> Result<ConnectedModel> {
        let target = &self.target;
        if let Some(weights) = embedded::prepare(target, settings, notices).await? {
            let model = embedded::model(target, weights, settings)?;
            return Ok(ConnectedModel { model, key: None });
        }
        let key = key_in_time(target, settings, self.profile.limits.turn_timeout).await?;
        let dialect = target.dialect_under(&self.profile);
        let streaming = self.profile.streaming;
        let model = transport::http_model(target, key.clone(), dialect, streaming, settings)?;
        let limit = limits.of(target);
        let model = Arc::new(model.with_request_limit(limit));
        Ok(ConnectedModel { model, key })
    }

    /// Returns the model and its fallbacks.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ModelTarget> {
        std::iter::once(&self.target).chain(&self.fallbacks)
    }

    /// Returns the environment variables that may hold a key of any of the models.
    pub fn key_variables(&self) -> Vec<String> {
        let variables = self.targets().flat_map(ModelTarget::key_variables);
        variables.cloned().collect()
    }

    /// Returns the model that answered, or failed, last.
    pub fn asked(&self, outcome: &Outcome) -> &ModelTarget {
        let name = outcome.model.as_deref();
        self.targets()
            .find(|target| Some(target.full_name().as_str()) == name)
            .unwrap_or(&self.target)
    }
}

/// Permissions are the profile's of now, never a record's; recorded prohibitions stay.
pub(crate) fn permitted_now(
    mut recorded: Profile,
    is_imported: bool,
    settings: &Settings,
) -> Profile {
    recorded.allowed_tools = Vec::new();
    if let Ok(now) = profiles::resolve(settings, &recorded.name) {
        recorded
            .allowed_tools
            .clone_from(&now.profile.allowed_tools);
        profiles::refuse_too(&mut recorded, now.profile);
    }
    if is_imported && let Ok(own) = profiles::resolve(settings, settings.profile_name()) {
        // The author of the file chose the profile's name.
        profiles::refuse_too(&mut recorded, own.profile);
    }
    recorded
}

/// Sets the model of the session's latest turn in the settings, unless the command line names a model, so
/// that a session stays with its model. An imported session has no say in this: the settings choose.
///
/// # Errors
/// When this configuration does not know that model's provider.
pub fn go_on_with(
    asked: &LatestModels,
    settings: &mut Settings,
    notices: &dyn Notices,
) -> Result<()> {
    let Some(model) = asked.models.first().filter(|_| !settings.names_model()) else {
        return Ok(());
    };
    let recorded = asked.addresses.first().map_or("", String::as_str);
    if asked.is_imported {
        let at = match recorded.is_empty() {
            true => String::new(),
            false => format!(" at `{recorded}`"),
        };
        notices.note(&format!(
            "the session was imported: your settings choose the model, not the file, which names `{model}`{at}"
        ));
        return Ok(());
    }
    settings.values.model = Some(model.clone());
    let is_set = settings.values.base_url.clone();
    at_its_address(recorded, false, settings).map_err(|error| {
        error.hint(format!(
            "the session's latest turn used `{model}`: name another model with `-m`"
        ))
    })?;
    if settings.values.base_url != is_set
        && let Some(address) = &settings.values.base_url
    {
        notices.note(&format!(
            "`{model}` is used at `{address}`, as before in this session; `--base-url` names another address"
        ));
    }
    Ok(())
}

/// Returns whether both name the same model, whether by the old or the new name of its provider.
#[must_use]
pub fn is_same_model(one: &str, other: &str) -> bool {
    fn today(name: &str) -> Option<(&str, &str)> {
        let (provider, model) = name.split_once('/')?;
        Some((name_of_today(provider), model))
    }
    one == other || today(one).is_some_and(|one| Some(one) == today(other))
}

/// Returns a note if the next turn would go to another model than the latest one, or to the same model at
/// another address.
pub fn other_answers(asked: &LatestModels, settings: &Settings) -> Option<String> {
    let model = asked.models.first()?;
    let recorded = asked.addresses.first().map_or("", String::as_str);
    let target = ModelTarget::make(settings).ok()?;
    if is_same_model(&target.full_name(), model) && !is_elsewhere(&target, recorded) {
        return None;
    }
    let at = |url: &str| match url.is_empty() {
        true => String::new(),
        false => format!(" at `{url}`"),
    };
    let now = match target.weights {
        Some(_) => String::new(),
        None => at(&target.shown_url()),
    };
    Some(format!(
        "the next question goes to `{}`{now}; so far, this session used `{}`{}",
        target.full_name(),
        model,
        at(recorded)
    ))
}

/// Returns the model at the address that was recorded, so that the conversation and the key go to no other
/// server. An address on the command line overrides it. The address of an imported session is never used,
/// since it could direct the user's key to any server.
fn at_its_address(
    recorded: &str,
    is_imported: bool,
    settings: &mut Settings,
) -> Result<ModelTarget> {
    let target = ModelTarget::make(settings)?;
    let is_there = !recorded.is_empty() && !is_elsewhere(&target, recorded);
    if settings.names_address() || is_there {
        return Ok(target);
    }
    // The address of the settings may be meant for another model.
    let is_set = settings.values.base_url.take();
    if recorded.is_empty() {
        let own = ModelTarget::make(settings)
            .ok()
            .filter(|it| it.weights.is_some());
        if own.is_none() {
            settings.values.base_url = is_set;
        }
        return Ok(own.unwrap_or(target));
    }
    let target = ModelTarget::make(settings)?;
    if !is_elsewhere(&target, recorded) {
        return Ok(target);
    }
    if is_imported {
        return Err(moved(&target, recorded));
    }
    settings.values.base_url = Some(recorded.to_owned());
    ModelTarget::make(settings)
}

fn is_elsewhere(target: &ModelTarget, recorded: &str) -> bool {
    !recorded.is_empty() && (target.weights.is_some() || target.shown_url() != recorded)
}

fn moved(target: &ModelTarget, recorded: &str) -> SetupError {
    let (name, now) = (target.full_name(), target.shown_url());
    let message = format!("the turn used `{name}` at `{recorded}`, which is now at `{now}`");
    SetupError::new(SetupErrorKind::Config, message)
        .hint("name the address with `--base-url`, or restore the provider's address")
}

/// Returns the profile's name: that of the built-in model for local weights, unless the user names one.
pub fn profile_name<'a>(target: &ModelTarget, settings: &'a Settings) -> &'a str {
    match (&settings.values.profile, &target.weights) {
        (None, Some(_)) => embedded::PROFILE,
        _ => settings.profile_name(),
    }
}

/// Checks that the profile's dialect, if it names one, exists in this version.
fn check_dialect(profile: &Profile) -> Result<()> {
    let Some(dialect) = &profile.dialect else {
        return Ok(());
    };
    if rondo_wire::dialect(dialect).is_some() {
        return Ok(());
    }
    let name = &profile.name;
    Err(SetupError::new(
        SetupErrorKind::Config,
        format_args!("profile `{name}` uses the dialect `{dialect}`, which this version does not have"),
    )
    .hint(format!(
        "choose another profile with `--profile`, or set `dialect` and `system_prompt` under `[profiles.{name}]` in the configuration; the dialects are: {}",
        rondo_wire::dialect_names().join(", ")
    )))
}

/// Finds the key within the turn's time limit, since the command that prints it may wait for the user.
async fn key_in_time(
    target: &ModelTarget,
    settings: &Settings,
    limit: Option<Duration>,
) -> Result<Option<String>> {
    let finding = target.key(settings);
    let Some(limit) = limit else {
        return finding.await;
    };
    timeout(limit, finding).await.unwrap_or_else(|_| {
        let message = "the deadline passed before the `api_key_command` printed the key";
        Err(SetupError::new(SetupErrorKind::Deadline, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::notices::NoNotices;
    use crate::table::Layer;

    #[test]
    fn a_record_grants_nothing_and_lifts_no_ban() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
        let directory = home.path().to_owned();
        let settings = Settings::load(env, directory, Layer::default(), &NoNotices).unwrap();
        let of_hub = rondo_core::profile::builtin("hub").unwrap().allowed_tools;
        for (name, allowed, is_forbidden) in [
            ("default", vec!["save_memory".to_owned()], false),
            ("hub", of_hub, true),
            ("python", vec!["eval_expr".to_owned()], false),
            ("gone", vec![], false),
        ] {
            let mut recorded = rondo_core::profile::builtin("default").unwrap();
            recorded.name = name.to_owned();
            recorded.allowed_tools = vec!["exec".to_owned()];
            recorded.forbidden_programs = vec!["own".to_owned()];
            recorded.rule_sets = vec!["recorded".to_owned()];
            let permitted = permitted_now(recorded, false, &settings);
            assert_eq!(permitted.allowed_tools, allowed, "{name}");
            assert_eq!(permitted.forbidden_programs, ["own"], "{name}");
            let sets = match is_forbidden {
                true => &["recorded", "dangerous-programs"][..],
                false => &["recorded"],
            };
            assert_eq!(permitted.rule_sets, sets, "{name}");
        }
    }

    #[test]
    fn an_imported_record_escapes_no_rule_set_by_the_name_of_its_profile() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of(&[
            ("RONDO_HOME", home.path().to_str().unwrap()),
            ("RONDO_PROFILE", "hub"),
        ]);
        let directory = home.path().to_owned();
        let settings = Settings::load(env, directory, Layer::default(), &NoNotices).unwrap();
        for name in ["default", "gone"] {
            for (is_imported, sets) in [(true, &["dangerous-programs"][..]), (false, &[])] {
                let mut recorded = rondo_core::profile::builtin("default").unwrap();
                recorded.name = name.to_owned();
                let permitted = permitted_now(recorded, is_imported, &settings);
                assert_eq!(permitted.rule_sets, sets, "{name}");
            }
        }
    }
}

//! The model, the profile, the memory, and calls that run without asking.

use super::memory::remembers;
use super::{Context, wrong};
use crate::error::Result;
use rondo_core::shown;
use rondo_runtime::NoNotices;
use rondo_runtime::profiles;
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::{TurnSpec, profile_name};
use rondo_runtime::target::ModelTarget;
use rondo_runtime::tools::tool_patterns;
use rondo_tui::prompt::reply::{Change, Reply};

/// The bound on patterns that calls are allowed by.
const PATTERNS_MAX: usize = 256;

pub(super) fn model(name: &str, context: &Context) -> Result<Reply> {
    let mut settings = context.settings.clone();
    if !name.is_empty() {
        settings.values.model = Some(name.to_owned());
    }
    let target = ModelTarget::make(&settings)?;
    let (model, profile) = (target.full_name(), profile_name(&target, &settings));
    if name.is_empty() {
        let text = format!("model {model}; `/model NAME` changes it");
        return Ok(Reply::words(text));
    }
    target.check_key(&settings)?;
    profiles::resolve(&settings, profile)?;
    let text = format!("from the next turn on: {model}, profile {profile}");
    Ok(Reply::words(text).with(Change::Model(name.to_owned())))
}

pub(super) fn profile(name: &str, context: &Context) -> Result<Reply> {
    let mut settings = context.settings.clone();
    if !name.is_empty() {
        profiles::resolve(&settings, name)?;
        settings.values.profile = Some(name.to_owned());
    }
    let named = match ModelTarget::make(&settings) {
        Ok(target) => profile_name(&target, &settings).to_owned(),
        Err(_) => settings.profile_name().to_owned(),
    };
    let memory = match spec(&settings, context) {
        Ok(spec) if remembers(&spec) => ": a question includes the conversation before it",
        Ok(_) => ": a question does not include the conversation before it",
        // Without a model, only the profile's name is known.
        Err(_) => "",
    };
    Ok(match name {
        "" => Reply::words(format!(
            "profile {named}{memory}; `/profile NAME` changes it"
        )),
        name => Reply::words(format!("from the next turn on: profile {named}{memory}"))
            .with(Change::Profile(name.to_owned())),
    })
}

pub(super) fn memory(word: &str, context: &Context) -> Result<Reply> {
    match word {
        "" => {}
        "on" => context.memory.choose(true),
        "off" => context.memory.choose(false),
        _ => return Err(wrong("`/memory` takes `on` or `off`")),
    }
    let spec = spec(&context.settings, context)?;
    Ok(Reply::words(match remembers(&spec) {
        true => "memory is on: a question includes the conversation before it",
        false => "memory is off: a question does not include the conversation before it",
    }))
}

fn spec(settings: &Settings, context: &Context) -> Result<TurnSpec> {
    let mut spec = TurnSpec::of(settings, &NoNotices)?;
    context.memory.apply(&mut spec);
    Ok(spec)
}

pub(super) fn approve(pattern: &str, context: &Context) -> Result<Reply> {
    let values = &context.settings.values;
    let mut allowed = values.allowed_tools.clone().unwrap_or_default();
    let is_new = !pattern.is_empty() && allowed.iter().all(|known| known != pattern);
    if is_new {
        tool_patterns([pattern])?;
        if allowed.len() >= PATTERNS_MAX {
            return Err(wrong(format!(
                "{PATTERNS_MAX} patterns are allowed already"
            )));
        }
        allowed.push(pattern.to_owned());
    }
    let granted = context.granted.iter();
    let granted = granted.map(|it| shown::line(&it.to_string()));
    let mut lines: Vec<String> = allowed.iter().cloned().chain(granted).collect();
    if values.yolo == Some(true) {
        lines.insert(0, "everything".to_owned());
    }
    let reply = Reply::words(match lines.is_empty() {
        true => "only calls that change nothing run without asking; `/approve PATTERN` adds others, such as \
                 `/approve exec(git push *)`"
            .to_owned(),
        false => format!("calls that run without asking:\n  {}", lines.join("\n  ")),
    });
    Ok(match is_new {
        true => reply.with(Change::Allow(allowed)),
        false => reply,
    })
}

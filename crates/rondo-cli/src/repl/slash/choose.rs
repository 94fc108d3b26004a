//! Slash commands that choose the mode, model and profile, and approve calls.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::repl::Repl;
use crate::repl::mode::Mode;
use crate::repl::talk::remembers;
use rondo_core::shown;
use rondo_runtime::profiles;
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::profile_name;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::tools::tool_patterns;

/// The bound on patterns that calls are allowed by.
const PATTERNS_MAX: usize = 256;

impl Repl {
    pub(super) fn choose_mode(&mut self, name: &str) -> Result<()> {
        let mode = match name {
            "" => self.mode().next(),
            name => Mode::named(name).ok_or_else(|| {
                let names = Mode::WHEEL.map(Mode::name).join(", ");
                wrong(format!("there is no mode `{name}`")).hint(format!("the modes are: {names}"))
            })?,
        };
        self.set_mode(mode);
        Ok(())
    }

    pub(super) fn choose_model(&mut self, name: &str) -> Result<()> {
        if !name.is_empty() {
            self.try_settings(|settings| settings.values.model = Some(name.to_owned()))?;
        }
        let model = ModelTarget::make(&self.talk.session.settings)?.full_name();
        self.print(&format!("{model}\n"))
    }

    pub(super) fn choose_profile(&mut self, name: &str) -> Result<()> {
        if !name.is_empty() {
            self.try_settings(|settings| settings.values.profile = Some(name.to_owned()))?;
        }
        let spec = self.talk.spec()?;
        let memory = match remembers(&spec) {
            true => "a question knows what was said before it",
            false => "each question stands by itself",
        };
        self.print(&format!("{}: {memory}\n", spec.profile.name))
    }

    pub(super) fn choose_memory(&mut self, word: &str) -> Result<()> {
        self.talk.memory = match word {
            "" => self.talk.memory,
            "on" => Some(true),
            "off" => Some(false),
            _ => return Err(wrong("`/memory` takes `on` or `off`".to_owned())),
        };
        let spec = self.talk.spec()?;
        let on = match remembers(&spec) {
            true => "on",
            false => "off",
        };
        self.print(&format!("memory is {on}\n"))
    }

    pub(super) fn approve(&mut self, pattern: &str) -> Result<()> {
        if !pattern.is_empty() {
            tool_patterns([pattern])?;
            let values = &mut self.talk.session.settings.values;
            let allowed = values.allowed_tools.get_or_insert_default();
            if allowed.len() >= PATTERNS_MAX {
                return Err(wrong("too much is allowed already".to_owned()));
            }
            if !allowed.iter().any(|it| it == pattern) {
                allowed.push(pattern.to_owned());
            }
        }
        let settings = &self.talk.session.settings.values;
        let mut text = String::new();
        if settings.yolo == Some(true) {
            text.push_str("everything\n");
        }
        let of_settings = settings.allowed_tools.iter().flatten().cloned();
        let conversation = self.talk.current();
        let granted = conversation.map_or_else(Vec::new, |it| it.grants.list());
        let granted = granted.iter().map(|it| shown::line(&it.to_string()));
        for pattern in of_settings.chain(granted) {
            text.push_str(&pattern);
            text.push('\n');
        }
        if text.is_empty() {
            text.push_str("nothing but what only looks\n");
        }
        self.tell(&text)
    }

    /// Changes the settings, unless no model could answer under them.
    fn try_settings(&mut self, change: impl FnOnce(&mut Settings)) -> Result<()> {
        let mut settings = self.talk.session.settings.clone();
        change(&mut settings);
        let target = ModelTarget::make(&settings)?;
        target.check_key(&settings)?;
        profiles::resolve(&settings, profile_name(&target, &settings))?;
        self.talk.session.settings = settings;
        self.forget_face();
        Ok(())
    }
}

fn wrong(message: String) -> CliError {
    CliError::new(Exit::Usage, message)
}

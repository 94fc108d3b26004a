//! The system prompt of a turn, from the settings and the machine.

use crate::settings::Settings;
use rondo_context::{Environment, InstructionFile, InstructionSource, Parts};
use rondo_core::redact::Secrets;
use rondo_tools::{RepositoryInstructions, instruction_file, repository_instructions};
use rondo_types::Profile;
use std::path::Path;

/// The user's own instruction file, in the configuration directory.
const USER_FILE: &str = "AGENTS.md";

/// Returns the ordered blocks of the system prompt. A prompt that the user wrote is sent as it is,
/// without what the profile would add; the secrets stand in none.
#[must_use]
pub fn system_prompt(profile: &Profile, settings: &Settings, secrets: &Secrets) -> Vec<String> {
    let mut parts = Parts {
        profile: profile.system_prompt.clone(),
        appended: settings.values.append_system_prompt.clone(),
        ..Parts::default()
    };
    if profile.context && settings.values.system_prompt.is_none() {
        let found = repository_instructions(&settings.directory);
        parts.instructions = instructions(&found, settings);
        parts.environment = Some(environment(&settings.directory, found.root.as_deref()));
    }
    let blocks = parts.blocks().into_iter();
    blocks.map(|block| secrets.text(block.text)).collect()
}

fn environment(directory: &Path, root: Option<&Path>) -> Environment {
    Environment {
        system: format!("{} ({})", system_name(), std::env::consts::ARCH),
        date: chrono::Local::now().date_naive().to_string(),
        directory: directory.display().to_string(),
        repository: root.map(|root| root.display().to_string()),
    }
}

fn system_name() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        "windows" => "Windows",
        other => other,
    }
}

fn instructions(found: &RepositoryInstructions, settings: &Settings) -> Vec<InstructionFile> {
    let repository = found.files.iter().map(|(path, text)| InstructionFile {
        path: path.display().to_string(),
        text: text.clone(),
        source: InstructionSource::Repository,
    });
    user_file(settings).into_iter().chain(repository).collect()
}

fn user_file(settings: &Settings) -> Option<InstructionFile> {
    let path = settings.paths.config.join(USER_FILE);
    Some(InstructionFile {
        text: instruction_file(&path)?,
        path: path.display().to_string(),
        source: InstructionSource::User,
    })
}

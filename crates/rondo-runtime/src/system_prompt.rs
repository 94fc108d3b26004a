//! Builds the system prompt of a turn: collects the profile's prompt, the environment, the skills, the
//! memories and the instruction files. `rondo-tools` finds a repository's files, `rondo-context` orders, bounds and words the blocks.

use crate::review::Review;
use crate::settings::Settings;
use crate::skills::{SKILL_TOOL, Skills};
use crate::tools;
use rondo_context::{Environment, InstructionFile, InstructionSource, MemoryFile, Parts};
use rondo_core::clock::Clock;
use rondo_core::redact::Secrets;
use rondo_memory::calendar;
use rondo_tools::{RepositoryInstructions, instruction_file, repository_instructions};
use rondo_types::Profile;
use std::path::Path;

/// The user's own instruction file, in the configuration directory. The names of a repository's files
/// are in `rondo-tools`, module `instruction_files`.
const USER_FILE: &str = "AGENTS.md";

/// Tells the model what `--plan` asks for.
const PLAN: &str = "The user asks for a plan. Look at what you need, with tools that only read, and change nothing. \
Answer with the plan: numbered steps, each with the files to change and the commands to run, and how to tell that it \
worked. It is carried out once the user has approved it.";

/// Returns the blocks of the system prompt in order, with the secrets redacted. With a prompt from the
/// settings (`system_prompt`), the environment, the skills, the instruction files and the memories are left out.
#[must_use]
pub fn build(
    profile: &Profile,
    settings: &Settings,
    secrets: &Secrets,
    memories: Vec<MemoryFile>,
) -> Vec<String> {
    let mut parts = Parts {
        profile: profile.system_prompt.clone(),
        appended: appended(settings),
        ..Parts::default()
    };
    if profile.context && settings.values.system_prompt.is_none() {
        let mut found = repository_instructions(&settings.directory);
        if Review::of(settings).is_needed() {
            found.files.clear();
        }
        parts.instructions = instructions(&found, settings);
        if tools::wanted(profile, settings)
            .iter()
            .any(|it| it == SKILL_TOOL)
        {
            parts.skills = Skills::find(settings).listed();
        }
        parts.memories = memories;
        parts.environment = Some(environment(&settings.directory, found.root.as_deref()));
    }
    let blocks = parts.blocks().into_iter();
    blocks.map(|block| secrets.text(block.text)).collect()
}

/// Text after the prompt: the user's appendix, and the request for a plan.
fn appended(settings: &Settings) -> Option<String> {
    let plan = (settings.values.plan == Some(true)).then(|| PLAN.to_owned());
    let own = settings.values.append_system_prompt.clone();
    let parts: Vec<String> = own.into_iter().chain(plan).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn environment(directory: &Path, root: Option<&Path>) -> Environment {
    Environment {
        system: format!("{} ({})", system_name(), std::env::consts::ARCH),
        date: calendar::local(Clock::system().now()).date().to_string(),
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

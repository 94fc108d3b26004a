//! The names that the shell's completion offers.

use clap_complete::engine::CompletionCandidate;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::skills::Skills;
use rondo_runtime::weights::catalogue;
use rondo_runtime::{Layer, NoNotices, SETTINGS, models, profiles, sanitize, sessions};

/// Sessions that are offered, the latest first.
const SESSIONS_MAX: usize = 50;
/// The name of the most recent session, wherever a session is named.
const LATEST: &str = "latest";

/// Returns the names of the settings.
pub(super) fn settings() -> Vec<CompletionCandidate> {
    let all = SETTINGS.iter();
    all.filter_map(|it| candidate(it.name, it.help)).collect()
}

/// Returns the names of the profiles.
pub(super) fn profiles() -> Vec<CompletionCandidate> {
    let Some(settings) = load() else {
        return Vec::new();
    };
    let names = profiles::names(&settings);
    let described = names.iter().filter_map(|name| {
        let resolved = profiles::resolve(&settings, name).ok();
        candidate(
            name,
            &resolved
                .map(|it| it.profile.description)
                .unwrap_or_default(),
        )
    });
    described.collect()
}

/// Returns the models that are known by name: those of the settings, of the providers and of this machine.
pub(super) fn models() -> Vec<CompletionCandidate> {
    let named = load().map(|it| models::names(&it.values.models));
    let named = named.into_iter().flatten();
    let named = named.filter_map(|it| candidate(&it, ""));
    let local = local_models().into_iter().map(|it| it.add_prefix("local/"));
    named.chain(local).collect()
}

/// Returns the local models that have a name.
pub(super) fn local_models() -> Vec<CompletionCandidate> {
    let known = catalogue().unwrap_or_default().into_iter();
    known
        .filter_map(|it| candidate(&it.name, &it.summary))
        .collect()
}

/// Returns the latest sessions.
pub(super) fn sessions() -> Vec<CompletionCandidate> {
    let latest = candidate(LATEST, "The most recent session");
    let recorded = load()
        .filter(|it| it.paths.sessions().exists())
        .and_then(|it| {
            let store = sessions::open_to_read(&it).ok()?;
            store.sessions(SESSIONS_MAX).ok()
        });
    let recorded = recorded.into_iter().flatten();
    let recorded = recorded.filter_map(|it| candidate(it.id.as_str(), &it.title));
    latest.into_iter().chain(recorded).collect()
}

/// Returns the names of the MCP servers.
pub(super) fn servers() -> Vec<CompletionCandidate> {
    let names = load().map(|it| it.mcp.names()).unwrap_or_default();
    let names = names.iter();
    names.filter_map(|it| candidate(it, "")).collect()
}

/// Returns the names of the skills.
pub(super) fn skills() -> Vec<CompletionCandidate> {
    let found = load()
        .map(|it| Skills::find(&it).usable)
        .unwrap_or_default();
    found
        .iter()
        .filter_map(|it| candidate(&it.name, &it.description))
        .collect()
}

/// Returns the settings of this directory; without them there is nothing to offer.
fn load() -> Option<Settings> {
    let directory = std::env::current_dir().ok()?;
    Settings::load(Env::from_env(), directory, Layer::default(), &NoNotices).ok()
}

/// Offers a word with its description, if there is one, on one line. A shell puts the word into the command line as it is, so one
/// that would be more than a word there is not offered: a repository may have chosen it.
fn candidate(word: &str, description: &str) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:/@+".contains(c);
    let line = sanitize::cell(description);
    let help = (!line.is_empty()).then(|| line.into());
    let is_word = word.chars().all(is_plain);
    is_word.then(|| CompletionCandidate::new(word).help(help))
}

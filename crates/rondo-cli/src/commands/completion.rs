//! `rondo completion`, and the names that the shell's completion offers. The scripts ask this program for the words that
//! fit, since profiles, models, sessions and settings differ from one directory and one day to the next.

use super::report::write_failed;
use crate::cli::Cli;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use clap_complete::Shell;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, Shells};
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::skills::Skills;
use rondo_runtime::weights::catalogue;
use rondo_runtime::{Layer, NoNotices, SETTINGS, models, profiles, sanitize, sessions};
use std::ffi::OsString;

/// The variable by which a completion script asks for the words that fit.
const VARIABLE: &str = "RONDO_COMPLETE";
/// Sessions that are offered, the latest first.
const SESSIONS_MAX: usize = 50;
/// The name of the most recent session, wherever a session is named.
const LATEST: &str = "latest";

/// Runs the command.
pub(super) fn run(shell: Shell, output: &Output) -> Result<Exit> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        shell
            .write_registration(VARIABLE, "rondo", "rondo", "rondo", &mut script)
            .map_err(write_failed)?;
    }
    output
        .styled(&String::from_utf8_lossy(&script))
        .map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Prints the words that fit if a completion script asks for them; returns the exit code then.
pub(super) fn answer_shell(args: &[OsString]) -> Option<u8> {
    let completion = CompleteEnv::with_factory(Cli::definition).var(VARIABLE);
    match completion.try_complete(args, None) {
        Ok(false) => None,
        Ok(true) => Some(Exit::Answer.code()),
        // A shell shows nothing of it; a word that cannot be completed is no reason to print into the line.
        Err(_) => Some(Exit::Error.code()),
    }
}

/// Returns the names of the settings.
pub(crate) fn settings() -> Vec<CompletionCandidate> {
    let all = SETTINGS.iter();
    all.filter_map(|it| candidate(it.name, it.help)).collect()
}

/// Returns the names of the profiles.
pub(crate) fn profiles() -> Vec<CompletionCandidate> {
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
pub(crate) fn models() -> Vec<CompletionCandidate> {
    let named = load().map(|it| models::names(&it.values.models));
    let named = named.into_iter().flatten();
    let named = named.filter_map(|it| candidate(&it, ""));
    let local = local_models().into_iter().map(|it| it.add_prefix("local/"));
    named.chain(local).collect()
}

/// Returns the local models that have a name.
pub(crate) fn local_models() -> Vec<CompletionCandidate> {
    let known = catalogue().unwrap_or_default().into_iter();
    known
        .filter_map(|it| candidate(&it.name, &it.summary))
        .collect()
}

/// Returns the latest sessions.
pub(crate) fn sessions() -> Vec<CompletionCandidate> {
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
pub(crate) fn servers() -> Vec<CompletionCandidate> {
    let names = load().map(|it| it.mcp.names()).unwrap_or_default();
    let names = names.iter();
    names.filter_map(|it| candidate(it, "")).collect()
}

/// Returns the names of the skills.
pub(crate) fn skills() -> Vec<CompletionCandidate> {
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

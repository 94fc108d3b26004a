//! `rondo doctor`: checks the installation, and finds out what a provider supports.

mod hub;
mod review;

use super::report::{current_dir, write_failed};
use crate::cli::DoctorArgs;
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use rondo_http::probe::{Check, ProbeReport, probe};
use rondo_runtime::Layer;
use rondo_runtime::SetupError;
use rondo_runtime::confined;
use rondo_runtime::env::Env;
use rondo_runtime::paths::project_config;
use rondo_runtime::profiles;
use rondo_runtime::review::Review;
use rondo_runtime::sandboxed::{self, UNDO};
use rondo_runtime::sanitize::plain;
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::profile_name;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::telemetry;
use rondo_runtime::transport;
use rondo_runtime::unchecked;
use rondo_runtime::values::ApprovalMode;
use rondo_runtime::weights::{Store, WeightsSource};
use rondo_types::units::tokens;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

/// How long each request of a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// Shells that run commands.
const BASH: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];

/// Runs the command: checks that need no network, and a probe if one is asked for.
pub(super) fn run(args: &DoctorArgs, env: Env, output: &Output) -> Result<Exit> {
    let flags = Layer {
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        ..Layer::default()
    };
    if args.review {
        return review::run(args, env, output);
    }
    let mut report = Report::default();
    let mut broken = |error: SetupError| {
        report.bad("configuration", &in_one_line(&error));
        Ok(())
    };
    let settings = Settings::load_around(env, current_dir()?, flags, output, &mut broken)?;
    check_here(&settings, &mut report);
    let target = ModelTarget::make(&settings);
    check_profile(target.as_ref().ok(), &settings, &mut report);
    let target = check_model(target, &settings, &mut report);
    hub::check(&settings, &mut report);
    output.words(&report.text).map_err(write_failed)?;
    let asked = target.as_ref().filter(|target| target.weights.is_none());
    if args.probe {
        let mut probed = Report::default();
        if let Some(target) = asked {
            probe_now(target, &settings, &mut probed)?;
        }
        hub::probe(&settings, &mut probed)?;
        output.words(&probed.text).map_err(write_failed)?;
        report.failed |= probed.failed;
    }
    Ok(if report.failed {
        Exit::Error
    } else {
        Exit::Answer
    })
}

#[derive(Default)]
struct Report {
    text: String,
    failed: bool,
}

impl Report {
    fn good(&mut self, what: &str, detail: &str) {
        self.line("ok", what, detail);
    }

    fn info(&mut self, what: &str, detail: &str) {
        self.line("--", what, detail);
    }

    fn bad(&mut self, what: &str, detail: &str) {
        self.failed = true;
        self.line("!!", what, detail);
    }

    fn line(&mut self, mark: &str, what: &str, detail: &str) {
        let _ = writeln!(self.text, "{mark} {what:<16} {}", plain(detail));
    }
}

fn check_here(settings: &Settings, report: &mut Report) {
    let user = settings.paths.user_config();
    let user_state = if user.is_file() {
        "read"
    } else {
        "absent, which is fine"
    };
    if report.failed {
        report.info("configuration", "invalid; checking the rest without it");
    } else {
        report.good(
            "configuration",
            &format!("{} ({user_state})", user.display()),
        );
    }
    if let Some(project) = project_config(&settings.directory) {
        report.good("project", &project.display().to_string());
    }
    check_directory("state", &settings.paths.state, report);
    check_directory("data", &settings.paths.sessions(), report);
    check_directory("cache", &settings.paths.cache, report);
    match telemetry::described(&settings.env) {
        Ok(detail) => report.info("telemetry", &detail),
        Err(detail) => report.bad("telemetry", &detail),
    }
    match BASH.iter().find(|path| Path::new(path).is_file()) {
        Some(path) => report.good("bash", path),
        None => report.bad("bash", "not found; commands cannot run"),
    }
    if let Some(warning) = Review::of(settings).warning() {
        report.bad("review", &warning);
    }
    if let Some(places) = unchecked::of(settings) {
        report.info("unchecked", &places);
    }
    check_chosen_folders(settings, report);
    match confined::enforced() {
        Ok(said) if confined::is_full() => report.good("sandbox", &said),
        Ok(said) => report.info("sandbox", &said),
        Err(reason) => {
            let said = format!("not available, not even for read-only commands: {reason}");
            report.info("sandbox", &said);
        }
    }
}

/// Names the folders around this one in which the user chose to run commands in the sandbox without a question.
fn check_chosen_folders(settings: &Settings, report: &mut Report) {
    let chosen = settings.values.sandboxed_folders.as_deref();
    let chosen = sandboxed::covering(chosen.unwrap_or_default(), &settings.directory);
    for folder in chosen {
        let folder = folder.display();
        match settings.values.approval {
            Some(ApprovalMode::Auto) => {
                let runs = "commands in it run in the sandbox without a question";
                let detail = format!("{folder}: {runs}; `{UNDO}` undoes it");
                report.good("sandboxed folder", &detail);
            }
            _ => {
                let detail = format!(
                    "{folder}: no effect here: other settings or the system do not allow it"
                );
                report.info("sandboxed folder", &detail);
            }
        }
    }
}

/// Checks the profile, whose default depends on the model.
fn check_profile(target: Option<&ModelTarget>, settings: &Settings, report: &mut Report) {
    let name = target.map_or_else(
        || settings.profile_name(),
        |target| profile_name(target, settings),
    );
    match profiles::resolve(settings, name) {
        Ok(resolved) => report.good("profile", &resolved.profile.name),
        Err(error) => report.bad("profile", &error.line()),
    }
}

/// Writes to a directory, or if it is missing to the nearest one above it: permissions do not say
/// whether that works, on a full or a read-only disk, and for the superuser.
fn check_directory(what: &str, directory: &Path, report: &mut Report) {
    let there = directory.ancestors().find(|it| it.exists());
    match there.map_or_else(|| Err(io::ErrorKind::NotFound.into()), write_to) {
        Ok(()) => report.good(what, &directory.display().to_string()),
        Err(err) => report.bad(
            what,
            &format!(
                "{} cannot be written ({err}); set `RONDO_HOME` to a directory that can",
                directory.display()
            ),
        ),
    }
}

fn write_to(directory: &Path) -> io::Result<()> {
    // It has no name if the system can do that, so that nothing stays if the process is killed.
    let mut file = tempfile::tempfile_in(directory)?;
    file.write_all(b"x")?;
    file.sync_all()
}

fn in_one_line(error: &SetupError) -> String {
    explained(error)
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
}

fn check_model(
    target: Result<ModelTarget, SetupError>,
    settings: &Settings,
    report: &mut Report,
) -> Option<ModelTarget> {
    let target = match target {
        Ok(target) => target,
        Err(error) => {
            report.bad("model", &explained(&error));
            return None;
        }
    };
    check_target("model", &target, settings, report);
    match target.fallbacks(settings) {
        Ok(fallbacks) => {
            for fallback in fallbacks {
                check_target("fallback", &fallback, settings, report);
            }
        }
        Err(error) => report.bad("fallback", &explained(&error)),
    }
    Some(target)
}

/// A model in the box needs its weights and nothing else.
fn check_weights(wanted: &WeightsSource, settings: &Settings, report: &mut Report) {
    match Store::of(settings).find(wanted) {
        Some(path) => report.good("weights", &path.display().to_string()),
        None => report.info("weights", "not downloaded yet (fetched on first use)"),
    }
}

fn check_target(what: &str, target: &ModelTarget, settings: &Settings, report: &mut Report) {
    report.good(what, &target.full_name());
    if let Some(wanted) = &target.weights {
        check_weights(wanted, settings, report);
        return;
    }
    report.good(
        "address",
        &format!("{} ({})", target.shown_url(), target.dialect()),
    );
    check_key(target, settings, report);
    match target.facts.context_tokens {
        Some(tokens) => report.good("context", &format!("{tokens} tokens")),
        None => report.info("context", "not known"),
    }
    match target.facts.price() {
        Some(_) => report.good("price", "known"),
        None => report.info("price", "not known; `--max-budget-usd` cannot be enforced"),
    }
    match target.facts.function_calling {
        Some(false) => report.bad("function calling", "this model is known to lack it"),
        Some(true) => report.good("function calling", "known to work"),
        None => report.info("function calling", "no known problem"),
    }
    match target.facts.image_input {
        Some(false) => report.info(
            "images",
            "this model reads only text; images are described in words",
        ),
        Some(true) => report.good("images", "known to be read"),
        None => report.info("images", "no known problem"),
    }
}

fn check_key(target: &ModelTarget, settings: &Settings, report: &mut Report) {
    let variables = target.key_variables();
    let found = variables
        .iter()
        .find(|name| settings.env.text(name).is_some());
    if let Some(found) = found {
        report.good("key", &format!("found in {found}"));
    } else if target.provider.api_key_command.is_some() {
        report.info("key", "printed by `api_key_command`, which was not run");
    } else if target.keyless() {
        report.good("key", "none needed");
    } else {
        report.bad("key", &format!("none of {} is set", variables.join(", ")));
    }
}

fn explained(error: &SetupError) -> String {
    match &error.hint {
        Some(hint) => format!("{}; {hint}", error.line()),
        None => error.line(),
    }
}

fn probe_now(target: &ModelTarget, settings: &Settings, report: &mut Report) -> Result<()> {
    let runtime = executor::of_this_thread()?;
    let seen = runtime.block_on(async {
        let key = target.key(settings).await?;
        let model = transport::http_model(target, key, target.dialect(), true, settings)?;
        Ok::<_, CliError>(probe(&model, PROBE_TIMEOUT).await)
    })?;
    show_probe(&seen, report);
    Ok(())
}

fn show_probe(seen: &ProbeReport, report: &mut Report) {
    // A server may lack a list of models or token counts and still do everything that matters.
    let optional = [
        ("listed", &seen.listed),
        ("streaming", &seen.streaming),
        ("usage", &seen.usage),
    ];
    for (what, check) in [("text", &seen.text), ("tool call", &seen.tool_call)] {
        match check {
            Check::Works { detail } => report.good(what, detail),
            Check::Missing { detail } => report.bad(what, detail),
            Check::Failed { error } => report.bad(what, &error.to_string()),
        }
    }
    for (what, check) in optional {
        match check {
            Check::Works { detail } => report.good(what, detail),
            Check::Missing { detail } => report.info(what, detail),
            Check::Failed { error } => report.info(what, &error.to_string()),
        }
    }
    if let Some(first) = seen.first_event_ms {
        report.info("first event", &format!("{first} ms"));
    }
    report.info("spent", &tokens(seen.spent));
}

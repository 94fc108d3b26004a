//! `rondo config`: shows the settings with their sources, and edits the user's configuration file.

use super::editor;
use super::report::{current_dir, write_failed};
use crate::cli::{ConfigArgs, ConfigCommand};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_runtime::env::Env;
use rondo_runtime::paths::Paths;
use rondo_runtime::settings::Settings;
use rondo_runtime::table::{self, Setting};
use rondo_runtime::user_file::UserFile;
use rondo_runtime::{Layer, SETTINGS};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Runs the command.
pub(super) fn run(args: &ConfigArgs, env: Env, output: &Output) -> Result<Exit> {
    let text = match &args.command {
        ConfigCommand::List { json } => {
            let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
            if *json {
                output.json(&as_json(&settings)).map_err(write_failed)?;
                return Ok(Exit::Answer);
            }
            output.words(&list(&settings)).map_err(write_failed)?;
            return Ok(Exit::Answer);
        }
        ConfigCommand::Get { name } => {
            let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
            get(&settings, name)?
        }
        ConfigCommand::Set { name, value } => {
            let mut file = UserFile::read(&Paths::find(&env)?)?;
            file.set(name, value)?;
            file.save()?;
            format!("set `{name}` in {}\n", file.path().display())
        }
        ConfigCommand::Unset { name } => {
            let mut file = UserFile::read(&Paths::find(&env)?)?;
            match file.unset(name)? {
                true => {
                    file.save()?;
                    format!("removed `{name}` from {}\n", file.path().display())
                }
                false => format!("`{name}` is not set in {}\n", file.path().display()),
            }
        }
        ConfigCommand::Path => format!("{}\n", Paths::find(&env)?.user_config().display()),
        ConfigCommand::Edit => return edit(&env),
    };
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Returns two lines for each setting: its value and source, then its description and default.
fn list(settings: &Settings) -> String {
    let mut text = String::new();
    for setting in SETTINGS {
        let Setting {
            name,
            help,
            default,
            ..
        } = setting;
        let set = shown(settings, name).zip(settings.source_of(name));
        let value = set.map(|(value, source)| format!(" = {value}  # {source}"));
        let value = value.unwrap_or_default();
        let _ = writeln!(text, "{name}{value}\n    {help} [default: {default}]");
    }
    text
}

fn as_json(settings: &Settings) -> String {
    let all = SETTINGS.iter().map(|setting| {
        let name = setting.name;
        json!({
            "name": name,
            "value": value(settings, name),
            "source": settings.source_of(name),
            "variable": setting.variable,
            "flag": setting.flag.map(|flag| format!("--{flag}")),
            "help": setting.help,
            "default": setting.default,
        })
    });
    format!("{}\n", Value::Array(all.collect()))
}

/// Returns a value in force, an address without what may be secret in it.
fn value(settings: &Settings, name: &str) -> Option<toml::Value> {
    match (name, settings.values.get(name)?) {
        ("base_url", toml::Value::String(url)) => {
            Some(toml::Value::String(rondo_http::without_credentials(&url)))
        }
        (_, value) => Some(value),
    }
}

fn shown(settings: &Settings, name: &str) -> Option<String> {
    value(settings, name).map(|it| it.to_string())
}

/// Returns a value for scripts: text as it is, anything else as the file would have it.
fn get(settings: &Settings, name: &str) -> Result<String> {
    table::setting(name).ok_or_else(|| table::unknown(name))?;
    match settings.values.get(name) {
        Some(toml::Value::String(text)) => Ok(format!("{text}\n")),
        Some(value) => Ok(format!("{value}\n")),
        None => Err(
            CliError::new(Exit::Error, format_args!("`{name}` is not set"))
                .hint(format!("`rondo config set {name} VALUE` sets it")),
        ),
    }
}

/// Lets the user edit their file, and checks it afterwards.
fn edit(env: &Env) -> Result<Exit> {
    let paths = Paths::find(env)?;
    let path = paths.user_config();
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|err| no_folder(parent, err))?;
    }
    editor::edit(env, &path)?;
    UserFile::read(&paths)?;
    Ok(Exit::Answer)
}

fn no_folder(folder: &Path, err: std::io::Error) -> CliError {
    let context = format!("failed to create `{}`", folder.display());
    CliError::caused(Exit::Config, anyhow::Error::new(err).context(context))
}

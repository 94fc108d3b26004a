//! `rondo onboard`: a workspace, a model, a channel and its owner, until a first message is received and answered.

use super::channels;
use crate::cli::OnboardArgs;
use crate::commands::report::write_failed;
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::{Output, has_person};
use crate::signals::Signals;
use rondo_hub::onboarding::{WrittenWorkspace, write_workspace};
use rondo_hub::{Hub, HubConfig, config};
use rondo_runtime::env::Env;
use rondo_runtime::files::{Readers, replace_file};
use rondo_runtime::settings::Settings;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::transport;
use rondo_runtime::user_file::UserFile;
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_telegram::Api;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether a message was answered.
const LOOK: Duration = Duration::from_millis(200);
/// The channel that is offered.
const CHANNEL: &str = "telegram";
/// Answers to one question that may be unusable.
const TRIES_MAX: usize = 5;
/// Bytes of a line that is typed.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Runs the command.
///
/// # Errors
/// When the disk fails, the configuration makes no sense, or the hub cannot be opened.
pub(in crate::commands) fn run(args: &OnboardArgs, env: &Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env.clone(), "/".into(), Layer::default(), output)?;
    let directory = HubConfig::of(&settings)?.directory(&settings);
    let written = write_workspace(&directory).map_err(|err| {
        let context = format!("failed to write the workspace in `{}`", directory.display());
        CliError::caused(Exit::Config, anyhow::Error::from(err).context(context))
    })?;
    output.words(&in_words(&written)).map_err(write_failed)?;
    configure(args, &settings, output)?;
    let settings = Settings::load(env.clone(), "/".into(), Layer::default(), output)?;
    let hub_config = HubConfig::of(&settings)?;
    if hub_config.channels.is_empty() {
        output.note(
            "no channel is set up yet: run `rondo onboard` at a terminal, or pass `--channel`",
        );
        return Ok(Exit::Answer);
    }
    if hub_config.users.is_empty() {
        output.note("the hub has no owner yet and answers no one: add one with `--owner NAME=ID`");
    }
    let channels = channels::of(&hub_config, &settings)?;
    if args.no_wait {
        output.note("setup is complete: `rondo serve` starts the gateway");
        return Ok(Exit::Answer);
    }
    let flags = config::flags(Layer::default(), &settings);
    let runtime = Runtime::new(env.clone(), flags, Arc::new(NoNotices));
    let own_file = super::own_file(&runtime, &hub_config, settings)?;
    let threads = executor::of_threads(2)?;
    let is_answered = threads.block_on(async {
        let hub = super::open(runtime, &hub_config, channels, own_file)?;
        output.note("write a message to the assistant now; Ctrl-C ends this");
        first_answer(&hub).await
    })?;
    threads.shutdown_background();
    if !is_answered {
        return Ok(Exit::Interrupted);
    }
    let done = "A message was received and answered. `rondo serve` starts the gateway.\n";
    output.words(done).map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Runs the hub until it has received and answered a message. Returns `false` if it was told to stop before.
async fn first_answer(hub: &Hub) -> Result<bool> {
    let stop = CancellationToken::new();
    let running = hub.run(stop.clone());
    tokio::pin!(running);
    let mut signals = Signals::listen();
    let answered = async {
        loop {
            let counted = hub.metrics().counted();
            // A stranger who was told their id was sent something, too.
            let told = u64::from(counted.denied > 0);
            if counted.received > 0 && counted.sent >= counted.received + told {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let is_answered = tokio::select! {
        ended = &mut running => return ended.map(|()| false).map_err(CliError::from),
        _ = signals.next() => false,
        () = answered => true,
    };
    stop.cancel();
    running.await?;
    Ok(is_answered)
}

fn in_words(workspace: &WrittenWorkspace) -> String {
    let mut text = format!("The workspace is `{}`.\n", workspace.directory.display());
    for (what, names) in [
        ("Written", &workspace.written),
        ("Left as they are", &workspace.kept),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("{what}: {}\n", names.join(", ")));
        }
    }
    text
}

/// Takes the model, the channel and the owner from the flags, or asks for the missing ones. An unusable typed value
/// is asked for again; an unusable flag ends the command. A configuration that cannot be used is not left behind.
fn configure(args: &OnboardArgs, settings: &Settings, output: &Output) -> Result<()> {
    let config = HubConfig::of(settings)?;
    let mut file = UserFile::read(&settings.paths)?;
    let mut is_changed = false;
    if let Some(model) = model(args, settings, output)? {
        file.set("model", &model)?;
        is_changed = true;
    }
    if let Some(channel) = channel(args, &config, output)? {
        let table = config.channels.get(&channel).cloned().unwrap_or_default();
        let table = with_token(args, settings, (&channel, table), output)?;
        file.add_channel(&channel, &table)?;
        is_changed = true;
        if let Some((name, id)) = owner(args, &channel, &config)? {
            let mut user = toml::Table::new();
            user.insert("role".to_owned(), "owner".into());
            user.insert("ids".to_owned(), vec![format!("{channel}:{id}")].into());
            file.add_user(&name, &user)?;
        }
    }
    if is_changed {
        save(&file, settings, output)?;
        let path = file.path().display().to_string();
        output.note(&format!("the configuration is `{path}`"));
    }
    Ok(())
}

/// Asks until an answer can be used or nothing is typed, and says why one cannot. A value of a flag is not asked for, and
/// its error is returned.
fn until_good<T>(
    given: Option<&String>,
    question: &str,
    output: &Output,
    mut check: impl FnMut(&str) -> Result<T>,
) -> Result<Option<T>> {
    if let Some(given) = given {
        return check(given).map(Some);
    }
    for _ in 0..TRIES_MAX {
        let Some(typed) = asked(question)? else {
            return Ok(None);
        };
        match check(&typed) {
            Ok(good) => return Ok(Some(good)),
            Err(error) => {
                output.warning(&error.line());
                if let Some(hint) = &error.hint {
                    output.hint(hint);
                }
            }
        }
    }
    let message = format!("no valid answer in {TRIES_MAX} attempts");
    Err(CliError::new(Exit::Usage, message))
}

fn model(args: &OnboardArgs, settings: &Settings, output: &Output) -> Result<Option<String>> {
    let known = settings.values.model.as_deref();
    let question = format!("Model [{}]: ", known.unwrap_or("the built-in one"));
    until_good(args.model.as_ref(), &question, output, |model| {
        let flags = Layer {
            model: Some(model.to_owned()),
            ..Layer::default()
        };
        let settings = Settings::load(settings.env.clone(), "/".into(), flags, output)?;
        let target = ModelTarget::make(&settings)?;
        let variables = target.key_variables();
        let has_key = target.keyless()
            || target.weights.is_some()
            || target.provider.api_key_command.is_some()
            || variables.iter().any(|it| settings.env.text(it).is_some());
        if !has_key {
            let variables = variables.join(", ");
            output.note(&format!("`{model}` has no key yet: set one of {variables}"));
        }
        Ok(model.to_owned())
    })
}

fn channel(args: &OnboardArgs, config: &HubConfig, output: &Output) -> Result<Option<String>> {
    if args.channel.is_none() && !config.channels.is_empty() {
        return Ok(None);
    }
    let question = format!("Channel, such as {CHANNEL} [none]: ");
    until_good(args.channel.as_ref(), &question, output, |channel| {
        channels::check_name(channel).map(|()| channel.to_owned())
    })
}

/// Returns the table of a channel with the file of its token: the one that is named, or one that holds what is typed.
fn with_token(
    args: &OnboardArgs,
    settings: &Settings,
    (channel, table): (&str, toml::Table),
    output: &Output,
) -> Result<toml::Table> {
    let with = |path: &Path| {
        let mut table = table.clone();
        table.insert("token_file".to_owned(), path.display().to_string().into());
        table
    };
    if let Some(path) = &args.token_file {
        let table = with(path);
        check_channel(channel, &table, settings, output)?;
        return Ok(table);
    }
    let path = settings.paths.config.join(format!("{channel}-token"));
    let question =
        format!("Token of the bot on {channel} (not shown; leave empty if it is in a variable): ");
    let typed = hidden(|| {
        until_good(None, &question, output, |token| {
            let failed = |err| {
                let context = format!("failed to write `{}`", path.display());
                CliError::caused(Exit::Config, anyhow::Error::from(err).context(context))
            };
            // A token that is there already stays until another one is known to be good.
            let tried = path.with_extension("new");
            keep_secret(&tried, token).map_err(failed)?;
            if let Err(error) = check_channel(channel, &with(&tried), settings, output) {
                let _ = std::fs::remove_file(&tried);
                // The end of the line that was typed was not shown.
                let _ = writeln!(io::stderr());
                return Err(error);
            }
            std::fs::rename(&tried, &path).map_err(failed)?;
            Ok(with(&path))
        })
    })?;
    Ok(typed.unwrap_or(table))
}

/// Checks what a channel is set up with, and asks its server about the token.
fn check_channel(
    channel: &str,
    table: &toml::Table,
    settings: &Settings,
    output: &Output,
) -> Result<()> {
    channels::make(channel, table, settings)?;
    if channel != rondo_telegram::NAME {
        return Ok(());
    }
    let api = Api::configured(table, &settings.env, transport::connections(settings)?)?;
    let found = executor::of_this_thread()?.block_on(rondo_telegram::check(&api));
    for finding in found {
        match finding.is_good {
            Some(false) if finding.text == rondo_telegram::UNKNOWN_TOKEN => {
                return Err(CliError::new(Exit::Config, finding.text));
            }
            Some(false) => output.warning(&finding.text),
            Some(true) | None => output.note(&finding.text),
        }
    }
    Ok(())
}

/// Writes the configuration, and takes that back if it cannot be used.
fn save(file: &UserFile, settings: &Settings, output: &Output) -> Result<()> {
    let before = match std::fs::read(file.path()) {
        Ok(before) => Some(before),
        Err(err) if err.kind() == io::ErrorKind::NotFound => None,
        Err(err) => return Err(CliError::caused(Exit::Config, err)),
    };
    file.save()?;
    let usable = || -> Result<()> {
        let settings = Settings::load(settings.env.clone(), "/".into(), Layer::default(), output)?;
        channels::of(&HubConfig::of(&settings)?, &settings)?;
        Ok(())
    };
    usable().inspect_err(|_| {
        let restored = match &before {
            Some(before) => std::fs::write(file.path(), before),
            None => std::fs::remove_file(file.path()),
        };
        if let Err(err) = restored {
            let path = file.path().display();
            output.warning(&format!("failed to restore `{path}`: {err}"));
        }
    })
}

fn owner(
    args: &OnboardArgs,
    channel: &str,
    config: &HubConfig,
) -> Result<Option<(String, String)>> {
    if let Some(owner) = &args.owner {
        let parts = owner.split_once('=');
        let parts = parts.filter(|(name, id)| !name.is_empty() && !id.is_empty());
        let (name, id) = parts.ok_or_else(|| {
            let error = CliError::new(Exit::Usage, format!("`{owner}` is not NAME=ID"));
            error.hint("for example `--owner ann=4711`, with the owner's id on the channel")
        })?;
        return Ok(Some((name.to_owned(), id.to_owned())));
    }
    if !config.users.is_empty() {
        return Ok(None);
    }
    let question = format!(
        "Your id on {channel} (if you do not know it, write to the bot later: it tells you): "
    );
    let Some(id) = asked(&question)? else {
        return Ok(None);
    };
    let name = asked("Your name [owner]: ")?;
    Ok(Some((name.unwrap_or_else(|| "owner".to_owned()), id)))
}

/// Puts a question at the terminal; `None` if nothing is typed, or there is no user to ask.
fn asked(question: &str) -> Result<Option<String>> {
    if !has_person() {
        return Ok(None);
    }
    let typed = || -> io::Result<String> {
        let mut terminal = io::stderr();
        write!(terminal, "{question}")?;
        terminal.flush()?;
        let mut line = String::new();
        io::BufRead::read_line(&mut io::Read::take(io::stdin().lock(), 4096), &mut line)?;
        Ok(line)
    };
    let line = typed().map_err(|err| CliError::caused(Exit::Error, err))?;
    let line = line.trim();
    let is_fine = !line.is_empty() && line.len() <= LINE_BYTES_MAX;
    Ok(is_fine.then(|| line.to_owned()))
}

/// Reads something that is not shown while it is typed.
fn hidden<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    let stdin = io::stdin();
    let Ok(shown) = tcgetattr(&stdin) else {
        return read();
    };
    let mut quiet = shown.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &quiet);
    let typed = read();
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &shown);
    if has_person() {
        // The line's end was not shown either.
        let _ = writeln!(io::stderr());
    }
    typed
}

fn keep_secret(path: &Path, secret: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    replace_file(path, secret.as_bytes(), Readers::Owner)
}

//! `rondo users`: adds, lists and revokes the users of a hub, and prints their keys.

use super::report::{current_dir, write_failed};
use crate::cli::{RoleName, UsersArgs, UsersCommand};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use rondo_hub::accounts::{Account, AccountError, Accounts};
use rondo_hub::keys::ApiKey;
use rondo_hub::users::Role;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::files::{Readers, replace_file};
use rondo_runtime::sanitize::cell;
use rondo_runtime::settings::Settings;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file below the directory of the configuration that `rondo chat` reads its key from.
const KEY_FILE: &str = "hub-key";

/// Runs the command.
///
/// # Errors
/// When there is no such user, or the journal cannot be used.
pub(super) fn run(args: UsersArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let accounts = Accounts::open(&settings).map_err(failed)?;
    let runtime = executor::of_this_thread()?;
    let work = async {
        match args.command {
            UsersCommand::Add {
                name,
                role,
                id,
                save,
            } => {
                check_room(save.as_ref(), &name, &accounts, &settings).await?;
                let key = accounts.add(&name, role.into(), id).await.map_err(failed)?;
                give(&key, &name, save, &settings, output)
            }
            UsersCommand::Key { name, save } => {
                check_room(save.as_ref(), &name, &accounts, &settings).await?;
                let key = accounts.key(&name).await.map_err(failed)?;
                give(&key, &name, save, &settings, output)
            }
            UsersCommand::List { json } => {
                let list = accounts.list().await.map_err(failed)?;
                match json {
                    true => output.json(&lines(&list)),
                    false => output.stdout(&table(&list)),
                }
                .map_err(write_failed)
            }
            UsersCommand::Revoke { name } => {
                let revoked = accounts.revoke(&name).await.map_err(failed)?;
                let keys = revoked.keys;
                output.note(&format!("`{name}` is revoked, with {keys} of their keys"));
                if revoked.is_configured {
                    output.hint(&format!("`[hub.users.{name}]` of your configuration applies again once `rondo users key {name}` makes a key"));
                }
                Ok(())
            }
        }
    };
    runtime.block_on(work)?;
    Ok(Exit::Answer)
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Owner => Self::Owner,
            RoleName::Member => Self::Member,
            RoleName::Guest => Self::Guest,
        }
    }
}

/// Returns the file that `rondo chat` reads its key from.
pub(super) fn key_file(settings: &Settings) -> PathBuf {
    settings.paths.config.join(KEY_FILE)
}

/// Refuses to write a key over another one that is in use, before it is made.
async fn check_room(
    save: Option<&Option<PathBuf>>,
    name: &str,
    accounts: &Accounts,
    settings: &Settings,
) -> Result<()> {
    let Some(path) = save else {
        return Ok(());
    };
    let path = path.clone().unwrap_or_else(|| key_file(settings));
    let shown = path.display();
    let saved = match fs::read_to_string(&path) {
        Ok(saved) => saved,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            let context = format!("failed to read `{shown}`, which `--save` would replace");
            return Err(CliError::caused(
                Exit::Error,
                anyhow::Error::new(error).context(context),
            ));
        }
    };
    let user = accounts
        .user_of(&ApiKey::new(saved.trim().to_owned()))
        .await
        .map_err(failed)?;
    let whose = match user {
        Some(user) if user == name => return Ok(()),
        Some(user) => format!("the key of `{user}`"),
        None if saved.trim().is_empty() => return Ok(()),
        None => "something other than a valid key of this hub".to_owned(),
    };
    let message = format!("`{shown}` has {whose}, which `--save` would replace");
    let error = CliError::new(Exit::Usage, message);
    Err(error.hint("name another file with `--save FILE`, or remove that one"))
}

/// Prints a key, or writes it to a file.
fn give(
    key: &ApiKey,
    name: &str,
    save: Option<Option<PathBuf>>,
    settings: &Settings,
    output: &Output,
) -> Result<()> {
    let Some(path) = save else {
        output.note(&format!(
            "the key of `{name}`, shown only once; `rondo users revoke {name}` revokes it"
        ));
        let line = format!("{}\n", key.reveal());
        return output.stdout(&line).map_err(write_failed);
    };
    let path = path.unwrap_or_else(|| key_file(settings));
    save_key(&path, key).map_err(|err| {
        let context = format!(
            "failed to write the key to `{}`; `rondo users key {name}` creates a new one",
            path.display()
        );
        CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
    })?;
    let path = path.display();
    output.note(&format!("the key of `{name}` is in `{path}`"));
    Ok(())
}

/// Replaces the file in one step, with one that only its owner can read.
fn save_key(path: &Path, key: &ApiKey) -> io::Result<()> {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let line = format!("{}\n", key.reveal());
    replace_file(path, line.as_bytes(), Readers::Owner)
}

fn table(list: &[Account]) -> String {
    let mut text = format!("{:<20} {:<8} {:>4}  IDS\n", "NAME", "ROLE", "KEYS");
    for account in list {
        let user = &account.user;
        let mut ids = user.ids.join(", ");
        if account.is_configured {
            ids.push_str(" (configured)");
        }
        let _ = writeln!(
            text,
            "{:<20} {:<8} {:>4}  {}",
            cell(&user.name),
            user.role.to_string(),
            account.keys,
            cell(ids.trim_start())
        );
    }
    text
}

fn lines(list: &[Account]) -> String {
    let lines = list.iter().map(|account| {
        let line = json!({
            "name": account.user.name,
            "role": account.user.role,
            "keys": account.keys,
            "ids": account.user.ids,
            "is_configured": account.is_configured,
        });
        format!("{line}\n")
    });
    lines.collect()
}

fn failed(error: AccountError) -> CliError {
    match error {
        AccountError::Setup(error) => error.into(),
        AccountError::Journal(_) => CliError::caused(Exit::Journal, error),
        AccountError::Exists { .. } => {
            CliError::caused(Exit::Input, error).hint("`rondo users key NAME` creates another key")
        }
        AccountError::Unknown { .. } => {
            CliError::caused(Exit::Input, error).hint("`rondo users list` shows the users")
        }
        _ => CliError::caused(Exit::Input, error),
    }
}

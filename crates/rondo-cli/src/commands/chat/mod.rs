//! `rondo chat`: talks to a running hub over its API, line by line.

mod lines;
mod talk;

use super::report::current_dir;
use super::users::key_file;
use crate::cli::ChatArgs;
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::Output;
use lines::Lines;
use rondo_hub::api::{self, ApiOptions};
use rondo_hub::client::{Client, ClientError};
use rondo_hub::keys::ApiKey;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::settings::Settings;
use rondo_runtime::transport;
use rustix::termios::isatty;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use talk::Talk;

/// Bytes of a file with a key that are read.
const KEY_BYTES_MAX: u64 = 256;

/// Runs the command.
///
/// # Errors
/// When there is no key, the hub cannot be reached, or it refuses.
pub(super) fn run(args: ChatArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let url = address(&args, &settings);
    check_address(&url, args.allow_http)?;
    let key = key(&args, &settings)?;
    let client = Client::new(transport::network(&settings), &url, key).map_err(failed)?;
    let is_single = !args.message.is_empty();
    let lines = match is_single {
        true => Lines::of(args.message.join(" ")),
        false => Lines::of_stdin(isatty(io::stdin()))?,
    };
    let runtime = executor::of_this_thread()?;
    let is_interactive = !is_single && isatty(io::stdin()) && output.stdout_terminal;
    let talk = Talk::new(client, args.chat, *output, is_interactive);
    runtime.block_on(talk.run(lines))
}

fn address(args: &ChatArgs, settings: &Settings) -> String {
    let from_env = || settings.env.get("RONDO_HUB_URL").map(str::to_owned);
    let url = args.url.clone().or_else(from_env);
    url.unwrap_or_else(|| format!("http://{}", own_hub(settings)))
}

/// Returns the address of this configuration's hub; the hub itself checks its table.
fn own_hub(settings: &Settings) -> SocketAddr {
    let channels = settings.values.hub.get("channels");
    let table = channels.and_then(|it| it.get(api::NAME)).cloned();
    let options: Option<ApiOptions> = table.and_then(|it| it.try_into().ok());
    let mut address = options.unwrap_or_default().listen;
    if address.ip().is_unspecified() {
        let loopback = match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(loopback);
    }
    address
}

/// Refuses to send the key in the clear to another machine.
fn check_address(url: &str, allow_http: bool) -> Result<()> {
    let host = match url.split_once("://") {
        Some(("https", _)) => return Ok(()),
        Some(("http", rest)) => host_of(rest),
        _ => {
            let message = format!("`{url}` is not the address of a hub");
            let hint = "it must start with `http://` or `https://`";
            return Err(CliError::new(Exit::Usage, message).hint(hint));
        }
    };
    let is_loopback = host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    if is_loopback || host == "localhost" || allow_http {
        return Ok(());
    }
    let message = format!("the key would be sent to `{host}` without encryption");
    let hint = "use `https://`, or `--allow-http` if the connection is encrypted by other means";
    Err(CliError::new(Exit::Usage, message).hint(hint))
}

/// Returns the host of what follows the scheme.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn key(args: &ChatArgs, settings: &Settings) -> Result<ApiKey> {
    let path = match (&args.key_file, settings.env.get("RONDO_HUB_KEY")) {
        (Some(path), _) => path.clone(),
        (None, Some(key)) => return Ok(ApiKey::new(key.trim().to_owned())),
        (None, None) => key_file(settings),
    };
    read_key(&path).map_err(|err| {
        let context = format!("no hub key in `{}`", path.display());
        let error = anyhow::Error::new(err).context(context);
        CliError::caused(Exit::Auth, error).hint(
            "on the hub's machine, `rondo users add NAME --role owner --save` creates one; elsewhere, set `RONDO_HUB_KEY`",
        )
    })
}

fn read_key(path: &Path) -> io::Result<ApiKey> {
    let mut key = String::new();
    File::open(path)?
        .take(KEY_BYTES_MAX)
        .read_to_string(&mut key)?;
    Ok(ApiKey::new(key.trim().to_owned()))
}

fn failed(error: ClientError) -> CliError {
    let (exit, hint) = match &error {
        ClientError::Refused { status: 401, .. } => (
            Exit::Auth,
            Some("the key may have been revoked: `rondo users key NAME` creates a new one"),
        ),
        ClientError::Key => (Exit::Auth, None),
        ClientError::Connection { .. } => (Exit::Error, Some("`rondo serve` starts a hub")),
        _ => (Exit::Error, None),
    };
    let error = CliError::caused(exit, error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_another_machine_encrypted_alone() {
        for url in [
            "http://127.0.0.1:7456",
            "http://localhost:1/x",
            "http://[::1]:7456",
            "https://hub.example.org",
        ] {
            assert!(check_address(url, false).is_ok(), "{url}");
        }
        for url in [
            "http://192.0.2.1:7456",
            "http://hub.example.org",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example/",
            "http://evil.example/127.0.0.1",
            "ftp://localhost",
            "localhost:7456",
        ] {
            assert!(check_address(url, false).is_err(), "{url}");
        }
        assert!(check_address("http://192.0.2.1", true).is_ok());
        assert!(check_address("ftp://localhost", true).is_err());
    }
}

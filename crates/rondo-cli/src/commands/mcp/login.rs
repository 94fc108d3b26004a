//! `rondo mcp login` and `logout`: permissions that the user gives at a server's own page, in their browser.

use super::super::report::{current_dir, write_failed};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::{Output, has_person};
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::mcp;
use rondo_runtime::settings::Settings;
use std::io::{self, BufRead as _, Read as _};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the user may take.
const USER_MAX: Duration = Duration::from_mins(10);
/// The bound on an address that is pasted, in bytes.
const PASTED_BYTES_MAX: u64 = 16 << 10;

/// Signs the user in to a server.
pub(super) fn log_in(name: &str, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let asynchronous = executor::of_this_thread()?;
    asynchronous.block_on(signed_in(name, &settings, output))?;
    let text = format!("signed in to the server `{name}`; `rondo mcp test {name}` tries it\n");
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

async fn signed_in(name: &str, settings: &Settings, output: &Output) -> Result<()> {
    let sign_in = mcp::sign_in(settings, name).await?;
    let refused = |why: String| {
        let message = format!("not signed in to the server `{name}`: {why}");
        CliError::new(Exit::Auth, message)
    };
    // The address is as secret as the page that it leads to: it has no code or token in it.
    output.stderr(&format!(
        "Open this address in a browser, and sign in there:\n\n{}\n\n",
        sign_in.address()
    ));
    let pasted = async {
        if !has_person() {
            return std::future::pending().await;
        }
        output.stderr("If the browser is on another machine, paste the address it ends at: ");
        match read_line().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    };
    let back = async {
        tokio::select! {
            back = sign_in.came_back() => back,
            line = pasted => Ok(line),
        }
    };
    let back = tokio::time::timeout(USER_MAX, back).await;
    let back = back.unwrap_or_else(|_| Err("there was no answer within 10 minutes".to_owned()));
    output.stderr("\n");
    let back = back.map_err(refused)?;
    sign_in.finish(&back).await.map_err(refused)
}

/// Reads a line that the user may never write. The thread that waits for it ends with the process.
async fn read_line() -> Option<String> {
    let (sender, line) = oneshot::channel();
    // Without the thread, no line comes.
    let _ = std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let mut stdin = io::stdin().lock().take(PASTED_BYTES_MAX);
        if stdin.read_line(&mut line).is_ok_and(|count| count > 0) {
            let _ = sender.send(line);
        }
    });
    line.await.ok()
}

/// Forgets what a server has granted.
pub(super) fn log_out(name: &str, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let text = match mcp::sign_out(&settings, name)? {
        true => format!(
            "deleted the stored sign-in of the server `{name}`; the server itself may still accept it\n"
        ),
        false => format!("no stored sign-in of the server `{name}`\n"),
    };
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

//! `rondo trust`: adds and removes folders whose own settings all apply.

use super::ask::working_directory;
use super::report::write_failed;
use crate::cli::TrustArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{Output, has_person};
use rondo_core::shown;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::mcp::{self, WaitingServer};
use rondo_runtime::paths::Paths;
use rondo_runtime::project::{UntrustedProject, folder_of};
use rondo_runtime::settings::Settings;
use rondo_runtime::user_file::UserFile;
use std::fmt::Write as _;
use std::path::Path;

/// Runs the command.
pub(super) fn run(args: &TrustArgs, env: Env, output: &Output) -> Result<Exit> {
    let text = if args.list {
        let settings = Settings::load(env, working_directory(None)?, Layer::default(), output)?;
        let folders = settings.values.trusted_folders.clone().unwrap_or_default();
        let lines = folders.iter().map(|it| format!("{}\n", it.display()));
        lines.collect()
    } else {
        let directory = working_directory(args.directory.as_deref())?;
        let folder = folder_of(&directory)?;
        let mut file = UserFile::read(&Paths::find(&env)?)?;
        let is_new = match args.revoke {
            true => file.distrust(&folder)?,
            false => file.trust(&folder)?,
        };
        if is_new {
            file.save()?;
        }
        let servers = match args.revoke {
            true => String::new(),
            false => servers(args.servers, &directory, &Paths::find(&env)?, output)?,
        };
        let folder = folder.display();
        let text = match (args.revoke, is_new) {
            (false, true) => format!("{folder} is trusted{}\n", honoured(&directory)),
            (false, false) => format!("{folder} is trusted already\n"),
            (true, true) => format!("{folder} is no longer trusted\n"),
            (true, false) => format!("{folder} is not trusted by itself\n"),
        };
        text + &servers
    };
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Asks about the servers that the folder defines, and reports the decisions.
fn servers(all: bool, directory: &Path, paths: &Paths, output: &Output) -> Result<String> {
    let mut text = String::new();
    let can_ask = has_person();
    let mut ask = |server: &WaitingServer| {
        let name = shown::line(&server.name);
        let file = server.file.display();
        let may = all
            || can_ask
                && output.is_confirmed(&format!(
                    "`{file}` adds the server `{name}`, which would be started or contacted as:\n  {}\n\
                     The model reads what it offers; a program is confined to this folder.\nStart it from now on?",
                    server.described
                ));
        let said = match (may, can_ask) {
            (true, _) => "may be started",
            (false, true) => "is not started",
            (false, false) => "is not started; `--servers` approves it without asking",
        };
        let _ = writeln!(
            text,
            "the server `{name}` of {file} {said}: {}",
            server.described
        );
        may
    };
    mcp::ask_about(directory, paths, &mut ask)?;
    Ok(text)
}

/// Names the settings of a folder that apply from now on.
fn honoured(directory: &Path) -> String {
    let project = UntrustedProject::read(directory).ok().flatten();
    match project.filter(|it| !it.ignored.is_empty()) {
        Some(project) => format!(", and its settings apply: {}", project.ignored_names()),
        None => String::new(),
    }
}

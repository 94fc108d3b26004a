//! `rondo trust`: adds and removes folders whose own settings all apply.

use super::ask::working_directory;
use super::report::write_failed;
use crate::cli::TrustArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::paths::Paths;
use rondo_runtime::project::{UntrustedProject, folder_of};
use rondo_runtime::settings::Settings;
use rondo_runtime::user_file::UserFile;
use std::path::Path;

/// Runs the command.
pub(super) fn run(args: &TrustArgs, env: Env, output: &Output) -> Result<Exit> {
    let text = if args.list {
        let settings = Settings::load(env, working_directory(None)?, Layer::default(), output)?;
        let folders = settings.values.trusted_folders.unwrap_or_default();
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
        let folder = folder.display();
        match (args.revoke, is_new) {
            (false, true) => format!("{folder} is trusted{}\n", honoured(&directory)),
            (false, false) => format!("{folder} is trusted already\n"),
            (true, true) => format!("{folder} is not trusted any more\n"),
            (true, false) => format!("{folder} is not trusted by itself\n"),
        }
    };
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Says what of a folder counts from now on.
fn honoured(directory: &Path) -> String {
    let project = UntrustedProject::read(directory).ok().flatten();
    match project.filter(|it| !it.ignored.is_empty()) {
        Some(project) => format!(", and what it sets counts: {}", project.ignored_names()),
        None => String::new(),
    }
}

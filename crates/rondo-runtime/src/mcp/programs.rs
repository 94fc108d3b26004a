//! Starts servers that are programs, each under a supervisor: it ends with this process, and so does what it started.

use crate::confined;
use crate::secrets;
use crate::settings::Settings;
use async_trait::async_trait;
use rondo_core::redact::Secrets;
use rondo_launch::{PipedChild, PipedSpec, ProcessSpec, SupervisorCommand};
use rondo_mcp::{Program, ProgramSpec, StartPrograms, Streams};
use rondo_policy::CommandEnvironment;
use rondo_sandbox::{SandboxMode, SandboxSpec, passes_variable, readable_roots_by};
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Starts programs in the environment and directory of these settings.
pub(super) struct Programs {
    /// Their environment, without keys of providers and other variables that look like secrets.
    variables: Vec<(OsString, OsString)>,
    search_path: String,
    home: Option<PathBuf>,
    directory: PathBuf,
    cache: PathBuf,
}

impl Programs {
    pub(super) fn of(settings: &Settings) -> Self {
        let mut rules = CommandEnvironment::default();
        let held = secrets::withheld(settings, &settings.env, None);
        rules.withheld.extend(held.into_iter().map(Into::into));
        let all = settings
            .env
            .iter()
            .filter(|(name, value)| !rules.is_withheld_with(name, value));
        Self {
            variables: all
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            search_path: settings.env.text("PATH").unwrap_or_default(),
            home: settings.env.get("HOME").map(PathBuf::from),
            directory: settings.directory.clone(),
            cache: settings.paths.cache.join("mcp"),
        }
    }

    /// Returns the path of a program: `PATH` is looked through for a bare name.
    fn program(&self, command: &str, directory: &Path) -> Result<PathBuf, String> {
        let missing = || {
            format!(
                "the program `{}` is not found",
                rondo_core::shown::line(command)
            )
        };
        if command.contains('/') {
            let path = match command.strip_prefix("~/").zip(self.home.as_ref()) {
                Some((rest, home)) => home.join(rest),
                None => directory.join(command),
            };
            return is_program(&path).then_some(path).ok_or_else(missing);
        }
        let folders = std::env::split_paths(&self.search_path).filter(|it| it.is_absolute());
        let mut paths = folders.map(|it| it.join(command));
        paths.find(|it| is_program(it)).ok_or_else(missing)
    }

    /// Sandbox of a program that a project defines.
    fn sandbox(&self, directory: &Path) -> Result<SandboxSpec, String> {
        let only = "a project's server must be confined; `rondo mcp add` makes it your own";
        if !confined::is_full() {
            let why = confined::enforced().unwrap_or_else(|why| why);
            return Err(format!(
                "this system does not confine programs in full ({why}), and {only}"
            ));
        }
        let home = self.home.as_ref().and_then(|it| it.canonicalize().ok());
        if home.is_some_and(|home| home.starts_with(directory)) {
            return Err(format!("your home directory is in its folder, and {only}"));
        }
        let workspace = vec![directory.to_owned()];
        let variable = |name: &str| {
            let mut variables = self.variables.iter();
            variables.find(|it| it.0 == name).map(|it| it.1.clone())
        };
        Ok(SandboxSpec {
            readable: Arc::new(readable_roots_by(
                self.home.as_deref(),
                &workspace,
                &variable,
            )),
            home: self.home.clone(),
            scratch: Some(self.cache.clone()),
            network: rondo_sandbox::NetworkAccess::Host,
            ..SandboxSpec::new(SandboxMode::WorkspaceWrite, workspace)
        })
    }
}

#[async_trait]
impl StartPrograms for Programs {
    async fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Program>, String> {
        let directory = spec.directory.as_ref().unwrap_or(&self.directory);
        let directory = directory.canonicalize().map_err(|err| {
            format!(
                "its directory `{}` cannot be used: {err}",
                directory.display()
            )
        })?;
        let mut variables = self.variables.clone();
        if spec.is_confined {
            let is_passed = |name: &OsString| name.to_str().is_some_and(passes_variable);
            variables.retain(|(name, _)| is_passed(name));
        }
        for (name, value) in &spec.variables {
            variables.retain(|(known, _)| known != name.as_str());
            variables.push((name.into(), value.expose().into()));
        }
        let process = ProcessSpec {
            program: self.program(&spec.command, &directory)?,
            arguments: spec.arguments.iter().map(Into::into).collect(),
            sandbox: match spec.is_confined {
                true => Some(self.sandbox(&directory)?),
                false => None,
            },
            directory,
            leaves_detached: false,
        };
        let values = spec
            .variables
            .iter()
            .map(|(_, value)| value.expose().to_owned());
        let piped = PipedSpec {
            process,
            stderr_bytes_max: PipedSpec::STDERR_BYTES,
            secrets: Secrets::new(values),
        };
        let started = PipedChild::start(&SupervisorCommand::CurrentExe, &variables, &piped).await;
        match started {
            Ok(child) => Ok(Box::new(Child(child))),
            Err(err) => Err(format!(
                "it cannot be started: {}",
                rondo_core::shown::line(&err.to_string())
            )),
        }
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// A server's program.
struct Child(PipedChild);

#[async_trait]
impl Program for Child {
    fn take_streams(&mut self) -> Option<Streams> {
        let (input, output) = self.0.take_streams()?;
        Some((Box::new(input), Box::new(output)))
    }

    fn stderr(&self) -> String {
        self.0.stderr()
    }

    async fn end(self: Box<Self>, grace: Duration) {
        drop(self.0.end(grace).await);
    }
}

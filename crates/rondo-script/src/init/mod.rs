//! `init.lua`: a user's own extension of hosts, in Lua. It watches turns and may deny or change what they do, and adds
//! slash commands, prompts, keys and tools.
//!
//! # Layout
//! - `own`: the user's own file, for a host of many sessions.
//! - `vm`: its Lua, one call at a time on a thread that may block, each within its time; `registered`: what the file
//!   registers; `handlers`: the handlers of turns; `tool`: its tools.

mod files;
mod handlers;
mod own;
mod registered;
mod tool;
mod vm;

pub use own::OwnInit;

use crate::error::message_of;
use mlua::Value as LuaValue;
use registered::Registrations;
use rondo_core::Tool;
use rondo_core::ports::{ToolScope, ToolSource};
use rondo_runtime::error::{Result, SetupError};
use rondo_runtime::files::read_text;
use rondo_runtime::script::{InitFiles, ScriptSession};
use rondo_runtime::settings::Settings;
use rondo_runtime::{Extensions, Notices, Runtime, SetupErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vm::{InitVm, Threads};

/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Memory of all files together, in bytes.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// The extensions of a user, and of the project if it is trusted.
pub struct Init {
    vm: Arc<InitVm>,
    registered: Registrations,
}

/// A slash command or a prompt, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitCommand {
    /// Its name, without the slash.
    pub name: String,
    /// Description of the command.
    pub description: String,
}

/// A key and the line that it enters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitKey {
    /// The key, such as `ctrl-g`.
    pub key: String,
    /// The line.
    pub line: String,
}

/// Action that a command requests of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitAction {
    /// No action.
    Nothing,
    /// Show a text.
    Show(String),
    /// Ask the agent.
    Ask(String),
}

impl Init {
    /// Runs the files of a directory; none if there are none. A file of a project that is not trusted is noted and
    /// not read.
    ///
    /// # Errors
    /// When a file cannot be read, or fails: what it was to guard must not continue without it.
    pub fn load(
        runtime: &Runtime,
        settings: &Settings,
        notices: &Arc<dyn Notices>,
    ) -> Result<Option<Self>> {
        let InitFiles { files, untrusted } = InitFiles::find(settings);
        if let Some(file) = untrusted {
            notices.note(&format!(
                "`{}` is not run: `rondo trust` trusts its folder",
                file.display()
            ));
        }
        if files.is_empty() {
            return Ok(None);
        }
        let files = files.into_iter().map(InitFile::read);
        let files: Vec<InitFile> = files.collect::<Result<_>>()?;
        let session = ScriptSession::new(runtime.clone(), ephemeral(settings));
        let vm = InitVm::new(
            session,
            Arc::clone(notices),
            Threads::default(),
            MEMORY_BYTES_MAX,
        );
        Self::run(vm, &files).map(Some)
    }

    fn run(vm: mlua::Result<InitVm>, files: &[InitFile]) -> Result<Self> {
        let vm = Arc::new(vm.map_err(|error| failed("init.lua", &error))?);
        for file in files {
            vm.run_file(&file.path, &file.source)
                .map_err(|error| failed(&file.path.display().to_string(), &error))?;
        }
        let registered = vm.take_registered();
        Ok(Self { vm, registered })
    }

    /// Returns its additions to turns.
    #[must_use]
    pub fn extensions(&self) -> Extensions {
        let mut extensions = Extensions::default();
        if !self.registered.tools.is_empty() {
            let tools = self.registered.tools.iter().map(|it| {
                let tool = tool::InitTool::new(&self.vm, it.clone());
                Arc::new(tool) as Arc<dyn Tool>
            });
            extensions
                .tool_sources
                .push(Arc::new(Tools(tools.collect())));
        }
        extensions.interceptors = handlers::interceptors(&self.vm, &self.registered.handlers);
        extensions
    }

    /// Returns its slash commands and prompts, in the order of their names.
    #[must_use]
    pub fn commands(&self) -> Vec<InitCommand> {
        let commands = self
            .registered
            .commands
            .iter()
            .map(|(name, it)| InitCommand {
                name: name.clone(),
                description: it.description.clone(),
            });
        commands.collect()
    }

    /// Returns its keys.
    #[must_use]
    pub fn keys(&self) -> &[InitKey] {
        &self.registered.keys
    }

    /// Does what a slash command says; `None` if there is none of this name.
    ///
    /// # Errors
    /// Says why it failed, or that it took too long.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the command to its end, whose result is lost.
    pub async fn command(&self, name: &str, rest: &str) -> Option<Result<InitAction, String>> {
        let command = self.registered.commands.get(name)?;
        let run = match &command.run {
            registered::Run::Prompt(text) => {
                let text = match rest.is_empty() {
                    true => text.clone(),
                    false => format!("{text}\n\n{rest}"),
                };
                return Some(Ok(InitAction::Ask(text)));
            }
            registered::Run::Function(run) => run.clone(),
        };
        let rest = rest.to_owned();
        let called = self.vm.call(vm::COMMAND_TIME, move |_| {
            let value: LuaValue = run.call(rest)?;
            action(&value)
        });
        Some(called.await)
    }
}

/// Reads the return value of a command: a text to show, or a table with a question for the agent.
fn action(value: &LuaValue) -> mlua::Result<InitAction> {
    match value {
        LuaValue::Nil => Ok(InitAction::Nothing),
        LuaValue::String(text) => Ok(InitAction::Show(text.to_string_lossy())),
        LuaValue::Table(table) => match table.get::<Option<String>>("ask")? {
            Some(question) => Ok(InitAction::Ask(question)),
            None => Err(mlua::Error::runtime(
                "a command returns a text, `{ ask = \"...\" }`, or nothing",
            )),
        },
        other => Err(mlua::Error::runtime(format!(
            "a command returns a text, `{{ ask = \"...\" }}`, or nothing, and no {}",
            other.type_name()
        ))),
    }
}

/// Its commands belong to no session, so they are not recorded.
fn ephemeral(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.values.ephemeral = Some(true);
    settings
}

/// A file, as it was read.
struct InitFile {
    path: PathBuf,
    source: String,
}

impl InitFile {
    fn read(path: PathBuf) -> Result<Self> {
        let source = read(&path)?;
        Ok(Self { path, source })
    }
}

fn read(file: &Path) -> Result<String> {
    let context = || format!("failed to read `{}`", file.display());
    let failed = |why: std::io::Error| SetupError::because(SetupErrorKind::Config, context(), why);
    read_text(file, FILE_BYTES_MAX).map_err(failed)
}

fn failed(file: &str, error: &mlua::Error) -> SetupError {
    let message = format!("`{file}` failed: {}", message_of(error));
    SetupError::new(SetupErrorKind::Config, message)
        .hint("fix it or move it away: without it, the calls that it guards do not run")
}

/// The tools, which are always the same.
struct Tools(Vec<Arc<dyn Tool>>);

impl ToolSource for Tools {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        self.0.clone()
    }

    fn generation(&self) -> u64 {
        0
    }
}

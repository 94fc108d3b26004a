//! The Lua of `init.lua`. Its functions are called one at a time, on threads that may block, and each is ended when its
//! time is over. One that hangs where nothing of Lua runs is given up, and with it all others.

use super::registered::{Command, EACH_MAX, Event, Handler, RegisteredTool, Registrations, Run};
use super::{InitKey, files, tool};
use crate::api::{add_json, date, told};
use crate::error::{CallError, message_of};
use crate::names::INIT_OPTIONS;
use crate::shared::{Position, to_lua};
use crate::vm;
use mlua::{Function, Lua, LuaString, Table, Value as LuaValue};
use rondo_core::clock::Clock;
use rondo_core::ports::OutputSink;
use rondo_runtime::Notices;
use rondo_runtime::script::ScriptSession;
use rondo_types::{CallId, TimeMs};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a handler may take.
pub(super) const HANDLER_TIME: Duration = Duration::from_secs(2);
/// How long a command may take.
pub(super) const COMMAND_TIME: Duration = Duration::from_secs(60);
/// How long a file may take.
const FILE_TIME: Duration = Duration::from_secs(2);
/// How long after its time one is waited for, before it is given up.
const GRACE: Duration = Duration::from_secs(1);
/// Calls of functions that run at once, in all that share the threads; one that hangs where nothing of Lua runs keeps
/// its thread until it ends.
const AT_ONCE_MAX: usize = 16;
/// The longest name of a command.
const NAME_BYTES_MAX: usize = 64;
/// Prelude of the files, in Lua.
const PRELUDE: &str = include_str!("../../lua/init.lua");

/// The Lua of all files.
pub(super) struct InitVm {
    lua: Lua,
    shared: Arc<VmShared>,
    /// Held while a function runs.
    turn: Arc<AsyncMutex<()>>,
    threads: Threads,
    notices: Arc<dyn Notices>,
}

/// The threads that functions run on, which the Lua of several turns may share.
#[derive(Clone)]
pub(super) struct Threads(Arc<Semaphore>);

impl Default for Threads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE_MAX)))
    }
}

/// What the functions share.
pub(super) struct VmShared {
    session: ScriptSession,
    notices: Arc<dyn Notices>,
    clock: Clock,
    /// Until when the function that runs may run.
    until: AtomicU64,
    /// Set if a call was given up.
    is_lost: AtomicBool,
    commands: AtomicU32,
    registered: Mutex<Registrations>,
}

impl VmShared {
    fn check(&self) -> mlua::Result<()> {
        let until = TimeMs(self.until.load(Ordering::Relaxed));
        match self.clock.now() >= until {
            true => Err(mlua::Error::runtime("it exceeded its time limit")),
            false => Ok(()),
        }
    }

    /// Returns for how long the function that runs may still run.
    pub(super) fn left(&self) -> Duration {
        let until = TimeMs(self.until.load(Ordering::Relaxed));
        until.since(self.clock.now())
    }

    /// Returns the directory that paths start in.
    pub(super) fn directory(&self) -> &Path {
        &self.session.settings().directory
    }

    fn begin(&self, time: Duration) {
        let until = self.clock.now().after(time);
        self.until.store(until.0, Ordering::Relaxed);
    }

    fn register(
        &self,
        with: impl FnOnce(&mut Registrations) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut registered = self
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = |it: &Registrations| {
            [
                it.handlers.len(),
                it.commands.len(),
                it.keys.len(),
                it.tools.len(),
            ]
        };
        if count(&registered).into_iter().any(|it| it >= EACH_MAX) {
            return Err(CallError::failed(format!(
                "there are more than {EACH_MAX} already"
            )));
        }
        with(&mut registered)
    }
}

impl InitVm {
    /// Makes an empty one, which may have so many bytes of memory.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn new(
        session: ScriptSession,
        notices: Arc<dyn Notices>,
        threads: Threads,
        memory_bytes_max: usize,
    ) -> mlua::Result<Self> {
        let shared = Arc::new(VmShared {
            session,
            notices: Arc::clone(&notices),
            clock: Clock::system(),
            until: AtomicU64::new(u64::MAX),
            is_lost: AtomicBool::new(false),
            commands: AtomicU32::new(0),
            registered: Mutex::default(),
        });
        let lua = vm::bare(memory_bytes_max)?;
        let core = functions(&lua, &shared)?;
        vm::add_shared(&lua, &core)?;
        let options = vm::options(&lua, INIT_OPTIONS)?;
        lua.load(PRELUDE)
            .set_name("=rondo")
            .call::<()>((core, options))?;
        let of_hook = Arc::clone(&shared);
        vm::bound(&lua, move || of_hook.check())?;
        Ok(Self {
            lua,
            shared,
            turn: Arc::default(),
            threads,
            notices,
        })
    }

    /// Runs a file.
    ///
    /// # Errors
    /// When it fails, or takes too long.
    pub(super) fn run_file(&self, file: &Path, source: &str) -> mlua::Result<()> {
        self.shared.begin(FILE_TIME);
        let chunk = self
            .lua
            .load(source)
            .set_name(format!("@{}", file.display()));
        chunk.set_mode(mlua::chunk::ChunkMode::Text).exec()
    }

    /// Takes the registrations of the files.
    pub(super) fn take_registered(&self) -> Registrations {
        let mut registered = self
            .shared
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *registered)
    }

    /// Tells the user.
    pub(super) fn note(&self, text: &str) {
        self.notices.note(text);
    }

    /// Calls a function within its time.
    ///
    /// # Errors
    /// Says why it failed, or that it took too long.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the function to its end.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        time: Duration,
        call: impl FnOnce(&Lua) -> mlua::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let late = || "it exceeded its time limit".to_owned();
        let patience = time.saturating_add(GRACE);
        if self.shared.is_lost.load(Ordering::Relaxed) {
            return Err("`init.lua` hangs since an earlier call".to_owned());
        }
        let place = timeout(patience, Arc::clone(&self.turn).lock_owned());
        let place = place.await.map_err(|_| late())?;
        let thread = timeout(patience, Arc::clone(&self.threads.0).acquire_owned());
        let thread = thread.await.map_err(|_| late())?;
        let (lua, shared) = (self.lua.clone(), Arc::clone(&self.shared));
        let working = spawn_blocking(move || {
            shared.begin(time);
            let called = call(&lua).map_err(|error| message_of(&error));
            drop((place, thread));
            called
        });
        match timeout(patience, working).await {
            Ok(Ok(called)) => called,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => {
                self.shared.is_lost.store(true, Ordering::Relaxed);
                Err(late())
            }
        }
    }
}

fn functions(lua: &Lua, shared: &Arc<VmShared>) -> mlua::Result<Table> {
    let core = lua.create_table()?;
    registering(lua, &core, shared)?;
    add_json(lua, &core)?;
    files::add_all(lua, &core, shared)?;
    let of = Arc::clone(shared);
    add(
        lua,
        &core,
        "exec",
        move |lua, (command, options): (String, Table)| exec(&of, lua, command, &options),
    )?;
    let of = Arc::clone(shared);
    core.set(
        "env",
        lua.create_function(move |_, name: String| {
            Ok(of.session.settings().env.get(&name).map(str::to_owned))
        })?,
    )?;
    let of = Arc::clone(shared);
    core.set(
        "note",
        lua.create_function(move |_, text: LuaString| {
            of.notices.note(&text.to_string_lossy());
            Ok(())
        })?,
    )?;
    let of = Arc::clone(shared);
    let time = lua.create_function(move |_, ()| Ok(of.clock.now().0 / 1000))?;
    core.set("time", time)?;
    let of = Arc::clone(shared);
    core.set(
        "date",
        lua.create_function(move |lua, (how, at): (Option<String>, Option<f64>)| {
            let now = std::time::Duration::from_millis(of.clock.now().0).as_secs_f64();
            let made = date(lua, how.as_deref().unwrap_or("%c"), at.unwrap_or(now));
            made.map_err(|error| mlua::Error::runtime(error.reason()))
        })?,
    )?;
    let where_ = lua.create_function(|lua, ()| Ok(Position::of(lua).prefix()))?;
    core.set("where", where_)?;
    Ok(core)
}

/// Adds the functions that register.
fn registering(lua: &Lua, core: &Table, shared: &Arc<VmShared>) -> mlua::Result<()> {
    let of = Arc::clone(shared);
    add(
        lua,
        core,
        "on",
        move |lua, (event, run): (String, Function)| {
            let known = Event::ALL.iter().find(|(name, _)| *name == event);
            let names: Vec<&str> = Event::ALL.iter().map(|(name, _)| *name).collect();
            let (_, event) = known.ok_or_else(|| {
                CallError::failed(format!(
                    "there is no event `{event}`; the events are {}",
                    names.join(", ")
                ))
            })?;
            let at = Position::of(lua);
            let handler = Handler {
                event: *event,
                run,
                from: format!("{}:{}", at.file, at.line),
            };
            of.register(|it| {
                it.handlers.push(handler);
                Ok(())
            })?;
            Ok(mlua::Nil)
        },
    )?;
    let of = Arc::clone(shared);
    add(
        lua,
        core,
        "command",
        move |_, (name, description, run): (String, String, Function)| {
            of.register(|it| named(it, name, description, Run::Function(run)))?;
            Ok(mlua::Nil)
        },
    )?;
    let of = Arc::clone(shared);
    add(
        lua,
        core,
        "prompt",
        move |_, (name, description, text): (String, String, String)| {
            of.register(|it| named(it, name, description, Run::Prompt(text)))?;
            Ok(mlua::Nil)
        },
    )?;
    let of = Arc::clone(shared);
    add(lua, core, "key", move |_, (key, line): (String, String)| {
        of.register(|it| {
            it.keys.push(InitKey { key, line });
            Ok(())
        })?;
        Ok(mlua::Nil)
    })?;
    let of = Arc::clone(shared);
    add(
        lua,
        core,
        "tool",
        move |lua, (given, run): (Table, Function)| {
            let spec = tool::spec(lua, &given)?;
            of.register(|it| {
                it.tools.push(RegisteredTool { spec, run });
                Ok(())
            })?;
            Ok(mlua::Nil)
        },
    )
}

fn named(
    registered: &mut Registrations,
    name: String,
    description: String,
    run: Run,
) -> Result<(), CallError> {
    let is_part = |it: char| it.is_ascii_alphabetic() || it == '_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_part) {
        let why = format!(
            "`{name}` is not a command name: it must have letters and `_`, at most {NAME_BYTES_MAX} of them"
        );
        return Err(CallError::Failed(why));
    }
    registered
        .commands
        .insert(name, Command { description, run });
    Ok(())
}

/// Adds a function that returns a value, or nothing and why.
pub(super) fn add<A: mlua::FromLuaMulti, R: mlua::IntoLua>(
    lua: &Lua,
    core: &Table,
    name: &'static str,
    make: impl Fn(&Lua, A) -> Result<R, CallError> + Send + 'static,
) -> mlua::Result<()> {
    let function = lua.create_function(move |lua, arguments: A| {
        let at = Position::of(lua);
        match make(lua, arguments) {
            Ok(value) => Ok((value.into_lua(lua)?, None)),
            Err(error) => {
                let name = name.replace("files_", "files.");
                let message = format!("{}rondo.{name}: {}", at.prefix(), error.reason());
                Ok((LuaValue::Nil, Some(message)))
            }
        }
    })?;
    core.set(name, function)
}

/// Runs a command of the user's own, within the time of the function that runs it.
fn exec(
    shared: &VmShared,
    lua: &Lua,
    command: String,
    options: &Table,
) -> Result<LuaValue, CallError> {
    let handle = Handle::try_current()
        .map_err(|_| CallError::failed("no command can run while the file is read"))?;
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), Value::String(command));
    if let Some(cwd) = options.get::<Option<String>>("cwd")? {
        arguments.insert("working_directory".to_owned(), Value::String(cwd));
    }
    let left = shared.left().as_secs_f64();
    let wanted = options.get::<Option<f64>>("timeout")?.unwrap_or(left);
    arguments.insert("timeout".to_owned(), json!(wanted.min(left).max(0.001)));
    let number = shared.commands.fetch_add(1, Ordering::Relaxed);
    let call = CallId::generated(1, number, 1);
    let ran = handle.block_on(shared.session.command(
        &call,
        Value::Object(arguments),
        OutputSink::discard(),
        CancellationToken::new(),
    ))?;
    Ok(to_lua(lua, &told(ran)?)?)
}

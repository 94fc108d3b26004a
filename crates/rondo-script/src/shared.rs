//! State that all functions of a script share, and ways to end it.

use crate::branch::Branch;
use crate::error::{Abort, CallError, ScriptError};
use crate::host::ScriptHost;
use crate::ledger::{KeptPart, Ledger, NextCall, UnplacedCall};
use mlua::{IntoLua, Lua, LuaSerdeExt as _};
use rondo_core::clock::Clock;
use rondo_runtime::script::ScriptSession;
use rondo_runtime::{SetupError, SetupErrorKind};
use rondo_types::{CallId, TimeMs};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Frames of Lua that are looked at for a line of the script.
const FRAMES_MAX: usize = 16;

/// State that the functions of a script share.
pub(crate) struct Shared {
    pub(crate) session: Arc<ScriptSession>,
    pub(crate) host: Arc<dyn ScriptHost>,
    pub(crate) ledger: Ledger,
    /// Stops the script from outside.
    pub(crate) cancel: CancellationToken,
    /// When its time is over.
    pub(crate) deadline: Option<TimeMs>,
    /// Directory of its modules.
    pub(crate) directory: PathBuf,
    pub(crate) clock: Clock,
    ending: Mutex<Ending>,
}

#[derive(Default)]
struct Ending {
    abort: Option<Abort>,
    /// The last call that could not begin, as the script reads of it.
    setup: Option<(String, SetupError)>,
}

/// A line of the script.
#[derive(Debug, Clone, Default)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Position {
    /// Returns the current place in the script: the innermost frame of a file.
    pub(crate) fn of(lua: &Lua) -> Self {
        (0..FRAMES_MAX)
            .find_map(|level| {
                lua.inspect_stack(level, |frame| {
                    let source = frame.source();
                    let file = source.source?.strip_prefix('@')?.to_owned();
                    let line = u32::try_from(frame.current_line()?).ok()?;
                    Some(Self { file, line })
                })
                .flatten()
            })
            .unwrap_or_default()
    }

    /// Returns it as Lua writes it before its messages.
    pub(crate) fn prefix(&self) -> String {
        match self.file.is_empty() {
            true => String::new(),
            false => format!("{}:{}: ", self.file, self.line),
        }
    }
}

impl Shared {
    pub(crate) fn new(
        session: ScriptSession,
        host: Arc<dyn ScriptHost>,
        ledger: Ledger,
        cancel: CancellationToken,
        directory: PathBuf,
    ) -> Self {
        let clock = Clock::system();
        let deadline = session.settings().values.deadline;
        let deadline = deadline.map(|span| clock.now().after(span.0));
        Self {
            session: Arc::new(session),
            host,
            ledger,
            cancel,
            deadline,
            directory,
            clock,
            ending: Mutex::default(),
        }
    }

    fn ending(&self) -> std::sync::MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the script; the first reason counts.
    pub(crate) fn abort(&self, why: Abort) -> mlua::Error {
        self.ending().abort.get_or_insert(why);
        mlua::Error::runtime("the script has ended")
    }

    /// Returns whether the script must end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending().abort.is_some()
    }

    /// Takes why it ended, if that was not by an error of its own.
    pub(crate) fn take_abort(&self) -> Option<Abort> {
        self.ending().abort.take()
    }

    /// Takes the failure that a message describes, if that was one before anything was done.
    pub(crate) fn take_setup(&self, message: &str) -> Option<SetupError> {
        let setup = self.ending().setup.take();
        setup
            .filter(|(told, _)| told == message)
            .map(|(_, error)| error)
    }

    /// Returns the time that is left; `None` if there is no bound.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|it| it.since(self.clock.now()))
    }

    /// Checks whether the script must end: called every so many instructions of Lua, and by each of its calls.
    ///
    /// # Errors
    /// When it is.
    pub(crate) fn check(&self) -> mlua::Result<()> {
        if self.is_ending() {
            return Err(mlua::Error::runtime("the script has ended"));
        }
        if self.cancel.is_cancelled() {
            return Err(self.abort(Abort::Error(ScriptError::Stopped)));
        }
        let now = self.clock.now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(self.abort(Abort::Error(ScriptError::Deadline)));
        }
        let branch = Branch::current();
        if branch
            .and_then(|it| it.until)
            .is_some_and(|until| now >= until)
        {
            return Err(mlua::Error::runtime(
                "the call of the tool exceeded its time limit",
            ));
        }
        Ok(())
    }

    /// Makes a call of the script, or takes its result from the records.
    ///
    /// # Errors
    /// As [`Ledger::call`].
    pub(crate) async fn call<F>(
        &self,
        at: &Position,
        function: &'static str,
        arguments: &Value,
        keeping: KeptPart,
        make: F,
    ) -> Result<Value, CallError>
    where
        F: AsyncFnOnce(NextCall) -> Result<Value, CallError>,
    {
        self.call_with_evidence(at, function, arguments, keeping, async |_| None, make)
            .await
    }

    /// As [`Self::call`], with what will tell after a crash whether it was made.
    pub(crate) async fn call_with_evidence<F>(
        &self,
        at: &Position,
        function: &'static str,
        arguments: &Value,
        keeping: KeptPart,
        evidence: impl AsyncFnOnce(&CallId) -> Option<Value>,
        make: F,
    ) -> Result<Value, CallError>
    where
        F: AsyncFnOnce(NextCall) -> Result<Value, CallError>,
    {
        let branch =
            Branch::current().ok_or_else(|| CallError::failed("it was called outside a script"))?;
        let call = UnplacedCall {
            place: branch.next_place(),
            branch: &branch,
            function,
            line: at.line,
            arguments,
            keeping,
        };
        let made = self.ledger.call(&self.session, call, evidence, make);
        tokio::select! {
            biased;
            () = self.cancel.cancelled(), if keeping == KeptPart::Look => {
                Err(CallError::end(ScriptError::Stopped))
            }
            made = made => made,
        }
    }

    /// Returns to Lua what a call returned: a value, or nothing and why.
    ///
    /// # Errors
    /// When the script must end.
    pub(crate) fn answer<T: IntoLua>(
        &self,
        lua: &Lua,
        at: &Position,
        function: &str,
        made: Result<T, CallError>,
    ) -> mlua::Result<(mlua::Value, Option<String>)> {
        match made {
            Ok(value) => Ok((value.into_lua(lua)?, None)),
            Err(CallError::Failed(why) | CallError::NotDone(why)) => Ok((
                mlua::Value::Nil,
                Some(format!("{}{function}: {why}", at.prefix())),
            )),
            Err(CallError::Told(why)) => Ok((mlua::Value::Nil, Some(why))),
            Err(CallError::Setup(error)) => {
                let message = format!("{}{function}: {}", at.prefix(), error.line());
                if error.kind == SetupErrorKind::Journal {
                    // A call that cannot be recorded must not be made, whatever the script catches.
                    let error = Box::new(error);
                    return Err(self.abort(Abort::Error(ScriptError::Setup { message, error })));
                }
                self.ending().setup = Some((message.clone(), error));
                Ok((mlua::Value::Nil, Some(message)))
            }
            Err(CallError::Abort(why)) => Err(self.abort(why)),
        }
    }
}

/// Brings JSON to Lua; `null` is nothing.
///
/// # Errors
/// When Lua has no memory for it.
pub(crate) fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    let options = mlua::serde::SerializeOptions::new()
        .serialize_none_to_null(false)
        .serialize_unit_to_null(false);
    lua.to_value_with(value, options)
}

/// Brings a value of Lua to JSON. Tables whose keys are 1, 2, ... are arrays, and empty ones objects.
///
/// # Errors
/// When it has functions, cycles or keys that JSON has not, or a table has keys of both kinds.
pub(crate) fn to_json(lua: &Lua, value: &mlua::Value) -> mlua::Result<Value> {
    let options = mlua::serde::DeserializeOptions::new().sort_keys(true);
    let json = lua.from_value_with(value.clone(), options)?;
    // It is no deeper than JSON may be, as it became JSON.
    refuse_mixed(value)?;
    Ok(json)
}

/// A table with other keys beside 1, 2, ... would lose those as an array.
fn refuse_mixed(value: &mlua::Value) -> mlua::Result<()> {
    let mlua::Value::Table(table) = value else {
        return Ok(());
    };
    let mut count = 0;
    for pair in table.pairs::<mlua::Value, mlua::Value>() {
        count += 1;
        refuse_mixed(&pair?.1)?;
    }
    match table.raw_len() {
        0 => Ok(()),
        length if count <= length => Ok(()),
        _ => Err(mlua::Error::runtime(
            "a table with keys 1, 2, ... and others is neither an array nor an object",
        )),
    }
}

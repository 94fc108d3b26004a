//! Tools of a script: functions of Lua that models call.

use super::Functions;
use crate::branch::Branch;
use crate::error::{CallError, message_of};
use crate::shared::{Shared, to_json, to_lua};
use async_trait::async_trait;
use mlua::{Function, Lua, Table, UserData, Value as LuaValue};
use rondo_core::Tool;
use rondo_core::ports::ToolInvocation;
use rondo_runtime::script::RecordedCall;
use rondo_types::{Effects, Recovery, ToolErrorCode, ToolHints, ToolKind, ToolOutcome, ToolSpec};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a call may run if the script says nothing.
const TIMEOUT: Duration = Duration::from_mins(5);
/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 64;

/// Description of a tool by a script.
#[derive(Clone)]
pub(crate) struct ToolOfScript {
    pub(crate) spec: ToolSpec,
    run: Function,
}

impl UserData for ToolOfScript {}

/// A tool of a script within a turn. It remembers the calls that it had.
pub(crate) struct LuaTool {
    tool: ToolOfScript,
    lua: Lua,
    shared: Arc<Shared>,
    log: Arc<Mutex<Vec<RecordedCall>>>,
}

impl LuaTool {
    /// Brings a tool into a turn.
    pub(crate) fn new(
        tool: ToolOfScript,
        lua: &Lua,
        shared: &Arc<Shared>,
        log: &Arc<Mutex<Vec<RecordedCall>>>,
    ) -> Self {
        Self {
            tool,
            lua: lua.clone(),
            shared: Arc::clone(shared),
            log: Arc::clone(log),
        }
    }

    /// Calls the function. Its own calls are a branch that is named by the key, so one that is called again over its
    /// records repeats none of them.
    pub(crate) async fn run(
        &self,
        key: &str,
        arguments: &Value,
        timeout: Option<Duration>,
    ) -> ToolOutcome {
        let seed = self.shared.ledger.run().seed;
        let until = timeout.map(|it| self.shared.clock.now().after(it));
        let branch = Branch::of_tool(key, seed, until);
        let called = branch.run(async {
            let arguments = to_lua(&self.lua, arguments)?;
            let value = self.tool.run.call_async::<LuaValue>(arguments).await?;
            match value {
                LuaValue::Nil => Ok(Value::String(String::new())),
                LuaValue::String(text) => Ok(Value::String(text.to_string_lossy())),
                LuaValue::UserData(_) | LuaValue::Function(_) | LuaValue::Thread(_) => {
                    Err(mlua::Error::runtime("a tool returns a text or a table"))
                }
                other => to_json(&self.lua, &other),
            }
        });
        match called.await {
            Ok(value) => ToolOutcome::json(value),
            Err(error) => ToolOutcome::error(ToolErrorCode::Failed, message_of(&error)),
        }
    }
}

#[async_trait]
impl Tool for LuaTool {
    fn spec(&self) -> ToolSpec {
        self.tool.spec.clone()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let (key, arguments) = (&invocation.idempotency_key, &invocation.arguments);
        let run = self.run(key, arguments, invocation.timeout);
        let outcome = tokio::select! {
            biased;
            outcome = run => outcome,
            () = invocation.cancel.cancelled() => {
                return ToolOutcome::error(ToolErrorCode::Cancelled, "the call was stopped");
            }
        };
        // Its lookups are recorded before its result is, which rests on them.
        if let Err(error) = self.shared.ledger.write(&self.shared.session, None).await {
            return ToolOutcome::error(ToolErrorCode::Failed, error.reason());
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(RecordedCall {
            tool: self.tool.spec.name.clone(),
            arguments: arguments.clone(),
            key: key.clone(),
        });
        outcome
    }
}

/// Adds the function.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    to.quick(
        "tool",
        "rondo.tool",
        |_, lua, (given, run): (Table, Function)| {
            let spec = spec_of(lua, &given, TIMEOUT)?;
            Ok(lua.create_userdata(ToolOfScript { spec, run })?)
        },
    )
}

/// Reads a script's definition of a tool, whose calls may take `timeout` if it gives none.
///
/// # Errors
/// When its name or its parameters cannot be used.
pub(crate) fn spec_of(lua: &Lua, given: &Table, timeout: Duration) -> Result<ToolSpec, CallError> {
    let name: String = given.get("name")?;
    if !is_name(&name) {
        let why = format!(
            "`{name}` is not a tool name: it must have letters, digits, `_` and `-`, at most {NAME_BYTES_MAX} of them"
        );
        return Err(CallError::Failed(why));
    }
    let parameters = to_json(lua, &given.get("parameters")?)?;
    if let Err(error) = rondo_schema::Validator::new(&parameters) {
        let why = format!("`parameters` is not a JSON Schema: {error}");
        return Err(CallError::Failed(why));
    }
    let timeout = match given.get::<Option<f64>>("timeout")? {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(CallError::failed)?,
        None => timeout,
    };
    let is_read_only: bool = given.get("read_only")?;
    Ok(ToolSpec {
        name,
        description: given.get("description")?,
        parameters,
        effects: match is_read_only {
            true => Effects::ReadOnly,
            false => Effects::Writes,
        },
        kind: ToolKind::Other,
        hints: match is_read_only {
            true => ToolHints::looks_only(),
            false => ToolHints::default(),
        },
        // Its own calls are recorded under its key.
        recovery: Recovery::Idempotent,
        timeout: Some(timeout),
        ..ToolSpec::default()
    })
}

fn is_name(name: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(is_part)
}

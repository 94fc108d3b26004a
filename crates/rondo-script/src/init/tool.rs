//! Tools of `init.lua`, for all turns.

use super::registered::RegisteredTool;
use super::vm::InitVm;
use crate::api::spec_of;
use crate::error::CallError;
use crate::shared::{to_json, to_lua};
use async_trait::async_trait;
use mlua::{Lua, Table, Value as LuaValue};
use rondo_core::Tool;
use rondo_core::ports::ToolInvocation;
use rondo_types::{Recovery, ToolErrorCode, ToolOutcome, ToolSpec};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take if the file says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A tool of the file.
pub(super) struct InitTool {
    vm: Arc<InitVm>,
    tool: RegisteredTool,
}

impl InitTool {
    pub(super) fn new(vm: &Arc<InitVm>, tool: RegisteredTool) -> Self {
        Self {
            vm: Arc::clone(vm),
            tool,
        }
    }
}

/// Reads the file's definition of a tool. Its calls are not recorded one by one, so they are never repeated.
///
/// # Errors
/// When its name or its parameters cannot be used.
pub(super) fn spec(lua: &Lua, given: &Table) -> Result<ToolSpec, CallError> {
    let spec = spec_of(lua, given, TIMEOUT)?;
    Ok(ToolSpec {
        recovery: Recovery::AtMostOnce,
        ..spec
    })
}

#[async_trait]
impl Tool for InitTool {
    fn spec(&self) -> ToolSpec {
        self.tool.spec.clone()
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let run = self.tool.run.clone();
        let arguments = invocation.arguments;
        let time = invocation
            .timeout
            .or(self.tool.spec.timeout)
            .unwrap_or(TIMEOUT);
        let called = self.vm.call(time, move |lua| {
            let arguments = to_lua(lua, &arguments)?;
            match run.call::<LuaValue>(arguments)? {
                LuaValue::Nil => Ok(Value::String(String::new())),
                LuaValue::String(text) => Ok(Value::String(text.to_string_lossy())),
                other => to_json(lua, &other),
            }
        });
        tokio::select! {
            biased;
            called = called => match called {
                Ok(value) => ToolOutcome::json(value),
                Err(why) => ToolOutcome::error(ToolErrorCode::Failed, why),
            },
            () = invocation.cancel.cancelled() => {
                ToolOutcome::error(ToolErrorCode::Cancelled, "the call was stopped")
            }
        }
    }
}

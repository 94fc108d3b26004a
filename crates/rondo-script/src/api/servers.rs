//! Servers of the Model Context Protocol.

use super::Functions;
use super::files::IN_DOUBT;
use crate::error::CallError;
use crate::ledger::KeptPart;
use crate::shared::{Shared, to_json, to_lua};
use mlua::{AnyUserData, UserData, Value as LuaValue};
use rondo_core::Tool;
use rondo_core::ports::{Asker, CallEnd, OutputSink, ProgressSink, ToolInvocation};
use rondo_runtime::script::ScriptServer;
use rondo_types::{Recovery, RemainingLimits, ToolOutcome, TurnId};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A server of the script. It is started when it is first needed, so a script that only reads its records starts none.
#[derive(Clone)]
pub(super) struct LuaServer(Arc<ServerSpec>);

struct ServerSpec {
    name: String,
    written: Option<Value>,
    started: OnceCell<ScriptServer>,
}

impl UserData for LuaServer {}

impl LuaServer {
    /// Returns the server, which the first call starts.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) async fn started(&self, shared: &Shared) -> Result<&ScriptServer, CallError> {
        let described = &self.0;
        let start =
            || ScriptServer::start(&shared.session, &described.name, described.written.clone());
        Ok(described.started.get_or_try_init(start).await?)
    }
}

/// Adds the functions.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    to.quick(
        "mcp",
        "rondo.mcp",
        |_, lua, (name, written): (String, Option<LuaValue>)| {
            let written = written.map(|it| to_json(lua, &it)).transpose()?;
            let described = ServerSpec {
                name,
                written,
                started: OnceCell::new(),
            };
            Ok(lua.create_userdata(LuaServer(Arc::new(described)))?)
        },
    )?;
    to.waiting("server_tools", "server:tools", |shared, lua, at, server: AnyUserData| async move {
        let server = server.borrow::<LuaServer>()?.clone();
        let arguments = json!(server.0.name);
        let call = shared.call(&at, "server:tools", &arguments, KeptPart::Look, async |_| {
            let started = server.started(&shared).await?;
            let tools = started.tools(shared.session.id()).into_iter();
            let tools = tools.map(|it| {
                json!({ "name": it.name, "description": it.description, "parameters": it.parameters })
            });
            Ok(tools.collect())
        });
        Ok(to_lua(&lua, &call.await?)?)
    })?;
    to.waiting(
        "server_call",
        "server:call",
        |shared, lua, at, (server, tool, arguments): (AnyUserData, String, LuaValue)| async move {
            let server = server.borrow::<LuaServer>()?.clone();
            let arguments = to_json(&lua, &arguments)?;
            let told = json!([server.0.name, tool, arguments]);
            let call = shared.call(&at, "server:call", &told, KeptPart::Effect, async |made| {
                let started = server.started(&shared).await?;
                let found = started
                    .tool(shared.session.id(), &tool)
                    .ok_or_else(|| CallError::failed(format!("the server has no tool `{tool}`")))?;
                let may_repeat = matches!(
                    found.spec().recovery,
                    Recovery::ReadOnly | Recovery::Idempotent
                );
                if made.begun.is_some() && !may_repeat {
                    return Err(CallError::failed(IN_DOUBT));
                }
                called(&shared, found, made.id, arguments).await
            });
            Ok(to_lua(&lua, &call.await?)?)
        },
    )
}

async fn called(
    shared: &Shared,
    tool: Arc<dyn Tool>,
    call_id: rondo_types::CallId,
    arguments: Value,
) -> Result<Value, CallError> {
    let session = shared.session.id();
    let invocation = ToolInvocation {
        session: session.clone(),
        turn: TurnId::new(""),
        idempotency_key: format!("{session}-{call_id}"),
        call_id,
        arguments,
        timeout: shared.time_left(),
        cancel: shared.cancel.child_token(),
        output: OutputSink::discard(),
        progress: ProgressSink::discard(),
        allowance: RemainingLimits::default(),
        asker: Asker::nobody(),
    };
    // Whatever a server answers, its refusals included, comes from outside.
    shared.session.outside_text().note();
    match tool.run(invocation).await {
        CallEnd::Done(ToolOutcome::Ok(output)) => Ok(output.value),
        CallEnd::Done(ToolOutcome::Error(error)) => Err(CallError::failed(error.message)),
        CallEnd::Waiting { .. } => Err(CallError::failed("it waits for a session")),
    }
}

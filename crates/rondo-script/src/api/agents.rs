//! Agents of a script and their conversations.

use super::Functions;
use super::servers::LuaServer;
use super::tools::{LuaTool, ToolOfScript};
use crate::answer;
use crate::branch::Branch;
use crate::error::{CallError, ScriptError};
use crate::ledger::KeptPart;
use crate::shared::{Position, Shared, to_json, to_lua};
use mlua::{AnyUserData, Function, Lua, Table, UserData, Value as LuaValue};
use rondo_core::Tool;
use rondo_runtime::Extensions;
use rondo_runtime::script::{
    AgentConversation, AgentModel, ConversationEnd, RecordedCall, ScriptAgent, ScriptSession,
    TurnState,
};
use rondo_types::{Effort, Message, NanoUsd, Outcome, RemainingLimits, Transcript, TurnEvent};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;

/// An agent.
#[derive(Clone)]
struct LuaAgent(Arc<AgentSpec>);

struct AgentSpec {
    agent: ScriptAgent,
    tools: Vec<ToolOfScript>,
    servers: Vec<LuaServer>,
    on_event: Option<Function>,
}

impl UserData for LuaAgent {}

/// A conversation.
#[derive(Clone)]
struct LuaConversation(Arc<ConversationState>);

struct ConversationState {
    conversation: AsyncMutex<AgentConversation>,
    said: Mutex<ScriptTranscript>,
}

#[derive(Default)]
struct ScriptTranscript {
    /// The turn of the session that was the latest to end.
    turn: u32,
    /// Messages that scripts have received, their own first.
    messages: Vec<Value>,
    /// Messages of the transcript that these are.
    known: usize,
}

impl UserData for LuaConversation {}

/// Adds the functions.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    to.quick(
        "agent",
        "rondo.agent",
        |_,
         lua,
         (given, model, tools, on_event): (
            Table,
            Option<Table>,
            Option<Table>,
            Option<Function>,
        )| {
            let mut described = AgentSpec {
                agent: agent(lua, &given, model.as_ref())?,
                tools: Vec::new(),
                servers: Vec::new(),
                on_event,
            };
            if let Some(tools) = tools {
                described.take_tools(&tools)?;
            }
            Ok(lua.create_userdata(LuaAgent(Arc::new(described)))?)
        },
    )?;
    to.quick("begin", "|", |shared, lua, _: AnyUserData| {
        begun(shared, lua, Transcript::new())
    })?;
    to.quick(
        "take_over",
        "|",
        |shared, lua, (_, left): (AnyUserData, AnyUserData)| {
            let left = left.borrow::<LuaConversation>()?.clone();
            let said = left.0.said.lock().unwrap_or_else(PoisonError::into_inner);
            let before = said.messages.iter().filter_map(answer::spoken).collect();
            drop(said);
            begun(shared, lua, before)
        },
    )?;
    to.waiting(
        "ask",
        "|",
        |shared, lua, at, (conversation, agent, text): (AnyUserData, AnyUserData, String)| async move {
            let conversation = conversation.borrow::<LuaConversation>()?.clone();
            let agent = agent.borrow::<LuaAgent>()?.clone();
            let turn = Turn {
                shared: &shared,
                lua: &lua,
                spoken: &conversation.0,
                agent: &agent.0,
                log: Arc::default(),
            };
            let answer = turn.ask(&at, text).await?;
            Ok(to_lua(&lua, &answer)?)
        },
    )
}

fn begun(shared: &Arc<Shared>, lua: &Lua, before: Transcript) -> Result<AnyUserData, CallError> {
    let branch =
        Branch::current().ok_or_else(|| CallError::failed("it was called outside a script"))?;
    let call = ScriptSession::call_id(&branch.name, branch.next_place());
    let known = before.len();
    let conversation = AgentConversation::new(&shared.session, &call)?.after(before);
    let said = ScriptTranscript {
        known,
        ..ScriptTranscript::default()
    };
    Ok(
        lua.create_userdata(LuaConversation(Arc::new(ConversationState {
            conversation: AsyncMutex::new(conversation),
            said: Mutex::new(said),
        })))?,
    )
}

fn agent(lua: &Lua, given: &Table, model: Option<&Table>) -> Result<ScriptAgent, CallError> {
    let schema = given.get::<Option<LuaValue>>("schema")?;
    Ok(ScriptAgent {
        name: given.get("name")?,
        model: model.map(model_of).transpose()?.unwrap_or_default(),
        profile: given.get("profile")?,
        system: given.get("system")?,
        tools: None,
        allowed: given
            .get::<Option<Vec<String>>>("allow")?
            .unwrap_or_default(),
        limits: match given.get::<Option<Table>>("limits")? {
            Some(limits) => limits_of(&limits)?,
            None => RemainingLimits::default(),
        },
        schema: schema.map(|it| to_json(lua, &it)).transpose()?,
    })
}

fn model_of(given: &Table) -> Result<AgentModel, CallError> {
    let effort = given.get::<Option<String>>("effort")?;
    let effort = effort.map(|word| {
        serde_json::from_value::<Effort>(json!(word))
            .map_err(|_| CallError::failed(format!("there is no effort `{word}`")))
    });
    Ok(AgentModel {
        name: given.get("name")?,
        base_url: given.get("base_url")?,
        temperature: given.get("temperature")?,
        max_output_tokens: given.get("max_output_tokens")?,
        effort: effort.transpose()?,
    })
}

fn limits_of(given: &Table) -> Result<RemainingLimits, CallError> {
    let time = given.get::<Option<f64>>("time")?;
    let time = time.map(|it| Duration::try_from_secs_f64(it).map_err(CallError::failed));
    Ok(RemainingLimits {
        steps: given.get("steps")?,
        calls: given.get("tool_calls")?,
        tokens: given.get("tokens")?,
        cost: given.get::<Option<f64>>("cost")?.map(NanoUsd::from_usd),
        time: time.transpose()?,
    })
}

impl AgentSpec {
    fn take_tools(&mut self, given: &Table) -> Result<(), CallError> {
        let mut names = Vec::new();
        for tool in given.sequence_values::<LuaValue>() {
            match tool? {
                LuaValue::String(name) => names.push(name.to_string_lossy()),
                LuaValue::UserData(data) if data.is::<ToolOfScript>() => {
                    let tool = data.borrow::<ToolOfScript>()?.clone();
                    names.push(tool.spec.name.clone());
                    self.tools.push(tool);
                }
                LuaValue::UserData(data) => {
                    self.servers.push(data.borrow::<LuaServer>()?.clone());
                }
                _ => {
                    return Err(CallError::failed(
                        "`tools` has an element that is not a tool",
                    ));
                }
            }
        }
        self.agent.tools = Some(names);
        Ok(())
    }
}

/// A turn of a conversation.
struct Turn<'a> {
    shared: &'a Arc<Shared>,
    lua: &'a Lua,
    spoken: &'a ConversationState,
    agent: &'a AgentSpec,
    /// Calls of the script's own tools.
    log: Arc<Mutex<Vec<RecordedCall>>>,
}

impl Turn<'_> {
    /// Asks, or takes the answer from the records.
    async fn ask(&self, at: &Position, text: String) -> Result<Value, CallError> {
        let mut conversation = self.spoken.conversation.lock().await;
        let before = self.said(|said| said.turn);
        let arguments = json!([self.agent.agent.name, before, text]);
        let mut was_live = false;
        let call = self
            .shared
            .call(at, "agent:ask", &arguments, KeptPart::Result, async |_| {
                was_live = true;
                self.live(&mut conversation, before, text).await
            });
        let answer = call.await?;
        if !was_live {
            self.repeat(&answer::calls(&answer)).await;
        }
        self.said(|said| {
            let number = |name: &str| answer.get(name).and_then(Value::as_u64);
            said.turn = number("turn")
                .and_then(|it| u32::try_from(it).ok())
                .unwrap_or(before);
            let new = answer.get("new_messages").and_then(Value::as_array);
            said.messages.extend(new.into_iter().flatten().cloned());
            let known = number("known").and_then(|it| usize::try_from(it).ok());
            said.known = known.unwrap_or(said.known);
        });
        Ok(answer)
    }

    fn said<T>(&self, with: impl FnOnce(&mut ScriptTranscript) -> T) -> T {
        with(
            &mut self
                .spoken
                .said
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    async fn live(
        &self,
        conversation: &mut AgentConversation,
        before: u32,
        text: String,
    ) -> Result<Value, CallError> {
        let session = &self.shared.session;
        let mut number = before.saturating_add(1);
        let outcome = loop {
            match conversation.state(session, number).await? {
                // Turns that failed or were stopped are not answers: the message is sent again.
                TurnState::Done(outcome, _) if answer::is_void(&outcome) => {
                    number = number.saturating_add(1);
                }
                TurnState::Done(outcome, calls) => {
                    self.repeat(&calls).await;
                    break outcome;
                }
                TurnState::CutOff(calls) => {
                    self.repeat(&calls).await;
                    break self.run(conversation, text).await?;
                }
                TurnState::New => break self.run(conversation, text).await?,
            }
        };
        self.shared.session.count(outcome.used());
        if let Some(failure) = answer::failure(&outcome, &self.agent.agent.name) {
            let is_stopped = self.shared.cancel.is_cancelled();
            return Err(match is_stopped {
                true => CallError::end(ScriptError::Stopped),
                false => failure.into(),
            });
        }
        let known = self.said(|said| said.known);
        let calls = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let agent = &self.agent.agent;
        Ok(answer::value(
            &outcome,
            agent,
            conversation.id(),
            number,
            known,
            &calls,
        ))
    }

    async fn run(
        &self,
        conversation: &mut AgentConversation,
        text: String,
    ) -> Result<Box<Outcome>, CallError> {
        let shared = self.shared;
        let mut extensions = Extensions::default();
        for server in &self.agent.servers {
            let started = server.started(shared).await?;
            extensions
                .tool_sources
                .push(started.source(conversation.id()));
        }
        let tool = |it: &ToolOfScript| -> Arc<dyn Tool> {
            Arc::new(LuaTool::new(it.clone(), self.lua, shared, &self.log))
        };
        let agent = &self.agent.agent;
        let mut listener = self.agent.on_event.clone();
        let on_event = |event: TurnEvent| {
            shared.host.event(&agent.name, &event);
            let Some(listen) = &listener else {
                return;
            };
            if let Err(why) = self.told(listen, &event) {
                let note = format!("`on_event` of `{}` failed: {why}\n", agent.name);
                shared.host.stderr(note.as_bytes());
                listener = None;
            }
        };
        let session = &shared.session;
        let (message, time) = (Message::user(text), shared.time_left());
        let approver = shared.host.approver();
        let builder = conversation.builder(session, agent, message, time, approver);
        let mut builder = builder.await?;
        builder.gate = shared.host.gate();
        builder.live = self.agent.tools.iter().map(tool).collect();
        builder.extensions = extensions;
        let cancel = shared.cancel.child_token();
        let asked = conversation.run(session, builder, &cancel, on_event);
        match asked.await? {
            ConversationEnd::Done(outcome) => Ok(outcome),
            ConversationEnd::Parked(questions) => Err(CallError::end(ScriptError::Parked {
                session: conversation.id().clone(),
                questions,
            })),
        }
    }

    fn told(&self, listen: &Function, event: &TurnEvent) -> Result<(), String> {
        let event = serde_json::to_value(event).map_err(|err| err.to_string())?;
        let event = to_lua(self.lua, &event).map_err(|err| err.to_string())?;
        listen
            .call::<()>(event)
            .map_err(|err| crate::error::message_of(&err))
    }

    /// Calls the script's own tools again as they were called, over the records, so that what they left in the script
    /// is there again. Nothing outside happens: their own calls have their results already.
    async fn repeat(&self, calls: &[RecordedCall]) {
        for call in calls {
            let known = self.agent.tools.iter().find(|it| it.spec.name == call.tool);
            if let Some(tool) = known {
                let tool = LuaTool::new(tool.clone(), self.lua, self.shared, &self.log);
                drop(tool.run(&call.key, &call.arguments, None).await);
                let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push(call.clone());
            }
        }
    }
}

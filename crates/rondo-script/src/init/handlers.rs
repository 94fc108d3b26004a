//! Handlers of turns: functions of `init.lua` that watch a turn, and may deny or change what it does.
//!
//! One that fails or takes too long is reported, and decides by that what is safe: a call does not run, a result is not
//! read by the model, and a step continues.

use super::registered::{Event, Handler};
use super::vm::{HANDLER_TIME, InitVm};
use crate::shared::{to_json, to_lua};
use async_trait::async_trait;
use mlua::{Lua, Value as LuaValue};
use rondo_core::Interceptor;
use rondo_core::ports::{
    CallDecision, FinishedCall, GateRequest, ResultDecision, StepContext, StepDecision,
};
use rondo_types::{Outcome, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns the handlers as a turn asks them, in the order in which they were registered.
pub(super) fn interceptors(vm: &Arc<InitVm>, handlers: &[Handler]) -> Vec<Arc<dyn Interceptor>> {
    let interceptors = handlers.iter().map(|it| {
        let handler = LuaHandler {
            vm: Arc::clone(vm),
            name: format!("{} of {}", it.event.name(), it.from),
            handler: it.clone(),
        };
        Arc::new(handler) as Arc<dyn Interceptor>
    });
    interceptors.collect()
}

struct LuaHandler {
    vm: Arc<InitVm>,
    name: String,
    handler: Handler,
}

impl LuaHandler {
    /// Calls the handler, and reads what it returns.
    async fn call<T: Send + 'static>(
        &self,
        told: Value,
        read: impl FnOnce(&Lua, LuaValue) -> mlua::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let run = self.handler.run.clone();
        let called = self.vm.call(HANDLER_TIME, move |lua| {
            let told = to_lua(lua, &told)?;
            let value = run.call::<LuaValue>(told)?;
            read(lua, value)
        });
        let called = called.await;
        if let Err(why) = &called {
            self.vm
                .note(&format!("the handler {} failed: {why}", self.name));
        }
        called
    }

    async fn step(&self, event: Event, step: &StepContext) -> StepDecision {
        if self.handler.event != event {
            return StepDecision::Continue;
        }
        let last = step.transcript.last().map(|it| it.text());
        let told = json!({
            "session": step.session.as_str(),
            "turn": step.turn_number,
            "step": step.step,
            "model": step.model,
            "messages": step.transcript.len(),
            "text": last,
        });
        let decided = self.call(told, |_, value| step_decision(&value)).await;
        decided.unwrap_or(StepDecision::Continue)
    }
}

fn step_decision(value: &LuaValue) -> mlua::Result<StepDecision> {
    match value {
        LuaValue::Nil => Ok(StepDecision::Continue),
        LuaValue::String(text) => Ok(StepDecision::Add {
            text: text.to_string_lossy(),
        }),
        LuaValue::Table(table) => {
            if let Some(reason) = table.get::<Option<String>>("stop")? {
                return Ok(StepDecision::Stop { reason });
            }
            match table.get::<Option<String>>("add")? {
                Some(text) => Ok(StepDecision::Add { text }),
                None => Err(wrong("a text, `{ add = \"...\" }` or `{ stop = \"...\" }`")),
            }
        }
        _ => Err(wrong("a text, `{ add = \"...\" }` or `{ stop = \"...\" }`")),
    }
}

fn call_decision(lua: &Lua, value: LuaValue) -> mlua::Result<CallDecision> {
    match value {
        LuaValue::Nil | LuaValue::Boolean(true) => Ok(CallDecision::Allow),
        LuaValue::Boolean(false) => Ok(CallDecision::Deny {
            reason: "the user's handler denies it".to_owned(),
        }),
        LuaValue::Table(table) => {
            if let Some(reason) = table.get::<Option<String>>("deny")? {
                return Ok(CallDecision::Deny { reason });
            }
            match table.get::<LuaValue>("arguments")? {
                LuaValue::Nil => Err(wrong("`{ deny = \"...\" }` or `{ arguments = { ... } }`")),
                arguments => Ok(CallDecision::Rewrite {
                    arguments: to_json(lua, &arguments)?,
                }),
            }
        }
        _ => Err(wrong("`{ deny = \"...\" }` or `{ arguments = { ... } }`")),
    }
}

fn result_decision(value: &LuaValue) -> mlua::Result<ResultDecision> {
    let text = match value {
        LuaValue::Nil => return Ok(ResultDecision::Keep),
        LuaValue::String(text) => Some(text.to_string_lossy()),
        LuaValue::Table(table) => table.get::<Option<String>>("result")?,
        _ => None,
    };
    let text = text.ok_or_else(|| wrong("a text or `{ result = \"...\" }`"))?;
    Ok(ResultDecision::Rewrite { text })
}

fn wrong(expected: &str) -> mlua::Error {
    mlua::Error::runtime(format!("it returns {expected}, or nothing"))
}

#[async_trait]
impl Interceptor for LuaHandler {
    fn name(&self) -> &str {
        &self.name
    }

    async fn turn_start(&self, step: &StepContext) -> StepDecision {
        self.step(Event::TurnStart, step).await
    }

    async fn step_start(&self, step: &StepContext) -> StepDecision {
        self.step(Event::StepStart, step).await
    }

    async fn before_tool(&self, call: &GateRequest) -> CallDecision {
        if self.handler.event != Event::BeforeTool {
            return CallDecision::Allow;
        }
        let told = json!({
            "session": call.session.as_str(),
            "step": call.step,
            "call": call.call_id.as_str(),
            "tool": call.spec.name,
            "kind": call.spec.kind.as_str(),
            "arguments": call.arguments,
        });
        let decided = self.call(told, call_decision).await;
        decided.unwrap_or_else(|_| CallDecision::Deny {
            reason: "the user's handler failed, so the call does not run".to_owned(),
        })
    }

    async fn after_tool(&self, call: &FinishedCall) -> ResultDecision {
        if self.handler.event != Event::AfterTool {
            return ResultDecision::Keep;
        }
        let result = match &call.outcome {
            ToolOutcome::Ok(output) => output.value.clone(),
            ToolOutcome::Error(error) => Value::String(error.message.clone()),
        };
        let told = json!({
            "session": call.session.as_str(),
            "call": call.call_id.as_str(),
            "tool": call.tool,
            "arguments": call.arguments,
            "ok": call.outcome.is_ok(),
            "result": result,
            "duration_ms": call.duration_ms,
        });
        let decided = self.call(told, |_, value| result_decision(&value)).await;
        decided.unwrap_or_else(|_| ResultDecision::Rewrite {
            text: "(the user's handler failed, so the result is withheld)".to_owned(),
        })
    }

    async fn turn_end(&self, outcome: &Outcome) {
        if self.handler.event != Event::TurnEnd {
            return;
        }
        let told = json!({
            "text": outcome.text,
            "stop_reason": outcome.stop_reason.as_str(),
            "answered": outcome.answered,
            "steps": outcome.steps,
            "tool_calls": outcome.tool_calls,
            "tokens": outcome.usage.total(),
            "model": outcome.model,
            "elapsed_ms": outcome.elapsed_ms,
        });
        drop(self.call(told, |_, _| Ok(())).await);
    }
}

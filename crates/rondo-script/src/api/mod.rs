//! The functions of Rust beneath the table `rondo`. Each returns a value, or nothing and why, so that what scripts
//! catch are plain texts.
//!
//! # Layout
//! - `agents`: agents and their conversations; `tools`: the script's own tools; `servers`: servers of tools.
//! - `commands`: commands, questions to the user, pages; `branches`: functions that run at once.
//! - `files`: files and modules; `json`: JSON; `system`: streams, time, random numbers, the environment, the end.

mod agents;
mod branches;
mod commands;
pub(crate) mod files;
mod json;
mod servers;
pub(crate) mod system;
mod tools;

pub(crate) use commands::told;
pub(crate) use json::add as add_json;
pub(crate) use system::date;
pub(crate) use tools::spec_of;

use crate::error::CallError;
use crate::shared::{Position, Shared};
use mlua::{FromLuaMulti, IntoLua, Lua, MultiValue, Table};
use std::sync::Arc;

/// Builds the table of all functions.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn functions(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<Table> {
    let core = lua.create_table()?;
    let to = Functions {
        lua,
        core: &core,
        shared,
    };
    agents::add(&to)?;
    branches::add(&to)?;
    commands::add(&to)?;
    files::add(&to)?;
    json::add(lua, &core)?;
    servers::add(&to)?;
    system::add(&to)?;
    tools::add(&to)?;
    Ok(core)
}

/// Table to which functions are added.
struct Functions<'a> {
    lua: &'a Lua,
    core: &'a Table,
    shared: &'a Arc<Shared>,
}

impl Functions<'_> {
    /// Adds a function that waits. `name` is that of the table, `told` that of messages.
    fn waiting<A, R, F, W>(&self, name: &str, told: &'static str, make: F) -> mlua::Result<()>
    where
        A: FromLuaMulti + Send + 'static,
        R: IntoLua + Send + 'static,
        F: Fn(Arc<Shared>, Lua, Position, A) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<R, CallError>> + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let function = self
            .lua
            .create_async_function(move |lua, given: MultiValue| {
                let (shared, make) = (Arc::clone(&shared), make.clone());
                let at = Position::of(&lua);
                async move {
                    shared.check()?;
                    let made = match A::from_lua_multi(given, &lua) {
                        Ok(given) => {
                            make(Arc::clone(&shared), lua.clone(), at.clone(), given).await
                        }
                        Err(error) => Err(error.into()),
                    };
                    shared.answer(&lua, &at, told, made)
                }
            })?;
        self.core.set(name, function)
    }

    /// Adds a function that answers at once.
    fn quick<A, R, F>(&self, name: &str, told: &'static str, make: F) -> mlua::Result<()>
    where
        A: FromLuaMulti,
        R: IntoLua,
        F: Fn(&Arc<Shared>, &Lua, A) -> Result<R, CallError> + Send + 'static,
    {
        let shared = Arc::clone(self.shared);
        let function = self.lua.create_function(move |lua, given: MultiValue| {
            let at = Position::of(lua);
            let given = A::from_lua_multi(given, lua).map_err(CallError::from);
            let made = given.and_then(|given| make(&shared, lua, given));
            shared.answer(lua, &at, told, made)
        })?;
        self.core.set(name, function)
    }
}

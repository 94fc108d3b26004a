//! JSON.

use crate::error::CallError;
use crate::shared::{Position, to_json, to_lua};
use mlua::{Lua, LuaSerdeExt as _, LuaString, Table, Value as LuaValue};
use serde_json::Value;

/// Adds the functions.
///
/// # Errors
/// When there is no memory for them.
pub(crate) fn add(lua: &Lua, core: &Table) -> mlua::Result<()> {
    let decode = lua.create_function(|lua, text: LuaString| {
        let value = serde_json::from_slice::<Value>(&text.as_bytes());
        let value = value
            .map_err(CallError::failed)
            .and_then(|it| Ok(to_lua(lua, &it)?));
        Ok(answer(lua, "rondo.json.decode", value))
    })?;
    core.set("json_decode", decode)?;
    let encode = lua.create_function(|lua, (value, is_pretty): (LuaValue, Option<bool>)| {
        let text = encoded(lua, &value, is_pretty == Some(true));
        let text = text.and_then(|it| Ok(LuaValue::String(lua.create_string(it)?)));
        Ok(answer(lua, "rondo.json.encode", text))
    })?;
    core.set("json_encode", encode)?;
    let array = lua.array_metatable();
    let as_array = lua.create_function(move |lua, table: Option<Table>| {
        let table = match table {
            Some(table) => table,
            None => lua.create_table()?,
        };
        table.set_metatable(Some(array.clone()))?;
        Ok(table)
    })?;
    core.set("array", as_array)?;
    core.set("null", lua.null())?;
    // An empty table is an object in JSON as it is.
    let object = lua.create_function(|lua, ()| lua.create_table())?;
    core.set("object", object)
}

fn encoded(lua: &Lua, value: &LuaValue, is_pretty: bool) -> Result<String, CallError> {
    let value = to_json(lua, value)?;
    let text = match is_pretty {
        true => serde_json::to_string_pretty(&value),
        false => serde_json::to_string(&value),
    };
    text.map_err(CallError::failed)
}

fn answer(
    lua: &Lua,
    function: &str,
    made: Result<LuaValue, CallError>,
) -> (LuaValue, Option<String>) {
    match made {
        Ok(value) => (value, None),
        Err(error) => {
            let at = Position::of(lua).prefix();
            (
                LuaValue::Nil,
                Some(format!("{at}{function}: {}", error.reason())),
            )
        }
    }
}

//! The Lua of a script: what it has, and what bounds it.

use crate::names::{CONVERSATION, MEMBERS, Names, OPTIONS, RONDO};
use crate::shared::Shared;
use mlua::{HookTriggers, Lua, LuaOptions, StdLib, Table, VmState};
use std::sync::Arc;

/// Memory of one script, in bytes.
pub(crate) const MEMORY_BYTES_MAX: usize = 512 << 20;
/// Instructions between two checks whether a script must end: about a tenth of a millisecond.
const INSTRUCTIONS: u32 = 10_000;
/// Prelude of scripts, in Lua.
const PRELUDE: &str = include_str!("../lua/prelude.lua");
/// Common part of both preludes, in Lua.
const COMMON: &str = include_str!("../lua/common.lua");
/// Constructor of JSON Schemas of parameters, in Lua.
const SCHEMA: &str = include_str!("../lua/schema.lua");

/// Makes a Lua without files, processes and native code, whose memory is bounded; [`bound`] ends what it runs.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn bare(memory_bytes_max: usize) -> mlua::Result<Lua> {
    let libraries =
        StdLib::COROUTINE | StdLib::TABLE | StdLib::STRING | StdLib::UTF8 | StdLib::MATH;
    let lua = Lua::new_with(libraries, LuaOptions::default())?;
    lua.set_memory_limit(memory_bytes_max)?;
    Ok(lua)
}

/// Calls `check` while Lua runs. An error of it ends whatever runs: from then on every instruction raises it, so
/// nothing is left in which a script could continue.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn bound(
    lua: &Lua,
    check: impl Fn() -> mlua::Result<()> + Send + Sync + Clone + 'static,
) -> mlua::Result<()> {
    let often = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
    lua.set_global_hook(often, move |lua, _| {
        let Err(error) = check() else {
            return Ok(VmState::Continue);
        };
        let (again, all) = (check.clone(), HookTriggers::new().every_nth_instruction(1));
        lua.set_hook(all, move |_, _| again().map(|()| VmState::Continue))?;
        Err(error)
    })
}

/// Makes the Lua of a script, with all functions.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn new(shared: &Arc<Shared>) -> mlua::Result<Lua> {
    let lua = bare(MEMORY_BYTES_MAX)?;
    let core = crate::api::functions(&lua, shared)?;
    add_shared(&lua, &core)?;
    lua.load(PRELUDE)
        .set_name("=rondo")
        .call::<()>((core, options(&lua, OPTIONS)?))?;
    let of_hook = Arc::clone(shared);
    bound(&lua, move || of_hook.check())?;
    Ok(lua)
}

/// Adds the functions that every prelude gets: the basic ones, and those that make JSON Schemas of parameters.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn add_shared(lua: &Lua, core: &Table) -> mlua::Result<()> {
    for (name, source) in [("common", COMMON), ("schema", SCHEMA)] {
        core.set(name, lua.load(source).set_name("=rondo").into_function()?)?;
    }
    Ok(())
}

/// Returns the known names of options and fields, as sets.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn options(lua: &Lua, known: &[Names]) -> mlua::Result<Table> {
    let all = lua.create_table()?;
    let lists = known.iter().chain(MEMBERS).map(|it| (it.of, it.names));
    for (of, names) in lists.chain([("conversation", CONVERSATION), ("rondo", RONDO)]) {
        let set = lua.create_table()?;
        for name in names {
            set.set(*name, true)?;
        }
        all.set(of, set)?;
    }
    Ok(all)
}

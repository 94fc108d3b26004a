//! Functions of a script that run at once.

use super::Functions;
use crate::branch::Branch;
use crate::error::{CallError, message_of};
use futures_util::{StreamExt as _, stream};
use mlua::{Function, Table, Value as LuaValue};

/// Branches that run at once if the script says nothing.
const AT_ONCE: usize = 8;
/// Branches that can run at once.
const AT_ONCE_MAX: usize = 64;
/// Branches of one call.
const BRANCHES_MAX: usize = 10_000;

/// Adds the function.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    to.waiting(
        "parallel",
        "rondo.parallel",
        |shared, lua, _, (functions, options): (Vec<Function>, Table)| async move {
            let limit: Option<usize> = options.get("limit")?;
            let limit = limit.unwrap_or(AT_ONCE);
            if !(1..=AT_ONCE_MAX).contains(&limit) {
                let why = format!("`limit` is a number from 1 to {AT_ONCE_MAX}");
                return Err(CallError::Failed(why));
            }
            if functions.len() > BRANCHES_MAX {
                let why = format!("it takes at most {BRANCHES_MAX} functions");
                return Err(CallError::Failed(why));
            }
            let current = Branch::current()
                .ok_or_else(|| CallError::failed("it was called outside a script"))?;
            let (place, seed) = (current.next_place(), shared.ledger.run().seed);
            let running = functions.into_iter().enumerate().map(|(at, function)| {
                let branch = current.below(place, at + 1, seed);
                branch.run(async move { (at, function.call_async::<LuaValue>(()).await) })
            });
            let mut running = stream::iter(running).buffer_unordered(limit);
            let results = lua.create_table()?;
            while let Some((at, result)) = running.next().await {
                let value = result.map_err(|error| CallError::Told(message_of(&error)))?;
                results.raw_set(at + 1, value)?;
            }
            Ok(results)
        },
    )
}

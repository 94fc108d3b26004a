//! Streams, time, random numbers, the environment and the end of a script.

use super::Functions;
use crate::branch::Branch;
use crate::error::{Abort, CallError, ScriptError};
use crate::host::StdinRead;
use crate::ledger::{KeptPart, RESULT_BYTES_MAX};
use crate::shared::{Position, to_lua};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;
use mlua::Value as LuaValue;
use rondo_runtime::calendar;
use serde_json::{Value, json};
use std::time::Duration;

/// Seconds that a script may sleep at once.
const SLEEP_MAX: f64 = 7.0 * 86_400.0;
/// Bits of a random number between 0 and 1.
const FRACTION_BITS: u32 = 53;

/// Adds the functions.
pub(super) fn add(to: &Functions<'_>) -> mlua::Result<()> {
    streams(to)?;
    time(to)?;
    random(to)?;
    to.quick("env", "rondo.env", |shared, _, name: String| {
        Ok(shared.session.settings().env.get(&name).map(str::to_owned))
    })?;
    let arguments = to.shared.ledger.run().arguments.clone();
    let arg = to.lua.create_sequence_from(arguments)?;
    arg.raw_set(0, to.shared.ledger.run().name.clone())?;
    to.core.set("args", arg)?;
    let where_ = to
        .lua
        .create_function(|lua, ()| Ok(Position::of(lua).prefix()))?;
    to.core.set("where", where_)?;
    to.core.set("pending", mlua::Lua::poll_pending())?;
    let shared = std::sync::Arc::clone(to.shared);
    let is_ending = to
        .lua
        .create_function(move |_, ()| Ok(shared.is_ending()))?;
    to.core.set("is_ending", is_ending)?;
    to.quick(
        "exit",
        "os.exit",
        |_, _, code: LuaValue| -> Result<LuaValue, CallError> {
            let code = match code {
                LuaValue::Boolean(is_good) => u8::from(!is_good),
                LuaValue::Integer(code) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
                _ => return Err(CallError::failed("it takes a number or a boolean")),
            };
            Err(CallError::Abort(Abort::Exit(code)))
        },
    )
}

fn streams(to: &Functions<'_>) -> mlua::Result<()> {
    let shared = std::sync::Arc::clone(to.shared);
    let stdout = to.lua.create_function(move |_, text: mlua::LuaString| {
        let written = shared.host.stdout(&text.as_bytes());
        written.map_err(|err| shared.abort(Abort::Error(ScriptError::Output(err))))
    })?;
    to.core.set("stdout", stdout)?;
    let shared = std::sync::Arc::clone(to.shared);
    let stderr = to.lua.create_function(move |_, text: mlua::LuaString| {
        shared.host.stderr(&text.as_bytes());
        Ok(())
    })?;
    to.core.set("stderr", stderr)?;
    to.waiting(
        "stdin",
        "io.read",
        |shared, lua, at, what: String| async move {
            let read = match what.trim_start_matches('*') {
                "a" => StdinRead::All,
                "l" => StdinRead::Line,
                "L" => StdinRead::WholeLine,
                _ => return Err(CallError::failed("it reads \"a\", \"l\" or \"L\"")),
            };
            let arguments = json!({ "what": what });
            let call = shared.call(&at, "io.read", &arguments, KeptPart::Look, async |_| {
                let bytes = shared.host.stdin(read, RESULT_BYTES_MAX).await;
                let bytes = bytes.map_err(CallError::failed)?;
                Ok(match bytes {
                    Some(bytes) => Value::String(text_of(bytes)?),
                    None => Value::Null,
                })
            });
            Ok(to_lua(&lua, &call.await?)?)
        },
    )
}

/// Records are JSON, which has texts only.
pub(crate) fn text_of(bytes: Vec<u8>) -> Result<String, CallError> {
    String::from_utf8(bytes).map_err(|_| CallError::failed("it is no text in UTF-8"))
}

fn time(to: &Functions<'_>) -> mlua::Result<()> {
    let now = to.shared.clock.now().0;
    to.core
        .set("began", i64::try_from(now).unwrap_or(i64::MAX))?;
    to.waiting("now", "os.time", |shared, lua, at, ()| async move {
        let call = shared.call(&at, "os.time", &Value::Null, KeptPart::Look, async |_| {
            Ok(json!(shared.clock.now().0))
        });
        Ok(to_lua(&lua, &call.await?)?)
    })?;
    to.waiting(
        "sleep",
        "rondo.sleep",
        |shared, _, at, seconds: f64| async move {
            if !(0.0..=SLEEP_MAX).contains(&seconds) {
                return Err(CallError::failed(
                    "it takes seconds, at most a week of them",
                ));
            }
            let arguments = json!(seconds);
            let call = shared.call(&at, "rondo.sleep", &arguments, KeptPart::Look, async |_| {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                Ok(Value::Null)
            });
            call.await.map(|_| mlua::Nil)
        },
    )?;
    to.quick("date", "os.date", |_, lua, (how, at): (String, f64)| {
        date(lua, &how, at)
    })?;
    to.quick("time_of", "os.time", |_, _, fields: mlua::Table| {
        let field = |name: &str, default: Option<i8>| -> Result<i8, CallError> {
            let value: Option<i8> = fields.get(name)?;
            value.or(default).ok_or_else(|| {
                CallError::Failed(format!("field `{name}` missing in the date table"))
            })
        };
        let made = DateTime::new(
            fields.get("year")?,
            field("month", None)?,
            field("day", None)?,
            field("hour", Some(12))?,
            field("min", Some(0))?,
            field("sec", Some(0))?,
            0,
        );
        let made = made.and_then(|it| it.to_zoned(calendar::zone_from_env()));
        let made = made.map_err(|_| CallError::failed("there is no such date"))?;
        Ok(made.timestamp().as_second())
    })
}

/// Formats a time, as `os.date` does.
///
/// # Errors
/// When there is no such time or format.
pub(crate) fn date(lua: &mlua::Lua, how: &str, at: f64) -> Result<LuaValue, CallError> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a time past all dates is refused below"
    )]
    let at = at as i64;
    let (zone, how) = match how.strip_prefix('!') {
        Some(how) => (TimeZone::UTC, how),
        None => (calendar::zone_from_env(), how),
    };
    let at = Timestamp::from_second(at);
    let at = at.map_err(|_| CallError::failed("there is no such time"))?;
    let at = at.to_zoned(zone);
    if how.starts_with("*t") {
        let table = lua.create_table()?;
        table.set("year", at.year())?;
        table.set("month", at.month())?;
        table.set("day", at.day())?;
        table.set("hour", at.hour())?;
        table.set("min", at.minute())?;
        table.set("sec", at.second())?;
        table.set("yday", at.day_of_year())?;
        return Ok(LuaValue::Table(table));
    }
    let config = Config::new().custom(PosixCustom::new());
    let text = BrokenDownTime::from(&at).to_string_with_config(&config, how);
    let text = text.map_err(|_| CallError::failed(format!("`{how}` is not a date format")))?;
    Ok(LuaValue::String(lua.create_string(text)?))
}

fn random(to: &Functions<'_>) -> mlua::Result<()> {
    let next = || Branch::current().map_or(0, |it| it.random());
    let between_0_and_1 = to.lua.create_function(move |_, ()| {
        let bits = u32::try_from(next() >> 32).unwrap_or_default();
        let more = u32::try_from(next() >> (32 + 32 - (FRACTION_BITS - 32))).unwrap_or_default();
        let scale = f64::from(1_u32 << (FRACTION_BITS - 32));
        Ok((f64::from(bits) + f64::from(more) / scale) / (f64::from(u32::MAX) + 1.0))
    })?;
    to.core.set("random", between_0_and_1)?;
    let between = to.lua.create_function(move |_, (low, high): (i64, i64)| {
        let span = high.wrapping_sub(low).cast_unsigned();
        let number = match span.checked_add(1) {
            Some(count) => next() % count,
            None => next(),
        };
        Ok(low.wrapping_add(number.cast_signed()))
    })?;
    to.core.set("random_between", between)
}

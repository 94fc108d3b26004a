//! Time and files for `init.lua`: done at once, within the time of the function that asks.

use super::vm::{VmShared, add};
use crate::api::files::{append_all, list, named, read_bounded};
use crate::api::system::text_of;
use crate::error::CallError;
use crate::ledger::RESULT_BYTES_MAX;
use mlua::{Lua, LuaString, Nil, Table};
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Adds `rondo.sleep` and the functions of `rondo.files`.
pub(super) fn add_all(lua: &Lua, core: &Table, shared: &Arc<VmShared>) -> mlua::Result<()> {
    let of = Arc::clone(shared);
    add(lua, core, "sleep", move |_, seconds: f64| {
        let wanted = Duration::try_from_secs_f64(seconds);
        let wanted = wanted.map_err(|_| CallError::failed("it takes seconds"))?;
        let left = of.left();
        thread::sleep(wanted.min(left));
        match wanted < left {
            true => Ok(Nil),
            false => Err(CallError::failed("it took longer than it may")),
        }
    })?;
    let of = Arc::clone(shared);
    add(lua, core, "files_read", move |_, path: String| {
        let bytes_max = u64::try_from(RESULT_BYTES_MAX).unwrap_or(u64::MAX);
        let read =
            regular(&of.directory().join(&path)).and_then(|file| read_bounded(&file, bytes_max));
        text_of(read.map_err(at(&path))?)
    })?;
    let of = Arc::clone(shared);
    add(lua, core, "files_exists", move |_, path: String| {
        let found = of.directory().join(&path).try_exists();
        found.map_err(at(&path))
    })?;
    let of = Arc::clone(shared);
    add(lua, core, "files_list", move |_, path: String| {
        list(&of.directory().join(&path)).map_err(at(&path))
    })?;
    let of = Arc::clone(shared);
    add(
        lua,
        core,
        "files_write",
        move |_, (path, text): (String, LuaString)| {
            let file = regular(&of.directory().join(&path));
            let written = file.and_then(|file| fs::write(file, &*text.as_bytes()));
            written.map(|()| Nil).map_err(at(&path))
        },
    )?;
    let of = Arc::clone(shared);
    add(
        lua,
        core,
        "files_append",
        move |_, (path, text): (String, LuaString)| {
            let opened = regular(&of.directory().join(&path)).and_then(|file| {
                let mut options = OpenOptions::new();
                options.append(true).create(true).open(file)
            });
            let appended = append_all(&mut opened.map_err(at(&path))?, &text.as_bytes());
            appended.map(|()| Nil).map_err(at(&path))
        },
    )
}

/// Returns a path if no pipe or device is there, which a function could wait for without end.
fn regular(path: &Path) -> io::Result<PathBuf> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(io::Error::other("it is no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

fn at<E: Display>(path: &str) -> impl Fn(E) -> CallError {
    move |why| CallError::failed(named(path, why))
}

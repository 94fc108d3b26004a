//! Looks for mistakes in a script without running it: what is no Lua, and names of ours that there are not.
//!
//! # Layout
//! - `lexer`: the words of a script; `uses`: its uses of ours.

mod lexer;
mod uses;

use crate::error::message_of;
use crate::vm;

/// Memory of the Lua that reads a script, in bytes.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Mistakes that are named.
const MISTAKES_MAX: usize = 100;

/// A mistake in a script.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScriptMistake {
    /// The line, from 1.
    pub line: u32,
    /// Problem, and the name that may be meant.
    pub message: String,
}

/// Returns the mistakes of a script in the order of their lines, the first hundred. Its first line may name its
/// interpreter. A script that is no Lua has that one mistake, whose message has its own line.
#[must_use]
pub fn check(name: &str, source: &str) -> Vec<ScriptMistake> {
    let source = crate::run::as_lua(source);
    if let Some(message) = syntax(name, &source) {
        return vec![ScriptMistake { line: 0, message }];
    }
    let mut mistakes = uses::mistakes(&lexer::tokens(&source));
    mistakes.sort();
    mistakes.dedup();
    mistakes.truncate(MISTAKES_MAX);
    mistakes
}

/// Returns why a script is no Lua.
fn syntax(name: &str, source: &str) -> Option<String> {
    let lua = match vm::bare(MEMORY_BYTES_MAX) {
        Ok(lua) => lua,
        Err(error) => return Some(message_of(&error)),
    };
    let chunk = lua.load(source).set_name(format!("@{name}"));
    let read = chunk.set_mode(mlua::chunk::ChunkMode::Text).into_function();
    read.err().map(|error| message_of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(u32, String)> {
        let mistakes = check("s.lua", source).into_iter();
        mistakes.map(|it| (it.line, it.message)).collect()
    }

    fn one(source: &str) -> (u32, String) {
        let mut all = found(source);
        assert_eq!(all.len(), 1, "{source}: {all:?}");
        all.remove(0)
    }

    #[test]
    fn unknown_functions_fields_and_options_are_named_with_their_lines() {
        for (source, line, message) in [
            (
                "\nrondo.agnet {}",
                2,
                "there is no `rondo.agnet`; did you mean `rondo.agent`?",
            ),
            (
                "rondo.files.raed('x')",
                1,
                "there is no `rondo.files.raed`; did you mean `rondo.files.read`?",
            ),
            (
                "rondo.agent {\n  name = 'x',\n  modle = 'y',\n}",
                3,
                "`rondo.agent` has no option `modle`; did you mean `model`?",
            ),
            (
                "rondo.agent { limits = { step = 3 } }",
                1,
                "`limits` has no option `step`; did you mean `steps`?",
            ),
            (
                "local agent = rondo.agent\nagent { sistem = '' }",
                2,
                "`rondo.agent` has no option `sistem`; did you mean `system`?",
            ),
            (
                "local r = rondo\nr.exek('ls')",
                2,
                "there is no `rondo.exek`; did you mean `rondo.exec`?",
            ),
            (
                "rondo.exec('ls', { timeuot = 3 })",
                1,
                "`rondo.exec` has no option `timeuot`; did you mean `timeout`?",
            ),
            ("os.execute('ls')", 1, "there is no `os.execute` in scripts"),
            (
                "prnt('x')",
                1,
                "there is no function `prnt`; did you mean `print`?",
            ),
            (
                "local a = rondo.agent {}\nlocal c = 'x' | a\nprint(c.txet)",
                3,
                "a conversation has no field `txet`; did you mean `text`?",
            ),
            (
                "local a = rondo.agent {}\nlocal c = ('x' | a) | 'y'\nprint(c.stop)",
                3,
                "a conversation has no field `stop`; did you mean `stop_reason`?",
            ),
            (
                "local a = rondo.agent {}\nprint(a.model)",
                2,
                "an agent has no field `model`",
            ),
        ] {
            assert_eq!(one(source), (line, message.to_owned()), "{source}");
        }
    }

    #[test]
    fn what_is_no_lua_is_told_by_lua() {
        let (line, message) = one("x = = 1");
        assert_eq!(
            (line, message.as_str()),
            (0, "s.lua:1: unexpected symbol near '='")
        );
    }

    #[test]
    fn what_is_right_is_not_named() {
        for source in [
            "#!/usr/bin/env -S rondo run\nprint('x')",
            "local function f(g) return g(1) end\nf(print)",
            "for _, run in ipairs({ print }) do run('x') end",
            "function later() end later()",
            "local t = { modle = 1 } print(t.modle)",
            "rondo.agent { tools = { rondo.tool { name = 't', parameters = { modle = 'string' }, run = function(a) local limits = { x = 1 } return limits.x end } } }",
            "-- rondo.agnet\nlocal s = 'rondo.agnet' print(s)",
            "local os = { execute = print } os.execute('x')",
            "rondo.exec({ 'ls' }, { cwd = '.' })",
            "local c = 1 local a = rondo.agent {} c = 'x' | a c = { stop = 1 } print(c.stop)",
            "local M = {} M.agnet = 1 return M",
            "goto done ::done:: print(x)",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }

    #[test]
    fn no_text_makes_the_reader_fail() {
        for source in [
            "rondo",
            "rondo.",
            "rondo.agent",
            "rondo.agent {",
            "rondo.exec(",
            "local",
            "function",
            "|",
            "for",
        ] {
            let tokens = lexer::tokens(source);
            drop(uses::mistakes(&tokens));
        }
    }
}

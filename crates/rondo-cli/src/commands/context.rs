//! `rondo context`: the text that a session's model reads, and how much of its context that takes.

use super::report::{current_dir, write_failed};
use crate::cli::{ContextArgs, ContextCommand};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_runtime::Layer;
use rondo_runtime::context_sizes::ContextSizes;
use rondo_runtime::env::Env;
use rondo_runtime::sanitize::cell;
use rondo_runtime::sessions;
use rondo_runtime::settings::Settings;
use serde_json::json;
use std::fmt::Write as _;

/// Characters of a block that are shown.
const BEGINNING_CHARS_MAX: usize = 60;

/// One part of the context.
struct Part {
    name: String,
    bytes: usize,
    about: String,
}

/// Runs the command.
///
/// # Errors
/// When there is no such session, or its records cannot be read.
pub(super) fn run(args: &ContextArgs, env: Env, output: &Output) -> Result<Exit> {
    let ContextCommand::Show { session, json } = &args.command;
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = sessions::open_to_read(&settings)?;
    let info = sessions::find(&store, session)?;
    let sizes = ContextSizes::of(&store, &info)?.ok_or_else(|| {
        let message = format!("session `{}` has sent no request to a model yet", info.id);
        CliError::new(Exit::Input, message)
    })?;
    let parts = parts(&sizes);
    match json {
        true => output.json(&as_json(&sizes, &parts)),
        false => output.stdout(&table(&sizes, &parts)),
    }
    .map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn parts(sizes: &ContextSizes) -> Vec<Part> {
    let system = sizes.system.iter().enumerate().map(|(index, text)| Part {
        name: format!("system {}", index + 1),
        bytes: text.len(),
        about: beginning(text),
    });
    let tools: Vec<&str> = sizes.tools.iter().map(|it| it.name.as_str()).collect();
    let tools = Part {
        name: format!("tools ({})", tools.len()),
        bytes: sizes.tool_bytes(),
        about: beginning(&tools.join(", ")),
    };
    let history = Part {
        name: format!("history ({})", sizes.messages),
        bytes: sizes.history_bytes(),
        about: format!("{} exchanges", sizes.groups.len()),
    };
    system.chain([tools, history]).collect()
}

fn beginning(text: &str) -> String {
    let line = text.lines().find(|it| !it.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let shown: String = line.chars().take(BEGINNING_CHARS_MAX).collect();
    cell(&shown)
}

fn table(sizes: &ContextSizes, parts: &[Part]) -> String {
    let estimate = sizes.estimate();
    let mut text = format!(
        "{:<14} {:>8} {:>9}  BEGINS WITH\n",
        "PART", "TOKENS", "BYTES"
    );
    for part in parts {
        let tokens = estimate.tokens(part.bytes);
        let line = format!(
            "{:<14} {tokens:>8} {:>9}  {}",
            part.name, part.bytes, part.about
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let bytes = sizes.bytes();
    let _ = writeln!(
        text,
        "{:<14} {:>8} {bytes:>9}",
        "total",
        estimate.tokens(bytes)
    );
    let _ = match sizes.reported {
        Some(usage) => writeln!(
            text,
            "\nThe provider counted {} tokens in the latest request, {} of them from its cache.",
            usage.input, usage.cache_read
        ),
        None => writeln!(
            text,
            "\nThe provider did not report token counts; these are estimates at four bytes per token."
        ),
    };
    text
}

fn as_json(sizes: &ContextSizes, parts: &[Part]) -> String {
    let estimate = sizes.estimate();
    let parts = parts.iter().map(|part| {
        json!({
            "part": part.name,
            "bytes": part.bytes,
            "tokens": estimate.tokens(part.bytes),
            "about": part.about,
        })
    });
    let total = json!({
        "part": "total",
        "bytes": sizes.bytes(),
        "tokens": estimate.tokens(sizes.bytes()),
        "reported": sizes.reported.map(|it| it.input),
    });
    parts.chain([total]).map(|it| format!("{it}\n")).collect()
}

//! `rondo mcp`: adds, lists, removes and tries servers of the Model Context Protocol, and signs in to them.

mod login;

use super::report::{current_dir, write_failed};
use crate::approver::TerminalApprover;
use crate::cli::{McpArgs, McpCommand, McpServerArgs};
use crate::error::{CliError, Result};
use crate::executor;
use crate::exit::Exit;
use crate::output::{Output, SharedOutput, has_person};
use rondo_core::shown;
use rondo_mcp::config::{Connection, Origin, Server, is_name};
use rondo_mcp::{Era, ServerReport, Servers};
use rondo_runtime::env::Env;
use rondo_runtime::paths::Paths;
use rondo_runtime::settings::Settings;
use rondo_runtime::user_file::UserFile;
use rondo_runtime::{Layer, Runtime};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// Characters of a tool's description that are shown.
const DESCRIPTION_CHARS_MAX: usize = 100;

/// Runs the command.
pub(super) fn run(args: &McpArgs, env: Env, output: &Output) -> Result<Exit> {
    match &args.command {
        McpCommand::Add(server) => add(server, &env, output),
        McpCommand::Remove { name } => remove(name, &env, output),
        McpCommand::List { json } => list(*json, env, output),
        McpCommand::Login { name } => login::log_in(name, env, output),
        McpCommand::Logout { name } => login::log_out(name, env, output),
        McpCommand::Test {
            names,
            json,
            accept,
        } => test(names, *json, *accept, env, output),
    }
}

fn add(args: &McpServerArgs, env: &Env, output: &Output) -> Result<Exit> {
    if !is_name(&args.name) {
        let message = format!(
            "`{}` cannot be the name of a server",
            shown::line(&args.name)
        );
        let hint = "use at most 32 letters, digits, `-` and single `_` between them";
        return Err(CliError::new(Exit::Usage, message).hint(hint));
    }
    let mut file = UserFile::read(&Paths::find(env)?)?;
    let is_new = file.add_server(&args.name, &table(args)?)?;
    file.save()?;
    // The written entry must be usable.
    let settings = Settings::load(env.clone(), current_dir()?, Layer::default(), output)?;
    let did = if is_new { "added to" } else { "replaced in" };
    let (name, path) = (&args.name, file.path().display());
    let mut text =
        format!("the server `{name}` is {did} {path}; `rondo mcp test {name}` tries it\n");
    if let Some(aside) = settings.mcp.aside.iter().find(|it| it.name == *name) {
        let _ = writeln!(text, "it cannot be used yet: {}", aside.why);
    }
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Returns the server in the form of the configuration file.
fn table(args: &McpServerArgs) -> Result<toml::Table> {
    let mut table = toml::Table::new();
    let mut words = args.command.iter().cloned();
    if let Some(command) = words.next() {
        table.insert("command".to_owned(), command.into());
        let arguments: Vec<String> = words.collect();
        if !arguments.is_empty() {
            table.insert("args".to_owned(), arguments.into());
        }
    }
    if let Some(url) = &args.url {
        table.insert("url".to_owned(), url.clone().into());
    }
    for (key, sign, pairs) in [("env", '=', &args.env), ("headers", ':', &args.header)] {
        let mut fields = toml::Table::new();
        for pair in pairs {
            let (name, value) = pair.split_once(sign).ok_or_else(|| {
                let message = format!("`{}` has no `{sign}`", shown::line(pair));
                CliError::new(Exit::Usage, message)
            })?;
            fields.insert(name.trim().to_owned(), value.trim().into());
        }
        if !fields.is_empty() {
            table.insert(key.to_owned(), fields.into());
        }
    }
    for (key, seconds) in [
        ("startup_timeout_s", args.startup_timeout),
        ("call_timeout_s", args.call_timeout),
    ] {
        if let Some(seconds) = seconds {
            table.insert(key.to_owned(), seconds.into());
        }
    }
    if args.always_load {
        table.insert("always_load".to_owned(), true.into());
    }
    Ok(table)
}

fn remove(name: &str, env: &Env, output: &Output) -> Result<Exit> {
    let mut file = UserFile::read(&Paths::find(env)?)?;
    if !file.remove_server(name)? {
        let message = format!(
            "there is no server `{}` in {}",
            shown::line(name),
            file.path().display()
        );
        let hint = "`rondo mcp list` shows where each one is configured";
        return Err(CliError::new(Exit::Config, message).hint(hint));
    }
    file.save()?;
    let text = format!(
        "the server `{name}` is removed from {}\n",
        file.path().display()
    );
    output.stdout(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

fn list(is_json: bool, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    if is_json {
        let text = format!("{:#}\n", listed_json(&settings));
        output.json(&text).map_err(write_failed)?;
    } else {
        output.stdout(&listed(&settings)).map_err(write_failed)?;
    }
    Ok(Exit::Answer)
}

/// Returns the file that configures a server.
fn origin(server: &Server, settings: &Settings) -> String {
    match &server.origin {
        Origin::User => settings.paths.user_config().display().to_string(),
        Origin::Project(file) => file.display().to_string(),
    }
}

fn listed(settings: &Settings) -> String {
    let setup = &settings.mcp;
    let names = setup.servers.iter().map(|it| it.name.len());
    let names = names.chain(setup.waiting.iter().map(|it| it.name.len()));
    let width = names.max().unwrap_or_default();
    let mut text = String::new();
    for server in &setup.servers {
        let (name, what, file) = (&server.name, server.shown(), origin(server, settings));
        let _ = writeln!(text, "{name:width$}  {what}  # {file}");
    }
    for waiting in &setup.waiting {
        let name = shown::line(&waiting.name);
        let why = match waiting.is_declined {
            true => "declined; `rondo trust` asks again",
            false => "needs `rondo trust`",
        };
        let (what, file) = (&waiting.described, waiting.file.display());
        let _ = writeln!(text, "{name:width$}  {what}  # {file}, not started: {why}");
    }
    for aside in &setup.aside {
        let _ = writeln!(text, "{:width$}  cannot be used: {}", aside.name, aside.why);
    }
    if text.is_empty() {
        text.push_str("no servers; `rondo mcp add NAME -- COMMAND` adds one\n");
    }
    text
}

fn listed_json(settings: &Settings) -> Value {
    let setup = &settings.mcp;
    let servers = setup.servers.iter().map(|server| {
        let transport = match &server.connection {
            Connection::Stdio { .. } => "stdio",
            Connection::Http { .. } => "http",
        };
        json!({
            "name": server.name,
            "transport": transport,
            "what": server.shown(),
            "file": origin(server, settings),
            "state": "started",
        })
    });
    let waiting = setup.waiting.iter().map(|it| {
        let state = if it.is_declined {
            "declined"
        } else {
            "waiting"
        };
        json!({"name": it.name, "what": it.described, "file": it.file, "state": state})
    });
    let aside = setup
        .aside
        .iter()
        .map(|it| json!({"name": it.name, "state": "unusable", "why": it.why}));
    servers.chain(waiting).chain(aside).collect()
}

fn test(names: &[String], is_json: bool, accept: bool, env: Env, output: &Output) -> Result<Exit> {
    let notices = SharedOutput::new(*output);
    let runtime = Runtime::new(env, Layer::default(), Arc::clone(&notices) as _);
    runtime.ask_about_folders(TerminalApprover::for_folders(runtime.env(), output));
    let mut settings = runtime.settings(current_dir()?)?;
    let known = settings.mcp.names();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let message = format!(
            "there is no server `{}` that may be started here",
            shown::line(unknown)
        );
        return Err(CliError::new(Exit::Config, message).hint("`rondo mcp list` shows all"));
    }
    let is_meant = |server: &Server| names.is_empty() || names.contains(&server.name);
    settings.mcp.servers.retain(is_meant);
    let asynchronous = executor::of_this_thread()?;
    let reports = asynchronous.block_on(async {
        // Changes are shown here, and asked about below.
        let servers = runtime.servers_to_test(&settings)?;
        let mut reports = Vec::new();
        if let Some(servers) = &servers {
            for name in servers.names() {
                reports.extend(servers.report(&name).await);
            }
            for report in &reports {
                review(report, servers, accept, is_json, output);
            }
            servers.close().await;
        }
        Ok::<_, CliError>(reports)
    })?;
    if is_json {
        let text = format!("{:#}\n", reports.iter().map(as_json).collect::<Value>());
        output.json(&text).map_err(write_failed)?;
    } else {
        let text: String = match reports.is_empty() {
            true => "no servers may be started here; `rondo mcp list` shows all\n".to_owned(),
            false => reports.iter().map(as_text).collect(),
        };
        output.stdout(&text).map_err(write_failed)?;
    }
    Ok(match reports.iter().any(|it| it.failure.is_some()) {
        true => Exit::Error,
        false => Exit::Answer,
    })
}

/// Shows the changes of a server's tools, and asks the user to accept them.
fn review(report: &ServerReport, servers: &Servers, accept: bool, is_json: bool, output: &Output) {
    for (tool, diff) in &report.changed {
        let head = format!(
            "the tool `{}` of the server `{}` changed since it was accepted:",
            shown::line(tool),
            report.name
        );
        let may = match (accept, has_person() && !is_json) {
            (true, _) => true,
            (false, true) => output.is_confirmed(&format!("{head}\n{diff}\nAccept it?")),
            (false, false) => false,
        };
        if may {
            servers.accept(&report.name, tool);
            output.note(&format!("{head} accepted"));
        } else {
            output.note(&format!("{head}\n{diff}"));
            output.hint("`--accept` accepts it");
        }
    }
}

fn as_text(report: &ServerReport) -> String {
    let mut text = String::new();
    let name = &report.name;
    match (&report.failure, &report.protocol) {
        (Some(why), _) => {
            let _ = writeln!(text, "{name}: failed: {why}");
        }
        (None, protocol) => {
            let (tools, prompts) = (report.tools.len(), report.prompts.len());
            let resources = report.resources.len();
            let protocol = protocol.as_deref().unwrap_or("an unknown revision");
            let _ = writeln!(
                text,
                "{name}: works ({protocol}), {tools} tools, {prompts} prompts, {resources} resources"
            );
        }
    }
    for (tool, description) in &report.tools {
        let line = description.lines().next().unwrap_or_default();
        let line: String = line.chars().take(DESCRIPTION_CHARS_MAX).collect();
        let _ = writeln!(text, "  {tool}  {}", shown::line(&line));
    }
    for prompt in &report.prompts {
        let arguments = prompt
            .arguments
            .iter()
            .map(|(name, is_needed)| match is_needed {
                true => format!(" {name}"),
                false => format!(" [{name}]"),
            });
        let arguments: String = arguments.collect();
        let _ = writeln!(
            text,
            "  /{name}:{}{arguments}  {}",
            prompt.name, prompt.description
        );
    }
    for resource in report.resources.iter().take(10) {
        let _ = writeln!(text, "  @{name}:{}  {}", resource.uri, resource.name);
    }
    let more = report.resources.len().saturating_sub(10);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more resources");
    }
    for note in &report.notes {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn as_json(report: &ServerReport) -> Value {
    let tools = report
        .tools
        .iter()
        .map(|(name, description)| json!({"name": name, "description": description}));
    let prompts = report.prompts.iter().map(|it| {
        let arguments = it.arguments.iter().map(|(name, required)| json!({"name": name, "required": required}));
        json!({"name": it.name, "description": it.description, "arguments": arguments.collect::<Value>()})
    });
    let resources = report
        .resources
        .iter()
        .map(|it| json!({"uri": it.uri, "name": it.name}));
    let changed = report
        .changed
        .iter()
        .map(|(tool, diff)| json!({"tool": tool, "diff": diff}));
    let lifecycle = report.era.map(|it| match it {
        Era::Initialize => "initialize",
        Era::Discover => "discover",
    });
    json!({
        "name": report.name,
        "ok": report.failure.is_none(),
        "error": report.failure,
        "protocol": report.protocol,
        "lifecycle": lifecycle,
        "tools": tools.collect::<Value>(),
        "prompts": prompts.collect::<Value>(),
        "resources": resources.collect::<Value>(),
        "changed": changed.collect::<Value>(),
        "notes": report.notes,
    })
}

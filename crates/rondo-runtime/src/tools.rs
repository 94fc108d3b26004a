//! Builds the tools of a turn, and the gate that decides whether a call may run.

use crate::calls;
use crate::confined;
use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::hidden::{self, HiddenFromCommands};
use crate::memory;
use crate::policy;
use crate::python::{self, LivePython};
use crate::sandboxed::{self, SandboxOffer};
use crate::scratch;
use crate::secrets;
use crate::settings::Settings;
use crate::shared_values::{Directories, SharedValues};
use crate::skills::{self, SKILL_TOOL, SkillPlace, SkillTool, Skills};
use crate::subagent::{self, SubagentTool};
use crate::todo::{self, TodoList, TodoTool};
use crate::unchecked::CommandFolders;
use crate::web;
use rondo_core::redact::Secrets;
use rondo_core::{Gate, Tool, Toolbox};
use rondo_exec::{ExecOptions, ExecTool, SupervisorCommand};
use rondo_memory::TOOL_NAMES;
use rondo_policy::rules::RuleDirs;
use rondo_policy::{
    AllowedDirs, CommandEnvironment, GateOptions, LookingCalls, StandardGate, ToolPatterns, Workdir,
};
use rondo_sandbox::{Root, SandboxSpec};
use rondo_tools::{ChangeLog, Workspace};
use rondo_types::{Profile, SessionId};
use std::borrow::Cow;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The pattern that forbids every tool.
const ALL: &str = "*";
/// Tools that are offered only if there is something for them: skills, the web, a search engine.
const OPTIONAL: [&str; 3] = [SKILL_TOOL, "web_fetch", "web_search"];
/// The bound on directories of skills whose files can be read.
const SKILL_DIRECTORIES_MAX: usize = 16;
/// The least memory that a command may be given, in MiB.
const COMMAND_MEMORY_MIB_MIN: u64 = 64;
/// The mode of directories that hold the output of commands.
const PRIVATE: u32 = 0o700;

/// The tools of a turn.
pub struct Toolset {
    /// The tools.
    pub tools: Toolbox,
    /// Tools that the profile names and this version does not have.
    pub missing: Vec<String>,
    /// The directories that file tools may touch.
    pub workspace: Arc<Workspace>,
    /// The changes that they make to files.
    pub log: ChangeLog,
    /// The sandbox that questions about commands offer; `None` if they do not.
    pub(crate) offer: Option<SandboxOffer>,
    /// Gaps in the protection by the sandbox of commands; `None` if there are none.
    pub(crate) shortfall: Option<String>,
    /// The sandbox of its commands; `None` if they are in none.
    sandbox: Option<SandboxSpec>,
    /// The directories in which read-only commands run without approval, the working directory first.
    directories: Vec<PathBuf>,
    /// The calls that run because they only look.
    looking: LookingCalls,
    /// The names of the tools that put such calls into the read-only sandbox.
    looking_tools: Vec<&'static str>,
    /// Files that are hidden from those calls, and from others in the sandbox.
    hidden: HiddenFromCommands,
    /// The names of tools that run in the sandbox of commands.
    confined: Vec<String>,
    /// The directory and environment of the user's shell, if the turn has one.
    workdir: Option<Workdir>,
    skills: Vec<SkillPlace>,
}

/// Returns the names of the profile's tools that are not forbidden.
pub fn wanted(profile: &Profile, settings: &Settings) -> Vec<String> {
    let forbidden: Vec<&str> = settings
        .values
        .disallowed_tools
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    profile
        .tools
        .iter()
        .filter(|name| !forbidden.contains(&name.as_str()) && !forbidden.contains(&ALL))
        .filter(|name| *name != subagent::NAME || subagent::max_depth(settings) > 0)
        .filter(|name| memory::is_on(settings) || !TOOL_NAMES.contains(&name.as_str()))
        .cloned()
        .collect()
}

/// Returns whether every tool is forbidden.
pub(crate) fn forbids_all(settings: &Settings) -> bool {
    let forbidden = settings.values.disallowed_tools.iter().flatten();
    forbidden.into_iter().any(|it| it.trim() == ALL)
}

/// Returns the names in the lists of allowed and forbidden tools that no tool has. Without a warning, a
/// misspelt name would silently have no effect.
pub fn unknown(profile: &Profile, settings: &Settings) -> Vec<String> {
    let values = &settings.values;
    let lists = [&values.allowed_tools, &values.disallowed_tools];
    let named = lists.into_iter().flatten().flatten();
    named
        .map(|pattern| pattern.split('(').next().unwrap_or_default().trim())
        .filter(|name| {
            let is_known = [todo::NAME, subagent::NAME].contains(name)
                || ExecTool::NAMES.contains(name)
                || rondo_tools::TOOL_NAMES.contains(name)
                || OPTIONAL.contains(name)
                || web::has(name)
                || rondo_memory::TOOL_NAMES.contains(name)
                || python::has(name)
                || name.starts_with(rondo_mcp::PREFIX);
            *name != ALL && !is_known && !profile.tools.iter().any(|it| it == name)
        })
        .map(str::to_owned)
        .collect()
}

/// The options of [`toolset`].
#[derive(Clone, Copy)]
pub struct ToolsetOptions<'a> {
    /// The names of the tools to build.
    pub names: &'a [String],
    /// Environment variables that are withheld from commands.
    pub keys: &'a [String],
    /// The turn's profile.
    pub profile: &'a Profile,
    /// The effective settings.
    pub settings: &'a Settings,
    /// The session whose calls they run.
    pub session: &'a SessionId,
    /// Tools that the host brings, such as the functions of a live Python session.
    pub live: &'a [Arc<dyn Tool>],
    /// Values that are redacted from their output.
    pub secrets: &'a Secrets,
    /// The directory and environment of the user's shell, if the host has one.
    pub workdir: Option<&'a Workdir>,
    /// The Python session to use if `live` brings none.
    pub python: &'a LivePython,
    /// Values that turns share.
    pub values: &'a SharedValues,
    /// The runtime that the turn belongs to; `None` if its questions do not offer the sandbox.
    pub(crate) offering: Option<Offering<'a>>,
}

/// Which sandbox the questions of a turn offer.
#[derive(Clone, Copy)]
pub(crate) enum Offering<'a> {
    /// One that the settings allow.
    BySettings,
    /// That of the turn above, if it has one; its gate notes the calls that only look.
    OfParent(Option<&'a SandboxOffer>, &'a LookingCalls),
}

/// Builds the tools of a turn.
///
/// # Errors
/// When a directory cannot be opened, or Rondo's own cannot be created.
pub fn toolset(options: ToolsetOptions<'_>) -> Result<Toolset> {
    let ToolsetOptions { settings, .. } = options;
    // One directory for each session, so that a session cannot read the output of another's commands.
    let state_dir = calls::dir(&settings.paths, options.session);
    let is_kept = settings.values.ephemeral != Some(true);
    if is_kept {
        private_dir(&state_dir)?;
    }
    let skills = skills::places(settings);
    let has_skills = options.names.iter().any(|name| name == SKILL_TOOL);
    let readable = if has_skills { &*skills } else { &[] };
    let known_directories = &options.values.directories;
    let spill_dir = is_kept.then_some(&*state_dir);
    let workspace = workspace(settings, spill_dir, readable, known_directories)?;
    let (workspace, hidden) = hidden::applied(workspace, options.profile, settings)?;
    let workspace = Arc::new(workspace);
    let directories: Vec<PathBuf> = workspace.dirs().map(|(path, _)| path.to_owned()).collect();
    let mut exec = exec_options(&options, &workspace, state_dir, is_kept);
    let written = confined::with_repositories(settings, &own_directories(&workspace, settings));
    let unseen = hidden_from_commands(&hidden, settings, &written);
    let looking = confine_commands(&mut exec, &options, &workspace, (readable, &unseen))?;
    let offer = offer(&exec, &options, written, (readable, unseen));
    exec.chosen_sandbox = offer.as_ref().map(SandboxOffer::chosen);
    // Its processes live for a session, and the proxy for a turn.
    let sandbox = exec
        .sandbox
        .clone()
        .map(|it| SandboxSpec { proxy: None, ..it });
    let shortfall = confined::shortfall(settings, sandbox.as_ref());
    let of_commands = sandbox.clone();
    let log = ChangeLog::default();
    let mut known = rondo_tools::file_tools_with_log(&workspace, &log, web::documents());
    known.extend(commands(exec, options.profile, settings));
    known.push(Arc::new(TodoTool(TodoList::default())));
    known.push(Arc::new(SubagentTool { parent: None }));
    // Tools of the host, such as the functions of a person's live session, come first.
    let is_live = |name: &str| options.live.iter().any(|tool| tool.spec().name == name);
    let own_python = own_python(options.names, &is_live);
    let has_own_python = !own_python.is_empty();
    let confined = sandbox.as_ref().map_or_else(Vec::new, |_| own_python);
    if has_own_python {
        known.extend(python::tools(python::OwnSession {
            profile: options.profile,
            keys: options.keys,
            settings,
            directory: workspace.working_dir(),
            sandbox,
            live: options.python,
        }));
    }
    if Skills::in_places(readable).for_model().next().is_some() {
        known.push(Arc::new(SkillTool::new(readable.to_vec())));
    }
    if options.names.iter().any(|name| web::has(name)) {
        known.extend(web::tools(settings)?);
    }
    let (tools, missing) = chosen(options.names, options.live, &known);
    let tools = Toolbox::sharing(&options.values.specs, tools)
        .map_err(|err| SetupError::caused(SetupErrorKind::Config, err))?;
    Ok(Toolset {
        tools,
        missing,
        workspace,
        log,
        offer,
        shortfall,
        sandbox: of_commands,
        directories,
        looking,
        looking_tools: own_commands_among(&is_live),
        hidden,
        confined,
        workdir: options.workdir.cloned(),
        skills,
    })
}

impl Toolset {
    /// Returns the sandbox of its commands, and what the process knows of their folders.
    pub(crate) fn command_folders(&self, values: &SharedValues) -> CommandFolders {
        CommandFolders {
            checked: Arc::clone(&values.checked),
            sandbox: self.sandbox.clone(),
            chosen: self.offer.as_ref().map(SandboxOffer::chosen),
            half_hidden: (!self.hidden.is_all_found).then(|| Arc::from(&*self.directories)),
        }
    }

    /// Returns the calls that run because they only look.
    pub(crate) fn looking(&self) -> LookingCalls {
        self.looking.clone()
    }
}

/// Returns the names of the tools that run commands, but for those that the host brings itself.
fn own_commands_among(is_live: &impl Fn(&str) -> bool) -> Vec<&'static str> {
    let names = ExecTool::NAMES.into_iter();
    names.filter(|name| !is_live(name)).collect()
}

/// Returns the tools that run commands.
fn commands(exec: ExecOptions, profile: &Profile, settings: &Settings) -> [Arc<dyn Tool>; 2] {
    let [short, long] = match settings.values.exec_shell {
        Some(false) => ExecTool::without_shell(&exec),
        Some(true) | None if profile.exec_command_only => [
            ExecTool::exec_command_only(exec.clone()),
            ExecTool::execute_command(exec),
        ],
        Some(true) | None => [
            ExecTool::exec(exec.clone()),
            ExecTool::execute_command(exec),
        ],
    };
    [Arc::new(short), Arc::new(long)]
}

/// Returns the runner of a person's own commands in a session: in their environment, outside of the sandbox, and judged
/// by no gate. Secrets are redacted from their output.
///
/// # Errors
/// When the directory of their status files cannot be made.
pub(crate) fn own_commands(
    settings: &Settings,
    session: &SessionId,
    secrets: &Secrets,
    output_bytes_max: usize,
) -> Result<Arc<dyn Tool>> {
    let state_dir = calls::dir(&settings.paths, session);
    let is_kept = settings.values.ephemeral != Some(true);
    if is_kept {
        private_dir(&state_dir)?;
    }
    let directory = settings.directory.clone();
    let mut options = ExecOptions::new(SupervisorCommand::CurrentExe, directory, state_dir);
    Arc::make_mut(&mut options.environment).withholds_secrets = false;
    options.is_kept = is_kept;
    options.memory_bytes_max = memory_bytes_max(settings);
    options.secrets = secrets.clone();
    options.output_bytes_max = output_bytes_max;
    if is_kept {
        options.outlive = ExecOptions::OUTLIVE;
    }
    Ok(Arc::new(ExecTool::exec(options)))
}

/// Returns the names of the functions of a Python session that only the agent uses.
fn own_python(names: &[String], is_live: &dyn Fn(&str) -> bool) -> Vec<String> {
    let names = names.iter();
    names
        .filter(|it| python::has(it) && !is_live(it))
        .cloned()
        .collect()
}

/// Returns the tools of these names, the host's before others, and the names that none has.
fn chosen(
    names: &[String],
    live: &[Arc<dyn Tool>],
    known: &[Arc<dyn Tool>],
) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
    let all = live.iter().chain(known);
    let all: Vec<(String, &Arc<dyn Tool>)> = all.map(|it| (it.spec().name, it)).collect();
    let mut tools = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        match all.iter().find(|(of, _)| of == name) {
            Some((_, tool)) => tools.push(Arc::clone(tool)),
            None if OPTIONAL.contains(&name.as_str()) => {}
            None => missing.push(name.clone()),
        }
    }
    (tools, missing)
}

/// Returns the directories in which calls of a session may write files.
///
/// # Errors
/// When one of them cannot be opened.
pub(crate) fn writable(settings: &Settings) -> Result<Workspace> {
    workspace(settings, None, &[], &Directories::default())
}

fn workspace(
    settings: &Settings,
    spill_dir: Option<&Path>,
    skills: &[SkillPlace],
    directories: &Directories,
) -> Result<Workspace> {
    let failed = |err| SetupError::caused(SetupErrorKind::Input, err);
    directories.check(&settings.directory)?;
    let opened = Workspace::open(&settings.directory);
    let mut workspace =
        opened.map_err(|err| failed(err).hint("`-C DIR` names another directory"))?;
    for directory in settings.values.add_dirs.iter().flatten() {
        let directory = settings.directory.join(directory);
        directories.check(&directory)?;
        workspace = workspace.with_dir(directory).map_err(failed)?;
    }
    if let Some(spill_dir) = spill_dir {
        workspace = workspace.with_read_only_dir(spill_dir).map_err(failed)?;
    }
    for place in skills.iter().take(SKILL_DIRECTORIES_MAX) {
        workspace = workspace.with_read_only_dir(place.path()).map_err(failed)?;
    }
    Ok(match confined::mode(settings)? {
        Some(_) => workspace.without_links(),
        None => workspace,
    })
}

fn exec_options(
    toolset: &ToolsetOptions<'_>,
    workspace: &Workspace,
    state_dir: PathBuf,
    is_kept: bool,
) -> ExecOptions {
    let ToolsetOptions {
        keys,
        settings,
        workdir,
        ..
    } = toolset;
    let directory = workspace.working_dir().to_owned();
    let mut options = ExecOptions::new(SupervisorCommand::CurrentExe, directory, state_dir);
    options.workdir = workdir.cloned();
    let environment = command_environment(keys, settings, *workdir);
    options.environment = toolset.values.environments.share(environment);
    options.is_kept = is_kept;
    options.memory_bytes_max = memory_bytes_max(settings);
    options.secrets = toolset.secrets.clone();
    // After a crash, the process that resumes the session finds the command again.
    options.outlive = ExecOptions::OUTLIVE;
    options
}

/// Returns the bound on the memory of a command that the user set.
fn memory_bytes_max(settings: &Settings) -> Option<u64> {
    let mib = settings.values.command_memory_mib?;
    Some(mib.max(COMMAND_MEMORY_MIB_MIN).saturating_mul(1 << 20))
}

/// Sets the sandbox of commands, and returns the notes of those that run without asking because they only look.
fn confine_commands(
    exec: &mut ExecOptions,
    options: &ToolsetOptions<'_>,
    workspace: &Workspace,
    (skills, hidden): (&[SkillPlace], &[PathBuf]),
) -> Result<LookingCalls> {
    let settings = options.settings;
    let scratch = || {
        let is_kept = exec.is_kept;
        let made = is_kept.then(|| scratch::dir(&settings.paths, options.session));
        made.transpose()
    };
    exec.sandbox = confined::spec(settings, &own_directories(workspace, settings), scratch)?;
    #[cfg(all(feature = "web", target_os = "linux"))]
    if let Some(sandbox) = &mut exec.sandbox
        && let Some(proxy) = confined::proxy(&policy::under(options.profile, settings)?)?
    {
        sandbox.proxy = Some(proxy.socket().to_owned());
        // It serves for as long as the tools are there.
        exec.reached = Some(rondo_exec::NetworkCounter::new(move || proxy.reached()));
    }
    if let Some(sandbox) = &mut exec.sandbox {
        // Those of the user are in the home directory, which is hidden otherwise.
        let skills = skills.iter().map(SkillPlace::path);
        Arc::make_mut(&mut sandbox.readable).extend(skills);
    }
    let looking = match options.offering {
        Some(Offering::OfParent(_, looking)) => looking.clone(),
        Some(Offering::BySettings) | None => LookingCalls::default(),
    };
    let directories: Vec<PathBuf> = workspace.dirs().map(|(path, _)| path.to_owned()).collect();
    exec.looking = Some((looking.clone(), confined::looking(settings, &directories)));
    let specs = exec.sandbox.iter_mut();
    for spec in specs.chain(exec.looking.as_mut().map(|(_, spec)| spec)) {
        spec.readable = options.values.readable.share(Arc::clone(&spec.readable));
        spec.hidden = hidden.to_vec();
    }
    Ok(looking)
}

/// Returns the sandbox that questions about commands offer. It is built once a question is about to offer it.
fn offer(
    exec: &ExecOptions,
    options: &ToolsetOptions<'_>,
    written: Vec<PathBuf>,
    (skills, hidden): (&[SkillPlace], Vec<PathBuf>),
) -> Option<SandboxOffer> {
    let folder = match options.offering? {
        Offering::OfParent(offer, _) => return offer.cloned(),
        Offering::BySettings => sandboxed::may_be_offered(options.settings)?,
    };
    let (settings, session) = (options.settings.clone(), options.session.clone());
    // They are looked up now: a command may put another directory in the place of one.
    let roots: Vec<Root> = written.into_iter().map(Root::new).collect();
    let skills: Vec<PathBuf> = skills.iter().map(|it| it.path().to_owned()).collect();
    let (own, is_kept) = (exec.sandbox.clone(), exec.is_kept);
    let paths = settings.paths.clone();
    Some(SandboxOffer::new(folder, &paths, move || {
        if let Some(own) = &own {
            return Ok(own.clone());
        }
        let scratch = || {
            let made = is_kept.then(|| scratch::dir(&settings.paths, &session));
            made.transpose()
        };
        let mut spec = confined::offered(&settings, &roots, scratch)?;
        Arc::make_mut(&mut spec.readable).extend(skills.iter().cloned());
        spec.hidden.clone_from(&hidden);
        Ok(spec)
    }))
}

/// Returns the files that commands in the sandbox do not see.
fn hidden_from_commands(
    hidden: &HiddenFromCommands,
    settings: &Settings,
    written: &[PathBuf],
) -> Vec<PathBuf> {
    let places = hidden.places.iter().cloned();
    let places = places.chain(confined::own_records(settings, written));
    let places = places.chain(confined::secrets_of_toolchains(settings));
    places.chain(confined::secrets_of_system()).collect()
}

/// The directories that the user named, without those that Rondo adds.
fn own_directories(workspace: &Workspace, settings: &Settings) -> Vec<PathBuf> {
    let added = settings.values.add_dirs.iter().flatten();
    let added = added.map(|it| settings.directory.join(it));
    std::iter::once(workspace.working_dir().to_owned())
        .chain(added)
        .collect()
}

/// Withholds from commands every variable from which a provider takes a key or a header, and every other
/// variable that holds the same key.
fn command_environment(
    keys: &[String],
    settings: &Settings,
    workdir: Option<&Workdir>,
) -> Arc<CommandEnvironment> {
    let mut environment = CommandEnvironment::default();
    let shell = workdir.and_then(Workdir::environment);
    let held = secrets::withheld(settings, &settings.env, shell.as_ref());
    let withheld = keys.iter().cloned().chain(held);
    environment.withheld.extend(withheld.map(Cow::Owned));
    environment.passed = settings.values.command_env.clone().unwrap_or_default();
    Arc::new(environment)
}

/// Creates a directory that only the user can read, unless it exists.
///
/// # Errors
/// When it cannot be created.
pub fn private_dir(path: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE)
        .create(path)
        .map_err(|err| {
            let context = format!("failed to make `{}`", path.display());
            SetupError::because(SetupErrorKind::Other, context, err)
                .hint("set `XDG_STATE_HOME` or `RONDO_HOME` to a directory that can be written")
        })
}

/// Returns the options of the gate from the settings and the profile. By default the gate lets read-only
/// calls run and asks about all others.
///
/// # Errors
/// When an allowed directory does not exist.
pub fn gate_options(
    toolset: &Toolset,
    profile: &Profile,
    settings: &Settings,
) -> Result<GateOptions> {
    let (current, more) = toolset
        .directories
        .split_first()
        .ok_or_else(|| SetupError::new(SetupErrorKind::Other, "there is no working directory"))?;
    let dirs = AllowedDirs::new(current, more)
        .map_err(|err| SetupError::caused(SetupErrorKind::Input, err))?;
    let workdir = toolset.workdir.as_ref();
    let mut options = gate_options_in(dirs, workdir, profile, settings, &toolset.skills)?;
    if let Some(confined) = &mut options.confined {
        confined.tools.clone_from(&toolset.confined);
    }
    options.looking = toolset.looking.clone();
    let read_only = confined::read_only(settings, &toolset.looking_tools);
    options.read_only = Some(read_only.hiding_denied_files(toolset.hidden.is_complete));
    let ignored = &toolset.hidden.ignored;
    if !ignored.is_empty() {
        let home = settings.env.get("HOME").map(Path::new);
        let dirs = RuleDirs {
            working: current,
            home: home.filter(|it| it.is_absolute()),
        };
        hidden::deny(Arc::make_mut(&mut options.rules), ignored, dirs)
            .map_err(|err| SetupError::caused(SetupErrorKind::Config, err))?;
    }
    Ok(options)
}

/// Returns the same options, with the same rules and patterns of tools, for commands that are confined as these settings say.
pub(crate) fn confined_by(
    mut options: GateOptions,
    toolset: &Toolset,
    settings: &Settings,
) -> GateOptions {
    options.confined = confined::of_gate(settings, &options.rules);
    if let Some(confined) = &mut options.confined {
        confined.tools.clone_from(&toolset.confined);
    }
    options
}

/// Returns the options of a gate for commands that may read these directories.
///
/// # Errors
/// When the profile names a set of rules that is not defined.
pub(crate) fn gate_options_in(
    dirs: AllowedDirs,
    workdir: Option<&Workdir>,
    profile: &Profile,
    settings: &Settings,
    skills: &[SkillPlace],
) -> Result<GateOptions> {
    let mut options = GateOptions::new(dirs);
    let mut rules = policy::under(profile, settings)?;
    options.workdir = workdir.cloned();
    options.environment = command_environment(&[], settings, workdir);
    options.confined = confined::of_gate(settings, &rules);
    options.looks_only = settings.values.plan == Some(true);
    options.without_shell = settings.values.exec_shell == Some(false);
    options.yolo = settings.values.yolo == Some(true);
    let allowed = settings.values.allowed_tools.iter().flatten();
    options.allowed_tools = tool_patterns(allowed.chain(&profile.allowed_tools))?;
    let mut disallowed: Vec<&str> = Vec::new();
    let by_settings = settings.values.disallowed_tools.iter().flatten();
    disallowed.extend(by_settings.map(String::as_str));
    let home = settings.env.get("HOME").map(Path::new);
    let home = home.filter(|it| it.is_absolute());
    if skills::forbid(&mut rules, skills, home).is_err() {
        disallowed.extend(ExecTool::NAMES);
    }
    options.disallowed_tools = tool_patterns(disallowed)?;
    options.rules = Arc::new(rules);
    Ok(options)
}

/// Builds the gate.
#[must_use]
pub fn standard_gate(options: GateOptions) -> Arc<dyn Gate> {
    Arc::new(StandardGate::new(options))
}

/// Reads patterns of tools.
///
/// # Errors
/// When one cannot be read.
pub fn tool_patterns<T: AsRef<str>>(patterns: impl IntoIterator<Item = T>) -> Result<ToolPatterns> {
    ToolPatterns::parse(patterns).map_err(|err| {
        SetupError::caused(SetupErrorKind::Usage, err)
            .hint("write a tool's name, or `exec(git status *)`")
    })
}

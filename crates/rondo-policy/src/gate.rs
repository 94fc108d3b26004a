//! The gate: lets read-only calls run, and asks about the others or denies them.

use crate::analysis::{
    AllowedDirs, Analysis, Judgement, analyse, programs_in_read_only_sandbox, refusal_without_shell,
};
use crate::answers::Answers;
use crate::environment::CommandEnvironment;
use crate::grants::{Grants, changes_only_inside};
use crate::judged::{Basis, Judged};
use crate::looking::LookingCalls;
use crate::lookup::{Lookup, Settled};
use crate::pattern::{Pattern, ToolPatterns};
use crate::question::{question, shortened};
use crate::read_only_sandbox::ReadOnlySandbox;
use crate::rules::{Decision, PATH_ARGUMENT, Rules};
use crate::terms;
use crate::workdir::{Variables, Workdir};
use async_trait::async_trait;
use rondo_core::ports::{Gate, GateRequest, Terms, Verdict};
use rondo_core::shown;
use rondo_types::{AskReason, Effects, Grant, GrantScope, ToolKind};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Addition to the question about a call after text from outside.
const MAY_LEAVE: &str = "the conversation contains text from outside, and this may send data out or write outside the workspace";
/// Message for the model if a plan is requested.
const ONLY_LOOKING: &str =
    "plan mode allows only read-only calls. Describe the change in the plan instead";
/// The argument by which a call asks to run outside of the sandbox: `true`. It is always asked about.
pub const OUTSIDE_SANDBOX: &str = "outside_sandbox";
/// Why it is.
const ASKS_OUTSIDE: &str = "it asks to run outside the sandbox";
/// Said of a command that begins as one that the user allowed, outside of the sandbox.
const ONLY_IN_SANDBOX: &str =
    "commands with this beginning are allowed only in the sandbox (`--sandbox workspace-write`)";

/// Decides by what a call would do: read-only calls are allowed, all others are asked about.
///
/// Commands ([`ToolKind::command_line`](rondo_types::ToolKind::command_line)) are parsed, not matched as text. A denial takes precedence over everything that allows the call.
/// The gate decides before a call runs; it is not a sandbox around it.
///
/// Cheap to clone; clones share their state.
#[derive(Debug, Clone)]
pub struct StandardGate(Arc<Judge>);

#[derive(Debug)]
struct Judge {
    dirs: AllowedDirs,
    workdir: Option<Workdir>,
    environment: Arc<CommandEnvironment>,
    yolo: bool,
    looks_only: bool,
    confined: Option<Confined>,
    looking: LookingCalls,
    read_only: Option<ReadOnlySandbox>,
    without_shell: bool,
    answers: Answers,
    allowed: ToolPatterns,
    disallowed_tools: ToolPatterns,
    rules: Arc<Rules>,
    grants: Grants,
    /// Permanent grants, from the rules.
    granted: Grants,
    settled: Settled,
}

/// The options of the gate.
#[derive(Debug, Clone)]
pub struct GateOptions {
    /// The directory in which commands run, and those that they may read.
    pub dirs: AllowedDirs,
    /// The directory of the user's shell, if there is one. Commands run there, but may not read more because of
    /// it.
    pub workdir: Option<Workdir>,
    /// The variables that the shell tool gives its commands.
    pub environment: Arc<CommandEnvironment>,
    /// Allows every call that `disallowed_tools` and `rules` do not deny.
    pub yolo: bool,
    /// Denies every call that does more than look, whatever else allows it.
    pub looks_only: bool,
    /// Set where commands run in a sandbox that holds whatever they do.
    pub confined: Option<Confined>,
    /// Record of calls that are allowed because they are read-only, or because the read-only sandbox contains them.
    pub looking: LookingCalls,
    /// The sandbox in which commands of the system run without asking; `None` if they need approval.
    pub read_only: Option<ReadOnlySandbox>,
    /// Denies commands that a shell would have to run, or that hand text to a shell or to another interpreter, whatever
    /// else allows them. For tools that execute a program and its arguments themselves.
    pub without_shell: bool,
    /// Calls that are allowed since they only say something to the readers of the answer, unless a rule speaks of them.
    pub answers: Answers,
    /// Calls that are allowed without asking.
    pub allowed_tools: ToolPatterns,
    /// Calls that are denied.
    pub disallowed_tools: ToolPatterns,
    /// The rules that are in force. Those that deny, and the denials that are built in, hold with `yolo` too.
    pub rules: Arc<Rules>,
    /// Grants for the rest of the session.
    pub grants: Grants,
}

/// A sandbox around commands. Other tools keep to what it allows: they run outside of it, unless they are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// Set if the directories may be written.
    pub may_write: bool,
    /// Set if commands in it reach hosts by name, so that they may send data out.
    pub reaches_hosts: bool,
    /// Set if calls that it contains need no question, except those of rules.
    pub is_enough: bool,
    /// The names of files and directories whose changes are asked about, wherever they are and whatever allows them.
    pub protected: &'static [&'static str],
    /// Files and directories without links of which the same holds.
    pub kept: Vec<PathBuf>,
    /// The names of tools that run inside of it, besides commands. They are asked about as where there is none.
    pub tools: Vec<String>,
}

/// Location of a call's effects, relative to the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// There is no sandbox, it only looks, it runs inside, or the sandbox is no reason to let it run.
    Any,
    /// It changes what may be changed, and no question is asked about that.
    Inside,
    /// It changes what configures the agent, what others run, or what is not in the directories.
    Protected,
    /// It is not a change of a file.
    Outside,
    /// It changes a file where nothing may be.
    Refused,
}

impl Reach {
    /// Returns why a person is asked, and in spite of a sandbox what the question says of that.
    fn reason(self) -> (AskReason, Option<String>) {
        let (reason, words) = match self {
            Self::Protected => (AskReason::ProtectedFile, "the sandbox protects this file"),
            Self::Outside => (AskReason::NotAllowed, "it runs outside the sandbox"),
            Self::Any | Self::Inside | Self::Refused => return (AskReason::NotAllowed, None),
        };
        (reason, Some(words.to_owned()))
    }
}

impl GateOptions {
    /// Returns the options that ask about every call that is not read-only.
    #[must_use]
    pub fn new(dirs: AllowedDirs) -> Self {
        Self {
            dirs,
            workdir: None,
            environment: Arc::default(),
            yolo: false,
            looks_only: false,
            confined: None,
            looking: LookingCalls::default(),
            read_only: None,
            without_shell: false,
            answers: Answers::default(),
            allowed_tools: ToolPatterns::default(),
            disallowed_tools: ToolPatterns::default(),
            rules: Arc::default(),
            grants: Grants::default(),
        }
    }
}

impl StandardGate {
    /// Builds the gate.
    #[must_use]
    pub fn new(options: GateOptions) -> Self {
        Self(Arc::new(Judge {
            allowed: options.allowed_tools,
            disallowed_tools: options.disallowed_tools,
            dirs: options.dirs,
            workdir: options.workdir,
            environment: options.environment,
            yolo: options.yolo,
            looks_only: options.looks_only,
            confined: options.confined,
            looking: options.looking,
            read_only: options.read_only,
            without_shell: options.without_shell,
            answers: options.answers,
            granted: Grants::new(options.rules.grants().iter().cloned()),
            rules: options.rules,
            grants: options.grants,
            settled: Settled::default(),
        }))
    }

    /// Judges a command and each simple command in it, without running anything.
    ///
    /// Reads directories and links to resolve paths; this may take as long as the disk does.
    #[must_use]
    pub fn explain(&self, tool: &str, command: &str) -> Vec<Judged> {
        self.0.explain(tool, command)
    }
}

impl Judge {
    /// Returns whether the verdict needs no look at the disk.
    fn is_quick(&self, request: &GateRequest) -> bool {
        let looks = self.confined.is_some() && request.spec.effects != Effects::ReadOnly;
        let runs_command = request.spec.kind.command_line(&request.arguments).is_some();
        !runs_command && !looks && !request.has_outside_text && !self.rules.have_paths()
    }

    fn judge(&self, request: &GateRequest) -> Verdict {
        let tool = request.spec.name.as_str();
        if let Some(command) = request.spec.kind.command_line(&request.arguments) {
            let (verdict, only_looks) = self.judge_command(request, &command);
            let (call, arguments) = (&request.call_id, &request.arguments);
            let session = &request.session;
            self.looking.note(session, call, arguments, only_looks);
            return verdict;
        }
        if self
            .disallowed_tools
            .iter()
            .any(|pattern| pattern.names(tool))
        {
            return deny(format!("the tool `{tool}` is not allowed"));
        }
        if self.looks_only && request.spec.effects != Effects::ReadOnly {
            return deny(ONLY_LOOKING.to_owned());
        }
        let reach = self.reach(request);
        if reach == Reach::Refused {
            return deny("the sandbox may only read".to_owned());
        }
        let named = |pattern: &Pattern| pattern.names(tool) && pattern.words.is_none();
        let is_named = self.allowed.iter().any(named);
        let is_answer = self.answers.hold(tool, &request.arguments);
        let is_allowed = match reach {
            Reach::Protected => false,
            Reach::Outside => is_named || is_answer,
            Reach::Inside => true,
            _ => self.yolo || is_named || is_answer || request.spec.effects == Effects::ReadOnly,
        };
        let ruling = self
            .rules
            .of_call(&request.spec, &request.arguments, &self.dirs);
        let is_wary = !is_answer && self.is_wary(request) && self.leaves(request);
        let (reason, words) = match ruling {
            Some(it) if it.decision == Decision::Deny => return deny(it.reason),
            Some(it) if it.decision == Decision::Ask && !self.yolo => {
                (AskReason::Rule, Some(shown::line(&shortened(&it.reason))))
            }
            _ if reach != Reach::Protected && self.is_granted(request, is_wary) => {
                return Verdict::Allow;
            }
            _ if is_wary => (AskReason::OutsideText, Some(MAY_LEAVE.to_owned())),
            Some(it) if it.decision == Decision::Allow && reach != Reach::Protected => {
                return Verdict::Allow;
            }
            Some(_) | None if is_allowed => return Verdict::Allow,
            Some(_) | None => reach.reason(),
        };
        let words = words.map_or_else(String::new, |it| format!("\nReason: {it}."));
        Verdict::Ask {
            prompt: format!(
                "`{}` wants to run with\n{}{words}",
                shown::line(tool),
                shown::call(&request.arguments)
            ),
            reasons: vec![reason],
        }
    }

    /// Returns the reach of a call that runs no command.
    fn reach(&self, request: &GateRequest) -> Reach {
        let Some(confined) = &self.confined else {
            return Reach::Any;
        };
        let kind = request.spec.kind;
        if request.spec.effects == Effects::ReadOnly {
            return Reach::Any;
        }
        if confined.tools.contains(&request.spec.name) {
            // A missing protected file could be made: nothing is checked when the call has ended.
            return Reach::Any;
        }
        if !matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            return Reach::Outside;
        }
        if !confined.may_write {
            return Reach::Refused;
        }
        let path = request.arguments.get(PATH_ARGUMENT).and_then(Value::as_str);
        let is_own = path.is_some_and(|path| {
            let path = Path::new(path);
            self.dirs.holds_unprotected(path, confined.protected)
                && !self.dirs.is_of_repository(path)
                && !self.dirs.leads_into(path, &confined.kept)
        });
        match (is_own, confined.is_enough) {
            (false, _) => Reach::Protected,
            (true, true) => Reach::Inside,
            (true, false) => Reach::Any,
        }
    }

    /// Returns whether the model may have been led to ask for the call by text that the user did not write.
    fn is_wary(&self, request: &GateRequest) -> bool {
        request.has_outside_text && !self.yolo
    }

    /// Returns whether a call that runs no command may send data out or change what is not in the directories.
    fn leaves(&self, request: &GateRequest) -> bool {
        let spec = &request.spec;
        let reaches_outside = spec.kind == ToolKind::Fetch || spec.hints.open_world == Some(true);
        match spec.kind {
            _ if spec.effects == Effects::ReadOnly => reaches_outside,
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move if !reaches_outside => {
                let path = request.arguments.get(PATH_ARGUMENT).and_then(Value::as_str);
                !path.is_some_and(|path| self.dirs.holds_unprotected(path.as_ref(), &[]))
            }
            _ => true,
        }
    }

    fn is_granted(&self, request: &GateRequest, is_wary: bool) -> bool {
        let tool = request.spec.name.as_str();
        let hash = || self.hash_of_call(request);
        let ordinary = self.changes_ordinary(request);
        [&self.grants, &self.granted]
            .iter()
            .any(|it| it.allow_call(tool, is_wary, ordinary, hash))
    }

    /// Returns whether a call changes no file but an ordinary one in the directories: a person who allows all changes of files
    /// does not mean what others run.
    fn changes_ordinary(&self, request: &GateRequest) -> bool {
        let kind = request.spec.kind;
        if !matches!(kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            return true;
        }
        let path = request.arguments.get(PATH_ARGUMENT).and_then(Value::as_str);
        path.is_some_and(|path| self.dirs.holds_ordinary(path.as_ref()))
    }

    /// Returns whether a command runs in a sandbox that keeps its changes in the directories.
    fn holds_writes(&self, arguments: &Value) -> bool {
        let may_write = |it: &Confined| it.may_write;
        self.confined.as_ref().is_some_and(may_write) && !asks_outside(arguments)
    }

    fn hash_of_call(&self, request: &GateRequest) -> String {
        let file = match request.spec.kind {
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
                request.arguments.get(PATH_ARGUMENT).and_then(Value::as_str)
            }
            _ => None,
        };
        terms::of_call(&request.spec.name, &request.arguments, &self.dirs, file)
    }

    /// Returns the terms of an approval of a call, and the permissions that it can include: none if the call would be
    /// asked about all the same.
    fn terms(&self, request: &GateRequest) -> Terms {
        let tool = request.spec.name.as_str();
        let is_wary = self.is_wary(request);
        let Some(command) = request.spec.kind.command_line(&request.arguments) else {
            let hash = self.hash_of_call(request);
            let whole = GrantScope::Tool {
                tool: tool.to_owned(),
            };
            let ruling = self
                .rules
                .of_call(&request.spec, &request.arguments, &self.dirs);
            let is_fixed = ruling.is_some_and(|it| it.decision != Decision::Allow)
                || self.reach(request) == Reach::Protected
                || !self.changes_ordinary(request);
            let scopes = match request.spec.kind {
                _ if is_fixed => Vec::new(),
                ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Execute => {
                    vec![whole]
                }
                _ => vec![
                    terms::exactly(tool, &hash, &shown::call(&request.arguments)),
                    whole,
                ],
            };
            let is_wary = is_wary && self.leaves(request);
            let offers = terms::grants(scopes, is_wary);
            return Terms { hash, offers };
        };
        let Some(dirs) = self.dirs_of(&request.arguments) else {
            return Terms::default();
        };
        let analysis = analyse(&command, &dirs);
        let call = (&*command, &request.arguments);
        let hash = self.hash_of_command(tool, call, &analysis, &dirs);
        let judged = self.judge_analysis(tool, call, (&analysis, is_wary), &dirs);
        let can_be_remembered = matches!(judged.basis, Basis::NoRule | Basis::OutsideText)
            && self.misled(&analysis, &dirs).is_none()
            && !asks_outside(&request.arguments);
        let mut scopes = match can_be_remembered {
            true => terms::offers_of_command(tool, (&command, &hash), &analysis, &dirs),
            false => Vec::new(),
        };
        if !self.holds_writes(&request.arguments) {
            scopes.retain(|it| !matches!(it, GrantScope::Commands { .. }));
        }
        let offers = terms::grants(scopes, judged.basis == Basis::OutsideText);
        Terms { hash, offers }
    }

    /// Returns the lookup of files and programs for commands that run in these directories, with these variables.
    fn lookup<'a>(&'a self, variables: Option<&'a Variables>, dirs: &'a AllowedDirs) -> Lookup<'a> {
        Lookup {
            rules: &self.environment,
            variables,
            dirs,
            settled: &self.settled,
        }
    }

    fn hash_of_command(
        &self,
        tool: &str,
        call: (&str, &Value),
        analysis: &Analysis,
        dirs: &AllowedDirs,
    ) -> String {
        let variables = self.workdir.as_ref().and_then(Workdir::environment);
        let lookup = self.lookup(variables.as_ref(), dirs);
        terms::of_command(tool, call, analysis, &lookup)
    }

    /// Returns the verdict about a command, and whether it is allowed because it only looks.
    fn judge_command(&self, request: &GateRequest, command: &str) -> (Verdict, bool) {
        let (tool, arguments) = (request.spec.name.as_str(), &request.arguments);
        let Some(dirs) = self.dirs_of(arguments) else {
            let reason =
                "the command's directory does not exist, or commands see another directory there";
            return (deny(reason.to_owned()), false);
        };
        let analysis = analyse(command, &dirs);
        let (call, found) = ((command, arguments), (&analysis, self.is_wary(request)));
        let judged = match asks_outside(arguments) {
            true => self.judge_outside(tool, call, found, &dirs),
            false => self.judge_analysis(tool, call, found, &dirs),
        };
        let only_looks = judged.decision == Decision::Allow && judged.has_no_effect();
        let verdict = match judged.decision {
            Decision::Allow => Verdict::Allow,
            Decision::Deny => deny(judged.reason),
            Decision::Ask => Verdict::Ask {
                prompt: question(tool, &dirs, &analysis, arguments, &judged.reason),
                reasons: judged.ask_reasons(asks_outside(arguments)),
            },
        };
        (verdict, only_looks)
    }

    /// Judges a command that asks to run outside of the sandbox: what would be denied inside is, and nothing is allowed
    /// because the sandbox holds it, or because it seems to look only.
    fn judge_outside(
        &self,
        tool: &str,
        call: (&str, &Value),
        found: (&Analysis, bool),
        dirs: &AllowedDirs,
    ) -> Judged {
        let judged = self.judge_analysis(tool, call, found, dirs);
        let holds = self.confined.is_some() || judged.has_no_effect();
        match judged.decision {
            Decision::Allow if holds && !(self.confined.is_none() && self.yolo) => {
                let reason = match self.looks_only {
                    true => return Judged::by(Decision::Deny, Basis::Plan, ONLY_LOOKING),
                    false => ASKS_OUTSIDE,
                };
                Judged::by(Decision::Ask, Basis::Sandbox, reason)
            }
            Decision::Ask => {
                let reason = format!("{ASKS_OUTSIDE}, and {}", judged.reason);
                Judged { reason, ..judged }
            }
            Decision::Allow | Decision::Deny => judged,
        }
    }

    fn dirs_of(&self, arguments: &Value) -> Option<AllowedDirs> {
        self.command_dirs(arguments.get("working_directory").and_then(Value::as_str))
    }

    /// Returns the directories that a command may read, from where it runs.
    fn command_dirs(&self, directory: Option<&str>) -> Option<AllowedDirs> {
        let current = self.workdir.as_ref().map(Workdir::directory);
        let current = current.unwrap_or_else(|| self.dirs.current().to_path_buf());
        let directory = current.join(directory.unwrap_or("."));
        self.dirs.in_directory(&directory).ok()
    }

    fn judge_analysis(
        &self,
        tool: &str,
        (command, arguments): (&str, &Value),
        (analysis, is_wary): (&Analysis, bool),
        dirs: &AllowedDirs,
    ) -> Judged {
        if let Some(reason) = self.refusal(tool, analysis) {
            return Judged::by(Decision::Deny, Basis::Settings, reason);
        }
        // Set if a rule yields to the sandbox, so that the command must run in it.
        let is_bound = Cell::new(false);
        let is_hidden = || {
            let is_hidden =
                !asks_outside(arguments) && self.is_hidden(tool, command, analysis, dirs);
            is_bound.set(is_hidden);
            is_hidden
        };
        let ruling = self.rules.strict(tool, command, analysis, dirs, is_hidden);
        if let Some(ruling) = ruling.filter(|it| it.holds_always || !self.yolo) {
            return Judged::by(ruling.decision, Basis::Rule(ruling.rule), ruling.reason);
        }
        let misled = self.misled(analysis, dirs);
        let is_known = misled.is_none();
        let reason = match (analysis.judgement(), misled) {
            (Judgement::ReadOnly, None) => {
                return Judged::by(Decision::Allow, Basis::OnlyLooks, "it only looks");
            }
            (Judgement::ReadOnly, Some(reason))
            | (Judgement::Effects { reason, .. } | Judgement::Unknown { reason }, _) => reason,
        };
        let is_held = || self.is_held(tool, command, dirs);
        if is_bound.get() && self.confined.is_none() {
            return Judged::held();
        }
        if self.looks_only {
            return match is_held() {
                true => Judged::held(),
                false => Judged::by(Decision::Deny, Basis::Plan, ONLY_LOOKING),
            };
        }
        if self.yolo {
            return Judged::by(Decision::Allow, Basis::Yolo, "all calls are allowed");
        }
        let is_confined = |it: &Confined| !it.reaches_hosts;
        let is_wary = is_wary
            && !self.confined.as_ref().is_some_and(is_confined)
            && leaves(analysis, dirs, is_known);
        let hash = || self.hash_of_command(tool, (command, arguments), analysis, dirs);
        let any = |allows: &dyn Fn(&Grants) -> bool| {
            is_known && [&self.grants, &self.granted].iter().any(|it| allows(it))
        };
        let begins = any(&|it| it.allow_commands(tool, is_wary, analysis, dirs));
        let holds = begins && self.holds_writes(arguments);
        if holds || any(&|it| it.allow_call(tool, is_wary, true, hash)) {
            return Judged::by(Decision::Allow, Basis::Grant, "you allowed it");
        }
        let reason = match begins {
            true => format!("{reason}, and {ONLY_IN_SANDBOX}"),
            false => reason,
        };
        if is_wary {
            return match is_held() {
                true => Judged::held(),
                false => Judged::by(Decision::Ask, Basis::OutsideText, MAY_LEAVE),
            };
        }
        match self.allowing(tool, analysis, is_known) {
            Some(basis) => Judged::by(Decision::Allow, basis, "it is allowed"),
            None if self.confined.as_ref().is_some_and(|it| it.is_enough) => Judged::by(
                Decision::Allow,
                Basis::Sandbox,
                "it cannot leave the sandbox",
            ),
            None if is_held() => Judged::held(),
            None => Judged::by(Decision::Ask, Basis::NoRule, reason),
        }
    }

    /// Returns whether a command can run in a sandbox that hides the files that rules deny.
    fn is_hidden(
        &self,
        tool: &str,
        command: &str,
        analysis: &Analysis,
        dirs: &AllowedDirs,
    ) -> bool {
        let sandbox = self.read_only.as_ref();
        let looks = || {
            let only_reads = analysis.judgement() == Judgement::ReadOnly;
            only_reads && self.misled(analysis, dirs).is_none()
        };
        sandbox.is_some_and(|it| it.hides_denied_files(tool))
            && (self.confined.is_some() || looks() || self.is_held(tool, command, dirs))
    }

    /// Returns whether a command may run without asking in the read-only sandbox: the kernel enforces all of it, the
    /// programs are the system's own, and none of them is run for its effect.
    fn is_held(&self, tool: &str, command: &str, dirs: &AllowedDirs) -> bool {
        // A home directory in the allowed ones would not be hidden.
        let is_hidden = |home: &Path| !dirs.contains(home);
        let sandbox = self.read_only.as_ref();
        let Some(sandbox) = sandbox.filter(|it| it.home().is_none_or(is_hidden)) else {
            return false;
        };
        let Some(names) = programs_in_read_only_sandbox(command, dirs, sandbox.home()) else {
            return false;
        };
        let variables = self.workdir.as_ref().and_then(Workdir::environment);
        let lookup = self.lookup(variables.as_ref(), dirs);
        lookup.refusal(&names).is_none() && lookup.are_of_system(&names) && sandbox.holds(tool)
    }

    fn explain(&self, tool: &str, command: &str) -> Vec<Judged> {
        let Some(dirs) = self.command_dirs(None) else {
            return Vec::new();
        };
        let analysis = analyse(command, &dirs);
        let arguments = |command: &str| json!({ "command": command });
        let call = (command, &arguments(command));
        let whole = Judged {
            command: command.to_owned(),
            ..self.judge_analysis(tool, call, (&analysis, false), &dirs)
        };
        let each: Vec<Judged> = analysis
            .each()
            .map(|simple| {
                let text = simple.words().collect::<Vec<_>>().join(" ");
                let call = (text.as_str(), &arguments(&text));
                let judged = self.judge_analysis(tool, call, (&simple, false), &dirs);
                // The input of a part is known in the whole alone.
                let judged = match whole.basis == Basis::ReadOnlySandbox
                    && judged.decision == Decision::Ask
                {
                    true => whole.clone(),
                    false => judged,
                };
                Judged {
                    command: text,
                    ..judged
                }
            })
            .collect();
        each.into_iter().chain([whole]).collect()
    }

    /// Returns why a command that only looks may do something else where it runs.
    fn misled(&self, analysis: &Analysis, dirs: &AllowedDirs) -> Option<String> {
        let variables = self.workdir.as_ref().and_then(Workdir::environment);
        let lookup = self.lookup(variables.as_ref(), dirs);
        lookup.refusal(&analysis.names())
    }

    fn refusal(&self, tool: &str, analysis: &Analysis) -> Option<String> {
        for pattern in self
            .disallowed_tools
            .iter()
            .filter(|pattern| pattern.names(tool))
        {
            let Some(program) = pattern.program() else {
                return Some(format!("the tool `{tool}` is not allowed"));
            };
            if analysis.any_fits(|words| pattern.may_mean(words))
                || analysis.wrapped_names().iter().any(|name| name == program)
                || analysis.has_hidden_names()
                || analysis.may_be_completed(|name| name == program)
                || analysis.patterns().may_mean(program)
            {
                return Some(format!(
                    "the command may run `{program}`, which is not allowed"
                ));
            }
        }
        if self.without_shell
            && let Some(reason) = refusal_without_shell(analysis)
        {
            return Some(format!("{reason}, and commands run without a shell here"));
        }
        None
    }

    /// Returns the basis on which a command is allowed: one that only looks is allowed with what the patterns name, if
    /// its programs are known to
    /// be those that run.
    fn allowing(&self, tool: &str, analysis: &Analysis, is_known: bool) -> Option<Basis> {
        let patterns = || self.allowed.iter().filter(|pattern| pattern.names(tool));
        if patterns().any(|pattern| pattern.words.is_none()) {
            return Some(Basis::Settings);
        }
        let basis = RefCell::new(None);
        let fits = |words: &[&str]| {
            if patterns().any(|pattern| pattern.begins(words)) {
                basis.replace(Some(Basis::Settings));
                return true;
            }
            let rule = self.rules.allowing(tool, words);
            let fits = rule.is_some();
            basis.replace(rule.map(Basis::Rule));
            fits
        };
        (is_known && analysis.all_fit(fits)).then(|| basis.take().unwrap_or(Basis::NoRule))
    }
}

#[async_trait]
impl Gate for StandardGate {
    async fn check(&self, request: &GateRequest) -> Verdict {
        if self.0.is_quick(request) {
            return self.0.judge(request);
        }
        // Judging a command looks at the disk, which may hang; the turn must not hang with it.
        let (judge, request) = (Arc::clone(&self.0), request.clone());
        let judged = tokio::task::spawn_blocking(move || judge.judge(&request)).await;
        judged.unwrap_or_else(|err| deny(format!("the command could not be checked: {err}")))
    }

    async fn terms(&self, request: &GateRequest) -> Terms {
        let (judge, request) = (Arc::clone(&self.0), request.clone());
        let terms = tokio::task::spawn_blocking(move || judge.terms(&request)).await;
        terms.unwrap_or_default()
    }

    fn remember(&self, grant: &Grant) {
        self.0.grants.add(grant.clone());
    }
}

/// Returns whether a call asks to run outside of the sandbox.
fn asks_outside(arguments: &Value) -> bool {
    arguments.get(OUTSIDE_SANDBOX) == Some(&Value::Bool(true))
}

/// Returns whether a command may send data out or write outside the directories, if no sandbox holds it: one that runs
/// code may do anything.
fn leaves(analysis: &Analysis, dirs: &AllowedDirs, is_known: bool) -> bool {
    let commands = analysis.plain_effects().filter(|_| is_known);
    !commands.is_some_and(|all| all.iter().all(|it| changes_only_inside(it, dirs)))
}

fn deny(reason: String) -> Verdict {
    Verdict::Deny { reason }
}

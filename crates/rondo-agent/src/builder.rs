//! Builds agents, and checks that their parts fit together.

use crate::Agent;
use crate::approval::{FnApprover, Nobody};
use crate::built_in::BuiltIn;
use crate::gate::OwnToolsRun;
use crate::parts::Parts;
use crate::source::CheckedSource;
use rondo_core::ports::ToolSource;
use rondo_core::profile::{self, ProfileError};
use rondo_core::{Approver, Budgets, Gate, Interceptor, Model, Tool, Toolbox, ToolboxError};
use rondo_schema::Validator;
use rondo_types::{
    AnswerValue, Limits, LoopGuard, Profile, Question, Sampling, ToolKind, ToolSpec,
};
use serde_json::Value;
use std::sync::Arc;

/// Builds an [`Agent`].
///
/// By default, an agent has the limits of the profile `default`, no tools, no system prompt and no
/// approver.
///
/// # What may run
/// Without a gate of the program's own:
/// - Tools that the program declares ([`AgentBuilder::tool`]) run without approval, except those
///   whose [kind](rondo_types::ToolKind) is `execute`, `edit`, `delete` or `move`: they are judged like the
///   built-in tools of that kind.
/// - Calls of all other tools (files, commands, [`AgentBuilder::judged_tools`]) run without
///   approval when they only read inside the given directories, and need approval otherwise.
/// - Without an approver, a call that needs approval gets a `denied` result and the turn continues.
#[must_use = "nothing is built before `build`"]
pub struct AgentBuilder {
    model: Arc<dyn Model>,
    fallbacks: Vec<Arc<dyn Model>>,
    own: Vec<Arc<dyn Tool>>,
    judged: Vec<Arc<dyn Tool>>,
    built_in: BuiltIn,
    gate: Option<Arc<dyn Gate>>,
    approver: Arc<dyn Approver>,
    tool_sources: Vec<Arc<dyn ToolSource>>,
    interceptors: Vec<Arc<dyn Interceptor>>,
    budgets: Vec<Arc<dyn Budgets>>,
    profile: Result<Profile, ProfileError>,
    /// Set if the program chose the profile, so that its system prompt is sent.
    is_profile_chosen: bool,
    system: Vec<String>,
    response_schema: Option<Value>,
}

/// Why an agent cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two tools have the same name, or there are too many.
    #[error(transparent)]
    Tools(#[from] ToolboxError),
    /// A tool's name is not accepted by every provider.
    #[error(
        "`{name}` cannot be a tool's name: it must be a letter or `_`, then at most 63 letters, digits, `_` or `-`"
    )]
    ToolName {
        /// Name that was given.
        name: String,
    },
    /// The arguments of a tool are not an object.
    #[error(
        "the arguments of tool `{tool}` are not an object: its type must be a struct with named fields"
    )]
    Arguments {
        /// The tool.
        tool: String,
    },
    /// The schema of the answer is not a valid schema, or not the schema of an object.
    #[error("the schema of the answer cannot be used: {problem}")]
    Answer {
        /// Problem with the schema.
        problem: String,
    },
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A rule of the profile cannot be used.
    #[error("a rule of the profile cannot be used: {problem}")]
    Rules {
        /// Problem with the rule.
        problem: String,
    },
    /// The profile has [rules](Profile::rule_sets) about commands that nothing would enforce: another gate judges the calls,
    /// or commands are run by a tool of the program's own.
    #[error(
        "`{setting}` of profile `{profile}` would not be enforced: only the gate of the built-in tools does, so leave out the other gate, or clear `{setting}`"
    )]
    Unenforced {
        /// The field of the profile.
        setting: &'static str,
        /// The profile.
        profile: String,
    },
    /// [`Limits::max_cost`] is set, but the price of the model or of a fallback is not known, so the
    /// limit could not be enforced.
    #[error(
        "`max_cost` is set, but the price of `{model}` is not known: set `ModelCard::price`, or bound the tokens with `max_tokens_total` instead"
    )]
    Price {
        /// The model, as `provider/model`.
        model: String,
    },
    /// The model, or a fallback, is to search the web, and its requests would not say so.
    #[error(
        "`{model}` would not search the web: its protocol has no search, or its provider refuses it beside tools; leave `Endpoint::web_search` out, or the tools"
    )]
    WebSearch {
        /// The model, as `provider/model`.
        model: String,
    },
    /// The directory of the file tools cannot be opened.
    #[cfg(feature = "files")]
    #[error(transparent)]
    Files(#[from] rondo_tools::WorkspaceError),
    /// A directory cannot be used.
    #[cfg(any(feature = "exec", feature = "files"))]
    #[error("failed to open directory `{path}`", path = path.display())]
    Directory {
        /// The directory.
        path: std::path::PathBuf,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
}

impl AgentBuilder {
    /// Creates a builder from a model that may be shared with other agents.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            fallbacks: Vec::new(),
            own: Vec::new(),
            judged: Vec::new(),
            built_in: BuiltIn::default(),
            gate: None,
            approver: Arc::new(Nobody),
            tool_sources: Vec::new(),
            interceptors: Vec::new(),
            budgets: Vec::new(),
            profile: profile::builtin("default"),
            is_profile_chosen: false,
            system: Vec::new(),
            response_schema: None,
        }
    }

    /// Adds a fallback model. It takes over for the rest of the turn when the one before it fails.
    pub fn fallback(mut self, model: impl Model + 'static) -> Self {
        self.fallbacks.push(Arc::new(model));
        self
    }

    /// Adds a tool of the program's own. It runs without approval, unless it has the name of a
    /// built-in tool with effects.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.own.push(Arc::new(tool));
        self
    }

    /// Adds tools of the program's own, as [`AgentBuilder::tool`] does.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.own.extend(tools);
        self
    }

    /// Adds tools whose calls the gate judges, such as third-party or dangerous tools.
    pub fn judged_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.judged.extend(tools);
        self
    }

    /// Adds the built-in file tools, confined to a directory. Writing needs approval.
    #[cfg(feature = "files")]
    pub fn files(mut self, directory: impl Into<std::path::PathBuf>) -> Self {
        self.built_in.files = Some(directory.into());
        self
    }

    /// Adds the built-in tool `exec`, which runs shell commands. Commands that are not known to be
    /// read-only need approval.
    ///
    /// The program must call [`supervisor::run_if_requested`](rondo_exec::supervisor::run_if_requested)
    /// first thing in `main`, or name another program that does. The state directory is created if
    /// it does not exist.
    #[cfg(feature = "exec")]
    pub fn commands(mut self, options: rondo_exec::ExecOptions) -> Self {
        self.built_in.commands = Some(options);
        self
    }

    /// Replaces the default gate. It judges all calls, those of the program's own tools included.
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// Sets the approver, which answers the questions of turns: whether a call may run, a value that a running call wants,
    /// whether more may be spent.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Sets a function as the approver of calls, which may return [`AnswerValue::Value`] with other arguments; every other
    /// question is answered with no. The time that it takes counts against the turn's deadline.
    pub fn approve_with<F, R>(self, ask: F) -> Self
    where
        F: Fn(Question) -> R + Send + Sync + 'static,
        R: Future<Output = AnswerValue> + Send + 'static,
    {
        self.approver(FnApprover(ask))
    }

    /// Adds a source of tools that may change while a turn runs, such as those of a server: a change counts from the next
    /// step on. Their calls are judged like those of [`AgentBuilder::judged_tools`]. A tool whose name or arguments
    /// [`AgentBuilder::build`] would refuse is not offered, which the log says.
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.tool_sources.push(Arc::new(CheckedSource(source)));
        self
    }

    /// Adds an interceptor: it may deny or change calls before the gate judges them, change what the model reads of
    /// results, add to steps and stop turns. Several are called in the order in which they were added.
    pub fn interceptor(mut self, interceptor: impl Interceptor + 'static) -> Self {
        self.interceptors.push(Arc::new(interceptor));
        self
    }

    /// Adds a budget that the agent may share with other agents and with the program. Each is asked before
    /// each request; one that is spent ends the turn, or has the approver asked.
    pub fn budget(mut self, budget: Arc<dyn Budgets>) -> Self {
        self.budgets.push(budget);
        self
    }

    /// Sets the profile. Its list of tools is ignored: tools are added with this builder. Its rules about calls
    /// ([`Profile::allowed_tools`], [`Profile::rule_sets`], [`Profile::forbidden_programs`]) are those of the built-in tools'
    /// gate.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Ok(profile);
        self.is_profile_chosen = true;
        self
    }

    /// Changes limits of the profile. Call it after [`AgentBuilder::profile`].
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        if let Ok(profile) = &mut self.profile {
            change(&mut profile.limits);
        }
        self
    }

    /// Sets when a call that is repeated with the same result is stopped. Call it after
    /// [`AgentBuilder::profile`]. A threshold of 0 is disabled. For a tool whose calls are expected
    /// to repeat, use [`FnTool::polls`](crate::FnTool::polls).
    pub fn loop_guard(mut self, guard: LoopGuard) -> Self {
        if let Ok(profile) = &mut self.profile {
            profile.loop_guard = guard;
        }
        self
    }

    /// Replaces the profile's sampling parameters. Call it after [`AgentBuilder::profile`].
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        if let Ok(profile) = &mut self.profile {
            profile.sampling = sampling;
        }
        self
    }

    /// Adds a block to the system prompt. The blocks replace the profile's prompt. Without any, the
    /// profile's prompt is sent if a profile was set or a built-in tool was added.
    pub fn system(mut self, block: impl Into<String>) -> Self {
        self.system.push(block.into());
        self
    }

    /// Requires answers that fit a JSON Schema (draft 2020-12) with an object at its root.
    ///
    /// [`Agent::run_typed`] derives one from a type instead.
    pub fn response_schema(mut self, schema: Value) -> Self {
        self.response_schema = Some(schema);
        self
    }

    /// Builds the agent. Sends nothing and runs no tool.
    ///
    /// # Errors
    /// When a tool, a schema, the profile or a directory cannot be used, and when
    /// [`Limits::max_cost`] is set without the price of each model and fallback.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        let profile = self.profile?;
        check_prices(&profile.limits, &self.model, &self.fallbacks)?;
        let runs_commands = !self.tool_sources.is_empty() || {
            let mut all = self.own.iter().chain(&self.judged);
            all.any(|tool| tool.spec().kind == ToolKind::Execute)
        };
        let installed = self.built_in.install(&mut self.judged, &profile)?;
        let is_enforced = self.gate.is_none() && installed.is_some();
        if !is_enforced && (runs_commands || installed.is_some()) {
            check_enforced(&profile)?;
        }
        if self.system.is_empty() && (self.is_profile_chosen || installed.is_some()) {
            self.system.extend(profile.system_prompt.clone());
        }
        let (judge, directory) = installed.map(|it| (it.gate, it.directory)).unzip();
        let gate = self.gate.unwrap_or_else(|| {
            let own = self.own.iter().map(|tool| tool.spec());
            Arc::new(OwnToolsRun::new(own, judge, &profile.allowed_tools))
        });
        let is_without_tools =
            self.own.is_empty() && self.judged.is_empty() && self.tool_sources.is_empty();
        check_web_search(!is_without_tools, &self.model, &self.fallbacks)?;
        let tools = Toolbox::new(self.own.into_iter().chain(self.judged))?;
        check_tools(&tools)?;
        self.response_schema.as_ref().map_or(Ok(()), check_answer)?;
        let parts = Parts {
            model: self.model,
            fallbacks: self.fallbacks,
            tools,
            gate,
            approver: self.approver,
            tool_sources: self.tool_sources,
            interceptors: self.interceptors,
            budgets: self.budgets,
            profile: Arc::new(profile),
            system: self.system,
            response_schema: self.response_schema,
            directory,
        };
        Ok(Agent {
            parts: Arc::new(parts),
        })
    }
}

fn check_web_search(
    has_tools: bool,
    model: &Arc<dyn Model>,
    fallbacks: &[Arc<dyn Model>],
) -> Result<(), BuildError> {
    let mut models = std::iter::once(model).chain(fallbacks);
    let dropping = models.find(|model| model.drops_web_search(has_tools));
    dropping.map_or(Ok(()), |model| {
        let model = model.info().full_name();
        Err(BuildError::WebSearch { model })
    })
}

fn check_prices(
    limits: &Limits,
    model: &Arc<dyn Model>,
    fallbacks: &[Arc<dyn Model>],
) -> Result<(), BuildError> {
    if limits.max_cost.is_none() {
        return Ok(());
    }
    let mut models = std::iter::once(model).chain(fallbacks);
    let unpriced = models.find(|model| model.info().price.is_none());
    unpriced.map_or(Ok(()), |model| {
        let model = model.info().full_name();
        Err(BuildError::Price { model })
    })
}

/// Refuses rules that restrict commands.
fn check_enforced(profile: &Profile) -> Result<(), BuildError> {
    let rules = [
        ("forbidden_programs", profile.forbidden_programs.is_empty()),
        ("rule_sets", profile.rule_sets.is_empty()),
    ];
    let set = rules.into_iter().find(|(_, is_empty)| !is_empty);
    set.map_or(Ok(()), |(setting, _)| {
        Err(BuildError::Unenforced {
            setting,
            profile: profile.name.clone(),
        })
    })
}

fn check_tools(tools: &Toolbox) -> Result<(), BuildError> {
    tools.specs().iter().try_for_each(check_tool)
}

/// Checks that every provider accepts the name and the arguments of a tool.
pub(crate) fn check_tool(spec: &ToolSpec) -> Result<(), BuildError> {
    if !is_name(&spec.name) {
        let name = spec.name.clone();
        return Err(BuildError::ToolName { name });
    }
    if spec.parameters.get("type").is_none_or(|it| it != "object") {
        let tool = spec.name.clone();
        return Err(BuildError::Arguments { tool });
    }
    Ok(())
}

fn check_answer(schema: &Value) -> Result<(), BuildError> {
    let wrong = |problem: String| BuildError::Answer { problem };
    Validator::new(schema).map_err(|error| wrong(error.to_string()))?;
    if schema.get("type").is_none_or(|it| it != "object") {
        return Err(wrong("its type is not `object`".to_owned()));
    }
    Ok(())
}

/// Returns whether a name fits `[A-Za-z_][A-Za-z0-9_-]{0,63}`, which every provider accepts.
fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= 64 && name.starts_with(begins) && name.chars().all(is_word)
}

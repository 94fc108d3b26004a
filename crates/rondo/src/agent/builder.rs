use super::Agent;
use super::approval::{Asks, Nobody};
use super::gate::OwnToolsRun;
use super::parts::Parts;
use rondo_core::profile::{self, ProfileError};
use rondo_core::{Approval, ApprovalRequest, Approver, Gate, Model, Tool, Toolbox, ToolboxError};
use rondo_exec::{ExecOptions, ExecTool};
use rondo_policy::{AllowedDirs, GateOptions, PatternError, StandardGate};
use rondo_schema::Validator;
use rondo_tools::{Workspace, WorkspaceError, file_tools};
use rondo_types::{Limits, Profile, Sampling};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Builds an [`Agent`].
///
/// Left alone, an agent has the limits of the profile `default`, no tools, no system prompt, and
/// nobody to ask.
///
/// # What may run
/// Without a gate of the program's own:
/// - A tool that the program declares ([`AgentBuilder::tool`]) runs: that it was declared is the
///   permission. One that is named like a built-in tool that changes something (`exec`,
///   `execute_command`, `write_file`, `edit_file`) is judged like it, whoever adds it.
/// - Of all others (files, commands, [`AgentBuilder::judged_tools`]), what only looks inside the
///   given directories runs, and anything else is asked about.
/// - Where nobody can be asked, the call gets a `denied` result and the turn goes on.
#[must_use = "nothing is built before `build`"]
pub struct AgentBuilder {
    model: Arc<dyn Model>,
    fallbacks: Vec<Arc<dyn Model>>,
    own: Vec<Arc<dyn Tool>>,
    judged: Vec<Arc<dyn Tool>>,
    files: Option<PathBuf>,
    commands: Option<ExecOptions>,
    gate: Option<Arc<dyn Gate>>,
    approver: Arc<dyn Approver>,
    profile: Result<Profile, ProfileError>,
    /// Whether the profile's own prompt is meant.
    is_profile_chosen: bool,
    system: Vec<String>,
    response_schema: Option<Value>,
}

/// Why an agent cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Two tools have one name, or there are too many.
    #[error(transparent)]
    Tools(#[from] ToolboxError),
    /// A name that not every provider takes.
    #[error(
        "`{name}` cannot be a tool's name: it must be a letter or `_`, then at most 63 letters, digits, `_` or `-`"
    )]
    ToolName {
        /// The name.
        name: String,
    },
    /// The arguments of a tool are no object.
    #[error(
        "the arguments of tool `{tool}` are not an object: its type must be a struct with named fields"
    )]
    Arguments {
        /// The tool.
        tool: String,
    },
    /// The schema of the answer is none, or none of an object.
    #[error("the schema of the answer cannot be used: {problem}")]
    Answer {
        /// What is wrong with it.
        problem: String,
    },
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A budget in money is set, and a model may be asked whose price is not known: the budget would
    /// bound nothing.
    #[error(
        "`max_cost` is set, but the price of `{model}` is not known: set `ModelCard::price`, or bound the tokens with `max_tokens` instead"
    )]
    Price {
        /// The model, as `provider/model`.
        model: String,
    },
    /// The directory of the file tools cannot be opened.
    #[error(transparent)]
    Files(#[from] WorkspaceError),
    /// A directory cannot be used.
    #[error("failed to open directory `{path}`", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// A pattern of the gate cannot be read.
    #[error(transparent)]
    Gate(#[from] PatternError),
}

impl AgentBuilder {
    /// Starts with a model that may be shared.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            fallbacks: Vec::new(),
            own: Vec::new(),
            judged: Vec::new(),
            files: None,
            commands: None,
            gate: None,
            approver: Arc::new(Nobody),
            profile: profile::builtin("default"),
            is_profile_chosen: false,
            system: Vec::new(),
            response_schema: None,
        }
    }

    /// Adds a model that is asked when the one before it fails, for the rest of the turn.
    pub fn fallback(mut self, model: impl Model + 'static) -> Self {
        self.fallbacks.push(Arc::new(model));
        self
    }

    /// Adds a tool of the program's own, which runs without asking, unless it is named like a
    /// built-in one.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.own.push(Arc::new(tool));
        self
    }

    /// Adds tools of the program's own, as [`AgentBuilder::tool`] does.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.own.extend(tools);
        self
    }

    /// Adds tools whose calls are judged: somebody else's, or dangerous ones.
    pub fn judged_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.judged.extend(tools);
        self
    }

    /// Adds the built-in file tools, confined to a directory; writing is asked about.
    pub fn files(mut self, directory: impl Into<PathBuf>) -> Self {
        self.files = Some(directory.into());
        self
    }

    /// Adds the built-in tool `exec`, which runs shell commands; those that are not known to be
    /// harmless are asked about.
    ///
    /// The program must call [`supervisor::run_if_requested`](rondo_exec::supervisor::run_if_requested)
    /// first thing in `main`, or name another one that does. The state directory is made where it is
    /// not there.
    pub fn commands(mut self, options: ExecOptions) -> Self {
        self.commands = Some(options);
        self
    }

    /// Judges all calls by a gate of the program's own, those of its own tools included.
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// Asks this approver where the gate does not know.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Asks this function where the gate does not know. While it runs, the turn's time does too.
    pub fn approve_with<F, R>(self, ask: F) -> Self
    where
        F: Fn(ApprovalRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Approval> + Send + 'static,
    {
        self.approver(Asks(ask))
    }

    /// Takes limits, wording and prompt of a profile. Its list of tools is not looked at: tools are
    /// added here.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Ok(profile);
        self.is_profile_chosen = true;
        self
    }

    /// Changes limits of the profile, which must be chosen before.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        if let Ok(profile) = &mut self.profile {
            change(&mut profile.limits);
        }
        self
    }

    /// Says how to sample, in place of what the profile, which must be chosen before, says.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        if let Ok(profile) = &mut self.profile {
            profile.sampling = sampling;
        }
        self
    }

    /// Adds a block to the system prompt. With any, the profile's own prompt is not sent; without,
    /// it is where a profile was chosen or a built-in tool was added.
    pub fn system(mut self, block: impl Into<String>) -> Self {
        self.system.push(block.into());
        self
    }

    /// Asks for answers that fit a JSON Schema (draft 2020-12), an object at its root.
    ///
    /// [`Agent::run_typed`] derives one from a type instead.
    pub fn response_schema(mut self, schema: Value) -> Self {
        self.response_schema = Some(schema);
        self
    }

    /// Builds the agent. Nothing is sent, and no tool runs.
    ///
    /// # Errors
    /// When a tool, a schema, the profile or a directory cannot be used, and when
    /// [`Limits::max_cost`] is set without the price of each model and fallback.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        let profile = self.profile?;
        check_prices(&profile.limits, &self.model, &self.fallbacks)?;
        let is_built_in = self.files.is_some() || self.commands.is_some();
        if self.system.is_empty() && (self.is_profile_chosen || is_built_in) {
            self.system.extend(profile.system_prompt.clone());
        }
        let built_in = add_built_in(&mut self.judged, self.commands, self.files)?;
        let (judge, directory) = built_in.map(|it| (it.gate, it.directory)).unzip();
        let gate = self.gate.unwrap_or_else(|| {
            let own = self.own.iter().map(|tool| tool.spec().name);
            Arc::new(OwnToolsRun::new(own, judge))
        });
        let tools = Toolbox::new(self.own.into_iter().chain(self.judged))?;
        check_tools(&tools)?;
        self.response_schema.as_ref().map_or(Ok(()), check_answer)?;
        let parts = Parts {
            model: self.model,
            fallbacks: self.fallbacks,
            tools,
            gate,
            approver: self.approver,
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

/// What comes with the built-in tools.
struct BuiltIn {
    /// Knows what they do.
    gate: Arc<dyn Gate>,
    /// Where they work.
    directory: PathBuf,
}

/// Adds the built-in tools, where there are any.
fn add_built_in(
    tools: &mut Vec<Arc<dyn Tool>>,
    commands: Option<ExecOptions>,
    files: Option<PathBuf>,
) -> Result<Option<BuiltIn>, BuildError> {
    let mut directories = Vec::new();
    if let Some(mut options) = commands {
        options.directory = canonical(&options.directory)?;
        std::fs::create_dir_all(&options.state_dir)
            .map_err(|source| unusable(&options.state_dir, source))?;
        directories.push(options.directory.clone());
        tools.push(Arc::new(ExecTool::exec(options)));
    }
    if let Some(directory) = files {
        let directory = canonical(&directory)?;
        let workspace = Arc::new(Workspace::open(&directory)?);
        tools.extend(file_tools(&workspace));
        directories.push(directory);
    }
    let Some((current, more)) = directories.split_first() else {
        return Ok(None);
    };
    let allowed = AllowedDirs::new(current, more).map_err(|source| unusable(current, source))?;
    let gate = StandardGate::new(GateOptions::new(allowed))?;
    Ok(Some(BuiltIn {
        gate: Arc::new(gate),
        directory: current.clone(),
    }))
}

fn canonical(path: &Path) -> Result<PathBuf, BuildError> {
    path.canonicalize().map_err(|source| unusable(path, source))
}

fn unusable(path: &Path, source: io::Error) -> BuildError {
    BuildError::Directory {
        path: path.to_owned(),
        source,
    }
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

fn check_tools(tools: &Toolbox) -> Result<(), BuildError> {
    for spec in tools.specs().iter() {
        if !is_name(&spec.name) {
            let name = spec.name.clone();
            return Err(BuildError::ToolName { name });
        }
        if spec.parameters.get("type").is_none_or(|it| it != "object") {
            let tool = spec.name.clone();
            return Err(BuildError::Arguments { tool });
        }
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

/// `[A-Za-z_][A-Za-z0-9_-]{0,63}`, which every provider takes.
fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= 64 && name.starts_with(begins) && name.chars().all(is_word)
}

//! Rules: which calls are allowed, asked about or denied, as a user or a project writes them.
//!
//! Rules are plain data here; a host with a reader of TOML reads their files. If several rules fit a
//! call, the strictest one counts. A rule that allows must fit every part of a command that does more than look;
//! one that asks or denies must fit any part, and needs approval if it may or may not fit.

mod bounds;
mod denials;
mod fit;
mod host;
mod path_patterns;
mod reached;
mod sets;

pub use denials::{DENIALS, Denial};
pub use sets::{SETS_MAX, UnknownSet};

use crate::analysis::{AllowedDirs, Analysis, COMMAND_BYTES_MAX, analyse};
use bounds::check_bounds;
use glob::Pattern;
use host::Page;
use path_patterns::{fixed_part, path_pattern, whole_place};
use reached::Reached;
use rondo_core::shown;
use rondo_types::{Grant, GrantScope, ToolKind, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sets::Sets;
use std::cmp::Reverse;
use std::fmt;
use std::path::{Path, PathBuf};

/// The pattern of all files of the directory that a rule's paths are relative to.
const ALL_FILES: &str = "**";
/// The most rules that count at once.
pub const RULES_MAX: usize = 1_000;
/// The digits of a SHA-256 in hex.
const HASH_DIGITS: usize = 64;
/// The most words of a rule's command, paths and examples each.
const WORDS_MAX: usize = 64;
/// The longest message and the longest word of a rule, in bytes.
const TEXT_BYTES_MAX: usize = 1_000;
/// The argument of file tools that names their file.
pub(crate) const PATH_ARGUMENT: &str = "path";

/// Decision about a call that fits a rule, from the laxest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It runs without asking.
    Allow,
    /// It is asked about.
    Ask,
    /// It does not run, and the model reads why.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// One text, or a list of which any will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnyOf {
    /// This one.
    One(String),
    /// Any of them.
    Many(Vec<String>),
}

impl AnyOf {
    fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    fn has(&self, text: &str) -> bool {
        self.texts().iter().any(|it| it == text)
    }
}

/// A rule as it is written. It needs a tool, a command or a path; if it has several of them, all must fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// A name for it, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The names of tools; `*` is any, and at the end of a name any rest of it, as in `mcp__git__*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<AnyOf>,
    /// The words that a command begins with; the first one is the program's name. In a rule that asks or denies, `*` at
    /// its end is any rest of the name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<AnyOf>,
    /// Patterns of files: `*` is any part of a name, `**` any directories. They are relative to the working
    /// directory, and `~/` is the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<AnyOf>,
    /// Hosts of pages that tools fetch: `docs.rs`, or `*.docs.rs` for those below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<AnyOf>,
    /// Decision about the call.
    pub decision: Decision,
    /// Decision about a command that may or may not fit: `ask` by default, or `deny`.
    /// Only for rules that deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_unclear: Option<Decision>,
    /// Message for the model if the call is denied, and for the person if it needs approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Commands, or paths if the rule has no command, that must fit it.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Those that must not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<String>,
}

impl RuleSpec {
    /// Returns a rule that says nothing yet about which calls fit it.
    #[must_use]
    pub fn new(decision: Decision) -> Self {
        Self {
            id: None,
            tool: None,
            command: Vec::new(),
            path: None,
            host: None,
            decision,
            when_unclear: None,
            message: None,
            matches: Vec::new(),
            not_match: Vec::new(),
        }
    }
}

/// Hosts that commands may reach by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    allowed: Vec<String>,
    /// Of rules that ask or deny: no question can be asked while a command runs.
    refused: Vec<String>,
}

impl Hosts {
    /// Returns whether a host may be reached. Its name is in lower case, and no address.
    #[must_use]
    pub fn allow(&self, host: &str) -> bool {
        let names = |patterns: &[String]| patterns.iter().any(|it| host::fits(it, host));
        names(&self.allowed) && !names(&self.refused)
    }
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {number}{}: {problem}", .id.as_ref().map_or(String::new(), |id| format!(" (`{id}`)")))]
pub struct RuleError {
    /// Its number in its list, from 1.
    pub number: usize,
    /// Id of the rule.
    pub id: Option<String>,
    /// Description of the problem and its remedy.
    pub problem: String,
}

/// A rule that is in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    spec: RuleSpec,
    origin: String,
    /// The set that it is in force with.
    set: Option<String>,
    paths: Vec<Pattern>,
    /// The path before the first part of each that is a pattern.
    fixed: Vec<PathBuf>,
    /// The files and directories that are meant as a whole.
    places: Vec<PathBuf>,
}

/// The directories that the paths of rules are relative to.
#[derive(Debug, Clone, Copy)]
pub struct RuleDirs<'a> {
    /// The working directory.
    pub working: &'a Path,
    /// The home directory, if there is one.
    pub home: Option<&'a Path>,
}

/// Permanent grant of the user, as written: one exact command, commands that begin with these words and are safe
/// to extend, or every call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantSpec {
    /// The tool.
    pub tool: String,
    /// The words that commands begin with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Shortened form of the granted call, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// SHA-256, in hex, of that call with its directory, variables and files: what counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// All rules that are in force, and the denials that are built in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Those that are not in force, since no profile named them yet.
    sets: Sets,
    /// The ids of built-in denials that the user lifted.
    lifted: Vec<String>,
    home: Option<PathBuf>,
    grants: Vec<Grant>,
}

/// Verdict of the rules about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Decision about the call.
    pub decision: Decision,
    /// The rule, for display: its id or text, and where it comes from.
    pub rule: String,
    /// Message for the person or the model.
    pub reason: String,
    /// Set if it holds even if all calls are allowed.
    pub holds_always: bool,
    /// Set if the call certainly fits the rule.
    pub is_certain: bool,
    /// Set if a sandbox that hides the files of the rule is as good: the rule denies files, and the command may or may
    /// not reach them.
    pub yields_to_hiding: bool,
}

impl Ruling {
    /// The greater, the more it counts.
    fn weight(&self) -> (Decision, bool, bool) {
        (self.decision, self.holds_always, self.is_certain)
    }
}

/// Returns whether a name in a rule or a setting means a tool: it is the tool's own, or the text before a `*` at its
/// end is how the tool's begins. `mcp__git` means all tools of that server.
pub(crate) fn names_tool(name: &str, tool: &str) -> bool {
    if let Some(begin) = name.strip_suffix('*') {
        return tool.starts_with(begin);
    }
    let of_server = || {
        tool.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with("__"))
    };
    name == tool || name.starts_with("mcp__") && of_server()
}

impl Rules {
    /// Takes rules of one origin, such as the path of their file, and checks their examples.
    ///
    /// # Errors
    /// When a rule says nothing that a call can fit, a bound is passed, a pattern cannot be read, or an example
    /// does not hold.
    pub fn add(
        &mut self,
        specs: Vec<RuleSpec>,
        origin: &str,
        dirs: RuleDirs<'_>,
    ) -> Result<(), RuleError> {
        self.home = dirs.home.map(Path::to_owned);
        for (index, spec) in specs.into_iter().enumerate() {
            let id = spec.id.clone();
            let error = |problem| RuleError {
                number: index + 1,
                id,
                problem,
            };
            if self.written() >= RULES_MAX {
                return Err(error(format!("there are more than {RULES_MAX} rules")));
            }
            let rule = Rule::new(spec, origin, dirs).map_err(error)?;
            self.rules.push(rule);
        }
        Ok(())
    }

    /// Lifts a denial that is built in.
    ///
    /// # Errors
    /// When there is none with this id; the error names those that there are.
    pub fn lift(&mut self, id: &str) -> Result<(), String> {
        if !DENIALS.iter().any(|denial| denial.id == id) {
            let ids: Vec<&str> = DENIALS.iter().map(|denial| denial.id).collect();
            return Err(format!(
                "there is no built-in denial `{id}`, only {}",
                ids.join(", ")
            ));
        }
        self.lifted.push(id.to_owned());
        Ok(())
    }

    /// Adds the user's permanent permissions.
    ///
    /// # Errors
    /// When a bound is passed, or a grant says nothing that can be allowed.
    pub fn grant(&mut self, specs: Vec<GrantSpec>) -> Result<(), String> {
        for (index, spec) in specs.into_iter().enumerate() {
            let number = index + 1;
            if self.grants.len() >= Grant::COUNT_MAX {
                return Err(format!("there are more than {} grants", Grant::COUNT_MAX));
            }
            let scope = spec
                .scope()
                .map_err(|why| format!("grant {number}: {why}"))?;
            self.grants.push(Grant {
                scope,
                despite_outside_text: false,
            });
        }
        Ok(())
    }

    /// Returns the user's permanent permissions.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns the rules that are in force, in the order in which they were added.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns whether a rule is about files, so that a judgment looks at the disk.
    pub(crate) fn have_paths(&self) -> bool {
        self.rules.iter().any(|rule| rule.spec.path.is_some())
    }

    /// Returns whether a rule denies a file to one of these tools; `path` is absolute and has no links. A directory of which
    /// a rule denies all that is in it is denied too.
    #[must_use]
    pub fn denies_file(&self, tools: &[&str], path: &Path) -> bool {
        self.denying_files(tools).any(|rule| {
            let mut places = rule.places.iter();
            places.any(|it| path.starts_with(it))
                || rule.paths.iter().any(|it| it.matches_path(path))
        })
    }

    /// Returns the files and directories, as a whole, that rules deny to one of these tools by their plain paths.
    pub fn denied_places<'a>(&'a self, tools: &'a [&str]) -> impl Iterator<Item = &'a Path> {
        let rules = self.denying_files(tools);
        rules.flat_map(|rule| rule.places.iter().map(PathBuf::as_path))
    }

    /// Returns the directories below which rules deny files to one of these tools by patterns.
    pub fn denied_below<'a>(&'a self, tools: &'a [&str]) -> impl Iterator<Item = &'a Path> {
        let has_patterns = |rule: &&Rule| rule.places.len() < rule.paths.len();
        let rules = self.denying_files(tools).filter(has_patterns);
        rules.flat_map(|rule| rule.fixed.iter().map(PathBuf::as_path))
    }

    /// Returns whether rules deny files to one of these tools.
    #[must_use]
    pub fn deny_files(&self, tools: &[&str]) -> bool {
        self.denying_files(tools).next().is_some()
    }

    fn denying_files<'a>(&'a self, tools: &'a [&str]) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| {
            let is_meant = tools.iter().any(|tool| rule.names(tool));
            rule.decision() == Decision::Deny
                && rule.spec.command.is_empty()
                && rule.spec.path.is_some()
                && is_meant
        })
    }

    /// Returns the built-in denials that are in force.
    pub fn denials(&self) -> impl Iterator<Item = &'static Denial> {
        DENIALS
            .iter()
            .filter(|denial| !self.lifted.iter().any(|id| id == denial.id))
    }

    /// Returns the decision of the rules about a call that runs no command.
    pub(crate) fn of_call(
        &self,
        spec: &ToolSpec,
        arguments: &Value,
        dirs: &AllowedDirs,
    ) -> Option<Ruling> {
        let path = arguments.get(PATH_ARGUMENT).and_then(Value::as_str);
        let page = match spec.kind {
            ToolKind::Fetch => Page::of(arguments),
            _ => Page::None,
        };
        let fits = |rule: &&Rule| {
            rule.names(&spec.name)
                && rule.spec.command.is_empty()
                && rule.fits_page(&page)
                && (rule.spec.path.is_none()
                    || path.is_some_and(|path| rule.fits_path(path, dirs.current())))
        };
        let rule = self
            .rules
            .iter()
            .filter(fits)
            .max_by_key(|it| it.decision());
        rule.map(Rule::ruling)
    }

    /// Returns the decision of the rules that ask or deny about a command. Those that yield to a sandbox that hides
    /// their files are
    /// left out if `is_hidden` is true for the command.
    pub(crate) fn strict(
        &self,
        tool: &str,
        command: &str,
        analysis: &Analysis,
        dirs: &AllowedDirs,
        is_hidden: impl Fn() -> bool,
    ) -> Option<Ruling> {
        let place = fit::CommandDirectory {
            directory: dirs.current(),
            home: self.home.as_deref(),
        };
        let denial = denials::find(command, analysis, &place, &self.lifted);
        if let Some(denial) = denial {
            return Some(denial.ruling());
        }
        let rules = self.rules.iter().filter(|rule| rule.names(tool));
        let reached = match self.have_paths() {
            true => reached::find(command, &place),
            false => reached::Reached::default(),
        };
        let rulings = rules.filter_map(|rule| rule.strict((command, &reached), analysis, &place));
        let rulings = rulings.filter(|it| !it.yields_to_hiding || !is_hidden());
        let too_long = (command.len() > COMMAND_BYTES_MAX).then(too_long);
        let all = rulings.chain(too_long);
        all.min_by_key(|ruling| Reverse(ruling.weight()))
    }

    /// Returns the hosts that the commands of a tool may reach; nothing if no rule allows any. A rule that is for other
    /// tools does not count.
    #[must_use]
    pub fn hosts(&self, tool: &str) -> Option<Hosts> {
        let is_meant = |rule: &&Rule| rule.spec.host.is_some() && rule.names(tool);
        let (allowed, refused): (Vec<&Rule>, Vec<&Rule>) = self
            .rules
            .iter()
            .filter(is_meant)
            .partition(|rule| rule.decision() == Decision::Allow);
        let patterns = |rules: Vec<&Rule>| {
            let hosts = rules.into_iter().filter_map(|it| it.spec.host.as_ref());
            hosts.flat_map(AnyOf::texts).cloned().collect::<Vec<_>>()
        };
        (!allowed.is_empty()).then(|| Hosts {
            allowed: patterns(allowed),
            refused: patterns(refused),
        })
    }

    /// Returns the rule that allows a simple command, of which these words are known.
    pub(crate) fn allowing(&self, tool: &str, words: &[&str]) -> Option<String> {
        let allows = |rule: &&Rule| {
            rule.decision() == Decision::Allow
                && rule.names(tool)
                && rule.spec.path.is_none()
                && rule.spec.host.is_none()
                && fit::begins(&rule.spec.command, words)
        };
        self.rules.iter().find(allows).map(Rule::name)
    }
}

/// Over the bound on what is looked through for built-in denials, it is asked about, even if all calls are allowed.
fn too_long() -> Ruling {
    Ruling {
        decision: Decision::Ask,
        rule: "built in".to_owned(),
        reason: format!(
            "it is longer than {} KiB, the most that is checked",
            COMMAND_BYTES_MAX >> 10
        ),
        holds_always: true,
        is_certain: true,
        yields_to_hiding: false,
    }
}

impl GrantSpec {
    /// Returns a grant as it is written.
    #[must_use]
    pub fn of(grant: &Grant) -> Self {
        let bare = |tool: &String| Self {
            tool: tool.clone(),
            command: Vec::new(),
            runs: None,
            hash: None,
        };
        match &grant.scope {
            GrantScope::Tool { tool } => bare(tool),
            // No file of rules has it: without a tool it is refused there.
            GrantScope::Sandbox { .. } => bare(&String::new()),
            GrantScope::Commands { tool, prefix } => Self {
                command: prefix.clone(),
                ..bare(tool)
            },
            GrantScope::Call { tool, hash, shown } => Self {
                runs: Some(shown.clone()),
                hash: Some(hash.clone()),
                ..bare(tool)
            },
        }
    }

    fn scope(self) -> Result<GrantScope, String> {
        let is_hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let tool = self.tool;
        if tool.is_empty() {
            return Err("it needs a `tool`".to_owned());
        }
        match self.hash {
            Some(hash) if hash.len() != HASH_DIGITS || !hash.bytes().all(is_hex) => Err(format!(
                "its `hash` is not {HASH_DIGITS} hexadecimal digits"
            )),
            Some(_) if !self.command.is_empty() => {
                Err("it has a `command` or a `hash`, not both".to_owned())
            }
            Some(hash) => Ok(GrantScope::Call {
                tool,
                hash,
                shown: self.runs.unwrap_or_default(),
            }),
            None if self.runs.is_some() => {
                Err("`runs` counts by its `hash`, which is missing".to_owned())
            }
            None if self.command.is_empty() => Ok(GrantScope::Tool { tool }),
            None => Ok(GrantScope::Commands {
                tool,
                prefix: self.command,
            }),
        }
    }
}

impl Rule {
    fn new(spec: RuleSpec, origin: &str, dirs: RuleDirs<'_>) -> Result<Self, String> {
        check_bounds(&spec)?;
        let paths = spec.path.iter().flat_map(AnyOf::texts);
        // A rule about all files of its directory is about what is named: any search would go through some of them.
        let fixed = paths.clone().filter(|text| *text != ALL_FILES);
        let fixed = fixed.map(|text| fixed_part(text, dirs)).collect();
        let places = paths.clone();
        let rule = Self {
            fixed,
            places: places.filter_map(|text| whole_place(text, dirs)).collect(),
            paths: paths
                .map(|text| path_pattern(text, dirs))
                .collect::<Result<_, _>>()?,
            origin: origin.to_owned(),
            set: None,
            spec,
        };
        rule.check_examples(dirs.working)?;
        Ok(rule)
    }

    /// Returns the rule as it was written.
    #[must_use]
    pub fn spec(&self) -> &RuleSpec {
        &self.spec
    }

    /// Returns the origin of the rule.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the set that it is in force with, if it is one of a set.
    #[must_use]
    pub fn set(&self) -> Option<&str> {
        self.set.as_deref()
    }

    fn decision(&self) -> Decision {
        self.spec.decision
    }

    /// Returns its id, or else what it is about, and where it comes from.
    fn name(&self) -> String {
        format!("{} ({})", self.subject(), self.origin)
    }

    /// Returns its id, or else what it is about.
    #[must_use]
    pub fn subject(&self) -> String {
        if let Some(id) = &self.spec.id {
            return shown::line(id);
        }
        let any = |any: &AnyOf| any.texts().join("|");
        let words: Vec<String> = self.spec.command.iter().map(any).collect();
        let tool = self.spec.tool.as_ref().map(any);
        let path = self.spec.path.as_ref().map(any);
        let host = self.spec.host.as_ref().map(any);
        let command = (!words.is_empty()).then(|| words.join(" "));
        let parts: Vec<String> = [tool, command, path, host].into_iter().flatten().collect();
        shown::line(&parts.join(" "))
    }

    /// If the host is unknown, a rule that restricts fits, and one that allows does not.
    fn fits_page(&self, page: &Page) -> bool {
        let Some(hosts) = &self.spec.host else {
            return true;
        };
        match page {
            Page::None => false,
            Page::At(at) => hosts.texts().iter().any(|it| host::fits(it, at)),
            Page::Hidden => self.decision() != Decision::Allow,
        }
    }

    fn names(&self, tool: &str) -> bool {
        let names = self.spec.tool.as_ref();
        names.is_none_or(|names| names.texts().iter().any(|it| names_tool(it, tool)))
    }

    fn ruling(&self) -> Ruling {
        let reason = self.spec.message.clone();
        Ruling {
            decision: self.decision(),
            rule: self.name(),
            reason: reason.unwrap_or_else(|| match self.decision() {
                Decision::Allow => "a rule allows it".to_owned(),
                Decision::Ask => format!("the rule `{}` asks about it", self.subject()),
                Decision::Deny => format!("the rule `{}` denies it", self.subject()),
            }),
            holds_always: self.decision() == Decision::Deny,
            is_certain: true,
            yields_to_hiding: false,
        }
    }

    /// Returns the decision of a rule that asks or denies about a command.
    fn strict(
        &self,
        (command, reached): (&str, &Reached),
        analysis: &Analysis,
        place: &fit::CommandDirectory<'_>,
    ) -> Option<Ruling> {
        if self.decision() == Decision::Allow || self.spec.host.is_some() {
            return None;
        }
        let has_command = !self.spec.command.is_empty();
        let has_path = self.spec.path.is_some();
        let is_unknown = analysis.is_unknown();
        let fits_command = !has_command
            || fit::may_run(&self.spec.command, analysis)
            || (is_unknown && fit::may_name(&self.spec.command, command));
        let fits_paths =
            !has_path || self.fits_any_file(analysis, place) || self.fits_named(reached, place);
        if fits_command && fits_paths {
            return Some(self.ruling());
        }
        let may_fit_command = fits_command
            || analysis.has_hidden_names()
            || fit::may_be_expanded(&self.spec.command, analysis)
            || fit::may_be_completed(&self.spec.command, analysis);
        let is_in_history = has_path && self.lies_below(&reached.in_history);
        let is_place = |path: &PathBuf| self.places.iter().any(|it| path.starts_with(it));
        let is_within =
            has_path && (self.lies_below(&reached.whole) || reached.named.iter().any(is_place));
        let is_unclear = !self.fixed.is_empty() && reached.is_unclear;
        let may_fit_paths = fits_paths || is_unknown || is_in_history || is_within || is_unclear;
        (may_fit_command && may_fit_paths).then(|| Ruling {
            decision: self.spec.when_unclear.unwrap_or(Decision::Ask),
            rule: self.name(),
            reason: self.doubt(is_in_history, is_within),
            holds_always: self.decision() == Decision::Deny,
            is_certain: false,
            yields_to_hiding: !has_command && !is_in_history && self.decision() == Decision::Deny,
        })
    }

    /// Says why it is not known whether a command fits.
    fn doubt(&self, is_in_history: bool, is_within: bool) -> String {
        let subject = self.subject();
        match (is_in_history, is_within) {
            (true, _) => format!(
                "it may show the repository's versions of files that a rule names: `{subject}`"
            ),
            (false, true) => {
                format!("it reads a directory with files that a rule names: `{subject}`")
            }
            (false, false) => {
                format!("it is not known what it runs and reads, and a rule names `{subject}`")
            }
        }
    }

    fn fits_named(&self, reached: &Reached, place: &fit::CommandDirectory<'_>) -> bool {
        let mut named = reached.named.iter();
        named.any(|path| self.fits_path(path, place.directory))
    }

    /// Returns whether files of the rule may lie below one of these directories.
    fn lies_below(&self, directories: &[PathBuf]) -> bool {
        directories.iter().any(|directory| {
            let mut fixed = self.fixed.iter();
            fixed.any(|fixed| fixed.starts_with(directory) || directory.starts_with(fixed))
        })
    }

    fn fits_any_file(&self, analysis: &Analysis, place: &fit::CommandDirectory<'_>) -> bool {
        let mut files = fit::files(analysis).filter_map(|word| place.resolve(word));
        files.any(|file| self.fits_path(&file, place.directory))
    }

    /// Wherever links lead, a rule that allows must fit; one that restricts fits the name or the file.
    fn fits_path(&self, path: impl AsRef<Path>, directory: &Path) -> bool {
        let places = fit::places(path.as_ref(), directory);
        let fits = |place: &PathBuf| self.paths.iter().any(|it| it.matches_path(place));
        match self.decision() {
            Decision::Allow => places.iter().all(fits),
            Decision::Ask | Decision::Deny => places.iter().any(fits),
        }
    }

    fn check_examples(&self, directory: &Path) -> Result<(), String> {
        let root = AllowedDirs::new(Path::new("/"), &[]).map_err(|err| err.to_string())?;
        let fits = |example: &str| {
            if self.spec.command.is_empty() {
                return self.fits_path(example, directory);
            }
            let analysis = analyse(example, &root);
            match self.decision() {
                Decision::Allow => {
                    analysis.any_fits(|words| fit::begins(&self.spec.command, words))
                }
                Decision::Ask | Decision::Deny => fit::may_run(&self.spec.command, &analysis),
            }
        };
        if let Some(example) = self.spec.matches.iter().find(|it| !fits(it)) {
            return Err(format!(
                "its example `{example}` of `match` does not fit it"
            ));
        }
        if let Some(example) = self.spec.not_match.iter().find(|it| fits(it)) {
            return Err(format!("its example `{example}` of `not_match` fits it"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_tool_a_beginning_or_all_tools_of_a_server() {
        for (name, tool, expected) in [
            ("*", "anything", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("mcp__git__*", "mcp__git__push", true),
            ("mcp__git__*", "mcp__github__push", false),
            ("mcp__git", "mcp__git__push", true),
            ("mcp__git", "mcp__github__push", false),
            ("mcp__git", "mcp__git", true),
            ("git", "git__push", false),
        ] {
            assert_eq!(names_tool(name, tool), expected, "{name} {tool}");
        }
    }
}

//! Files that neither the tools nor commands in the sandbox may read.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::policy;
use crate::settings::Settings;
use rondo_exec::ExecTool;
use rondo_policy::rules::{AnyOf, Decision, RuleDirs, RuleError, RuleSpec, Rules};
use rondo_sandbox::can_be_hidden;
use rondo_tools::{DeniedFiles, HiddenPaths, IGNORE_FILE, READING_TOOL_NAMES, Workspace};
use rondo_types::Profile;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many files one rule names; the bound of a rule is higher.
const FILES_OF_RULE: usize = 32;

/// Hides what the settings, `.rondoignore` and rules say from the tools over a workspace, and returns what must be
/// hidden from commands.
///
/// # Errors
/// When a `.rondoignore` cannot be used, or the profile names a set of rules that is not defined.
pub(crate) fn applied(
    workspace: Workspace,
    profile: &Profile,
    settings: &Settings,
) -> Result<(Workspace, HiddenFromCommands)> {
    let rules = Arc::new(policy::under(profile, settings)?);
    let workspace = hiding(workspace, settings, &rules)?;
    let hidden = from_commands(&workspace, &rules);
    Ok((workspace, hidden))
}

fn hiding(workspace: Workspace, settings: &Settings, rules: &Arc<Rules>) -> Result<Workspace> {
    let patterns: Vec<String> = settings
        .values
        .ignored_files
        .iter()
        .flatten()
        .cloned()
        .collect();
    let denied = rules.deny_files(&READING_TOOL_NAMES).then(|| {
        let rules = Arc::clone(rules);
        DeniedFiles::new(move |path| rules.denies_file(&READING_TOOL_NAMES, path))
    });
    workspace
        .hiding(&patterns, denied.as_ref())
        .map_err(|err| SetupError::caused(SetupErrorKind::Config, err))
}

/// Files that are hidden from commands.
#[derive(Debug, Default, Clone)]
pub(crate) struct HiddenFromCommands {
    /// The files and directories.
    pub(crate) places: Vec<PathBuf>,
    /// Those of them that are ignored.
    pub(crate) ignored: Vec<PathBuf>,
    /// Set if these are all in the directories: otherwise there are too many files.
    pub(crate) is_all_found: bool,
    /// Set if these are all that rules deny to commands.
    pub(crate) is_complete: bool,
}

/// Looks for what is hidden in the directories of a workspace, and takes what rules deny elsewhere.
fn from_commands(workspace: &Workspace, rules: &Rules) -> HiddenFromCommands {
    let HiddenPaths {
        ignored,
        denied,
        closed,
        is_complete: is_all_found,
    } = workspace.find_hidden();
    // A rule for the tools that read alone says nothing about commands.
    let denied = denied
        .into_iter()
        .filter(|it| rules.denies_file(&ExecTool::NAMES, it));
    let directories: Vec<PathBuf> = workspace.dirs().map(|(path, _)| path.to_owned()).collect();
    let is_searched = |it: &Path| {
        directories
            .iter()
            .any(|directory| it.starts_with(directory))
    };
    let elsewhere: Vec<PathBuf> = rules
        .denied_places(&ExecTool::NAMES)
        .map(Path::to_owned)
        .collect();
    let is_complete = is_all_found
        && elsewhere.iter().all(|it| can_be_hidden(it, &directories))
        && rules.denied_below(&ExecTool::NAMES).all(is_searched);
    let places = ignored.iter().cloned().chain(denied).chain(closed);
    let places = places.chain(elsewhere);
    HiddenFromCommands {
        places: places.collect(),
        ignored,
        is_all_found,
        is_complete,
    }
}

/// Adds rules that deny the ignored files, so that a call or a command that names one is denied wherever it runs.
///
/// # Errors
/// When there are too many rules.
pub(crate) fn deny(
    rules: &mut Rules,
    ignored: &[PathBuf],
    dirs: RuleDirs<'_>,
) -> std::result::Result<(), RuleError> {
    let patterns: Vec<String> = ignored.iter().flat_map(|it| patterns(it)).collect();
    // There are two of each file.
    let specs = patterns.chunks(2 * FILES_OF_RULE).map(|them| RuleSpec {
        path: Some(AnyOf::Many(them.to_vec())),
        message: Some(format!("it is ignored by {IGNORE_FILE}")),
        ..RuleSpec::new(Decision::Deny)
    });
    rules.add(specs.collect(), IGNORE_FILE, dirs)
}

/// Returns the patterns of a file and of all below it; none for a name that is not text, which the tools check themselves.
fn patterns(path: &Path) -> Vec<String> {
    let is_plain = |text: &&str| !text.contains(['*', '?', '[', ']']);
    let text = path.to_str().filter(is_plain);
    text.map_or_else(Vec::new, |it| vec![it.to_owned(), format!("{it}/**")])
}

//! The built-in tools, `exec` and the file tools, as the crate's features enable them.

use crate::builder::BuildError;
use rondo_core::Gate;
use std::path::PathBuf;
use std::sync::Arc;

/// Which built-in tools an agent gets.
#[derive(Default)]
pub(crate) struct BuiltIn {
    #[cfg(feature = "exec")]
    pub(crate) commands: Option<rondo_exec::ExecOptions>,
    /// The directory that the file tools are confined to.
    #[cfg(feature = "files")]
    pub(crate) files: Option<PathBuf>,
}

/// The gate and the directory of the built-in tools that were added.
pub(crate) struct BuiltInTools {
    /// Judges their calls.
    pub(crate) gate: Arc<dyn Gate>,
    /// Their working directory.
    pub(crate) directory: PathBuf,
}

#[cfg(not(any(feature = "exec", feature = "files")))]
impl BuiltIn {
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "without the tools there is nothing to add"
    )]
    pub(crate) fn install(
        self,
        _: &mut Vec<Arc<dyn rondo_core::Tool>>,
        _: &rondo_types::Profile,
    ) -> Result<Option<BuiltInTools>, BuildError> {
        Ok(None)
    }
}

#[cfg(any(feature = "exec", feature = "files"))]
mod install {
    use super::{BuildError, BuiltIn, BuiltInTools};
    use rondo_core::Tool;
    use rondo_policy::rules::Rules;
    use rondo_policy::{AllowedDirs, GateOptions, StandardGate, ToolPatterns};
    use rondo_types::Profile;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    impl BuiltIn {
        /// Adds the requested tools to `tools`; returns `None` when none is requested.
        pub(crate) fn install(
            self,
            tools: &mut Vec<Arc<dyn Tool>>,
            profile: &Profile,
        ) -> Result<Option<BuiltInTools>, BuildError> {
            let mut directories = Vec::new();
            #[cfg(feature = "exec")]
            if let Some(options) = self.commands {
                directories.push(add_commands(tools, options)?);
            }
            #[cfg(feature = "files")]
            if let Some(directory) = self.files {
                directories.push(add_files(tools, &directory)?);
            }
            let Some((current, more)) = directories.split_first() else {
                return Ok(None);
            };
            let allowed =
                AllowedDirs::new(current, more).map_err(|source| unusable(current, source))?;
            let gate = StandardGate::new(gate_options(allowed, profile)?);
            Ok(Some(BuiltInTools {
                gate: Arc::new(gate),
                directory: current.clone(),
            }))
        }
    }

    /// Returns the options of a gate that keeps to the rules of the profile.
    fn gate_options(allowed: AllowedDirs, profile: &Profile) -> Result<GateOptions, BuildError> {
        let wrong = |problem: String| BuildError::Rules { problem };
        let mut rules = Rules::default();
        for name in &profile.rule_sets {
            let known = rules.put_in_force(name, &profile.name);
            known.map_err(|unknown| wrong(unknown.to_string()))?;
        }
        rules.forbid_programs(&profile.forbidden_programs, &profile.name);
        let patterns = ToolPatterns::parse(&profile.allowed_tools);
        let mut options = GateOptions::new(allowed);
        options.allowed_tools = patterns.map_err(|problem| wrong(problem.to_string()))?;
        options.rules = Arc::new(rules);
        Ok(options)
    }

    #[cfg(feature = "exec")]
    fn add_commands(
        tools: &mut Vec<Arc<dyn Tool>>,
        mut options: rondo_exec::ExecOptions,
    ) -> Result<PathBuf, BuildError> {
        let directory = canonical(&options.directory)?;
        options.directory.clone_from(&directory);
        std::fs::create_dir_all(&options.state_dir)
            .map_err(|source| unusable(&options.state_dir, source))?;
        tools.push(Arc::new(rondo_exec::ExecTool::exec(options)));
        Ok(directory)
    }

    #[cfg(feature = "files")]
    fn add_files(tools: &mut Vec<Arc<dyn Tool>>, directory: &Path) -> Result<PathBuf, BuildError> {
        let directory = canonical(directory)?;
        let workspace = Arc::new(rondo_tools::Workspace::open(&directory)?);
        tools.extend(rondo_tools::file_tools(&workspace));
        Ok(directory)
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
}

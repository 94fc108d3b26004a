//! Keeps the programs of skills from running whose folder is not trusted.

use super::places::{SkillPlace, SkillSource};
use rondo_exec::ExecTool;
use rondo_policy::rules::{AnyOf, Decision, RuleDirs, RuleError, RuleSpec, Rules};
use std::path::Path;

/// Source of the rules, for display.
const ORIGIN: &str = "built in";
/// The id of the rules.
const ID: &str = "untrusted-skills";
/// Message to the model if a rule denies a command.
const MESSAGE: &str = "it names a file of a skill in a folder that is not trusted: read it with `read_file`; \
its programs run once the user has run `rondo trust`";

/// Adds rules that deny commands which name a file of such a skill. They hold whatever else is allowed.
///
/// # Errors
/// When there are too many rules, as a repository can bring about; then no command may run.
pub(crate) fn forbid(
    rules: &mut Rules,
    places: &[SkillPlace],
    home: Option<&Path>,
) -> Result<(), RuleError> {
    let untrusted = places.iter().filter(|it| it.source == SkillSource::Project);
    for place in untrusted {
        let path = place.path();
        let real = path.canonicalize().ok().filter(|real| *real != path);
        for directory in [Some(path), real].into_iter().flatten() {
            let working = &directory;
            rules.add(vec![rule()], ORIGIN, RuleDirs { working, home })?;
        }
    }
    Ok(())
}

fn rule() -> RuleSpec {
    RuleSpec {
        id: Some(ID.to_owned()),
        tool: Some(AnyOf::Many(ExecTool::NAMES.map(str::to_owned).to_vec())),
        path: Some(AnyOf::One("**".to_owned())),
        message: Some(MESSAGE.to_owned()),
        ..RuleSpec::new(Decision::Deny)
    }
}

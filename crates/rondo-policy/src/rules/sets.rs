//! Sets of rules: they count under the profiles that name them, and in those that extend these. A set only restricts, so
//! that naming one more never allows anything.

use super::{AnyOf, Decision, RULES_MAX, Rule, RuleDirs, RuleError, RuleSpec, Rules};
use std::collections::BTreeMap;

/// The most sets that are defined.
pub const SETS_MAX: usize = 64;
/// The longest name of a set, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Source of the sets that are part of the program.
const BUILT_IN: &str = "built in";
/// The set of the chat gateway.
const DANGEROUS_PROGRAMS: &str = "dangerous-programs";

/// A profile names a set of rules that is not defined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("profile `{profile}` names the rule set `{name}`, which is not defined")]
pub struct UnknownSet {
    /// The name of the set.
    pub name: String,
    /// The profile.
    pub profile: String,
    /// The names of those that are defined.
    pub known: Vec<String>,
}

impl Rules {
    /// Defines a set of rules of one origin, such as the path of their file. It counts once it is
    /// [put in force](Self::put_in_force).
    ///
    /// # Errors
    /// When its name is none or is taken, it has no rule, one of them allows or cannot be used, or a bound is passed.
    pub fn define(
        &mut self,
        name: &str,
        specs: Vec<RuleSpec>,
        origin: &str,
        dirs: RuleDirs<'_>,
    ) -> Result<(), String> {
        let error = |problem: String| format!("the rule set `{name}`: {problem}");
        check_name(name).map_err(error)?;
        if built_in(name).is_some() || self.sets.contains_key(name) {
            let problem = "a rule set of this name already exists; choose another name";
            return Err(error(problem.to_owned()));
        }
        if self.sets.len() >= SETS_MAX {
            return Err(error(format!("there are more than {SETS_MAX} sets")));
        }
        if specs.is_empty() {
            return Err(error("it has no rule".to_owned()));
        }
        let mut set = Vec::new();
        for (index, spec) in specs.into_iter().enumerate() {
            let id = spec.id.clone();
            let rule = match spec.decision {
                _ if self.written() + set.len() >= RULES_MAX => {
                    Err(format!("there are more than {RULES_MAX} rules"))
                }
                Decision::Allow => Err("a rule of a set asks or denies".to_owned()),
                Decision::Ask | Decision::Deny => Rule::new(spec, origin, dirs),
            };
            let rule = rule.map_err(|problem| RuleError {
                number: index + 1,
                id,
                problem,
            });
            set.push(rule.map_err(|err| error(err.to_string()))?);
        }
        self.sets.insert(name.to_owned(), set);
        Ok(())
    }

    /// Returns the names of all sets, those that are built in included.
    #[must_use]
    pub fn set_names(&self) -> Vec<String> {
        let own = self.sets.keys().cloned();
        own.chain([DANGEROUS_PROGRAMS.to_owned()]).collect()
    }

    /// Makes the rules of a set count, since a profile names it. Naming it again changes nothing.
    ///
    /// # Errors
    /// When no set has this name.
    pub fn put_in_force(&mut self, name: &str, profile: &str) -> Result<(), UnknownSet> {
        if self.rules.iter().any(|it| it.set.as_deref() == Some(name)) {
            return Ok(());
        }
        let set = built_in(name).or_else(|| self.sets.remove(name));
        let set = set.ok_or_else(|| UnknownSet {
            name: name.to_owned(),
            profile: profile.to_owned(),
            known: self.set_names(),
        })?;
        self.rules.extend(set.into_iter().map(|rule| Rule {
            origin: format!("{}, rule set `{name}` of profile `{profile}`", rule.origin),
            set: Some(name.to_owned()),
            ..rule
        }));
        Ok(())
    }

    /// Denies programs that a profile lists, and those whose names continue with a dot. If there is one, commands are
    /// denied too of which it cannot be told which programs they run.
    pub fn forbid_programs(&mut self, programs: &[String], profile: &str) {
        let origin = format!("profile `{profile}`");
        self.rules.extend(programs.iter().map(|program| Rule {
            spec: RuleSpec {
                id: Some(program.clone()),
                message: Some(format!("`{program}` is not allowed")),
                ..strictly(vec![program.clone(), format!("{program}.*")])
            },
            origin: origin.clone(),
            set: None,
            paths: Vec::new(),
            fixed: Vec::new(),
            places: Vec::new(),
        }));
    }

    /// How many rules are written, in sets or not.
    pub(super) fn written(&self) -> usize {
        self.rules.len() + self.sets.values().map(Vec::len).sum::<usize>()
    }
}

/// The sets that users define, by name.
pub(super) type Sets = BTreeMap<String, Vec<Rule>>;

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_".contains(&it);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(format!(
            "a name is at most {NAME_BYTES_MAX} letters, digits, `-` and `_`"
        ));
    }
    Ok(())
}

/// A rule that denies programs, and what may run them.
fn strictly(programs: Vec<String>) -> RuleSpec {
    RuleSpec {
        command: vec![AnyOf::Many(programs)],
        when_unclear: Some(Decision::Deny),
        ..RuleSpec::new(Decision::Deny)
    }
}

/// Returns the rules of a set that is part of the program.
fn built_in(name: &str) -> Option<Vec<Rule>> {
    if name != DANGEROUS_PROGRAMS {
        return None;
    }
    let rules = [
        ("remove-files", &["rm"][..], "`rm` removes files for good"),
        (
            "other-user",
            &["sudo", "su", "visudo", "passwd"],
            "it acts as another user, or changes who may",
        ),
        (
            "write-disks",
            &["dd", "mkfs"],
            "it can write to a disk below its file system",
        ),
        (
            "stop-machine",
            &["shutdown", "reboot"],
            "it stops or restarts the machine",
        ),
    ];
    let rule = |(id, programs, what): (&str, &[&str], &str)| Rule {
        spec: RuleSpec {
            id: Some(id.to_owned()),
            message: Some(format!("{what}, which is not allowed here")),
            ..strictly(with_variants(programs))
        },
        origin: BUILT_IN.to_owned(),
        set: None,
        paths: Vec::new(),
        fixed: Vec::new(),
        places: Vec::new(),
    };
    Some(rules.into_iter().map(rule).collect())
}

/// Names that continue with a dot are of the same kind: `mkfs.ext4`.
fn with_variants(programs: &[&str]) -> Vec<String> {
    let variants = programs
        .iter()
        .map(|it| [(*it).to_owned(), format!("{it}.*")]);
    variants.flatten().collect()
}

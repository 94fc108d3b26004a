//! The rules of calls that the user and the project write, in files of TOML.

use crate::config::{read_bounded, unparsed};
use crate::confined;
use crate::env::Env;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::known_files::KnownFiles;
use crate::notices::Notices;
use crate::paths::{Paths, project_policy};
use crate::profiles;
use crate::settings::Settings;
use crate::skills;
use crate::table::Layer;
use crate::tools::gate_options_in;
use crate::trust::is_trusted;
use rondo_exec::ExecTool;
use rondo_policy::rules::{Decision, GrantSpec, RuleDirs, RuleSpec, Rules, UnknownSet};
use rondo_policy::{AllowedDirs, Judged, StandardGate};
use rondo_types::Profile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Content of a file of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyFile {
    /// The ids of built-in denials that do not hold.
    #[serde(default)]
    pub(crate) lift: Vec<String>,
    #[serde(default, rename = "rule")]
    pub(crate) rules: Vec<RuleSpec>,
    /// Rules that count under the profiles that name their set.
    #[serde(default, rename = "rule_set")]
    pub(crate) rule_sets: BTreeMap<String, Vec<RuleSpec>>,
    /// Permanent grants of the user.
    #[serde(default, rename = "grant")]
    pub(crate) grants: Vec<GrantSpec>,
}

/// Reads the rules of the user and, unless a person must review it first, of the project that `directory` is in. Those of a project that is not trusted may
/// only restrict: its other rules are left out, with a note.
///
/// # Errors
/// When a file cannot be read, does not say what it should, or an example in it does not hold.
pub(crate) fn load(
    (directory, real): (&Path, Option<&Path>),
    is_reviewed: bool,
    user: &Layer,
    paths: &Paths,
    env: &Env,
    (files, notices): (&KnownFiles, &dyn Notices),
) -> Result<Rules> {
    let mut rules = Rules::default();
    let dirs = RuleDirs {
        working: real.unwrap_or(directory),
        home: env.get("HOME").map(Path::new).filter(|it| it.is_absolute()),
    };
    let user_file = paths.user_policy();
    let written = read(&user_file, files)?;
    for id in &written.lift {
        let wrong = |problem| invalid(&user_file, problem);
        rules.lift(id).map_err(wrong)?;
    }
    rules
        .grant(written.grants)
        .map_err(|problem| invalid(&user_file, problem))?;
    add(&mut rules, written.rules, &user_file, dirs)?;
    let origin = user_file.display().to_string();
    for (name, specs) in written.rule_sets {
        let defined = rules.define(&name, specs, &origin, dirs);
        defined.map_err(|problem| invalid(&user_file, problem))?;
    }
    let Some(file) = project_policy(directory).filter(|_| is_reviewed) else {
        return Ok(rules);
    };
    let mut written = read(&file, files)?;
    let mut ignored = Vec::new();
    if !written.lift.is_empty() {
        // A clone must not lift what protects the machine, trusted or not.
        ignored.push("`lift`");
    }
    if !written.rule_sets.is_empty() {
        // A profile of the user means the user's sets.
        ignored.push("rule sets");
    }
    if !written.grants.is_empty() {
        // A person gives those at a question, and no clone does.
        ignored.push("grants");
    }
    let all = written.rules.len();
    if !is_trusted(&file, user) {
        written
            .rules
            .retain(|rule| rule.decision != Decision::Allow);
    }
    if written.rules.len() < all {
        ignored.push("rules that allow");
    }
    if !ignored.is_empty() {
        notices.note(&format!(
            "{} in `{}` are ignored{}",
            ignored.join(" and "),
            file.display(),
            match written.rules.len() < all {
                true => ", since the folder is not trusted; `rondo trust` applies them",
                false => "; only those of your own file do",
            }
        ));
    }
    add(&mut rules, written.rules, &file, dirs)?;
    Ok(rules)
}

/// Returns the rules that are in force under a profile.
///
/// # Errors
/// When the profile names a set of rules that is not defined.
pub fn under(profile: &Profile, settings: &Settings) -> Result<Rules> {
    let mut rules = settings.rules.clone();
    for name in &profile.rule_sets {
        let unknown = |error: UnknownSet| {
            let known = error.known.join(", ");
            let file = settings.paths.user_policy();
            SetupError::caused(SetupErrorKind::Config, error).hint(format!(
                "the rule sets are: {known}; `[[rule_set.NAME]]` in `{}` defines one",
                file.display()
            ))
        };
        rules.put_in_force(name, &profile.name).map_err(unknown)?;
    }
    rules.forbid_programs(&profile.forbidden_programs, &profile.name);
    Ok(rules)
}

/// Judges a command that the model would run in the working directory, and each simple command in it;
/// the whole comes last.
///
/// # Errors
/// When there is no such profile, a pattern of the settings cannot be read, or the directory does not exist.
pub fn explain(settings: &Settings, profile: Option<&str>, command: &str) -> Result<Vec<Judged>> {
    let profile = profiles::resolve(settings, profile.unwrap_or(settings.profile_name()))?.profile;
    let add_dirs = settings.values.add_dirs.iter().flatten();
    let more: Vec<PathBuf> = add_dirs.map(|it| settings.directory.join(it)).collect();
    let dirs = AllowedDirs::new(&settings.directory, &more)
        .map_err(|err| SetupError::caused(SetupErrorKind::Input, err))?;
    let mut options = gate_options_in(dirs, None, &profile, settings, &skills::places(settings))?;
    options.read_only = Some(confined::read_only(settings, &ExecTool::NAMES));
    let mut names = profile.tools.iter().map(String::as_str);
    let tool = names.find(|it| ExecTool::NAMES.contains(it));
    let [first, ..] = ExecTool::NAMES;
    let tool = tool.unwrap_or(first);
    Ok(StandardGate::new(options).explain(tool, command))
}

fn read(file: &Path, files: &KnownFiles) -> Result<PolicyFile> {
    let Some(text) = read_bounded(file, files)? else {
        return Ok(PolicyFile::default());
    };
    toml::from_str(&text).map_err(|err| unparsed(file, &text, &err))
}

fn add(rules: &mut Rules, specs: Vec<RuleSpec>, file: &Path, dirs: RuleDirs<'_>) -> Result<()> {
    let origin = file.display().to_string();
    let added = rules.add(specs, &origin, dirs);
    added.map_err(|error| invalid(file, error.to_string()))
}

fn invalid(file: &Path, problem: String) -> SetupError {
    let context = format!("`{}` cannot be used", file.display());
    SetupError::because(SetupErrorKind::Config, context, problem)
        .hint("a rule has `decision` (`allow`, `ask` or `deny`) and one or more of `tool`, `command`, `path`, `host`, `message`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Notices for Notes {
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    struct Folders {
        home: tempfile::TempDir,
        project: tempfile::TempDir,
        notes: Notes,
    }

    impl Folders {
        fn new(user: &str, project: &str) -> Self {
            let folders = Self {
                home: tempfile::tempdir().unwrap(),
                project: tempfile::tempdir().unwrap(),
                notes: Notes::default(),
            };
            fs::write(folders.home.path().join("policy.toml"), user).unwrap();
            fs::create_dir(folders.project.path().join(".rondo")).unwrap();
            fs::write(folders.project.path().join(".rondo/policy.toml"), project).unwrap();
            folders
        }

        fn load(&self) -> Result<Rules> {
            let home = self.home.path().to_str().unwrap();
            let env = Env::of(&[("RONDO_HOME", home), ("HOME", home)]);
            let directory = self.project.path().to_owned();
            let settings = Settings::load(env, directory, Layer::default(), &self.notes);
            settings.map(|it| it.rules)
        }

        fn subjects(&self) -> Vec<String> {
            let rules = self.load().unwrap();
            rules.rules().iter().map(|rule| rule.subject()).collect()
        }
    }

    const RULES: &str = "lift = ['shut-down']\n[[rule]]\ncommand = ['a']\ndecision = 'allow'\n\
        [[rule]]\ncommand = ['b']\ndecision = 'deny'\n";

    #[test]
    fn a_project_may_only_restrict_until_its_folder_is_trusted() {
        let folders = Folders::new("[[rule]]\ntool = 't'\ndecision = 'allow'", RULES);
        assert_eq!(folders.subjects(), ["t", "b"]);
        let notes = folders.notes.0.lock().unwrap().concat();
        assert!(notes.contains("`lift` and rules that allow"), "{notes}");
        let trusted = format!("trusted_folders = [{:?}]", folders.project.path());
        fs::write(folders.home.path().join("config.toml"), trusted).unwrap();
        assert_eq!(folders.subjects(), ["t", "a", "b"]);
        let denials = folders.load().unwrap();
        assert!(denials.denials().any(|it| it.id == "shut-down"));
    }

    impl Folders {
        /// Returns the rules in force under the profile of the settings, if this is the project's configuration.
        fn under_profile(&self, config: &str) -> Result<Rules> {
            fs::write(self.project.path().join(".rondo/config.toml"), config).unwrap();
            let home = self.home.path().to_str().unwrap();
            let env = Env::of(&[("RONDO_HOME", home), ("HOME", home)]);
            let directory = self.project.path().to_owned();
            let settings = Settings::load(env, directory, Layer::default(), &self.notes)?;
            let profile = profiles::resolve(&settings, settings.profile_name())?.profile;
            under(&profile, &settings)
        }

        fn configure(&self, user: &str, is_trusted: bool) {
            let trusted = match is_trusted {
                true => format!("trusted_folders = [{:?}]\n", self.project.path()),
                false => String::new(),
            };
            fs::write(self.home.path().join("config.toml"), trusted + user).unwrap();
        }
    }

    const OWN_SET: &str = "[[rule_set.mine]]\ncommand = ['curl']\ndecision = 'deny'\n";

    #[test]
    fn hub_33_no_project_drops_or_redefines_a_rule_set_that_a_profile_names() {
        let theirs = "[[rule_set.mine]]\ncommand = ['x']\ndecision = 'ask'\n\
            [[rule_set.dangerous-programs]]\ncommand = ['x']\ndecision = 'ask'\n";
        let folders = Folders::new(OWN_SET, theirs);
        let user = "profile = 'own'\n[profiles.own]\nextends = 'hub'\nrule_sets = ['mine']\n";
        for is_trusted in [false, true] {
            folders.configure(user, is_trusted);
            for config in [
                "",
                "[profiles.own]\nrule_sets = []",
                "[profiles.own]\nextends = 'default'\nforbidden_programs = []",
                "[profiles.hub]\nrule_sets = []",
                "profile = 'default'",
                "profile = 'theirs'\n[profiles.theirs]\nextends = 'default'\nrule_sets = []",
            ] {
                let rules = folders.under_profile(config).unwrap();
                let sets = rules.rules().iter().map(|it| (it.set(), it.subject()));
                let sets: Vec<_> = sets.collect();
                let has = |set, subject: &str| sets.contains(&(Some(set), subject.to_owned()));
                assert!(has("mine", "curl"), "{config}: {sets:?}");
                assert!(
                    has("dangerous-programs", "remove-files"),
                    "{config}: {sets:?}"
                );
            }
        }
        let notes = folders.notes.0.lock().unwrap().concat();
        assert!(notes.contains("rule sets in `"), "{notes}");
    }

    #[test]
    fn a_project_that_chooses_the_built_in_model_and_so_its_profile_drops_no_set() {
        let folders = Folders::new(OWN_SET, "");
        folders.configure("[profiles.default]\nrule_sets = ['mine']", true);
        let config = folders.project.path().join(".rondo/config.toml");
        fs::write(config, "model = 'embedded/x'").unwrap();
        let home = folders.home.path().to_str().unwrap();
        let env = Env::of(&[("RONDO_HOME", home)]);
        let directory = folders.project.path().to_owned();
        let settings = Settings::load(env, directory, Layer::default(), &folders.notes).unwrap();
        let sets = |name| {
            profiles::resolve(&settings, name)
                .unwrap()
                .profile
                .rule_sets
        };
        assert_eq!(sets("local"), ["mine"]);
        assert_eq!(sets("hub"), ["dangerous-programs"]);
    }

    #[test]
    fn a_project_names_sets_of_the_user_where_its_folder_is_trusted() {
        let folders = Folders::new(OWN_SET, "");
        let names = "[profiles.default]\nrule_sets = ['mine']";
        for is_trusted in [false, true] {
            folders.configure("", is_trusted);
            let rules = folders.under_profile(names).unwrap();
            assert_eq!(rules.rules().len(), usize::from(is_trusted));
        }
    }

    #[test]
    fn a_profile_that_names_a_set_nobody_defines_is_an_error_that_says_how_to() {
        let folders = Folders::new(OWN_SET, "");
        folders.configure("[profiles.default]\nrule_sets = ['mien']", false);
        let error = folders.under_profile("").unwrap_err();
        let line = error.line();
        assert!(line.contains("the rule set `mien`"), "{line}");
        let hint = error.hint.unwrap();
        assert!(hint.contains("mine, dangerous-programs;"), "{hint}");
    }

    #[test]
    fn the_user_lifts_a_denial_by_its_id() {
        let folders = Folders::new(RULES, "");
        let rules = folders.load().unwrap();
        assert!(rules.denials().all(|it| it.id != "shut-down"));
        assert_eq!(rules.denials().count(), 6);
        let wrong = Folders::new("lift = ['x']", "").load().unwrap_err().line();
        assert!(wrong.contains("remove-root"), "{wrong}");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_that_says_where_and_why() {
        for (text, said) in [
            ("[[rule]]\ntool = 't'", "decision"),
            ("[[rule]]\ntool = 't'\ndecision = 'maybe'", "policy.toml:3"),
            ("[[rule]]\ntol = 't'\ndecision = 'deny'", "tol"),
            ("[[rule]]\ndecision = 'deny'", "rule 1: it needs"),
            (
                "[[rule]]\ncommand = ['a']\ndecision = 'deny'\nmatch = ['b']",
                "`b` of `match`",
            ),
            (
                "[[rule]]\ncommand = ['a']\ndecision = 'ask'\nwhen_unclear = 'deny'",
                "for rules that deny",
            ),
        ] {
            for folders in [Folders::new(text, ""), Folders::new("", text)] {
                let error = folders.load().unwrap_err();
                assert!(error.line().contains(said), "{}", error.line());
                assert_eq!(error.kind, SetupErrorKind::Config);
            }
        }
    }
}

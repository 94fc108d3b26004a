//! The live Python session of the process.

use crate::env::Env;
use crate::secrets;
use crate::settings::Settings;
use crate::spec::TurnSpec;
use rondo_core::Tool;
use rondo_exec::SupervisorCommand;
use rondo_policy::CommandEnvironment;
use rondo_python::{Capability, ReadOnlyNames, Session};
use rondo_sandbox::SandboxSpec;
use rondo_types::Profile;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The function that evaluates anything.
const EVALUATES: Capability = Capability::EvalExpr;
/// The tools of a live session that any agent is offered.
const FOR_ANY_AGENT: [Capability; 5] = [
    Capability::ListGlobals,
    Capability::Inspect,
    Capability::EvalExpr,
    Capability::RunCode,
    Capability::GetLastException,
];
/// Names the interpreter, if it is not that of the virtual environment or the search path.
const PROGRAM: &str = "RONDO_PYTHON";
/// Fallback program; if it is missing too, the first use reports that.
const USUAL_PROGRAM: &str = "/usr/bin/python3";

/// The session, once it is needed; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct LivePython(Arc<Mutex<Option<Arc<Session>>>>);

impl LivePython {
    /// Returns the session for these settings: the one that there is, as long as it fits them.
    fn session(&self, wanted: rondo_python::Settings) -> Arc<Session> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref().filter(|it| *it.settings() == wanted) {
            Some(session) => Arc::clone(session),
            None => Arc::clone(kept.insert(Arc::new(Session::new(wanted)))),
        }
    }
}

/// Returns whether a tool is a function of the session.
pub fn has(name: &str) -> bool {
    Capability::ALL.iter().any(|it| it.name() == name)
}

/// Lets an agent that works with tools look into a person's live session.
pub fn offer(spec: &mut TurnSpec, settings: &Settings) {
    let has_tools = !spec.tool_names.is_empty();
    let forbidden = settings.values.disallowed_tools.as_deref();
    let forbidden = forbidden.unwrap_or_default();
    let is_there = spec.tool_names.iter().any(|name| has(name));
    if !has_tools || is_there {
        return;
    }
    let names = FOR_ANY_AGENT.map(Capability::name).into_iter();
    for name in names.filter(|name| !forbidden.iter().any(|it| it == name)) {
        spec.tool_names.push(name.to_owned());
        Arc::make_mut(&mut spec.profile).tools.push(name.to_owned());
    }
}

/// Parts of an agent's session that no person shares.
pub(crate) struct OwnSession<'a> {
    pub(crate) profile: &'a Profile,
    /// Variables that the interpreter does not find in its environment.
    pub(crate) keys: &'a [String],
    pub(crate) settings: &'a Settings,
    pub(crate) directory: &'a Path,
    /// Sandbox of commands.
    pub(crate) sandbox: Option<SandboxSpec>,
    pub(crate) live: &'a LivePython,
}

/// Returns the functions of an agent's own session, in a sandbox where commands have one. The interpreter is started
/// when one of them is called.
pub(crate) fn tools(own: OwnSession<'_>) -> Vec<Arc<dyn Tool>> {
    let mut wanted = session_settings(own.settings, own.keys, own.directory);
    let home = own.settings.env.get("HOME").map(Path::new);
    if own.sandbox.is_some() {
        let named = own.settings.values.command_env.as_deref();
        let env = own.settings.env.inherited();
        wanted
            .withheld
            .extend(kept_outside(&env, named.unwrap_or_default()));
        wanted.withheld.sort();
        wanted.withheld.dedup();
    }
    wanted.sandbox = own.sandbox.map(|mut sandbox| {
        let prefixes = prefixes(&wanted.program, home);
        Arc::make_mut(&mut sandbox.readable).extend(prefixes);
        sandbox
    });
    let session = own.live.session(wanted);
    rondo_python::tools(&session, looks(own.profile, own.settings))
}

/// Returns the directories of an interpreter's modules: its virtual environment, and its installation.
/// Never what holds the home directory.
fn prefixes(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let real = program.canonicalize().ok();
    let programs = [Some(program.to_owned()), real].into_iter().flatten();
    let prefixes = programs.filter_map(|it| Some(it.parent()?.parent()?.to_owned()));
    let is_narrow =
        |it: &PathBuf| it.parent().is_some() && home.is_none_or(|home| !home.starts_with(it));
    prefixes.filter(is_narrow).collect()
}

/// Returns the settings of a session that does not find the variables `keys` in its environment. Its
/// program does not exist if there is none.
pub fn session_settings(
    settings: &Settings,
    keys: &[String],
    directory: &Path,
) -> rondo_python::Settings {
    let mut keys = keys.to_vec();
    // Variables that the user exports in their shell do not get there, and must not make the session another one.
    let env = settings.env.inherited();
    keys.extend(secrets::withheld(settings, &env, None));
    let program = program(&settings.env, directory);
    let mut wanted = rondo_python::Settings::new(program, directory.to_owned());
    let named = settings.values.command_env.as_deref();
    wanted.withheld = withheld(&env, &keys, named.unwrap_or_default());
    wanted.supervisor = Some(SupervisorCommand::CurrentExe);
    wanted
}

/// Returns the expressions that the looking functions may evaluate: those that could be evaluated without asking
/// anyway.
pub fn looks(profile: &Profile, settings: &Settings) -> ReadOnlyNames {
    match evaluates_freely(profile, settings) {
        true => ReadOnlyNames::Anything,
        false => ReadOnlyNames::WithoutCalls,
    }
}

fn evaluates_freely(profile: &Profile, settings: &Settings) -> bool {
    let values = &settings.values;
    let named = |names: &[String]| names.iter().any(|it| it == EVALUATES.name());
    let listed = |names: &Option<Vec<String>>| named(names.as_deref().unwrap_or_default());
    let is_allowed = named(&profile.allowed_tools) || values.yolo == Some(true);
    (is_allowed || listed(&values.allowed_tools)) && !listed(&values.disallowed_tools)
}

fn program(env: &Env, directory: &Path) -> PathBuf {
    let search_path = env.get("PATH").unwrap_or_default();
    if let Some(named) = env.get(PROGRAM) {
        // A name without a slash is one of the search path.
        let found = (!named.contains('/'))
            .then(|| rondo_python::Settings::find_named(named, search_path, directory));
        return match found {
            Some(found) => found.unwrap_or_else(|| named.into()),
            None => std::path::absolute(named).unwrap_or_else(|_| named.into()),
        };
    }
    let virtual_env = env.get("VIRTUAL_ENV").map(Path::new);
    rondo_python::Settings::find_program(virtual_env, search_path, directory)
        .unwrap_or_else(|| USUAL_PROGRAM.into())
}

/// Variables that commands do not get, and neither does the interpreter.
fn withheld(env: &Env, keys: &[String], named: &[String]) -> Vec<String> {
    let mut environment = CommandEnvironment {
        passed: named.to_vec(),
        ..CommandEnvironment::default()
    };
    let keys = keys.iter().cloned();
    environment.withheld.extend(keys.map(Cow::Owned));
    let withheld = env
        .iter()
        .filter(|(name, value)| environment.is_withheld_with(name, value));
    let mut withheld: Vec<String> = withheld.map(|(name, _)| name.clone()).collect();
    withheld.sort();
    withheld
}

/// Returns the variables that do not reach an interpreter in the sandbox.
fn kept_outside(env: &Env, named: &[String]) -> Vec<String> {
    let names = env.iter().map(|(name, _)| name);
    names
        .filter(|name| !rondo_sandbox::passes_variable(name) && !named.contains(name))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_stays_as_long_as_it_fits() {
        let python = LivePython::default();
        let settings = |directory: &str| {
            rondo_python::Settings::new("/usr/bin/python3".into(), directory.into())
        };
        let first = python.session(settings("/"));
        assert!(Arc::ptr_eq(&first, &python.clone().session(settings("/"))));
        assert!(!Arc::ptr_eq(&first, &python.session(settings("/tmp"))));
    }

    #[test]
    fn an_interpreter_reads_where_it_and_its_environment_are_and_never_a_whole_home() {
        let home = Some(Path::new("/home/person"));
        let of = |program: &str| prefixes(Path::new(program), home);
        let environment = "/home/person/work/.venv";
        assert_eq!(
            of("/home/person/work/.venv/bin/python3"),
            [PathBuf::from(environment)]
        );
        assert_eq!(of("/home/person/bin/python3"), [] as [PathBuf; 0]);
        assert_eq!(of("/nowhere/python3"), [] as [PathBuf; 0]);
    }

    #[test]
    fn keys_are_withheld_and_a_named_interpreter_is_taken() {
        let env = Env::of(&[
            ("OPENAI_API_KEY", "k"),
            ("OWN", "k"),
            ("HOME", "/"),
            ("RONDO_PYTHON", "/opt/python3.12"),
            ("VIRTUAL_ENV", "/nowhere"),
        ]);
        assert_eq!(
            withheld(&env, &["OWN".to_owned()], &[]),
            ["OPENAI_API_KEY", "OWN"]
        );
        let work = Path::new("/work");
        assert_eq!(program(&env, work), Path::new("/opt/python3.12"));
        assert_eq!(program(&Env::of(&[]), work), Path::new(USUAL_PROGRAM));
    }
}

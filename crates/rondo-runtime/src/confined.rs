//! Sandbox of commands, by the settings.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::paths::Paths;
use crate::review;
use crate::settings::Settings;
use crate::values::{ApprovalMode, SandboxChoice};
use rondo_exec::ExecTool;
pub use rondo_exec::sandbox_note;
use rondo_policy::rules::{Hosts, Rules};
use rondo_policy::{Confined, ReadOnlySandbox};
use rondo_sandbox::{
    Enforcement, NetworkAccess, PROTECTED, Root, SandboxMode, SandboxSpec, SandboxSupport,
    can_be_hidden, kept_of_user, readable_roots_by, support,
};
#[cfg(all(feature = "web", target_os = "linux"))]
use rondo_web::proxy::HostProxy;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(all(feature = "web", target_os = "linux"))]
use std::time::SystemTime;
#[cfg(all(feature = "web", target_os = "linux"))]
use tokio::runtime::Handle;

/// Limits of the protection without namespaces.
const PARTIAL: &str = "commands have no sockets at all and a private, read-only `/tmp`, and protected files are restored after each command instead of being out of reach";

/// Directory of a gateway's records and of its chats, in the data directory.
const HUB: &str = "hub";

/// Files that only the administrator may read, and that no command of an agent needs.
const SECRETS_OF_SYSTEM: [&str; 7] = [
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
];

/// Returns the secrets of the system that commands would see if they run as root: nothing for other users, who cannot
/// read them.
pub(crate) fn secrets_of_system() -> Vec<PathBuf> {
    let is_readable = |it: &&&str| std::fs::File::open(it).is_ok();
    let readable = SECRETS_OF_SYSTEM.iter().filter(is_readable);
    readable.map(PathBuf::from).collect()
}

/// Returns the files with passwords in toolchains of the user, which commands see otherwise.
pub(crate) fn secrets_of_toolchains(settings: &Settings) -> Vec<PathBuf> {
    home(settings).map_or_else(Vec::new, rondo_sandbox::secrets_of_toolchains)
}

/// Describes the protection that this system enforces, which is tried the first time.
///
/// # Errors
/// Why commands cannot be confined.
pub fn enforced() -> std::result::Result<String, String> {
    match support() {
        SandboxSupport::Full => {
            Ok("`--sandbox` confines commands here, and read-only commands run in it".to_owned())
        }
        SandboxSupport::Partial { reason } => Ok(format!("in part: {PARTIAL} ({reason})")),
        SandboxSupport::Nothing { reason } => Err(reason.clone()),
    }
}

/// Returns whether this system enforces everything that is promised.
#[must_use]
pub fn is_full() -> bool {
    *support() == SandboxSupport::Full
}

/// Returns how far commands are confined; none if they are not. What is allowed since it stays inside the sandbox
/// needs one.
///
/// # Errors
/// When the settings contradict each other.
pub(crate) fn mode(settings: &Settings) -> Result<Option<SandboxMode>> {
    let is_auto = settings.values.approval == Some(ApprovalMode::Auto);
    match settings.values.sandbox {
        Some(SandboxChoice::ReadOnly) => Ok(Some(SandboxMode::ReadOnly)),
        Some(SandboxChoice::WorkspaceWrite) => Ok(Some(SandboxMode::WorkspaceWrite)),
        Some(SandboxChoice::Off) if is_auto => Err(SetupError::new(
            SetupErrorKind::Usage,
            "the setting `approval` is `auto`, which allows what stays inside the sandbox, and `sandbox` is `off`",
        )
        .hint("leave `sandbox` out, or use `--approval ask`")),
        None if is_auto => Ok(Some(SandboxMode::WorkspaceWrite)),
        Some(SandboxChoice::Off) | None => Ok(None),
    }
}

/// Refuses a directory that has the home directory in it: its keys could be read, and what runs at the next login
/// written.
pub(crate) fn refuse_home(home: Option<&Path>, directories: &[PathBuf]) -> Result<()> {
    let holds_home = |it: &&PathBuf| {
        let real = it.canonicalize();
        real.is_ok_and(|it| hold_home(home, std::slice::from_ref(&it)))
    };
    match directories.iter().find(holds_home) {
        None => Ok(()),
        Some(directory) => Err(SetupError::new(
            SetupErrorKind::Usage,
            format_args!(
                "a sandbox around `{}` would protect nothing: your home directory is in it",
                directory.display()
            ),
        )
        .hint("work in a directory of its own: `-C DIR`")),
    }
}

/// Refuses a directory of Rondo's own, whose files configure it or are its records. The directories of chats are work.
fn refuse_own(paths: &Paths, directories: &[PathBuf]) -> Result<()> {
    let own = [&paths.config, &paths.data, &paths.state].map(|it| it.canonicalize());
    let chats = paths.data.join(HUB).canonicalize();
    let is_of_chat = |it: &Path| {
        let chats = chats.as_ref();
        chats.is_ok_and(|chats| it != chats && it.starts_with(chats))
    };
    let is_own = |it: &&PathBuf| {
        let real = it.canonicalize();
        let is_below = |it: &Path| own.iter().flatten().any(|own| it.starts_with(own));
        real.is_ok_and(|it| is_below(&it) && !is_of_chat(&it))
    };
    match directories.iter().find(is_own) {
        None => Ok(()),
        Some(directory) => Err(SetupError::new(
            SetupErrorKind::Usage,
            format_args!(
                "a sandbox around `{}` would protect nothing: it is a directory of Rondo's own",
                directory.display()
            ),
        )
        .hint("`--approval ask --sandbox off` works there")),
    }
}

/// Returns the user's files that shells, `git`, Rondo and other agents read, and that must not change if they lie in a
/// directory that commands write.
fn kept(settings: &Settings) -> Vec<PathBuf> {
    let variable = |name: &str| settings.env.get(name).map(OsString::from);
    let of_user = home(settings).map(|home| kept_of_user(home, &variable));
    let own = settings.paths.config.canonicalize();
    of_user.into_iter().flatten().chain(own).collect()
}

/// Returns the directories of Rondo's own records that lie in these directories. No command sees them.
pub(crate) fn own_records(settings: &Settings, directories: &[PathBuf]) -> Vec<PathBuf> {
    let records = [&settings.paths.data, &settings.paths.state];
    let real = records.into_iter().filter_map(|it| it.canonicalize().ok());
    let inside = directories.iter().filter_map(|it| it.canonicalize().ok());
    let inside: Vec<PathBuf> = inside.collect();
    let is_inside = |it: &PathBuf| {
        inside.iter().any(|directory| it.starts_with(directory)) && can_be_hidden(it, directories)
    };
    real.filter(is_inside).collect()
}

/// Returns whether one of these directories, whose paths have no links, has the home directory in it.
pub(crate) fn hold_home(home: Option<&Path>, directories: &[PathBuf]) -> bool {
    let home = home.and_then(|it| it.canonicalize().ok());
    home.is_some_and(|home| directories.iter().any(|it| home.starts_with(it)))
}

/// Returns the gate's permissions for the sandbox, if these rules are in force.
pub(crate) fn of_gate(settings: &Settings, rules: &Rules) -> Option<Confined> {
    // A contradiction of the settings is an error of building the tools.
    let mode = mode(settings).ok().flatten()?;
    Some(Confined {
        may_write: mode == SandboxMode::WorkspaceWrite,
        reaches_hosts: hosts(rules).is_some(),
        is_enough: settings.values.approval == Some(ApprovalMode::Auto),
        protected: &PROTECTED,
        kept: kept(settings),
        tools: Vec::new(),
    })
}

/// Returns the read-only sandbox of these tools, in which commands of the system run without asking if the system
/// enforces all of
/// it.
pub(crate) fn read_only(settings: &Settings, tools: &[&str]) -> ReadOnlySandbox {
    ReadOnlySandbox::new(tools.iter().copied(), home(settings), is_full)
}

/// Returns the hosts that commands in the sandbox reach by name; nothing if no rule allows any, or the system has no
/// network to put a proxy into.
fn hosts(rules: &Rules) -> Option<Hosts> {
    let has_proxy = cfg!(all(feature = "web", target_os = "linux"));
    // The rules are looked at first: what the system can is tried with a process.
    let hosts = ExecTool::NAMES.iter().find_map(|it| rules.hosts(it));
    hosts.filter(|_| has_proxy && is_full())
}

/// Starts the proxy of commands in a sandbox, on the current Tokio runtime; nothing if they reach no host, or nothing
/// runs here.
///
/// # Errors
/// When its socket cannot be made.
#[cfg(all(feature = "web", target_os = "linux"))]
pub(crate) fn proxy(rules: &Rules) -> Result<Option<Arc<HostProxy>>> {
    let Some(hosts) = hosts(rules).filter(|_| Handle::try_current().is_ok()) else {
        return Ok(None);
    };
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let name = format!("rondo-proxy-{}-{}", std::process::id(), since.as_nanos());
    let directory = std::env::temp_dir().join(name);
    let proxy = HostProxy::start(directory, Box::new(move |host| hosts.allow(host)));
    let proxy = proxy.map_err(|err| SetupError::caused(SetupErrorKind::Other, err))?;
    Ok(Some(Arc::new(proxy)))
}

/// Returns these directories, and the repositories around them, which commands in the sandbox write as well.
pub(crate) fn with_repositories(settings: &Settings, directories: &[PathBuf]) -> Vec<PathBuf> {
    let around = |it: &PathBuf| rondo_sandbox::repository_around(it, home(settings));
    let mut all = directories.to_vec();
    for top in directories.iter().filter_map(around) {
        if !all.contains(&top) {
            all.push(top);
        }
    }
    all
}

/// Returns the sandbox of commands that work in these directories, and put their caches into `scratch` if they write at
/// all.
///
/// # Errors
/// When the settings contradict each other, or this system does not enforce a sandbox.
pub(crate) fn spec(
    settings: &Settings,
    directories: &[PathBuf],
    scratch: impl FnOnce() -> Result<Option<PathBuf>>,
) -> Result<Option<SandboxSpec>> {
    let Some(mode) = mode(settings)? else {
        return Ok(None);
    };
    let enforcement = support().enforcement().ok_or_else(|| {
        let reason = enforced().err().unwrap_or_default();
        SetupError::new(
            SetupErrorKind::Config,
            format_args!("commands cannot be confined on this system: {reason}"),
        )
        .hint("`--sandbox off` runs them with all of your permissions; a sandbox needs Linux 6.2 or later with Landlock")
    })?;
    refuse_home(home(settings), directories)?;
    refuse_own(&settings.paths, directories)?;
    // What they leave there would be run by later commands, so those that write nothing have none.
    let scratch = match mode {
        SandboxMode::ReadOnly => None,
        SandboxMode::WorkspaceWrite => scratch()?,
    };
    Ok(Some(SandboxSpec {
        enforcement,
        scratch,
        ledger: Some(review::ledger(&settings.paths)),
        ..reading(settings, mode, &with_repositories(settings, directories))
    }))
}

/// Returns the sandbox of commands that run without asking because they only look: these directories, to read.
pub(crate) fn looking(settings: &Settings, directories: &[PathBuf]) -> SandboxSpec {
    SandboxSpec {
        network: NetworkAccess::Nothing,
        ..reading(settings, SandboxMode::ReadOnly, directories)
    }
}

/// Describes the promises of a sandbox that do not hold here; `None` if they all do.
pub(crate) fn shortfall(settings: &Settings, spec: Option<&SandboxSpec>) -> Option<String> {
    let spec = spec.filter(|it| it.enforcement == Enforcement::Partial)?;
    let toolchains = secrets_of_toolchains(settings);
    let hidden = not_hidden(&spec.hidden, &toolchains, &settings.paths);
    Some(format!(
        "the sandbox protects only in part here: {PARTIAL}{hidden}"
    ))
}

/// Names the kinds of these files that are not hidden from commands. Those of toolchains have passwords in them.
fn not_hidden(files: &[PathBuf], toolchains: &[PathBuf], paths: &Paths) -> String {
    const DENIED: &str = "files that rules deny or `.rondoignore` names";
    const PASSWORDS: &str = "passwords in settings of toolchains";
    const RECORDS: &str = "Rondo's own records";
    const SYSTEM: &str = "secrets of the system such as `/etc/shadow`";
    let records = [&paths.data, &paths.state].map(|it| it.canonicalize());
    let kind = |path: &PathBuf| {
        if toolchains.contains(path) {
            PASSWORDS
        } else if records.iter().flatten().any(|it| it == path) {
            RECORDS
        } else if SECRETS_OF_SYSTEM.iter().any(|it| path == Path::new(it)) {
            SYSTEM
        } else {
            DENIED
        }
    };
    let found: Vec<&str> = files.iter().map(kind).collect();
    let kinds = [DENIED, PASSWORDS, RECORDS, SYSTEM];
    let kinds: Vec<&str> = kinds.into_iter().filter(|it| found.contains(it)).collect();
    match kinds.split_last() {
        None => String::new(),
        Some((last, [])) => format!("; {last} are not hidden from commands"),
        Some((last, others)) => {
            format!(
                "; {} and {last} are not hidden from commands",
                others.join(", ")
            )
        }
    }
}

/// Returns the sandbox of commands that the user can choose for these directories, which were looked up before.
///
/// # Errors
/// When the directory of its caches cannot be made.
pub(crate) fn offered(
    settings: &Settings,
    roots: &[Root],
    scratch: impl FnOnce() -> Result<Option<PathBuf>>,
) -> Result<SandboxSpec> {
    let directories: Vec<PathBuf> = roots.iter().map(|it| it.path().to_owned()).collect();
    Ok(SandboxSpec {
        writable: roots.to_vec(),
        scratch: scratch()?,
        ledger: Some(review::ledger(&settings.paths)),
        ..reading(settings, SandboxMode::WorkspaceWrite, &directories)
    })
}

fn reading(settings: &Settings, mode: SandboxMode, directories: &[PathBuf]) -> SandboxSpec {
    let home = home(settings);
    let variable = |name: &str| settings.env.get(name).map(OsString::from);
    let kept = match mode {
        // From a command that writes nothing, nothing has to be kept.
        SandboxMode::ReadOnly => Vec::new(),
        SandboxMode::WorkspaceWrite => kept(settings),
    };
    let is_inside = |it: &PathBuf| directories.iter().any(|above| it.starts_with(above));
    SandboxSpec {
        kept: kept.into_iter().filter(is_inside).collect(),
        readable: Arc::new(readable_roots_by(home, directories, &variable)),
        home: home.map(Path::to_owned),
        ..SandboxSpec::new(mode, directories.to_vec())
    }
}

fn home(settings: &Settings) -> Option<&Path> {
    settings.env.get("HOME").map(Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_hidden_is_named_by_its_kind() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let below = |name: &str| root.join(name);
        let paths = Paths {
            config: below("config"),
            data: below("data"),
            state: below("state"),
            cache: below("cache"),
        };
        std::fs::create_dir(&paths.data).unwrap();
        let npmrc = below("npmrc");
        let said = |files: &[PathBuf]| not_hidden(files, std::slice::from_ref(&npmrc), &paths);
        assert_eq!(said(&[]), "");
        assert_eq!(
            said(std::slice::from_ref(&npmrc)),
            "; passwords in settings of toolchains are not hidden from commands"
        );
        let files = [
            "/etc/shadow".into(),
            below("data"),
            npmrc.clone(),
            below("key"),
            npmrc.clone(),
        ];
        assert_eq!(
            said(&files),
            "; files that rules deny or `.rondoignore` names, passwords in settings of toolchains, Rondo's own records and secrets of \
             the system such as `/etc/shadow` are not hidden from commands"
        );
    }
}

//! The servers of a directory: the user's own, and those of its project, which need trust and consent.

use super::consents::Consents;
use super::table::McpTable;
use crate::env::Env;
use crate::error::{Result, SetupError, SetupErrorKind};
use crate::files;
use crate::known_files::KnownFiles;
use crate::paths::Paths;
use crate::project::{folder_of, trusted_folder};
use crate::settings::Source;
use crate::table::Layer;
use crate::trust::is_folder_trusted;
use crate::trust_question::{self, TrustAnswers};
use rondo_mcp::TokenStore;
use rondo_mcp::config::{
    Connection, FILE_BYTES_MAX, Origin, PROJECT_FILES, Placeholders, Server, UnusableServer,
    WrittenServer, read,
};
use rondo_policy::CommandEnvironment;
use std::path::{Path, PathBuf};

/// The bound on servers, all together.
const SERVERS_MAX: usize = 64;

/// The servers of a directory.
#[derive(Debug, Clone, Default)]
pub struct McpSetup {
    /// Those that are started, in the order in which their tools are offered.
    pub servers: Vec<Server>,
    /// Those that cannot be used, and why.
    pub aside: Vec<UnusableServer>,
    /// Those of the project that the user has not been asked about, or said no to.
    pub waiting: Vec<WaitingServer>,
}

/// A server of a project that may not be started yet.
#[derive(Debug, Clone)]
pub struct WaitingServer {
    /// Name of the server.
    pub name: String,
    /// The file that configures it.
    pub file: PathBuf,
    /// Program to start or address to reach, on one line.
    pub described: String,
    /// Set if the user declined it.
    pub is_declined: bool,
}

/// A server that some file has.
struct ConfiguredServer {
    name: String,
    file: PathBuf,
    written: WrittenServer,
    placeholders: Placeholders,
}

/// Sources of servers.
pub(crate) struct Looking<'a> {
    pub(crate) directory: &'a Path,
    /// The directory without links in its path, if it exists.
    pub(crate) real: Option<&'a Path>,
    /// Whether files of the directory count: no person must review it first.
    pub(crate) is_reviewed: bool,
    pub(crate) sources: &'a [Source],
    pub(crate) user: &'a Layer,
    pub(crate) env: &'a Env,
    pub(crate) paths: &'a Paths,
    pub(crate) answers: &'a TrustAnswers,
    pub(crate) files: &'a KnownFiles,
}

impl McpSetup {
    /// Reads the servers of a directory. If its project brings some that the user was not asked about, the user is
    /// asked once.
    ///
    /// # Errors
    /// When what the user says cannot be kept.
    pub(crate) fn load(looking: &Looking<'_>) -> Result<Self> {
        let mut setup = Self::default();
        let variables = |name: &str| looking.env.text(name);
        let user_file = looking.paths.user_config();
        let (mut of_project, mut uses_files) = (Vec::new(), true);
        for source in looking.sources.iter().filter(|it| it.is_trusted) {
            let McpTable {
                servers,
                project_files,
                ..
            } = &source.layer.mcp;
            uses_files = project_files.unwrap_or(uses_files);
            let is_user = Path::new(&source.name) == user_file;
            for (name, written) in servers {
                if written.disabled {
                    continue;
                }
                if !is_user {
                    of_project.push(ConfiguredServer {
                        name: name.clone(),
                        file: source.name.clone().into(),
                        written: written.clone(),
                        placeholders: Placeholders::Shell,
                    });
                    continue;
                }
                let made = written.server(
                    name,
                    Origin::User,
                    Placeholders::Shell,
                    &variables,
                    &looking.directory.to_owned(),
                );
                setup.take(made);
            }
        }
        let folder = match trusted_folder(looking.directory) {
            folder if folder == looking.directory => looking.real.map(Path::to_owned),
            folder => folder.canonicalize().ok(),
        };
        let Some(folder) = folder else {
            return Ok(setup);
        };
        if uses_files && looking.is_reviewed {
            setup.read_files(&folder, &mut of_project, looking.files);
        }
        if !of_project.is_empty() {
            setup.of_project(&folder, of_project, looking)?;
        }
        Ok(setup)
    }

    fn take(&mut self, made: std::result::Result<Server, UnusableServer>) {
        match made {
            Ok(server) if self.servers.iter().any(|it| it.name == server.name) => {}
            Ok(server) if self.servers.len() < SERVERS_MAX => self.servers.push(server),
            Ok(server) => self.aside.push(UnusableServer {
                name: server.name,
                why: format!("there are more than {SERVERS_MAX} servers"),
            }),
            Err(aside) => self.aside.push(aside),
        }
    }

    /// Reads the files of other programs in a folder.
    fn read_files(&mut self, folder: &Path, found: &mut Vec<ConfiguredServer>, known: &KnownFiles) {
        for file in PROJECT_FILES {
            let path = folder.join(file.path);
            let text = match known.read(&path, FILE_BYTES_MAX) {
                Ok(text) => text,
                Err(_) if !files::is_present(&path) => continue,
                Err(err) => {
                    self.aside.push(unread(file.path, &err));
                    continue;
                }
            };
            match read(file.dialect, &text) {
                Ok((servers, aside)) => {
                    self.aside.extend(aside);
                    found.extend(servers.into_iter().map(|(name, written)| ConfiguredServer {
                        name,
                        file: path.clone(),
                        written,
                        placeholders: file.dialect.placeholders(),
                    }));
                }
                Err(err) => self.aside.push(unread(file.path, &err)),
            }
        }
    }

    /// Sorts the servers of a project by what the user said about them.
    fn of_project(
        &mut self,
        folder: &PathBuf,
        found: Vec<ConfiguredServer>,
        looking: &Looking<'_>,
    ) -> Result<()> {
        let mut consents = Consents::read_unless_known(looking.paths, looking.files);
        let trusted = looking.user.trusted_folders.as_deref().unwrap_or_default();
        let is_trusted = is_folder_trusted(folder, trusted);
        let is_new =
            |it: &&ConfiguredServer| consents.said(folder, &it.name, &it.written).is_none();
        let new: Vec<&ConfiguredServer> = found.iter().filter(is_new).collect();
        if is_trusted && !new.is_empty() {
            let servers: Vec<_> = new.iter().map(|it| it.waiting(false)).collect();
            let hashes: Vec<_> = new.iter().map(|it| it.written.consent_hash()).collect();
            let question = trust_question::of_servers(folder, &servers, &hashes);
            if let Some(may) = looking.answers.answer(&question) {
                for it in new {
                    consents.say(folder, &it.name, &it.written, may);
                }
                consents.save()?;
            }
        }
        let variables = |name: &str| looking.env.text(name);
        for it in found {
            if self.servers.iter().any(|known| known.name == it.name) {
                continue;
            }
            let said = consents.said(folder, &it.name, &it.written);
            if is_trusted && said == Some(true) {
                let origin = Origin::Project(it.file.clone());
                let made = it
                    .written
                    .server(&it.name, origin, it.placeholders, &variables, folder);
                self.take(made);
            } else if !self.waiting.iter().any(|known| known.name == it.name) {
                self.waiting.push(it.waiting(said == Some(false)));
            }
        }
        Ok(())
    }

    /// Returns the names of the servers that are started.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.servers.iter().map(|it| it.name.clone()).collect()
    }

    /// Returns a sentence about the servers that were not started, for the user; nothing if there is nothing to say.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let mut parts = Vec::new();
        let asked: Vec<&WaitingServer> = self.waiting.iter().filter(|it| !it.is_declined).collect();
        if let Some(first) = asked.first() {
            let names = asked
                .iter()
                .map(|it| format!("`{}`", rondo_core::shown::line(&it.name)));
            let names = names.collect::<Vec<_>>().join(", ");
            parts.push(format!(
                "`{}` adds servers that are not started until you agree: {names}; `rondo trust` asks",
                first.file.display()
            ));
        }
        for aside in &self.aside {
            parts.push(format!(
                "the server `{}` cannot be used: {}",
                aside.name, aside.why
            ));
        }
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    /// Returns the values of its servers that are secrets: headers, tokens, and variables whose names say so.
    pub(crate) fn secrets(&self, tokens: &TokenStore) -> Vec<String> {
        let rules = CommandEnvironment::default();
        let mut secrets = Vec::new();
        for server in &self.servers {
            match &server.connection {
                Connection::Stdio { variables, .. } => {
                    let values = variables.iter().map(|(name, it)| (name, it.expose()));
                    let held = values.filter(|(name, it)| rules.is_withheld_with(name, it));
                    secrets.extend(held.map(|(_, value)| value.to_owned()));
                }
                Connection::Http {
                    url,
                    headers,
                    oauth,
                } => {
                    secrets.extend(tokens.secrets(url));
                    secrets.extend(oauth.client_secret.iter().map(|it| it.expose().to_owned()));
                    let values = headers.values().map(|it| it.expose());
                    secrets.extend(values.flat_map(|it| {
                        // A token is a secret without the word before it, too.
                        let token = it.rsplit(' ').next().unwrap_or(it);
                        [it.to_owned(), token.to_owned()]
                    }));
                }
            }
        }
        secrets.retain(|it| it.len() >= 8);
        secrets
    }
}

impl ConfiguredServer {
    fn waiting(&self, is_declined: bool) -> WaitingServer {
        WaitingServer {
            name: self.name.clone(),
            file: self.file.clone(),
            described: self.written.described(),
            is_declined,
        }
    }
}

fn unread(file: &str, err: &dyn std::fmt::Display) -> UnusableServer {
    UnusableServer {
        name: file.to_owned(),
        why: rondo_core::shown::line(&err.to_string()),
    }
}

/// Asks the user about each server of a directory's project, whatever they said before.
///
/// # Errors
/// When a file cannot be read as what it should be, or what the user says cannot be kept.
pub fn ask_about(
    directory: &Path,
    paths: &Paths,
    ask: &mut dyn FnMut(&WaitingServer) -> bool,
) -> Result<usize> {
    let folder = folder_of(directory)?;
    let (mut setup, mut found) = (McpSetup::default(), Vec::new());
    if let Some(file) = crate::paths::project_config(directory) {
        let layer = Layer::from_file(&file)?;
        found.extend(
            layer
                .mcp
                .servers
                .into_iter()
                .map(|(name, written)| ConfiguredServer {
                    name,
                    file: file.clone(),
                    written,
                    placeholders: Placeholders::Shell,
                }),
        );
    }
    setup.read_files(&folder, &mut found, &KnownFiles::default());
    let mut consents = Consents::read(paths);
    for it in &found {
        let may = ask(&it.waiting(false));
        consents.say(&folder, &it.name, &it.written, may);
    }
    if !found.is_empty() {
        consents.save()?;
    }
    match setup.aside.first() {
        Some(aside) if found.is_empty() => Err(SetupError::new(
            SetupErrorKind::Config,
            format!("`{}` cannot be used: {}", aside.name, aside.why),
        )),
        _ => Ok(found.len()),
    }
}

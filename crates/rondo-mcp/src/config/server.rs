//! A server that is ready to be started.

use rondo_http::Secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A server, its placeholders filled.
#[derive(Debug, Clone)]
pub struct Server {
    /// Name of the server.
    pub name: String,
    /// How it is reached.
    pub connection: Connection,
    /// How long it is waited for.
    pub timeouts: Timeouts,
    /// Offers its tools in every request, whatever their size.
    pub always_load: bool,
    /// The only tools that are offered, by their own names; all if it is not set.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    pub disabled_tools: Vec<String>,
    /// Author of the configuration.
    pub origin: Origin,
    /// Identifies what is started or reached: a hash of command, arguments, names of variables and headers, and URL,
    /// as they are written. Everything remembered about a server belongs to this fingerprint.
    pub fingerprint: String,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Connection {
    /// It is a program, spoken to over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked for in `PATH`.
        command: String,
        /// Arguments of the program.
        arguments: Vec<String>,
        /// Variables that it gets beside the usual ones.
        variables: BTreeMap<String, Secret>,
        /// Working directory.
        directory: Option<PathBuf>,
    },
    /// It is at an address, spoken to over HTTP.
    Http {
        /// The address.
        url: Secret,
        /// Headers of each request.
        headers: BTreeMap<String, Secret>,
        /// How the user signs in to it.
        oauth: OAuthClient,
    },
}

/// How we sign in to a server that asks for it.
#[derive(Debug, Clone, Default)]
pub struct OAuthClient {
    /// How its authorization server knows us; if it is not set, we make ourselves known.
    pub client_id: Option<String>,
    /// The secret that goes with it.
    pub client_secret: Option<Secret>,
    /// The address of a document that describes us, for authorization servers that take one.
    pub client_metadata_url: Option<String>,
    /// Scopes to request; if empty, those that the server names.
    pub scopes: Vec<String>,
    /// The port that the browser comes back to; any that is free if it is 0.
    pub callback_port: u16,
}

/// How long a server is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From its start to its list of tools.
    pub startup: Duration,
    /// A call without progress.
    pub call: Duration,
    /// A call, whatever progress it reports.
    pub call_max: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            startup: Duration::from_secs(30),
            call: Duration::from_secs(120),
            call_max: Duration::from_secs(600),
        }
    }
}

/// Author of a server's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The user.
    User,
    /// A file of a project, which may be from anyone.
    Project(PathBuf),
}

impl Server {
    /// Returns whether a tool of the server may be offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == tool);
        self.enabled_tools.as_deref().is_none_or(is_named) && !is_named(&self.disabled_tools)
    }

    /// Returns whether its headers hold a token already.
    #[must_use]
    pub fn has_authorisation(&self) -> bool {
        match &self.connection {
            Connection::Stdio { .. } => false,
            Connection::Http { headers, .. } => headers
                .keys()
                .any(|name| name.eq_ignore_ascii_case("authorization")),
        }
    }

    /// Returns the command line or the address, on one line, without values that may be secret.
    #[must_use]
    pub fn shown(&self) -> String {
        let text = match &self.connection {
            Connection::Stdio {
                command, arguments, ..
            } => std::iter::once(command)
                .chain(arguments)
                .map(|word| quoted(word))
                .collect::<Vec<_>>()
                .join(" "),
            Connection::Http { url, .. } => rondo_http::without_credentials(url.expose()),
        };
        rondo_core::shown::line(&text)
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=@,+%".contains(it);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

//! A server as a file has it, before its placeholders are filled.

use super::placeholder::{Filling, Placeholders, Variables};
use super::server::{Connection, OAuthClient, Origin, Server, Timeouts};
use data_encoding::HEXLOWER;
use rondo_http::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The bound on a server's name, in characters.
const NAME_CHARS_MAX: usize = 32;
/// The bounds on how long something may take.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

/// A server of the user's own configuration, or of a file of another program brought into this form. It has either a
/// `command` or a `url`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenServer {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables that it gets beside the usual ones.
    pub env: BTreeMap<String, String>,
    /// Names of the user's variables that it gets as they are.
    pub env_vars: Vec<String>,
    /// Working directory; `None` for the current one.
    pub cwd: Option<PathBuf>,
    /// The address.
    pub url: Option<String>,
    /// Headers of each request.
    pub headers: BTreeMap<String, String>,
    /// Headers whose values are in these variables.
    pub headers_env: BTreeMap<String, String>,
    /// The variable with the token that is sent as `Authorization: Bearer`.
    pub bearer_token_env: Option<String>,
    /// How the user signs in to it.
    pub oauth: WrittenOAuth,
    /// Seconds from its start to its list of tools.
    pub startup_timeout_s: Option<f64>,
    /// Seconds that a call may take without progress.
    pub call_timeout_s: Option<f64>,
    /// Seconds that a call may take, whatever progress it reports.
    pub call_timeout_max_s: Option<f64>,
    /// Offers its tools in every request, whatever their size.
    pub always_load: bool,
    /// The only tools that are offered.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    pub disabled_tools: Vec<String>,
    /// Leaves it out.
    pub disabled: bool,
}

/// How the user signs in to a server that asks for it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenOAuth {
    /// How its authorization server knows us.
    pub client_id: Option<String>,
    /// The variable with the secret that goes with it.
    pub client_secret_env: Option<String>,
    /// The address of a document that describes us.
    pub client_metadata_url: Option<String>,
    /// Scopes to request.
    pub scopes: Vec<String>,
    /// The port that the browser comes back to.
    pub callback_port: u16,
}

/// A server that is configured and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableServer {
    /// Its name, for display.
    pub name: String,
    /// Reason of the refusal.
    pub why: String,
}

/// Returns whether a server can have this name: letters, digits, `-` and single `_`, at most 32.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.contains("__")
        && !name.ends_with('_')
        && !name.starts_with('_')
}

impl WrittenServer {
    /// Fills the placeholders and checks what is written.
    ///
    /// # Errors
    /// Says why the server cannot be used.
    pub fn server(
        &self,
        name: &str,
        origin: Origin,
        placeholders: Placeholders,
        variables: Variables<'_>,
        folder: &PathBuf,
    ) -> Result<Server, UnusableServer> {
        let filling = Filling {
            placeholders,
            variables,
            folder,
        };
        let made = self.make(name, origin, filling);
        made.map_err(|why| UnusableServer {
            name: rondo_core::shown::line(&name.chars().take(100).collect::<String>()),
            why,
        })
    }

    fn make(&self, name: &str, origin: Origin, filling: Filling<'_>) -> Result<Server, String> {
        if !is_name(name) {
            return Err(format!(
                "a name has at most {NAME_CHARS_MAX} letters, digits, `-` and single `_` between them"
            ));
        }
        let connection = match (&self.command, &self.url) {
            (Some(command), None) => self.stdio(command, filling)?,
            (None, Some(url)) => self.http(url, filling)?,
            (Some(_), Some(_)) => return Err("it has both a `command` and a `url`".to_owned()),
            (None, None) => return Err("it has neither a `command` nor a `url`".to_owned()),
        };
        Ok(Server {
            name: name.to_owned(),
            connection,
            timeouts: self.timeouts()?,
            always_load: self.always_load,
            enabled_tools: self.enabled_tools.clone(),
            disabled_tools: self.disabled_tools.clone(),
            origin,
            fingerprint: self.fingerprint(),
        })
    }

    fn stdio(&self, command: &str, filling: Filling<'_>) -> Result<Connection, String> {
        let command = filling.fill(command)?;
        if command.trim().is_empty() || command.contains('\0') {
            return Err("its `command` is empty".to_owned());
        }
        let mut variables = BTreeMap::new();
        for name in &self.env_vars {
            if let Some(value) = (filling.variables)(name) {
                variables.insert(name.clone(), Secret::new(value));
            }
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err("the name of a variable is empty or has `=` in it".to_owned());
            }
            variables.insert(name.clone(), Secret::new(filling.fill(value)?));
        }
        let directory = match &self.cwd {
            Some(directory) => {
                let directory = filling.fill(&directory.display().to_string())?;
                Some(filling.folder.join(directory))
            }
            None => None,
        };
        let arguments = self.args.iter().map(|it| filling.fill(it));
        Ok(Connection::Stdio {
            command,
            arguments: arguments.collect::<Result<_, _>>()?,
            variables,
            directory,
        })
    }

    fn http(&self, url: &str, filling: Filling<'_>) -> Result<Connection, String> {
        let url = filling.fill(url)?;
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err("its `url` begins with neither `http://` nor `https://`".to_owned());
        }
        let of_variable = |name: &str| {
            let missing = || {
                format!(
                    "the variable `{}` is not set",
                    rondo_core::shown::line(name)
                )
            };
            (filling.variables)(name).ok_or_else(missing)
        };
        let mut headers = BTreeMap::new();
        for (name, value) in &self.headers {
            headers.insert(name.clone(), Secret::new(filling.fill(value)?));
        }
        for (name, variable) in &self.headers_env {
            headers.insert(name.clone(), Secret::new(of_variable(variable)?));
        }
        if let Some(variable) = &self.bearer_token_env {
            let token = format!("Bearer {}", of_variable(variable)?.trim());
            headers.insert("Authorization".to_owned(), Secret::new(token));
        }
        Ok(Connection::Http {
            url: Secret::new(url),
            headers,
            oauth: OAuthClient {
                client_id: self.oauth.client_id.clone(),
                client_secret: match &self.oauth.client_secret_env {
                    Some(variable) => Some(Secret::new(of_variable(variable)?)),
                    None => None,
                },
                client_metadata_url: self.oauth.client_metadata_url.clone(),
                scopes: self.oauth.scopes.clone(),
                callback_port: self.oauth.callback_port,
            },
        })
    }

    fn timeouts(&self) -> Result<Timeouts, String> {
        let usual = Timeouts::default();
        let read = |name: &str, seconds: Option<f64>, usual: Duration| match seconds {
            None => Ok(usual),
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|it| !it.is_zero() && *it <= TIMEOUT_MAX)
                .ok_or_else(|| format!("`{name}` is out of its range: up to a day, in seconds")),
        };
        let startup = read("startup_timeout_s", self.startup_timeout_s, usual.startup)?;
        let call = read("call_timeout_s", self.call_timeout_s, usual.call)?;
        let call_max = read(
            "call_timeout_max_s",
            self.call_timeout_max_s,
            usual.call_max,
        )?;
        Ok(Timeouts {
            startup,
            call,
            call_max: call_max.max(match self.call_timeout_max_s {
                Some(_) => call_max,
                None => call,
            }),
        })
    }

    /// Returns the hash of what is started or reached: command, arguments, names of variables and headers, and URL, as
    /// they are written.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        let what = json!([
            self.command,
            self.args,
            names(&self.env),
            self.env_vars,
            self.cwd,
            self.url,
            names(&self.headers),
            self.headers_env,
            self.bearer_token_env,
        ]);
        HEXLOWER.encode(&Sha256::digest(what.to_string()))
    }

    /// Returns the hash that consent to a project's server is for: that of what is started or reached, and of the
    /// values of variables and headers as they are written. A value such as that of `NODE_OPTIONS` runs code too.
    #[must_use]
    pub fn consent_hash(&self) -> String {
        let mut what = vec![
            json!(self.fingerprint()),
            json!(self.env),
            json!(self.headers),
        ];
        if self.oauth != WrittenOAuth::default() {
            what.push(json!(self.oauth));
        }
        let what = Value::from(what);
        HEXLOWER.encode(&Sha256::digest(what.to_string()))
    }

    /// Returns the description that the user reads before consent: the command line or address, and the names of
    /// variables and headers, each on one line.
    #[must_use]
    pub fn described(&self) -> String {
        let mut words: Vec<&str> = self.command.iter().map(String::as_str).collect();
        words.extend(self.args.iter().map(String::as_str));
        words.extend(self.url.as_deref());
        let mut text = rondo_core::shown::line(&words.join(" "));
        let set = self
            .env
            .keys()
            .chain(&self.env_vars)
            .chain(self.headers.keys())
            .chain(&self.oauth.client_secret_env);
        let set: Vec<String> = set.map(|it| rondo_core::shown::line(it)).collect();
        if !set.is_empty() {
            text = format!("{text} (with {})", set.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio() -> WrittenServer {
        WrittenServer {
            command: Some("npx".to_owned()),
            args: vec!["-y".to_owned(), "${PKG:-x}".to_owned()],
            env: [("KEY".to_owned(), "${SECRET}".to_owned())].into(),
            ..WrittenServer::default()
        }
    }

    fn made(written: &WrittenServer, name: &str) -> Result<Server, String> {
        let variables = |name: &str| (name == "SECRET").then(|| "s3cret".to_owned());
        let made = written.server(
            name,
            Origin::User,
            Placeholders::Shell,
            &variables,
            &PathBuf::from("/w"),
        );
        made.map_err(|it| it.why)
    }

    #[test]
    fn a_server_is_made_of_what_is_written_and_shows_no_secret() {
        let server = made(&stdio(), "a").unwrap();
        assert_eq!(server.shown(), "npx -y x");
        assert!(!format!("{server:?}").contains("s3cret"));
        let Connection::Stdio { variables, .. } = &server.connection else {
            panic!("a program")
        };
        assert_eq!(variables["KEY"].expose(), "s3cret");
    }

    #[test]
    fn names_are_told_apart_where_they_stand_before_a_tool() {
        for (name, is_good) in [
            ("a", true),
            ("git-hub_2", true),
            (&"n".repeat(NAME_CHARS_MAX), true),
            (&"n".repeat(NAME_CHARS_MAX + 1), false),
            ("", false),
            ("a__b", false),
            ("a_", false),
            ("_a", false),
            ("a b", false),
            ("a/b", false),
            ("\u{1b}", false),
        ] {
            assert_eq!(is_name(name), is_good, "{name}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_set_aside_and_says_why() {
        let with = |change: fn(&mut WrittenServer)| {
            let mut written = stdio();
            change(&mut written);
            made(&written, "a").unwrap_err()
        };
        assert_eq!(
            with(|it| it.command = None),
            "it has neither a `command` nor a `url`"
        );
        assert_eq!(
            with(|it| it.url = Some("http://x".to_owned())),
            "it has both a `command` and a `url`"
        );
        let ftp = |it: &mut WrittenServer| {
            it.command = None;
            it.url = Some("ftp://x".to_owned());
        };
        assert!(with(ftp).contains("neither `http://` nor `https://`"));
        assert!(with(|it| it.startup_timeout_s = Some(0.0)).contains("startup_timeout_s"));
        assert!(with(|it| it.call_timeout_s = Some(f64::NAN)).contains("call_timeout_s"));
        assert!(with(|it| it.call_timeout_s = Some(86_400.1)).contains("up to a day"));
        assert!(
            with(|it| drop(it.env.insert("A=B".to_owned(), String::new()))).contains("variable")
        );
    }

    #[test]
    fn a_hash_is_of_what_runs_and_consent_of_values_too() {
        let base = stdio();
        let mut value = stdio();
        value.env.insert("KEY".to_owned(), "other".to_owned());
        assert_eq!(base.fingerprint(), value.fingerprint());
        assert_ne!(base.consent_hash(), value.consent_hash());
        let changes: [fn(&mut WrittenServer); 5] = [
            |it| it.command = Some("node".to_owned()),
            |it| it.args.push("x".to_owned()),
            |it| drop(it.env.insert("LD_PRELOAD".to_owned(), String::new())),
            |it| it.cwd = Some("/x".into()),
            |it| it.url = Some("http://x".to_owned()),
        ];
        for change in changes {
            let mut other = stdio();
            change(&mut other);
            assert_ne!(base.fingerprint(), other.fingerprint());
            assert_ne!(base.consent_hash(), other.consent_hash());
        }
        let mut secret = stdio();
        secret.oauth.client_secret_env = Some("GITHUB_TOKEN".to_owned());
        assert_ne!(base.consent_hash(), secret.consent_hash());
        assert!(secret.described().contains("GITHUB_TOKEN"));
        let mut timeout = stdio();
        timeout.call_timeout_s = Some(1.0);
        assert_eq!(base.consent_hash(), timeout.consent_hash());
    }
}

//! The files in which projects configure servers for other programs.

use super::placeholder::Placeholders;
use super::written::{UnusableServer, WrittenOAuth, WrittenServer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The bound on such a file, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// The bound on servers in one file.
const SERVERS_MAX: usize = 64;

/// Whose form a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `.mcp.json`: `mcpServers`, with `type` and `${VAR:-default}`.
    Claude,
    /// `.vscode/mcp.json`: `servers`, with `${env:VAR}`.
    VsCode,
    /// `.cursor/mcp.json`: `mcpServers`, with `${env:VAR}`.
    Cursor,
    /// `.gemini/settings.json`: `mcpServers`, with `httpUrl` and `$VAR`.
    Gemini,
    /// `.codex/config.toml`: `[mcp_servers.NAME]`.
    Codex,
}

/// A file of a project, below its folder.
#[derive(Debug, Clone, Copy)]
pub struct ProjectFile {
    /// Its path below the folder.
    pub path: &'static str,
    /// Dialect of the file.
    pub dialect: Dialect,
}

/// The files that are looked for in a project's folder; if several name the same server, the first one counts.
pub const PROJECT_FILES: [ProjectFile; 5] = [
    ProjectFile {
        path: ".mcp.json",
        dialect: Dialect::Claude,
    },
    ProjectFile {
        path: ".vscode/mcp.json",
        dialect: Dialect::VsCode,
    },
    ProjectFile {
        path: ".cursor/mcp.json",
        dialect: Dialect::Cursor,
    },
    ProjectFile {
        path: ".gemini/settings.json",
        dialect: Dialect::Gemini,
    },
    ProjectFile {
        path: ".codex/config.toml",
        dialect: Dialect::Codex,
    },
];

/// A file that cannot be read as what it should be. Says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

impl Dialect {
    /// Returns the placeholders of its values.
    #[must_use]
    pub fn placeholders(self) -> Placeholders {
        match self {
            Self::Claude => Placeholders::Shell,
            Self::VsCode | Self::Cursor => Placeholders::Editor,
            Self::Gemini => Placeholders::Lenient,
            Self::Codex => Placeholders::None,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Claude | Self::Cursor | Self::Gemini => "mcpServers",
        }
    }
}

/// Reads the servers of a file, and says of each that cannot be used why. Servers that are switched off are left out.
///
/// # Errors
/// When the file is not in its form.
pub fn read(
    dialect: Dialect,
    text: &str,
) -> Result<(BTreeMap<String, WrittenServer>, Vec<UnusableServer>), ReadError> {
    let root: Value = match dialect {
        Dialect::Codex => {
            toml::from_str(text).map_err(|err| ReadError(err.message().to_owned()))?
        }
        Dialect::VsCode | Dialect::Cursor | Dialect::Gemini | Dialect::Claude => {
            serde_json::from_str(&without_comments(text))
                .map_err(|err| ReadError(err.to_string()))?
        }
    };
    let key = dialect.key();
    let servers = match root.get(key) {
        None => return Ok(Default::default()),
        Some(Value::Object(servers)) => servers,
        Some(_) => return Err(ReadError(format!("`{key}` is not a table of servers"))),
    };
    if servers.len() > SERVERS_MAX {
        return Err(ReadError(format!("it has more than {SERVERS_MAX} servers")));
    }
    let (mut found, mut aside) = (BTreeMap::new(), Vec::new());
    for (name, server) in servers {
        match written(dialect, server) {
            Ok(server) if server.disabled => {}
            Ok(server) => drop(found.insert(name.clone(), server)),
            Err(why) => aside.push(UnusableServer {
                name: rondo_core::shown::line(&name.chars().take(100).collect::<String>()),
                why,
            }),
        }
    }
    Ok((found, aside))
}

fn written(dialect: Dialect, server: &Value) -> Result<WrittenServer, String> {
    let Value::Object(fields) = server else {
        return Err("it is not a table".to_owned());
    };
    let fields = Fields(fields);
    for (field, what) in [
        ("headersHelper", "runs a program for its headers"),
        ("envFile", "takes variables from a file"),
    ] {
        if fields.0.contains_key(field) {
            return Err(format!("its `{field}` {what}, which is not supported"));
        }
    }
    let kind = fields.text("type")?;
    if kind.as_deref() == Some("sse") || dialect == Dialect::Gemini && is_gemini_sse(&fields) {
        return Err(
            "it uses SSE, which the protocol no longer has; use its streamable HTTP address"
                .to_owned(),
        );
    }
    let url = match dialect {
        Dialect::Gemini => fields.text("httpUrl")?.or(fields.text("url")?),
        _ => fields.text("url")?.or(fields.text("serverUrl")?),
    };
    let seconds = |names: [&str; 2]| names.iter().find_map(|name| fields.0.get(*name)?.as_f64());
    let headers = match dialect {
        Dialect::Codex => fields.texts("http_headers")?,
        _ => fields.texts("headers")?,
    };
    Ok(WrittenServer {
        command: fields.text("command")?,
        args: fields.list("args")?.unwrap_or_default(),
        env: fields.texts("env")?,
        env_vars: fields.list("env_vars")?.unwrap_or_default(),
        cwd: fields.text("cwd")?.map(Into::into),
        url,
        headers,
        headers_env: fields.texts("env_http_headers")?,
        bearer_token_env: fields.text("bearer_token_env_var")?,
        oauth: WrittenOAuth::default(),
        startup_timeout_s: seconds(["startup_timeout_sec", "startup_timeout"]),
        call_timeout_s: match dialect {
            // Milliseconds there.
            Dialect::Gemini | Dialect::Claude => {
                seconds(["timeout", "timeout"]).map(|it| it / 1000.0)
            }
            _ => seconds(["tool_timeout_sec", "tool_timeout_sec"]),
        },
        call_timeout_max_s: None,
        always_load: fields.0.get("alwaysLoad") == Some(&Value::Bool(true)),
        enabled_tools: match fields.list("enabled_tools")? {
            Some(tools) => Some(tools),
            None => fields.list("includeTools")?,
        },
        disabled_tools: match fields.list("disabled_tools")? {
            Some(tools) => tools,
            None => fields.list("excludeTools")?.unwrap_or_default(),
        },
        disabled: fields.0.get("disabled") == Some(&Value::Bool(true))
            || fields.0.get("enabled") == Some(&Value::Bool(false)),
    })
}

fn is_gemini_sse(fields: &Fields<'_>) -> bool {
    let is_http = fields.0.get("type").and_then(Value::as_str) == Some("http");
    fields.0.contains_key("url") && !fields.0.contains_key("httpUrl") && !is_http
}

/// The fields of a server.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("its `{name}` is not a string")),
        }
    }

    fn list(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("its `{name}` is not a list of strings");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(values)) => {
                let texts = values.iter().map(|it| it.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }

    fn texts(&self, name: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong = || format!("its `{name}` is not a table of strings");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(fields)) => {
                let text = |value: &Value| match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
                    _ => None,
                };
                let fields = fields
                    .iter()
                    .map(|(key, value)| Some((key.clone(), text(value)?)));
                fields.collect::<Option<_>>().ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }
}

/// Replaces comments and commas before a closing bracket by blanks, as editors allow them in their files.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_text = false;
    while let Some(it) = characters.next() {
        match (in_text, it, characters.peek()) {
            (true, '\\', Some(_)) => {
                out.push(it);
                out.extend(characters.next());
            }
            (_, '"', _) => {
                in_text = !in_text;
                out.push(it);
            }
            (false, '/', Some('/')) => while characters.next_if(|it| *it != '\n').is_some() {},
            (false, '/', Some('*')) => {
                characters.next();
                let mut before = ' ';
                for it in characters.by_ref() {
                    if before == '*' && it == '/' {
                        break;
                    }
                    before = it;
                }
            }
            (false, ']' | '}', _) => {
                let kept = out.trim_end();
                if kept.ends_with(',') {
                    out.truncate(kept.len() - 1);
                }
                out.push(it);
            }
            _ => out.push(it),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(dialect: Dialect, text: &str) -> WrittenServer {
        let (mut servers, aside) = read(dialect, text).unwrap();
        assert_eq!(aside, []);
        let (_, server) = servers.pop_first().unwrap();
        assert!(servers.is_empty());
        server
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        pairs.collect()
    }

    #[test]
    fn each_program_has_its_own_form() {
        let npx = WrittenServer {
            command: Some("npx".to_owned()),
            args: vec!["-y".to_owned(), "x".to_owned()],
            env: texts(&[("K", "${K}")]),
            ..WrittenServer::default()
        };
        let server =
            r#"{"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"K": "${K}"}}"#;
        for (dialect, key) in [
            (Dialect::Claude, "mcpServers"),
            (Dialect::Cursor, "mcpServers"),
            (Dialect::Gemini, "mcpServers"),
            (Dialect::VsCode, "servers"),
        ] {
            let text = format!(r#"{{"{key}": {{"s": {server}}}, "other": 1}}"#);
            assert_eq!(only(dialect, &text), npx, "{dialect:?}");
        }
        let text = "model = 'x'\n[mcp_servers.s]\ncommand = 'npx'\nargs = ['-y', 'x']\n[mcp_servers.s.env]\nK = '${K}'\n";
        assert_eq!(only(Dialect::Codex, text), npx);
    }

    #[test]
    fn addresses_and_headers_are_read_in_each_form() {
        let http = only(
            Dialect::Claude,
            r#"{"mcpServers": {"s": {"type": "http", "url": "https://x/mcp", "headers": {"A": "b"}}}}"#,
        );
        assert_eq!(http.url.as_deref(), Some("https://x/mcp"));
        assert_eq!(http.headers, texts(&[("A", "b")]));
        let gemini = only(
            Dialect::Gemini,
            r#"{"mcpServers": {"s": {"httpUrl": "https://x", "timeout": 5000, "includeTools": ["a"], "excludeTools": ["b"]}}}"#,
        );
        assert_eq!(gemini.url.as_deref(), Some("https://x"));
        assert_eq!(gemini.call_timeout_s, Some(5.0));
        assert_eq!(gemini.enabled_tools, Some(vec!["a".to_owned()]));
        assert_eq!(gemini.disabled_tools, ["b"]);
        let codex = only(
            Dialect::Codex,
            "[mcp_servers.s]\nurl = 'https://x'\nbearer_token_env_var = 'T'\nstartup_timeout_sec = 20\ntool_timeout_sec = 9\n\
             http_headers = { A = 'b' }\nenv_http_headers = { C = 'D' }\n",
        );
        assert_eq!(codex.bearer_token_env.as_deref(), Some("T"));
        assert_eq!(
            (codex.startup_timeout_s, codex.call_timeout_s),
            (Some(20.0), Some(9.0))
        );
        assert_eq!(codex.headers, texts(&[("A", "b")]));
        assert_eq!(codex.headers_env, texts(&[("C", "D")]));
    }

    #[test]
    fn comments_and_last_commas_of_editors_are_no_mistake() {
        let text = r#"{
            // a comment with "quotes" and a }
            "servers": {
                "s": {"command": "a//b", "args": ["/* no comment */", "\"//",],}, /* one, more */
            },
        }"#;
        let server = only(Dialect::VsCode, text);
        assert_eq!(server.command.as_deref(), Some("a//b"));
        assert_eq!(server.args, ["/* no comment */", "\"//"]);
    }

    #[test]
    fn what_cannot_be_used_is_set_aside_and_the_others_stay() {
        let text = r#"{"mcpServers": {
            "a": {"command": "x"},
            "b": 1,
            "c": {"command": ["x"]},
            "d": {"command": "x", "args": "y"},
            "e": {"type": "sse", "url": "http://x"},
            "f": {"type": "http", "url": "http://x", "headersHelper": "./steal"},
            "g": {"command": "x", "disabled": true},
            "h\u001b": {"command": "x", "env": []}
        }}"#;
        let (servers, aside) = read(Dialect::Claude, text).unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["a"]);
        let names: Vec<&str> = aside.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "d", "e", "f", "h\\u{1b}"]);
        assert_eq!(aside[1].why, "its `command` is not a string");
        assert!(aside[3].why.contains("SSE"));
        assert!(aside[4].why.contains("headersHelper"));
        let gemini = r#"{"mcpServers": {"s": {"url": "http://x/sse"}}}"#;
        assert_eq!(read(Dialect::Gemini, gemini).unwrap().1.len(), 1);
    }

    #[test]
    fn a_file_in_another_form_is_an_error_and_one_without_servers_is_none() {
        for text in ["", "[]", "{\"mcpServers\": []}", "{"] {
            assert!(
                read(Dialect::Claude, text).is_err() || text == "[]",
                "{text}"
            );
        }
        assert!(read(Dialect::Codex, "mcp_servers = 1").is_err());
        assert!(
            read(Dialect::Gemini, r#"{"theme": "x"}"#)
                .unwrap()
                .0
                .is_empty()
        );
        let servers = |count: usize| {
            let servers = (0..count).map(|at| format!(r#""s{at}": {{"command": "x"}}"#));
            format!(
                r#"{{"mcpServers": {{{}}}}}"#,
                servers.collect::<Vec<_>>().join(",")
            )
        };
        assert!(read(Dialect::Claude, &servers(SERVERS_MAX - 1)).is_ok());
        assert!(read(Dialect::Claude, &servers(SERVERS_MAX)).is_ok());
        assert!(read(Dialect::Claude, &servers(SERVERS_MAX + 1)).is_err());
    }
}

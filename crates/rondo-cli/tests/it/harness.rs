//! A hermetic environment: no variable, file or terminal of the tests' user is seen.

use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, openai};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Once;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// A home, a project and nothing else.
#[must_use]
pub(crate) struct TestEnv {
    root: tempfile::TempDir,
    variables: Vec<(String, String)>,
    stdin: Option<String>,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        hear_ignored_signals();
        let env = Self {
            root: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
            stdin: None,
        };
        for folder in ["home", "project"] {
            std::fs::create_dir(env.root.path().join(folder)).unwrap();
        }
        env
    }

    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        write(&self.project().join(name), text.as_ref());
        self
    }

    pub(crate) fn user_config(&self, text: &str) -> &Self {
        write(
            &self.home().join(".config/rondo/config.toml"),
            text.as_bytes(),
        );
        self
    }

    pub(crate) fn user_policy(&self, text: &str) -> &Self {
        write(
            &self.home().join(".config/rondo/policy.toml"),
            text.as_bytes(),
        );
        self
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rondo"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .env("COLUMNS", "80")
            // No test fetches a gigabyte because it names no model.
            .env("RONDO_OFFLINE", "1")
            .envs(self.variables.iter().cloned())
            .current_dir(self.project());
        piped(command)
    }

    /// Returns the program as bash starts it, which runs `script` for that.
    pub(crate) fn wrapped(&self, script: &str, args: &[&str]) -> Command {
        let inner = self.command(args);
        let inner = inner.as_std();
        let mut command = Command::new("bash");
        command
            .arg("-c")
            .arg(script)
            .arg(inner.get_program())
            .args(inner.get_args())
            .env_clear()
            .envs(
                inner
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(self.project());
        piped(command)
    }

    /// Returns the directory with the state of a session's commands, or that of all sessions.
    pub(crate) fn calls(&self, session: &str) -> PathBuf {
        self.home().join(".local/state/rondo/calls").join(session)
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Shown {
        let mut command = self.command(args);
        if self.stdin.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        if let (Some(text), Some(mut stdin)) = (&self.stdin, child.stdin.take()) {
            // A command that needs no input may be gone before it is written.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        self.wait(child).await
    }

    pub(crate) async fn wait(&self, child: Child) -> Shown {
        self.shown(&child.wait_with_output().await.unwrap())
    }

    /// Asks a server of the test's own.
    pub(crate) async fn ask(&self, server: &Server, args: &[&str]) -> Shown {
        self.run(&ask_args(&server.url("/v1"), args)).await
    }

    pub(crate) fn shown(&self, output: &Output) -> Shown {
        let text = |bytes: &[u8]| {
            let root = self.root.path().to_str().unwrap();
            String::from_utf8(bytes.to_vec())
                .unwrap()
                .replace(root, "[ROOT]")
        };
        Shown {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            code: output.status.code(),
        }
    }
}

/// Has a command read nothing, have its output read, and end with the test.
fn piped(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Has what the tests start find signals as usual. A runner in the background, or under `nohup`, ignores some,
/// and so would whatever it starts; one that is listened to is as usual again in a program that is started.
fn hear_ignored_signals() {
    static ONCE: Once = Once::new();
    if Handle::try_current().is_err() {
        return;
    }
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let set = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
        let set = set.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
        let set = set.unwrap_or_default();
        let kinds = [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
        ];
        for kind in kinds {
            if set >> (kind.as_raw_value() - 1) & 1 == 1 {
                drop(signal(kind).unwrap());
            }
        }
    });
}

impl Shown {
    /// Compares everything that was shown.
    #[track_caller]
    pub(crate) fn check(&self, stdout: &str, stderr: &str, code: i32) {
        let expected = (stdout, stderr, Some(code));
        let actual = (self.stdout.as_str(), self.stderr.as_str(), self.code);
        assert_eq!(actual, expected);
    }

    /// Returns every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the last line, which must be a `result` that names the process's exit code.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let last = self.lines().pop().expect("there is a last line");
        assert_eq!(last["type"], "result");
        assert_eq!(last["exit_code"].as_i64(), self.code.map(i64::from));
        last
    }
}

/// Returns the arguments of `ask` with a server's address, and more.
pub(crate) fn ask_args<'a>(url: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    let ask = ["ask", "-m", "openai/test", "--base-url", url];
    [&ask, args].concat()
}

/// Starts a server that answers with these replies, streamed.
pub(crate) async fn serve(replies: Vec<ReplyScript>) -> Server {
    let responses: Vec<Response> = replies.iter().map(openai::streamed).collect();
    Server::start(Script::from(responses)).await
}

pub(crate) fn says(text: &str) -> ReplyScript {
    ReplyScript::text([text]).usage(10, 5)
}

pub(crate) fn calls(name: &str, arguments: &Value) -> ReplyScript {
    ReplyScript::calls([CallScript::new("call_1", name, arguments)]).usage(10, 5)
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

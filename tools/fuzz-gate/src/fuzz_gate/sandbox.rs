//! Starts the runner where commands can do no harm: in namespaces of its own, as nobody, without a
//! network, with the system's directories read-only and everything else in memory.

use super::protocol::{Reply, Request};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

const SETUP: &str = include_str!("setup.sh");
/// Bytes that are read of a reply at the most.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// A runner within its walls. Dropping it ends everything in there.
pub(super) struct Sandbox {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    /// Mount point of its file systems, in its own namespace only, and the program that it copies.
    _place: TempDir,
}

impl Sandbox {
    /// Builds the place and starts the runner.
    ///
    /// # Errors
    /// When this machine does not let us make namespaces, which containers often do not.
    pub(super) fn start() -> Result<Self> {
        let place = tempfile::tempdir()?;
        let (root, program) = (place.path().join("root"), place.path().join("program"));
        fs::create_dir(&root)?;
        copy_this_program(&program)?;
        let is_root = rustix::process::geteuid().is_root();
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child=KILL",
        ]);
        if !is_root {
            command.args(["--user", "--map-root-user"]);
        }
        command
            .args(["bash", "-c", SETUP, "setup"])
            .arg(&root)
            .arg(&program)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("RONDO_FUZZ_IS_ROOT", if is_root { "1" } else { "0" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("failed to start `unshare`")?;
        let (requests, replies) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .context("the runner has no pipes")?;
        let mut sandbox = Self {
            child,
            requests,
            replies: BufReader::new(replies),
            _place: place,
        };
        match sandbox.receive() {
            Ok(Reply::Ready) => Ok(sandbox),
            _ => bail!(
                "commands cannot be confined here: `unshare` with mounts and a network of its own is needed"
            ),
        }
    }

    /// Judges a command and runs it if it is judged read-only.
    ///
    /// # Errors
    /// When the runner died of it.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.requests.write_all(&line)?;
        self.receive()
    }

    fn receive(&mut self) -> Result<Reply> {
        let mut line = String::new();
        let mut bounded = std::io::Read::take(&mut self.replies, REPLY_BYTES_MAX);
        bounded.read_line(&mut line)?;
        if line.is_empty() {
            bail!("the runner is gone");
        }
        Ok(serde_json::from_str(&line)?)
    }
}

/// By the kernel's own handle: `cargo test` builds this program again while it runs, so that the path
/// that it was started by names nothing any more.
fn copy_this_program(to: &Path) -> Result<()> {
    fs::copy("/proc/self/exe", to).context("failed to copy /proc/self/exe")?;
    Ok(())
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // `unshare` takes the first process of the namespace with it, and that all others.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

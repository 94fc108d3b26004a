//! The sandbox of macOS, as the text of a profile. It was never run.
//!
//! The last rule that fits an operation counts. `sandbox-exec(1)` and the profiles in `/System/Library/Sandbox/Profiles`
//! show the language, which has no documentation; it is deprecated, and everything that confines itself there uses it.

use crate::roots::{PROTECTED, PROTECTED_OF_GIT};
use crate::{NetworkAccess, SandboxMode, SandboxSpec};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Rules that programs need to start and to work together: processes, semaphores, terminals, users and time zones.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow file-read-metadata)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.notification_center"))
(allow file-read* file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow file-read* (literal "/") (subpath "/System") (subpath "/Library") (subpath "/private/etc") (subpath "/private/var/db/timezone") (subpath "/dev"))
"#;

/// Servers of a command's own, and nothing beyond this machine.
const LOOPBACK: &str = r#"(allow network-bind network-inbound (local ip "localhost:*"))
(allow network-outbound (remote ip "localhost:*"))
"#;
/// Directory that is protected with exceptions: every commit writes it.
const GIT: &str = ".git";

/// Returns the profile of a command; `real` follows the links of a path, since rules have paths without any.
pub(crate) fn profile(spec: &SandboxSpec, real: impl Fn(&Path) -> PathBuf) -> String {
    let rule = |verb: &str, path: &Path| format!("({verb} (subpath {}))\n", quoted(&real(path)));
    let mut text = BASE.to_owned();
    text.extend(spec.readable.iter().map(|it| rule("allow file-read*", it)));
    let own = match spec.mode {
        SandboxMode::ReadOnly => "allow file-read*",
        SandboxMode::WorkspaceWrite => "allow file-read* file-write*",
    };
    text.extend(spec.writable.iter().map(|it| rule(own, it.path())));
    let scratch = spec.scratch.iter();
    text.extend(scratch.map(|it| rule("allow file-read* file-write*", it)));
    // A missing file has no links to follow.
    for root in spec.writable.iter().map(|root| real(root.path())) {
        let names = PROTECTED.iter().filter(|name| **name != GIT);
        text.extend(names.map(|name| rule("deny file-write*", &root.join(name))));
        // The directory itself can be neither moved nor replaced.
        let git = quoted(&real(&root.join(GIT)));
        let _ = writeln!(
            text,
            "(deny file-write-unlink file-write-create (literal {git}))"
        );
    }
    // Nothing looks at these when a command has ended, so they are held as a whole.
    let names = [&PROTECTED_OF_GIT[..], &["modules", "worktrees"]].concat();
    let names = names.join("|");
    let _ = writeln!(
        text,
        r#"(deny file-write* (regex #"/\.git/({names})(/|$)"))"#
    );
    let _ = writeln!(text, r#"(deny file-write-create (regex #"/\.git$"))"#);
    text.push_str(match spec.network {
        NetworkAccess::Host => "(allow network*)\n",
        NetworkAccess::Loopback => LOOPBACK,
        NetworkAccess::Nothing => "",
    });
    text
}

/// Returns a path as a string of the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: SandboxMode) -> String {
        let spec = SandboxSpec::new(mode, ["/work/a \"b\""]);
        profile(&spec, Path::to_owned)
    }

    #[test]
    fn the_workspace_is_written_but_for_what_is_protected() {
        let text = of(SandboxMode::WorkspaceWrite);
        let at = |rule: &str| text.find(rule).unwrap_or_else(|| panic!("{rule}: {text}"));
        let allowed = at(r#"(allow file-read* file-write* (subpath "/work/a \"b\""))"#);
        for name in [".rondo", "AGENTS.md", ".git/hooks"] {
            let denied = at(&format!(
                r#"(deny file-write* (subpath "/work/a \"b\"/{name}"))"#
            ));
            assert!(allowed < denied, "the last rule counts");
        }
    }

    #[test]
    fn nothing_is_written_where_the_workspace_is_only_read() {
        let text = of(SandboxMode::ReadOnly);
        assert!(
            !text.contains("allow file-read* file-write* (subpath"),
            "{text}"
        );
    }
}

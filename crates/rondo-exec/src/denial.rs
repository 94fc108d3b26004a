//! What the model reads of what the sandbox refused.

use rondo_launch::CallStatus;
use rondo_policy::OUTSIDE_SANDBOX;
use rondo_sandbox::{SandboxMode, Undone};

/// What programs write when the kernel refuses. The kernel tells nobody else.
const REFUSED: [&str; 10] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "EROFS",
    "ENETUNREACH",
    "EAI_AGAIN",
];
/// Things that were put back and are named.
const NAMED_MAX: usize = 8;

/// Returns what is said of a command that the sandbox refused something, or seems to have.
pub(crate) fn said(status: &CallStatus) -> Option<String> {
    let mode = status.sandbox?;
    let undone = of_undone(&status.undone);
    let has_failed = status.exit_code.is_some_and(|code| code != 0);
    let is_refused = has_failed && REFUSED.iter().any(|it| status.stdout.contains(it));
    let guess = is_refused.then(|| {
        format!(
            "it ran in a sandbox ({}), which may be why it failed",
            rules(mode)
        )
    });
    let said: Vec<String> = undone.into_iter().chain(guess).collect();
    (!said.is_empty()).then(|| {
        format!(
            "{}. If it needs more, call it with `{OUTSIDE_SANDBOX}`: true and a `justification`: a person is asked",
            said.join("; ")
        )
    })
}

fn rules(mode: SandboxMode) -> &'static str {
    match mode {
        SandboxMode::ReadOnly => "it may change no file, and has no network",
        SandboxMode::WorkspaceWrite => {
            "it may change files in the working directories alone, and has no network"
        }
    }
}

/// Says what is protected and was changed.
fn of_undone(undone: &[Undone]) -> Option<String> {
    let named = undone.iter().take(NAMED_MAX).map(|it| {
        let path = it.path.display();
        let aside = it.aside.as_ref();
        let aside = aside.map_or_else(String::new, |aside| {
            format!(", yours is `{}` now", aside.display())
        });
        let reason = it.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        match it.is_restored {
            true => format!("`{path}`{reason} is as it was before{aside}"),
            false => format!("`{path}`{reason} could not be put back{aside}"),
        }
    });
    let named: Vec<String> = named.collect();
    let more = match undone.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "the sandbox protects what the command changed: {}{more}",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(stdout: &str, exit_code: i32) -> CallStatus {
        let status = json!({
            "version": 1, "state": "ended", "pid": 1, "start_time": 0, "command": "x",
            "stdout": stdout, "exit_code": exit_code, "sandbox": "workspace-write",
        });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_failure_that_looks_like_the_sandbox_offers_to_ask() {
        let refused = status("touch: cannot touch '/a': Read-only file system\n", 1);
        let text = said(&refused).unwrap();
        assert!(text.contains("may be why it failed") && text.contains("`outside_sandbox`: true"));
        assert_eq!(said(&status("Read-only file system", 0)), None);
        assert_eq!(said(&status("1 test failed", 1)), None);
        let outside = CallStatus {
            sandbox: None,
            ..refused
        };
        assert_eq!(said(&outside), None);
    }

    #[test]
    fn what_was_put_back_is_said_whatever_the_exit_code_and_within_a_bound() {
        let mut status = status("", 0);
        let undone = Undone {
            path: "/a/.envrc".into(),
            aside: Some("/a/.envrc.refused".into()),
            is_restored: true,
            reason: None,
        };
        status.undone = vec![undone; NAMED_MAX];
        let text = said(&status).unwrap();
        assert!(text.contains("yours is `/a/.envrc.refused` now"), "{text}");
        assert!(!text.contains("and 1 more"), "{text}");
        status.undone.push(status.undone[0].clone());
        assert!(said(&status).unwrap().contains("and 1 more"));
    }
}

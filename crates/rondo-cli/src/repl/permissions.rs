//! The calls that the user allowed for as long as the prompt runs.

use crate::error::Result;
use async_trait::async_trait;
use rondo_core::{ApprovalRequest, Gate, GateRequest, Verdict};
use rondo_policy::GateOptions;
use rondo_policy::analysis::{has_subcommands, is_second_wrapper, is_wrapper};
use rondo_runtime::SetupError;
use rondo_runtime::tools::standard_gate;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bound on patterns that are remembered.
const PATTERNS_MAX: usize = 256;
/// A longer pattern says too little in too many words.
const PATTERN_CHARS_MAX: usize = 60;
/// What makes of a line more than one command, or hides what it runs.
const COMPOUND: &str = "|&;<>()$`\n\\\"'*?[]{}#!~=";
/// Tools and commands that run without asking from now on.
#[derive(Debug, Clone, Default)]
pub(super) struct Permissions(Arc<Mutex<Vec<String>>>);

impl Permissions {
    /// Allows what fits a pattern, such as `exec(git push *)`. Returns whether it is remembered.
    pub(super) fn allow(&self, pattern: &str) -> bool {
        let mut patterns = self.patterns();
        let is_new = !patterns.iter().any(|it| it == pattern);
        if is_new && patterns.len() < PATTERNS_MAX {
            patterns.push(pattern.to_owned());
        }
        patterns.iter().any(|it| it == pattern)
    }

    /// Returns all that is allowed.
    pub(super) fn list(&self) -> Vec<String> {
        self.patterns().clone()
    }

    fn patterns(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A gate that opens wider while a turn runs.
pub(super) struct RememberingGate {
    options: GateOptions,
    permissions: Permissions,
}

impl RememberingGate {
    /// Builds the gate.
    ///
    /// # Errors
    /// When a pattern cannot be read.
    pub(super) fn new(options: GateOptions, permissions: Permissions) -> Result<Self, SetupError> {
        let gate = Self {
            options,
            permissions,
        };
        gate.current()?;
        Ok(gate)
    }

    fn current(&self) -> Result<Arc<dyn Gate>, SetupError> {
        let mut options = self.options.clone();
        options.allowed_tools.extend(self.permissions.list());
        standard_gate(options)
    }
}

#[async_trait]
impl Gate for RememberingGate {
    async fn check(&self, request: &GateRequest) -> Verdict {
        match self.current() {
            Ok(gate) => gate.check(request).await,
            Err(error) => Verdict::Deny {
                reason: error.line(),
            },
        }
    }
}

/// Returns the pattern that would allow a call and its like; none where that would allow too much, or
/// where it is not certain what it would allow.
pub(super) fn pattern_for(request: &ApprovalRequest) -> Option<String> {
    let tool = request.tool.as_str();
    let Some(command) = request.kind.command_line(&request.arguments) else {
        return Some(tool.to_owned());
    };
    if command.contains(|c: char| COMPOUND.contains(c)) {
        return None;
    }
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if is_wrapper(name) {
        return None;
    }
    let is_plain = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_lowercase()) && !is_second_wrapper(word)
    };
    let second = has_subcommands(name).then(|| words.next());
    let pattern = match second {
        None => format!("{tool}({program} *)"),
        // What stands before the word that matters may be anything.
        Some(second) => format!("{tool}({program} {} *)", second.filter(is_plain)?),
    };
    (pattern.chars().count() <= PATTERN_CHARS_MAX).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{CallId, ToolKind};
    use serde_json::{Value, json};

    #[track_caller]
    fn check((tool, kind): (&str, ToolKind), arguments: Value, expected: Option<&str>) {
        let request = ApprovalRequest {
            session: rondo_types::SessionId::new("s"),
            turn: rondo_types::TurnId::new("s-1"),
            step: 1,
            call_id: CallId::new("c"),
            tool: tool.into(),
            kind,
            arguments,
            prompt: String::new(),
            can_edit: true,
        };
        assert_eq!(pattern_for(&request).as_deref(), expected);
    }

    #[test]
    fn a_pattern_is_as_wide_as_what_was_asked_and_no_wider() {
        let command = |line: &str| json!({"command": line});
        let write = ("write_file", ToolKind::Edit);
        check(write, json!({"path": "a"}), Some("write_file"));
        let run_code = ("run_code", ToolKind::Execute);
        check(run_code, json!({"code": "1"}), Some("run_code"));
        let other = ("remote", ToolKind::Other);
        check(other, command("touch a"), Some("remote"));
        let exec = ("sh", ToolKind::Execute);
        check(exec, command("touch a b"), Some("sh(touch *)"));
        check(exec, command("git push origin"), Some("sh(git push *)"));
        for line in [
            "git -C / push",
            "git",
            "bash -c ls",
            "/usr/bin/sudo ls",
            "find . -delete",
            "command rm a",
            "dash a",
            "setsid a",
            "busybox rm a",
            "source a",
            ". a",
            "builtin eval a",
            "awk -f a",
            "sed -i s/a/b/ c",
            "rg --pre a b",
            "watch a",
            "script a",
            "pkexec a",
            "python3.12 a",
            "make a",
            "docker run a",
            "git submodule foreach a",
            "npm exec a",
            "touch a; rm b",
            "touch $(pwd)",
            "FOO=1 touch a",
            "",
        ] {
            check(exec, command(line), None);
        }
    }

    #[test]
    fn a_pattern_is_remembered_once() {
        let permissions = Permissions::default();
        assert!(permissions.allow("write_file") && permissions.allow("write_file"));
        assert_eq!(permissions.list(), ["write_file"]);
    }
}

//! Judgment of a command, with its basis and reason.

use crate::rules::Decision;
use rondo_types::AskReason;
use std::fmt;

/// Judgment of a command, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The command.
    pub command: String,
    /// Decision about the command.
    pub decision: Decision,
    /// Basis of the decision.
    pub basis: Basis,
    /// Reason of the decision.
    pub reason: String,
}

/// Basis of a decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// The settings: the allowed and the disallowed tools, or the way commands run.
    Settings,
    /// The command only looks.
    OnlyLooks,
    /// The read-only sandbox holds the command.
    ReadOnlySandbox,
    /// The command runs in the sandbox, or asks to run outside of it.
    Sandbox,
    /// A grant that the user gave when asked.
    Grant,
    /// Text from outside was read.
    OutsideText,
    /// A plan is asked for.
    Plan,
    /// All calls are allowed.
    Yolo,
    /// The rule of this name.
    Rule(String),
    /// No rule fits.
    NoRule,
}

impl Judged {
    pub(crate) fn by(decision: Decision, basis: Basis, reason: impl Into<String>) -> Self {
        Self {
            command: String::new(),
            decision,
            basis,
            reason: reason.into(),
        }
    }

    /// Allows a command that the read-only sandbox holds.
    pub(crate) fn held() -> Self {
        let reason = "it runs in the read-only sandbox, where it has no effect";
        Self::by(Decision::Allow, Basis::ReadOnlySandbox, reason)
    }

    /// Returns whether the command has no effect, whatever is allowed: it only looks, or the read-only sandbox holds it.
    pub(crate) fn has_no_effect(&self) -> bool {
        matches!(self.basis, Basis::OnlyLooks | Basis::ReadOnlySandbox)
    }

    /// Returns why a person is asked about the command, if they are.
    pub(crate) fn ask_reasons(&self, asks_outside: bool) -> Vec<AskReason> {
        let reason = match &self.basis {
            Basis::Sandbox => None,
            Basis::Rule(_) => Some(AskReason::Rule),
            Basis::OutsideText => Some(AskReason::OutsideText),
            _ => Some(AskReason::NotAllowed),
        };
        let outside = asks_outside.then_some(AskReason::OutsideSandbox);
        outside.into_iter().chain(reason).collect()
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settings => "settings",
            Self::OnlyLooks => "read-only",
            Self::ReadOnlySandbox => "read-only sandbox",
            Self::Sandbox => "sandbox",
            Self::Grant => "grant",
            Self::OutsideText => "text-from-outside",
            Self::Plan => "plan",
            Self::Yolo => "yolo",
            Self::Rule(name) => name,
            Self::NoRule => "no rule",
        })
    }
}

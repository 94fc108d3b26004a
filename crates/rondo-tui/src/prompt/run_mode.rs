//! Mode of approval, which one key changes at both prompts.

use rondo_runtime::Layer;
use rondo_runtime::values::ApprovalMode;

/// Mode of approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunMode {
    /// Read-only calls run; the rest needs approval.
    #[default]
    Ask,
    /// Calls that stay within the sandbox run.
    Auto,
    /// Nothing that changes anything: the answer is a plan.
    Plan,
}

impl RunMode {
    /// Returns the mode that settings are in.
    #[must_use]
    pub fn of(values: &Layer) -> Self {
        match (values.plan, values.approval) {
            (Some(true), _) => Self::Plan,
            (_, Some(ApprovalMode::Auto)) => Self::Auto,
            _ => Self::Ask,
        }
    }

    /// Returns the mode after this one.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Ask => Self::Auto,
            Self::Auto => Self::Plan,
            Self::Plan => Self::Ask,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Auto => "auto, in the sandbox",
            Self::Plan => "plan",
        }
    }

    /// Returns its name and what it means, as is said when it was chosen.
    #[must_use]
    pub fn explained(self) -> &'static str {
        match self {
            Self::Ask => "ask: calls that change something need approval, from the next turn on",
            Self::Auto => {
                "auto: calls that stay within the sandbox run without asking, from the next turn on"
            }
            Self::Plan => "plan: nothing is changed, the answer is a plan, from the next turn on",
        }
    }

    /// Returns the settings that put it in force.
    #[must_use]
    pub fn layer(self) -> Layer {
        Layer {
            approval: Some(match self {
                Self::Auto => ApprovalMode::Auto,
                Self::Ask | Self::Plan => ApprovalMode::Ask,
            }),
            plan: Some(self == Self::Plan),
            ..Layer::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_the_mode_that_was_put_in_force() {
        let mut values = Layer::default();
        let mut mode = RunMode::of(&values);
        assert_eq!(mode, RunMode::Ask);
        for expected in [RunMode::Auto, RunMode::Plan, RunMode::Ask] {
            mode = mode.next();
            mode.layer().put_over(&mut values);
            assert_eq!((mode, RunMode::of(&values)), (expected, expected));
        }
    }
}

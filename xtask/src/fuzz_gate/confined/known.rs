//! Which findings are known: without namespaces, those that docs/safety.md names.

use super::judge::{Fault, Finding};

/// Findings of a sandbox without namespaces, each with the words of docs/safety.md that name it.
pub(super) const WITHOUT_NAMESPACES: &[(Fault, &str)] = &[
    (
        Fault::OutsideAbout,
        "Modes, owners and times of your other files can be changed",
    ),
    (
        Fault::SupervisorLost,
        "If Rondo's supervisor is killed meanwhile, nothing is put back",
    ),
];

/// Returns whether a finding is known. `is_lost` says whether the supervisor was ended meanwhile.
pub(super) fn is_known(finding: &Finding, is_partial: bool, is_lost: bool) -> bool {
    let is_listed = WITHOUT_NAMESPACES.iter().any(|it| it.0 == finding.fault);
    let is_named = match finding.fault {
        Fault::ProtectedSilent | Fault::RepositorySilent if is_lost => true,
        _ => is_listed,
    };
    is_partial && is_named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn a_silent_change_is_known_only_if_the_supervisor_is_gone() {
        let nested = Finding::new(Fault::RepositorySilent, "`/a/.git`: `core.pager`");
        let silent = Finding::new(Fault::ProtectedSilent, "`/a/.envrc`");
        assert!(!is_known(&nested, true, false) && is_known(&nested, true, true));
        assert!(!is_known(&silent, true, false) && is_known(&silent, true, true));
    }

    #[test]
    fn what_is_known_stands_in_the_documentation() {
        let text = std::fs::read_to_string(workspace::root().join("docs/safety.md")).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (fault, words) in WITHOUT_NAMESPACES {
            assert!(text.contains(words), "{fault:?}: {words}");
        }
    }
}

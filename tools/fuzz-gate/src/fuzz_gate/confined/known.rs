//! Which findings are known: without namespaces, those that docs/sandbox.md names.

use super::judge::Fault;

/// Findings of a sandbox without namespaces, each with the words of docs/sandbox.md that name it.
const WITHOUT_NAMESPACES: &[(Fault, &str)] = &[
    (
        Fault::OutsideAbout,
        "Modes, owners and times of your other files can be changed",
    ),
    (
        Fault::SupervisorLost,
        "If Rondo's supervisor is killed meanwhile, nothing is put back",
    ),
    (Fault::ProtectedAbout, "and the owners of what is protected"),
    (
        Fault::RepositoryRemoved,
        "A repository further down can be removed as a whole",
    ),
    (
        Fault::ProcessLeft,
        "Processes that hid themselves go on if Rondo and all that watches the command is killed at the same moment",
    ),
];

/// Circumstances on which a finding depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    /// Set if the sandbox has no namespaces.
    pub(super) is_partial: bool,
    /// Set if the command ended its supervisor.
    pub(super) is_lost: bool,
    /// Set if supervisor and guard were killed.
    pub(super) is_unwatched: bool,
}

/// Returns whether a finding is known.
pub(super) fn is_known(fault: Fault, circumstances: Circumstances) -> bool {
    let is_listed = WITHOUT_NAMESPACES.iter().any(|it| it.0 == fault);
    let is_named = match fault {
        Fault::ProtectedSilent | Fault::RepositorySilent => circumstances.is_lost,
        Fault::ProcessLeft => circumstances.is_unwatched,
        _ => is_listed,
    };
    circumstances.is_partial && is_named
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_tool_support::workspace;

    const PARTIAL: Circumstances = Circumstances {
        is_partial: true,
        is_lost: false,
        is_unwatched: false,
    };

    #[test]
    fn a_silent_change_is_known_only_if_the_supervisor_is_gone() {
        let lost = Circumstances {
            is_lost: true,
            ..PARTIAL
        };
        for fault in [Fault::RepositorySilent, Fault::ProtectedSilent] {
            assert!(!is_known(fault, PARTIAL) && is_known(fault, lost));
        }
        assert!(!is_known(Fault::ReviewSilent, lost));
    }

    #[test]
    fn a_process_that_is_left_is_known_only_if_nothing_watches_it() {
        let unwatched = Circumstances {
            is_unwatched: true,
            ..PARTIAL
        };
        assert!(!is_known(Fault::ProcessLeft, PARTIAL));
        assert!(is_known(Fault::ProcessLeft, unwatched));
    }

    #[test]
    fn with_namespaces_no_finding_is_known() {
        let all = Circumstances {
            is_partial: false,
            is_lost: true,
            is_unwatched: true,
        };
        for fault in WITHOUT_NAMESPACES.iter().map(|it| it.0) {
            assert!(!is_known(fault, all), "{fault:?}");
        }
    }

    #[test]
    fn what_is_known_stands_in_the_documentation() {
        let text = std::fs::read_to_string(workspace::root().join("docs/sandbox.md")).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (fault, words) in WITHOUT_NAMESPACES {
            assert!(text.contains(words), "{fault:?}: {words}");
        }
    }
}

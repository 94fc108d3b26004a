//! Makes a case, which is one command or two at once, from a seed and a number and nothing else.

use super::templates as of;
use crate::fuzz_gate::bypasses::Class;
use crate::fuzz_gate::grammar::Generator;
use fastrand::Rng;
use rondo_sandbox::SandboxMode;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a command may run.
const TIME: Duration = Duration::from_secs(4);
/// How long a command may run that stops or outlives itself.
const TIME_OF_PROCESSES: Duration = Duration::from_millis(400);
/// Factor that keeps the numbers of neighboring seeds apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Of so many commands, one has its agent, its supervisor or all that watch it killed.
const KILLED_ONE_IN: u8 = 6;
/// How long such a command runs by then at the most, in milliseconds.
const KILLED_WITHIN_MS: u64 = 60;
/// The most lines of one command.
const LINES_MAX: usize = 3;

/// Subject of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Files and directories are moved, and made again in their places.
    Moves,
    /// Links lead elsewhere.
    Links,
    /// Modes, owners, times and attributes change.
    Modes,
    /// Limits, signals and processes that hide.
    Processes,
    /// Two commands run in one directory at once.
    Pairs,
    /// Repositories that run something.
    Repositories,
    /// Ordinary work with repositories.
    Ordinary,
    /// Attempts to pass the gate, of the corpus and made of it.
    Attempts,
}

/// The kinds, in the order of the cases' numbers.
pub(super) const KINDS: [Kind; 8] = [
    Kind::Moves,
    Kind::Links,
    Kind::Modes,
    Kind::Processes,
    Kind::Pairs,
    Kind::Repositories,
    Kind::Ordinary,
    Kind::Attempts,
];

impl Kind {
    /// Returns the lines that commands of the kind are made of.
    fn templates(self) -> &'static [&'static str] {
        match self {
            Self::Moves => of::MOVES,
            Self::Links => of::LINKS,
            Self::Modes => of::MODES_OF,
            Self::Processes => of::PROCESSES,
            Self::Pairs => of::MEANWHILE,
            Self::Repositories => of::HARMFUL,
            Self::Ordinary | Self::Attempts => &[],
        }
    }
}

/// A process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Victim {
    /// Process that started the command.
    Agent,
    /// The supervisor of the command.
    Supervisor,
    /// The supervisor and its guard.
    Both,
}

impl Victim {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agent => "the agent",
            Self::Supervisor => "the supervisor",
            Self::Both => "the supervisor and its guard",
        }
    }
}

/// Process to kill while a command runs, and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Killing {
    pub(super) victim: Victim,
    /// How long the command has run by then.
    pub(super) after: Duration,
}

/// One command, or two that run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) mode: SandboxMode,
    /// Set if the directory above the working directory may be written too.
    pub(super) is_wide: bool,
    /// Script that bash runs before, outside of the sandbox.
    pub(super) setup: String,
    pub(super) commands: Vec<String>,
    pub(super) time: Duration,
    /// Path that exists afterwards, if the command succeeds.
    pub(super) leaves: Option<&'static str>,
    /// Process to kill while the first of the commands runs.
    pub(super) killing: Option<Killing>,
}

/// Makes the case of that number.
pub(super) fn make(seed: u64, number: u64, attempts: &[Class]) -> Case {
    let mut rng = Rng::with_seed(seed ^ number.wrapping_mul(SPREAD));
    let at = usize::try_from(number % KINDS.len() as u64).unwrap_or_default();
    let kind = KINDS.get(at).copied().unwrap_or(Kind::Moves);
    let mut case = Case {
        kind,
        mode: SandboxMode::WorkspaceWrite,
        is_wide: rng.u8(..4) == 0,
        setup: String::new(),
        commands: Vec::new(),
        time: TIME,
        leaves: None,
        killing: None,
    };
    match kind {
        Kind::Attempts => attempt(&mut case, number / KINDS.len() as u64, seed, attempts),
        Kind::Ordinary => {
            let (line, leaves) = pick(&mut rng, of::ORDINARY);
            case.commands.push(line.to_owned());
            case.leaves = Some(leaves);
        }
        Kind::Pairs => {
            let first = pick(
                &mut rng,
                &[Kind::Moves, Kind::Links, Kind::Modes, Kind::Repositories],
            );
            case.commands = vec![lines(&mut rng, first), lines(&mut rng, kind)];
        }
        _ => {
            case.commands.push(lines(&mut rng, kind));
            if kind == Kind::Processes {
                case.time = TIME_OF_PROCESSES;
            }
            if rng.u8(..12) == 0 {
                case.mode = SandboxMode::ReadOnly;
            }
        }
    }
    let may_be_killed = ![Kind::Ordinary, Kind::Attempts].contains(&kind);
    if may_be_killed && rng.u8(..KILLED_ONE_IN) == 0 {
        kill(&mut case, &mut rng);
    }
    case
}

/// Kills a process while the first command runs, which lasts until then unless it ends itself.
fn kill(case: &mut Case, rng: &mut Rng) {
    case.killing = Some(Killing {
        victim: pick(rng, &[Victim::Agent, Victim::Supervisor, Victim::Both]),
        after: Duration::from_millis(rng.u64(..KILLED_WITHIN_MS)),
    });
    if let Some(first) = case.commands.first_mut() {
        first.push_str("\nsleep 1");
    }
}

/// Takes the attempts of the corpus in their order, then makes others of them.
fn attempt(case: &mut Case, number: u64, seed: u64, attempts: &[Class]) {
    case.mode = SandboxMode::ReadOnly;
    case.is_wide = false;
    case.time = Duration::from_secs(1);
    let all = attempts
        .iter()
        .flat_map(|class| class.attempts.iter().map(|it| (&class.setup, it)));
    let nth = usize::try_from(number)
        .ok()
        .and_then(|number| all.clone().nth(number));
    let command = match nth {
        Some((setup, command)) => {
            case.setup.clone_from(setup);
            command.clone()
        }
        None => Generator::new(seed ^ number, all.map(|it| it.1.clone()).collect()).next(),
    };
    // No program can be given a zero.
    case.commands.push(command.replace('\0', ""));
}

/// Fills in some lines of a kind, most often one.
fn lines(rng: &mut Rng, kind: Kind) -> String {
    let count = match rng.u8(..4) {
        0 => rng.usize(2..=LINES_MAX),
        _ => 1,
    };
    let filled: Vec<String> = (0..count)
        .map(|_| {
            let line = pick(rng, kind.templates());
            filled(rng, line)
        })
        .collect();
    filled.join("\n")
}

fn filled(rng: &mut Rng, line: &str) -> String {
    let mut rest = line;
    let mut filled = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let mut letters = after.chars();
        let letter = letters.next().filter(|_| letters.next() == Some('}'));
        let choice = letter.and_then(|letter| choice(rng, letter));
        let Some(choice) = choice else {
            filled.push('{');
            rest = after;
            continue;
        };
        filled.push_str(choice);
        rest = after.get(2..).unwrap_or_default();
    }
    filled.push_str(rest);
    filled
}

fn choice(rng: &mut Rng, letter: char) -> Option<&'static str> {
    let from = match letter {
        'P' => of::PROTECTED,
        'D' => of::DIRECTORIES,
        'R' => of::REPOSITORIES,
        'N' => of::NEW,
        'O' => of::OUTSIDE,
        'M' => of::MODES,
        'V' => of::VICTIMS,
        'S' => of::SIGNALS,
        'L' => of::LIMITS,
        'C' => of::SETTINGS,
        'I' => &["1", "3", "6"],
        _ => return None,
    };
    Some(pick(rng, from))
}

#[expect(
    clippy::indexing_slicing,
    reason = "no list is empty, and the number is below its length"
)]
fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts() -> [Class; 1] {
        let attempts = (0..30).map(|it| format!("attempt {it}"));
        [Class::unprepared("a", attempts.collect())]
    }

    #[test]
    fn a_seed_and_a_number_make_the_same_case_again() {
        let made = |seed| {
            (0..400)
                .map(|it| make(seed, it, &attempts()))
                .collect::<Vec<_>>()
        };
        assert_eq!(made(3), made(3));
        assert_ne!(made(3), made(4));
    }

    #[test]
    fn every_protected_name_is_attacked() {
        for name in rondo_sandbox::PROTECTED {
            assert!(of::PROTECTED.contains(&name), "{name}");
        }
    }

    #[test]
    fn every_place_of_a_line_is_filled_in() {
        for case in (0..4000).map(|it| make(1, it, &attempts())) {
            for place in [
                "{P}", "{D}", "{R}", "{N}", "{O}", "{M}", "{V}", "{S}", "{L}", "{C}", "{I}",
            ] {
                let found = case.commands.iter().any(|it| it.contains(place));
                assert!(!found || case.kind == Kind::Attempts, "{case:?}");
            }
        }
    }

    #[test]
    fn every_attempt_of_the_corpus_is_a_case() {
        let classes = attempts();
        let made: Vec<_> = (0..240)
            .flat_map(|it| make(1, it, &classes).commands)
            .collect();
        for attempt in (0..30).map(|it| format!("attempt {it}")) {
            assert!(made.contains(&attempt), "{attempt}");
        }
    }
}

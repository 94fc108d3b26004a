//! Looks for commands that are judged read-only and are not.
//!
//! Commands are made from a grammar and from each other, judged as the gate does, and those that
//! nobody would be asked about run against real bash in a place that is thrown away. Whatever they
//! create, change, remove, read outside of the project, start or connect to is a finding.

mod attempt;
mod bypasses;
mod confined;
mod corpus;
mod grammar;
mod protocol;
mod runner;
mod sandbox;
mod vocabulary;
mod world;

use anyhow::{Result, bail};
use corpus::Finding;
use grammar::Generator;
use protocol::{Reply, Request};
use rondo_policy::{AllowedDirs, Judgement, analysis};
use sandbox::Sandbox;
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use world::World;

/// How long the run is that is a part of `cargo xtask test`.
const SHORT: Duration = Duration::from_secs(25);
/// How many findings end a run.
const FINDINGS_MAX: usize = 20;
/// How often a finding is tried with a part left out.
const SHRINKS_MAX: usize = 400;
/// The longest that several runs take turns on a processor each.
const WORKERS_MAX: usize = 2;
/// How many shapes of commands are remembered.
const SHAPES_MAX: usize = 1 << 20;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long it runs, in minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Which commands are made; printed, so that a run can be repeated
    #[arg(long)]
    seed: Option<u64>,
    /// Runs as long as a part of `cargo xtask test` may, and only if commands can be confined on this machine
    #[arg(long, conflicts_with = "minutes")]
    short: bool,
    /// Runs what is in the corpus, and nothing new
    #[arg(long)]
    replay: bool,
    /// Runs one command and reports its outcome
    #[arg(long, conflicts_with = "replay")]
    command: Option<String>,
    /// Judges and runs the attempts of `fuzz/corpus/gate/bypasses.toml`
    #[arg(long, conflicts_with_all = ["replay", "command"])]
    bypasses: bool,
    /// Runs attacks on Rondo's own sandbox in it, and these attempts, none of them judged; kills the agent or the
    /// supervisor of some, and looks after each at the whole file system, all processes, the report, and what the next start says
    #[arg(long, conflicts_with_all = ["replay", "command", "bypasses", "minutes"])]
    confined: bool,
    /// How many commands run in the sandbox
    #[arg(long, default_value_t = 10_000, requires = "confined")]
    commands: u64,
    /// The number of the first of them: with `--seed`, a run continues there
    #[arg(long, default_value_t = 0, requires = "confined")]
    from: u64,
    /// Confines them without namespaces: findings that docs/sandbox.md names are none
    #[arg(long, requires = "confined")]
    partial: bool,
    /// Runs them as an ordinary user; root starts this
    #[arg(long, requires = "confined")]
    as_user: bool,
    /// Started within the machine of the fuzzer's own
    #[arg(long, hide = true, requires = "confined")]
    within: bool,
    /// Started within the sandbox
    #[arg(long, hide = true)]
    runner: bool,
}

/// Runs it; true when nothing slipped past.
///
/// # Errors
/// When commands cannot be confined on this machine.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.runner {
        return runner::serve().map(|()| true);
    }
    if let Some(command) = &args.command {
        let mut tester = Tester::new()?;
        println!("{:#?}", tester.ask(command)?);
        return Ok(true);
    }
    if args.bypasses {
        return bypasses::run();
    }
    if args.confined {
        return run_confined(args);
    }
    if args.replay {
        return replay();
    }
    if args.short {
        return run_short();
    }
    if !(args.minutes > 0.0 && args.minutes <= 24.0 * 60.0) {
        bail!("`--minutes` is more than 0, and a day at the most");
    }
    let time = Duration::from_secs_f64(args.minutes * 60.0);
    search(time, announced(args.seed, time))
}

/// Runs commands in the sandbox; true when it held.
fn run_confined(args: &Args) -> Result<bool> {
    let options = confined::Options {
        seed: args.seed.unwrap_or_else(new_seed),
        from: args.from,
        commands: args.commands,
        is_partial: args.partial,
        is_as_user: args.as_user,
    };
    if args.within {
        return confined::serve(&options).map(|()| true);
    }
    println!("fuzz-gate --confined: seed {}", options.seed);
    confined::run(&options)
}

/// Returns the seed of a run, and says what repeats it.
fn announced(seed: Option<u64>, time: Duration) -> u64 {
    let seed = seed.unwrap_or_else(new_seed);
    println!("fuzz-gate: seed {seed}, {} s", time.as_secs());
    seed
}

fn new_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Runs for a short time; says so where commands cannot be confined.
///
/// # Errors
/// When the corpus cannot be read.
fn run_short() -> Result<bool> {
    match Sandbox::start() {
        Ok(_) => {
            let is_tight = search(SHORT, announced(None, SHORT))?;
            Ok(confined::run_short()? && is_tight)
        }
        Err(error) => {
            println!("fuzz-gate: not run: {error:#}");
            Ok(true)
        }
    }
}

/// Judges all that slipped past once, which must be asked about now, and runs what is judged
/// read-only. If commands cannot be confined, they are judged only.
fn replay() -> Result<bool> {
    let mut tester = match Tester::new() {
        Ok(tester) => tester,
        Err(error) => {
            println!("fuzz-gate: nothing is run: {error:#}");
            return replay_verdicts();
        }
    };
    let mut is_clean = true;
    let (findings, seeds) = (corpus::findings()?, corpus::seeds()?);
    for Finding { command, effects } in &findings {
        if !matches!(tester.ask(command)?, Outcome::Replied(Reply::Asked)) {
            report(command, effects);
            is_clean = false;
        }
    }
    for command in &seeds {
        if let Some(effects) = tester.ask(command)?.effects() {
            report(command, effects);
            is_clean = false;
        }
    }
    println!(
        "fuzz-gate: {} commands of the corpus",
        findings.len() + seeds.len()
    );
    Ok(is_clean)
}

fn replay_verdicts() -> Result<bool> {
    let place = tempfile::tempdir()?;
    let world = World::new(place.path().to_owned(), Vec::new());
    world.make()?;
    let dirs = AllowedDirs::new(&world.project(), &[])?;
    let mut is_clean = true;
    for Finding { command, effects } in corpus::findings()? {
        if analysis::judge(&command, &dirs) == Judgement::ReadOnly {
            report(&command, &effects);
            is_clean = false;
        }
    }
    Ok(is_clean)
}

fn report(command: &str, effects: &[String]) {
    println!("judged read-only: {command:?}");
    for effect in effects {
        println!("    {effect}");
    }
}

/// Outcome of a command.
#[derive(Debug)]
enum Outcome {
    Replied(Reply),
    /// The judge died of it, or did not end.
    Died,
}

impl Outcome {
    fn effects(&self) -> Option<&[String]> {
        match self {
            Self::Replied(Reply::Ran { effects, .. }) if !effects.is_empty() => Some(effects),
            _ => None,
        }
    }
}

/// A sandbox that is started again if a command broke it.
struct Tester {
    sandbox: Sandbox,
}

impl Tester {
    fn new() -> Result<Self> {
        let sandbox = Sandbox::start()?;
        Ok(Self { sandbox })
    }

    fn ask(&mut self, command: &str) -> Result<Outcome> {
        self.request(&Request::judged(command))
    }

    /// Runs a command after a setup, and does not judge it.
    fn run_whatever_is_judged(&mut self, command: &str, setup: &str) -> Result<Outcome> {
        self.request(&Request {
            command: command.to_owned(),
            ungated_after: Some(setup.to_owned()),
        })
    }

    fn request(&mut self, request: &Request) -> Result<Outcome> {
        match self.sandbox.ask(request) {
            Ok(reply) => Ok(Outcome::Replied(reply)),
            Err(_) => {
                self.sandbox = Sandbox::start()?;
                Ok(Outcome::Died)
            }
        }
    }

    /// Leaves out what a finding does not need.
    fn shrunk(&mut self, command: &str) -> Result<String> {
        let mut best = command.to_owned();
        let mut width = best.len() / 2;
        let mut tries = 0;
        while width > 0 && tries < SHRINKS_MAX {
            let mut at = 0;
            while at < best.len() && tries < SHRINKS_MAX {
                let end = (at + width).min(best.len());
                let parts = best.get(..at).zip(best.get(end..));
                let shorter = parts.map(|(head, tail)| format!("{head}{tail}"));
                tries += 1;
                match shorter {
                    Some(shorter) if self.ask(&shorter)?.effects().is_some() => best = shorter,
                    _ => at += width,
                }
            }
            width /= 2;
        }
        Ok(best)
    }
}

/// Totals of a run.
#[derive(Default)]
struct Totals {
    judged: u64,
    ran: u64,
    slow: u64,
    findings: Vec<Finding>,
}

/// Beginnings of commands.
fn beginnings() -> Result<Vec<String>> {
    let mut seeds = corpus::seeds()?;
    let findings = corpus::findings()?;
    seeds.extend(findings.into_iter().map(|finding| finding.command));
    seeds.extend(grammar::connections());
    Ok(seeds)
}

fn search(time: Duration, seed: u64) -> Result<bool> {
    let seeds = beginnings()?;
    let workers =
        thread::available_parallelism().map_or(1, |count| count.get().min(WORKERS_MAX)) as u64;
    let ends: Vec<Result<Totals>> = thread::scope(|scope| {
        let seeds = &seeds;
        let run =
            |worker| scope.spawn(move || work(time, seed.wrapping_add(worker), seeds.clone()));
        let running: Vec<_> = (0..workers).map(run).collect();
        let ended = running.into_iter().map(|it| it.join());
        ended
            .map(|end| end.unwrap_or_else(|_| bail!("a worker panicked")))
            .collect()
    });
    let mut all = Totals::default();
    for end in ends {
        let end = end?;
        all.judged += end.judged;
        all.ran += end.ran;
        all.slow += end.slow;
        all.findings.extend(end.findings);
    }
    for finding in &all.findings {
        report(&finding.command, &finding.effects);
        corpus::keep(finding)?;
    }
    println!(
        "fuzz-gate: {} judged, {} run, {} too slow, {} findings",
        all.judged,
        all.ran,
        all.slow,
        all.findings.len()
    );
    Ok(all.findings.is_empty())
}

fn work(time: Duration, seed: u64, seeds: Vec<String>) -> Result<Totals> {
    let mut tester = Tester::new()?;
    let mut generator = Generator::new(seed, seeds);
    let mut totals = Totals::default();
    let (mut seen, mut shapes) = (HashSet::new(), HashSet::new());
    let begun = Instant::now();
    while begun.elapsed() < time && totals.findings.len() < FINDINGS_MAX {
        let command = generator.next();
        totals.judged += 1;
        let outcome = tester.ask(&command)?;
        let died = matches!(outcome, Outcome::Died).then(|| vec!["the judge died".to_owned()]);
        if let Outcome::Replied(Reply::Ran { is_slow, .. }) = &outcome {
            totals.ran += 1;
            totals.slow += u64::from(*is_slow);
            if shapes.len() < SHAPES_MAX && shapes.insert(shape(&command)) {
                generator.keep(&command);
            }
        }
        let effects = outcome.effects().map(<[String]>::to_vec).or(died);
        if let Some(effects) = effects {
            let command = tester.shrunk(&command)?;
            let effects = tester
                .ask(&command)?
                .effects()
                .map_or(effects, <[String]>::to_vec);
            if seen.insert(shape(&command)) {
                totals.findings.push(Finding { command, effects });
            }
        }
    }
    Ok(totals)
}

/// The command with its names and numbers left out: those that differ in nothing else are alike.
fn shape(command: &str) -> String {
    let mut shape = String::new();
    for c in command.chars() {
        let c = if c.is_alphanumeric() { 'x' } else { c };
        if c != 'x' || !shape.ends_with('x') {
            shape.push(c);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_commands_again_and_no_two_seeds_do() {
        let seeds = corpus::seeds().unwrap();
        let made = |seed| {
            let mut generator = Generator::new(seed, seeds.clone());
            (0..1000).map(|_| generator.next()).collect::<Vec<_>>()
        };
        assert_eq!(made(5), made(5));
        assert_ne!(made(5), made(6));
    }

    #[test]
    fn every_kind_of_change_of_the_files_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let world = World::new(place.path().to_owned(), Vec::new());
        world.make().unwrap();
        let project = world.project();
        let before = world.snapshot().unwrap();
        assert_eq!(world::differences(&before, &before), [""; 0]);
        std::fs::write(project.join("made"), "x").unwrap();
        std::fs::remove_file(project.join("numbers")).unwrap();
        std::fs::write(project.join("data.csv"), "x").unwrap();
        std::fs::read(place.path().join("outside/key")).unwrap();
        let found = world::differences(&before, &world.snapshot().unwrap());
        let shown = |path: &str| format!("`{}`", place.path().join(path).display());
        for expected in [
            format!("created {}", shown("project/made")),
            format!("removed {}", shown("project/numbers")),
            format!("changed {}", shown("project/data.csv")),
        ] {
            assert!(found.contains(&expected), "{found:?}");
        }
        world.make().unwrap();
        assert!(!project.join("made").exists());
    }

    #[test]
    fn commands_of_one_shape_count_once() {
        assert_eq!(shape("cat a1 'b c'"), shape("tail 99 'x y'"));
        assert_ne!(shape("cat a"), shape("cat $a"));
    }
}

//! Kills what belongs to a turn at random, resumes the session, and looks what was lost.
//!
//! The victim is the program itself, with a scripted provider on loopback (`work.rs`). A case kills
//! its agent, its keeper, the supervisors and guards of its commands, their process groups or what they started,
//! alone or together, at random times; or it has `strace` kill whichever process makes the n-th call
//! of some system call (`target.rs`). Each process that was cut off is followed by `rondo resume`,
//! which may be killed too, until the turn is over (`case.rs`). In a third of the cases each call is
//! asked about, and other processes answer while the turn is parked; some have a listener. A third have listeners in
//! processes of their own, which are killed and come back with their last cursor (`listen.rs`). A quarter are
//! detached: what is killed then is the process that no terminal holds. What the journal, the effects and the
//! process table say is checked each time and in the end (`check.rs`).
//!
//! Everything random follows from a seed, which is printed; when a kill hits depends on the machine
//! as well. `cargo xtask kill` runs it for longer.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test sets up must work; it reports as the test harness it stands for"
)]

mod case;
mod check;
mod listen;
mod random;
mod target;
mod work;

use random::Random;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// The one test of this program.
const NAME: &str = "no_kill_loses_or_repeats_anything";
/// Without arguments.
const SECONDS: u64 = 60;
/// Cases that run side by side: they mostly wait.
const AT_ONCE: usize = 4;
/// Problems that are shown in full.
const SHOWN_MAX: usize = 20;

struct Plan {
    seconds: u64,
    seed: u64,
    cases: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(ended) = listen::run(&args) {
        return ended;
    }
    if args.iter().any(|arg| arg == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let Some(plan) = plan(&args) else {
        return ExitCode::SUCCESS;
    };
    println!("\nrunning 1 test");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let is_sound = runtime.block_on(run(&plan));
    runtime.shutdown_background();
    let (word, passed) = if is_sound { ("ok", 1) } else { ("FAILED", 0) };
    let failed = 1 - passed;
    println!(
        "test {NAME} ... {word}\n\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored"
    );
    match is_sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Reads the arguments, some of which are for any test program; `None` if another test is meant.
fn plan(args: &[String]) -> Option<Plan> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut plan = Plan {
        seconds: SECONDS,
        seed: u64::from(since.subsec_nanos()) ^ since.as_secs(),
        cases: u64::MAX,
    };
    let mut rest = args.iter();
    let mut filters: Vec<&String> = Vec::new();
    while let Some(arg) = rest.next() {
        let mut number = || rest.next().and_then(|it| it.parse().ok());
        match arg.as_str() {
            "--seconds" => plan.seconds = number()?,
            "--seed" => plan.seed = number()?,
            "--cases" => plan.cases = number()?,
            "--skip" => filters.extend(rest.next().filter(|it| !NAME.contains(*it)).map(|_| arg)),
            "--test-threads" | "--format" | "--color" | "--logfile" => drop(rest.next()),
            option if option.starts_with('-') => {}
            _ => filters.push(arg),
        }
    }
    let is_meant = |it: &&String| it.starts_with('-') || NAME.contains(it.as_str());
    (filters.is_empty() || filters.iter().any(is_meant)).then_some(plan)
}

/// Counts and findings in all cases.
#[derive(Default)]
pub(crate) struct Tally {
    cases: u64,
    parking: u64,
    detached: u64,
    /// Cases with a listener that was killed and came back, and how often one was.
    listened: u64,
    listeners: u64,
    runs: u64,
    kills: u64,
    /// Kills of a keeper alone.
    keepers: u64,
    traced: u64,
    calls: u64,
    in_doubt: u64,
    problems: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.cases += 1;
        self.parking += other.parking;
        self.detached += other.detached;
        self.listened += other.listened;
        self.listeners += other.listeners;
        self.runs += other.runs;
        self.kills += other.kills;
        self.keepers += other.keepers;
        self.traced += other.traced;
        self.calls += other.calls;
        self.in_doubt += other.in_doubt;
        self.problems.extend(other.problems);
    }
}

async fn run(plan: &Plan) -> bool {
    println!("kill: seed {}", plan.seed);
    let can_trace = target::can_trace();
    if !can_trace {
        println!("kill: `strace` is not here or may not trace: no kills at exact system calls");
    }
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut cases = JoinSet::new();
    let mut next = 0;
    loop {
        while cases.len() < AT_ONCE && next < plan.cases && Instant::now() < until {
            let seed = plan.seed.wrapping_add(next);
            next += 1;
            let tally = Arc::clone(&tally);
            cases.spawn(async move {
                let found = case::run(Random::new(seed), can_trace).await;
                for problem in &found.problems {
                    println!("kill: --seed {seed} --cases 1: {problem}");
                }
                tally.lock().unwrap().add(found);
            });
        }
        match cases.join_next().await {
            Some(case) => case.unwrap(),
            None => break,
        }
    }
    let tally = tally.lock().unwrap();
    println!(
        "kill: seed {}, {} cases, {} of them answered from other processes, {} detached and {} listened to by {} listeners that were killed, {} runs, {} kills at random times, {} of them of keepers, {} runs traced to a system call, \
         {} calls, {} of them in doubt; {} problems",
        plan.seed,
        tally.cases,
        tally.parking,
        tally.detached,
        tally.listened,
        tally.listeners,
        tally.runs,
        tally.kills,
        tally.keepers,
        tally.traced,
        tally.calls,
        tally.in_doubt,
        tally.problems.len(),
    );
    if !tally.problems.is_empty() {
        // As the test harness writes it, so that it appears with the output of other failed tests.
        println!("\n---- {NAME} stdout ----\nkill: seed {}", plan.seed);
    }
    for problem in tally.problems.iter().take(SHOWN_MAX) {
        println!("{problem}");
    }
    if !tally.problems.is_empty() {
        println!("\nfailures:\n    {NAME}");
    }
    tally.problems.is_empty() && tally.cases > 0
}

//! Kills a real process at every point where a crash could lose or repeat something, and resumes it.
//!
//! The victim (`victim.rs`) is this program again: a turn with the real store, the real tools and a
//! scripted provider on loopback, whose journal, model and tools are wrapped so that they count the
//! points they pass and end the process by SIGKILL at one of them (`points.rs`). Every scenario
//! (`scenario.rs`) is run once undisturbed, which tells its points and what must come of it, then
//! once for each point; every second time the resumed process is killed too (`harness.rs`). What the
//! journal, the provider and the effects say in the end is compared (`check.rs`).

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test sets up must work; it reports as the test harness it stands for"
)]

mod check;
mod harness;
mod points;
mod scenario;
mod table;
mod tools;
mod victim;

/// The one test of this program.
const NAME: &str = "every_crash_is_survived_and_every_interrupted_call_is_resolved";

/// The first argument of a victim.
const VICTIM_ARG: &str = "__victim";

fn main() {
    rondo_exec::supervisor::run_if_requested();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = &args[..]
        && first == VICTIM_ARG
    {
        return victim::run(&victim::Order::from_args(rest));
    }
    if args.iter().any(|arg| arg == "--list") {
        println!("{NAME}: test");
    } else if is_asked_for(&args) {
        println!("\nrunning 1 test");
        harness::run();
        println!("test {NAME} ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored");
    }
}

/// Filters are words that are no options and no option's value.
fn is_asked_for(args: &[String]) -> bool {
    let is_exact = args.iter().any(|arg| arg == "--exact");
    let mut skipped = false;
    let mut filters = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--skip" => skipped |= rest.next().is_some_and(|word| NAME.contains(word.as_str())),
            "--test-threads" | "--format" | "--color" | "--logfile" => drop(rest.next()),
            option if option.starts_with('-') => {}
            word => filters.push(word),
        }
    }
    let fits = |word: &&str| {
        if is_exact {
            NAME == *word
        } else {
            NAME.contains(*word)
        }
    };
    !skipped && (filters.is_empty() || filters.iter().any(fits))
}

//! Kills a real process at every point where a crash could lose or repeat something, and resumes it.
//!
//! The victim (`victim.rs`) is this program again: a turn with the real store, the real tools and a
//! scripted provider on loopback, whose journal, model and tools are wrapped so that they count the
//! points they pass and end the process by SIGKILL at one of them (`points.rs`). Every scenario
//! (`scenario.rs`) is run once undisturbed, which shows its points and the expected result, then
//! once for each point; every second time the resumed process is killed too (`harness.rs`). What the
//! journal, the provider and the effects say in the end is compared (`check.rs`).
//!
//! Other victims submit mail and acknowledge it (`mail.rs`), some of them on a disk that loses power (`power.rs`).

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test sets up must work; it reports as the test harness it stands for"
)]

mod check;
mod harness;
mod mail;
mod points;
mod power;
mod scenario;
mod table;
mod tools;
mod victim;

use rondo_journal::Options;
use std::path::Path;

/// The tests of this program.
const TESTS: [(&str, fn()); 6] = [
    (
        "every_crash_is_survived_and_every_interrupted_call_is_resolved",
        harness::run,
    ),
    (
        "of_a_killed_process_records_and_mail_belong_together",
        mail::killed,
    ),
    (
        "of_a_commit_without_room_records_and_mail_belong_together",
        mail::without_room,
    ),
    (
        "on_a_full_disk_records_and_mail_belong_together",
        mail::on_a_full_disk,
    ),
    (
        "what_was_acknowledged_survives_the_loss_of_power",
        power::lost,
    ),
    (
        "what_was_not_synced_is_lost_with_power",
        power::lost_unsynced,
    ),
];

/// The first argument of a victim.
const VICTIM_ARG: &str = "__victim";
/// The first arguments of a process that submits mail, of one with long mail, and of one that checks what it left.
const MAIL_ARGS: [&str; 3] = ["__mail", "__long_mail", "__check_mail"];

fn main() {
    rondo_exec::supervisor::run_if_requested();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = &args[..]
        && first == VICTIM_ARG
    {
        return victim::run(&victim::Order::from_args(rest));
    }
    if let [first, dir] = &args[..]
        && let Some(kind) = MAIL_ARGS.iter().position(|arg| arg == first)
    {
        let dir = Path::new(dir);
        return match kind {
            0 | 1 => mail::victim(dir, kind == 1, Options::default()),
            _ => mail::checker(dir),
        };
    }
    if let [first, rest @ ..] = &args[..]
        && first == power::VICTIM_ARG
    {
        return power::victim(rest);
    }
    if args.iter().any(|arg| arg == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let asked: Vec<_> = TESTS
        .iter()
        .filter(|it| is_asked_for(&args, it.0))
        .collect();
    println!("\nrunning {} tests", asked.len());
    for (name, run) in &asked {
        run();
        println!("test {name} ... ok");
    }
    println!(
        "\ntest result: ok. {} passed; 0 failed; 0 ignored",
        asked.len()
    );
}

/// Filters are words that are not options and no option's value.
fn is_asked_for(args: &[String], name: &str) -> bool {
    let is_exact = args.iter().any(|arg| arg == "--exact");
    let mut skipped = false;
    let mut filters = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--skip" => skipped |= rest.next().is_some_and(|word| name.contains(word.as_str())),
            "--test-threads" | "--format" | "--color" | "--logfile" => drop(rest.next()),
            option if option.starts_with('-') => {}
            word => filters.push(word),
        }
    }
    let fits = |word: &&str| {
        if is_exact {
            name == *word
        } else {
            name.contains(*word)
        }
    };
    !skipped && (filters.is_empty() || filters.iter().any(fits))
}

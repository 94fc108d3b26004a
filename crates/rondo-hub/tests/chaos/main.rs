//! Kills a hub at random, again and again, and looks what people saw; and measures one under load.
//!
//! The victim is this program itself with other arguments (`victim.rs`): a hub with a channel to a messenger on a socket, a
//! scripted model, and its journal on the disk. A case has several people write, some of whose messages take calls of
//! tools, and some a question that is answered by a button; events come twice, the model fails now and then, and receipts
//! are lost. The hub is killed at moments that are chosen from what the messenger and the model see of it. In the end it is
//! left alone, and everything has to be answered within ten seconds: once, in order, and more often only as often as the
//! hub itself counted that it sent something again (`case.rs`). `load.rs` has a thousand chats at once.
//!
//! Everything random follows from a seed, which is printed. Without arguments, the message is tried that ends the hub
//! whenever it is worked on, and two cases; `--kills N` has cases run until so many kills, and `--load N` measures N chats.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "what a test sets up must work; it reports as the test harness it stands for, and a case is told in one piece"
)]

mod case;
mod load;
#[path = "../it/messenger.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod messenger;
mod model;
mod victim;

use case::Tally;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The one test of this program.
const NAME: &str = "whenever_the_hub_is_killed_everyone_is_answered_once";
/// Without arguments: the message that ends the hub each time, and two cases.
const KILLS: u64 = 4;

struct Plan {
    kills: u64,
    seed: u64,
    load: Option<usize>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = args.as_slice()
        && first == victim::ARGUMENT
    {
        return victim::run(rest);
    }
    if args.iter().any(|arg| arg == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let Some(plan) = plan(&args) else {
        return ExitCode::SUCCESS;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Some(chats) = plan.load {
        runtime.block_on(load::run(chats));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning 1 test\nseed {}", plan.seed);
    let tally = runtime.block_on(run(&plan));
    runtime.shutdown_background();
    let is_sound = tally.problems.is_empty() && tally.kills >= plan.kills;
    println!("{tally}");
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

async fn run(plan: &Plan) -> Tally {
    let mut tally = Tally::default();
    case::poison(&mut tally).await;
    let mut seed = plan.seed;
    let began = Instant::now();
    while tally.kills < plan.kills && tally.problems.is_empty() {
        let cases = [seed, seed.wrapping_add(1)].map(|it| tokio::spawn(case::run(it)));
        seed = seed.wrapping_add(2);
        for case in cases {
            tally.add(case.await.unwrap());
        }
    }
    tally.took = began.elapsed();
    tally
}

/// Reads the arguments, some of which are for any test program; none where another test is meant.
fn plan(args: &[String]) -> Option<Plan> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let mut plan = Plan {
        kills: KILLS,
        seed: since.as_secs() << 8,
        load: None,
    };
    let mut rest = args.iter();
    let mut is_meant = true;
    while let Some(arg) = rest.next() {
        let mut number = || rest.next().and_then(|it| it.parse().ok());
        match arg.as_str() {
            "--kills" => plan.kills = number()?,
            "--seed" => plan.seed = number()?,
            "--load" => plan.load = Some(usize::try_from(number()?).ok()?),
            "--test-threads" | "--format" | "--color" | "--logfile" | "--skip" => drop(rest.next()),
            option if option.starts_with('-') => {}
            filter => is_meant &= NAME.contains(filter),
        }
    }
    is_meant.then_some(plan)
}

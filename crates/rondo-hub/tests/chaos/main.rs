//! Kills a hub, again and again, and looks what people saw; and measures one under load.
//!
//! The victim is this program itself with other arguments (`victim.rs`): a hub with a channel to a messenger on a socket, a
//! scripted model (`model.rs`), and its journal on the disk, which may be one that loses what was not synced when the hub
//! is killed. Only what people saw counts (`oracle.rs`): in the end everything has to be answered within ten seconds, once
//! and in order, and more often only as often as the hub itself counted that it sent something again.
//!
//! - `poison.rs`: the message that ends the hub whenever it is worked on.
//! - `case.rs`: several people write, some of whose messages take calls of tools, some a question that is answered by a
//!   button, and some set up scheduled jobs. Events come twice, late and in another order; the model is slow, fails, stalls and
//!   breaks off; receipts are lost. The hub is killed, or told to stop, at moments that are chosen from what is seen of it.
//! - `points.rs`: one conversation that loses power before and after each of its commits.
//! - `disk.rs`: a disk that is full for a while.
//! - `load.rs`: a thousand chats at once; `beside.rs`: a client that only sends their requests, and another gateway.
//! - `latency.rs`: few chats, and how long a turn takes beside its model.
//!
//! Everything random follows from a seed, which is printed. Without arguments a little of all is tried; `--kills N` has
//! cases run until so many kills, `--all-points` tries every commit, `--load N` measures N chats, and with `--peer PROGRAM`
//! another gateway beside them, such as `peers/nanobot.sh`; `--latency N` measures N turns a second.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "what a test sets up must work; it reports as the test harness it stands for, and a case is told in one piece"
)]

mod beside;
mod case;
mod disk;
mod latency;
mod load;
#[path = "../it/messenger.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod messenger;
mod model;
mod oracle;
mod points;
mod poison;
mod tally;
mod victim;
mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tally::Tally;
use tokio::runtime::Runtime;

/// The tests of this program.
const TESTS: [(&str, Test); 4] = [
    (
        "whenever_the_hub_is_killed_everyone_is_answered_once",
        Test::Kills,
    ),
    (
        "at_whichever_commit_power_is_lost_everyone_is_answered_once",
        Test::Points,
    ),
    (
        "on_a_full_disk_nothing_is_lost_and_people_are_told",
        Test::FullDisk,
    ),
    ("what_is_wrong_is_told_by_the_exit_code", Test::ExitCode),
];
/// Without arguments: the message that ends the hub each time, and two cases.
const KILLS: u64 = 4;
/// Makes a messenger show something twice, which no hub can be blamed for and every case must find.
const BROKEN: &str = "--broken";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Kills,
    Points,
    FullDisk,
    ExitCode,
}

struct Plan {
    tests: Vec<(&'static str, Test)>,
    kills: u64,
    seed: u64,
    all_points: bool,
    is_broken: bool,
    load: Option<usize>,
    peer: Option<PathBuf>,
    latency: Option<u32>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [first, rest @ ..] if first == victim::ARGUMENT => return victim::run(rest),
        [first, directory] if first == disk::ARGUMENT => {
            return code(runtime().block_on(disk::on_it(Path::new(directory))));
        }
        args if args.iter().any(|arg| arg == "--list") => {
            TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let Some(plan) = plan(&args) else {
        println!("a number is missing or is none: {args:?}");
        return ExitCode::FAILURE;
    };
    if let Some(chats) = plan.load {
        runtime().block_on(async {
            load::run(chats).await;
            beside::client(chats).await;
            if let Some(peer) = &plan.peer {
                beside::peer(peer, chats).await;
            }
        });
        return ExitCode::SUCCESS;
    }
    if let Some(rate) = plan.latency {
        runtime().block_on(latency::run(rate));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests\nseed {}", plan.tests.len(), plan.seed);
    let failed = plan.tests.iter().filter(|test| !is_sound(test, &plan));
    let failed = failed.count();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let passed = plan.tests.len() - failed;
    println!("\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored");
    code(failed == 0)
}

fn code(is_sound: bool) -> ExitCode {
    match is_sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Runs a test and reports it.
fn is_sound((name, test): &(&str, Test), plan: &Plan) -> bool {
    let mut tally = Tally::default();
    let began = Instant::now();
    let runtime = runtime();
    match test {
        Test::Kills => runtime.block_on(cases(plan, &mut tally)),
        Test::Points => runtime.block_on(points::run(plan.all_points, plan.seed, &mut tally)),
        Test::FullDisk => runtime.block_on(disk::run(&mut tally)),
        Test::ExitCode => broken_run(plan.seed, &mut tally),
    }
    runtime.shutdown_background();
    tally.took = began.elapsed();
    let is_enough = match test {
        Test::Kills => tally.kills >= plan.kills,
        Test::Points => tally.kills > 0,
        Test::FullDisk | Test::ExitCode => true,
    };
    let is_sound = tally.problems.is_empty() && is_enough;
    let word = if is_sound { "ok" } else { "FAILED" };
    println!("{tally}test {name} ... {word}");
    is_sound
}

async fn cases(plan: &Plan, tally: &mut Tally) {
    if !plan.is_broken {
        poison::run(tally).await;
    }
    let mut seed = plan.seed;
    while tally.kills < plan.kills && tally.problems.is_empty() {
        let cases =
            [seed, seed.wrapping_add(1)].map(|it| tokio::spawn(case::run(it, plan.is_broken)));
        seed = seed.wrapping_add(2);
        for case in cases {
            tally.add(case.await.unwrap());
        }
    }
}

/// Runs this program with something that is wrong, which has to have it fail.
fn broken_run(seed: u64, tally: &mut Tally) {
    let name = TESTS[0].0;
    let output = Command::new(std::env::current_exe().unwrap())
        .args([BROKEN, "--kills", "1", "--seed", &seed.to_string(), name])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() != Some(1) || !said.contains("were seen again, the hub counted") {
        tally.problem(format!(
            "a run with something wrong: {}, {said}",
            output.status
        ));
    }
}

/// Reads the arguments, some of which are for any test program.
fn plan(args: &[String]) -> Option<Plan> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut plan = Plan {
        tests: TESTS.to_vec(),
        kills: KILLS,
        seed: since.map_or(0, |it| it.as_secs() << 8),
        all_points: false,
        is_broken: false,
        load: None,
        peer: None,
        latency: None,
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--peer" {
            plan.peer = Some(rest.next()?.into());
            continue;
        }
        let mut number = || rest.next().and_then(|it| it.parse().ok());
        match arg.as_str() {
            "--kills" => plan.kills = number()?,
            "--seed" => plan.seed = number()?,
            "--load" => plan.load = Some(usize::try_from(number()?).ok()?),
            "--latency" => plan.latency = Some(u32::try_from(number()?).ok()?),
            "--all-points" => plan.all_points = true,
            BROKEN => plan.is_broken = true,
            "--test-threads" | "--format" | "--color" | "--logfile" | "--skip" => drop(rest.next()),
            option if option.starts_with('-') => {}
            filter => plan.tests.retain(|(name, _)| name.contains(filter)),
        }
    }
    Some(plan)
}

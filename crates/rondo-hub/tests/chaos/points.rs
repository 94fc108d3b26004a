//! One conversation with calls, a question and a scheduled job, in which the hub loses power at each of its commits in turn: once
//! just before the commit is on the disk, and once just after that, when no other process knows of it.
//!
//! A kill does not show more than that: either a commit is there or it is not.

use crate::case::{LIVELY, TIMED_LOOK};
use crate::model::{self, Task};
use crate::oracle::{Expected, Given, all_answered, all_timed};
use crate::tally::Tally;
use crate::world::{World, event, press};
use rondo_hub::channel::Delivery;
use rondo_testkit::Script;
use rondo_testkit::power::{Moment, PowerLoss};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const CHAT: &str = "p0";
const TASKS: [Task; 4] = [Task::Writes, Task::Calls(2), Task::Later, Task::Slowly];
/// Cases at once.
const AT_ONCE: usize = 4;
/// Of the commits, one in so many is tried if not all are.
const SAMPLE: u64 = 8;
/// More than the conversation has.
const COMMITS_MAX: u64 = 400;
/// How long a hub may take to come to a commit.
const REACH: Duration = Duration::from_secs(60);

/// Which process of a conversation loses power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The first, in which everything is asked.
    Talk,
    /// The second, which finds a job due.
    Due,
}

/// Outcome of a case.
struct End {
    tally: Tally,
    /// Set if the conversation has that commit.
    was_reached: bool,
}

/// Tries all commits, or some that the seed chooses.
pub(crate) async fn run(all: bool, seed: u64, tally: &mut Tally) {
    for part in [Part::Talk, Part::Due] {
        let step = if all { 1 } else { SAMPLE };
        let first = if all { 1 } else { 1 + seed % SAMPLE };
        let mut next = (first..COMMITS_MAX).step_by(usize::try_from(step).unwrap());
        let mut cases = JoinSet::new();
        let mut is_over = false;
        loop {
            while cases.len() < AT_ONCE && !is_over {
                let Some(sync) = next.next() else { break };
                for moment in [Moment::Before(sync), Moment::After(sync)] {
                    let delivery = deliveries(sync);
                    cases.spawn(case(part, moment, delivery));
                }
            }
            let Some(end) = cases.join_next().await else {
                break;
            };
            let end = end.unwrap();
            is_over |= !end.was_reached || !end.tally.problems.is_empty();
            tally.add(end.tally);
        }
    }
}

fn deliveries(sync: u64) -> Delivery {
    match sync % 3 {
        0 => Delivery::Key,
        1 => Delivery::AtLeastOnce,
        _ => Delivery::Edit,
    }
}

async fn case(part: Part, moment: Moment, delivery: Delivery) -> End {
    let world = World::new(Script::answering(model::reply), delivery, 1).await;
    let given = Vec::from_iter((0..TASKS.len()).map(|number| Given {
        chat: CHAT.to_owned(),
        number,
    }));
    let mut tally = Tally {
        cases: 1,
        ..Tally::default()
    };
    let messenger = &world.messenger;
    for (number, task) in TASKS.iter().enumerate() {
        messenger.push(event(CHAT, number, &task.said(number)));
    }
    let answering = tokio::spawn(press(messenger.clone()));
    let loss = Some(PowerLoss {
        at: Some(moment),
        ..PowerLoss::default()
    });
    let mut hub = world.start((part == Part::Talk).then_some(loss).flatten());
    let mut was_reached = false;
    tokio::select! {
        _ = hub.wait() => was_reached = true,
        _ = timeout(REACH, messenger.until_all(|it| all_answered(it, &given))) => {}
    }
    hub.kill().await.unwrap();
    sleep(model::DUE).await;
    if part == Part::Due {
        let mut hub = world.start(loss);
        tokio::select! {
            _ = hub.wait() => was_reached = true,
            _ = timeout(REACH, messenger.until_all(|it| all_timed(it, &world.model, &given))) => {}
        }
        hub.kill().await.unwrap();
    }
    tally.kills += u64::from(was_reached);
    tally.cuts += u64::from(was_reached);
    let began = Instant::now();
    let mut hub = world.start(None);
    let answered = timeout(LIVELY, messenger.until_all(|it| all_answered(it, &given)));
    if answered.await.is_err() {
        tally.problem(format!("{part:?} {moment:?}: not everything was answered"));
    }
    tally.slowest = began.elapsed();
    let timed = messenger.until_all(|it| all_timed(it, &world.model, &given));
    if timeout(LIVELY + TIMED_LOOK, timed).await.is_err() {
        tally.problem(format!("{part:?} {moment:?}: a scheduled job did not run"));
    }
    tally.doubts = world.doubts_once_idle().await;
    hub.kill().await.unwrap();
    answering.abort();
    tally.events = given.len() as u64;
    let expected = Expected {
        seed: 0,
        delivery,
        given: &given,
    };
    expected.look(messenger, &world.model, &mut tally);
    if !tally.problems.is_empty() {
        let kept = world.keep();
        tally.problem(format!(
            "{part:?} {moment:?}: its files are in {}",
            kept.display()
        ));
    }
    End { tally, was_reached }
}

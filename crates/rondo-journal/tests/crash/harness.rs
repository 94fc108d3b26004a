//! Runs the victims.

use crate::VICTIM_ARG;
use crate::check::{End, Tally};
use crate::scenario::{self, Scenario};
use crate::victim::{self, Order};
use rondo_testkit::{Script, Server};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Victims that run side by side: they mostly wait for disks and for each other's commands.
const AT_ONCE: usize = 4;
/// How long one may take; a machine that is too slow for this is broken.
const VICTIM_TIMEOUT: Duration = Duration::from_mins(5);
/// Every so many-th case kills the resumed process too.
const SECOND_KILL_EVERY: usize = 2;
/// At one of its first points so many, spread over the cases.
const SECOND_KILL_POINTS: usize = 14;
/// Coprime to the number of points, so that the cases spread over all of them.
const SPREAD: usize = 5;

/// End of a victim's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    Ended,
}

/// Runs all scenarios and reports.
pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tally = runtime.block_on(all());
    tally.print();
    tally.assert();
}

async fn all() -> Tally {
    let mut tally = Tally::default();
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut cases = JoinSet::new();
    for scenario in scenario::all().into_iter().map(Arc::new) {
        let undisturbed = Arc::new(case(Arc::clone(&scenario), Vec::new()).await);
        tally.add_scenario(&undisturbed);
        for point in 1..=undisturbed.points.len() {
            let (scenario, undisturbed) = (Arc::clone(&scenario), Arc::clone(&undisturbed));
            let room = Arc::clone(&room);
            cases.spawn(async move {
                let _permit = room.acquire_owned().await.unwrap();
                let end = case(Arc::clone(&scenario), kills(point)).await;
                crate::check::compare(&scenario, &undisturbed, &end)
            });
        }
    }
    while let Some(case) = cases.join_next().await {
        tally.add(case.unwrap());
    }
    tally
}

/// Returns the points at which the processes of one case are killed, one after another.
fn kills(point: usize) -> Vec<usize> {
    let second = 1 + (point * SPREAD) % SECOND_KILL_POINTS;
    if point.is_multiple_of(SECOND_KILL_EVERY) {
        vec![point, second]
    } else {
        vec![point]
    }
}

/// Runs a scenario whose processes are killed at these points, then to its end.
async fn case(scenario: Arc<Scenario>, kills: Vec<usize>) -> End {
    let home = TempDir::new().unwrap();
    Scenario::prepare(&victim::work_dir(home.path()));
    std::fs::create_dir(victim::calls_dir(home.path())).unwrap();
    let answers = Arc::clone(&scenario);
    let server = Server::start(Script::answering(move |it| answers.answer(it))).await;
    let mut died_at = Vec::new();
    for kill_at in kills {
        if process(home.path(), &server, kill_at).await == Fate::Killed {
            died_at.extend(points(home.path()).pop());
        }
    }
    let last = process(home.path(), &server, 0).await;
    assert_eq!(last, Fate::Ended, "nobody killed it");
    let requests = server.requests();
    let requests = requests.iter().map(rondo_testkit::Recorded::json).collect();
    End::read(home.path(), requests, died_at)
}

async fn process(home: &Path, server: &Server, kill_at: usize) -> Fate {
    let order = Order {
        home: home.to_owned(),
        url: server.url("/v1"),
        kill_at,
    };
    let victim = Command::new(std::env::current_exe().unwrap())
        .arg(VICTIM_ARG)
        .args(order.args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let ended = tokio::time::timeout(VICTIM_TIMEOUT, victim).await;
    let ended = ended.expect("the victim hangs").unwrap();
    match (ended.status.success(), ended.status.signal()) {
        (true, _) => Fate::Ended,
        (false, Some(9)) if kill_at > 0 => Fate::Killed,
        _ => panic!(
            "{}: {}\npoints: {:?}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr),
            points(home),
        ),
    }
}

/// Returns the points that were passed, of all processes of a case.
pub(crate) fn points(home: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(victim::points_log(home)).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

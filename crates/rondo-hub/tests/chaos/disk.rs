//! A disk that is full: nothing is lost, people are told, and it continues once there is space.
//!
//! The disk is a small one in memory, which is mounted where only this program sees it.

use crate::case::LIVELY;
use crate::messenger::Messenger;
use crate::model::{self, Task};
use crate::oracle::{Expected, Given, all_answered};
use crate::tally::Tally;
use crate::world::{World, event};
use rondo_hub::channel::Delivery;
use rondo_testkit::Script;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Argument that makes this process run on the disk whose directory follows.
pub(crate) const ARGUMENT: &str = "--on-a-small-disk";
/// Mounts the disk, or ends with what says that this is not possible.
const MOUNT: &str = "mount -t tmpfs -o size=12m none \"$1\" || exit 77; exec \"$0\" \"$2\" \"$1\"";
/// How the process ends if it may not mount anything.
const NOT_MOUNTED: i32 = 77;
/// Bytes per write while filling the disk.
const FILLING: usize = 16 << 10;
const PEOPLE: usize = 5;
/// Longest rest of work that was put off meanwhile.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Word in the messages to people meanwhile.
const TOLD: &str = "full";

/// Runs the case on a disk of its own, if this process may mount one.
pub(crate) async fn run(tally: &mut Tally) {
    let home = tempfile::tempdir().unwrap();
    let ended = Command::new("unshare")
        .args(["-rm", "/bin/sh", "-c", MOUNT])
        .arg(std::env::current_exe().unwrap())
        .arg(home.path())
        .arg(ARGUMENT)
        .stdin(Stdio::null())
        .output()
        .await;
    let output = match ended {
        Ok(output)
            if output.status.code() != Some(NOT_MOUNTED)
                && output.stdout.starts_with(b"mounted") =>
        {
            output
        }
        refused => {
            println!("NOT RUN: a full disk, since this process may not mount one: {refused:?}");
            tally.not_run += 1;
            return;
        }
    };
    tally.cases += 1;
    if !output.status.success() {
        tally.problem(format!(
            "full disk: {}",
            String::from_utf8_lossy(&output.stdout)
        ));
    }
}

/// The case, on its disk. Returns whether all was well, and says what was not.
pub(crate) async fn on_it(directory: &Path) -> bool {
    println!("mounted");
    let home = tempfile::tempdir_in(directory).unwrap();
    let script = Script::answering(model::reply);
    let mut case = Case {
        world: World::at(home, script, Delivery::AtLeastOnce, PEOPLE).await,
        filling: directory.join("filling"),
        given: Vec::new(),
        tally: Tally::default(),
    };
    case.goes_on_by_itself().await;
    case.goes_on_after_a_kill().await;
    case.end()
}

struct Case {
    world: World,
    filling: PathBuf,
    given: Vec<Given>,
    tally: Tally,
}

impl Case {
    /// The disk is full for a while.
    async fn goes_on_by_itself(&mut self) {
        let mut hub = self.world.start(None);
        self.ask("p0", Task::Calls(2));
        self.world.messenger.until("p0", 1).await;
        self.work_on("p1").await;
        fill(&self.filling);
        self.ask("p0", Task::Plain);
        self.ask("p2", Task::Calls(1));
        self.are_told(&["p0", "p1", "p2"]).await;
        fs::remove_file(&self.filling).unwrap();
        self.are_answered().await;
        hub.kill().await.unwrap();
    }

    /// The disk is full, and the hub ends and comes again.
    async fn goes_on_after_a_kill(&mut self) {
        let mut hub = self.world.start(None);
        self.work_on("p3").await;
        fill(&self.filling);
        self.ask("p4", Task::Plain);
        self.are_told(&["p4"]).await;
        hub.kill().await.unwrap();
        let mut hub = self.world.start(None);
        // It may be able to open its journal.
        let _ = timeout(LIVELY / 5, hub.wait()).await;
        fs::remove_file(&self.filling).unwrap();
        let mut hub = restarted(hub, &self.world);
        self.are_answered().await;
        self.world.messenger.until_taken().await;
        self.tally.doubts = self.world.doubts_once_idle().await;
        hub.kill().await.unwrap();
    }

    fn ask(&mut self, chat: &str, task: Task) {
        let number = self.given.len();
        let messenger = &self.world.messenger;
        messenger.push(event(chat, number, &task.said(number)));
        self.given.push(Given {
            chat: chat.to_owned(),
            number,
        });
    }

    /// Asks something, and waits until it is being answered.
    async fn work_on(&mut self, chat: &str) {
        let before = self.world.model.requests().len();
        self.ask(chat, Task::Slowly);
        self.world.model.request(before).await;
    }

    async fn are_told(&mut self, chats: &[&str]) {
        let is_told =
            |it: &Messenger, chat: &&str| it.texts(chat).iter().any(|it| it.contains(TOLD));
        let all = |it: &Messenger| chats.iter().all(|chat| is_told(it, chat));
        let told = self.world.messenger.until_all(all);
        if timeout(LIVELY, told).await.is_err() {
            let seen = self.world.messenger.all_seen();
            self.tally
                .problem(format!("{chats:?} were not told: {seen:#?}"));
        }
    }

    async fn are_answered(&mut self) {
        let began = Instant::now();
        let all = |it: &Messenger| all_answered(it, &self.given);
        let answered = self.world.messenger.until_all(all);
        if timeout(LIVELY + PAUSE_MAX, answered).await.is_err() {
            self.tally
                .problem("not everything was answered after there was space");
        }
        self.tally.slowest = self.tally.slowest.max(began.elapsed());
    }

    fn end(mut self) -> bool {
        let expected = Expected {
            seed: 0,
            delivery: self.world.delivery,
            given: &self.given,
        };
        expected.look(&self.world.messenger, &self.world.model, &mut self.tally);
        println!("{}", self.tally);
        self.tally.problems.is_empty()
    }
}

/// Begins a hub again that could not open its journal, as whatever looks after it would.
fn restarted(mut hub: Child, world: &World) -> Child {
    match hub.try_wait().unwrap() {
        Some(_) => world.start(None),
        None => hub,
    }
}

/// Leaves no room on a disk.
fn fill(path: &Path) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    for size in [FILLING, 512, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

//! One case: a turn that is killed, and resumed until it is over.

use crate::Tally;
use crate::check::{self, Journal, Standing};
use crate::listen::Listeners;
use crate::random::Random;
use crate::target;
use crate::work::ScriptedTurn;
use rondo_testkit::{Script, Server};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// How long a process may take: each call has its own time, and the machine may be slow.
const RUN_MAX: Duration = Duration::from_secs(120);
/// Processes that are killed, one after another, before the last one is left alone.
const KILLED_MAX: u64 = 3;
/// Strikes at one process.
const STRIKES_MAX: u64 = 4;
/// How often it is looked for what is left of a traced process.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often, one after another, a tracer must be found left alone.
const LOOKS: u32 = 25;
/// How long a strike is waited for.
const DELAY_MS_MAX: u64 = 700;
/// A turn is over, or there is none.
const NOTHING_CUT_OFF: i32 = 45;
/// A turn waits for an answer.
const WAITS: i32 = 47;
/// Answers that a turn may need.
const ROUNDS_MAX: u64 = 64;

/// Directory of a case.
pub(crate) struct CaseDir {
    root: TempDir,
    mark: String,
}

impl CaseDir {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = TempDir::new().unwrap();
        for name in ["home", "project"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self {
            root,
            mark: format!("{}-{next}", std::process::id()),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.root().join("home/.local/share/rondo/sessions")
    }

    /// Returns the command of a listener: it belongs to no turn, and does not have its mark.
    pub(crate) fn listener(&self, kind: &'static str) -> ListenerCommand {
        ListenerCommand {
            root: self.root().to_owned(),
            kind,
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.root().join("home"))
            .env("RONDO_OFFLINE", "1")
            .env(target::MARK, &self.mark)
            .current_dir(self.root().join("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Begins listeners of a case.
pub(crate) struct ListenerCommand {
    root: PathBuf,
    kind: &'static str,
}

impl ListenerCommand {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .arg(self.kind)
            .arg(self.root.join("heard"))
            .env_clear()
            .env("HOME", self.root.join("home"))
            .env("RONDO_OFFLINE", "1")
            .current_dir(self.root.join("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Runs a case and says what was found.
pub(crate) async fn run(mut random: Random, can_trace: bool) -> Tally {
    let dir = CaseDir::new();
    let turn = Arc::new(ScriptedTurn::random(&mut random));
    let answers = Arc::clone(&turn);
    let server = Server::start(Script::answering(move |it| answers.answer(it))).await;
    let url = server.url("/v1");
    let mut story = Vec::new();
    let mut tally = Tally::default();
    let mut known = Journal::default();
    let killed = 1 + random.below(KILLED_MAX);
    let parks = random.one_in(3);
    tally.parking += u64::from(parks);
    let detaches = random.one_in(4);
    tally.detached += u64::from(detaches);
    let listening = Listening::start(&dir, &mut random, parks);
    for round in 0.. {
        let is_last = round >= killed;
        let Some(mut args) = next_command(round, parks, &url, &known.standing(&dir)) else {
            break;
        };
        if detaches && round == 0 {
            args.push("--detach".to_owned());
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let is_traced = can_trace && !is_last && random.one_in(3);
        let mut child = match is_traced {
            true => traced(&dir, &mut random, &args, &mut story, &mut tally),
            false => dir.command(RONDO).args(&args).spawn().unwrap(),
        };
        tally.runs += 1;
        let agent = pid_of(child.id());
        if let Some(agent) = agent.filter(|_| !is_last && !is_traced && !detaches) {
            strike(&mut random, agent, &dir, &mut story, &mut tally).await;
        }
        let ended = match is_traced {
            true => end_of_traced(&mut child, &dir).await,
            false => end_of(&mut child).await,
        };
        let Some((code, said)) = ended else {
            add_problems(&mut tally, ["a process did not end".to_owned()], &story);
            break;
        };
        let verb = args.first().unwrap_or(&"");
        story.push(format!("`{verb}` ended with {code:?}"));
        if !detached_ends(&said, &mut random, &dir, &mut story, &mut tally).await {
            break;
        }
        add_problems(&mut tally, known.grow(&dir), &story);
        match (is_last, code) {
            (false, _) => {}
            (true, Some(0 | NOTHING_CUT_OFF)) => break,
            (true, Some(WAITS)) if parks && round < ROUNDS_MAX => {}
            (true, _) => {
                add_problems(
                    &mut tally,
                    [format!("the last process failed: {said}")],
                    &story,
                );
                break;
            }
        }
    }
    let is_over = known.is_over(&dir);
    listening.end(&dir, is_over, &story, &mut tally).await;
    add_found(&mut tally, check::end(&dir, &turn, &known).await, &story);
    tally
}

/// Strikes the process that left the terminal, if there is one, and returns whether it ends.
async fn detached_ends(
    said: &str,
    random: &mut Random,
    dir: &CaseDir,
    story: &mut Vec<String>,
    tally: &mut Tally,
) -> bool {
    let Some(agent) = detached_of(said) else {
        return true;
    };
    strike(random, agent, dir, story, tally).await;
    let has_ended = has_ended(agent).await;
    if !has_ended {
        let problem = "the detached process did not end".to_owned();
        add_problems(tally, [problem], story);
    }
    has_ended
}

/// Listener to a case.
struct Listening {
    /// One that is left alone.
    attached: Option<Child>,
    /// Those that are killed.
    killed: Option<Listeners>,
}

impl Listening {
    /// A service takes answers for its own, so that one which listens to a parked turn would carry it on.
    fn start(dir: &CaseDir, random: &mut Random, parks: bool) -> Self {
        let is_killed = !parks && random.one_in(2);
        Self {
            attached: parks.then(|| listener(dir, random)).flatten(),
            killed: is_killed.then(|| Listeners::start(dir, random.split())),
        }
    }

    async fn end(self, dir: &CaseDir, is_over: bool, story: &[String], tally: &mut Tally) {
        let mut problems = Vec::from_iter(end_of_listener(self.attached).await);
        if let Some(listeners) = self.killed {
            let (killed, problem) = listeners.end(dir, is_over).await;
            tally.listened += 1;
            tally.listeners += killed;
            problems.extend(problem);
        }
        let problems = problems.iter().map(|it| format!("{story:?}: {it}"));
        tally.problems.extend(problems);
    }
}

/// Adds the problems found at a case's end, each with the case's story.
fn add_found(tally: &mut Tally, found: check::Found, story: &[String]) {
    tally.calls += found.calls;
    tally.in_doubt += found.in_doubt;
    add_problems(tally, found.problems, story);
}

fn add_problems(tally: &mut Tally, found: impl IntoIterator<Item = String>, story: &[String]) {
    let problems = found.into_iter().map(|it| format!("{story:?}: {it}"));
    tally.problems.extend(problems);
}

/// Returns the next command: the one asked for, or the one that the session needs to continue; none once its turn is
/// over.
fn next_command(round: u64, parks: bool, url: &str, standing: &Standing) -> Option<Vec<String>> {
    let approval = match parks {
        true => ["--approval", "park"].as_slice(),
        false => &["--yolo"],
    };
    let words: Vec<&str> = match standing {
        _ if round == 0 => vec!["ask", "-m", "openai/test"],
        Standing::Waits(question) => vec!["answer", "latest", question, "y"],
        Standing::Over if parks => return None,
        Standing::Over | Standing::CutOff => vec!["resume"],
    };
    let more = ["--base-url", url]
        .into_iter()
        .chain(approval.iter().copied());
    let question = (round == 0).then_some("go");
    let all = words.into_iter().chain(more).chain(question);
    Some(all.map(str::to_owned).collect())
}

/// Half of the time, a listener that comes when the turn may have begun. It belongs to no turn and does not have its
/// mark, so that what is killed of the turn is never the listener.
fn listener(dir: &CaseDir, random: &mut Random) -> Option<Child> {
    let listens = random.one_in(2);
    let mut command = dir.command(RONDO);
    command.arg("attach").env_remove(target::MARK);
    listens.then(|| command.spawn().unwrap())
}

/// Returns the problem of a listener's end, if there is one.
async fn end_of_listener(listener: Option<Child>) -> Option<String> {
    let ended = timeout(RUN_MAX, listener?.wait()).await;
    let code = ended.ok().and_then(Result::ok).and_then(|it| it.code());
    let is_sound = matches!(code, Some(0 | 1 | NOTHING_CUT_OFF | WAITS));
    (!is_sound).then(|| format!("a listener ended with {code:?}"))
}

/// The program under test.
const RONDO: &str = env!("CARGO_BIN_EXE_rondo");

fn traced(
    dir: &CaseDir,
    random: &mut Random,
    args: &[&str],
    story: &mut Vec<String>,
    tally: &mut Tally,
) -> Child {
    let (flags, what) = target::trace(random);
    story.push(format!("traced: {what}"));
    tally.traced += 1;
    let mut command = dir.command("strace");
    command.args(flags).arg(RONDO).args(args).spawn().unwrap()
}

/// Strikes at a process and what it started, until it is gone or enough was struck.
async fn strike(
    random: &mut Random,
    agent: Pid,
    dir: &CaseDir,
    story: &mut Vec<String>,
    tally: &mut Tally,
) {
    for _ in 0..=random.below(STRIKES_MAX) {
        sleep(Duration::from_millis(random.below(DELAY_MS_MAX))).await;
        if !target::is_running(agent) {
            return;
        }
        if let Some(what) = target::strike(random, agent, dir.mark()) {
            tally.kills += 1;
            tally.keepers += u64::from(what == target::KEEPERS);
            story.push(format!("killed: {what}"));
        }
    }
}

fn pid_of(pid: Option<u32>) -> Option<Pid> {
    pid.and_then(|it| i32::try_from(it).ok())
        .and_then(Pid::from_raw)
}

/// Returns the process that works on a detached turn, which the one that started it says how to stop.
fn detached_of(said: &str) -> Option<Pid> {
    let (_, rest) = said.split_once("`kill ")?;
    let (pid, _) = rest.split_once('`')?;
    pid_of(pid.parse().ok())
}

/// Waits for the end of a process that is not a child.
async fn has_ended(process: Pid) -> bool {
    let gone = async {
        while target::is_running(process) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(RUN_MAX, gone).await.is_ok()
}

/// Waits for the end of a process that `strace` runs; returns as [`end_of`] does.
///
/// If a call was to be killed that ends processes, the process that ends a command's remains dies of it, one after
/// another.
/// `strace` would wait for the remains as long as they run; the next process of the session ends them.
async fn end_of_traced(child: &mut Child, dir: &CaseDir) -> Option<(Option<i32>, String)> {
    let Some(tracer) = pid_of(child.id()) else {
        return end_of(child).await;
    };
    let ending = end_of(child);
    tokio::pin!(ending);
    let left_alone = async {
        // Before it has started anything, it looks the same.
        let mut looks = 0;
        while target::is_running(tracer) && looks < LOOKS {
            sleep(LOOK_EVERY).await;
            looks = match target::is_left_alone(tracer, dir.mark()) {
                true => looks + 1,
                false => 0,
            };
        }
        let _ = kill_process(tracer, Signal::KILL);
    };
    tokio::select! {
        ended = &mut ending => return ended,
        () = left_alone => {}
    }
    ending.await
}

/// Waits for the end of a process; returns its code, if it has one, and what it said.
async fn end_of(child: &mut Child) -> Option<(Option<i32>, String)> {
    let mut said = String::new();
    let stderr = child.stderr.take();
    let ended = timeout(RUN_MAX, async {
        if let Some(mut stderr) = stderr {
            // What is left of the command does not hold it: supervisors have none.
            let mut bytes = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stderr, &mut bytes).await;
            said = String::from_utf8_lossy(&bytes).into_owned();
        }
        child.wait().await
    })
    .await;
    let status = ended.ok()?.ok()?;
    Some((status.code(), said))
}

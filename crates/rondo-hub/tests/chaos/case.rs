//! One case: people write, the hub is killed, and in the end everyone has been answered.

use crate::messenger::{Event, Fault, Messenger, Sent};
use crate::model::{self, Task};
use crate::victim;
use rondo_core::ports::Outbox as _;
use rondo_hub::channel::{Delivery, OutboxKind};
use rondo_journal::{Options, Store};
use rondo_testkit::{Dice, Response, Script, Server};
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const PEOPLE: usize = 4;
const TASKS: usize = 3;
const KILLS: u64 = 12;
/// After the faults, everything is answered within this time.
const LIVELY: Duration = Duration::from_secs(10);
/// How long a moment to kill at is waited for.
const MOMENT: Duration = Duration::from_millis(700);

/// What was done and found.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) cases: u64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    pub(crate) events: u64,
    pub(crate) answers: u64,
    /// Of these, tasks that were put aside after kills at the same place.
    pub(crate) aside: u64,
    /// Messages that were seen again.
    pub(crate) repeats: u64,
    /// Messages that the hub says it sent again although they may have been there.
    pub(crate) doubts: u64,
    pub(crate) slowest: Duration,
    pub(crate) took: Duration,
    pub(crate) problems: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.kills += other.kills;
        self.stops += other.stops;
        self.events += other.events;
        self.answers += other.answers;
        self.aside += other.aside;
        self.repeats += other.repeats;
        self.doubts += other.doubts;
        self.slowest = self.slowest.max(other.slowest);
        self.problems.extend(other.problems);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} cases, {} kills, {} stops, {} events, {} answered, {} of them put aside, {} seen again, {} times sent again in doubt; \
             all was answered {:.1} s after the last fault at the latest; {:.0} s",
            self.cases,
            self.kills,
            self.stops,
            self.events,
            self.answers,
            self.aside,
            self.repeats,
            self.doubts,
            self.slowest.as_secs_f64(),
            self.took.as_secs_f64()
        )?;
        for problem in self.problems.iter().take(20) {
            writeln!(f, "PROBLEM: {problem}")?;
        }
        Ok(())
    }
}

fn choose(dice: &mut Dice, below: usize) -> usize {
    usize::try_from(dice.roll(below as u64)).unwrap()
}

/// Runs a case.
pub(crate) async fn run(seed: u64) -> Tally {
    let mut dice = Dice::new(seed);
    let delivery = [Delivery::AtLeastOnce, Delivery::Key][choose(&mut dice, 2)];
    let faults = Arc::new(Mutex::new((Dice::new(seed ^ 1), true)));
    let failing = Arc::clone(&faults);
    let model = Server::start(Script::answering(move |request| {
        let mut faults = failing.lock().unwrap();
        let (dice, fails) = &mut *faults;
        match (*fails, dice.roll(40)) {
            (true, 0) => Response::json(429, &json!({"error": {"message": "slow down"}}))
                .header("retry-after", "0"),
            (true, 1) => model::stalled(),
            _ => model::reply(request),
        }
    }))
    .await;
    let messenger = Messenger::start().await;
    let home = tempfile::tempdir().unwrap();
    let start = || {
        victim::start(
            home.path(),
            &messenger.address().to_string(),
            &model.url("/v1"),
            delivery,
            PEOPLE,
        )
    };
    let mut tally = Tally {
        cases: 1,
        ..Tally::default()
    };
    let mut expected = Vec::new();
    let mut said = Vec::new();
    let answering = tokio::spawn(press(messenger.clone()));
    for kill in 0..KILLS {
        let mut hub = start();
        if said.len() < PEOPLE * TASKS && kill % 2 == 0 {
            for person in 0..PEOPLE {
                let number = said.len();
                let task = [Task::Plain, Task::Calls(2), Task::Writes][choose(&mut dice, 3)];
                let event = event(&format!("p{person}"), number, &task.said(number));
                messenger.push(event.clone());
                expected.push((format!("p{person}"), number));
                said.push(event);
            }
        }
        // Some come again, at any time later.
        if choose(&mut dice, 2) == 0 && !said.is_empty() {
            messenger.push(said[choose(&mut dice, said.len())].clone());
        }
        if choose(&mut dice, 4) == 0 {
            let fault = [Fault::LosesReceipt, Fault::Breaks][choose(&mut dice, 2)].clone();
            messenger.fault(&format!("p{}", choose(&mut dice, PEOPLE)), fault);
        }
        wait_for_moment(&mut dice, &messenger, &model).await;
        let is_stop = choose(&mut dice, 6) == 0;
        if is_stop {
            tally.stops += 1;
            let pid =
                rustix::process::Pid::from_raw(i32::try_from(hub.id().unwrap()).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            if timeout(Duration::from_secs(30), hub.wait()).await.is_err() {
                tally
                    .problems
                    .push(format!("seed {seed}: a hub that was told to stop did not"));
            }
        } else {
            tally.kills += 1;
            hub.kill().await.unwrap();
        }
    }
    faults.lock().unwrap().1 = false;
    messenger.faults_are_over();
    let began = Instant::now();
    let mut hub = start();
    let finals = |messenger: &Messenger| {
        let seen = messenger.all_seen();
        expected.iter().all(|(chat, number)| {
            let settles = |it: &Sent| answers(it, chat, *number) || stops(it, chat, *number);
            seen.iter().any(settles)
        })
    };
    let is_lively = timeout(LIVELY * 2, messenger.until_all(finals))
        .await
        .is_ok();
    let took = began.elapsed();
    tally.slowest = took;
    if !is_lively || took > LIVELY {
        tally.problems.push(format!(
            "seed {seed}: not everything was answered within {LIVELY:?}"
        ));
    }
    messenger.until_taken().await;
    // What is sent again in doubt comes before the outbox is empty.
    let store = Store::open(&home.path().join("data/sessions"), Options::default()).unwrap();
    for _ in 0..200 {
        if store.counts().await.unwrap().open == 0 {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    hub.kill().await.unwrap();
    answering.abort();
    let counts = store.counts().await.unwrap();
    tally.events = said.len() as u64;
    tally.doubts = counts.doubts;
    look(seed, delivery, &messenger, &expected, &mut tally);
    look_aside(seed, &messenger, &model, &expected, &mut tally);
    if !tally.problems.is_empty() {
        let kept = home.keep();
        tally
            .problems
            .push(format!("seed {seed}: its files are in {}", kept.display()));
    }
    tally
}

/// Looks at what people saw.
fn look(
    seed: u64,
    delivery: Delivery,
    messenger: &Messenger,
    expected: &[(String, usize)],
    tally: &mut Tally,
) {
    let seen = messenger.all_seen();
    let mut keys = BTreeSet::new();
    let repeats = seen.iter().filter(|it| !keys.insert(&it.key)).count() as u64;
    tally.repeats = repeats;
    if repeats > tally.doubts {
        let text = format!(
            "seed {seed}: {repeats} messages were seen again, the hub counted {}",
            tally.doubts
        );
        tally.problems.push(text);
    }
    if delivery == Delivery::Key && repeats > 0 {
        tally.problems.push(format!(
            "seed {seed}: {repeats} messages were seen again although they have keys"
        ));
    }
    for person in 0..PEOPLE {
        let chat = format!("p{person}");
        let mut first = BTreeSet::new();
        let finals = seen
            .iter()
            .filter(|it| it.chat == chat && it.kind == OutboxKind::Final);
        let finals: Vec<&Sent> = finals.filter(|it| first.insert(it.key.clone())).collect();
        let wanted: Vec<usize> = expected
            .iter()
            .filter(|(of, _)| *of == chat)
            .map(|(_, number)| *number)
            .collect();
        let is_right = finals.len() == wanted.len()
            && finals
                .iter()
                .zip(&wanted)
                .all(|(sent, number)| answers(sent, &chat, *number) || stops(sent, &chat, *number));
        tally.answers += finals.len() as u64;
        if !is_right {
            let got: Vec<&str> = finals.iter().map(|it| it.text.as_str()).collect();
            tally.problems.push(format!(
                "seed {seed}: {chat} wanted answers to {wanted:?} and saw {got:?}"
            ));
        }
    }
}

/// Looks at what was put aside: processes have to have ended while it was worked on, some of which may not have come to
/// ask the model, and the chat has to have been told.
fn look_aside(
    seed: u64,
    messenger: &Messenger,
    model: &Server,
    expected: &[(String, usize)],
    tally: &mut Tally,
) {
    let seen = messenger.all_seen();
    let requests = model.requests();
    for (chat, number) in expected {
        if !seen.iter().any(|it| stops(it, chat, *number)) {
            continue;
        }
        tally.aside += 1;
        let is_told = seen
            .iter()
            .any(|it| it.chat == *chat && it.text.contains("put aside"));
        let tries = model::most_tries(&requests, *number);
        if !is_told || tries == 0 {
            tally.problems.push(format!(
                "seed {seed}: task {number} was put aside, told: {is_told}, tried {tries} times at one place"
            ));
        }
    }
}

fn answers(sent: &Sent, chat: &str, number: usize) -> bool {
    sent.kind == OutboxKind::Final && sent.chat == chat && sent.text == model::answer(number)
}

/// Whether a message says that the work on a task was stopped, as it is when it is put aside.
fn stops(sent: &Sent, chat: &str, number: usize) -> bool {
    let of_task = sent.reply_to.as_deref() == Some(&format!("m-n{number}"));
    of_task && sent.chat == chat && sent.text.ends_with("Stopped.")
}

fn event(person: &str, number: usize, text: &str) -> Event {
    Event {
        id: format!("n{number}"),
        chat: person.to_owned(),
        group: false,
        sender: person.to_owned(),
        mentioned: true,
        text: text.to_owned(),
        pressed: None,
    }
}

/// Presses what is asked, as a person would: each question once, and once more now and then.
async fn press(messenger: Messenger) {
    let mut pressed = BTreeSet::new();
    loop {
        for sent in messenger.all_seen() {
            if sent.kind == OutboxKind::Question && pressed.insert(sent.key.clone()) {
                messenger.press(&sent.chat, &sent.chat, &sent.choices[0]);
            }
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for a moment to kill at: a while after the start, or shortly after something was seen of the hub.
async fn wait_for_moment(dice: &mut Dice, messenger: &Messenger, model: &Server) {
    let shortly = Duration::from_micros(dice.roll(12_000));
    let requests = model.requests().len() + choose(dice, 3);
    let seen = messenger.all_seen().len() + choose(dice, 2);
    match dice.roll(4) {
        0 => sleep(Duration::from_millis(dice.roll(400))).await,
        1 | 2 => {
            let asked = async {
                while model.requests().len() <= requests {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            let _ = timeout(MOMENT, asked).await;
        }
        _ => {
            let shown = messenger.until_all(|it| it.all_seen().len() > seen);
            let _ = timeout(MOMENT, shown).await;
        }
    }
    sleep(shortly).await;
}

/// A message that ends the hub whenever it is worked on is put aside after three times, and the chat goes on.
pub(crate) async fn poison(tally: &mut Tally) {
    let model = Server::start(Script::answering(|request| {
        match model::asked(&request.json()).contains("poison") {
            true => model::stalled(),
            false => model::reply(request),
        }
    }))
    .await;
    let messenger = Messenger::start().await;
    let home = tempfile::tempdir().unwrap();
    let start = || {
        victim::start(
            home.path(),
            &messenger.address().to_string(),
            &model.url("/v1"),
            Delivery::AtLeastOnce,
            2,
        )
    };
    messenger.push(event("p0", 0, "task 0 poison"));
    messenger.push(event("p0", 1, "task 1 after"));
    for kill in 0..3 {
        let mut hub = start();
        let asked = async {
            while model.requests().len() <= kill {
                sleep(Duration::from_millis(2)).await;
            }
        };
        if timeout(LIVELY, asked).await.is_err() {
            tally
                .problems
                .push(format!("poison: it was not worked on the {kill}. time"));
        }
        if kill == 0 {
            messenger.until_taken().await;
        }
        hub.kill().await.unwrap();
        tally.kills += 1;
    }
    let mut hub = start();
    messenger.push(event("p1", 2, "task 2 plain"));
    let told = timeout(
        LIVELY,
        messenger.until_all(|it| {
            let seen = it.all_seen();
            let is_told = seen
                .iter()
                .any(|it| it.chat == "p0" && it.text.contains("put aside"));
            is_told
                && seen.iter().any(|it| answers(it, "p0", 1))
                && seen.iter().any(|it| answers(it, "p1", 2))
        }),
    );
    if told.await.is_err() {
        tally
            .problems
            .push(format!("poison: {:#?}", messenger.all_seen()));
    }
    hub.kill().await.unwrap();
}

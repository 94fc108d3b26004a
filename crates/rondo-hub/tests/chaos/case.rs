//! One case: people write, the hub is killed, and in the end everyone has been answered.

use crate::messenger::{Event, Fault};
use crate::model::{self, Faults, Task};
use crate::oracle::{Expected, Given, all_answered, all_timed};
use crate::tally::Tally;
use crate::world::{World, event, press, stop};
use rondo_hub::channel::Delivery;
use rondo_testkit::Dice;
use rondo_testkit::power::{Moment, PowerLoss};
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

const PEOPLE: usize = 4;
/// Messages of each chat that are shown twice if an error is provoked: all of them.
const DOUBLED: usize = 100;
/// Tasks that are given in a case.
const TASKS: usize = 12;
const ROUNDS: u64 = 12;
/// After the faults, everything is answered within this time.
pub(crate) const LIVELY: Duration = Duration::from_secs(10);
/// How often the hub looks for due jobs: a run may start that much later.
pub(crate) const TIMED_LOOK: Duration = Duration::from_secs(10);
/// How long a moment to kill at is waited for.
const MOMENT: Duration = Duration::from_millis(700);
/// The same where drafts are shown, which takes the hub a second.
const DRAFT_MOMENT: Duration = Duration::from_millis(2_500);
/// Power may be lost at one of so many commits after a start.
const COMMITS: u64 = 40;
/// Of a hundred sectors, those that reach the disk unsynced.
const STRAYS: u64 = 30;

struct Case {
    seed: u64,
    dice: Dice,
    world: World,
    faults: Faults,
    /// Set if a killed process loses data that it has not synced.
    loses_power: bool,
    /// Events that are held back, with what they ask.
    late: Vec<(Event, Given)>,
    said: Vec<Event>,
    given: Vec<Given>,
    numbers: usize,
    tally: Tally,
}

/// Runs a case.
pub(crate) async fn run(seed: u64, is_broken: bool) -> Tally {
    let mut case = Case::new(seed).await;
    if is_broken {
        // More often than a hub that is killed has doubts.
        for number in 0..PEOPLE * DOUBLED {
            let person = number % PEOPLE;
            let chat = format!("p{person}");
            case.world.messenger.fault(&chat, Fault::Doubles);
        }
    }
    let answering = tokio::spawn(press(case.world.messenger.clone()));
    for round in 0..ROUNDS {
        case.round(round).await;
    }
    case.settle().await;
    answering.abort();
    case.end()
}

impl Case {
    async fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let deliveries = [Delivery::AtLeastOnce, Delivery::Key, Delivery::Edit];
        let delivery = deliveries[choose(&mut dice, deliveries.len())];
        let loses_power = choose(&mut dice, 2) == 0;
        let faults = Faults::new(seed ^ 1, delivery != Delivery::Edit);
        Self {
            seed,
            dice,
            world: World::new(model::failing(&faults), delivery, PEOPLE).await,
            faults,
            loses_power,
            late: Vec::new(),
            said: Vec::new(),
            given: Vec::new(),
            numbers: 0,
            tally: Tally {
                cases: 1,
                ..Tally::default()
            },
        }
    }

    fn one_in(&mut self, sides: usize) -> bool {
        choose(&mut self.dice, sides) == 0
    }

    async fn round(&mut self, round: u64) {
        let loss = self.loses_power.then(|| self.loss());
        let mut hub = self.world.start(loss);
        if self.numbers < TASKS && round.is_multiple_of(2) {
            self.write();
        }
        if self.one_in(3) || round + 1 == ROUNDS {
            self.send_late();
        }
        // Some come again, at any time later.
        if self.one_in(2) && !self.said.is_empty() {
            let again = choose(&mut self.dice, self.said.len());
            self.world.messenger.push(self.said[again].clone());
        }
        if self.one_in(4) {
            let fault = [Fault::LosesReceipt, Fault::Breaks][choose(&mut self.dice, 2)].clone();
            let person = choose(&mut self.dice, PEOPLE);
            self.world.messenger.fault(&format!("p{person}"), fault);
        }
        self.wait_for_moment().await;
        self.strike(&mut hub).await;
    }

    /// Chooses how power is lost: whenever the hub is killed, or at one of its commits.
    fn loss(&mut self) -> PowerLoss {
        let sync = 1 + self.dice.roll(COMMITS);
        let at = match self.dice.roll(6) {
            0 => Some(Moment::Before(sync)),
            1 => Some(Moment::After(sync)),
            _ => None,
        };
        PowerLoss {
            strays: STRAYS,
            seed: self.dice.next_u64(),
            at,
        }
    }

    /// Lets people write: in any order, and some later than others who wrote after them.
    fn write(&mut self) {
        let mut batch: Vec<(Event, Given)> = (0..PEOPLE).map(|_| self.task()).collect();
        for place in (1..batch.len()).rev() {
            batch.swap(place, choose(&mut self.dice, place + 1));
        }
        for (event, given) in batch {
            match self.one_in(4) {
                true => self.late.push((event, given)),
                false => self.send(event, given),
            }
        }
    }

    fn task(&mut self) -> (Event, Given) {
        let number = self.numbers;
        self.numbers += 1;
        let chat = format!("p{}", choose(&mut self.dice, PEOPLE));
        let tasks = [
            Task::Plain,
            Task::Calls(2),
            Task::Writes,
            Task::Later,
            Task::Slowly,
        ];
        let drawn = tasks[choose(&mut self.dice, tasks.len())];
        let is_shown = self.world.delivery == Delivery::Edit && self.one_in(3);
        // Only an answer that takes its time is shown before it is whole.
        let task = if is_shown { Task::Slowly } else { drawn };
        (
            event(&chat, number, &task.said(number)),
            Given { chat, number },
        )
    }

    fn send_late(&mut self) {
        for (event, given) in std::mem::take(&mut self.late) {
            self.send(event, given);
        }
    }

    fn send(&mut self, event: Event, given: Given) {
        self.world.messenger.push(event.clone());
        self.said.push(event);
        self.given.push(given);
    }

    /// Waits for a moment to kill at: a while after the start, or shortly after something was seen of the hub.
    async fn wait_for_moment(&mut self) {
        let shortly = Duration::from_micros(self.dice.roll(12_000));
        let World {
            messenger,
            model,
            delivery,
            ..
        } = &self.world;
        let moment = match delivery {
            Delivery::Edit => DRAFT_MOMENT,
            Delivery::Key | Delivery::AtLeastOnce => MOMENT,
        };
        let requests = model.requests().len() + choose(&mut self.dice, 3);
        let seen = messenger.all_seen().len() + choose(&mut self.dice, 2);
        match self.dice.roll(4) {
            0 => sleep(Duration::from_millis(self.dice.roll(400))).await,
            1 | 2 => {
                let _ = timeout(moment, model.request(requests)).await;
            }
            _ => {
                let shown = messenger.until_all(|it| it.all_seen().len() > seen);
                let _ = timeout(moment, shown).await;
            }
        }
        sleep(shortly).await;
    }

    /// Kills the hub, or tells it to stop.
    async fn strike(&mut self, hub: &mut Child) {
        if self.one_in(6) {
            self.tally.stops += 1;
            if !stop(hub).await {
                let text = format!("seed {}: a hub that was told to stop did not", self.seed);
                self.tally.problem(text);
            }
            return;
        }
        self.tally.kills += 1;
        self.tally.cuts += u64::from(self.loses_power);
        hub.kill().await.unwrap();
    }

    /// Ends all faults, and waits until everyone was answered.
    async fn settle(&mut self) {
        self.faults.are_over();
        self.world.messenger.faults_are_over();
        let began = Instant::now();
        let mut hub = self.world.start(None);
        let World {
            messenger, model, ..
        } = &self.world;
        let answered = messenger.until_all(|it| all_answered(it, &self.given));
        let is_lively = timeout(LIVELY, answered).await.is_ok();
        self.tally.slowest = began.elapsed();
        if !is_lively {
            let text = format!(
                "seed {}: not everything was answered within {LIVELY:?}",
                self.seed
            );
            self.tally.problem(text);
        }
        let timed = messenger.until_all(|it| all_timed(it, model, &self.given));
        if timeout(LIVELY + TIMED_LOOK, timed).await.is_err() {
            self.tally
                .problem(format!("seed {}: a scheduled job did not run", self.seed));
        }
        messenger.until_taken().await;
        // What is sent again in doubt comes before the outbox is empty.
        self.tally.doubts = self.world.doubts_once_idle().await;
        hub.kill().await.unwrap();
    }

    fn end(mut self) -> Tally {
        self.tally.events = self.said.len() as u64;
        let expected = Expected {
            seed: self.seed,
            delivery: self.world.delivery,
            given: &self.given,
        };
        expected.look(&self.world.messenger, &self.world.model, &mut self.tally);
        if !self.tally.problems.is_empty() {
            let kept = self.world.keep();
            let text = format!("seed {}: its files are in {}", self.seed, kept.display());
            self.tally.problem(text);
        }
        self.tally
    }
}

fn choose(dice: &mut Dice, below: usize) -> usize {
    usize::try_from(dice.roll(below as u64)).unwrap()
}

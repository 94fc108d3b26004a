//! Many chats at once: how much a hub does, how long it takes beside its model, and what it holds.

use crate::messenger::{Event, Messenger, Sent};
use crate::model::{self, Task};
use crate::world::World;
use rondo_hub::channel::{Delivery, OutboxKind};
use rondo_testkit::{Gate, Script, Step};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

pub(crate) const TURNS: usize = 3;
pub(crate) const CALLS: usize = 3;
/// Bytes that each chat's first message has, which all its requests carry.
const HISTORY: usize = 20_000;

/// The chat that is answered before.
const WARM: &str = "warm";

/// How long it may take until each chat has asked: less than a request may take.
const ASKED_MAX: Duration = Duration::from_secs(30);

/// Measures, and says what it found.
///
/// # Panics
/// When something was lost, doubled or out of order.
pub(crate) async fn run(chats: usize) {
    // It answers no chat before all have asked.
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        let reply = model::reply(request);
        match model::asked(&request.json()).contains(" calls ") {
            true => reply.before(Step::Gate(held.clone())),
            // That of the chat before.
            false => reply,
        }
    });
    let world = World::new(script, Delivery::AtLeastOnce, chats).await;
    // The bound on requests to one provider would have most of them wait for it.
    world.configure(&format!(
        "providers.local.max_concurrent_requests = {chats}\n"
    ));
    let messenger = &world.messenger;
    let mut hub = world.start(None);
    warm(messenger).await;
    let pid = hub.id().unwrap();
    let idle = resident_kib(pid);
    let began = Instant::now();
    let mut said = BTreeMap::new();
    let mut peak = idle;
    let mut threads = 0;
    for turn in 0..TURNS {
        for chat in 0..chats {
            let number = turn * chats + chat;
            said.insert(number, Instant::now());
            messenger.push(Event {
                id: format!("n{number}"),
                chat: format!("p{chat}"),
                group: false,
                sender: format!("p{chat}"),
                mentioned: true,
                text: text(turn, number),
                pressed: None,
            });
        }
    }
    let asked = timeout(ASKED_MAX, world.model.request(chats)).await;
    asked.expect("each chat asks while all others wait");
    let asking = resident_kib(pid);
    gate.open();
    let total = chats * TURNS;
    let finals = || {
        let seen = all_seen(messenger);
        seen.iter()
            .filter(|it| it.kind == OutboxKind::Final)
            .count()
    };
    while finals() < total {
        peak = peak.max(resident_kib(pid));
        threads = threads.max(status(pid, "Threads:"));
        sleep(Duration::from_millis(200)).await;
        assert!(
            began.elapsed() < Duration::from_secs(900),
            "{} of {total} were answered",
            finals()
        );
    }
    let took = began.elapsed();
    sleep(Duration::from_secs(1)).await;
    let after = resident_kib(pid);
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let seen = all_seen(messenger);
    assert_eq!(seen.len(), total, "nothing is lost or seen twice");
    for chat in 0..chats {
        let name = format!("p{chat}");
        let got: Vec<_> = seen
            .iter()
            .filter(|it| it.chat == name)
            .map(|it| it.text.clone())
            .collect();
        let wanted: Vec<_> = (0..TURNS)
            .map(|turn| model::answer(turn * chats + chat))
            .collect();
        assert_eq!(got, wanted);
    }
    println!(
        "{chats} chats, {TURNS} turns of {CALLS} calls each, on {} cores",
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    println!(
        "{total} turns in {:.1} s: {:.1} turns a second, {:.1} requests a second",
        took.as_secs_f64(),
        total as f64 / took.as_secs_f64(),
        (total * (CALLS + 1)) as f64 / took.as_secs_f64()
    );
    println!("0 lost, 0 seen twice, 0 out of order");
    let waits = waits(messenger, &said);
    let at = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_secs_f64();
    println!(
        "a turn took {:.2} s (median), {:.2} s (99 %) while {chats} ran, of which the model took nothing",
        at(50),
        at(99)
    );
    let each = |kib: u64| kib.saturating_sub(idle) as f64 / chats as f64;
    println!(
        "memory: {idle} KiB idle, {asking} KiB with a request of each chat under way, {peak} KiB at the most, {after} KiB after"
    );
    println!(
        "a chat: {:.1} KiB with a request under way, {:.1} KiB at the most",
        each(asking),
        each(peak)
    );
    println!("threads at the most {threads}, descriptors after {descriptors}");
    hub.kill().await.unwrap();
}

/// Waits for the answer to one chat, so that what the first turn of a process reads and builds once is not counted for
/// all.
async fn warm(messenger: &Messenger) {
    messenger.push(Event {
        id: WARM.to_owned(),
        chat: WARM.to_owned(),
        group: false,
        sender: "p0".to_owned(),
        mentioned: true,
        text: Task::Plain.said(0),
        pressed: None,
    });
    let answered = async {
        while messenger.all_seen().is_empty() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(ASKED_MAX, answered).await.expect("it is answered");
    sleep(Duration::from_secs(2)).await;
}

/// Messages seen in the chats that are measured.
fn all_seen(messenger: &Messenger) -> Vec<Sent> {
    let seen = messenger.all_seen().into_iter();
    seen.filter(|it| it.chat != WARM).collect()
}

/// Text that begins a turn of a chat.
pub(crate) fn text(turn: usize, number: usize) -> String {
    let mut text = String::new();
    if turn == 0 {
        let mut lines = (0..).map(|line| format!("Line {line} of what was said before.\n"));
        while text.len() < HISTORY {
            text.extend(lines.next());
        }
    }
    text + &Task::Calls(CALLS).said(number)
}

/// Returns how long each turn took, from when it could begin until its answer was seen, the shortest first.
fn waits(messenger: &Messenger, said: &BTreeMap<usize, Instant>) -> Vec<Duration> {
    let mut free = BTreeMap::new();
    let mut waits = Vec::new();
    let measured = messenger.all_seen_at().into_iter();
    for (at, sent) in measured.filter(|(_, it)| it.chat != WARM) {
        let number = number_of(&sent.text);
        let before = free.insert(sent.chat, at);
        waits.push(at - before.unwrap_or(said[&number]));
    }
    waits.sort();
    waits
}

/// Returns the number of the task that an answer is to.
pub(crate) fn number_of(answer: &str) -> usize {
    let number = answer.trim_start_matches("Answer ");
    number.trim_end_matches('.').parse().unwrap()
}

pub(crate) fn resident_kib(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

fn status(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|it| it.strip_prefix(name));
    let number = line.and_then(|it| it.split_whitespace().next());
    number.and_then(|it| it.parse().ok()).unwrap_or(0)
}

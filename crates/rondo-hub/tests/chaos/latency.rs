//! How long a turn takes beside its model while few run: next to it, in the same run, a client that does nothing but ask
//! the same model.

use crate::beside;
use crate::load;
use crate::model::{self, Task};
use crate::world::{World, event};
use rondo_hub::channel::Delivery;
use rondo_testkit::Script;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// For how long turns are begun.
const SECONDS: u32 = 20;
/// Each has a turn a second at the rate of as many turns.
const CHATS: usize = 50;
const LONG: Duration = Duration::from_secs(60);

/// Measures `rate` turns a second, and says what it found.
///
/// # Panics
/// When something was lost or doubled.
pub(crate) async fn run(rate: u32) {
    let script = Script::answering(model::reply);
    let world = World::new(script, Delivery::AtLeastOnce, CHATS).await;
    let mut hub = world.start(None);
    let mut client = Client::connect(world.model.address()).await;
    // What only the first turn of each chat takes is not part of it.
    for chat in 0..CHATS {
        say(&world, chat, chat);
    }
    answered(&world, CHATS).await;
    let total = usize::try_from(rate * SECONDS).unwrap();
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut said, mut asked) = (Vec::new(), Vec::new());
    for number in CHATS..CHATS + total {
        ticks.tick().await;
        said.push(Instant::now());
        say(&world, number % CHATS, number);
        let began = Instant::now();
        client.ask().await;
        asked.push(began.elapsed());
    }
    answered(&world, CHATS + total).await;
    hub.kill().await.unwrap();
    let seen = world.messenger.all_seen_at();
    assert_eq!(seen.len(), CHATS + total, "nothing is lost or seen twice");
    let numbered = seen
        .iter()
        .map(|(at, sent)| (load::number_of(&sent.text), at));
    let timed = numbered.filter(|(number, _)| *number >= CHATS);
    let mut took: Vec<_> = timed
        .map(|(number, at)| *at - said[number - CHATS])
        .collect();
    let (turns, alone) = (Percentiles::of(&mut took), Percentiles::of(&mut asked));
    println!("{total} turns in {CHATS} chats, {rate} a second");
    println!("a turn: {turns}");
    println!("the model alone: {alone}");
    println!(
        "added: {:.2} ms (median), {:.2} ms (99 %)",
        turns.median - alone.median,
        turns.most - alone.most
    );
}

fn say(world: &World, chat: usize, number: usize) {
    let text = Task::Plain.said(number);
    world
        .messenger
        .push(event(&format!("p{chat}"), number, &text));
}

async fn answered(world: &World, count: usize) {
    let done = async {
        while world.messenger.all_seen().len() < count {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = timeout(LONG, done).await;
    assert!(waited.is_ok(), "{:#?}", world.messenger.all_seen().last());
}

/// In milliseconds.
struct Percentiles {
    median: f64,
    most: f64,
}

impl Percentiles {
    fn of(times: &mut [Duration]) -> Self {
        times.sort();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        Self {
            median: at(50),
            most: at(99),
        }
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.2} ms (median), {:.2} ms (99 %)",
            self.median, self.most
        )
    }
}

/// A connection on which one request follows another.
struct Client {
    stream: TcpStream,
    body: String,
}

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let said = Task::Plain.said(0);
        let body =
            format!(r#"{{"stream":true,"messages":[{{"role":"user","content":"{said}"}}]}}"#);
        Self { stream, body }
    }

    /// Asks, and reads the reply to its end.
    async fn ask(&mut self) {
        beside::posted(&mut self.stream, &self.body, beside::STREAM_END).await;
    }
}

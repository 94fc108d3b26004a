//! A message that ends the hub whenever it is worked on is put aside after three times, and the chat continues.

use crate::case::LIVELY;
use crate::model;
use crate::oracle::{Given, answers};
use crate::tally::Tally;
use crate::world::{World, event};
use rondo_hub::channel::Delivery;
use rondo_testkit::{Script, faults};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const KILLS: usize = 3;

pub(crate) async fn run(tally: &mut Tally) {
    let script =
        Script::answering(
            |request| match model::asked(&request.json()).contains("poison") {
                true => faults::zero_byte_stall(),
                false => model::reply(request),
            },
        );
    let world = World::new(script, Delivery::AtLeastOnce, 2).await;
    let messenger = &world.messenger;
    messenger.push(event("p0", 0, "task 0 poison"));
    messenger.push(event("p0", 1, "task 1 after"));
    for kill in 0..KILLS {
        let mut hub = world.start(None);
        let asked = async {
            while world.model.requests().len() <= kill {
                sleep(Duration::from_millis(2)).await;
            }
        };
        if timeout(LIVELY, asked).await.is_err() {
            tally.problem(format!("poison: it was not worked on the {kill}. time"));
        }
        if kill == 0 {
            messenger.until_taken().await;
        }
        hub.kill().await.unwrap();
        tally.kills += 1;
    }
    let mut hub = world.start(None);
    messenger.push(event("p1", 2, "task 2 plain"));
    let others = [("p0", 1), ("p1", 2)].map(|(chat, number)| Given {
        chat: chat.to_owned(),
        number,
    });
    let told = messenger.until_all(|it| {
        let seen = it.all_seen();
        let is_told = |chat: &str| {
            seen.iter()
                .any(|it| it.chat == chat && it.text.contains("quarantined"))
        };
        is_told("p0")
            && others
                .iter()
                .all(|task| seen.iter().any(|it| answers(it, task)))
    });
    if timeout(LIVELY, told).await.is_err() {
        tally.problem(format!("poison: {:#?}", messenger.all_seen()));
    }
    hub.kill().await.unwrap();
}

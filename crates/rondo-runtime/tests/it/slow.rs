//! Listeners that read now and then, while more is written than is held for them.

use crate::service::{LONG, Page, World, is_result, next, results, text};
use async_trait::async_trait;
use rondo_core::session::Delivery;
use rondo_core::{Tool, ToolInvocation};
use rondo_runtime::error::Result;
use rondo_runtime::service::{AskedTurn, Cursor, SessionHandle, SessionHost, Update, UpdateBody};
use rondo_runtime::{Layer, SessionOptions, TurnBuilder};
use rondo_testkit::{CallScript, Dice, ReplyScript, Response, openai};
use rondo_types::{EventBody, Message, ToolOutcome, ToolSpec};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::yield_now;
use tokio::time::timeout;

/// Writes about 16 MiB in pieces of any size, in place of the tool that runs commands.
#[derive(Clone)]
struct Flood {
    dice: Arc<Mutex<Dice>>,
    written: Arc<AtomicU64>,
}

#[async_trait]
impl Tool for Flood {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "exec".to_owned(),
            parameters: json!({"type": "object"}),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        for _ in 0..60 {
            let roll = |sides| self.dice.lock().unwrap().roll(sides);
            let bytes = match roll(40) {
                0 => 9 << 20,
                _ => roll(400 << 10),
            };
            self.written.fetch_add(bytes, Ordering::Relaxed);
            let bytes = usize::try_from(bytes).unwrap();
            invocation.output.push("x".repeat(bytes));
            for _ in 0..4 {
                yield_now().await;
            }
        }
        ToolOutcome::text("done")
    }
}

#[async_trait]
impl SessionHost for Flood {
    async fn turn(&self, _: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        builder.tools = vec![Arc::new(self.clone())];
        Ok(())
    }
}

/// Listens to the end of the second turn, with pauses and from new subscriptions, until all that was written was heard
/// or is known to be missed.
async fn listen(session: SessionHandle, seed: u64, flood: Flood) -> Vec<Update> {
    let mut dice = Dice::new(seed);
    let mut listener = session.subscribe(Cursor::START);
    let (mut all, mut told) = (Vec::<Update>::new(), 0);
    while results(&all) < 2 || told < flood.written.load(Ordering::Relaxed) {
        let update = next(&mut listener).await;
        told += match &update.body {
            UpdateBody::Missed { bytes } => *bytes,
            UpdateBody::Turn { event } => match &event.body {
                EventBody::ToolOutputDelta { text, .. } => text.len() as u64,
                _ => 0,
            },
            _ => 0,
        };
        // What was written is not kept here either.
        let mut update = update;
        if let UpdateBody::Turn { event } = &mut update.body
            && let EventBody::ToolOutputDelta { text, .. } = &mut event.body
        {
            text.clear();
        }
        all.push(update);
        if dice.roll(10) == 0 {
            for _ in 0..dice.roll(400) {
                yield_now().await;
            }
        }
    }
    assert_eq!(told, flood.written.load(Ordering::Relaxed), "seed {seed}");
    all
}

fn turn() -> [Response; 2] {
    let call = CallScript::new("c", "exec", &json!({}));
    let calls = openai::streamed(&ReplyScript::calls([call]).usage(1, 1));
    [calls, text(&["It ", "is ", "done."])]
}

#[tokio::test]
async fn who_listens_with_pauses_hears_all_records_and_each_byte_of_live_output_or_that_it_was_missed()
 {
    let mut missed = 0;
    for seed in 0..6 {
        let world = World::new([turn(), turn()].concat()).await;
        let flood = Flood {
            dice: Arc::new(Mutex::new(Dice::new(seed))),
            written: Arc::default(),
        };
        let flags = Layer {
            yolo: Some(true),
            ..Layer::default()
        };
        let service = world.service_of(flags, flood.clone());
        let session = service.new_session(SessionOptions::in_directory(world.project.path()));
        let listening = [1, 2, 3].map(|it| {
            let listening = listen(session.clone(), seed * 10 + it, flood.clone());
            tokio::spawn(listening)
        });
        for words in ["Go.", "Again."] {
            let message = Message::user(words);
            session.submit(message, Delivery::Queue).await.unwrap();
        }
        let mut pages = Vec::new();
        for listener in listening {
            let told = timeout(LONG, listener).await.unwrap().unwrap();
            let was_missed = |it: &&Update| matches!(it.body, UpdateBody::Missed { .. });
            missed += told.iter().filter(was_missed).count();
            pages.push(Page::of(&told));
        }
        service.close().await;
        let mut late = session.subscribe(Cursor::START);
        let mut told = Vec::new();
        while results(&told) < 2 {
            told.push(next(&mut late).await);
        }
        assert!(is_result(&told[told.len() - 1].body));
        for page in pages {
            page.assert_is(&Page::of(&told), &format!("seed {seed}"));
        }
    }
    assert!(missed > 6, "{missed}");
}

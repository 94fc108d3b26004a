//! Defects of programs of this kind, each end to end through a channel. `docs/hub.md` lists them with the tests of
//! other files that hold one.

use crate::messenger::{Messenger, Sent};
use crate::world::{World, calls, content, gated, last_said, text};
use async_trait::async_trait;
use rondo_core::Tool;
use rondo_core::ports::{RecordBody, ToolInvocation, ToolScope, ToolSource};
use rondo_hub::channel::OutboxKind;
use rondo_hub::extending::TurnExtensions;
use rondo_journal::{Entry, Options, Store};
use rondo_runtime::{Extensions, Layer};
use rondo_testkit::{Gate, Script, assert_paired, faults, openai};
use rondo_types::{Concurrency, Effects, SessionId, StopReason, ToolOutcome, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// More than any pool of workers or connections has, and fewer than a test may have descriptors.
const AT_ONCE: usize = 100;

/// Changes the profile of the hub.
fn with_limits(limits: &str) -> Layer {
    let profile = toml::from_str(limits).unwrap();
    Layer {
        profiles: [("hub".to_owned(), profile)].into(),
        ..Layer::default()
    }
}

/// Returns the records of the private chat of `ann`; nothing before it has begun.
fn recorded(world: &World) -> Vec<RecordBody> {
    let journal = world.home.path().join("data/sessions");
    let store = Store::open(&journal, Options::default()).unwrap();
    let entries = store.read_all(&SessionId::new("wire_ann"));
    let records = entries
        .unwrap_or_default()
        .into_iter()
        .filter_map(Entry::into_record);
    records.map(|it| it.body).collect()
}

async fn ask(world: &World, said: &str) -> Sent {
    let seen = world.messenger.seen("ann").len();
    world.messenger.say("ann", said);
    world.messenger.until("ann", seen + 1).await.remove(seen)
}

fn past(request: &Value) -> &[Value] {
    let messages = request["messages"].as_array().unwrap();
    let first = messages.iter().position(|it| it["role"] != "system");
    &messages[first.unwrap()..]
}

/// The loop returned an error at its limit, so that the chat lost what had been found, and the conversation with it.
#[tokio::test]
async fn a_turn_that_reaches_its_limit_is_kept_and_the_conversation_goes_on_with_it() {
    let looks = |id: &str| calls(&[(id, "list_files", json!({"path": "."}))]);
    let mut world = World::new([looks("c1"), looks("c2"), text(&["I go on."])]).await;
    world.flags = with_limits("limits = { max_steps = 2 }");
    let hub = world.start();
    let told = ask(&world, "Find the pear.").await;
    assert!(told.text.contains("Max iterations reached"), "{told:?}");
    assert_eq!(ask(&world, "Go on.").await.text, "I go on.");
    hub.stop().await;
    let requests = world.requests();
    let after = requests.last().unwrap();
    assert_paired(after);
    let roles: Vec<_> = past(after)
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    let both = ["user", "assistant", "tool", "assistant", "tool"];
    assert!(roles.starts_with(&both), "{roles:?}");
    assert_eq!(roles.last(), Some(&"user"));
}

/// A turn that was cut off counted as one that had succeeded.
#[tokio::test]
async fn a_turn_that_reaches_its_limit_is_recorded_as_such() {
    let looks = calls(&[("c", "list_files", json!({"path": "."}))]);
    let mut world = World::new(Script::repeat(looks)).await;
    world.flags = with_limits("limits = { max_steps = 2 }");
    let hub = world.start();
    ask(&world, "Find the pear.").await;
    hub.stop().await;
    let ended = recorded(&world).into_iter().find_map(|it| match it {
        RecordBody::Final { stop_reason, .. } => Some(stop_reason),
        _ => None,
    });
    assert_eq!(ended, Some(StopReason::MaxSteps));
}

/// People asked for a last request without tools, so that the limit ends in an answer.
#[tokio::test]
async fn where_the_last_step_is_reserved_the_model_answers_without_tools_before_the_limit() {
    let script = Script::answering(|request| match request.json()["tools"].as_array() {
        Some(_) => calls(&[("c", "list_files", json!({"path": "."}))]),
        None => text(&["There is no pear."]),
    });
    let mut world = World::new(script).await;
    world.flags = with_limits("limits = { max_steps = 3, reserve_final = true }");
    let hub = world.start();
    let told = ask(&world, "Find the pear.").await;
    hub.stop().await;
    assert!(told.text.contains("There is no pear."), "{told:?}");
    assert_eq!(world.model.requests().len(), 3);
}

/// Whatever failed, the chat heard nothing; and every error was tried again, also what no second try helps.
#[tokio::test]
async fn whatever_fails_the_chat_is_told_once_and_what_may_pass_alone_is_tried_again() {
    let refused = |status, kind| openai::error(status, kind, "no");
    let cut = || faults::cut_after(vec![]);
    let tried = 4;
    for (what, failure, requests) in [
        ("a wrong key", refused(401, "auth"), 1),
        ("a request that is none", refused(400, "invalid"), 1),
        ("a model that is none", refused(404, "not_found"), 1),
        (
            "a page in place of an answer",
            faults::html_error(502),
            tried,
        ),
        ("too many requests", faults::rate_limited(Some(0)), tried),
        ("a server that fails", refused(500, "server"), tried),
        ("an answer that is cut off", cut(), tried),
    ] {
        let script = Script::answering(move |request| {
            match last_said(&request.json()).ends_with("And now?") {
                true => text(&["Better."]),
                false => failure.clone(),
            }
        });
        let mut world = World::new(script).await;
        world.flags = with_limits("limits = { retry = { base_ms = 1, max_ms = 2 } }");
        let hub = world.start();
        let told = ask(&world, "Hello?").await;
        assert!(
            told.text.contains("I could not answer: "),
            "{what}: {told:?}"
        );
        assert_eq!(told.kind, OutboxKind::Final, "{what}");
        assert_eq!(world.model.requests().len(), requests, "{what}");
        // Tries are not news: nothing is said of them.
        assert_eq!(ask(&world, "And now?").await.text, "Better.", "{what}");
        assert_eq!(world.messenger.texts("ann").len(), 2, "{what}");
        hub.stop().await;
    }
}

/// A time for a request was written down and never used: a model that said nothing held the chat forever.
#[tokio::test]
async fn a_model_that_says_nothing_is_left_after_its_time_and_the_chat_goes_on() {
    let replies = [faults::stall_after_headers(), text(&["Here."])];
    let mut world = World::new(replies).await;
    world.flags = with_limits("limits = { step_timeout_ms = 300 }");
    let hub = world.start();
    let told = ask(&world, "Hello?").await;
    assert!(told.text.contains("did not reply within 0.3 s"), "{told:?}");
    assert_eq!(ask(&world, "And now?").await.text, "Here.");
    hub.stop().await;
}

/// A conversation that had grown too large, or a model that said nothing, ended in an empty message or none.
#[tokio::test]
async fn an_empty_answer_is_said_to_be_empty() {
    let world = World::new(Script::repeat(text(&[]))).await;
    let hub = world.start();
    let told = ask(&world, "Hello?").await;
    hub.stop().await;
    assert!(!told.text.trim().is_empty());
    assert_eq!(world.messenger.texts("ann").len(), 1);
}

/// Two tools, of which the first cannot end before the second has done its work.
struct Pair(Arc<Notify>);

struct Half {
    name: &'static str,
    done: Arc<Notify>,
}

#[async_trait]
impl Tool for Half {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Shared,
            ..ToolSpec::default()
        }
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        match self.name {
            "wait" => self.done.notified().await,
            _ => self.done.notify_one(),
        }
        ToolOutcome::text(format!("{} is over", self.name))
    }
}

impl ToolSource for Pair {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        let half = |name| Half {
            name,
            done: Arc::clone(&self.0),
        };
        vec![Arc::new(half("wait")), Arc::new(half("work"))]
    }

    fn generation(&self) -> u64 {
        1
    }
}

impl TurnExtensions for Pair {
    fn of_turn(&self) -> rondo_runtime::error::Result<Extensions> {
        Ok(Extensions {
            tool_sources: vec![Arc::new(Self(Arc::clone(&self.0)))],
            ..Extensions::default()
        })
    }
}

/// Results were in the order in which calls happened to end.
#[tokio::test]
async fn results_stand_in_the_order_of_their_calls_though_a_later_one_ends_first() {
    let both = calls(&[("c1", "wait", json!({})), ("c2", "work", json!({}))]);
    let world = World::new([both, text(&["Both."])]).await;
    let hub = world.start();
    hub.hub.extend_turns(Arc::new(Pair(Arc::default())));
    assert_eq!(ask(&world, "Do both.").await.text, "Both.");
    hub.stop().await;
    let requests = world.requests();
    let results = past(&requests[1]).iter();
    let results: Vec<_> = results.filter(|it| it["role"] == "tool").collect();
    let ids: Vec<_> = results.iter().map(|it| &it["tool_call_id"]).collect();
    assert_eq!(ids, ["c1", "c2"]);
    let told: Vec<_> = results.iter().map(|it| content(it)).collect();
    assert_eq!(told, ["wait is over", "work is over"]);
}

/// Waits until a condition holds that nothing announces.
async fn until(messenger: &Messenger, holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(crate::messenger::LONG, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "{:#?}", messenger.all_seen());
}

/// The oldest messages were dropped one by one, so that a request began with a result whose call was gone.
#[tokio::test]
async fn what_is_dropped_of_the_past_leaves_no_result_without_its_call() {
    let script = Script::answering(|request| {
        let request = request.json();
        let since = past(&request).iter().rev();
        let results = since.take_while(|it| it["role"] == "tool").count();
        match results {
            0 => calls(&[
                ("a", "list_files", json!({"path": "."})),
                ("b", "list_files", json!({"path": "."})),
                ("c", "list_files", json!({"path": "."})),
            ]),
            _ => text(&["Looked."]),
        }
    });
    let world = World::new(script).await;
    let hub = world.start();
    for turn in 0..20 {
        ask(&world, &format!("Look, {turn}.")).await;
    }
    hub.stop().await;
    let requests = world.requests();
    assert_eq!(requests.len(), 40);
    let mut dropped = 0;
    for request in &requests {
        assert_paired(request);
        // The results of a step count as one message of the fifty.
        assert!(past(request).len() < 80, "{}", past(request).len());
        dropped += usize::from(!request.to_string().contains("Look, 0."));
    }
    assert!(dropped > 10, "something is dropped: {dropped}");
}

/// One lock, or one bound, over all chats had each wait for the others.
#[tokio::test]
async fn as_many_chats_as_write_are_answered_at_once() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |_| gated("Here.", &held));
    let mut world = World::new(script).await;
    let config = format!("providers.local.max_concurrent_requests = {AT_ONCE}");
    std::fs::write(world.home.path().join("config.toml"), config).unwrap();
    world.config = (0..AT_ONCE)
        .map(|it| format!("[users.p{it}]\nrole = 'member'\nids = ['wire:p{it}']\n"))
        .collect();
    let hub = world.start();
    for person in 0..AT_ONCE {
        world.messenger.say(&format!("p{person}"), "Hello?");
    }
    until(&world.messenger, || world.model.requests().len() == AT_ONCE).await;
    assert_eq!(world.messenger.all_seen().len(), 0);
    gate.open();
    let is_done = |it: &Messenger| it.all_seen().len() == AT_ONCE;
    world.messenger.until_all(is_done).await;
    hub.stop().await;
}

/// That a turn runs was shown forever, or for as long as the process ran.
#[tokio::test]
async fn that_a_turn_runs_is_shown_until_it_ends() {
    let gate = Gate::new();
    let script = {
        let gate = gate.clone();
        Script::answering(
            move |request| match last_said(&request.json()).contains("slowly") {
                true => gated("Slow.", &gate),
                false => text(&["Quick."]),
            },
        )
    };
    let world = World::new(script).await;
    let hub = world.start();
    ask(&world, "Answer.").await;
    let shown = |who: &str| {
        let typing = world.messenger.typing();
        typing.iter().filter(|it| *it == who).count()
    };
    let before = shown("ann");
    world.messenger.say("bob", "Answer slowly.");
    until(&world.messenger, || shown("bob") == 3).await;
    assert_eq!(shown("ann"), before);
    gate.open();
    world.messenger.until("bob", 1).await;
    hub.stop().await;
}

/// Reservations of a process that had died stayed held until the gateway was started again.
#[tokio::test]
async fn a_conversation_that_another_process_held_goes_on_once_that_is_gone() {
    let replies = [text(&["Before."]), text(&["Beside."]), text(&["After."])];
    let world = World::new(replies).await;
    let hub = world.start();
    ask(&world, "Hello.").await;
    let journal = world.home.path().join("data/sessions");
    let other = Store::open(&journal, Options::default()).unwrap();
    let held = own(&other).await;
    world.messenger.say("ann", "Hello again.");
    world.messenger.say("bob", "Hello.");
    // No other chat waits, and she is told.
    world.messenger.until("bob", 1).await;
    let told = world.messenger.until("ann", 2).await;
    assert!(told[1].text.contains("is in use"), "{told:?}");
    drop(held);
    world
        .messenger
        .until_all(|it| it.texts("ann").contains(&"After.".to_owned()))
        .await;
    hub.stop().await;
    assert_eq!(world.model.requests().len(), 3);
}

/// Takes the conversation as soon as the hub has let it go.
async fn own(store: &Store) -> rondo_journal::OwnedSession {
    let session = SessionId::new("wire_ann");
    let taken = tokio::time::timeout(crate::messenger::LONG, async {
        loop {
            match store.own(&session) {
                Ok(owned) => return owned,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    taken.await.unwrap()
}

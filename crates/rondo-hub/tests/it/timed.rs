//! Scheduled jobs and the heartbeat, by a scripted clock.

use crate::world::{USERS, World, calls, gated, last_said, text};
use rondo_core::clock::Clock;
use rondo_hub::Hub;
use rondo_hub::users::{Role, User};
use rondo_testkit::{Gate, Response, Script, openai};
use rondo_types::TimeMs;
use serde_json::{Value, json};
use std::sync::Mutex;

const MINUTE: u64 = 60_000;

fn in_minutes(minutes: u64) -> TimeMs {
    TimeMs(Clock::system().now().0 + minutes * MINUTE)
}

/// A model that sets up a job when it is asked to, and says something else in each run of it.
fn script(job: Value, run: impl Fn() -> Response + Send + Sync + 'static) -> Script {
    Script::answering(move |request| {
        let said = last_said(&request.json());
        if said.ends_with("Set it up.") {
            return calls(&[("a", "cron", job.clone())]);
        }
        match said.starts_with('[') && said.ends_with("Look at the plants.") {
            true => run(),
            false => text(&["It is set up."]),
        }
    })
}

fn dry() -> Response {
    text(&["They are dry."])
}

async fn run_due(hub: &Hub, at: TimeMs) {
    hub.run_due(at).await.unwrap();
}

fn every(minutes: u32) -> Value {
    json!({"action": "add", "prompt": "Look at the plants.", "every_minutes": minutes})
}

#[tokio::test]
async fn a_job_runs_once_at_its_time_in_its_chat_whichever_processes_look() {
    let world = World::new(script(every(10), dry)).await;
    let hub = world.start();
    assert_eq!(world.ask("ann", "Set it up.").await, "It is set up.");
    // Another person writes last; the job's chat stays what it was.
    world.ask("bob", "Hello.").await;
    let other = world.open();
    run_due(&hub.hub, in_minutes(9)).await;
    assert_eq!(world.messenger.seen("ann").len(), 1);
    let due = in_minutes(10);
    tokio::join!(run_due(&hub.hub, due), run_due(&other, due));
    run_due(&other, due).await;
    world.messenger.until("ann", 2).await;
    run_due(&hub.hub, due).await;
    hub.stop().await;
    let texts = world.messenger.texts("ann");
    assert_eq!(texts, ["It is set up.", "They are dry."]);
    assert_eq!(world.messenger.seen("bob").len(), 1);
    let said = last_said(world.requests().last().unwrap());
    assert!(said.contains("scheduled job"), "{said}");
}

#[tokio::test]
async fn a_run_that_was_missed_comes_late_once_or_never_as_the_job_says() {
    for (missed, grace, expected) in [
        ("once", 360, "They are dry."),
        ("skip", 360, "I did not run"),
        ("once", 5, "I did not run"),
    ] {
        let mut job = every(10);
        job["missed"] = json!(missed);
        job["grace_minutes"] = json!(grace);
        let world = World::new(script(job, dry)).await;
        let hub = world.start();
        world.ask("ann", "Set it up.").await;
        hub.stop().await;
        let hub = world.start();
        run_due(&hub.hub, in_minutes(55)).await;
        let seen = world.messenger.until("ann", 2).await;
        assert!(
            seen[1].text.contains(expected),
            "{missed} {grace}: {}",
            seen[1].text
        );
        run_due(&hub.hub, in_minutes(56)).await;
        hub.stop().await;
        assert_eq!(
            world.messenger.seen("ann").len(),
            2,
            "however many were missed"
        );
    }
}

#[tokio::test]
async fn a_job_is_paused_after_five_failures_and_its_chat_is_told() {
    let fails = || openai::error(400, "invalid_request_error", "no");
    let world = World::new(script(every(2), fails)).await;
    let hub = world.start();
    world.ask("ann", "Set it up.").await;
    for run in 1..=6 {
        run_due(&hub.hub, in_minutes(2 * run)).await;
        let count = 1 + usize::try_from(run).unwrap();
        world.messenger.until("ann", count).await;
    }
    run_due(&hub.hub, in_minutes(14)).await;
    hub.stop().await;
    let texts = world.messenger.texts("ann");
    assert_eq!(texts.len(), 7, "{texts:?}");
    assert!(texts[6].contains("I paused"), "{texts:?}");
    assert!(texts[6].contains("5 times in a row"), "{texts:?}");
}

#[tokio::test]
async fn a_run_is_passed_over_while_the_one_before_is_not_over_or_the_budget_is_spent() {
    let gate = Gate::new();
    let held = gate.clone();
    let mut job = every(2);
    job["tokens_per_day"] = json!(2);
    let run = move || gated("They are dry.", &held);
    let world = World::new(script(job, run)).await;
    let hub = world.start();
    world.ask("ann", "Set it up.").await;
    run_due(&hub.hub, in_minutes(2)).await;
    run_due(&hub.hub, in_minutes(4)).await;
    let seen = world.messenger.until("ann", 2).await;
    assert!(
        seen[1].text.contains("previous run has not ended"),
        "{}",
        seen[1].text
    );
    gate.open();
    world.messenger.until("ann", 3).await;
    run_due(&hub.hub, in_minutes(6)).await;
    let seen = world.messenger.until("ann", 4).await;
    assert!(
        seen[3].text.contains("its tokens for today (2)"),
        "{}",
        seen[3].text
    );
    hub.stop().await;
}

#[tokio::test]
async fn a_member_sets_up_reminders_in_their_own_chat_and_not_too_often() {
    let world = World::new(script(every(15), dry)).await;
    let hub = world.start();
    assert_eq!(world.ask("bob", "Set it up.").await, "It is set up.");
    run_due(&hub.hub, in_minutes(15)).await;
    let seen = world.messenger.until("bob", 2).await;
    hub.stop().await;
    assert_eq!(seen[1].text, "They are dry.");
    let world = World::new(script(every(5), dry)).await;
    let hub = world.start();
    world.ask("bob", "Set it up.").await;
    hub.stop().await;
    let refused = last_said(world.requests().last().unwrap());
    assert!(refused.contains("every 15 minutes at most"), "{refused}");
}

#[tokio::test]
async fn a_job_of_someone_who_is_a_guest_now_does_not_run() {
    let world = World::new(script(every(2), dry)).await;
    let hub = world.start();
    let user = |role| User {
        name: "eve".to_owned(),
        role,
        ids: vec!["wire:eve".to_owned()],
    };
    hub.hub.users().put(&user(Role::Owner)).await.unwrap();
    world.ask("eve", "Set it up.").await;
    hub.hub.users().put(&user(Role::Guest)).await.unwrap();
    run_due(&hub.hub, in_minutes(2)).await;
    let seen = world.messenger.until("eve", 2).await;
    assert!(seen[1].text.contains("I paused"), "{}", seen[1].text);
    assert!(seen[1].text.contains("only a member"), "{}", seen[1].text);
    hub.stop().await;
}

fn heartbeat(world: &mut World) {
    world.config = format!("{USERS}\n[heartbeat]\nevery = '5m'\nchat = 'wire:ann'\n");
}

#[tokio::test]
async fn a_heartbeat_without_anything_to_look_after_asks_no_model() {
    let mut world = World::new([text(&["Hello."])]).await;
    heartbeat(&mut world);
    let hub = world.start();
    world.ask("ann", "Hello.").await;
    let template = "# Heartbeat\n\n<!-- Say here what to look after. -->\n- [ ]\n";
    for text in ["", template] {
        world.put("HEARTBEAT.md", text);
        run_due(&hub.hub, in_minutes(10)).await;
    }
    hub.stop().await;
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn a_heartbeat_has_a_light_session_and_tells_its_chat_only_what_needs_it() {
    let answers = Mutex::new(vec!["The mail waits.", "HEARTBEAT_OK"]);
    let script =
        Script::answering(
            move |request| match last_said(&request.json()).contains("heartbeat]") {
                true => text(&[answers.lock().unwrap().pop().unwrap_or("HEARTBEAT_OK")]),
                false => text(&["Hello."]),
            },
        );
    let mut world = World::new(script).await;
    heartbeat(&mut world);
    let hub = world.start();
    world.ask("ann", "Hello.").await;
    world.ask("bob", "Hello.").await;
    world.put("HEARTBEAT.md", "- Look at the mail.\n");
    run_due(&hub.hub, in_minutes(0)).await;
    world.model.request(2).await;
    // It does not beat again before its time, nor before the first one is over.
    run_due(&hub.hub, in_minutes(3)).await;
    while world.messenger.seen("ann").len() < 2 {
        run_due(&hub.hub, in_minutes(6)).await;
        tokio::task::yield_now().await;
    }
    hub.stop().await;
    let texts = world.messenger.texts("ann");
    assert_eq!(texts, ["Hello.", "The mail waits."]);
    assert_eq!(world.messenger.texts("bob"), ["Hello."]);
    let requests = world.requests();
    assert_eq!(requests.len(), 4);
    assert!(!requests[2].to_string().contains("\"Hello.\""));
    assert!(last_said(&requests[2]).contains("- Look at the mail."));
}

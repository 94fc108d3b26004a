//! Commands of chats: programs with arguments, without a shell; and servers, which are programs too.
//!
//! This program is its own supervisor of commands, so it has a `main` and reports as the test harness it stands for.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test sets up must work; it reports as the test harness does"
)]

#[path = "../it/messenger.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod messenger;
mod servers;
#[path = "../it/world.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod world;

use rondo_hub::channel::OutboxKind;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::pin::Pin;
use world::{World, calls, text, tools};

type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

const TESTS: [Test; 4] = [
    (
        "a_program_gets_its_words_as_they_are_and_is_asked_about_first",
        || Box::pin(a_program_gets_its_words_as_they_are_and_is_asked_about_first()),
    ),
    (
        "what_would_reach_a_shell_is_denied_without_a_question_and_runs_nothing",
        || Box::pin(what_would_reach_a_shell_is_denied_without_a_question_and_runs_nothing()),
    ),
    (
        "a_call_of_a_server_in_one_chat_goes_on_while_other_chats_start_theirs",
        || {
            Box::pin(
                servers::a_call_of_a_server_in_one_chat_goes_on_while_other_chats_start_theirs(),
            )
        },
    ),
    ("an_owner_may_allow_a_shell", || {
        Box::pin(an_owner_may_allow_a_shell())
    }),
];

fn main() {
    rondo_exec::supervisor::run_if_requested();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let names = names(&args);
    let is_meant = |name: &str| names.is_empty() || names.iter().any(|it| name.contains(it));
    let meant: Vec<&Test> = TESTS.iter().filter(|(name, _)| is_meant(name)).collect();
    println!("\nrunning {} tests", meant.len());
    for (name, test) in &meant {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        // One that fails ends the program with its message.
        runtime.block_on(test());
        println!("test {name} ... ok");
    }
    println!(
        "\ntest result: ok. {} passed; 0 failed; 0 ignored",
        meant.len()
    );
}

/// Returns the names that select tests, without the options of a test program and their values.
fn names(args: &[String]) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--test-threads" | "--format" | "--color" | "--logfile" | "--skip" => drop(rest.next()),
            option if option.starts_with('-') => {}
            name => names.push(name),
        }
    }
    names
}

fn exec(arguments: Value) -> rondo_testkit::Response {
    calls(&[("c", "exec", arguments)])
}

fn in_chat(world: &World, name: &str) -> PathBuf {
    let home = world.home.path();
    home.join("data/hub/chats/wire_ann").join(name)
}

/// Returns the result of a call that the model reads.
fn result(world: &World) -> String {
    let requests = world.requests();
    world::last_said(&requests[1])
}

async fn a_program_gets_its_words_as_they_are_and_is_asked_about_first() {
    let argv = json!(["touch", "a; touch b", "$(touch c)", "it's"]);
    let world = World::new([exec(json!({ "argv": argv })), text(&["Done."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "Make a file.");
    let asked = world.messenger.until("ann", 1).await;
    assert_eq!(asked[0].kind, OutboxKind::Question);
    assert!(asked[0].text.contains("a; touch b"), "{}", asked[0].text);
    world.messenger.press("ann", "ann", &asked[0].choices[0]);
    world.messenger.until("ann", 2).await;
    hub.stop().await;
    for name in ["a; touch b", "$(touch c)", "it's"] {
        assert!(in_chat(&world, name).exists(), "{name}: {}", result(&world));
    }
    assert!(!in_chat(&world, "b").exists() && !in_chat(&world, "c").exists());
    let offered = &world.requests()[0];
    assert!(tools(offered).contains(&"exec".to_owned()));
    let schema = offered["tools"].as_array().unwrap().iter();
    let schema = schema.map(|it| &it["function"]);
    let schema = schema.clone().find(|it| it["name"] == "exec").unwrap();
    assert_eq!(schema["parameters"]["required"], json!(["argv"]));
    assert!(schema["parameters"]["properties"].get("command").is_none());
}

async fn what_would_reach_a_shell_is_denied_without_a_question_and_runs_nothing() {
    for (arguments, reason) in [
        (
            json!({"argv": ["bash", "-c", "touch x"]}),
            "`bash` is a shell",
        ),
        (
            json!({"argv": ["env", "bash", "-c", "touch x"]}),
            "`bash` is a shell",
        ),
        (
            json!({"argv": ["python3", "-c", "open('x', 'w')"]}),
            "from files alone",
        ),
        (
            json!({"argv": ["rm", "x"]}),
            "`rm` removes files for good, which is not allowed here",
        ),
        // What is judged and what runs cannot differ.
        (
            json!({"command": "touch x", "argv": ["touch", "x"]}),
            "argv",
        ),
        (json!({"command": "touch x; true"}), "argv"),
        (json!({"argv": []}), "argv"),
    ] {
        let mut world = World::new([exec(arguments.clone()), text(&["No."])]).await;
        // If nothing is asked about, what must not run is denied all the same.
        world.flags.yolo = Some(true);
        let hub = world.start();
        world.messenger.say("ann", "Do it.");
        world.messenger.until("ann", 1).await;
        hub.stop().await;
        assert_eq!(world.messenger.texts("ann"), ["No."], "{arguments}");
        assert!(result(&world).contains(reason), "{}", result(&world));
        assert!(!in_chat(&world, "x").exists(), "{arguments}");
    }
}

async fn an_owner_may_allow_a_shell() {
    let line = json!({"command": "touch a; touch b"});
    let mut world = World::new([exec(line), text(&["Done."])]).await;
    world.flags.yolo = Some(true);
    let config = world.home.path().join("config.toml");
    std::fs::write(config, "exec_shell = true\n").unwrap();
    let hub = world.start();
    world.messenger.say("ann", "Do it.");
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    assert!(in_chat(&world, "b").exists(), "{}", result(&world));
}

//! Typed input on the full screen, and its effects: commands, files, pastes, and messages that wait.

use crate::harness::{TestEnv, says, serve};
use crate::person::{CTRL_C, DOWN, ENTER, ESC, F2, SHIFT_TAB, TAB, UP};
use crate::screen::{after_two_turns, leave, open};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use std::time::Duration;

/// Pasted in the way of terminals that say what is pasted.
fn pasted(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}

/// A server whose first answer waits at the gate.
async fn held(gate: &Gate, later: &[&str]) -> Server {
    let first = openai::streamed(&says("First.")).before(Step::Gate(gate.clone()));
    let later = later.iter().map(|it| openai::streamed(&says(it)));
    let all: Vec<_> = std::iter::once(first).chain(later).collect();
    Server::start(Script::from(all)).await
}

fn asked(server: &Server, request: usize) -> String {
    server.requests()[request].json()["messages"].to_string()
}

#[tokio::test]
async fn enter_completes_the_beginning_of_a_command_and_does_what_takes_nothing_more() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/cos").await;
    person.shows("▸ /cost").await;
    person.press(ENTER).await;
    person.shows("no question was asked yet").await;
    person.press("/rem").await;
    person.shows("▸ /remember").await;
    person.press(ENTER).await;
    person.shows("│ /remember ").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn every_command_is_reached_by_arrows() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/").await;
    person.shows("▸ /help").await;
    person.press(UP).await;
    person.shows("▸ /quit").await;
    person.press(DOWN).await;
    person.shows("▸ /help").await;
    person.press(CTRL_C).await;
    person.press("/help\r").await;
    person.shows("/terminal").await;
    person.press("/remember\r").await;
    person.shows("`/remember` takes a text").await;
    leave(person).await;
}

#[tokio::test]
async fn a_fact_that_is_to_be_remembered_is_kept_for_later_sessions() {
    let server = serve(vec![says("Pears.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/remember I like pears\r").await;
    person.shows("remembered as").await;
    leave(person).await;
    let mut person = open(&env, &server, &[]).await;
    person.press("what do I like?\r").await;
    person.shows("Pears.").await;
    assert!(
        asked(&server, 0).contains("I like pears"),
        "{}",
        asked(&server, 0)
    );
    leave(person).await;
}

#[tokio::test]
async fn a_file_is_found_by_some_of_its_letters_and_goes_along() {
    let server = serve(vec![says("Seen.")]).await;
    let env = TestEnv::new();
    env.write("src/parser.rs", "fn parse_it() {}");
    env.write("notes.txt", "none of it");
    let mut person = open(&env, &server, &[]).await;
    person.press("explain @srprs").await;
    person.shows("▸ @src/parser.rs").await;
    person.press(ENTER).await;
    person.shows("│ explain @src/parser.rs").await;
    person.press(ENTER).await;
    person.shows("Seen.").await;
    let sent = asked(&server, 0);
    assert!(sent.contains("fn parse_it()"), "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn a_long_paste_is_a_chip_that_says_its_key_and_is_sent_whole() {
    let server = serve(vec![says("Seen.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    let lines: String = (1..=200).map(|it| format!("row {it}\n")).collect();
    person.press(&format!("see {}", pasted(&lines))).await;
    person.shows("see [paste 1: 200 lines").await;
    person
        .shows("Alt-V puts the text in place of its chip")
        .await;
    person.press(ENTER).await;
    person.shows("Seen.").await;
    let sent = asked(&server, 0);
    assert!(
        sent.contains("row 1\\n") && sent.contains("row 200"),
        "{sent}"
    );
    person.press(&pasted(&lines)).await;
    person.shows("│ [paste 1: 200 lines").await;
    person.press("\x1bv").await;
    person.shows("│ row 200 ").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn each_message_that_waits_is_edited_before_it_is_taken_and_their_order_stays() {
    let gate = Gate::new();
    let server = held(&gate, &["A.", "B.", "C."]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("Thinking").await;
    gate.reached().await;
    for message in ["alpha", "beta", "gamma"] {
        person.press(message).await;
        person.press(TAB).await;
        person.shows(&format!("queued: {message}")).await;
    }
    person.shows("Up edits it").await;
    for message in ["gamma", "beta", "alpha"] {
        person.press(UP).await;
        person.shows(&format!("│ {message} ")).await;
    }
    person.press(DOWN).await;
    person.shows("│ beta ").await;
    person.press("-mended\t").await;
    person.shows("queued: beta-mended").await;
    person.shows("queued: gamma").await;
    gate.open();
    person.shows("C.").await;
    let last = asked(&server, 3);
    let places = ["alpha", "beta-mended", "gamma"].map(|it| last.find(it).unwrap());
    assert!(places.is_sorted(), "{last}");
    assert_eq!(last.matches("beta").count(), 1, "{last}");
    leave(person).await;
}

#[tokio::test]
async fn a_message_that_steers_is_changed_until_the_agent_reads_it() {
    let gate = Gate::new();
    let server = held(&gate, &["Second."]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("Thinking").await;
    gate.reached().await;
    person.press("left\r").await;
    person.shows("steers: left").await;
    person
        .shows("Up edits it, until the agent reads it before its next step")
        .await;
    person.press(UP).await;
    person.shows("│ left ").await;
    person.shows_no_more("steers: left").await;
    person.press(" and right\r").await;
    person.shows("steers: left and right").await;
    gate.open();
    person.shows("» left and right").await;
    person.shows_no_more("Up edits it").await;
    person.shows("Second.").await;
    let sent = asked(&server, 1);
    assert_eq!(sent.matches("left").count(), 1, "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn a_command_for_the_shell_is_seen_to_wait_until_the_turn_is_over() {
    let gate = Gate::new();
    let server = held(&gate, &[]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("Thinking").await;
    gate.reached().await;
    person.press("!echo later$((40+2))\r").await;
    person.shows("after this turn: $ echo later").await;
    gate.open();
    person.shows("│ later42").await;
    person.shows_no_more("after this turn:").await;
    leave(person).await;
}

#[tokio::test]
async fn without_the_mouse_the_wheel_of_the_terminal_scrolls_and_recalls_nothing() {
    let lines: Vec<String> = (0..200).map(|at| format!("line {at} of it\n\n")).collect();
    let server = serve(vec![says(&lines.concat())]).await;
    let env = TestEnv::new().var("RONDO_TUI_MOUSE", "off");
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("1 step ·").await;
    // Terminals send arrows for the wheel then.
    person.press(&UP.repeat(3)).await;
    person.shows("↓ more below").await;
    assert!(!person.screen().contains("│ go"), "{}", person.screen());
    person.press(&DOWN.repeat(4)).await;
    person.shows_no_more("↓ more below").await;
    leave(person).await;
}

#[tokio::test]
async fn the_wheel_scrolls_and_the_end_is_followed_again_below_it() {
    let lines: Vec<String> = (0..200).map(|at| format!("line {at} of it\n\n")).collect();
    let server = serve(vec![says(&lines.concat())]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("1 step ·").await;
    person.press("\x1b[<64;10;10M").await;
    person.shows("↓ more below").await;
    person.shows_no_more("1 step ·").await;
    // Notches of the wheel are apart.
    while !person.is_silent_for(Duration::from_millis(200)).await {}
    person.press("\x1b[<65;10;10M").await;
    person.shows("1 step ·").await;
    person.shows_no_more("↓ more below").await;
    leave(person).await;
}

#[tokio::test]
async fn what_was_stopped_is_not_said_again() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&crate::harness::calls(
            "list_files",
            &serde_json::json!({"path": "."}),
        )),
        openai::streamed(&says("Never.")).before(Step::Gate(gate.clone())),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("look\r").await;
    gate.reached().await;
    person.shows("✓ list_files").await;
    person.press(ESC).await;
    person.shows("! stopped").await;
    person.shows("2 steps ·").await;
    let screen = person.screen();
    assert!(!screen.contains("What the tools returned"), "{screen}");
    leave(person).await;
}

#[tokio::test]
async fn what_steers_is_read_before_the_next_step_and_the_status_counts_down() {
    let gate = Gate::new();
    let look = crate::harness::calls("list_files", &serde_json::json!({"path": "."}));
    let server = Server::start(Script::from(vec![
        openai::streamed(&look).before(Step::Gate(gate.clone())),
        openai::streamed(&says("Turned left.")),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &["--max-steps", "7"]).await;
    person.press("go\r").await;
    person.shows("Thinking").await;
    gate.reached().await;
    person.shows("step 1/7 ·").await;
    person.press("left\r").await;
    person.shows("steers: left").await;
    gate.open();
    person.shows("» left").await;
    person.shows("Turned left.").await;
    person.shows_no_more("steers: left").await;
    let sent = asked(&server, 1);
    assert!(sent.contains("left"), "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn what_was_typed_is_searched_and_typed_again() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("about pears\r").await;
    person.shows("One.").await;
    person.press("about nuts\r").await;
    person.shows("Two.").await;
    person.press("\x12PEAR").await;
    person.shows("▸ about pears").await;
    person.press(ENTER).await;
    person.shows("│ about pears ").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn two_keys_change_what_runs_unasked_and_what_is_typed_and_a_command_who_answers() {
    let server = serve(vec![says("Changed.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press(SHIFT_TAB).await;
    person.shows("─ agent · auto, in the sandbox ").await;
    person.press(F2).await;
    person.shows("─ shell · auto, in the sandbox ").await;
    person.press("echo typed$((40+2))\r").await;
    person.shows("│ typed42").await;
    person.press(F2).await;
    person.press(F2).await;
    person.shows("─ agent · auto, in the sandbox ").await;
    person.press("/model openai/next\r").await;
    person.shows(" openai/next · default").await;
    person.press("who?\r").await;
    person.shows("Changed.").await;
    assert_eq!(server.requests()[0].json()["model"], "next");
    leave(person).await;
}

#[tokio::test]
async fn esc_twice_on_an_empty_input_goes_back_a_turn() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = TestEnv::new();
    let mut person = after_two_turns(&env, &server).await;
    person.press(ESC).await;
    person
        .shows("Esc again goes back before the last turn")
        .await;
    person.press(ESC).await;
    person.shows("│ second ").await;
    person.shows_no_more("Two.").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

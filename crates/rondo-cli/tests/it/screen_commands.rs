//! Slash commands on the full screen.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, ENTER};
use crate::repl::{said, start};
use crate::screen::{after_two_turns, leave, open};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_command_that_shows_a_setting_says_the_same_at_both_prompts() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    env.write("lines", "/nothing\n");
    let mut screen = open(&env, &server, &[]).await;
    let mut line = start(&env, &server, &[]);
    for (command, reply) in [
        ("/model", "model openai/test; `/model NAME` changes it"),
        ("/profile", "profile default: a question includes the"),
        ("/memory", "memory is on: a question includes the"),
        ("/memory maybe", "`/memory` takes `on` or `off`"),
        ("/approve", "only calls that change nothing run without"),
        ("/approve exec(git push *)", "  exec(git push *)"),
        ("/cost", "no question was asked yet"),
        ("/skill", "no skills: none is in `skills` of"),
        ("/include nosuch", "failed to read `nosuch`"),
        ("/mode nosuch", "the modes are: agent, shell, python"),
        ("/model openai/next", "from the next turn on: openai/next"),
        ("/costs", "did you mean `/cost`? `/help` shows all"),
        ("/fork 3", "`/fork` copies the session as it is now"),
        ("/fork", "there is no message yet"),
        ("/stop", "nothing runs"),
        ("/stop x", "`/stop` takes the number of a job"),
        ("/run", "`/run` takes a file"),
        ("/run nofile", "failed to read `nofile`"),
        ("/run lines", "there is no `/nothing`"),
        ("/explain", "no command and no cell has failed here"),
        ("/copy", "there is nothing to copy"),
        ("/undo", "no question was asked yet"),
        ("/compact", "there is nothing to summarize yet"),
        ("/resume", "there is no turn to resume"),
        ("/resume nosuch", "there is no session"),
    ] {
        screen.press(command).await;
        screen.press(ENTER).await;
        screen.shows(reply).await;
        line.prompt("agent").await;
        line.enter(command).await;
        line.sees(reply).await;
    }
    line.prompt("agent").await;
    leave(line).await;
    leave(screen).await;
}

#[tokio::test]
async fn cells_of_an_earlier_interpreter_are_run_again_on_the_screen_too() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut line = start(&env, &server, &["--mode", "python"]);
    for code in ["x = 41", "1 / 0"] {
        line.prompt("python").await;
        line.enter(code).await;
    }
    line.prompt("python").await;
    crate::repl::leave(line).await;
    let mut screen = open(&env, &server, &["-c"]).await;
    for (command, reply) in [
        ("/restore x", "`x` is not the number of a cell"),
        ("/restore 7", "the session has no cell 7 that ran"),
        ("/restore", "2 of 2 ran again"),
        ("/restore", "every cell of the session is in this"),
    ] {
        screen.press(command).await;
        screen.press(ENTER).await;
        screen.shows(reply).await;
    }
    screen
        .shows("raised ZeroDivisionError: division by zero")
        .await;
    leave(screen).await;
}

#[tokio::test]
async fn the_steps_and_the_cost_of_the_last_turn_are_shown_on_the_screen() {
    let server = serve(vec![
        calls("list_files", &json!({})),
        says("Nothing.").usage(30, 12),
    ])
    .await;
    let env = TestEnv::new().var("PAGER", "cat; echo; echo paged; read x < /dev/tty");
    let mut person = open(&env, &server, &[]).await;
    person.press("what is here?\r").await;
    person.shows("2 steps ·").await;
    person.press("/steps\r").await;
    person.shows("30 tokens in, 12 out").await;
    person.press("/cost\r").await;
    person
        .shows("1 turn, 40 tokens in, 17 out, the price is not known")
        .await;
    assert!(!person.screen().contains("USD"), "{}", person.screen());
    person.press("/trace\r").await;
    person.shows("paged").await;
    let paged = person.screen();
    assert!(paged.contains("step 2") && paged.contains("• list_files {}"));
    person.press(ENTER).await;
    person.shows("the price is not known").await;
    leave(person).await;
}

#[tokio::test]
async fn a_mode_is_chosen_by_its_name() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/mode python\r").await;
    person.shows("─ python").await;
    person.press("/mode shell\r").await;
    person.shows("─ shell").await;
    person.press("/mode agent\r").await;
    person.shows("─ agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_pattern_of_approve_lets_its_calls_run() {
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made"})),
        says("Made."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/approve exec(touch *)\r").await;
    person.shows("run without asking:").await;
    person.press("make it\r").await;
    person.shows("Made.").await;
    assert!(env.project().join("made").exists());
    leave(person).await;
}

#[tokio::test]
async fn memory_is_switched_off_and_on_for_the_next_questions() {
    let server = serve(["one", "two", "three"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/memory off\r").await;
    person.shows("memory is off").await;
    person.press("first\r").await;
    person.shows("1 step ·").await;
    person.press("second\r").await;
    person.shows_times("1 step ·", 2).await;
    person.press("/memory on\r").await;
    person.shows("memory is on").await;
    person.press("third\r").await;
    person.shows_times("1 step ·", 3).await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["second"]);
    assert_eq!(said(&server, 2), ["second", "third"]);
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

#[tokio::test]
async fn a_skill_and_a_file_with_a_blank_in_its_name_go_with_the_next_question() {
    let server = serve(vec![says("Hello.")]).await;
    let env = TestEnv::new();
    let folder = env.project().join(".rondo/skills/greet");
    std::fs::create_dir_all(&folder).unwrap();
    let skill = "---\nname: greet\ndescription: Greets.\n---\nSay good morning.\n";
    std::fs::write(folder.join("SKILL.md"), skill).unwrap();
    env.write("my notes.txt", "pears are ripe");
    let mut person = open(&env, &server, &[]).await;
    person.press("/skill greet\r").await;
    person
        .shows("the skill `greet` will be attached to the next question")
        .await;
    person.shows("skill greet · 1 line goes along").await;
    person.press("/include my notes.txt\r").await;
    person
        .shows("`my notes.txt` will be attached to the next question")
        .await;
    person.shows("[file 1: my notes.txt]").await;
    person.press("what now?\r").await;
    person.shows("› my notes.txt what now?").await;
    person.shows("Hello.").await;
    leave(person).await;
    let asked = server.requests()[0].json()["messages"].to_string();
    for part in [
        "Do as the skill `greet` says:",
        "Say good morning.",
        "pears are ripe",
        "what now?",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[tokio::test]
async fn a_job_of_the_shell_is_stopped_by_its_number() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open(&env, &server, &[]).await;
    person.press("!sleep 600 &\r").await;
    person.shows("$ sleep 600 &").await;
    person.press("/ps\r").await;
    person.shows("Running").await;
    person.press("/stop 1\r").await;
    person.shows("$ kill %1").await;
    person.press("!wait; echo over\r").await;
    person.shows("│ over").await;
    leave(person).await;
}

#[tokio::test]
async fn a_cell_that_raises_shows_its_traceback_and_values_are_inspected() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("/last_error\r").await;
    person.shows("no cell raised an exception").await;
    person.press(">x = 41\r").await;
    // Lines that come at once are a paste.
    while !person.is_silent_for(Duration::from_millis(100)).await {}
    person.press(">1 / 0\r").await;
    person.shows("Traceback (most recent call last):").await;
    person.shows("ZeroDivisionError: division by zero").await;
    person.press("/inspect x\r").await;
    person.shows("type: builtins.int").await;
    person.press("/clear\r").await;
    person.shows_no_more("ZeroDivisionError").await;
    person.press("/last_error\r").await;
    person.shows("ZeroDivisionError: division by zero").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn a_fork_and_a_turn_that_is_undone_are_noted_below_the_conversation() {
    let server = serve(["one", "two"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = after_two_turns(&env, &server).await;
    person.press("/fork\r").await;
    person.shows("which stays as it is").await;
    person.shows_times("1 step ·", 2).await;
    let screen = person.screen();
    assert!(
        screen.find("which stays as it is") > screen.rfind("1 step ·"),
        "{screen}"
    );
    person.press("/resume latest\r").await;
    person.shows("the next question continues it").await;
    person.press("/undo\r").await;
    person.shows("undid the last turn").await;
    person.shows_times("1 step ·", 1).await;
    let screen = person.screen();
    assert!(
        screen.find("undid the last turn") > screen.rfind("1 step ·"),
        "{screen}"
    );
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn calls_that_were_allowed_for_the_session_are_listed_on_the_screen() {
    let made = json!({"path": "made.txt", "content": "x"});
    let server = serve(vec![calls("write_file", &made), says("Made.")]).await;
    let env = TestEnv::new();
    let mut line = start(&env, &server, &[]);
    line.prompt("agent").await;
    line.enter("make it").await;
    line.types_behind("no, because…): ").await;
    line.press("always\r").await;
    line.sees("Made.").await;
    line.prompt("agent").await;
    leave(line).await;
    let mut screen = open(&env, &server, &["-c"]).await;
    screen.press("/approve\r").await;
    screen.shows("calls that run without asking:").await;
    screen.shows("  write_file").await;
    leave(screen).await;
}

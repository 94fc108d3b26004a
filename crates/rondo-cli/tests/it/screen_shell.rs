//! The shell beside the conversation, as a person at a terminal meets it.

use crate::harness::{TestEnv, says, serve};
use crate::person::{CTRL_C, ENTER, ESC, F2, Person};
use crate::screen::{leave, open};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use std::time::Duration;

/// Ctrl-], as terminals without kitty's keys send it.
pub(crate) const PANE: &str = "\x1d";
const ZOOM: &str = "\x1bz";
const CLOSE: &str = "\x1bw";
const HAND_OVER: &str = "\x1bg";
/// F2, as terminals send it.
const OTHER: &str = "\x1bOQ";

async fn open_shell(env: &TestEnv, server: &Server) -> Person {
    let mut person = open(env, server, &[]).await;
    person.press(PANE).await;
    person.shows("Ctrl-] leaves · Alt-Z zooms").await;
    person
}

#[tokio::test]
async fn a_command_is_typed_in_the_pane_and_its_state_stays() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person.press("NAME=kept; cd /tmp\r").await;
    person.shows("shell · /tmp").await;
    person.press("echo it-is-$NAME; false\r").await;
    person.shows("it-is-kept").await;
    person.shows("exit 1").await;
    person.press("exit 3\r").await;
    person.shows("[the shell ended: the next command").await;
    person.press("echo \"<$NAME>\"; false\r").await;
    person.shows("<>").await;
    person.shows("exit 1").await;
    // The conversation does not say it again.
    assert!(!person.screen().contains("✗"), "{}", person.screen());
    person.press(PANE).await;
    person.shows("Ctrl-] enters").await;
    leave(person).await;
}

#[tokio::test]
async fn a_program_reads_keys_and_one_chord_leaves_it_running() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person
        .press("read -p 'say: ' word; echo \"heard <$word>\"\r")
        .await;
    person.shows("say: ").await;
    person.shows("all other keys are the program's").await;
    // Keys of the conversation are the program's too.
    person.press(PANE).await;
    person.shows("Ctrl-] enters").await;
    person.press("draft").await;
    person.shows("│ draft").await;
    person.press(PANE).await;
    person.shows("Ctrl-] leaves").await;
    person.press("y?\r").await;
    person.shows("heard <y?>").await;
    person.press("sleep 600\r").await;
    person.shows("a command runs").await;
    person.press(CTRL_C).await;
    person.shows("exit 130").await;
    person.press(PANE).await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn a_message_is_seen_to_wait_until_the_command_in_the_pane_is_over() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person.press("read -p 'say: ' word\r").await;
    person.shows("say: ").await;
    person.press(PANE).await;
    person.shows("Ctrl-] enters").await;
    person.press("2+2?\r").await;
    person.shows("⧗ after what runs: 2+2?").await;
    person.press(PANE).await;
    person.shows("Ctrl-] leaves").await;
    person.press("x\r").await;
    person.shows("Four.").await;
    person.shows_no_more("after what runs").await;
    person.press(PANE).await;
    leave(person).await;
}

#[tokio::test]
async fn the_last_command_is_previewed_and_goes_along_with_the_next_message() {
    let server = serve(vec![says("It is missing.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person.press("echo @secret.txt; ls not-there\r").await;
    person.shows("exit 2").await;
    person.press(HAND_OVER).await;
    person.shows("for the agent").await;
    person.shows("exit_code=\"2\"").await;
    assert!(server.requests().is_empty());
    person.press(ESC).await;
    person.shows_no_more("for the agent").await;
    person.press(HAND_OVER).await;
    person.shows("for the agent").await;
    person.press(ENTER).await;
    person.shows("along · Backspace").await;
    person.press("why?\r").await;
    person.shows("It is missing.").await;
    let body = server.requests()[0].json().to_string();
    for part in [
        "exit_code=\\\"2\\\"",
        "$ echo @secret.txt; ls not-there",
        "why?",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    assert!(!person.screen().contains("along ·"), "{}", person.screen());
    // On the screen it is a card, also when the session is opened again.
    for _ in 0..2 {
        person.shows("› why?").await;
        person.shows("+ $ echo @secret.txt; ls not-there").await;
        let screen = person.screen().replace('\n', "");
        assert!(!screen.contains("<shell"), "{screen}");
        leave(person).await;
        person = open(&env, &server, &["-c"]).await;
        person.shows("It is missing.").await;
    }
    person.press("\x1b[1;3A\x1b[1;3A").await;
    person.shows("Alt-E in full").await;
    person.press("\x1be").await;
    person.shows("│ ls: cannot access 'not-there'").await;
    leave(person).await;
}

#[tokio::test]
async fn the_shell_and_the_live_python_session_go_along_to_the_line_prompt_and_back() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open(&env, &server, &[]).await;
    person
        .press("!mkdir -p sub && cd sub && made=shell-$((40+2))\r")
        .await;
    person.shows("✓ $ mkdir").await;
    person.press(F2).await;
    person.press(F2).await;
    person.press("there = 6 * 7\r").await;
    person.shows("✓ >>> there").await;
    person.press(F2).await;
    person.press("/screen\r").await;
    person.prompt("agent").await;
    person.enter("!!echo $made in ${PWD##*/}").await;
    person.sees("shell-42 in sub").await;
    person.prompt("agent").await;
    person.press(F2).await;
    person.prompt("shell").await;
    person.press(F2).await;
    person.enter("print('python', there + 1)").await;
    person.sees("python 43").await;
    person.prompt("python").await;
    person.enter("there = there + 100").await;
    person.prompt("python").await;
    person.enter("print('python', there)").await;
    person.sees("python 142").await;
    person.prompt("python").await;
    person.press(F2).await;
    person.prompt("agent").await;
    person.enter("!!made=again-$made").await;
    person.prompt("agent").await;
    person.press("/screen\r").await;
    person.is_alternate().await;
    person.shows("? help").await;
    person.press("!!echo $made in ${PWD##*/}\r").await;
    person.shows("│ again-shell-42 in sub").await;
    person.press(F2).await;
    person.press(F2).await;
    person.press("print('python', there)\r").await;
    person.shows("│ python 142").await;
    person.press(F2).await;
    leave(person).await;
}

#[tokio::test]
async fn a_command_that_runs_has_to_end_before_the_line_prompt_goes_on() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open(&env, &server, &[]).await;
    person
        .press("!echo be''gun; read line; echo got-$line\r")
        .await;
    person.shows("│ begun").await;
    person.shows("Esc stops what runs").await;
    person.press("/screen\r").await;
    person
        .shows("a command or a cell is still running: wait for it to end")
        .await;
    person.press(ESC).await;
    person.shows("✗ $ echo").await;
    leave(person).await;
}

#[tokio::test]
async fn a_program_with_the_whole_screen_is_shown_and_nothing_of_it_is_handed_over() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person
        .press("printf '\\e[?1049h\\e[2J\\e[Hfull%s' -page; read x; printf '\\e[?1049l'\r")
        .await;
    person.shows("full-page").await;
    person.press(ENTER).await;
    person.shows_no_more("full-page").await;
    person.shows("Alt-G hands over").await;
    person.press(HAND_OVER).await;
    person.shows("the last program had the whole screen").await;
    person.press(PANE).await;
    leave(person).await;
}

#[tokio::test]
async fn the_pane_is_zoomed_closed_and_follows_the_size_of_the_terminal() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    for (rows, columns, keys, size) in [
        (24, 80, "", "7 78"),
        (24, 80, ZOOM, "17 78"),
        (40, 160, ZOOM, "33 78"),
    ] {
        person.resize(rows, columns);
        person.press(keys).await;
        let wait = format!(
            "until [ \"$(stty size)\" = '{size}' ]; do read -t 0.05; done; echo has=\"$(stty size)\"\r"
        );
        person.press(&wait).await;
        person.shows(&format!("has={size}")).await;
        // Until the command is over, keys are the program's.
        person.shows("zooms").await;
    }
    person.press(CLOSE).await;
    person.shows_no_more("Ctrl-] leaves").await;
    person.press("2+2?\r").await;
    person.shows("Four.").await;
    leave(person).await;
}

#[tokio::test]
async fn while_the_agent_works_its_calls_have_the_shell_and_keys_are_refused() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("Done.")).before(Step::Gate(gate.clone())),
    ]))
    .await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    gate.reached().await;
    person.press(PANE).await;
    person.shows("the agent works").await;
    person.press("echo typed\r").await;
    person.shows("the agent's calls have the shell").await;
    // Once the pane is left and entered, all that was typed was taken.
    person.press(PANE).await;
    person.shows("Ctrl-] enters").await;
    person.press(PANE).await;
    person.shows("Ctrl-] leaves").await;
    assert!(
        !person.screen().contains("echo typed"),
        "{}",
        person.screen()
    );
    gate.open();
    // The answer is shown before the turn is over.
    person.shows("1 step ·").await;
    person.press("echo now-$((1+1))\r").await;
    person.shows("now-2").await;
    person.press(PANE).await;
    leave(person).await;
}

#[tokio::test]
async fn nothing_that_a_program_writes_leaves_the_pane() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let hostile = [
        "\x1b]52;c;c3RvbGVu\x07",
        "\x1b]0;forged title\x07",
        "\x1b]9;forged notification\x07",
        // The marks of a prompt, which only the shell's own hooks can set.
        "\x1b]133;D;0\x07\x1b]133;A\x07\x1b]133;C\x07",
        "\x1b[6n\x1b[c\x1b]11;?\x07",
        "\x1b[999;999H\x1b[1;1H\x1b[?7l",
        "漢字 e\u{301} \u{202e}reversed",
        "\x1b]never ended",
    ];
    std::fs::write(env.project().join("hostile"), hostile.concat()).unwrap();
    let mut person = open_shell(&env, &server).await;
    person.press("cat hostile; sh -c 'exit 7'\r").await;
    person.shows("exit 7").await;
    person.shows("漢字").await;
    assert_eq!(person.clipboard(), "");
    assert_eq!(person.told(), [] as [String; 0]);
    assert!(!person.screen().contains('\u{202e}'));
    // The replies were the program's, and are in no prompt.
    assert!(!person.screen().contains("$ ["), "{}", person.screen());
    person.press("seq 200000; echo over\r").await;
    person.shows("over").await;
    person.press(PANE).await;
    person.press("2+2?\r").await;
    person.shows("Four.").await;
    leave(person).await;
}

#[tokio::test]
async fn the_live_session_is_one_key_away_in_the_pane_reads_keys_and_its_last_cell_is_handed_over()
{
    let server = serve(vec![says("Forty-two.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person.press(OTHER).await;
    person.shows("─ python").await;
    person.press("x = 6\r").await;
    // The interpreter starts first, and reads what is typed meanwhile.
    person.shows("a cell runs").await;
    person.shows("Alt-G hands over · F2 shell").await;
    for line in ["def f(y):\r", "    return x * y\r"] {
        person.press(line).await;
        // Lines that come at once are a paste.
        person.is_silent_for(Duration::from_millis(200)).await;
    }
    // The next cell is asked for before the one that ends here reads keys.
    person.press("\rprint(input('say: '))\r").await;
    person.shows("say: ").await;
    person.shows("a cell runs").await;
    person.press("typed\r").await;
    person.shows_times("typed", 2).await;
    person.shows("Alt-G hands over").await;
    person.press("f(7)\r").await;
    person.shows("│42").await;
    person.press("f(g)\r").await;
    person.shows("Traceback (most recent call last)").await;
    person.shows("NameError").await;
    person.shows("python · raised").await;
    person.press("f(7)\r").await;
    person.shows_times("│42", 2).await;
    person.press(HAND_OVER).await;
    person.shows("for the agent").await;
    assert!(server.requests().is_empty());
    person.press(ENTER).await;
    person.shows("along · Backspace").await;
    person.press("what is it?\r").await;
    person.shows("Forty-two.").await;
    let body = server.requests()[0].json().to_string();
    for part in [">>> f(7)\\n42\\n</python>", "what is it?"] {
        assert!(body.contains(part), "{part} in {body}");
    }
    // The shell is as it was.
    person.press(PANE).await;
    person.press(OTHER).await;
    person.shows("─ shell").await;
    person.press(PANE).await;
    leave(person).await;
}

#[tokio::test]
async fn a_cell_that_runs_in_the_pane_is_interrupted_and_keys_are_refused_while_the_agent_works() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("Done.")).before(Step::Gate(gate.clone())),
    ]))
    .await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open_shell(&env, &server).await;
    person.press(OTHER).await;
    person.shows("─ python").await;
    person
        .press("import time; print('sleeps'); time.sleep(600)\r")
        .await;
    person.shows("a cell runs").await;
    person.shows_times("sleeps", 2).await;
    person.press(CTRL_C).await;
    person.shows("KeyboardInterrupt").await;
    person.shows("python · raised").await;
    person.press(PANE).await;
    person.shows("Ctrl-] enters").await;
    person.press("go\r").await;
    gate.reached().await;
    person.press(PANE).await;
    person.shows("the agent works").await;
    person.press("1 + 1\r").await;
    person.shows("the agent's calls have").await;
    gate.open();
    person.shows("Done.").await;
    assert!(!person.screen().contains("│2"), "{}", person.screen());
    person.press(PANE).await;
    leave(person).await;
}

#[tokio::test]
async fn the_state_of_the_terminal_is_shown_before_it_goes_along_with_a_message() {
    let server = serve(vec![says("You are on topic.")]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    env.write(".git/HEAD", "ref: refs/heads/topic\n");
    env.write(".git/MERGE_HEAD", "0\n");
    let mut person = open_shell(&env, &server).await;
    person.press("echo on-the-pane; false\r").await;
    person.shows("exit 1").await;
    person.press(PANE).await;
    person.press("/terminal\r").await;
    person.shows("for the agent").await;
    person.shows("Git branch: topic").await;
    assert!(server.requests().is_empty());
    person.press(ENTER).await;
    person.shows("along · Backspace").await;
    person.press("where am I?\r").await;
    person.shows("You are on topic.").await;
    let body = server.requests()[0].json().to_string();
    for part in [
        "- Current directory: /",
        "in the middle of a merge",
        "$ echo on-the-pane; false",
        "<terminal>",
        "where am I?",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    leave(person).await;
}

#[tokio::test]
async fn a_program_of_the_conversation_that_takes_the_whole_screen_gets_the_keys_and_leaves_no_debris()
 {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open(&env, &server, &[]).await;
    let program =
        "printf '\\e[?1049h\\e[2J\\e[Hfull%s' -page; read x; printf '\\e[?1049l'; test $x = ok";
    person.press(&format!("!{program}\r")).await;
    person.shows("full-page").await;
    person.shows("all other keys are the program's").await;
    person.press("ok\r").await;
    person.shows("✓ $").await;
    person.shows_no_more("Ctrl-] leaves").await;
    assert!(
        !person.screen().contains("full-page"),
        "{}",
        person.screen()
    );
    person.press("typed").await;
    person.shows("│ typed ").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

//! The terminal, after what had it was killed.

use crate::harness::{TestEnv, says, serve};
use crate::person::{CTRL_C, CTRL_D, Person};
use crate::screen::{leave, open};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Sets the terminal as a full-screen editor does, and dies without putting anything back.
const KILLED_EDITOR: &str = "stty raw -echo; printf '\\033[?1049h\\033[?1003h\\033[?1h\\033[?25l\\033[31m'; kill -KILL $$; #";

#[tokio::test]
async fn an_editor_that_was_killed_leaves_the_terminal_as_the_screen_had_it() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("EDITOR", KILLED_EDITOR);
    let url = server.url("/v1");
    let mut person = Person::start(&env, &["-m", "openai/test", "--base-url", &url]);
    let before = person.settings();
    person.shows("? help").await;
    let open = person.settings();
    person.press("a draft\x07").await;
    person.shows("editor").await;
    person.shows("│ a draft").await;
    assert_eq!(person.settings(), open);
    person.press(CTRL_C).await;
    person.shows_no_more("│ a draft").await;
    person.press("2+2?\r").await;
    person.shows("Four.").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    assert_eq!(person.settings(), before);
}

#[tokio::test]
async fn a_shell_that_was_killed_in_the_pane_is_said_and_the_next_command_starts_another() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = open(&env, &server, &[]).await;
    person.press("\x1d").await;
    person.shows("Ctrl-] leaves").await;
    person
        .press("stty raw -echo; printf '\\033[?1049h\\033[?1000h'; kill -KILL $$\r")
        .await;
    person.shows("[the shell ended: the next command").await;
    person.press("echo it-$((1 + 1))-lives; false\r").await;
    person.shows("it-2-lives").await;
    person.press("\x1d").await;
    leave(person).await;
}

#[tokio::test]
async fn a_signal_to_end_restores_the_terminal_while_a_program_runs_in_the_pane() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let url = server.url("/v1");
    let mut person = Person::start(&env, &["-m", "openai/test", "--base-url", &url]);
    let before = person.settings();
    person.shows("? help").await;
    person.press("\x1d").await;
    person.shows("Ctrl-] leaves").await;
    person.press("printf '\\033[?1049h'; read x\r").await;
    person.shows("a command runs").await;
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    assert_eq!(person.code().await, Some(143));
    assert_eq!(person.settings(), before);
}

#[tokio::test]
async fn a_signal_to_stop_gives_the_terminal_back_until_the_one_to_go_on() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::TSTP).unwrap();
    person.is_not_alternate().await;
    let until_stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    let waiting = tokio::task::spawn_blocking(move || waitid(WaitId::Pid(process), until_stopped));
    assert!(waiting.await.unwrap().unwrap().unwrap().stopped());
    kill_process(process, Signal::CONT).unwrap();
    person.is_alternate().await;
    person.press("2+2?\r").await;
    person.shows("Four.").await;
    leave(person).await;
}

#[tokio::test]
async fn no_signal_that_ends_a_process_leaves_the_terminal_as_the_screen_had_it() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    for signal in [Signal::QUIT, Signal::USR1, Signal::ALARM] {
        let mut person = Person::start(&env, &["-m", "openai/test", "--base-url", &url]);
        let before = person.settings();
        person.shows("? help").await;
        let process = Pid::from_raw(person.process()).unwrap();
        kill_process(process, signal).unwrap();
        assert_eq!(person.code().await, Some(143), "{signal:?}");
        assert_eq!(person.settings(), before, "{signal:?}");
    }
}

//! The keys of the screen's input.

use crate::harness::{TestEnv, says, serve};
use crate::person::{CTRL_C, ENTER, ESC};
use crate::screen::{leave, open};
use rondo_testkit::{Gate, Script, Server, Step, openai};
use std::time::Duration;

#[tokio::test]
async fn vi_keys_edit_the_draft_and_the_title_says_the_mode() {
    let server = serve(vec![says("Seen.")]).await;
    let env = TestEnv::new().var("RONDO_EDIT_KEYS", "vi");
    let mut person = open(&env, &server, &[]).await;
    person.shows("agent · ask · insert").await;
    person.press("say the wrong word twice").await;
    person.shows("│ say the wrong word twice").await;
    person.press(ESC).await;
    person.shows("agent · ask · normal").await;
    person.press("bd$0wwcwright").await;
    person.shows("│ say the right word").await;
    person.shows("agent · ask · insert").await;
    person.press(ESC).await;
    person.shows("agent · ask · normal").await;
    person.press("v").await;
    person.shows("agent · ask · visual").await;
    person.press("bd").await;
    person.shows("│ say the  word").await;
    person.press("u").await;
    person.shows("│ say the right word").await;
    person.press(ENTER).await;
    person.shows("Seen.").await;
    person.shows("agent · ask · insert").await;
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("\"say the right word\""), "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn what_was_typed_before_is_recalled_by_k_and_sent_again() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = TestEnv::new().var("RONDO_EDIT_KEYS", "vi");
    let mut person = open(&env, &server, &[]).await;
    person.press("name a pear\r").await;
    person.shows("One.").await;
    person.press(ESC).await;
    person.shows("· normal").await;
    person.press("kciwplum").await;
    person.shows("│ name a plum").await;
    person.press(ENTER).await;
    person.shows("Two.").await;
    let sent = server.requests()[1].json()["messages"].to_string();
    assert!(sent.contains("\"name a plum\""), "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn the_keys_of_emacs_edit_the_draft() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new().var("EDITOR", "printf ' and more' >>");
    let mut person = open(&env, &server, &[]).await;
    person.press("one two three").await;
    // Back two words, the second in capitals, the rest cut and put in twice.
    person.press("\x1bb\x1bb\x1bu\x0b\x19\x19").await;
    person.shows("│ one TWO three three").await;
    person.press("\x01\x1bf\x1b\x7f").await;
    person.shows("│  TWO three three").await;
    person.press("\x18\x05").await;
    person.shows("TWO three three and more").await;
    person.press("\x03").await;
    leave(person).await;
}

/// Flag 1 of the protocol: keys that are not letters come as numbers, with their modifiers.
#[tokio::test]
async fn keys_of_kittys_protocol_are_understood_and_it_is_switched_off_again() {
    let server = serve(vec![says("Seen.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    assert!(person.has_kitty_keys());
    person.press("one\x1b[13;2utwo").await;
    person.shows("│ two").await;
    // Ctrl-A and Ctrl-K.
    person.press("\x1b[97;5u\x1b[107;5u").await;
    person.shows_no_more("│ two").await;
    person.press("three\x1b[13;1u").await;
    person.shows("Seen.").await;
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("\"one\\nthree\""), "{sent}");
    person.press("\x1b[100;5u").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.has_kitty_keys());
}

/// An input method shows its composition at the terminal's own caret.
#[tokio::test]
async fn the_terminals_own_caret_stands_behind_what_was_typed_also_behind_wide_letters() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("日本 e\u{301}").await;
    person.types_behind("│ 日本 e\u{301}").await;
    person.press("\x1b[D\x1b[D").await;
    person.types_behind("│ 日本").await;
    person.press("語").await;
    person.types_behind("│ 日本語").await;
    person.press("\x03").await;
    leave(person).await;
}

/// By itself xterm makes another letter of a key with Alt, and no chord would arrive.
#[tokio::test]
async fn keys_with_alt_are_asked_for_as_escapes_and_as_they_were_afterwards() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    assert!(person.has_saved_meta());
    person.press("\x04").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.has_saved_meta());
}

#[tokio::test]
async fn a_key_whose_bytes_arrive_apart_stops_no_turn_and_types_nothing() {
    let gate = Gate::new();
    let answer = openai::streamed(&says("Four.")).before(Step::Gate(gate.clone()));
    let server = Server::start(Script::from(vec![answer])).await;
    // Nothing is drawn between the pieces.
    let env = TestEnv::new().var("RONDO_TUI_MOTION", "off");
    let mut person = open(&env, &server, &[]).await;
    person.press("2+2?\r").await;
    gate.reached().await;
    person.shows("Thinking").await;
    for (head, tail) in [
        ("\x1b", "[C"),
        ("\x1b[", "D"),
        ("\x1b[1;", "5C"),
        ("\x1b", "OD"),
    ] {
        person.press(head).await;
        person.is_silent_for(Duration::from_millis(250)).await;
        person.press(tail).await;
    }
    // A terminal that answers late, and one that says who it is.
    person
        .press("\x1b[>0;276;0c\x1bP>|XTerm(390)\x1b\\\x1b]10;rgb:ff/ff/ff\x07")
        .await;
    person.press("typed").await;
    person.shows("│ typed ").await;
    gate.open();
    person.shows("Four.").await;
    assert!(!person.screen().contains("stopped"), "{}", person.screen());
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn lines_that_come_at_once_are_a_paste_also_where_the_terminal_does_not_say_so() {
    let server = serve(vec![says("Read.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("one\rtwo\rthree").await;
    person.shows("│ three ").await;
    assert!(server.requests().is_empty());
    // An end of the line that comes right behind it would belong to it.
    person.is_silent_for(Duration::from_millis(200)).await;
    person.press("\r").await;
    person.shows("Read.").await;
    let sent = server.requests()[0].json().to_string();
    assert!(sent.contains("one\\ntwo\\nthree"), "{sent}");
    leave(person).await;
}

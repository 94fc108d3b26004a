//! Actions on the entries of a conversation on the full screen: selecting, showing in full, copying, doing
//! again.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::CTRL_C;
use crate::screen::{leave, open};
use serde_json::json;

const SELECT_UP: &str = "\x1b[1;3A";
const IN_FULL: &str = "\x1be";
const COPY: &str = "\x1bc";
const AGAIN: &str = "\x1br";

#[tokio::test]
async fn a_card_is_selected_shown_in_full_copied_and_its_command_typed_again() {
    let command = "seq 1 30";
    let server = serve(vec![
        calls("exec", &json!({"command": command})),
        says("Done."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &["--yolo"]).await;
    person.press("count\r").await;
    person.shows("2 steps ·").await;
    person.shows("more lines (Alt-E)").await;
    person.press(SELECT_UP).await;
    person.press(SELECT_UP).await;
    person
        .shows("Alt-E in full · Alt-C copies · Alt-R types it again")
        .await;
    person.press(IN_FULL).await;
    person.shows("│ 1\n").await;
    person.shows_no_more("more lines (Alt-E)").await;
    person.press(IN_FULL).await;
    person.shows("more lines (Alt-E)").await;
    person.press(COPY).await;
    person.shows("copied 30 lines").await;
    assert!(
        person.clipboard().starts_with("1\n2\n"),
        "{}",
        person.clipboard()
    );
    person.press(AGAIN).await;
    person.shows("│ !seq 1 30 ").await;
    person.press("\r").await;
    person.shows("✓ $ seq 1 30").await;
    leave(person).await;
}

#[tokio::test]
async fn thoughts_are_folded_until_they_are_wanted() {
    let thought = "First I look.\nThen I think about it for a while.\nAnd then I say it.";
    let server = serve(vec![says("Four.").thinking(thought)]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("2+2?\r").await;
    person.shows("Four.").await;
    person.shows("∴ First I look. …").await;
    assert!(!person.screen().contains("And then I say it."));
    person.press(IN_FULL).await;
    person.shows("And then I say it.").await;
    person.press(IN_FULL).await;
    person.shows_no_more("And then I say it.").await;
    leave(person).await;
}

#[tokio::test]
async fn blocks_of_code_are_copied_by_their_number_without_what_is_around_them() {
    let answer = "Do this:\n\n```sh\nls\n```\n\nor that:\n\n```sh\nls -la\npwd\n```\n";
    let server = serve(vec![says(answer)]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("how?\r").await;
    person.shows("1 step ·").await;
    person.press("/copy 2\r").await;
    person.shows("copied 2 lines").await;
    assert_eq!(person.clipboard().trim_end(), "ls -la\npwd");
    person.press("/copy 3\r").await;
    person.shows("the last answer has 2 blocks of code").await;
    leave(person).await;
}

#[tokio::test]
async fn rows_that_were_dragged_over_are_copied_with_broken_lines_whole() {
    let long = "word ".repeat(40);
    let server = serve(vec![says(&long)]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("1 step ·").await;
    let rows: Vec<String> = person.screen().lines().map(str::to_owned).collect();
    let of_answer = |it: &&String| it.starts_with("  word");
    let count = rows.iter().filter(of_answer).count();
    assert!(count > 1, "{rows:?}");
    let first = rows.iter().position(|it| it.starts_with("  word")).unwrap() + 1;
    let last = first + count - 1;
    person
        .press(&format!(
            "\x1b[<0;5;{first}M\x1b[<32;9;{last}M\x1b[<0;9;{last}m"
        ))
        .await;
    person.shows("Ctrl-C copies the selection").await;
    // Nothing is copied by selecting alone.
    assert_eq!(person.clipboard(), "");
    person.press(CTRL_C).await;
    person.shows("copied 1 line").await;
    assert_eq!(person.clipboard().trim(), long.trim());
    leave(person).await;
}

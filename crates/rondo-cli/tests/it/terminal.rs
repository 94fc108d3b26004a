//! View of a person at a terminal. Python's standard library provides the terminal.

use crate::harness::{Shown, TestEnv, ask_args, calls, says, serve};
use crate::person::Person;
use crate::repl::{leave, start};
use rondo_testkit::{Gate, ReplyScript, Response, Script, Server, Step, faults, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::Duration;
use tokio::process::Command;

/// Runs its arguments but the first on a terminal of their own. Standard input is typed at once, the
/// first argument at each question.
const ON_A_TERMINAL: &str = r"
import os, pty, sys

def read(terminal):
    shown = os.read(terminal, 65536)
    if b'Run it? y/n' in shown:
        os.write(terminal, sys.argv[1].encode())
    return shown

sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:], read)))
";

async fn ask(env: &TestEnv, server: &Server, typed: &str, args: &[&str]) -> Shown {
    ask_ahead(env, server, ("", typed), args).await
}

/// The input comes in two parts: before anything is asked, and at each question.
async fn ask_ahead(
    env: &TestEnv,
    server: &Server,
    (ahead, typed): (&str, &str),
    args: &[&str],
) -> Shown {
    let url = server.url("/v1");
    let binary = env.command(&ask_args(&url, args));
    let binary = binary.as_std();
    let mut python = Command::new("python3");
    python
        .args(["-c", ON_A_TERMINAL, typed])
        .arg(binary.get_program())
        .args(binary.get_args())
        .env_clear()
        .envs(
            binary
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("TERM", "xterm-256color")
        .current_dir(env.project());
    let file = env.project().join("typed");
    std::fs::write(&file, ahead).unwrap();
    python.stdin(std::fs::File::open(file).unwrap());
    env.shown(&python.output().await.unwrap())
}

fn plain(shown: &Shown) -> String {
    let mut text = String::new();
    let mut rest = shown.stdout.as_str();
    while let Some((before, escaped)) = rest.split_once("\x1b[") {
        text.push_str(before);
        let end = escaped.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        rest = &escaped[end + 1..];
    }
    text + rest
}

#[tokio::test]
async fn markdown_is_rendered_as_it_streams() {
    let reply = ReplyScript::text(["# Result\n\nIt is **fo", "ur**.\n"]);
    let server = serve(vec![reply]).await;
    let shown = ask(&TestEnv::new(), &server, "", &["2+2?"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let text = plain(&shown);
    assert!(text.contains("It is four."), "{text}");
    assert!(!text.contains("**") && !text.contains("# Result"), "{text}");
    assert!(shown.stdout.contains("\x1b[1mfour"), "{shown:?}");
}

#[tokio::test]
async fn without_colours_the_text_is_as_the_model_wrote_it() {
    let server = serve(vec![says("It is **four**.")]).await;
    let env = TestEnv::new().var("NO_COLOR", "1");
    let shown = ask(&env, &server, "", &["2+2?"]).await;
    assert_eq!(
        (shown.stdout.as_str(), shown.code),
        ("It is **four**.\r\n", Some(0))
    );
}

#[tokio::test]
async fn model_text_cannot_steer_the_terminal() {
    let server = serve(vec![says("a\u{1b}]0;title\u{7}b\u{1b}[2Jc")]).await;
    let shown = ask(&TestEnv::new(), &server, "", &["x"]).await;
    assert!(plain(&shown).contains("abc"), "{shown:?}");
    assert!(
        !shown.stdout.contains("title") && !shown.stdout.contains("\x1b[2J"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn a_call_is_one_line_with_its_live_output_below() {
    let server = serve(vec![
        calls(
            "exec",
            &json!({"command": "echo out; printf '\\033[2J\\033[31mred'"}),
        ),
        says("Done."),
    ])
    .await;
    let shown = ask(&TestEnv::new(), &server, "", &["--yolo", "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let text = plain(&shown);
    assert!(text.contains("• exec echo out;"), "{text}");
    assert!(text.contains("out\r\n") && text.contains("red"), "{text}");
    assert!(shown.stdout.contains("\x1b[31mred") && !shown.stdout.contains("\x1b[2J"));
    assert!(text.trim_end().ends_with("Done."), "{text}");
}

#[tokio::test]
async fn a_person_is_asked_and_their_answer_decides() {
    for (typed, made, code) in [("y\n", true, 0), ("n\n", false, 0)] {
        let server = serve(vec![
            calls("write_file", &json!({"path": "made.txt", "content": "x"})),
            says("Over."),
        ])
        .await;
        let env = TestEnv::new();
        let shown = ask(&env, &server, typed, &["make it"]).await;
        assert_eq!(shown.code, Some(code), "{shown:?}");
        assert!(
            plain(&shown).contains("Run it? y/n/a/f/e/b, then Enter (Enter alone: no;"),
            "{shown:?}"
        );
        assert_eq!(env.project().join("made.txt").exists(), made, "{shown:?}");
    }
}

#[tokio::test]
async fn a_rule_that_denies_a_call_with_the_words_of_a_user_is_no_user() {
    let call = calls("exec", &json!({"command": "touch a"}));
    let server = serve(vec![call, says("Over.")]).await;
    let env = TestEnv::new();
    env.user_policy(
        "[[rule]]\ncommand = [\"touch\"]\ndecision = \"deny\"\nmessage = \"the user said no\"\n",
    );
    let shown = ask(&env, &server, "", &["make it"]).await;
    let text = plain(&shown);
    assert!(text.contains("the user said no"), "{text}");
    assert!(!text.contains("denied by you"), "{text}");
}

#[tokio::test]
async fn the_words_before_a_call_or_a_question_stand_whole_above_it() {
    let words = "Let me look into that directory for you.";
    let exec = || calls("exec", &json!({"command": "echo out"})).saying(words);
    let write = || calls("write_file", &json!({"path": "made.txt", "content": "x"})).saying(words);
    for (call, args, typed, below) in [
        (exec(), &["--yolo", "go"][..], "", "• exec echo out"),
        (write(), &["go"], "n\n", "`write_file` wants to run"),
    ] {
        for env in [TestEnv::new(), TestEnv::new().var("NO_COLOR", "1")] {
            let server = serve(vec![call.clone(), says("Done.")]).await;
            let shown = ask(&env, &server, typed, args).await;
            let text = plain(&shown).replace('\r', "");
            assert!(text.contains(&format!("{words}\n{below}")), "{text}");
            assert_eq!(text.matches("you.").count(), 1, "{text}");
        }
    }
}

/// Leaning on the keyboard while the model thinks has allowed nothing.
#[tokio::test]
async fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let call = calls("write_file", &json!({"path": "made.txt", "content": "x"}));
    let server = Server::start(Script::from(vec![
        openai::streamed(&call).before(Step::Delay(Duration::from_millis(500))),
        openai::streamed(&says("Over.")),
    ]))
    .await;
    let env = TestEnv::new();
    let shown = ask_ahead(&env, &server, ("y\n", "n\n"), &["make it"]).await;
    assert!(plain(&shown).contains("✗ denied by you"), "{shown:?}");
    assert!(!env.project().join("made.txt").exists(), "{shown:?}");
}

#[tokio::test]
async fn an_unfinished_answer_is_shown_once() {
    let mut frames = openai::frames(&says("Some words."));
    frames.truncate(2);
    let response = faults::half_open_after(frames);
    let server = Server::start(Script::from(vec![response])).await;
    let args = ["--deadline", "500ms", "x"];
    let shown = ask(&TestEnv::new(), &server, "", &args).await;
    assert_eq!(plain(&shown).matches("Some words.").count(), 1, "{shown:?}");
}

#[tokio::test]
async fn a_cut_stream_is_shown_once_and_its_failure_is_no_answer() {
    let frames = openai::frames(&says("Some words."));
    let response = faults::cut_after(frames[..2].to_vec());
    let server = Server::start(Script::from(vec![response])).await;
    let shown = ask(&TestEnv::new(), &server, "", &["x"]).await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    let text = plain(&shown);
    assert_eq!(text.matches("Some words.").count(), 1, "{text}");
    assert_eq!(text.matches("closed the connection").count(), 1, "{text}");
    assert!(text.contains("error: "), "{text}");
    assert!(!text.contains("I stopped"), "{text}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_schema_says_why_and_asks_again_only_so_often() {
    let replies = || ["one", "two", "three"].map(says).into();
    let env = TestEnv::new();
    env.write("schema.json", r#"{"type": "object"}"#);
    let args = ["--output-schema", "schema.json", "x"];
    let shown = ask(&env, &serve(replies()).await, "", &args).await;
    let text = plain(&shown);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.matches("asking again").count(), 2, "{text}");
    let why = "the model's replies could not be used: the answer must be JSON alone";
    assert!(text.contains(why), "{text}");
    let shown = env
        .ask(
            &serve(replies()).await,
            &["--output-format", "json", args[0], args[1], args[2]],
        )
        .await;
    let result: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let why = result["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("the answer must be JSON alone"), "{why}");
    assert_eq!(result["stop_reason"], "invalid_response");
}

#[tokio::test]
async fn words_are_shown_before_their_line_is_whole() {
    let mut frames = openai::frames(&says("Some **strong words** of a par"));
    frames.truncate(2);
    let server = Server::start(Script::from(vec![faults::half_open_after(frames)])).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let args = ask_args(&url, &["go"]);
    let mut person = Person::start(&env, &args);
    person.types_behind("Some strong words of a").await;
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::INT).unwrap();
    assert_eq!(person.code().await, Some(130));
    let all = person.all();
    assert_eq!(
        all.matches("Some strong words of a par\n").count(),
        1,
        "{all}"
    );
}

#[tokio::test]
async fn quiet_prints_the_answer_alone_even_on_a_terminal() {
    let server = serve(vec![calls("list_files", &json!({})), says("Nothing.")]).await;
    let shown = ask(&TestEnv::new(), &server, "", &["-q", "x"]).await;
    assert_eq!(
        (plain(&shown).as_str(), shown.code),
        ("Nothing.\r\n", Some(0))
    );
}

/// A repository that wants something written may say so at length.
#[tokio::test]
async fn a_question_shows_what_is_written_where_whatever_comes_first() {
    let content = format!("{}\nthe end", "line\n".repeat(200));
    let arguments = json!({"content": content, "path": "im\u{202e}portant.txt"});
    let server = serve(vec![calls("write_file", &arguments), says("Over.")]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let args = ask_args(&url, &["go"]);
    let mut person = Person::start(&env, &args);
    person.types_behind("no, because…): ").await;
    let screen = person.screen();
    assert!(
        screen.contains("  path: im\\u{202e}portant.txt\n"),
        "{screen}"
    );
    assert!(screen.contains("  a new file of 202 lines\n"), "{screen}");
    assert!(
        screen.contains(" characters are left out here]\n"),
        "{screen}"
    );
    assert!(screen.contains("│ +the end\n"), "{screen}");
    person.press("\r").await;
    assert_eq!(person.code().await, Some(0));
    assert!(person.all().contains("✗ denied by you"), "{}", person.all());
}

/// Returns the text of the blocks of questions, without their layout.
fn blocks(shown: &str) -> String {
    let shown = shown.replace('\r', "");
    let rows = shown.lines().filter_map(|it| it.strip_prefix("  │ "));
    rows.collect()
}

#[tokio::test]
async fn a_long_command_can_be_seen_whole_before_it_is_allowed_and_is_not_allowed_for_more_before()
{
    let command = format!("echo {}; touch made", "abcdefghij".repeat(400));
    let run = calls("exec", &json!({ "command": command }));
    let env = TestEnv::new();
    let server = serve(vec![run.clone(), says("Over.")]).await;
    let url = server.url("/v1");
    let args = ask_args(&url, &["go"]);
    let mut person = Person::start(&env, &args);
    person.types_behind("no, because…): ").await;
    let first = person.all();
    assert!(first.contains("Run it? y/n/e/v/b, then Enter"), "{first}");
    assert!(
        first.contains("characters that are left out; until then y allows"),
        "{first}"
    );
    assert!(!blocks(&first).contains(&command));
    person.press("v\r").await;
    person.sees_below("because…): v", "Run it? y/n").await;
    person.types_behind("no, because…): ").await;
    assert!(blocks(&person.all()).contains(&command), "{}", person.all());
    person.press("y\r").await;
    assert_eq!(person.code().await, Some(0));
    assert!(env.project().join("made").exists());

    let server = serve(vec![run, says("Over.")]).await;
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("go").await;
    person.sees("Run it? y/n/e/v/b, then Enter").await;
    person.types_behind("): ").await;
    person.press("v\r").await;
    person.sees_below("because…): v", "Run it? y/n").await;
    person.types_behind(": ").await;
    assert!(blocks(&person.all()).contains(&command), "{}", person.all());
    person.press("n\r").await;
    person.sees("Over.").await;
    person.prompt("agent").await;
    leave(person).await;
}

/// The replaced text is on the disk, and no argument has it.
#[tokio::test]
async fn a_question_shows_what_a_call_changes_and_so_does_its_end() {
    let arguments = json!({"path": "poem.txt", "content": "roses\n\u{202e}are\u{1b}[2J blue\n"});
    let server = serve(vec![calls("write_file", &arguments), says("Over.")]).await;
    let env = TestEnv::new();
    env.write("poem.txt", "roses\nare red\n");
    let url = server.url("/v1");
    let args = ask_args(&url, &["go"]);
    let mut person = Person::start(&env, &args);
    person.types_behind("no, because…): ").await;
    let asked = "`write_file` wants to run with\n  path: poem.txt\n  1 line added, 1 removed\n  @@ -1,2 +1,2 @@\n  \
                 │  roses\n  │ -are red\n  │ +\\u{202e}are\\u{1b}[2J blue\na: allow write_file in this session; f: permanently\nRun it? y/n/a/f";
    assert!(person.screen().contains(asked), "{}", person.screen());
    assert_eq!(person.color_of("│ -are red"), vt100::Color::Idx(1));
    assert_eq!(person.color_of("│ +"), vt100::Color::Idx(2));
    // A yes is void once the file is another one than it was for.
    env.write("poem.txt", "violets\n");
    person.press("y\r").await;
    person.sees("Asked again").await;
    person.sees("│ -violets").await;
    person.types_behind("no, because…): ").await;
    person.press("y\r").await;
    assert_eq!(person.code().await, Some(0));
    let done = "• write_file poem.txt\n  │ 1 - violets\n  │ 1 + roses\n  │ 2 + \\u{202e}are\\u{1b}[2J blue\n";
    assert!(person.all().contains(done), "{}", person.all());
}

#[tokio::test]
async fn a_file_of_many_lines_is_shown_in_part_and_without_colours_where_they_are_not_wanted() {
    let content = format!("first\n{}last", "line\n".repeat(1000));
    let write = json!({"path": "long.txt", "content": content});
    let edit = json!({"path": "long.txt", "old_string": "nowhere", "new_string": ""});
    let server = serve(vec![
        calls("write_file", &write),
        calls("edit_file", &edit),
        says("Over."),
    ])
    .await;
    let env = TestEnv::new().var("NO_COLOR", "1");
    let shown = ask(&env, &server, "y\n", &["go"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let text = shown.stdout.replace('\r', "");
    let done = "• write_file long.txt\n  │   1 + first\n";
    assert!(text.contains(done) && !text.contains("\x1b[32m"), "{text}");
    let end = "  │ … 982 more rows\n";
    assert!(text.contains(end), "{text}");
    // An edit that cannot be made is not asked about.
    assert!(!text.contains("`edit_file` wants"), "{text}");
    let sent = server.requests()[2].json()["messages"].to_string();
    assert!(sent.contains("does not occur in `long.txt`"), "{sent}");
}

#[tokio::test]
async fn what_is_piped_in_leaves_the_terminal_to_ask_on() {
    let call = calls("write_file", &json!({"path": "made.txt", "content": "x"}));
    let server = serve(vec![call, says("Over.")]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let script = "echo data | \"$0\" ask -m openai/test --base-url \"$1\" go";
    let mut person = Person::start_as(
        &env,
        "sh",
        &["-c", script, env!("CARGO_BIN_EXE_rondo"), &url],
    );
    person.types_behind("no, because…): ").await;
    person.press("y\r").await;
    assert_eq!(person.code().await, Some(0));
    assert!(env.project().join("made.txt").exists());
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("<stdin>\\ndata\\n</stdin>"), "{sent}");
}

/// Ctrl-S stops a terminal until Ctrl-Q.
#[tokio::test]
async fn one_signal_ends_what_writes_to_a_stopped_terminal() {
    let gate = Gate::new();
    let response = openai::streamed(&says("many words")).before(Step::Gate(gate.clone()));
    let server = Server::start(Script::from(vec![response])).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let args = ask_args(&url, &["go"]);
    let mut person = Person::start(&env, &args);
    person.sees("thinking").await;
    person.press("\x13").await;
    gate.reached().await;
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    assert_eq!(person.code().await, Some(143));
}

#[tokio::test]
async fn a_request_that_is_repeated_says_who_failed_and_how_often_it_is_tried() {
    let server = Server::start(vec![
        Response::json(500, &json!({"error": {"message": "broken"}})),
        openai::streamed(&says("ok")),
    ])
    .await;
    let shown = ask(&TestEnv::new(), &server, "", &["x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let text = plain(&shown);
    assert!(
        text.contains("HTTP 500 from openai; retrying in "),
        "{text}"
    );
    assert!(text.contains(" s (attempt 2 of "), "{text}");
}

#[tokio::test]
async fn a_command_is_typed_anew_where_no_row_can_be_drawn_anew() {
    let run = calls("exec", &json!({"command": "touch first.txt"}));
    let server = serve(vec![run, says("Over.")]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let args = ["ask", "-m", "openai/test", "--base-url", &url, "go"];
    let mut person = Person::start(&env, &args);
    person.types_behind("no, because…): ").await;
    person.press("e\r").await;
    person
        .types_behind("The command to run instead (Enter alone: back): ")
        .await;
    person.press("\r").await;
    person.sees_below("back): ", "Run it? y/n").await;
    person.types_behind("no, because…): ").await;
    person.press("e\r").await;
    person.types_behind("back): ").await;
    person.press("touch second.txt\r").await;
    assert_eq!(person.code().await, Some(0));
    let made = ["first.txt", "second.txt"].map(|name| env.project().join(name).exists());
    assert_eq!(made, [false, true]);
}

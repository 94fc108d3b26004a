//! The full screen as a person at a terminal meets it.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, CTRL_D, CTRL_Z, ENTER, ESC, Person};
use rondo_testkit::{Gate, Script, Server, Step, openai, refused_url};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// The chord that opens the questions that wait.
pub(crate) const REVIEW: &str = "\x1by";

/// Opens the screen on a server of the test's own.
pub(crate) async fn open(env: &TestEnv, server: &Server, args: &[&str]) -> Person {
    let url = server.url("/v1");
    let own = ["-m", "openai/test", "--base-url", &url];
    let mut person = Person::start(env, &[&own[..], args].concat());
    person.is_alternate().await;
    person.shows("? help").await;
    person
}

pub(crate) async fn leave(mut person: Person) {
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
}

#[tokio::test]
async fn rondo_alone_opens_the_screen_and_a_question_is_answered_in_markdown() {
    let server = serve(vec![says("# Sum\n\nIt is **four**."), says("Still four.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("2+2?\r").await;
    person.shows("› 2+2?").await;
    person.shows("It is four.").await;
    person.shows("1 step ·").await;
    person.press("and now?\r").await;
    person.shows("Still four.").await;
    assert!(!person.screen().contains("**"), "{}", person.screen());
    leave(person).await;
}

#[tokio::test]
async fn what_was_said_stands_in_the_scrollback_when_the_screen_is_left() {
    let server = serve(vec![says("It is **four**.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("2+2?\r").await;
    person.shows("1 step ·").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
    let all = person.all();
    assert!(
        all.contains("› 2+2?") && all.contains("It is four."),
        "{all}"
    );
    assert_eq!(all.matches("It is four.").count(), 1, "{all}");
}

#[tokio::test]
async fn the_terminal_is_given_back_as_it_was_also_to_sigterm() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    for is_told in [false, true] {
        let url = server.url("/v1");
        let args = ["-m", "openai/test", "--base-url", &url];
        let mut person = Person::start(&env, &args);
        let before = person.settings();
        person.shows("? help").await;
        assert_ne!(person.settings(), before);
        if is_told {
            let process = Pid::from_raw(person.process()).unwrap();
            kill_process(process, Signal::TERM).unwrap();
            assert_eq!(person.code().await, Some(143));
        } else {
            person.press(CTRL_C).await;
            person.shows("Ctrl-C again quits").await;
            person.press(CTRL_C).await;
            assert_eq!(person.code().await, Some(0));
        }
        assert_eq!(person.settings(), before);
    }
}

#[tokio::test]
async fn ctrl_z_stops_the_process_with_the_terminal_as_it_was() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let script =
        "set -m; \"$0\" -m openai/test --base-url \"$1\"; echo stopped; read; fg; echo gone";
    let rondo = env!("CARGO_BIN_EXE_rondo");
    let mut person = Person::start_as(&env, "bash", &["-c", script, rondo, &url]);
    person.shows("? help").await;
    person.press("2+2?\r").await;
    person.shows("1 step ·").await;
    person.press(CTRL_Z).await;
    person.sees("stopped").await;
    assert!(person.all().contains("Four."), "{}", person.all());
    person.press(ENTER).await;
    person.is_alternate().await;
    person.shows("1 step ·").await;
    person.press(CTRL_D).await;
    person.sees("gone").await;
    assert_eq!(person.code().await, Some(0));
    let all = person.all();
    assert_eq!(all.matches("› 2+2?").count(), 1, "{all}");
}

#[tokio::test]
async fn esc_stops_what_runs_and_what_came_stays() {
    let mut frames = openai::frames(&says("Some words of a long answer."));
    frames.truncate(2);
    let response = rondo_testkit::faults::half_open_after(frames);
    let server = Server::start(Script::from(vec![response])).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("Some words of a long").await;
    person.press(ESC).await;
    person.shows("! stopped").await;
    assert!(
        person.screen().contains("Some words"),
        "{}",
        person.screen()
    );
    leave(person).await;
}

#[tokio::test]
async fn model_text_cannot_steer_the_screen() {
    let text = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc \u{202e}end\u{1b}]52;c;eA==\u{7}";
    let server = serve(vec![says(text)]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("abc \\u{202e}end").await;
    leave(person).await;
}

#[tokio::test]
async fn a_call_is_a_card_with_its_live_output_and_runs_once_it_was_allowed() {
    let command = "echo begun; touch made.txt; echo over";
    let server = serve(vec![
        calls("exec", &json!({"command": command})),
        says("Done."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("make it\r").await;
    person.shows("may this run?").await;
    // Enter was meant for the input, and allows nothing.
    person.press(ENTER).await;
    person.shows("y allow").await;
    assert!(!env.project().join("made.txt").exists());
    person.press("y").await;
    person.shows("✓ exec").await;
    person.shows("│ over").await;
    person.shows("Done.").await;
    assert!(env.project().join("made.txt").exists());
    leave(person).await;
}

#[tokio::test]
async fn the_plan_is_a_card_and_a_subagent_is_a_tree_of_its_calls() {
    let items = json!([{"text": "find it", "status": "in_progress"}]);
    let server = serve(vec![
        calls("todo", &json!({ "items": items })),
        calls(
            "subagent",
            &json!({"task": "look around", "tools": ["list_files"]}),
        ),
        // What the subagent does.
        calls("list_files", &json!({"path": "."})),
        says("It is here."),
        says("Found."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &["--yolo"]).await;
    person.press("where is it?\r").await;
    person.shows("Found.").await;
    for row in [
        "✓ todo (1 item)",
        "  │ ● find it",
        "✓ subagent look around",
        "  │ ├ ✓ list_files .",
        "  │ └ ✓ complete",
    ] {
        person.shows(row).await;
    }
    person.press("\x14").await;
    person
        .shows("┃   └ subagent look around · complete: It is here.")
        .await;
    person.press(ESC).await;
    person.shows_no_more("┏━ to do").await;
    leave(person).await;
}

#[tokio::test]
async fn my_22_my_23_a_spinner_says_who_thinks_and_the_status_line_what_runs() {
    let gate = Gate::new();
    let call = "I look.\n<tool_code>\n<name>execute_command</name>\n<parameters>\n{ \"command\": \"ls -la; cat pipe\" }\n</parameters>\n</tool_code>";
    let server = Server::start(Script::from(vec![
        openai::streamed(&says(call)).before(Step::Gate(gate.clone())),
        openai::streamed(&says("All seen.")),
    ]))
    .await;
    let env = TestEnv::new();
    let pipe = env.project().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    let mut person = open(&env, &server, &["--profile", "react", "--yolo"]).await;
    person.press("look\r").await;
    gate.reached().await;
    person.shows("MyLM is thinking...").await;
    gate.open();
    person.shows("Executing: `ls -la; cat pipe`...").await;
    // What came before the call was a thought.
    person.shows("∴ I look.").await;
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "end\n").unwrap());
    person.shows("All seen.").await;
    leave(person).await;
}

#[tokio::test]
async fn my_24_the_answer_appears_as_it_comes() {
    let mut frames = openai::frames(&says("The **first words** of a long answer"));
    frames.truncate(2);
    let response = rondo_testkit::faults::half_open_after(frames);
    let server = Server::start(Script::from(vec![response])).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &["--profile", "react"]).await;
    person.press("go\r").await;
    person.shows("The first words").await;
    person.press(ESC).await;
    person.shows("! stopped").await;
    person.press(ENTER).await;
    leave(person).await;
}

#[tokio::test]
async fn help_lists_the_keys_and_esc_is_one_back() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("?").await;
    person.shows("find in the whole session").await;
    person.press(ESC).await;
    person.shows_no_more("find in the whole session").await;
    person.press("why?").await;
    person.shows("│ why?").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn words_are_found_in_all_of_the_session_and_the_end_is_followed_again() {
    let lines: Vec<String> = (0..200).map(|at| format!("line {at} of it\n\n")).collect();
    let server = serve(vec![says(&lines.concat())]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("line 199 of it").await;
    person.press("\x06line 20 ").await;
    person.shows("line 25 of it").await;
    person.press(ESC).await;
    person.shows_no_more(" find: ").await;
    person.shows("more below").await;
    person.press("\x1b[1;5F").await;
    person.shows("line 199 of it").await;
    leave(person).await;
}

#[tokio::test]
async fn an_answer_is_copied_as_it_was_written() {
    let server = serve(vec![says("It is **four**.")]).await;
    let env = TestEnv::new();
    leave(copying(&env, &server).await).await;
}

/// Copies the only answer.
pub(crate) async fn copying(env: &TestEnv, server: &Server) -> Person {
    let mut person = open(env, server, &[]).await;
    person.press("go\r").await;
    person.shows("1 step ·").await;
    person.press("\x1bc").await;
    person.shows("copied 1 line").await;
    assert_eq!(person.clipboard(), "It is **four**.");
    person
}

/// Opens the screen, and says something twice.
pub(crate) async fn after_two_turns(env: &TestEnv, server: &Server) -> Person {
    let mut person = open(env, server, &[]).await;
    person.press("first\r").await;
    person.shows("1 step ·").await;
    person.press("second\r").await;
    person.shows_times("1 step ·", 2).await;
    person
}

#[tokio::test]
async fn a_pager_has_the_terminal_and_gives_it_back() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("PAGER", "cat; echo; echo paged; read x < /dev/tty");
    let mut person = open(&env, &server, &[]).await;
    person.press("2+2?\r").await;
    person.shows("1 step ·").await;
    person.press("\x0f").await;
    person.shows("paged").await;
    assert!(person.screen().contains("> 2+2?"), "{}", person.screen());
    person.press("\r").await;
    person.shows("? help").await;
    leave(person).await;
}

#[tokio::test]
async fn a_draft_is_edited_in_the_users_editor() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new().var("EDITOR", "printf ' and more' >>");
    let mut person = open(&env, &server, &[]).await;
    person.press("a draft\x07").await;
    person.shows("│ a draft and more").await;
    person.press(CTRL_C).await;
    leave(person).await;
}

#[tokio::test]
async fn the_screen_follows_the_size_of_the_terminal_while_an_answer_comes() {
    let gate = Gate::new();
    let text = "word ".repeat(300);
    let responses = vec![openai::streamed(&says(&text)).before(Step::Gate(gate.clone()))];
    let server = Server::start(Script::from(responses)).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    gate.reached().await;
    for at in 0_u16..60 {
        person.resize(10 + at % 31, 20 + at % 77);
        if at == 20 {
            gate.open();
        }
    }
    person.resize(24, 80);
    person.shows("1 step ·").await;
    let screen = person.screen();
    assert_eq!(
        screen.lines().filter(|it| it.starts_with('╭')).count(),
        1,
        "{screen}"
    );
    leave(person).await;
}

#[tokio::test]
async fn commands_of_the_shell_are_cards_and_the_agent_reads_what_is_shared() {
    let server = serve(vec![says("Seen.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("!echo shared$((40+2))\r").await;
    person.shows("│ shared42").await;
    person.press("!!echo hidden$((40+2))\r").await;
    person.shows("│ hidden42").await;
    person.press("what did I run?\r").await;
    person.shows("Seen.").await;
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(
        sent.contains("shared42") && !sent.contains("hidden42"),
        "{sent}"
    );
    leave(person).await;
}

#[tokio::test]
async fn what_is_queued_while_a_turn_runs_is_asked_after_it() {
    let gate = Gate::new();
    let first = openai::streamed(&says("First.")).before(Step::Gate(gate.clone()));
    let server = Server::start(Script::from(vec![
        first,
        openai::streamed(&says("Second.")),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("one\r").await;
    person.shows("Thinking").await;
    gate.reached().await;
    person.press("two\t").await;
    person.shows("queued: two").await;
    gate.open();
    person.shows("Second.").await;
    assert!(!person.screen().contains("queued:"), "{}", person.screen());
    leave(person).await;
}

#[tokio::test]
async fn sessions_are_found_by_what_was_said_and_gone_on_with() {
    let server = serve(vec![
        says("A pear."),
        says("An apple."),
        says("Still a pear."),
    ])
    .await;
    let env = TestEnv::new();
    for question in ["name a green fruit", "name a red fruit"] {
        assert_eq!(env.ask(&server, &[question]).await.code, Some(0));
    }
    let mut person = open(&env, &server, &[]).await;
    person.press("/sessions\r").await;
    person.shows("name a red fruit").await;
    person.press("pear").await;
    person.shows_no_more("name a red fruit").await;
    person.shows("A pear.").await;
    person.press("\r").await;
    person.shows("› name a green fruit").await;
    person.press("which was it?\r").await;
    person.shows("Still a pear.").await;
    let sent = server.requests()[2].json()["messages"].to_string();
    assert!(
        sent.contains("A pear.") && !sent.contains("An apple."),
        "{sent}"
    );
    leave(person).await;
}

#[tokio::test]
async fn undo_goes_back_before_the_last_turn_with_its_words_in_the_input() {
    let server = serve(vec![says("One."), says("Two."), says("Three.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("first\r").await;
    person.shows("One.").await;
    person.press("second\r").await;
    person.shows("Two.").await;
    person.shows_times("1 step ·", 2).await;
    person.press("/undo\r").await;
    person.shows("│ second").await;
    person.shows_no_more("Two.").await;
    person.press(" try\r").await;
    person.shows("Three.").await;
    let sent = server.requests()[2].json()["messages"].to_string();
    assert!(sent.contains("One.") && !sent.contains("Two."), "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn the_line_prompt_goes_on_with_the_session_and_with_what_was_typed() {
    let server = serve(vec![says("One."), says("Two.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press("first\r").await;
    person.shows("1 step ·").await;
    person.press("/screen\r").await;
    person.prompt("agent").await;
    person.press(crate::person::UP).await;
    person.press(crate::person::UP).await;
    person.types_behind("› first").await;
    person.press(ENTER).await;
    person.sees("Two.").await;
    let sent = server.requests()[1].json()["messages"].to_string();
    assert!(sent.contains("One."), "{sent}");
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn the_session_goes_on_from_the_line_prompt_to_the_screen_and_back() {
    let server = serve(vec![says("One."), says("Two."), says("Three.")]).await;
    let env = TestEnv::new();
    let url = server.url("/v1");
    let args = ["repl", "-m", "openai/test", "--base-url", &url];
    let mut person = Person::start(&env, &args);
    person.prompt("agent").await;
    person.enter("first").await;
    person.sees("One.").await;
    person.prompt("agent").await;
    person.press(crate::person::SHIFT_TAB).await;
    person.types_behind(" · auto, in the sandbox › ").await;
    person.press("/screen\r").await;
    person.is_alternate().await;
    person.shows("› first").await;
    person.shows("agent · auto, in the sandbox").await;
    person.press("second\r").await;
    person.shows("Two.").await;
    person.shows_times("1 step ·", 2).await;
    person.press("/screen\r").await;
    person.types_behind(" · auto, in the sandbox › ").await;
    person.press("third\r").await;
    person.sees("Three.").await;
    let sent = server.requests()[2].json()["messages"].to_string();
    assert!(sent.contains("One.") && sent.contains("Two."), "{sent}");
    person.types_behind(" · auto, in the sandbox › ").await;
    // What the prompt had printed is not printed again.
    let all = person.all();
    for text in ["One.", "Two.", "Three."] {
        assert_eq!(all.matches(text).count(), 1, "{all}");
    }
    leave(person).await;
}

/// Nothing is read from the terminal, which takes some kilobytes and no more.
#[tokio::test]
async fn a_terminal_that_takes_nothing_does_not_hold_up_the_session() {
    let long = "many words of an answer\n\n".repeat(4_000);
    let server = serve(vec![
        says(&long),
        calls("exec", &json!({"command": "touch made.txt"})),
        says("Over."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &["--yolo"]).await;
    person.press("go\r").await;
    person.shows("many words").await;
    // Taken by the turn that runs, or begins one if that was quicker than the key.
    person.press("and now make it\r").await;
    let made = env.project().join("made.txt");
    let waiting = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while !made.exists() {
            tokio::task::yield_now().await;
        }
    });
    waiting.await.unwrap();
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    assert_eq!(person.code().await, Some(143));
}

#[tokio::test]
async fn what_is_typed_byte_by_byte_arrives_whole() {
    let server = serve(vec![says("Seen.")]).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    for byte in "日本 é👩‍👧".bytes() {
        person.press_bytes(&[byte]).await;
    }
    person.shows("日本 é").await;
    person.press(ENTER).await;
    person.shows("Seen.").await;
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("日本 é👩‍👧"), "{sent}");
    leave(person).await;
}

#[tokio::test]
async fn init_lua_guards_calls_and_adds_commands_and_keys_as_at_the_prompt() {
    let server = serve(vec![
        calls("exec", &json!({"command": "touch made"})),
        says("It is guarded."),
        says("Asked by a command."),
    ])
    .await;
    let env = TestEnv::new();
    let file = env.home().join(".config/rondo/init.lua");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let init = "rondo.on('before_tool', function() return { deny = 'no touching' } end)
        rondo.command { name = 'greet', description = 'says hello', run = function(rest) return 'hello ' .. rest end }
        rondo.command { name = 'wonder', description = 'asks', run = function() return { ask = 'why then?' } end }
        rondo.key { key = 'ctrl-g', command = '/greet key' }";
    std::fs::write(file, init).unwrap();
    let mut person = open(&env, &server, &["--yolo"]).await;
    person.press("/gre").await;
    person.shows("says hello").await;
    person.press("et you\r").await;
    person.shows("hello you").await;
    person.press("\x07").await;
    person.shows("hello key").await;
    person.press("do it\r").await;
    person.shows("It is guarded.").await;
    assert!(!env.project().join("made").exists());
    person.press("/wonder\r").await;
    person.shows("› why then?").await;
    person.shows("Asked by a command.").await;
    leave(person).await;
}

#[tokio::test]
async fn the_example_of_a_command_asks_about_what_was_committed() {
    let server = serve(vec![says("You mended the parser.")]).await;
    let env = TestEnv::new();
    let file = env.home().join(".config/rondo/init.lua");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scripts");
    std::fs::copy(format!("{examples}/standup_command.lua"), file).unwrap();
    let commit = "git init -q . && git -c user.email=a@b.c -c user.name=A commit -q --allow-empty -m 'mend the parser'";
    let mut command = env.wrapped(commit, &[]);
    assert!(command.status().await.unwrap().success());
    let mut person = open(&env, &server, &[]).await;
    person.press("/standup\r").await;
    person.shows("You mended the parser.").await;
    let asked = server.requests()[0].json()["messages"].to_string();
    assert!(asked.contains("mend the parser\\n"), "{asked}");
    leave(person).await;
}

#[tokio::test]
async fn why_a_turn_failed_is_said_once() {
    let url = format!("{}/v1", refused_url().await);
    let env = TestEnv::new();
    let mut person = Person::start(&env, &["-m", "openai/test", "--base-url", &url]);
    person.shows("? help").await;
    person.press("2+2?\r").await;
    person.shows("1 step ·").await;
    let screen = person.screen();
    assert_eq!(screen.matches("refused").count(), 1, "{screen}");
    assert!(!screen.contains("stopped early"), "{screen}");
    leave(person).await;
}

//! Messages, grants and corrections of a person at the prompt while turns run.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_D, ENTER, Person};
use crate::repl::{leave, messages, never_done, said, start};
use rondo_testkit::{Gate, ReplyScript, Script, Server, Step, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::Path;

fn writes(name: &str) -> ReplyScript {
    calls("write_file", &json!({"path": name, "content": "x"}))
}

/// Enters lines, each at a new prompt and until its answer is seen.
async fn ask(person: &mut Person, lines: &[(&str, &str)]) {
    for (line, seen) in lines {
        person.prompt("agent").await;
        person.enter(line).await;
        person.sees(seen).await;
    }
}

#[tokio::test]
async fn a_call_is_asked_about_and_always_means_from_now_on() {
    let replies = ["a.txt", "b.txt", "c.txt"].map(writes);
    let mut replies: Vec<ReplyScript> = replies.into();
    replies.push(says("Done."));
    let server = serve(replies).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("make three").await;
    person
        .sees("a: allow write_file in this session; f: permanently")
        .await;
    person
        .sees("Run it? y/n/a/f/e/b, then Enter (Enter alone: no; e: edit; b: no, because…): ")
        .await;
    person.press("what?\r").await;
    person.sees_below("what?", "Run it? y/n").await;
    person.press("n\r").await;
    person.sees("✗ denied by you").await;
    person.sees("b.txt").await;
    person.types_behind("no, because…): ").await;
    person.press("always\r").await;
    person.sees("Done.").await;
    person.prompt("agent").await;
    leave(person).await;
    let made = ["a.txt", "b.txt", "c.txt"].map(|name| env.project().join(name).exists());
    assert_eq!(made, [false, true, true]);
}

#[tokio::test]
async fn a_question_is_dropped_with_its_turn() {
    let server = serve(vec![writes("a.txt"), says("Next.")]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("make it").await;
    person.sees("Run it? y/n").await;
    person.press("\x03").await;
    person.sees("the turn was stopped").await;
    person.prompt("agent").await;
    person.enter("and now?").await;
    person.sees("Next.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert!(!env.project().join("a.txt").exists());
}

/// Begins a turn, and waits for its request.
async fn asking(env: &TestEnv, server: &Server) -> Person {
    let mut person = start(env, server, &[]);
    person.prompt("agent").await;
    person.enter("what is here?").await;
    server.request(0).await;
    person
}

#[tokio::test]
async fn what_is_entered_while_a_turn_runs_is_said_to_it() {
    let gate = Gate::new();
    let list = calls("list_files", &json!({}));
    let server = Server::start(Script::from(vec![
        openai::streamed(&list).before(Step::Gate(gate.clone())),
        openai::streamed(&says("In French, then.")),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = asking(&env, &server).await;
    person.press("in Frenhc\x7f\x7fch please").await;
    person.sees("› in French please").await;
    person.press(ENTER).await;
    person.sees("queued: in French please").await;
    person.press("/cost\r").await;
    person.sees("after this turn: /cost").await;
    person.press("half").await;
    person.sees("› half").await;
    assert!(!person.all().contains("delivered"), "{}", person.all());
    gate.open();
    person
        .sees_below("queued: in French", "delivered: in French please")
        .await;
    person.sees("In French, then.").await;
    person.sees("1 turn,").await;
    // What was not entered is at the prompt.
    person.types_behind("› half").await;
    person.press("\x03").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["what is here?", "in French please"]);
}

#[tokio::test]
async fn a_conversation_lives_until_it_is_cleared() {
    let server = serve(["one", "two", "three"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    ask(
        &mut person,
        &[
            ("first", "one"),
            ("second", "two"),
            ("/clear", "a new conversation"),
            ("third", "three"),
        ],
    )
    .await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["first", "second"]);
    assert_eq!(said(&server, 2), ["third"]);
    let listed = env.run(&["session", "list", "--json"]).await;
    assert_eq!(listed.lines().len(), 2, "{listed:?}");
}

#[tokio::test]
async fn a_conversation_is_summed_up_and_goes_on_from_that() {
    let server = serve(vec![
        says("hello"),
        says(&"one ".repeat(200)),
        says("They counted."),
        says("two"),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("/compact").await;
    person
        .sees("there is nothing to summarize yet: the conversation is empty")
        .await;
    person.prompt("agent").await;
    person.enter("hi").await;
    person.sees("hello").await;
    person.prompt("agent").await;
    person.enter("/compact").await;
    person
        .sees("there is nothing to summarize yet: the conversation is shorter than a summary")
        .await;
    person.prompt("agent").await;
    assert!(!person.all().contains("error:"), "{}", person.all());
    person.enter("count").await;
    person.sees("one one").await;
    person.prompt("agent").await;
    person.enter("/compact the numbers").await;
    person.sees("compacting 4 older messages").await;
    person.sees("They counted.").await;
    person.prompt("agent").await;
    person.enter("go on").await;
    person.sees("two").await;
    person.prompt("agent").await;
    leave(person).await;
    let asked = said(&server, 3);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].ends_with("They counted.\n\ngo on"), "{asked:?}");
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

#[tokio::test]
async fn what_a_model_thought_before_a_short_answer_is_not_worth_a_summary() {
    let mut thought = says("hello");
    thought.reasoning = vec!["They greet me. ".repeat(100)];
    let server = serve(vec![thought]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    let early = "there is nothing to summarize yet";
    ask(&mut person, &[("hi", "hello"), ("/compact", early)]).await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_call_is_worth_a_summary_however_little_was_said() {
    let replies = vec![
        calls("list_files", &json!({})),
        says("None."),
        says("Empty."),
    ];
    let server = serve(replies).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    ask(&mut person, &[("files?", "None."), ("/compact", "Empty.")]).await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn without_memory_each_question_stands_by_itself() {
    let server = serve(["one", "two"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    ask(
        &mut person,
        &[
            ("/memory off", "memory is off"),
            ("first", "one"),
            ("second", "two"),
        ],
    )
    .await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["second"]);
    let replayed = env.run(&["replay", "latest", "--strict"]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

/// The design answers each question by itself.
#[tokio::test]
async fn py_42_the_python_profile_begins_without_memory() {
    let server = serve(["one", "two", "three"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--profile", "python"]);
    ask(
        &mut person,
        &[
            ("first", "one"),
            ("second", "two"),
            ("/memory on", "memory is on"),
            ("third", "three"),
        ],
    )
    .await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["second"]);
    assert_eq!(said(&server, 2), ["second", "third"]);
}

#[tokio::test]
async fn a_session_goes_on_in_another_process() {
    let server = serve(["one", "two", "three"].map(says).into()).await;
    let env = TestEnv::new();
    for (args, line, seen) in [
        (&[][..], "first", "one"),
        (&["-c"][..], "second", "two"),
        (&["--session", "latest"][..], "third", "three"),
    ] {
        let mut person = start(&env, &server, args);
        ask(&mut person, &[(line, seen)]).await;
        person.prompt("agent").await;
        leave(person).await;
    }
    assert_eq!(said(&server, 2), ["first", "second", "third"]);
}

#[tokio::test]
async fn another_process_asks_in_the_session_while_the_prompt_waits_and_the_prompt_knows_it() {
    let server = serve(["one", "two", "three", "four"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    ask(&mut person, &[("first", "one")]).await;
    person.prompt("agent").await;
    let other = env.ask(&server, &["-c", "second"]).await;
    assert_eq!((other.stdout.as_str(), other.code), ("two\n", Some(0)));
    ask(&mut person, &[("third", "three"), ("/steps", "tokens")]).await;
    person.prompt("agent").await;
    let all = person.all();
    assert!(all.contains("one") && !all.contains("two"), "{all}");
    leave(person).await;
    assert_eq!(said(&server, 2), ["first", "second", "third"]);
    // Nothing of earlier turns is said again.
    let mut person = start(&env, &server, &["-c"]);
    ask(&mut person, &[("fourth", "four")]).await;
    person.prompt("agent").await;
    let all = person.all();
    assert!(!all.contains("one") && !all.contains("two"), "{all}");
    leave(person).await;
}

#[tokio::test]
async fn a_question_is_refused_and_not_kept_while_another_process_works_on_the_session() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
        openai::streamed(&says("Three files.")),
    ]))
    .await;
    let env = TestEnv::new();
    let mut other = start(&env, &server, &[]);
    other.prompt("agent").await;
    other.enter("first").await;
    server.request(0).await;
    let mut person = start(&env, &server, &["-c"]);
    person.sees("another process is running it").await;
    person.prompt("agent").await;
    person.enter("refused").await;
    person.sees("error: ").await;
    person.prompt("agent").await;
    gate.open();
    other.sees("late").await;
    other.prompt("agent").await;
    ask(&mut person, &[("what is here?", "Three files.")]).await;
    person.prompt("agent").await;
    leave(person).await;
    leave(other).await;
    assert_eq!(server.requests().len(), 2);
    assert_eq!(said(&server, 1), ["first", "what is here?"]);
}

#[tokio::test]
async fn a_turn_is_taken_back_and_a_fork_leaves_the_session_be() {
    let server = serve(["one", "two", "three", "four"].map(says).into()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    ask(
        &mut person,
        &[
            ("first", "one"),
            ("second", "two"),
            ("/undo", "undid the last turn"),
            ("third", "three"),
            ("/fork", "of 2 turns: a copy of"),
            ("fourth", "four"),
        ],
    )
    .await;
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let id = list[0]["id"].as_str().unwrap();
    person
        .sees(&format!("session `{id}` of 2 turns: a copy of "))
        .await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 2), ["first", "third"]);
    assert_eq!(said(&server, 3), ["first", "third", "fourth"]);
}

#[tokio::test]
async fn the_prompt_tells_what_turns_took() {
    let server = serve(vec![
        calls("list_files", &json!({})),
        says("Nothing.").usage(30, 12),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("what is here?").await;
    person.sees("Nothing.").await;
    person.prompt("agent").await;
    person.enter("/steps").await;
    person.sees("30 tokens in, 12 out").await;
    person.sees("• list_files").await;
    person.prompt("agent").await;
    person.enter("/cost").await;
    person.sees("1 turn, 40 tokens in, 17 out").await;
    person.prompt("agent").await;
    person.enter("/trace").await;
    person.sees("after 0.").await;
    person.prompt("agent").await;
    person.enter("/nope").await;
    person.sees("there is no `/nope`").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(messages(&server, 1).len(), 4);
}

/// The turns of another process are read from the journal.
#[tokio::test]
async fn the_prompt_tells_what_the_turns_of_a_continued_session_took() {
    let server = serve(vec![
        says("Hello."),
        calls("list_files", &json!({})),
        calls("read_file", &json!({"path": "gone"})),
        says("Nothing.").usage(30, 12),
        says("Still nothing."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    ask(
        &mut person,
        &[("hello", "Hello."), ("what is here?", "Nothing.")],
    )
    .await;
    person.prompt("agent").await;
    leave(person).await;
    let mut person = start(&env, &server, &["-c"]);
    ask(
        &mut person,
        &[
            ("/steps", "30 tokens in, 12 out"),
            ("/cost", "2 turns, 60 tokens in, 27 out"),
            ("/trace", "read_file"),
        ],
    )
    .await;
    person.sees("step 3").await;
    person.sees("• list_files").await;
    person.sees("✗ read_file gone").await;
    person.prompt("agent").await;
    person.enter("again?").await;
    person.sees("Still nothing.").await;
    ask(&mut person, &[("/cost", "3 turns, 70 tokens in, 32 out")]).await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn what_is_typed_while_a_turn_runs_is_seen_without_colours() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("Four.")).before(Step::Gate(gate.clone())),
    ]))
    .await;
    let env = TestEnv::new().var("NO_COLOR", "1");
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("2+2?").await;
    server.request(0).await;
    person.press("and then").await;
    person.types_behind("› and then").await;
    person.press("\x15").await;
    person.press("half").await;
    person.types_behind("› half").await;
    gate.open();
    person.sees("\nFour.").await;
    person.types_behind("› half").await;
    person.press("\x03").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_paste_that_is_too_long_for_a_running_turn_is_told_and_said_to_nobody() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("Four.")).before(Step::Gate(gate.clone())),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.enter("2+2?").await;
    server.request(0).await;
    let lines = "do not say this\r".repeat(100_000);
    person.press(&format!("\x1b[200~{lines}\x1b[201~")).await;
    person.sees("was dropped").await;
    gate.open();
    person.sees("\nFour.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn whoever_terminates_the_prompt_gets_its_code() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    let process = Pid::from_raw(person.process()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    assert_eq!(person.code().await, Some(143));
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.press("x").await;
    person.types_behind("› x").await;
    person.press("\x08").await;
    person.prompt("agent").await;
    person.press(CTRL_D).await;
    assert_eq!(person.code().await, Some(0));
}

/// Killed in the middle, a turn is resumed by the next process: it has its result already.
#[tokio::test]
async fn a_turn_that_was_cut_off_is_carried_on_at_the_next_prompt() {
    let server = never_done(&writes("a.txt")).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.enter("make it").await;
    server.request(1).await;
    kill_process(Pid::from_raw(person.process()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(person.code().await, None);
    let mut person = start(&env, &server, &["-c", "--yolo"]);
    ask(
        &mut person,
        &[("/resume", "It was made."), ("else?", "Nothing else.")],
    )
    .await;
    person.sees("its last turn was cut off").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(messages(&server, 1), messages(&server, 2));
    assert_eq!(said(&server, 3), ["make it", "else?"]);
}

#[tokio::test]
async fn a_line_that_is_shown_as_queued_is_not_lost_if_rondo_is_killed() {
    let gate = Gate::new();
    let server = Server::start(Script::from(vec![
        openai::streamed(&says("late")).before(Step::Gate(gate.clone())),
        openai::streamed(&says("Three files.")),
        openai::streamed(&says("Trois.")),
        openai::streamed(&says("Nothing else.")),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = asking(&env, &server).await;
    person.press("in French please\r").await;
    person.sees("queued: in French please").await;
    kill_process(Pid::from_raw(person.process()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(person.code().await, None);
    let mut person = start(&env, &server, &["-c"]);
    person.sees("1 queued message is asked first").await;
    ask(&mut person, &[("else?", "Nothing else.")]).await;
    person.sees("Three files.").await;
    person.sees("Trois.").await;
    person.prompt("agent").await;
    leave(person).await;
    let all = ["what is here?", "in French please", "else?"];
    for (request, known) in [(1, 1), (2, 2), (3, 3)] {
        assert_eq!(said(&server, request), all[..known]);
    }
}

#[tokio::test]
async fn a_line_that_a_stopped_turn_did_not_read_is_the_next_question() {
    for flags in [&[][..], &["--ephemeral"]] {
        let gate = Gate::new();
        let server = Server::start(Script::from(vec![
            openai::streamed(&says("Three files.")).before(Step::Gate(gate.clone())),
            openai::streamed(&says("Trois.")),
        ]))
        .await;
        let env = TestEnv::new();
        let mut person = start(&env, &server, flags);
        person.prompt("agent").await;
        person.enter("what is here?").await;
        server.request(0).await;
        person.press("in French\r").await;
        person.sees("queued: in French").await;
        person.press("\x03").await;
        person.sees("Trois.").await;
        person.prompt("agent").await;
        leave(person).await;
        assert_eq!(
            said(&server, 1),
            ["what is here?\n\nin French"],
            "{flags:?}"
        );
        assert_eq!(server.requests().len(), 2, "{flags:?}");
    }
}

/// Closing the terminal's window ends what runs in it, and the prompt.
#[tokio::test]
async fn whoever_terminates_the_prompt_ends_what_it_runs() {
    let server = serve(Vec::new()).await;
    let shell = "sh -c 'echo $$ > id; echo begun; exec sleep 1000'";
    let python = "import os, time; print(os.getpid(), file=open('id', 'w')); print('begun'); time.sleep(1000)";
    for (mode, line, signal) in [
        ("shell", shell, Signal::TERM),
        ("shell", shell, Signal::HUP),
        ("python", python, Signal::TERM),
        ("python", python, Signal::HUP),
    ] {
        let env = TestEnv::new().var("SHELL", "/bin/bash");
        let mut person = start(&env, &server, &["--mode", mode]);
        person.prompt(mode).await;
        person.press(line).await;
        person.press(ENTER).await;
        person.sees("\nbegun").await;
        kill_process(Pid::from_raw(person.process()).unwrap(), signal).unwrap();
        assert_eq!(person.code().await, Some(143));
        let id = std::fs::read_to_string(env.project().join("id")).unwrap();
        let process = Path::new("/proc").join(id.trim()).join("stat");
        // A zombie has ended, whichever process collects it.
        while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_session_whose_directory_is_gone_is_not_gone_on_with_unless_one_was_named() {
    let server = serve(vec![says("one"), says("two")]).await;
    let env = TestEnv::new();
    let gone = env.home().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let shown = env.ask(&server, &["-C", gone.to_str().unwrap(), "x"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    std::fs::remove_dir(&gone).unwrap();
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let resume = format!("/resume {}", list[0]["id"].as_str().unwrap());

    let mut person = start(&env, &server, &[]);
    ask(&mut person, &[(&resume, "is gone")]).await;
    person.sees("-C DIR").await;
    person.prompt("agent").await;
    leave(person).await;

    let mut person = start(&env, &server, &["-C", "."]);
    ask(&mut person, &[(&resume, "of 1 turn"), ("y", "two")]).await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 1), ["x", "y"]);
}

#[tokio::test]
async fn a_session_goes_on_with_its_own_model_and_another_one_that_is_named_is_told() {
    let own = serve(vec![says("one"), says("two")]).await;
    let other = serve(vec![says("three")]).await;
    let env = TestEnv::new();
    env.user_config(&format!(
        "model = 'openai/other'\n[providers.openai]\nbase_url = '{}'\n",
        other.url("/v1")
    ));
    assert_eq!(env.ask(&own, &["first"]).await.code, Some(0));
    let list = env.run(&["session", "list", "--json"]).await.lines();
    let resume = format!("/resume {}", list[0]["id"].as_str().unwrap());
    let mut person = Person::start(&env, &["repl", "-c"]);
    ask(&mut person, &[("second", "two")]).await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&own, 1), ["first", "second"]);

    let mut person = Person::start(&env, &["repl", "-m", "openai/other"]);
    ask(
        &mut person,
        &[(&resume, "the next question goes to `openai/other`")],
    )
    .await;
    ask(&mut person, &[("third", "three")]).await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&other, 0), ["first", "second", "third"]);
}

#[tokio::test]
async fn what_is_typed_at_once_is_said_in_its_order_however_long_it_is() {
    let gate = Gate::new();
    let look = calls("list_files", &json!({"path": "."}));
    let server = Server::start(Script::from(vec![
        openai::streamed(&look).before(Step::Gate(gate.clone())),
        openai::streamed(&says("All read.")),
    ]))
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    let line = |number: usize| format!("line {number:02} {}", "x".repeat(60));
    let lines: Vec<String> = (0..40).map(line).collect();
    // The line editor reads a thousand bytes, and the turn the rest.
    person.press(&format!("go\r{}\r", lines.join("\r"))).await;
    gate.reached().await;
    person.sees("queued: line 39").await;
    gate.open();
    person.sees("All read.").await;
    person.prompt("agent").await;
    leave(person).await;
    let sent = server.requests()[1].json().to_string();
    let places: Vec<usize> = lines.iter().map(|it| sent.find(it).unwrap()).collect();
    assert!(places.is_sorted(), "{sent}");
}

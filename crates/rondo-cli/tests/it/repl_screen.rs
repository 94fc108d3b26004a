//! Look of the screen, whatever is typed and however large it is.

use crate::harness::{TestEnv, says, serve};
use crate::person::{CTRL_C, ENTER, Person, TAB};
use crate::repl::{leave, said, start};
use std::collections::BTreeSet;

#[tokio::test]
async fn wide_characters_and_accents_are_edited_as_they_look() {
    let server = serve(vec![says("はい、四です。")]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.press("日本語 é 👩‍🔬x").await;
    person.types_behind("x").await;
    person.press("\x7f\x7f").await;
    person.types_behind("日本語 é ").await;
    person.press("だ\r").await;
    person.sees("はい、四です。").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 0), ["日本語 é だ"]);
}

#[tokio::test]
async fn a_paste_of_ten_thousand_lines_is_one_question() {
    let server = serve(vec![says("A lot.")]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    let lines: Vec<String> = (1..=10_000).map(|n| format!("line {n}: é 日本")).collect();
    let text = lines.join("\n");
    person.press(&format!("\x1b[200~{text}\x1b[201~")).await;
    person.types_behind("line 10000: é 日本").await;
    person.press(ENTER).await;
    person.sees("A lot.").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(said(&server, 0), [text]);
}

#[tokio::test]
async fn a_terminal_of_another_size_is_drawn_anew() {
    let server = serve(vec![says("| a | b |\n|---|---|\n| 1 | 2 |\n")]).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &[]);
    person.prompt("agent").await;
    person.press("a question").await;
    person.types_behind("› a question").await;
    person.resize(20, 60);
    person.press(" indeed").await;
    person.types_behind("question indeed").await;
    person.resize(50, 120);
    person.press(CTRL_C).await;
    person.prompt("agent").await;
    person.enter("again").await;
    person.sees("1   │ 2").await;
    person.prompt("agent").await;
    leave(person).await;
}

#[tokio::test]
async fn a_paste_of_ten_thousand_lines_is_one_command() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    let mut person = start(&env, &server, &["--mode", "shell"]);
    person.prompt("shell").await;
    let text: String = (1..=10_000)
        .map(|n| format!("line {n}: é 日本\n"))
        .collect();
    let paste = format!("cat > pasted <<'end of it'\n{text}end of it");
    person.press(&format!("\x1b[200~{paste}\x1b[201~")).await;
    person.types_behind("end of it").await;
    person.press(ENTER).await;
    person.prompt("shell").await;
    leave(person).await;
    let pasted = std::fs::read_to_string(env.project().join("pasted")).unwrap();
    assert!(pasted == text, "{} bytes of {}", pasted.len(), text.len());
}

#[tokio::test]
async fn a_paste_of_ten_thousand_lines_is_one_cell() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--mode", "python"]);
    person.prompt("python").await;
    let lines: String = (1..=10_000)
        .map(|n| format!("    {n},  # é 日本\n"))
        .collect();
    let paste = format!("\x1b[200~pasted = [\n{lines}]\x1b[201~");
    person.press(&paste).await;
    person.types_behind("... ]").await;
    person.press(ENTER).await;
    person.prompt("python").await;
    person.enter("sum(pasted)").await;
    person.sees("\n50005000\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn where_nothing_completes_a_line_nothing_is_shown_and_its_keys_go_on() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new().var("SHELL", "/bin/bash");
    for (mode, line, mark) in [
        ("agent", "/nosuch", "› "),
        ("shell", "cat nosuch", "$ "),
        ("python", "nosuch", ">>> "),
    ] {
        let mut person = start(&env, &server, &["--mode", mode]);
        person.prompt(mode).await;
        person.press(&format!("{line}{TAB}x")).await;
        person.types_behind(&format!("{line}x")).await;
        let all = person.all();
        assert!(all.contains(&format!("{mark}{line}x")), "{mode}: {all}");
        assert!(!all.contains("NO RECORDS"), "{mode}: {all}");
        // The keys that move in a menu are those of the line again.
        person.press("\x1b[D\x7f").await;
        person.press("y").await;
        person
            .types_behind(&format!("{}y", &line[..line.len() - 1]))
            .await;
        person.press(CTRL_C).await;
        person.prompt(mode).await;
        leave(person).await;
    }
}

#[tokio::test]
async fn help_and_notes_are_broken_at_words_in_a_narrow_terminal() {
    let server = serve(Vec::new()).await;
    let words = |shown: &str| -> BTreeSet<String> {
        let (_, help) = shown.rsplit_once("› /help").unwrap();
        let (help, _) = help.rsplit_once('\n').unwrap();
        let words = help.split_whitespace().filter(|it| *it != "openai/test");
        words.map(str::to_owned).collect()
    };
    let mut wide = None;
    for columns in [100, 80, 60] {
        let env = TestEnv::new();
        let mut person = start(&env, &server, &["--mode", "agent"]);
        person.resize(60, columns);
        person.prompt("agent").await;
        person.enter("/help").await;
        person.sees("Ctrl-R").await;
        person.sees("step.").await;
        person.prompt("agent").await;
        let shown = words(&person.all());
        let known = wide.get_or_insert_with(|| shown.clone());
        let cut: Vec<_> = shown.symmetric_difference(known).collect();
        assert!(cut.is_empty(), "{columns}: {cut:?}");
        leave(person).await;
    }
}

#[tokio::test]
async fn the_greeting_and_a_sessions_note_are_broken_at_words_in_a_narrow_terminal() {
    let server = serve(vec![says("One.")]).await;
    let env = TestEnv::new().var("RONDO_TUI_SCREEN", "inline");
    assert_eq!(env.ask(&server, &["one"]).await.code, Some(0));
    let url = server.url("/v1");
    let named = ["-m", "openai/test", "--base-url", &url];
    for (args, note) in [
        (
            &[][..],
            "note: Tab switches between agent, shell and Python;",
        ),
        (&["repl", "-c"], "the next question continues it"),
    ] {
        let args = [args, &named[..]].concat();
        let mut wide = None;
        for columns in [200, 80, 60] {
            let mut person = Person::start_wide(&env, columns, &args);
            person.sees(note).await;
            person.prompt("agent").await;
            let broken = person.broken_lines();
            assert!(broken.is_empty(), "{columns}: {broken:?}");
            let all = person.all();
            let (greeting, _) = all.rsplit_once("\nagent ").unwrap();
            let words: Vec<String> = greeting.split_whitespace().map(str::to_owned).collect();
            assert_eq!(&words, wide.get_or_insert_with(|| words.clone()));
            leave(person).await;
        }
    }
}

#[tokio::test]
async fn a_list_of_sessions_is_no_wider_than_its_terminal_and_whole_in_a_pipe() {
    let server = serve(vec![says("One.")]).await;
    let env = TestEnv::new();
    let deep = "a/directory/that/is/deep/and/whose/name/is/longer/than/any/line/should/be";
    std::fs::create_dir_all(env.project().join(deep)).unwrap();
    let question = "what is in the directory that has so long a name, and who made it?";
    let asked = env.ask(&server, &["-C", deep, question]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    for columns in [80, 60] {
        let mut person = Person::start_wide(&env, columns, &["session", "list"]);
        assert_eq!(person.code().await, Some(0));
        let shown = person.screen();
        assert!(person.broken_lines().is_empty(), "{columns}: {shown}");
        assert_eq!(shown.trim_end().lines().count(), 2, "{shown}");
        assert!(shown.contains('…'), "{shown}");
        assert!(!shown.contains(question), "{shown}");
    }
    let piped = env.run(&["session", "list"]).await;
    assert!(piped.stdout.contains(&format!("[ROOT]/project/{deep}")));
    assert!(piped.stdout.contains(question), "{piped:?}");
}

#[tokio::test]
async fn what_is_found_and_what_there_is_are_broken_at_words_in_a_narrow_terminal() {
    let env = TestEnv::new();
    for (columns, args) in [
        (80, &["doctor"][..]),
        (60, &["models", "list"]),
        (60, &["profiles", "list"]),
    ] {
        let mut person = Person::start_wide(&env, columns, args);
        assert!(person.code().await.is_some());
        let shown = person.all();
        assert!(person.broken_lines().is_empty(), "{args:?}: {shown}");
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let piped = env.run(args).await;
        assert_eq!(words(&shown), words(&piped.stdout), "{args:?}: {shown}");
    }
}

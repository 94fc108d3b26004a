//! Tests: the rules of approvals, and what they are about.

use super::*;
use rondo_runtime::granting::UserPolicy;

#[test]
fn approval_rule_1_a_question_takes_no_key_from_the_draft() {
    let mut scene = Scene::new();
    scene.types("half a li");
    scene.asks("`exec` wants to run\n  command: rm x");
    scene.now += 10_000;
    assert!(scene.types("ne y n a").is_empty());
    let shown = scene.shown();
    assert!(shown.contains("half a line y n a"), "{shown}");
    assert!(
        shown.contains("▲ 1 approval is open · Alt-Y shows it"),
        "{shown}"
    );
    assert!(!shown.contains("rm x"), "{shown}");
}

#[test]
fn approval_rule_2_keys_answer_only_after_the_question_was_shown_and_nothing_was_pressed() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.now += 10_000;
    scene.alt('y');
    // It was not shown yet.
    assert!(scene.types("y").is_empty());
    scene.shown();
    scene.now += 100;
    assert!(scene.types("y").is_empty());
    // A held key comes again and again, and never answers.
    for _ in 0..100 {
        scene.now += 30;
        assert!(scene.types("y").is_empty());
    }
    scene.now += 249;
    assert!(scene.types("y").is_empty());
    scene.now += 250;
    assert_eq!(answers(&scene.types("y")).len(), 1);
}

#[test]
fn approval_rule_2_a_paste_never_answers() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.alt('y');
    scene.waits();
    let pasted = scene
        .app
        .event(Event::Paste("y".to_owned()), TimeMs(scene.now));
    assert!(pasted.is_empty());
}

#[test]
fn approval_rule_3_enter_never_allows() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    // Typed ahead.
    assert!(answers(&scene.press(KeyCode::Enter)).is_empty());
    scene.alt('y');
    for _ in 0..3 {
        scene.waits();
        assert!(scene.press(KeyCode::Enter).is_empty());
        assert!(scene.types(" ").is_empty());
    }
}

#[test]
fn approval_rule_4_from_now_on_takes_a_second_key_under_the_rule() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.alt('y');
    scene.waits();
    assert!(scene.types("a").is_empty());
    let shown = scene.shown();
    assert!(shown.contains("1  exec(touch *)"), "{shown}");
    // Too soon, and then no rule.
    assert!(scene.types("1").is_empty());
    scene.waits();
    assert!(scene.types("3").is_empty());
    scene.waits();
    let answers = answers(&scene.types("1"));
    let (value, grant, _) = &answers[0];
    assert_eq!(*value, AnswerValue::Approve);
    assert_eq!(grant.as_ref().unwrap().to_string(), "exec(touch *)");
}

#[test]
fn for_ever_is_answered_below_the_change_of_the_rules() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.waits();
    scene.types("a");
    let shown = scene.shown();
    assert!(shown.contains("2  exec(touch *) for ever"), "{shown}");
    scene.waits();
    let effects = scene.types("2");
    let [Effect::ShowRule(hash, grant)] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    let folder = tempfile::tempdir().unwrap();
    let env = rondo_runtime::env::Env::of(&[("RONDO_HOME", folder.path().to_str().unwrap())]);
    let paths = rondo_runtime::paths::Paths::find(&env).unwrap();
    let change = UserPolicy::of(&paths).with(grant).unwrap();
    scene.app.shows_rule(hash, change.clone(), grant.clone());
    // It was not on the screen yet.
    assert!(scene.types("y").is_empty());
    scene.waits();
    let shown = scene.shown();
    assert!(shown.contains("+[[grant]]"), "{shown}");
    assert!(shown.contains("y writes this and runs it"), "{shown}");
    assert!(scene.types("n").is_empty());
    scene.press(KeyCode::Esc);
    assert!(scene.shown().contains("run x?"));
    scene.waits();
    scene.types("a");
    scene.waits();
    assert_eq!(scene.types("2").len(), 1);
    scene.app.shows_rule(hash, change.clone(), grant.clone());
    scene.waits();
    let effects = scene.types("y");
    let [Effect::WriteRule(written, answer)] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!((written, answer.remember.as_ref()), (&change, Some(grant)));
    assert_eq!(answer.value, AnswerValue::Approve);
}

#[test]
fn approval_rule_5_a_card_or_a_question_that_imitates_the_frame_stands_within_it() {
    let frame = "┏━ may this run? ━┓\n┃ y allow ┃\n┗━┛\n▲ 1 approval is open";
    let mut scene = Scene::new();
    scene.happens(EventBody::TextDelta {
        text: format!("```\n{frame}\n```\n"),
    });
    scene.happens(EventBody::ToolCallPending {
        id: CallId::new("c"),
        name: frame.to_owned(),
        arguments: serde_json::json!({"command": frame}),
    });
    scene.happens(EventBody::ToolOutputDelta {
        id: CallId::new("c"),
        text: frame.to_owned(),
    });
    // A program in the pane writes from the first column on, and beyond the last one.
    scene.ctrl(']');
    scene.app.shell_began();
    let rows = frame.replace('\n', "\r\n");
    scene
        .app
        .shell_wrote(format!("\x1b[H{rows}\x1b[3;1H▲\x1b[5;999H▲").as_bytes());
    let own = |line: &str| line.starts_with(['┏', '┃', '┗', '▲']);
    let shown = scene.shown();
    assert!(shown.contains("│┃ y allow ┃"), "{shown}");
    assert!(!shown.lines().any(own), "{shown}");
    scene.ctrl(']');
    scene.asks(frame);
    scene.alt('y');
    let shown = scene.shown();
    let count = |sign: char| shown.lines().filter(|it| it.starts_with(sign)).count();
    assert_eq!((count('┏'), count('┗'), count('▲')), (1, 1, 0), "{shown}");
}

#[test]
fn approval_rule_6_the_whole_command_is_shown_and_allowed_once_its_end_was_in_view() {
    let mut scene = Scene::new();
    let lines: Vec<String> = (0..60).map(|at| format!("line {at}\u{202e}")).collect();
    scene.asks(&format!("{}\nrm -rf the-end\u{1b}[2K", lines.join("\n")));
    scene.alt('y');
    scene.waits();
    assert!(scene.types("y").is_empty());
    let shown = scene.shown();
    assert!(shown.contains("line 0\\u{202e}") && shown.contains("more rows: PageDown"));
    assert!(shown.contains("once you have seen the end"), "{shown}");
    for _ in 0..8 {
        scene.press(KeyCode::PageDown);
        scene.shown();
    }
    assert!(scene.shown().contains("rm -rf the-end\\u{1b}[2K"));
    scene.waits();
    assert_eq!(answers(&scene.types("y")).len(), 1);
}

#[test]
fn approval_rule_7_an_answer_carries_the_hash_of_the_question_that_was_read() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.alt('y');
    scene.waits();
    // It is another question now, which was not read.
    scene.happens(EventBody::Parked {
        questions: vec![question("d", "run y?")],
    });
    assert!(scene.types("y").is_empty());
    scene.waits();
    assert_eq!(answers(&scene.types("y"))[0].2, "hash of d");
}

#[test]
fn approval_rule_8_no_because_says_why() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.alt('y');
    scene.waits();
    scene.types("b");
    scene.types("not in y here");
    let said = answers(&scene.press(KeyCode::Enter));
    let reason = "not in y here".to_owned();
    assert_eq!(said[0].0, AnswerValue::Deny { reason });
}

const OLD: &str = "one\ntwo\nthree\nfour\nfive\n";
const NEW: &str = "ONE\ntwo\nthree\nFOUR\nfive\n";

/// A call asks whether it may run, with the arguments in the question.
fn asks_about(scene: &mut Scene, name: &str, arguments: &serde_json::Value) {
    scene.happens(EventBody::ToolCallPending {
        id: CallId::new("c"),
        name: name.to_owned(),
        arguments: arguments.clone(),
    });
    let call = rondo_core::shown::call(arguments);
    scene.asks(&format!("`{name}` wants to run with\n{call}"));
    scene.alt('y');
}

fn file(text: &str) -> ReplacedFile {
    ReplacedFile {
        leads_to: None,
        before: FileBefore::Text,
        text: Some(text.to_owned()),
        after: None,
    }
}

/// A file of which a call of `edit_file` makes another text.
fn edited(before: &str, after: &str) -> ReplacedFile {
    ReplacedFile {
        after: Some(after.to_owned()),
        ..file(before)
    }
}

/// Has a call of `edit_file` asked about, and its file read.
fn asks_about_edit(scene: &mut Scene, arguments: &serde_json::Value, found: ReplacedFile) {
    asks_about(scene, "edit_file", arguments);
    scene.waits();
    let look = scene.app.wants_look();
    let expected = (
        "hash of c".to_owned(),
        "edit_file".to_owned(),
        arguments.clone(),
    );
    assert_eq!(look, Some(expected));
    scene.app.looked("hash of c", arguments, found);
    scene.waits();
}

#[test]
fn an_edit_is_asked_about_with_its_lines_in_the_file() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "f", "old_string": "four", "new_string": "FOUR"});
    let after = OLD.replace("four", "FOUR");
    asks_about_edit(&mut scene, &arguments, edited(OLD, &after));
    let shown = scene.shown();
    for line in [
        "path: f",
        "changes the file",
        "3   three",
        "4 - four",
        "4 + FOUR",
        "5   five",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn an_edit_of_all_places_is_asked_about_with_each_of_them() {
    let mut scene = Scene::new();
    let arguments =
        serde_json::json!({"path": "f", "old_string": "e", "new_string": "E", "replace_all": true});
    let filler = "x\n".repeat(20);
    let before = format!("one\n{filler}three\n{filler}five\n");
    let after = before.replace('e', "E");
    asks_about_edit(&mut scene, &arguments, edited(&before, &after));
    let mut shown = scene.shown();
    scene.press(KeyCode::PageDown);
    shown.push_str(&scene.shown());
    for line in [
        "changes the file in 3 places",
        "1 + onE",
        "22 + thrEE",
        "43 + fivE",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // Each place gets the same text, so none can be left out.
    assert!(!shown.contains("hunk 1"), "{shown}");
}

#[test]
fn an_edit_that_fails_now_says_so() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "f", "old_string": "six", "new_string": "6"});
    asks_about(&mut scene, "edit_file", &arguments);
    scene
        .app
        .cannot_look("hash of c", "`old_string` does not occur in `f`");
    let shown = scene.shown();
    let told = "as the file is now, it fails: `old_string` does not occur in `f`";
    assert!(shown.contains(told), "{shown}");
}

#[test]
fn every_character_of_a_command_can_be_seen_before_it_is_allowed() {
    let mut scene = Scene::new();
    let command = format!("echo {}; the-end", "x".repeat(70_000));
    let arguments = serde_json::json!({ "command": command });
    asks_about(&mut scene, "exec", &arguments);
    scene.waits();
    let shown = scene.shown();
    assert!(
        shown.contains("v shows the 4478 characters that are left out"),
        "{shown}"
    );
    scene.types("v");
    let mut seen = String::new();
    for _ in 0..3_000 {
        scene.waits();
        seen = scene.shown();
        assert!(!seen.contains("v shows"), "{seen}");
        if seen.contains("y allow · ") {
            break;
        }
        scene.press(KeyCode::PageDown);
    }
    assert!(
        seen.contains("; the-end") && seen.contains("y allow · "),
        "{seen}"
    );
}

#[test]
fn a_hunk_that_is_left_out_is_not_allowed_and_the_model_reads_which() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "f", "old_string": OLD, "new_string": NEW});
    asks_about_edit(&mut scene, &arguments, edited(OLD, NEW));
    scene.waits();
    let shown = scene.shown();
    assert!(shown.contains("▸ hunk 1 of 2"), "{shown}");
    assert!(shown.contains("y allow · a from now on"), "{shown}");
    scene.press(KeyCode::Right);
    scene.types("x");
    scene.now += 300;
    // What is shown now was not on the screen yet.
    assert!(scene.types("y").is_empty());
    scene.waits();
    scene.waits();
    let shown = scene.shown();
    assert!(
        shown.contains("▸ hunk 2 of 2 · left out, the lines stay as they are"),
        "{shown}"
    );
    assert!(
        shown.contains("y allow 1 of 2 hunks · n no"),
        "all of it cannot be allowed from now on: {shown}"
    );
    assert!(scene.types("a").is_empty());
    scene.now += 300;
    let expected = AnswerValue::Value {
        value: serde_json::json!({
            "path": "f",
            "old_string": OLD,
            "new_string": "ONE\ntwo\nthree\nfour\nfive\n",
        }),
        left_out: Some(
            "the user applied 1 of the 2 hunks of this change and left out:\n\
             @@ -4,1 +4,1 @@\n-four\n+FOUR\n"
                .to_owned(),
        ),
    };
    let answered = answers(&scene.types("y"));
    assert_eq!(answered, [(expected, None, "hash of c".to_owned())]);
}

#[test]
fn where_all_hunks_are_left_out_nothing_can_be_allowed() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "f", "old_string": OLD, "new_string": NEW});
    asks_about_edit(&mut scene, &arguments, edited(OLD, NEW));
    for _ in 0..2 {
        scene.waits();
        scene.types("x");
        scene.press(KeyCode::Right);
    }
    scene.waits();
    scene.waits();
    assert!(scene.shown().contains("nothing is left of it · n no"));
    assert!(scene.types("y").is_empty());
    scene.now += 300;
    assert_eq!(answers(&scene.types("n")).len(), 1);
}

#[test]
fn a_file_that_is_replaced_is_asked_about_as_a_difference() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "f", "content": NEW});
    asks_about(&mut scene, "write_file", &arguments);
    scene.waits();
    let look = scene.app.wants_look();
    let expected = (
        "hash of c".to_owned(),
        "write_file".to_owned(),
        arguments.clone(),
    );
    assert_eq!(look, Some(expected));
    assert_eq!(scene.app.wants_look(), None);
    scene.app.looked("hash of c", &arguments, file(OLD));
    // The difference has to be read first.
    assert!(scene.types("y").is_empty());
    scene.waits();
    scene.waits();
    let shown = scene.shown();
    for line in [
        "changes the file",
        "1 - one",
        "1 + ONE",
        "2   two",
        "▸ hunk 1 of 2",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let answered = answers(&scene.types("y"));
    let yes = (AnswerValue::Approve, None, "hash of c".to_owned());
    assert_eq!(answered, [yes]);
}

#[test]
fn a_question_that_is_put_again_as_its_files_changed_says_so() {
    let mut scene = Scene::new();
    let again = "it is asked again";
    scene.asks("write f?");
    for (hash, is_again) in [("hash of c", false), ("another", true)] {
        scene.happens(EventBody::Resumed {
            step: 1,
            downtime_ms: 0,
        });
        let asked = Question {
            hash: hash.to_owned(),
            ..question("c", "write f?")
        };
        scene.happens(EventBody::Parked {
            questions: vec![asked],
        });
        assert_eq!(scene.shown().contains(again), is_again, "{hash}");
    }
}

#[test]
fn what_cannot_be_shown_as_a_difference_is_said() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "f", "content": "a\n"});
    asks_about(&mut scene, "write_file", &arguments);
    scene.waits();
    let (hash, _, arguments) = scene.app.wants_look().unwrap();
    let absent = ReplacedFile {
        before: FileBefore::Absent,
        ..file("")
    };
    scene.app.looked(&hash, &arguments, absent);
    let shown = scene.shown();
    assert!(
        shown.contains("a new file") && shown.contains("1 + a"),
        "{shown}"
    );
    let other = ReplacedFile {
        leads_to: None,
        before: FileBefore::Other { bytes: 7 },
        text: None,
        after: None,
    };
    scene.app.looked(&hash, &arguments, other);
    let shown = scene.shown();
    assert!(
        shown.contains("it replaces 7 bytes that are not text"),
        "{shown}"
    );
    scene.app.cannot_look(&hash, "`f` is a directory");
    let shown = scene.shown();
    assert!(
        shown.contains("as the file is now, it fails: `f` is a directory"),
        "{shown}"
    );
}

fn pending(scene: &mut Scene, ids: &[&str]) {
    let questions = ids.iter().map(|id| question(id, &format!("run {id}?")));
    scene.happens(EventBody::Parked {
        questions: questions.collect(),
    });
}

#[test]
fn a_question_opens_by_itself_where_the_input_is_empty() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    let shown = scene.shown();
    assert!(shown.contains("┏━ may this run? ━"), "{shown}");
    scene.waits();
    assert_eq!(answers(&scene.types("y")).len(), 1);
}

#[test]
fn a_question_opens_over_no_draft_until_that_is_sent() {
    let mut scene = Scene::new();
    scene.types("half a line");
    scene.asks("run x?");
    for _ in 0..20 {
        scene.press(KeyCode::Backspace);
    }
    assert!(!scene.shown().contains("┏━ may this run?"));
    scene.types("go on");
    let sent = scene.press(KeyCode::Enter);
    assert!(matches!(sent.as_slice(), [Effect::Submit { .. }]));
    let shown = scene.shown();
    assert!(shown.contains("┏━ may this run?"), "{shown}");
    assert!(
        shown.contains("1 approval is open: Alt-Y shows it. The agent reads your message"),
        "{shown}"
    );
}

#[test]
fn a_question_that_was_put_off_stays_closed_until_its_key_or_another_question() {
    let mut scene = Scene::new();
    pending(&mut scene, &["c"]);
    scene.waits();
    scene.press(KeyCode::Esc);
    scene.types("?");
    scene.press(KeyCode::Esc);
    assert!(!scene.shown().contains("┏━ may this run?"));
    pending(&mut scene, &["c", "d"]);
    let shown = scene.shown();
    assert!(
        shown.contains("run d?") && shown.contains("may this run? 2 of 2"),
        "{shown}"
    );
}

#[test]
fn several_questions_are_answered_one_after_another() {
    let mut scene = Scene::new();
    pending(&mut scene, &["c", "d"]);
    scene.waits();
    assert_eq!(answers(&scene.types("y"))[0].2, "hash of c");
    let shown = scene.shown();
    assert!(
        shown.contains("run d?") && !shown.contains("run c?"),
        "{shown}"
    );
    assert!(!shown.contains("of 2"), "{shown}");
    scene.waits();
    scene.now += 1_000;
    assert_eq!(answers(&scene.types("n"))[0].2, "hash of d");
    assert!(!scene.shown().contains("may this run?"));
    // What could not be recorded is asked again.
    scene.app.error("the disk is full", None);
    scene.alt('y');
    assert!(scene.shown().contains("may this run? 1 of 2"));
}

#[test]
fn a_key_that_is_held_since_before_the_question_does_not_answer() {
    let mut scene = Scene::new();
    scene.types("y");
    scene.press(KeyCode::Backspace);
    scene.types("y");
    scene.press(KeyCode::Enter);
    scene.types("y");
    scene.app.set_draft("");
    scene.now += 10;
    scene.asks("run x?");
    scene.shown();
    // The first repetition comes late.
    for pause in [500, 40, 40, 140] {
        scene.now += pause;
        assert!(scene.types("y").is_empty());
    }
    scene.now += 300;
    assert_eq!(answers(&scene.types("y")).len(), 1);
}

#[test]
fn an_answer_that_is_typed_as_a_message_is_not_sent() {
    let mut scene = Scene::new();
    scene.asks("run x?");
    scene.waits();
    scene.press(KeyCode::Esc);
    scene.types("Yes.");
    assert_eq!(scene.press(KeyCode::Enter), []);
    let shown = scene.shown();
    assert!(shown.contains("┏━ may this run?"), "{shown}");
    assert!(
        shown.contains("not sent to the agent: answer the question"),
        "{shown}"
    );
}

#[test]
fn a_command_is_told_of_open_questions() {
    let mut scene = Scene::new();
    assert!(!scene.app.at_prompt().asks);
    scene.asks("run x?");
    assert!(scene.app.at_prompt().asks);
}

#[test]
fn a_question_that_is_no_approval_is_called_a_question() {
    let mut scene = Scene::new();
    let asked = Question {
        kind: QuestionKind::Budget,
        ..question("b", "go on?")
    };
    scene.happens(EventBody::Parked {
        questions: vec![asked],
    });
    scene.waits();
    let shown = scene.shown();
    assert!(!shown.contains("▲"), "{shown}");
    scene.press(KeyCode::Esc);
    let shown = scene.shown();
    assert!(
        shown.contains("▲ 1 question is open · Alt-Y shows it"),
        "{shown}"
    );
}

#[test]
fn a_command_is_edited_as_text_and_other_arguments_as_json() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"command": "touch a", "timeout": 3});
    asks_about(&mut scene, "exec", &arguments);
    scene.waits();
    scene.types("e");
    let shown = scene.shown();
    assert!(shown.contains("› touch a "), "{shown}");
    assert!(
        shown.contains("Enter runs the command as it is here"),
        "{shown}"
    );
    scene.types(" b");
    scene.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
    scene.types("ls");
    let shown = scene.shown();
    assert!(
        shown.contains("› touch a b ") && shown.contains("┃   ls "),
        "{shown}"
    );
    let value = serde_json::json!({"command": "touch a b\nls", "timeout": 3});
    let answered = answers(&scene.press(KeyCode::Enter));
    assert_eq!(answered[0].0, AnswerValue::value(value));
    let mut scene = Scene::new();
    asks_about(
        &mut scene,
        "fetch",
        &serde_json::json!({"url": "http://a", "n": 1}),
    );
    scene.waits();
    scene.types("e");
    let shown = scene.shown();
    assert!(shown.contains("\"url\": \"http://a\""), "{shown}");
    assert!(!shown.contains("{\"n\""), "{shown}");
}

#[test]
fn the_end_key_shows_the_end_of_a_long_question() {
    let mut scene = Scene::new();
    let lines: Vec<String> = (0..60).map(|at| format!("line {at}")).collect();
    scene.asks(&lines.join("\n"));
    scene.waits();
    scene.press(KeyCode::End);
    let shown = scene.shown();
    assert!(shown.contains("line 59"), "{shown}");
    scene.waits();
    assert_eq!(answers(&scene.types("y")).len(), 1);
}

#[test]
fn another_key_between_two_escapes_takes_nothing_back() {
    let mut scene = Scene::new();
    scene.app.note("something");
    scene.press(KeyCode::Esc);
    scene.press(KeyCode::Left);
    assert_eq!(scene.press(KeyCode::Esc), []);
    assert_eq!(scene.press(KeyCode::Esc).len(), 1);
}

#[test]
fn the_file_that_a_subagent_wants_to_write_is_read() {
    let mut scene = Scene::new();
    let arguments = serde_json::json!({"path": "a.txt", "content": "b"});
    let mut asked =
        question("c", "may it write?").of_child(&SessionId::new("s"), &CallId::new("c"));
    asked.subject.tool = "write_file".to_owned();
    asked.subject.arguments = arguments.clone();
    let hash = asked.hash.clone();
    scene.happens(EventBody::Parked {
        questions: vec![asked],
    });
    scene.shown();
    let look = scene.app.wants_look();
    assert_eq!(look, Some((hash, "write_file".to_owned(), arguments)));
}

#[test]
fn a_question_breaks_its_text_between_words() {
    let mut scene = Scene::new();
    let command = format!("touch {} a-second-file-with-a-long-name", "x".repeat(50));
    asks_about(
        &mut scene,
        "exec",
        &serde_json::json!({ "command": command }),
    );
    let shown = scene.shown();
    assert!(!shown.contains("a-seco "), "{shown}");
    let rows: Vec<&str> = shown
        .lines()
        .filter_map(|it| it.strip_prefix('┃'))
        .collect();
    let broken = rows
        .iter()
        .any(|it| it.trim_end_matches([' ', '┃']).ends_with('-'));
    assert!(broken, "{shown}");
}

//! The screen and what is around it: the clipboard of the desktop, images, and the ground of the terminal.

use crate::harness::{TestEnv, calls, says, serve};
use crate::person::Person;
use crate::screen::{REVIEW, copying, leave, open};
use rondo_testkit::Server;
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

/// The least that is recognized as an image.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const PNG_BASE64: &str = "iVBORw0KGgpyZXN0";
const CTRL_V: &str = "\x16";

/// A desktop whose clipboard is the file `clipboard` of the project.
fn desktop() -> TestEnv {
    let env = TestEnv::new();
    for (name, script) in [
        (
            "wl-copy",
            "#!/bin/sh\ncat > clipboard.new && mv clipboard.new clipboard\n",
        ),
        (
            "wl-paste",
            "#!/bin/sh\n[ \"$2\" = image/png ] && cat image\n",
        ),
    ] {
        let name = format!("programs/{name}");
        env.write(&name, script);
        let file = env.project().join(&name);
        std::fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}/programs:/usr/bin:/bin", env.project().display());
    env.var("PATH", &path).var("WAYLAND_DISPLAY", "wayland-9")
}

fn sent(server: &Server) -> String {
    server.requests()[0].json()["messages"].to_string()
}

#[tokio::test]
async fn what_is_copied_is_on_the_desktops_clipboard_too() {
    let server = serve(vec![says("It is **four**.")]).await;
    let env = desktop();
    let person = copying(&env, &server).await;
    let file = env.project().join("clipboard");
    let waiting = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while !file.exists() {
            tokio::task::yield_now().await;
        }
    });
    waiting.await.unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "It is **four**.");
    leave(person).await;
}

#[tokio::test]
async fn an_image_on_the_clipboard_is_a_chip_and_goes_along() {
    let server = serve(vec![says("A dot.")]).await;
    let env = desktop();
    env.write("image", PNG);
    let mut person = open(&env, &server, &[]).await;
    person.press(CTRL_V).await;
    person.shows("[image 1: clipboard-").await;
    person.press(" what is it?\r").await;
    person.shows("A dot.").await;
    let sent = sent(&server);
    assert!(
        sent.contains(&format!("data:image/png;base64,{PNG_BASE64}")),
        "{sent}"
    );
    leave(person).await;
}

#[tokio::test]
async fn where_no_image_is_to_be_had_the_screen_says_so() {
    let server = serve(vec![]).await;
    let env = desktop();
    let mut person = open(&env, &server, &[]).await;
    person.press(CTRL_V).await;
    person.shows("there is no image on the clipboard").await;
    leave(person).await;
    let env = TestEnv::new();
    let mut person = open(&env, &server, &[]).await;
    person.press(CTRL_V).await;
    person.shows("no program that reads images").await;
    leave(person).await;
}

#[tokio::test]
async fn the_path_of_an_image_is_pasted_as_a_chip_and_other_paths_as_they_are() {
    let server = serve(vec![says("A dot.")]).await;
    let env = TestEnv::new();
    env.write("my dot.png", PNG).write("words.png", "no image");
    let mut person = open(&env, &server, &[]).await;
    person.press("\x1b[200~words.png\x1b[201~").await;
    person.shows("│ words.png").await;
    let path = env.project().join("my dot.png");
    let pasted = path.display().to_string().replace(' ', "\\ ");
    person.press(&format!(" \x1b[200~{pasted}\x1b[201~")).await;
    person.shows("words.png [image 1: my dot.png]").await;
    person.press("\r").await;
    person.shows("A dot.").await;
    let sent = sent(&server);
    assert!(
        sent.contains(PNG_BASE64) && sent.contains("words.png"),
        "{sent}"
    );
    leave(person).await;
}

async fn on_a_ground(env: &TestEnv, server: &Server, ground: Option<&str>) -> Person {
    let url = server.url("/v1");
    let mut person = Person::start(env, &["-m", "openai/test", "--base-url", &url]);
    if let Some(ground) = ground {
        person.set_ground(ground);
    }
    person.shows("? help").await;
    person
}

#[tokio::test]
async fn a_terminal_that_tells_its_ground_gets_colours_for_it() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("COLORTERM", "truecolor");
    let mut frames = Vec::new();
    for ground in [Some("ff/ff/ff"), Some("1e1e/1e1e/2e2e"), None] {
        let person = on_a_ground(&env, &server, ground).await;
        frames.push(person.color_of("╭"));
        leave(person).await;
    }
    let colours = [
        vt100::Color::Rgb(0x5a, 0x5f, 0x6e),
        vt100::Color::Rgb(0x8f, 0x95, 0xa8),
        vt100::Color::Default,
    ];
    assert_eq!(frames, colours);
}

#[tokio::test]
async fn colours_follow_the_ground_when_the_terminal_is_looked_at_again() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("COLORTERM", "truecolor");
    let mut person = on_a_ground(&env, &server, Some("00/00/00")).await;
    person.press("some words").await;
    person.shows("some words").await;
    let dark = person.color_of("╭");
    person.set_ground("ff/ff/ff");
    person.press("\x1b[O\x1b[I").await;
    let light = vt100::Color::Rgb(0x5a, 0x5f, 0x6e);
    person.colors("╭", light).await;
    assert_ne!(dark, light);
    // Nothing of the answer was taken for keys.
    person.press("!").await;
    person.shows("│ some words! ").await;
    person.press("\x03").await;
    leave(person).await;
}

#[tokio::test]
async fn without_true_colours_those_are_used_that_can_be_read_on_the_ground() {
    let server = serve(vec![]).await;
    let env = TestEnv::new();
    let mut marks = Vec::new();
    for ground in [Some("ff/ff/ff"), Some("00/00/00")] {
        let mut person = on_a_ground(&env, &server, ground).await;
        person.press("/").await;
        person.shows("▸ /").await;
        marks.push(person.color_of("▸"));
        person.press("\x03").await;
        leave(person).await;
    }
    assert_eq!(marks, [vt100::Color::Idx(4), vt100::Color::Idx(6)]);
}

#[tokio::test]
async fn what_is_typed_before_the_terminal_answers_is_in_the_input() {
    let server = serve(vec![]).await;
    let env = TestEnv::new().var("COLORTERM", "truecolor");
    let url = server.url("/v1");
    let mut person = Person::start(&env, &["-m", "openai/test", "--base-url", &url]);
    person.press("early words").await;
    person.shows("│ early words").await;
    person.press("\x03").await;
    leave(person).await;
}

#[tokio::test]
async fn a_hunk_is_left_out_of_what_is_approved_and_the_model_reads_which() {
    let (old, new) = ("one\ntwo\nthree\n", "ONE\ntwo\nTHREE\n");
    let edit = json!({"path": "notes.txt", "old_string": old, "new_string": new});
    let server = serve(vec![calls("edit_file", &edit), says("Done.")]).await;
    let env = TestEnv::new();
    env.write("notes.txt", old);
    let mut person = open(&env, &server, &[]).await;
    person.press("mend it\r").await;
    person.shows("may this run?").await;
    person.press(REVIEW).await;
    person.shows("▸ hunk 1 of 2").await;
    person.press("\x1b[C").await;
    person.shows("▸ hunk 2 of 2").await;
    person.press("x").await;
    person
        .shows("▸ hunk 2 of 2 · left out, the lines stay as they are")
        .await;
    person.shows("y allow 1 of 2 hunks").await;
    person.press("y").await;
    person.shows("Done.").await;
    let notes = std::fs::read_to_string(env.project().join("notes.txt")).unwrap();
    assert_eq!(notes, "ONE\ntwo\nthree\n");
    let sent = server.requests()[1].json()["messages"].to_string();
    for part in ["applied 1 of the 2 hunks", "-three", "+THREE"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    leave(person).await;
}

#[tokio::test]
async fn a_file_that_is_written_over_is_asked_about_as_a_difference_to_what_is_there() {
    let old = "one\ntwo\nthree\n";
    let write = |content: &str| calls("write_file", &json!({"path": "f.txt", "content": content}));
    let server = serve(vec![
        write("ONE\ntwo\nTHREE\n"),
        says("First."),
        calls("write_file", &json!({"path": "new.txt", "content": "a\n"})),
        says("Second."),
    ])
    .await;
    let env = TestEnv::new();
    env.write("f.txt", old);
    let mut person = open(&env, &server, &[]).await;
    person.press("go\r").await;
    person.shows("may this run?").await;
    person.press(REVIEW).await;
    person.shows("changes the file").await;
    for row in ["1 - one", "1 + ONE", "2   two", "3 - three", "3 + THREE"] {
        person.shows(row).await;
    }
    person.shows("y allow").await;
    // What was shown is not what would be changed any more.
    env.write("f.txt", "one\ntwo\nthree and a half\n");
    person.press("y").await;
    person.shows("Asked again").await;
    person.shows("may this run?").await;
    person.press(REVIEW).await;
    person.shows("3 - three and a half").await;
    person.press("x").await;
    person.shows("y allow 1 of 2 hunks").await;
    person.press("y").await;
    person.shows("First.").await;
    let read = |name: &str| std::fs::read_to_string(env.project().join(name)).unwrap();
    assert_eq!(read("f.txt"), "one\ntwo\nTHREE\n");
    person.press("on\r").await;
    person.shows("may this run?").await;
    person.press(REVIEW).await;
    person.shows("a new file").await;
    person.shows("1 + a").await;
    person.shows("y allow").await;
    person.press("y").await;
    person.shows("Second.").await;
    assert_eq!(read("new.txt"), "a\n");
    leave(person).await;
}

#[tokio::test]
async fn an_edit_is_asked_about_and_shown_as_a_difference_side_by_side_where_there_is_room() {
    let edit =
        json!({"path": "notes.txt", "old_string": "second line", "new_string": "another line"});
    let server = serve(vec![calls("edit_file", &edit), says("Done.")]).await;
    let env = TestEnv::new();
    env.write("notes.txt", "first\nsecond line\nthird\n");
    let url = server.url("/v1");
    let args = ["-m", "openai/test", "--base-url", &url];
    let mut person = Person::start_wide(&env, 140, &args);
    person.shows("? help").await;
    person.press("mend it\r").await;
    person.shows("may this run?").await;
    person.press(REVIEW).await;
    person.shows("y allow").await;
    let asked = person.screen();
    let row = asked
        .lines()
        .find(|it| it.contains("2 - second line"))
        .unwrap();
    assert!(row.contains(" │ 2 + another line"), "{asked}");
    assert!(asked.contains("3   third"), "{asked}");
    person.press("y").await;
    person.shows("Done.").await;
    let shown = person.screen();
    let row = shown
        .lines()
        .find(|it| it.contains("2 - second line"))
        .unwrap();
    assert!(row.contains(" │ 2 + another line"), "{shown}");
    person.resize(40, 80);
    person.shows("  │ 2 + another line").await;
    leave(person).await;
}

#[tokio::test]
async fn a_person_who_looks_elsewhere_is_called_when_a_turn_ends_if_they_want_that() {
    for (how, called) in [
        ("desktop", Some("9;rondo · project: the turn has ended")),
        ("title", Some("● the turn has ended · rondo · project")),
        ("off", None),
    ] {
        let server = serve(vec![says("Four."), says("Five.")]).await;
        let env = TestEnv::new().var("RONDO_TUI_NOTIFY", how);
        let mut person = open(&env, &server, &[]).await;
        person.press("2+2?\r").await;
        person.shows("Four.").await;
        person.shows("1 step ·").await;
        let is_called =
            |person: &Person| person.told().iter().any(|it| Some(it.as_str()) == called);
        assert!(!is_called(&person), "{how}");
        person.press("\x1b[O").await;
        person.press("and now?\r").await;
        person.shows_times("1 step ·", 2).await;
        assert_eq!(
            is_called(&person),
            called.is_some(),
            "{how}: {:?}",
            person.told()
        );
        if how == "title" {
            person.press("\x1b[I").await;
            person.press("x").await;
            person.shows("│ x ").await;
            assert_eq!(person.told().last().unwrap(), "rondo · project");
            person.press("\x7f").await;
        }
        leave(person).await;
    }
}

#[tokio::test]
async fn the_status_names_the_directory_and_its_branch_and_leaving_how_to_go_on() {
    let server = serve(vec![says("Four.")]).await;
    let env = TestEnv::new();
    env.write(".git/HEAD", "ref: refs/heads/topic\n");
    let mut person = open(&env, &server, &[]).await;
    person.shows("project (topic)").await;
    person.press("2+2?\r").await;
    person.shows("1 step ·").await;
    person.press("\x04").await;
    assert_eq!(person.code().await, Some(0));
    assert!(
        person.all().contains("continue with `rondo -c`"),
        "{}",
        person.all()
    );
    let mut person = open(&env, &server, &[]).await;
    person.press("\x04").await;
    assert_eq!(person.code().await, Some(0));
    assert!(!person.all().contains("continue with"), "{}", person.all());
}

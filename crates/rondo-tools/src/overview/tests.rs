//! Tests: the parts of a directory that are shown, and those that are not.

use super::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn overview(dir: &Path, question: &str) -> Overview {
    Overview::of(&Arc::new(Workspace::open(dir).unwrap()), question)
}

#[test]
fn files_are_listed_with_their_lines_and_the_one_that_fits_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            (".git/HEAD", "ref: refs/heads/feature/x\n"),
            (".env", "TOKEN=pump\n"),
            (".gitignore", "build\n"),
            ("build/pump.txt", "pump\n"),
            (
                "notes/pump.txt",
                "The pump was built in 1987.\nIt is red.\n",
            ),
            ("photo.jpg", "\0\u{1}"),
            ("readme.md", "# Plant\nSee the pump house.\n"),
        ],
    );
    assert_eq!(
        overview(dir.path(), "When was the pump built?").to_string(),
        "<files>\n(git repository, branch feature/x)\nphoto.jpg\nreadme.md (2 lines)\n\
         notes/ has 1 files: pump.txt (2 lines)\n\
         (most lines: notes/pump.txt)\n</files>\n\
         <found>\nnotes/pump.txt:\nThe pump was built in 1987.\nIt is red.\n\
         readme.md:2: See the pump house.\n\
         notes/pump.txt:1: The pump was built in 1987.\n</found>\n(If <found> holds the answer, answer now.)"
    );
    let none = overview(dir.path(), "Who painted the Mona Lisa?").to_string();
    assert!(
        none.contains("</files>\n<found>\nNo file has `paint`, `mona`, `lisa`\n</found>"),
        "{none}"
    );
    let words = overview(dir.path(), "What is it?").to_string();
    assert!(words.ends_with("</files>"), "{words}");
}

#[test]
fn lines_of_a_long_file_are_shown_by_number_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let log: String = (0..200)
        .map(|n| match n % 50 {
            7 => format!("{n} pump stopped\n"),
            _ => format!("{n} all is well today\n"),
        })
        .collect();
    write(dir.path(), &[("app.log", &log)]);
    let shown = overview(dir.path(), "How often has the pump stopped?").to_string();
    assert_eq!(
        shown,
        "<files>\napp.log (200 lines)\n</files>\n<found>\napp.log:8: 7 pump stopped\n\
         app.log:58: 57 pump stopped\napp.log:108: 107 pump stopped\napp.log:158: 157 pump stopped\n\
         4 lines of app.log with `pump` and `stopp`\n</found>\n(If <found> holds the answer, answer now.)"
    );
}

#[test]
fn files_are_counted_and_no_other_number_could_be_taken_for_their_count() {
    let dir = tempfile::tempdir().unwrap();
    for n in 10..30 {
        let path = format!("crates/part-{n}/src/rust.rs");
        write(dir.path(), &[(&path, "// Rust\n"), ("Cargo.toml", "")]);
    }
    assert_eq!(
        overview(
            dir.path(),
            "How many Rust files are under the directory crates?"
        )
        .to_string(),
        "<files>\nCargo.toml (0 lines)\ncrates/: part-10/, part-11/, part-12/, part-13/, part-14/, part-15/, \
         part-16/, part-17/, ...\ncrates/part-10/: src/\ncrates/part-11/: src/\ncrates/part-12/: src/\n\
         crates/part-13/: src/\ncrates/part-14/: src/\ncrates/part-15/: src/\ncrates/part-16/: src/\n\
         ... and more files and directories\n(most lines: crates/part-10/src/rust.rs)\n</files>\n\
         <found>\ncrates/ has 20 files *.rs, in it and below\n</found>\n\
         (If <found> holds the answer, answer now.)"
    );
    for n in 10..30 {
        write(dir.path(), &[(&format!("{n}.txt"), "")]);
    }
    let shown = overview(dir.path(), "Is it Rust?").to_string();
    assert!(
        shown.contains("21.txt (0 lines)\n... and more files\n"),
        "{shown}"
    );
}

#[test]
fn a_count_of_what_stands_in_files_that_were_not_read_is_not_answered_at_once() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            ("a.log", "pump\npump\n"),
            ("large.log", &"pump\n".repeat(20_000)),
        ],
    );
    let found =
        "<files>\na.log (2 lines)\nlarge.log\n</files>\n<found>\na.log:\npump\npump\n</found>";
    let shown = |question: &str| overview(dir.path(), question).to_string();
    assert_eq!(shown("How many pumps has this directory?"), found);
    assert_eq!(
        shown("How many lines has large.log?"),
        "<files>\na.log (2 lines)\nlarge.log\n</files>\n<found>\nlarge.log has 20000 lines\n</found>\n\
         (If <found> holds the answer, answer now.)"
    );
    let named = overview(dir.path(), "How many pumps are in a.log?").to_string();
    assert!(
        named.ends_with(
            "\n2 lines of a.log with `pump`\n</found>\n(If <found> holds the answer, answer now.)"
        ),
        "{named}"
    );
    let other = overview(dir.path(), "Where is the pump?").to_string();
    assert!(other.ends_with("answer now.)"), "{other}");
}

#[test]
fn what_is_above_is_read_before_what_is_deep_in_a_large_directory() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[("z.txt", "The pump is red.\n")]);
    for n in 0..2_100 {
        write(dir.path(), &[(&format!("a/b/{n}.txt"), "")]);
    }
    let shown = overview(dir.path(), "Which colour has the pump?").to_string();
    assert!(
        shown.contains("z.txt:\nThe pump is red.\n") && !shown.contains("most lines"),
        "{shown}"
    );
    assert!(
        shown.contains("\na/: b/\n") && shown.contains("\n... and more files and directories\n"),
        "{shown}"
    );
}

#[test]
fn a_table_is_summed_up_and_its_line_with_all_words_shown_once_more() {
    let dir = tempfile::tempdir().unwrap();
    let table = "ship,port,tons\nAda,Oslo,40\nBo,Oslo,70\nAda,Turku,90\n";
    write(dir.path(), &[("ships.csv", table)]);
    assert_eq!(
        overview(dir.path(), "How many tons has the Ada from Turku?").to_string(),
        "<files>\nships.csv (4 lines)\n</files>\n<found>\nships.csv:\nship,port,tons\nAda,Oslo,40\n\
         Bo,Oslo,70\nAda,Turku,90\n3 rows\n\
         tons: least Ada,Oslo,40; greatest Ada,Turku,90; sum 200; mean 66.6667\n\
         ships.csv:4: Ada,Turku,90\n</found>\n(If <found> holds the answer, answer now.)"
    );
    let rows: String = (0..400)
        .map(|it| format!("ship {it},Oslo,{it}\n"))
        .collect();
    write(
        dir.path(),
        &[("ships.csv", &format!("ship,port,tons\n{rows}"))],
    );
    let shown = overview(dir.path(), "Which ship has the most tons?").to_string();
    assert!(
        shown.contains("\nships.csv:1: ship,port,tons\n400 rows\ntons: least"),
        "{shown}"
    );
    assert!(
        shown.contains("greatest ship 399,Oslo,399; sum 79800"),
        "{shown}"
    );
}

#[test]
fn a_file_that_may_not_be_read_is_only_named() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[("a.txt", "pump 1\npump 2\n"), ("b.txt", "pump 3\n")],
    );
    let found = overview(dir.path(), "How many pumps?");
    assert_eq!(found.shown_files(), ["a.txt", "b.txt"]);
    let shown = found.without("a.txt").to_string();
    assert!(
        shown.contains("a.txt (2 lines)") && shown.contains("pump 3"),
        "{shown}"
    );
    assert!(
        !shown.contains("pump 1") && !shown.contains("lines of a.txt"),
        "{shown}"
    );
}

#[test]
fn lines_of_a_file_that_may_not_be_read_are_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[(".env", "TOKEN=1\nKEY=2\n")]);
    let found = overview(dir.path(), "How many lines has .env?");
    assert_eq!(found.shown_files(), [".env"]);
    assert!(found.to_string().contains(".env has 2 lines"), "{found}");
    let without = found.without(".env").to_string();
    assert!(!without.contains("2 lines"), "{without}");
}

#[test]
fn links_pipes_and_large_files_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), &[("secret.txt", "pump secret\n")]);
    let inside = dir.path().join("inside");
    fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.txt"), inside.join("file")).unwrap();
    let pipe = inside.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    write(&inside, &[("large.txt", &"pump\n".repeat(20_000))]);
    let shown = overview(&inside, "Where is the pump?").to_string();
    assert_eq!(shown, "<files>\nlarge.txt\n</files>");
}

#[test]
fn the_text_is_short_whatever_the_directory_holds() {
    let dir = tempfile::tempdir().unwrap();
    let long = "pump ".repeat(2_000);
    for n in 0..400 {
        let name = format!("{n}-{}.txt", "n".repeat(150));
        write(
            dir.path(),
            &[
                (&name, &long),
                (&format!("{n}\nevil/pump.txt"), "pump\npump\n"),
            ],
        );
    }
    let started = Instant::now();
    let shown = overview(dir.path(), "pump ".repeat(10_000).as_str()).to_string();
    assert!(shown.chars().count() < 4_500, "{}", shown.len());
    assert!(!shown.contains("\nevil"), "{shown}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

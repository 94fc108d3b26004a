//! Tests: what is shown of a directory, and what is not.

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
    assert!(shown.contains("more files"), "{shown}");
    assert!(!shown.contains("\nevil"), "{shown}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

use crate::bench::Bench;
use rondo_tools::Workspace;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

#[tokio::test]
async fn entries_are_sorted_and_ignored_ones_left_out() {
    let bench = Bench::new();
    bench.file(".gitignore", "target/\n*.log\n");
    bench.file(".hidden/x", "");
    bench.file("target/debug/x", "");
    bench.file("b.rs", "12");
    bench.file("a/c.rs", "123");
    bench.file("a/d.log", "");
    bench.file("a/.gitignore", "e.rs\n");
    bench.file("a/e.rs", "");
    assert_eq!(
        bench.text("list_files", json!({})).await,
        "[.: 2 files with bytes and lines, 1 directories; the longest is a/c.rs with 1 lines; the largest is a/c.rs with 3 bytes]\na/\na/c.rs\t3\t1\nb.rs\t2\t1\n"
    );
}

#[tokio::test]
async fn globs_and_depth_narrow_a_listing() {
    let bench = Bench::new();
    for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/deep/d.toml"] {
        bench.file(name, "");
    }
    for (arguments, expected) in [
        (
            json!({"glob": "*.rs"}),
            "[.: 3 files with bytes and lines, 0 directories]\na.rs\t0\t0\nsrc/b.rs\t0\t0\nsrc/deep/c.rs\t0\t0\n",
        ),
        (
            json!({"glob": "src/*.rs"}),
            "[.: 1 files with bytes and lines, 0 directories]\nsrc/b.rs\t0\t0\n",
        ),
        (
            json!({"glob": "src/**/*.toml"}),
            "[.: 1 files with bytes and lines, 0 directories]\nsrc/deep/d.toml\t0\t0\n",
        ),
        (
            json!({"path": "src", "glob": "deep/*.{rs,toml}"}),
            "[src: 2 files with bytes and lines, 0 directories]\nsrc/deep/c.rs\t0\t0\nsrc/deep/d.toml\t0\t0\n",
        ),
        (
            json!({"depth": 1}),
            "[.: 1 files with bytes and lines, 1 directories; only 1 deep, leave out `depth` to look deeper]\na.rs\t0\t0\nsrc/\n",
        ),
        (
            json!({"path": "src", "depth": 1}),
            "[src: 1 files with bytes and lines, 1 directories; only 1 deep, leave out `depth` to look deeper]\nsrc/b.rs\t0\t0\nsrc/deep/\n",
        ),
        (
            // Zero and an empty text are how small models leave an argument out.
            json!({"path": "", "glob": "*.toml", "depth": 0}),
            "[.: 1 files with bytes and lines, 0 directories]\nsrc/deep/d.toml\t0\t0\n",
        ),
        (
            json!({"path": "./src/deep"}),
            "[./src/deep: 2 files with bytes and lines, 0 directories]\nsrc/deep/c.rs\t0\t0\nsrc/deep/d.toml\t0\t0\n",
        ),
    ] {
        assert_eq!(
            bench.text("list_files", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
    let message = bench.invalid("list_files", json!({"glob": "a[b"})).await;
    assert!(message.starts_with("`glob` is invalid: "), "{message}");
}

#[tokio::test]
async fn entries_of_a_listing_are_bounded_and_all_are_counted() {
    let bench = Bench::new();
    for number in 0..999 {
        bench.file(&format!("{number:04}"), "");
    }
    for (count, truncated) in [(999, false), (1_000, false), (1_001, true)] {
        bench.file(&format!("{:04}", count - 1), "");
        let output = bench.ok("list_files", json!({})).await;
        let text = output.value.as_str().unwrap();
        assert_eq!(output.truncated, truncated, "{count}");
        assert_eq!(text.lines().count(), 1 + count.min(1_000));
        assert!(text.starts_with(&format!("[.: {count} files")), "{count}");
    }
}

#[tokio::test]
async fn names_that_are_no_utf_8_are_shown() {
    let bench = Bench::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(bench.inside.path().join(name), "found\n").unwrap();
    let text = bench.text("list_files", json!({})).await;
    assert!(text.contains("caf\u{fffd}.txt\t6"), "{text}");
    let text = bench
        .text("search_files", json!({"pattern": "found"}))
        .await;
    assert!(text.contains("1:found"), "{text}");
}

#[tokio::test]
async fn only_directories_are_listed() {
    let bench = Bench::new();
    bench.file("f", "");
    assert_eq!(
        bench.failed("list_files", json!({"path": "f"})).await,
        "`f` is not a directory"
    );
    assert_eq!(
        bench.failed("list_files", json!({"path": "none"})).await,
        "`none` does not exist"
    );
}

#[tokio::test]
async fn rules_above_a_start_and_above_a_root_hold_and_deeper_ones_overrule() {
    let bench = Bench::new();
    bench.file(".git/HEAD", "");
    bench.file(".gitignore", "built/\n*.tmp\n");
    bench.file("crate/.gitignore", "!keep.tmp\n");
    bench.file("crate/.ignore", "docs\n");
    for name in [
        "a.rs",
        "a.tmp",
        "keep.tmp",
        "built/x",
        "docs/y",
        "src/b.tmp",
        "src/b.rs",
    ] {
        bench.file(&format!("crate/{name}"), "");
    }
    assert_eq!(
        bench.text("list_files", json!({"path": "crate"})).await,
        "[crate: 3 files with bytes and lines, 1 directories]\n\
         crate/a.rs\t0\t0\ncrate/keep.tmp\t0\t0\ncrate/src/\ncrate/src/b.rs\t0\t0\n"
    );
    let below = Bench {
        workspace: Arc::new(Workspace::open(bench.path("crate")).unwrap()),
        ..bench
    };
    assert_eq!(
        below.text("list_files", json!({})).await,
        "[.: 3 files with bytes and lines, 1 directories]\na.rs\t0\t0\nkeep.tmp\t0\t0\nsrc/\nsrc/b.rs\t0\t0\n"
    );
}

#[tokio::test]
async fn ignore_files_that_never_end_are_not_read() {
    let bench = Bench::new();
    bench.file("a/x", "");
    bench.file("b/x", "");
    bench.link("/dev/zero", "a/.gitignore");
    let made = std::process::Command::new("mkfifo")
        .arg(bench.path("b/.gitignore"))
        .status();
    assert!(made.unwrap().success());
    assert_eq!(
        bench.text("list_files", json!({})).await,
        "[.: 2 files with bytes and lines, 2 directories]\na/\na/x\t0\t0\nb/\nb/x\t0\t0\n"
    );
}

#[tokio::test]
async fn the_largest_and_the_longest_file_are_told_apart_and_what_is_no_text_has_no_lines() {
    let bench = Bench::new();
    bench.file("tall.rs", "x\n".repeat(20));
    bench.file("wide.rs", format!("{}\nend", "x".repeat(100)));
    bench.file("z.bin", [0_u8, b'\n', b'\n']);
    assert_eq!(
        bench.text("list_files", json!({})).await,
        "[.: 3 files with bytes and lines, 0 directories; the longest is tall.rs with 20 lines; the largest is wide.rs with 104 bytes]\ntall.rs\t40\t20\nwide.rs\t104\t2\nz.bin\t3\n"
    );
}

#[tokio::test]
async fn a_listing_too_large_to_count_goes_without_lines() {
    let bench = Bench::new();
    for index in 0..201 {
        bench.file(&format!("{index:03}.txt"), "a\n");
    }
    let listed = bench.text("list_files", json!({})).await;
    assert!(
        listed.starts_with("[.: 201 files with bytes, 0 directories"),
        "{listed:.80}"
    );
    assert!(listed.contains("\n000.txt\t2\n"));
    let part = bench.text("list_files", json!({"glob": "00*.txt"})).await;
    assert!(part.contains("\n000.txt\t2\t1\n"), "{part}");
}

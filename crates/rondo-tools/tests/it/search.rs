use crate::bench::{Bench, invocation};
use rondo_types::ToolErrorCode;
use serde_json::json;
use std::fs::File;
use std::io::Write;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn matches_stand_under_their_file_with_line_numbers() {
    let bench = Bench::new();
    bench.file("b.rs", "fn one() {}\r\nlet x;\r\nfn two() {}\r\n");
    bench.file("a/c.rs", "fn three() {}");
    bench.file("notes", "nothing");
    assert_eq!(
        bench
            .text("search_files", json!({"pattern": r"fn \w+\(\) \{\}$"}))
            .await,
        "[`fn \\w+\\(\\) \\{\\}$`: 3 matching lines in 2 files, 3 searched]\n\
         a/c.rs\n1:fn three() {}\n\nb.rs\n1:fn one() {}\n3:fn two() {}\n\n"
    );
    assert_eq!(
        bench
            .text("search_files", json!({"pattern": "absent"}))
            .await,
        "[`absent`: 0 matching lines in 0 files, 3 searched]\n"
    );
}

#[tokio::test]
async fn the_end_of_a_pattern_meets_the_end_of_lines_of_each_kind() {
    let bench = Bench::new();
    bench.file("lf", "hello world\n\nworld at first\nthe world\n");
    bench.file("crlf", "hello world\r\n\r\nworld at first\r\nthe world\r\n");
    bench.file("open", "hello world\n\nthe world");
    for (pattern, expected) in [
        (
            "world$",
            "crlf\n1:hello world\n4:the world\n\nlf\n1:hello world\n4:the world\n\nopen\n1:hello world\n3:the world\n\n",
        ),
        ("^$", "crlf\n2:\n\nlf\n2:\n\nopen\n2:\n\n"),
        (
            "^the world$",
            "crlf\n4:the world\n\nlf\n4:the world\n\nopen\n3:the world\n\n",
        ),
        (
            r"^hello\s+world\s*$",
            "crlf\n1:hello world\n\nlf\n1:hello world\n\nopen\n1:hello world\n\n",
        ),
        (
            r"(?m)t$",
            "crlf\n3:world at first\n\nlf\n3:world at first\n\n",
        ),
        (
            r"d\b.?$",
            "crlf\n1:hello world\n4:the world\n\nlf\n1:hello world\n4:the world\n\nopen\n1:hello world\n3:the world\n\n",
        ),
    ] {
        for context in [0, 1] {
            let arguments = json!({"pattern": pattern, "context": context});
            let text = bench.text("search_files", arguments).await;
            let (_, found) = text.split_once("]\n").unwrap();
            let matches = |text: &str| -> Vec<String> {
                let is_match = |line: &&str| line.contains(':');
                text.lines().filter(is_match).map(str::to_owned).collect()
            };
            assert_eq!(matches(found), matches(expected), "{pattern}: {text}");
            assert!(context > 0 || found == expected, "{pattern}: {text}");
        }
    }
}

#[tokio::test]
async fn options_narrow_and_widen_a_search() {
    let bench = Bench::new();
    bench.file("a.rs", "one\nTWO\nthree\nfour\nfive\nsix\ntwo\n");
    bench.file("d/b.txt", "two\n");
    for (arguments, expected) in [
        (
            json!({"pattern": "two", "glob": "*.rs"}),
            "1 matching lines in 1 files, 1 searched]\na.rs\n7:two\n\n",
        ),
        (
            json!({"pattern": "two", "path": "d"}),
            "1 matching lines in 1 files, 1 searched]\nd/b.txt\n1:two\n\n",
        ),
        (
            json!({"pattern": "two", "path": "a.rs", "case_insensitive": true}),
            "2 matching lines in 1 files, 1 searched]\na.rs\n2:TWO\n7:two\n\n",
        ),
        (
            json!({"pattern": "(?i)two", "path": "a.rs", "context": 1}),
            "2 matching lines in 1 files, 1 searched]\na.rs\n1-one\n2:TWO\n3-three\n--\n6-six\n7:two\n\n",
        ),
    ] {
        let text = bench.text("search_files", arguments.clone()).await;
        assert!(text.ends_with(expected), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn results_are_bounded_as_asked() {
    let bench = Bench::new();
    bench.file("f", "x\n".repeat(5));
    for (max, shown, truncated) in [(4, 4, true), (5, 5, false), (6, 5, false)] {
        let output = bench
            .ok("search_files", json!({"pattern": "x", "max_results": max}))
            .await;
        let text = output.value.as_str().unwrap();
        assert_eq!(output.truncated, truncated, "{max}");
        assert_eq!(text.contains("there is more"), truncated, "{max}");
        assert_eq!(text.matches(":x").count(), shown, "{max}");
    }
    bench.file("f", format!("{}\n", "y".repeat(390)).repeat(1_000));
    let output = bench
        .ok(
            "search_files",
            json!({"pattern": "y", "max_results": 1_000}),
        )
        .await;
    assert!(output.truncated);
    assert!(output.value.as_str().unwrap().len() < 51_000);
}

#[tokio::test]
async fn long_lines_are_cut() {
    let bench = Bench::new();
    for (length, cut) in [(399, false), (400, false), (401, true)] {
        bench.file("f", "é".repeat(length));
        let output = bench.ok("search_files", json!({"pattern": "é"})).await;
        assert_eq!(output.truncated, cut, "{length}");
        assert_eq!(
            output.value.as_str().unwrap().contains("é [cut]"),
            cut,
            "{length}"
        );
    }
}

#[tokio::test]
async fn binary_hidden_and_ignored_files_are_left_out() {
    let bench = Bench::new();
    bench.file("bin", b"\0needle\n");
    bench.file(".hidden", "needle\n");
    bench.file(".gitignore", "ignored\n");
    bench.file("ignored", "needle\n");
    bench.file("f", "needle\n");
    let text = bench
        .text("search_files", json!({"pattern": "needle"}))
        .await;
    assert!(text.contains("1 matching lines in 1 files"), "{text}");
}

#[tokio::test]
async fn a_line_beyond_all_memory_leaves_its_file_out() {
    let bench = Bench::new();
    bench.file("long", "x".repeat(5 << 20));
    bench.file("short", "x");
    let text = bench.text("search_files", json!({"pattern": "x"})).await;
    assert!(
        text.contains("1 searched, 1 could not be searched"),
        "{}",
        &text[..80]
    );
}

#[tokio::test]
async fn patterns_that_are_none_are_named() {
    let bench = Bench::new();
    for (pattern, what) in [
        ("(", "unclosed group"),
        ("a{1000000000}", "exceeds"),
        ("(?=a)", "look-around"),
        (&"x".repeat(4_001), "too long"),
    ] {
        let message = bench
            .invalid("search_files", json!({"pattern": pattern}))
            .await;
        assert!(message.starts_with("`pattern` is invalid: "), "{message}");
        assert!(message.contains(what), "{message}");
    }
}

#[tokio::test]
async fn hub_34_a_search_in_a_huge_file_ends_when_cancelled() {
    let bench = Bench::new();
    let mut file = File::create(bench.path("huge")).unwrap();
    for _ in 0..64 {
        file.write_all("some text\n".repeat(100_000).as_bytes())
            .unwrap();
    }
    let cancel = CancellationToken::new();
    let tool = bench.tool("search_files");
    let call = tool.call(invocation(json!({"pattern": "x{3}y"}), cancel.clone()));
    let (outcome, ()) = tokio::join!(call, async { cancel.cancel() });
    assert_eq!(outcome.code(), Some(ToolErrorCode::Cancelled));
}

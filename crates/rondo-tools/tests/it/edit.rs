use crate::bench::Bench;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[tokio::test]
async fn one_match_is_replaced_and_shown_as_a_diff() {
    let bench = Bench::new();
    let path = bench.file("f.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let arguments =
        json!({"path": "f.rs", "old_string": "fn b() {}", "new_string": "fn b() { c() }"});
    let output = bench.ok("edit_file", arguments).await;
    assert_eq!(
        output.value,
        json!({
            "path": "f.rs",
            "replacements": 1,
            "bytes": 35,
            "diff": "--- f.rs\n+++ f.rs\n@@ -1,3 +1,3 @@\n fn a() {}\n-fn b() {}\n+fn b() { c() }\n fn c() {}\n"
        })
    );
    assert_eq!(
        bench.content("f.rs"),
        "fn a() {}\nfn b() { c() }\nfn c() {}\n"
    );
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[tokio::test]
async fn no_match_says_so_with_the_nearest_place() {
    let bench = Bench::new();
    bench.file("f", "if x {\n\treturn  1;\n}\nend\n");
    for (old, message) in [
        (
            "nothing like it",
            "`old_string` does not occur in `f` (0 matches)",
        ),
        (
            "if x {\n    return 1;\n}",
            "`old_string` does not occur in `f` (0 matches); it differs only in white space from\n\
             line 1:\nif x {\n\treturn  1;\n}\n\
             the first 7 characters of `old_string` are there; on line 2, column 1, the file has a tab, and `old_string` has a \
             space",
        ),
        (
            "end\nmore",
            "`old_string` does not occur in `f` (0 matches); its first line is on line 4: `end`\n\
             the first 4 characters of `old_string` are there; on line 5, column 1, the file ends, and `old_string` has `m`",
        ),
        ("\n\n\n", "`old_string` does not occur in `f` (0 matches)"),
    ] {
        let arguments = json!({"path": "f", "old_string": old, "new_string": "x"});
        assert_eq!(bench.failed("edit_file", arguments).await, message);
    }
    assert_eq!(bench.content("f"), "if x {\n\treturn  1;\n}\nend\n");
}

#[tokio::test]
async fn several_matches_need_replace_all() {
    let bench = Bench::new();
    bench.file("f", "a\nb\na a\n");
    let arguments = json!({"path": "f", "old_string": "a", "new_string": "c"});
    assert_eq!(
        bench.failed("edit_file", arguments).await,
        "`old_string` occurs more than once in `f`: on lines 1, 3, 3; include more lines around it, \
         or set `replace_all`"
    );
    assert_eq!(bench.content("f"), "a\nb\na a\n");
    let arguments = json!({"path": "f", "old_string": "a", "new_string": "c", "replace_all": true});
    let output = bench.ok("edit_file", arguments).await;
    assert_eq!(output.value["replacements"], 3);
    assert_eq!(bench.content("f"), "c\nb\nc c\n");
}

#[tokio::test]
async fn overlapping_matches_are_not_unique() {
    let bench = Bench::new();
    bench.file("f", "}\n}\n}\n");
    let arguments = json!({"path": "f", "old_string": "}\n}", "new_string": "x"});
    let message = bench.failed("edit_file", arguments).await;
    assert!(message.contains("on lines 1, 2;"), "{message}");
}

#[tokio::test]
async fn many_matches_are_named_within_a_bound() {
    let bench = Bench::new();
    bench.file("f", "a\n".repeat(10_000));
    let arguments = json!({"path": "f", "old_string": "a", "new_string": "c"});
    let message = bench.failed("edit_file", arguments).await;
    assert!(message.contains("7, 8 and more;"), "{message}");
}

#[tokio::test]
async fn line_ends_and_byte_order_mark_are_kept() {
    let bench = Bench::new();
    bench.file("f", "\u{feff}one\r\ntwo\r\nthree\r\n");
    let arguments = json!({"path": "f", "old_string": "one\ntwo", "new_string": "1\n2\n2.5"});
    bench.ok("edit_file", arguments).await;
    assert_eq!(bench.content("f"), "\u{feff}1\r\n2\r\n2.5\r\nthree\r\n");
    let arguments = json!({"path": "f", "old_string": "three", "new_string": "3\r\n4"});
    bench.ok("edit_file", arguments).await;
    assert_eq!(bench.content("f"), "\u{feff}1\r\n2\r\n2.5\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn mixed_line_ends_stay_where_they_are() {
    for (before, old, new, after) in [
        ("a\r\nb\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\nc\r\n"),
        ("a\nb\r\nc\n", "b\nc", "b\nbb\nc", "a\nb\r\nbb\r\nc\n"),
        ("a\nb\r\nc\n", "b", "b\nbb", "a\nb\r\nbb\r\nc\n"),
        ("a\r\nb\nc\nd\n", "b\nc", "e", "a\r\ne\nd\n"),
        ("a\r\nb\nc", "\nb", "\nx", "a\r\nx\nc"),
        ("a\r\nb\n\r\nc\n", "\n\nc", "\nc", "a\r\nb\nc\n"),
        ("a\nb\r\nc\n", "b\r\nc", "x\r\ny", "a\nx\r\ny\n"),
        (
            "x=\u{e4}\r\nx=\u{e4}\nx=\u{f6}\n",
            "x=\u{e4}\nx=\u{f6}",
            "y",
            "x=\u{e4}\r\ny\n",
        ),
    ] {
        let bench = Bench::new();
        bench.file("f", before);
        let arguments = json!({"path": "f", "old_string": old, "new_string": new});
        bench.ok("edit_file", arguments).await;
        assert_eq!(bench.content("f"), after, "{before:?} {old:?}");
    }
    let bench = Bench::new();
    bench.file("f", "a\nb\r\na\r\nb\n");
    let arguments =
        json!({"path": "f", "old_string": "a\nb\n", "new_string": "c\n", "replace_all": true});
    let output = bench.ok("edit_file", arguments).await;
    assert_eq!(output.value["replacements"], 2);
    assert_eq!(bench.content("f"), "c\nc\r\n");
}

#[tokio::test]
async fn a_refused_edit_says_which_character_differs() {
    let bench = Bench::new();
    bench.file("f", "first\n\tlet name = \u{2018}x\u{2019};\n");
    let arguments = json!({"path": "f", "old_string": "let name = 'x';", "new_string": "y"});
    let message = bench.failed("edit_file", arguments).await;
    let end = "the first 11 characters of `old_string` are there; on line 2, column 13, the file has a curly single quote \
               (U+2018), and `old_string` has `'`";
    assert!(message.ends_with(end), "{message}");
    let arguments = json!({"path": "f", "old_string": "first\n    let", "new_string": "y"});
    let message = bench.failed("edit_file", arguments).await;
    assert!(
        message.contains("the file has a tab, and `old_string` has a space"),
        "{message}"
    );
}

#[tokio::test]
async fn senseless_edits_are_refused() {
    let bench = Bench::new();
    bench.file("f", "a");
    for (old, new) in [("", "x"), ("a", "a")] {
        bench
            .invalid(
                "edit_file",
                json!({"path": "f", "old_string": old, "new_string": new}),
            )
            .await;
    }
}

#[tokio::test]
async fn files_that_are_no_text_are_refused() {
    let bench = Bench::new();
    bench.file("latin", b"caf\xe9");
    bench.file("bin", b"a\0b");
    for path in ["latin", "bin"] {
        let arguments = json!({"path": path, "old_string": "a", "new_string": "b"});
        let message = bench.failed("edit_file", arguments).await;
        assert!(message.contains("not UTF-8"), "{message}");
    }
}

#[tokio::test]
async fn the_size_of_an_edited_file_is_bounded() {
    let bench = Bench::new();
    for (length, fits) in [
        ((10 << 20) - 1, true),
        (10 << 20, true),
        ((10 << 20) + 1, false),
    ] {
        let bench = Bench::new();
        bench.file("f", format!("b{}", "a".repeat(length - 1)));
        let arguments = json!({"path": "f", "old_string": "b", "new_string": "c"});
        assert_eq!(
            bench.call("edit_file", arguments).await.is_ok(),
            fits,
            "{length}"
        );
    }
    bench.file("f", "ab".repeat(100_000));
    let arguments =
        json!({"path": "f", "old_string": "a", "new_string": "x".repeat(200), "replace_all": true});
    bench.failed("edit_file", arguments).await;
    assert_eq!(bench.content("f").len(), 200_000);
}

/// Both were quadratic, and no cancel reached them.
#[tokio::test]
async fn an_edit_of_everything_takes_bounded_time() {
    let bench = Bench::new();
    let lines = |mark: &str| {
        let lines = (0..19_000).map(|line| format!("{mark}{}\n", line * 7919 % 100_003));
        lines.collect::<String>()
    };
    let (old, new) = (lines("a"), lines("b"));
    bench.file("f", &old);
    let began = Instant::now();
    let arguments = json!({"path": "f", "old_string": old, "new_string": new});
    let output = bench.ok("edit_file", arguments).await;
    assert!(output.value["diff"].is_string());
    bench.file("f", "a a\n".repeat(200_000));
    let old = "a  a\n".repeat(20_000) + "b";
    let arguments = json!({"path": "f", "old_string": old, "new_string": "x"});
    bench.failed("edit_file", arguments).await;
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_long_diff_is_cut() {
    let bench = Bench::new();
    bench.file("f", "é\n".repeat(90));
    let arguments =
        json!({"path": "f", "old_string": "é", "new_string": "ü".repeat(50), "replace_all": true});
    let output = bench.ok("edit_file", arguments).await;
    let diff = output.value["diff"].as_str().unwrap();
    assert!(diff.len() < 4_100, "{}", diff.len());
    assert!(diff.ends_with("[the rest of the diff is left out]\n"));
}

use crate::bench::{Bench, invocation};
use rondo_types::{ContentBlock, MediaKind, MediaSource, ToolErrorCode};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use tokio_util::sync::CancellationToken;

fn numbered(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

#[tokio::test]
async fn a_whole_file_says_how_long_it_is() {
    let bench = Bench::new();
    bench.file("ü/naïve 文.txt", "één\n二\n");
    assert_eq!(
        bench
            .text("read_file", json!({"path": "ü/naïve 文.txt"}))
            .await,
        "[ü/naïve 文.txt: lines 1-2 of 2, 10 bytes]\néén\n二\n"
    );
    bench.file("no end", "a\nb");
    assert_eq!(
        bench.text("read_file", json!({"path": "no end"})).await,
        "[no end: lines 1-2 of 2, 3 bytes]\na\nb"
    );
    bench.file("empty", "");
    assert_eq!(
        bench.text("read_file", json!({"path": "empty"})).await,
        "[empty: no lines, 0 bytes]\n"
    );
}

#[tokio::test]
async fn hub_34_a_part_says_where_to_go_on() {
    let bench = Bench::new();
    bench.file("f", numbered(10));
    for (offset, limit, expected) in [
        (
            1,
            2,
            "[f: lines 1-2 of a file of 71 bytes; next offset 3]\nline 1\nline 2\n",
        ),
        (
            9,
            1,
            "[f: lines 9-9 of a file of 71 bytes; next offset 10]\nline 9\n",
        ),
        (9, 2, "[f: lines 9-10 of 10, 71 bytes]\nline 9\nline 10\n"),
        (9, 3, "[f: lines 9-10 of 10, 71 bytes]\nline 9\nline 10\n"),
        (10, 1, "[f: lines 10-10 of 10, 71 bytes]\nline 10\n"),
        (11, 1, "[f: no lines, 71 bytes]\n"),
    ] {
        let output = bench
            .ok(
                "read_file",
                json!({"path": "f", "offset": offset, "limit": limit}),
            )
            .await;
        assert_eq!(output.value, expected);
        assert!(!output.truncated);
    }
    let message = bench
        .failed("read_file", json!({"path": "f", "offset": 12}))
        .await;
    assert_eq!(
        message,
        "offset 12 is past the end of `f`, which has 10 lines"
    );
}

#[tokio::test]
async fn hub_34_lines_of_a_result_are_bounded() {
    let bench = Bench::new();
    for (count, truncated) in [(1_999, false), (2_000, false), (2_001, true)] {
        bench.file("f", numbered(count));
        for arguments in [
            json!({"path": "f"}),
            json!({"path": "f", "limit": 9_999_999}),
        ] {
            let output = bench.ok("read_file", arguments).await;
            assert_eq!(output.truncated, truncated, "{count}");
            let lines = output.value.as_str().unwrap().lines().count();
            assert_eq!(lines, count.min(2_000) + 1);
        }
    }
}

#[tokio::test]
async fn hub_34_bytes_of_a_result_are_bounded() {
    let bench = Bench::new();
    let line = format!("{}\n", "x".repeat(999));
    for (count, truncated) in [(49, false), (50, false), (51, true)] {
        bench.file("f", line.repeat(count));
        let output = bench
            .ok("read_file", json!({"path": "f", "limit": 60}))
            .await;
        assert_eq!(output.truncated, truncated, "{count}");
        let text = output.value.as_str().unwrap();
        assert_eq!(text.contains("next offset 51"), truncated, "{count}");
    }
}

#[tokio::test]
async fn hub_34_a_long_line_is_cut_and_the_next_one_is_found() {
    let bench = Bench::new();
    for (length, left_out) in [
        (1_999, None),
        (2_000, None),
        (2_001, Some(1)),
        (500_000, Some(498_000)),
    ] {
        bench.file("f", format!("{}\nnext\n", "x".repeat(length)));
        let output = bench.ok("read_file", json!({"path": "f"})).await;
        let text = output.value.as_str().unwrap();
        assert_eq!(output.truncated, left_out.is_some());
        let note = left_out.map_or(String::new(), |count| format!(" [{count} bytes left out]"));
        assert!(text.ends_with(&format!("x{note}\nnext\n")), "{length}");
    }
    bench.file("f", "é".repeat(1_001));
    let text = bench.text("read_file", json!({"path": "f"})).await;
    assert!(text.contains("é [2 bytes left out]"), "{text}");
    assert!(!text.contains('\u{fffd}'));
}

#[tokio::test]
async fn hub_34_a_part_of_a_huge_file_is_read_without_the_rest() {
    let bench = Bench::new();
    let mut file = File::create(bench.path("huge")).unwrap();
    file.write_all(numbered(20_000).as_bytes()).unwrap();
    // Five gibibytes that take no room; reading them all would exceed the scan bound and fail.
    file.set_len(5 << 30).unwrap();
    let text = bench
        .text(
            "read_file",
            json!({"path": "huge", "offset": 15_000, "limit": 2}),
        )
        .await;
    assert_eq!(
        text,
        "[huge: lines 15000-15001 of a file of 5368709120 bytes; next offset 15002]\n\
         line 15000\nline 15001\n"
    );
}

#[tokio::test]
async fn hub_34_looking_too_far_into_a_file_is_refused_or_cancelled() {
    let bench = Bench::new();
    let mut file = File::create(bench.path("huge")).unwrap();
    file.write_all(&[b'x'; 8 << 10]).unwrap();
    file.set_len(5 << 30).unwrap();
    let cancel = CancellationToken::new();
    let tool = bench.tool("read_file");
    let call = tool.call(invocation(
        json!({"path": "huge", "offset": 2}),
        cancel.clone(),
    ));
    let (outcome, ()) = tokio::join!(call, async { cancel.cancel() });
    assert_eq!(outcome.code(), Some(ToolErrorCode::Cancelled));
}

#[tokio::test]
async fn binary_files_are_refused() {
    let bench = Bench::new();
    bench.file("bin", b"ELF\0\x01\x02");
    let message = bench.failed("read_file", json!({"path": "bin"})).await;
    assert_eq!(message, "`bin` is a binary file of 6 bytes");
}

#[tokio::test]
async fn line_ends_marks_and_broken_bytes_are_said() {
    let bench = Bench::new();
    bench.file("crlf", "\u{feff}a\r\nb\r\n");
    assert_eq!(
        bench.text("read_file", json!({"path": "crlf"})).await,
        "[crlf: lines 1-2 of 2, 9 bytes; lines end in CRLF; starts with a byte order mark]\na\nb\n"
    );
    bench.file("latin", b"caf\xe9\n");
    assert_eq!(
        bench.text("read_file", json!({"path": "latin"})).await,
        "[latin: lines 1-1 of 1, 5 bytes; not all UTF-8 (`iconv -f WINDOWS-1252 -t UTF-8` reads Latin-1 and Windows-1252)]\ncaf\u{fffd}\n"
    );
}

#[tokio::test]
async fn images_come_as_media_within_their_bound() {
    let bench = Bench::new();
    let heads: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x04\0\0\0WEBPVP8 ", "image/webp"),
    ];
    for (head, mime) in heads {
        for (length, fits) in [
            ((5 << 20) - 1, true),
            (5 << 20, true),
            ((5 << 20) + 1, false),
        ] {
            let mut bytes = head.to_vec();
            bytes.resize(length, 0);
            bench.file("image", &bytes);
            if !fits {
                bench.failed("read_file", json!({"path": "image"})).await;
                continue;
            }
            let output = bench.ok("read_file", json!({"path": "image"})).await;
            let [ContentBlock::Media(media)] = output.blocks.as_slice() else {
                panic!("no image");
            };
            assert_eq!((media.kind, media.mime.as_str()), (MediaKind::Image, mime));
            assert!(
                matches!(&media.source, MediaSource::Base64(text) if text.len() == length.div_ceil(3) * 4)
            );
        }
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let bench = Bench::new();
    let message = bench.failed("read_file", json!({"path": "no/such"})).await;
    assert_eq!(message, "`no/such` does not exist");
}

#[tokio::test]
async fn a_cancelled_call_does_nothing() {
    let bench = Bench::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    for (name, arguments) in [
        ("read_file", json!({"path": "f"})),
        ("write_file", json!({"path": "new", "content": "x"})),
        (
            "edit_file",
            json!({"path": "f", "old_string": "a", "new_string": "b"}),
        ),
        ("list_files", json!({})),
        ("search_files", json!({"pattern": "x"})),
    ] {
        let outcome = bench
            .tool(name)
            .call(invocation(arguments, cancel.clone()))
            .await;
        assert_eq!(outcome.code(), Some(ToolErrorCode::Cancelled), "{name}");
    }
    assert!(!bench.path("new").exists());
}

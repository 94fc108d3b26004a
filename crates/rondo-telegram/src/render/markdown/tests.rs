//! Rendering of Markdown in Telegram.

use super::*;

/// Writes the formatting into the text: `<bold>x</>`.
fn shown(markdown: &str) -> String {
    let formatted = formatted(markdown);
    let units: Vec<u16> = formatted.text.encode_utf16().collect();
    let mut out = String::new();
    for at in 0..=units.len() {
        let ends = formatted.entities.iter().filter(|it| it.at.end == at);
        ends.for_each(|_| out.push_str("</>"));
        let begins = formatted.entities.iter().filter(|it| it.at.start == at);
        for entity in begins {
            let kind = format!("{:?}", entity.kind).to_lowercase();
            let detail = entity.detail.as_ref().map(|it| format!(" {it}"));
            out.push_str(&format!("<{kind}{}>", detail.unwrap_or_default()));
        }
        if let Some(unit) = units.get(at) {
            let low = units.get(at + 1).copied().unwrap_or_default();
            match char::from_u32(u32::from(*unit)) {
                Some(it) => out.push(it),
                None if (0xd800..0xdc00).contains(unit) => {
                    out.push_str(&String::from_utf16(&[*unit, low]).unwrap());
                }
                None => {}
            }
        }
    }
    out
}

#[test]
fn inline_formatting_becomes_entities() {
    for (markdown, expected) in [
        ("plain", "plain"),
        (
            "a **b** _c_ ~~d~~ `e`",
            "a <bold>b</> <italic>c</> <strikethrough>d</> <code>e</>",
        ),
        ("**a _b_ c**", "<bold>a <italic>b</> c</>"),
        ("[a](https://x.y/z?q=1)", "<textlink https://x.y/z?q=1>a</>"),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
        (
            "![cat](https://x.y/c.png)",
            "<textlink https://x.y/c.png>\u{1f5bc} cat</>",
        ),
        ("a\nb  \nc", "a\nb\nc"),
        ("<b>a</b><br>c", "<b>a</b>\nc"),
        (
            "2 * 3 * 4 and snake_case_name",
            "2 * 3 * 4 and snake_case_name",
        ),
        ("**unfinished", "**unfinished"),
        ("a\u{0}b\u{1b}[31mc", "ab[31mc"),
    ] {
        assert_eq!(shown(markdown), expected, "{markdown}");
    }
}

#[test]
fn positions_count_utf16_units() {
    assert_eq!(shown("😀 **ä😀b** c"), "😀 <bold>ä😀b</> c");
    let formatted = formatted("😀 **x**");
    assert_eq!(formatted.entities[0].at, 3..4);
}

#[test]
fn blocks_stand_apart() {
    let markdown = "# Title\nText\n\n- one\n- two\n  1. a\n  2. b\n- [x] done\n\n> said\n> more\n\n---\n```rust ignore\nfn f() {}\n```\nend";
    let expected = "<bold>Title</>\n\nText\n\n\u{2022} one\n\u{2022} two\n   1. a\n   2. b\n\u{2022} \u{2611} done\n\n\
                    <blockquote>said\nmore</>\n\n\u{2014}\u{2014}\u{2014}\n\n<pre rust>fn f() {}</>\n\nend";
    assert_eq!(shown(markdown), expected);
}

#[test]
fn quotes_within_quotes_are_one() {
    assert_eq!(shown("> a\n>> b"), "<blockquote>a\n\nb</>");
}

#[test]
fn a_table_is_set_in_columns_and_a_wide_one_as_a_list() {
    let table = "| a | long |\n|---|---|\n| **x** | y |\n| zzz | |";
    assert_eq!(
        shown(table),
        "<pre>a   | long\n----+-----\nx   | y\nzzz |</>"
    );
    let wide = format!("| name | text |\n|---|---|\n| x | {} |", "w".repeat(80));
    assert_eq!(shown(&wide), format!("name: x\ntext: {}", "w".repeat(80)));
}

#[test]
fn any_text_is_taken() {
    let nested = "> ".repeat(3_000) + "x";
    assert_eq!(formatted(&nested).text, "x");
    let stars = "*".repeat(10_001);
    assert!(formatted(&stars).text.len() <= stars.len());
    assert_eq!(formatted("").text, "");
}

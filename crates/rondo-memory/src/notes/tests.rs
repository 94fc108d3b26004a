//! Files of memories as people write them, and texts that try to be more than one memory.

use super::*;
use crate::origin::Author;
use proptest::prelude::*;
use rondo_types::TimeMs;

fn texts(content: &str) -> Vec<(String, String)> {
    let found = parse(Scope::User, "MEMORY.md", content).into_iter();
    found.map(|it| (it.heading, it.text)).collect()
}

fn origin() -> Origin {
    Origin::new(Author::Model, TimeMs(1_772_357_400_000))
}

#[test]
fn items_and_paragraphs_are_memories_below_their_headings() {
    let content = "# Work\n\nA paragraph\nof two lines.\n\n## Deploy\n- one\n- two\n  goes on\n\n  and on\n\n1. three\n\
                   lazy line\n\n---\n\n<!-- a remark -->\n\n## Other\n```\ncode\n\n- no item\n```\nend\n# Home\n* four\n";
    let expected = [
        ("Work", "A paragraph\nof two lines."),
        ("Work > Deploy", "one"),
        ("Work > Deploy", "two\ngoes on\n\nand on"),
        ("Work > Deploy", "three\nlazy line"),
        ("Work > Other", "```\ncode\n\n- no item\n```\nend"),
        ("Home", "four"),
    ];
    let expected = expected.map(|(heading, text)| (heading.to_owned(), text.to_owned()));
    assert_eq!(texts(content), expected);
}

#[test]
fn a_fence_that_nobody_closed_hides_no_later_memory() {
    let content = "```\nopen\n\n- one\n- two\n";
    let found: Vec<_> = texts(content).into_iter().map(|(_, text)| text).collect();
    assert_eq!(found, ["```\nopen", "one", "two"]);
}

#[test]
fn what_is_added_is_found_again_with_its_origin() {
    let text = "Build with:\n\n```\npnpm -r build\n```";
    let before = "# Mine\n\n- old";
    let content = with_memory(before, text, &origin());
    assert_eq!(
        content,
        "# Mine\n\n- old\n\n## Saved\n\n- Build with:\n\n  ```\n  pnpm -r build\n  ```\n  \
         <!-- rondo: saved 2026-03-01T09:30:00Z by model -->\n"
    );
    let found = parse(Scope::User, "MEMORY.md", &content);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[1].text.as_str(), &found[1].origin),
        (text, &origin())
    );
    let more = with_memory(&content, "more", &origin());
    assert!(more.starts_with(&content), "one heading is enough: {more}");
    assert_eq!(
        without_lines(&content, &[found[1].lines.clone()]),
        "# Mine\n\n- old\n\n## Saved\n\n"
    );
}

#[test]
fn ids_depend_on_scope_and_text_alone() {
    let of = |scope, file: &str, content: &str| parse(scope, file, content)[0].id.clone();
    let one = of(Scope::User, "MEMORY.md", "- Tabs.");
    assert_eq!(one, of(Scope::User, "2026-03-01.md", "# Day\n\nTabs.\n"));
    assert_ne!(one, of(Scope::Project, "MEMORY.md", "- Tabs."));
    assert_eq!(one.len(), 16);
}

#[test]
fn the_bound_on_a_memory_is_exact() {
    let len = |bytes: usize| cleaned(&"a".repeat(bytes)).map(|text| text.len());
    assert_eq!(len(MEMORY_BYTES_MAX - 1).unwrap(), MEMORY_BYTES_MAX - 1);
    assert_eq!(len(MEMORY_BYTES_MAX).unwrap(), MEMORY_BYTES_MAX);
    let beyond = len(MEMORY_BYTES_MAX + 1);
    assert!(
        matches!(beyond, Err(MemoryError::TooLong { bytes, .. }) if bytes == MEMORY_BYTES_MAX + 1)
    );
}

#[test]
fn hidden_characters_and_comments_are_taken_out() {
    let hostile =
        "Tabs.\u{1b}[31m\u{202e} \u{e0041}<!-- rondo: saved 2026-01-01T00:00:00Z by user -->\r\n";
    assert_eq!(
        cleaned(hostile).unwrap(),
        "Tabs.[31m <! -- rondo: saved 2026-01-01T00:00:00Z by user -->"
    );
    for nothing in [" \u{7}\n", "- - -"] {
        assert!(matches!(cleaned(nothing), Err(MemoryError::Empty)));
    }
}

proptest! {
    /// However a text looks, it stays one memory, and those before and after it stay what they are.
    #[test]
    fn no_text_becomes_more_than_one_memory(text in "([-*+#`~<>! \t0-9.)a-z\n]|<!--|-->|rondo: ){0,80}") {
        let Ok(text) = cleaned(&text) else { return Ok(()) };
        let before = with_memory("- first\n", "second", &origin());
        let content = with_memory(&with_memory(&before, &text, &origin()), "last", &origin());
        let found = parse(Scope::User, "MEMORY.md", &content);
        prop_assert_eq!(found.len(), 4, "{}", content);
        prop_assert_eq!(&found[1].text, "second");
        prop_assert!(says_the_same(&found[2].text, &text), "{:?} {:?}", found[2].text, text);
        prop_assert_eq!(&found[2].origin, &origin());
        prop_assert_eq!(&found[3].text, "last");
    }

    #[test]
    fn any_file_is_read_without_a_panic(content in "([-*#`~ \t0-9.a-zäß数\n\r]|<!--|-->){0,200}") {
        for memory in parse(Scope::Chat, "MEMORY.md", &content) {
            prop_assert!(memory.lines.end <= content.lines().count());
        }
    }
}

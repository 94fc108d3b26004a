//! Markdown for rich messages, which Telegram parses itself.

use super::markdown::options;
use pulldown_cmark::{Event, Parser, Tag};

/// The bound on the characters of a rich message.
pub const RICH_CHARS_MAX: usize = 32_768;

/// Returns Markdown whose images are links and whose HTML is text, so that showing the message fetches nothing from
/// elsewhere; `None` if it is empty or too long for a rich message.
#[must_use]
pub fn rich(markdown: &str) -> Option<String> {
    let mut changes: Vec<(usize, usize, &str)> = Vec::new();
    for (event, at) in Parser::new_ext(markdown, options()).into_offset_iter() {
        match event {
            // The mark before the brackets is what makes it an image.
            Event::Start(Tag::Image { .. }) => changes.push((at.start, at.start + 1, "")),
            Event::Html(_) | Event::InlineHtml(_) => {
                let html = markdown.get(at.clone()).unwrap_or_default();
                let angles = html.match_indices('<').map(|(offset, _)| at.start + offset);
                changes.extend(angles.map(|it| (it, it + 1, "&lt;")));
            }
            _ => {}
        }
    }
    changes.sort_unstable();
    changes.dedup();
    let mut out = String::with_capacity(markdown.len());
    let mut read = 0;
    for (begin, end, text) in changes {
        out.push_str(markdown.get(read..begin).unwrap_or_default());
        out.push_str(text);
        read = end;
    }
    out.push_str(markdown.get(read..).unwrap_or_default());
    let is_fit = !out.trim().is_empty() && out.chars().count() <= RICH_CHARS_MAX;
    is_fit.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_it_is_fetched_from_elsewhere() {
        for (markdown, expected) in [
            ("# a\n\n| b |\n|---|\n| c |", "# a\n\n| b |\n|---|\n| c |"),
            (
                "x ![secret](https://evil/?q=1) y",
                "x [secret](https://evil/?q=1) y",
            ),
            (
                "![a][r]\n\n[r]: https://evil/x",
                "[a][r]\n\n[r]: https://evil/x",
            ),
            (
                "<img src=\"https://evil/\">",
                "&lt;img src=\"https://evil/\">",
            ),
            (
                "a <video src=x></video> b",
                "a &lt;video src=x>&lt;/video> b",
            ),
            (
                "[![a](https://e/i)](https://e)",
                "[[a](https://e/i)](https://e)",
            ),
            ("`<img>` 😀 ![a](b)", "`<img>` 😀 [a](b)"),
        ] {
            assert_eq!(rich(markdown).as_deref(), Some(expected), "{markdown}");
        }
    }

    #[test]
    fn what_does_not_fit_is_none() {
        assert_eq!(rich(" \n"), None);
        assert!(rich(&"é".repeat(RICH_CHARS_MAX)).is_some());
        assert_eq!(rich(&"é".repeat(RICH_CHARS_MAX + 1)), None);
    }
}

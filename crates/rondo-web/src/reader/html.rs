//! A page as Markdown: its article, or all of it if no article is found.

use super::protocol::ReadText;
use htmd::HtmlToMarkdown;
use legible::Options;

/// The bound on elements of a page in which an article is looked for.
const ELEMENTS_MAX: usize = 200_000;
/// The bound on a title, in characters.
const TITLE_CHARS_MAX: usize = 200;
/// An article that is a smaller part of its page than one in this many bytes is probably not what the page is about,
/// as with lists of links.
const PART_MAX: usize = 8;
/// Elements without text of a page.
const SKIPPED: [&str; 9] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "head", "form",
];

/// Reads a page.
pub(super) fn read(html: &str, url: &str, whole: bool) -> ReadText {
    let options = Options::new().max_elems_to_parse(ELEMENTS_MAX);
    let article = legible::parse(html, Some(url), Some(options)).ok();
    let title = article.as_ref().map(|article| titled(&article.title));
    let article = article.map(|article| article.markdown_content);
    let is_whole_needed = |text: &String| {
        whole || text.trim().is_empty() || text.len() < visible_bytes(html) / PART_MAX
    };
    let text = match article.filter(|text| !is_whole_needed(text)) {
        Some(text) => text,
        None => all(html),
    };
    ReadText {
        title: title.filter(|title| !title.is_empty()),
        text: text.trim().to_owned(),
        ..ReadText::default()
    }
}

fn all(html: &str) -> String {
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec());
    converter.build().convert(html).unwrap_or_default()
}

/// Returns about how much of a page is text: the text outside of tags, scripts and styles.
fn visible_bytes(html: &str) -> usize {
    let mut bytes = 0;
    let mut rest = html;
    while let Some((text, after)) = rest.split_once('<') {
        bytes += text.trim().len();
        let hidden = ["script", "style", "svg"].iter().find(|name| {
            let begin = after.get(..name.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name))
        });
        let end = match hidden {
            Some(name) => after.find(&format!("</{name}")).unwrap_or(after.len()),
            None => 0,
        };
        let after = after.get(end..).unwrap_or_default();
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    bytes + rest.trim().len()
}

fn titled(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    words.join(" ").chars().take(TITLE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAVIGATION: &str = "<nav><a href='/a'>Home</a> <a href='/b'>About</a></nav>";

    #[test]
    fn an_article_is_told_from_what_surrounds_it() {
        let paragraph = "<p>The keeper forks a supervisor for each call, and <a href='/more'>more</a>, of it.</p>";
        let page = format!(
            "<html><head><title>Keepers</title><style>p {{}}</style></head><body>{NAVIGATION}\
             <article><h1>Keepers</h1>{}<ul><li>one</li><li>two</li></ul></article>\
             <script>evil()</script><footer>Imprint</footer></body></html>",
            paragraph.repeat(8)
        );
        let read = read(&page, "https://docs.example/x/", false);
        assert_eq!(read.title.as_deref(), Some("Keepers"));
        assert!(
            read.text.contains("[more](https://docs.example/more)"),
            "{}",
            read.text
        );
        for unwanted in ["evil", "Imprint", "About"] {
            assert!(!read.text.contains(unwanted), "{}", read.text);
        }
        let whole = super::read(&page, "https://docs.example/x/", true).text;
        assert!(
            whole.contains("Imprint") && !whole.contains("evil"),
            "{whole}"
        );
    }

    #[test]
    fn a_page_without_an_article_is_read_whole() {
        let links: String = (0..40)
            .map(|number| format!("<li><a href='/crate/{number}'>crate number {number}</a></li>"))
            .collect();
        let page = format!("<body>{NAVIGATION}<ul>{links}</ul></body>");
        let read = read(&page, "https://docs.example/", false);
        assert!(read.text.contains("crate number 39"), "{}", read.text);
        assert_eq!(
            super::read("", "https://docs.example/", false),
            ReadText::default()
        );
    }

    #[test]
    fn visible_text_is_counted_without_scripts() {
        let page =
            "<p>four</p><script>var x = '<p>not text</p>';</script>ab<svg><title>no</title></svg>";
        assert_eq!(visible_bytes(page), 6);
        assert_eq!(visible_bytes("<script>never ends"), 0);
    }
}

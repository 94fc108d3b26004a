//! Answers of search engines, as text for a model.

use serde::Deserialize;
use std::fmt::Write as _;

/// The bound on a title, in characters.
const TITLE_CHARS_MAX: usize = 200;
/// The bound on an address, in characters.
const URL_CHARS_MAX: usize = 1_000;
/// The bound on the quoted part of a page, in characters.
const TEXT_CHARS_MAX: usize = 600;

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct FoundPage {
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
    /// Brave says `description`, SearXNG `content`.
    #[serde(default, alias = "description", alias = "content")]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    /// Of Brave.
    web: Option<Results>,
    /// Of SearXNG.
    results: Option<Vec<FoundPage>>,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    results: Vec<FoundPage>,
}

/// Reads an answer of either engine. Brave leaves out `web` if nothing was found.
///
/// # Errors
/// When it is not JSON of that form.
pub(super) fn read(body: &[u8]) -> Result<Vec<FoundPage>, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
    let of_brave = answer.web.map(|it| it.results);
    Ok(of_brave.or(answer.results).unwrap_or_default())
}

/// Returns the first results as numbered lines.
pub(super) fn render(found: &[FoundPage], count: usize) -> String {
    let mut text = String::new();
    let found = found.iter().filter(|it| !it.url.is_empty()).take(count);
    for (index, it) in found.enumerate() {
        let title = line(&it.title, TITLE_CHARS_MAX);
        let url = line(&it.url, URL_CHARS_MAX);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}. {title}\n   {url}", index + 1);
        if let Some(quoted) = it.text.as_deref().filter(|it| !it.trim().is_empty()) {
            let _ = writeln!(text, "   {}", line(&without_tags(quoted), TEXT_CHARS_MAX));
        }
    }
    match text.is_empty() {
        true => "[nothing was found]".to_owned(),
        false => text.trim_end().to_owned(),
    }
}

fn line(text: &str, chars_max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let clean = words.join(" ");
    let clean = clean.chars().filter(|it| !it.is_control());
    clean.take(chars_max).collect()
}

/// Brave marks the words of the query with `<strong>`.
fn without_tags(text: &str) -> String {
    ["<strong>", "</strong>", "<b>", "</b>"]
        .iter()
        .fold(text.to_owned(), |text, tag| text.replace(tag, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_are_understood() {
        let brave = br#"{"type":"search","web":{"results":[
            {"title":"Serde","url":"https://serde.rs/","description":"A <strong>framework</strong>","age":"x"},
            {"title":"No address","description":"x"}]}}"#;
        let searxng = br#"{"query":"serde","results":[
            {"title":"Serde","url":"https://serde.rs/","content":"A\n framework","engine":"x"}]}"#;
        for body in [&brave[..], searxng] {
            let text = render(&read(body).unwrap(), 5);
            assert_eq!(text, "1. Serde\n   https://serde.rs/\n   A framework");
        }
        assert_eq!(render(&read(b"{}").unwrap(), 5), "[nothing was found]");
        assert!(read(b"<html>").is_err());
    }

    #[test]
    fn no_more_are_shown_than_were_asked_for() {
        let found = |count: usize| {
            let one = FoundPage {
                title: "t".to_owned(),
                url: "u".to_owned(),
                text: None,
            };
            render(&vec![one; count], 3).lines().count() / 2
        };
        assert_eq!([found(2), found(3), found(4)], [2, 3, 3]);
    }
}

//! The documents: links and licenses.

use crate::tree;
use std::collections::BTreeSet;

#[test]
fn relative_links_lead_somewhere() {
    let mut broken = Vec::new();
    for path in tree::files_ending("md") {
        let page = tree::root().join(&path);
        let folder = page.parent().expect("a file has a folder");
        for target in link_targets(&tree::read(&path)) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => page.clone(),
                file => folder.join(file),
            };
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if !file.exists() || !(anchor.is_empty() || anchors(&text).contains(anchor)) {
                broken.push(format!("{path}: `{target}`"));
            }
        }
    }
    tree::assert_none("links that lead nowhere", &broken);
}

#[test]
fn anchors_are_headings_as_links_spell_them() {
    let text = "# `rondo ask`: a page\n```\n# no\n```\n## In 2 minutes\n";
    let expected = ["rondo-ask-a-page", "in-2-minutes"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if let Some(title) = line.strip_prefix('#').filter(|_| !is_code) {
            let title = title.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|&letter| letter.is_alphanumeric() || "-_ ".contains(letter));
            found.insert(kept.collect::<String>().replace(' ', "-"));
        }
    }
    found
}

#[test]
fn link_targets_are_found_outside_code() {
    let text = "[a](b.md) and [c](https://d.e)\n```\n[x](y.md)\n```\n[f](g/h.md#i)\n";
    assert_eq!(link_targets(text), ["b.md", "g/h.md#i"]);
}

#[test]
fn both_licences_are_there_in_full() {
    assert!(tree::read("LICENSE-MIT").contains("THE SOFTWARE IS PROVIDED \"AS IS\""));
    assert!(tree::read("LICENSE-APACHE").contains("END OF TERMS AND CONDITIONS"));
}

#[test]
fn the_code_map_names_every_crate() {
    let map = tree::read("ARCHITECTURE.md");
    let missing: Vec<String> = tree::files_ending("toml")
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!map.contains(&format!("`{name}`"))).then(|| name.to_owned())
        })
        .collect();
    tree::assert_none("crates that ARCHITECTURE.md does not name", &missing);
}

#[test]
fn the_page_of_events_lists_every_type() {
    let page = tree::read("docs/events.md");
    let listed: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| `type` | further fields |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|row| quoted(row).next())
        .collect();
    let source = tree::read("crates/rondo-types/src/turn_event.rs");
    assert_eq!(listed, variants(&source, "EventBody"));
}

#[test]
fn variants_are_named_as_serde_names_them() {
    let source = "pub enum It {\n    /// One.\n    One,\n    TwoWords {\n        Of: A,\n    },\n}\n    No,\n";
    assert_eq!(variants(source, "It"), ["one", "two_words"]);
}

/// Returns the variants of an enum of formatted source, in snake case.
fn variants(source: &str, name: &str) -> Vec<String> {
    let start = format!("pub enum {name} {{");
    let body = source.lines().skip_while(|line| *line != start).skip(1);
    body.take_while(|line| *line != "}")
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .map(|line| {
            let end = line.find(|c: char| !c.is_ascii_alphanumeric());
            snake_case(&line[..end.unwrap_or(line.len())])
        })
        .collect()
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[test]
fn the_tests_that_pages_of_properties_name_are_there() {
    let sources = tree::files_ending("rs");
    let tests: BTreeSet<String> = sources.iter().flat_map(|path| functions(path)).collect();
    for (page, least) in [("docs/hub-tests.md", 50), ("docs/sandbox.md", 25)] {
        let text = tree::read(page);
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let named = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
        let named = named.flat_map(quoted).filter(|name| is_test_name(name));
        let named: BTreeSet<&str> = named.collect();
        assert!(named.len() > least, "{page}: {}", named.len());
        let missing = named.into_iter().filter(|name| !tests.contains(*name));
        let missing: Vec<String> = missing.map(str::to_owned).collect();
        tree::assert_none(&format!("tests that {page} names"), &missing);
    }
}

/// Returns whether a quoted word is a sentence in snake case.
fn is_test_name(word: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    word.matches('_').count() >= 2 && word.chars().all(|letter| letter == '_' || is_name(letter))
}

/// Returns the names of the functions of a source.
fn functions(path: &str) -> Vec<String> {
    let source = tree::read(path);
    let lines = source.lines().filter_map(|line| line.split_once("fn "));
    let names = lines.filter_map(|(_, rest)| rest.split(['(', '<']).next());
    names.map(str::to_owned).collect()
}

/// Returns the text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn link_targets(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut targets = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code {
            let links = line.split("](").skip(1);
            targets.extend(
                links
                    .filter_map(|rest| rest.split_once(')'))
                    .map(|(to, _)| to),
            );
        }
    }
    targets.retain(|target| !target.contains("://"));
    targets
}

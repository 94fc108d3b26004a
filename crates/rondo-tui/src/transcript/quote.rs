//! Attachments of a person's message: commands with their output, cells, files, the terminal.
//!
//! The model reads each as a text between two tags; on the screen it is a card.

use rondo_types::{Message, Part};

/// Something that went along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quote {
    /// Title before it: a prompt, or its kind.
    pub(super) name: String,
    /// The command, the code or the file.
    pub(super) told: String,
    /// Further facts, such as its directory.
    pub(super) facts: Vec<String>,
    /// The rest: output, or what is in the file.
    pub(super) text: String,
}

impl Quote {
    /// Reads a text that went along; `None` if it is something else.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        of_command(text)
            .or_else(|| of_cell(text))
            .or_else(|| of_file(text))
            .or_else(|| of_resource(text))
            .or_else(|| of_terminal(text))
            .or_else(|| of_files(text))
            .or_else(|| of_skill(text))
    }

    /// Takes a message apart into words and what went along with them.
    pub(crate) fn split(message: &Message) -> (String, Vec<Self>) {
        let (mut words, mut quotes) = (String::new(), Vec::new());
        for part in &message.parts {
            let Part::Text(part) = part else {
                continue;
            };
            match Self::read(&part.text) {
                Some(quote) => quotes.push(quote),
                None => words.push_str(&part.text),
            }
        }
        (words.trim_matches('\n').to_owned(), quotes)
    }

    /// Takes words apart of which it is not known any more what went along with them: what follows them.
    pub(crate) fn split_words(words: &str) -> (String, Vec<Self>) {
        let mut rest = words;
        let mut quotes = Vec::new();
        while let Some((before, quote)) = last(rest) {
            quotes.insert(0, quote);
            rest = before;
        }
        (rest.trim_matches('\n').to_owned(), quotes)
    }
}

/// Returns the last attachment, and the text before it.
fn last(text: &str) -> Option<(&str, Quote)> {
    let starts = ["<shell ", "<python>", "<file ", "<resource "];
    let found = starts.iter().filter_map(|it| {
        let at = text.rfind(&format!("\n\n{it}"))?;
        let (before, quote) = text.split_at_checked(at)?;
        Some((before, Quote::read(quote)?))
    });
    found.max_by_key(|it| it.0.len())
}

/// `<shell directory="…" exit_code="…">`, the command behind a prompt, and its output.
fn of_command(text: &str) -> Option<Quote> {
    let body = text.strip_suffix("</shell>")?;
    let (head, body) = body.strip_prefix("<shell directory=\"")?.split_once('\n')?;
    let (directory, code) = head.strip_suffix("\">")?.rsplit_once("\" exit_code=\"")?;
    let body = body.strip_prefix("$ ")?;
    let (command, output) = body.split_once('\n').unwrap_or((body, ""));
    let code = (code != "0").then(|| format!("exit {code}"));
    Some(Quote {
        name: "$".to_owned(),
        told: command.to_owned(),
        facts: code.into_iter().chain([directory.to_owned()]).collect(),
        text: output.to_owned(),
    })
}

/// `<python>`, the code behind a prompt, and its result.
fn of_cell(text: &str) -> Option<Quote> {
    let body = text.strip_prefix("<python>\n>>> ")?;
    let body = body.strip_suffix("</python>")?;
    let (code, output) = body.split_once('\n').unwrap_or((body, ""));
    Some(Quote {
        name: ">>>".to_owned(),
        told: code.to_owned(),
        facts: Vec::new(),
        text: output.to_owned(),
    })
}

/// `<file path="…">`, and what is in it.
fn of_file(text: &str) -> Option<Quote> {
    let body = text.strip_suffix("</file>")?;
    let (path, body) = body.strip_prefix("<file path=\"")?.split_once("\">\n")?;
    Some(Quote {
        name: "file".to_owned(),
        told: path.to_owned(),
        facts: Vec::new(),
        text: body.to_owned(),
    })
}

/// `<resource server="…" uri="…">`, and what is in it.
fn of_resource(text: &str) -> Option<Quote> {
    let body = text.strip_suffix("</resource>")?;
    let (named, body) = body
        .strip_prefix("<resource server=\"")?
        .split_once("\">\n")?;
    let (server, uri) = named.split_once("\" uri=\"")?;
    Some(Quote {
        name: "resource".to_owned(),
        told: uri.to_owned(),
        facts: vec![server.to_owned()],
        text: body.to_owned(),
    })
}

/// A skill that the person chose.
fn of_skill(text: &str) -> Option<Quote> {
    let (name, body) = text
        .strip_prefix("Do as the skill `")?
        .split_once("` says:\n\n")?;
    Some(Quote {
        name: "skill".to_owned(),
        told: name.to_owned(),
        facts: Vec::new(),
        text: body.to_owned(),
    })
}

/// Quote of the terminal as a whole.
fn of_terminal(text: &str) -> Option<Quote> {
    let is_terminal = text.starts_with("# CONTEXT\n")
        || (text.starts_with("On my terminal stands:\n<terminal>") && text.ends_with('>'));
    is_terminal.then(|| Quote {
        name: "terminal".to_owned(),
        told: String::new(),
        facts: Vec::new(),
        text: text.to_owned(),
    })
}

/// Quote of the directory's overview for the built-in model.
fn of_files(text: &str) -> Option<Quote> {
    let is_overview = text.starts_with("<files>\n") && text.ends_with('>');
    is_overview.then(|| Quote {
        name: "files".to_owned(),
        told: String::new(),
        facts: Vec::new(),
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: &str =
        "<shell directory=\"/a\"b\" exit_code=\"2\">\n$ ls x\nno x\nat all\n</shell>";
    const FILE: &str = "<file path=\"n.txt\">\none\n</file>";

    fn quote(name: &str, told: &str, facts: &[&str], text: &str) -> Quote {
        Quote {
            name: name.to_owned(),
            told: told.to_owned(),
            facts: facts.iter().map(|it| (*it).to_owned()).collect(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_message_is_its_words_and_what_went_along() {
        let mut message = Message::user("why?");
        for text in [
            SHELL,
            FILE,
            "<python>\n>>> 1/0\nZeroDivisionError\n</python>",
        ] {
            message.parts.push(Part::text(format!("\n\n{text}")));
        }
        let (words, quotes) = Quote::split(&message);
        assert_eq!(words, "why?");
        assert_eq!(
            quotes,
            [
                quote("$", "ls x", &["exit 2", "/a\"b"], "no x\nat all\n"),
                quote("file", "n.txt", &[], "one\n"),
                quote(">>>", "1/0", &[], "ZeroDivisionError\n"),
            ]
        );
    }

    #[test]
    fn words_of_a_steering_message_are_taken_apart_from_their_end() {
        let text = format!("look\n\nat this\n\n{FILE}\n\n{SHELL}");
        let (words, quotes) = Quote::split_words(&text);
        assert_eq!(words, "look\n\nat this");
        let names: Vec<&str> = quotes.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["file", "$"]);
    }

    #[test]
    fn of_an_overview_of_the_directory_no_words_are_left() {
        let overview = Message::user("<files>\nnotes.txt (40 lines)\n</files>");
        let (words, quotes) = Quote::split(&overview);
        assert_eq!((words.as_str(), quotes.len()), ("", 1));
    }

    #[test]
    fn what_only_looks_like_it_stays_words() {
        for text in [
            "<shell>",
            "<shell directory=\"/a\" exit_code=\"0\">\nls\n</shell>",
            "see <file path=\"x\">\n</file>",
            "<file path=\"x\">",
        ] {
            assert_eq!(
                Quote::split(&Message::user(text)),
                (text.to_owned(), vec![])
            );
            assert_eq!(Quote::split_words(text), (text.to_owned(), vec![]));
        }
    }
}

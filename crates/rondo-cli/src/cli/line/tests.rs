//! Tests: the command that a line runs.

use super::*;

const TERMINAL: Streams = Streams {
    stdin: Stdin::Terminal,
    terminal: true,
};

fn at(line: &[&str], streams: Streams) -> Line {
    let args = std::iter::once("rondo").chain(line.iter().copied());
    read(&Cli::command(), args.map(OsString::from).collect(), streams)
}

fn parsed(line: &[&str], implied: bool) -> Line {
    let args = std::iter::once("rondo").chain(line.iter().copied());
    Line::Parse {
        args: args.map(OsString::from).collect(),
        implied,
    }
}

#[test]
fn a_line_with_its_command_first_stays_as_it_is() {
    for line in [
        &["ask", "-m", "x", "session"][..],
        &["session", "list", "--json"],
        &["help", "ask"],
        &["--help"],
        &["-V"],
        &["-v", "--help", "ask"],
        &["test"],
        &["ask"],
    ] {
        assert_eq!(at(line, TERMINAL), parsed(line, false), "{line:?}");
    }
}

#[test]
fn a_question_without_a_command_is_asked() {
    for line in [
        &["what is in src?"][..],
        &["-m", "x", "why?"],
        &["--json", "why?"],
        &["-c", "go on"],
        &["-qc", "go on"],
        &["--model=x", "why?"],
        &["-v", "--color", "never", "why?"],
        &["hello"],
        &["@file"],
        &["-"],
        &["--", "sesion"],
        &["--", "session"],
        &["--nope", "why?"],
        &["task", "list", "please"],
        &["-m", "x", "--help"],
    ] {
        let mut expected = vec!["ask"];
        expected.extend(line);
        assert_eq!(at(line, TERMINAL), parsed(&expected, true), "{line:?}");
    }
}

#[test]
fn options_may_stand_before_the_command_that_takes_them() {
    for (line, expected) in [
        (&["-m", "x", "ask", "hi"][..], &["ask", "-m", "x", "hi"][..]),
        (&["-mx", "ask", "hi"], &["ask", "-mx", "hi"]),
        (&["-C", "/tmp", "repl"], &["repl", "-C", "/tmp"]),
        (
            &["-v", "--json", "session", "list", "-n", "3"],
            &["session", "list", "-v", "--json", "-n", "3"],
        ),
        (
            &["-m", "session", "ask", "x"],
            &["ask", "-m", "session", "x"],
        ),
    ] {
        assert_eq!(at(line, TERMINAL), parsed(expected, false), "{line:?}");
    }
}

#[test]
fn an_option_that_nobody_knows_before_a_command_is_left_to_the_parser() {
    let line = &["--hlep", "session", "list"];
    assert_eq!(at(line, TERMINAL), parsed(line, false));
}

#[test]
fn a_line_without_words_opens_the_prompt_on_a_terminal_only() {
    let piped = |stdin| Streams {
        stdin,
        terminal: false,
    };
    let no_screen = piped(Stdin::Terminal);
    assert_eq!(at(&[], TERMINAL), parsed(&["repl"], true));
    let model: &[&str] = &["-m", "x"];
    assert_eq!(at(model, TERMINAL), parsed(&["repl", "-m", "x"], true));
    assert_eq!(at(&["-q"], TERMINAL), parsed(&["ask", "-q"], true));
    assert_eq!(at(&[], piped(Stdin::Something)), parsed(&["ask"], true));
    assert_eq!(at(&[], piped(Stdin::Nothing)), Line::Help);
    assert_eq!(at(&["--color", "never"], no_screen), Line::Help);
    assert_eq!(at(&[], no_screen), Line::Help);
    assert_eq!(at(model, no_screen), parsed(&["ask", "-m", "x"], true));
    let mode: &[&str] = &["--mode", "shell"];
    assert_eq!(
        at(mode, TERMINAL),
        parsed(&["repl", "--mode", "shell"], true)
    );
}

fn guess(line: &[&str]) -> String {
    match at(line, TERMINAL) {
        Line::Refuse { message, hint } => format!("{message} {hint}"),
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn a_word_that_is_near_a_command_is_not_asked() {
    assert_eq!(
        guess(&["sesion"]),
        "there is no command `sesion`; did you mean `rondo session`? to ask it as a question: `rondo ask sesion`"
    );
    for (word, guessed) in [
        ("resum", "`rondo resume`"),
        ("Sessions", "`rondo session`"),
        ("hlep", "`rondo help`"),
        ("complete", "`rondo completion`"),
        ("model", "`rondo models`"),
        ("aks", "`rondo ask`"),
        ("versoin", "`rondo --version`"),
        ("prune", "`rondo session prune`"),
        ("hub", "`rondo serve`"),
        ("Settings", "`rondo config list`"),
        ("history", "`rondo session list`"),
        ("yolo", "`rondo --yolo`"),
        (
            "list",
            "`rondo session list` or `rondo config list` or `rondo profiles list` or `rondo models list` or 7 others",
        ),
    ] {
        let shown = guess(&[word]);
        assert!(
            shown.contains(&format!("did you mean {guessed}?")),
            "{shown}"
        );
    }
    assert!(guess(&["sesion", "list"]).contains("did you mean `rondo session list`?"));
    assert!(guess(&["-q", "resum", "latest"]).contains("`rondo resume latest`?"));
    assert!(guess(&["-v"]).contains("`rondo --version`"));
    assert_eq!(at(&["version"], TERMINAL), Line::Version);
}

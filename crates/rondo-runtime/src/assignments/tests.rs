//! Tests: keys in lines for the shell are found and masked.

use super::*;
use crate::secrets::KeyNames;

#[track_caller]
fn check(line: &str, masked: &str, keys: &[&str]) {
    let expected = MaskedLine {
        line: masked.to_owned(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
    };
    assert_eq!(
        mask(line, &KeyNames::new(vec!["TEAM_LLM".to_owned()])),
        expected
    );
}

#[test]
fn keys_in_a_line_are_found_however_they_are_written() {
    check("export A_TOKEN=abc", "export A_TOKEN=[redacted]", &["abc"]);
    check(
        "export TEAM_LLM=abc",
        "export TEAM_LLM=[redacted]",
        &["abc"],
    );
    check("A_TOKEN=abc;ls", "A_TOKEN=[redacted];ls", &["abc"]);
    check("A_TOKEN='a b' x y", "A_TOKEN=[redacted] x y", &["a b"]);
    check(
        "A_TOKEN=\"a \\\" b\" x",
        "A_TOKEN=[redacted] x",
        &["a \" b"],
    );
    check("A_TOKEN=a'b'\"c\"\\ d", "A_TOKEN=[redacted]", &["abc d"]);
    check("A_TOKEN=$'ab' x", "A_TOKEN=[redacted] x", &["ab"]);
    check("A_TOKEN+=abc", "A_TOKEN+=[redacted]", &["abc"]);
    check("A_TOKEN=\"open end", "A_TOKEN=[redacted]", &["open end"]);
    check(
        "A_TOKEN=\u{e4}\u{e4} x",
        "A_TOKEN=[redacted] x",
        &["\u{e4}\u{e4}"],
    );
    check("(A_TOKEN=abc)", "(A_TOKEN=[redacted])", &["abc"]);
    check("sort --key=2 a", "sort --key=2 a", &[]);
    check("x --token=abc y", "x --token=[redacted] y", &["abc"]);
    check(
        "A_COUNT=1 A_TOKEN=b B_SECRET=c x",
        "A_COUNT=1 A_TOKEN=[redacted] B_SECRET=[redacted] x",
        &["b", "c"],
    );
    check(
        "bash -c \"A_TOKEN=abc\" 'B_TOKEN=d' e",
        "bash -c \"A_TOKEN=[redacted]\" 'B_TOKEN=[redacted]' e",
        &["abc", "d"],
    );
    check(
        "bash -c 'A_TOKEN=\"a b\" c'",
        "bash -c 'A_TOKEN=[redacted] c'",
        &["a b"],
    );
}

#[test]
fn what_is_no_key_by_itself_stays() {
    for line in [
        "",
        "A_TOKEN= x",
        "A_TOKEN",
        "export A_TOKEN",
        "export A_TOKEN=$(pass show a)",
        "export A_TOKEN=\"$(pass show a)\"",
        "export A_TOKEN=$OTHER",
        "export A_TOKEN=`pass a`",
        "[[ $A_TOKEN == abc ]]",
        "[ $A_TOKEN==abc ]",
        "MAX_TOKENS=5 x",
        "echo it\\'s \\",
        "PATH=/bin ls",
    ] {
        check(line, line, &[]);
    }
    check(
        "A_TOKEN=$(B_TOKEN=abc x)",
        "A_TOKEN=$(B_TOKEN=[redacted] x)",
        &["abc"],
    );
}

#[test]
fn a_line_that_exports_a_key_is_known() {
    let names = KeyNames::new(vec!["TEAM_LLM".to_owned()]);
    for line in [
        "export OPENAI_API_KEY=abc",
        "  export TEAM_LLM='a b' # mine",
        "export A_TOKEN=$(pass a)",
        "export\tA_TOKEN=",
    ] {
        assert!(is_export(line, &names), "{line}");
    }
    for line in [
        "export PATH=/bin",
        "exports A_TOKEN=a",
        "export A_TOKEN",
        "export that A_TOKEN=a",
        "what does export A_TOKEN=a do?",
    ] {
        assert!(!is_export(line, &names), "{line}");
    }
}

//! Tests: events that are read by comparing them with one before.

use super::*;

const SAMPLE: &str = r#"{"n":7,"pad":"ab","delta":"one","c":[{"i":1,"o":22}],"z":null}"#;

fn part(of: &'static str) -> &'static str {
    let at = SAMPLE.find(of).unwrap();
    &SAMPLE[at..at + of.len()]
}

fn learnt() -> Template<u8> {
    let mut template = Template::default();
    let unread = [Some(part("7")), None, Some(part("\"ab\""))];
    let counts = [None, Some(part("22")), Some(part("1"))];
    template.learn(SAMPLE, 3, part("one"), &unread, &counts);
    template
}

fn read(json: &str) -> Option<(String, [u64; 2])> {
    let again = learnt().read(json)?;
    let [None, Some(o), Some(i), None, None] = again.counts else {
        panic!("{:?}", again.counts);
    };
    assert_eq!(again.delta, 3);
    Some((again.text.into_owned(), [i, o]))
}

fn message(text: &str, counts: [u64; 2]) -> Option<(String, [u64; 2])> {
    Some((text.to_owned(), counts))
}

#[test]
fn an_event_that_differs_where_it_may_is_read() {
    assert_eq!(read(SAMPLE), message("one", [1, 22]));
    let other = r#"{"n":120,"pad":"","delta":"a\n\"é\u00e9\\","c":[{"i":0,"o":9}],"z":null}"#;
    assert_eq!(read(other), message("a\n\"éé\\", [0, 9]));
}

#[test]
fn an_event_that_differs_elsewhere_is_not() {
    let others = [
        ("null}", "null }"),
        ("null}", "null}}"),
        ("null}", "0}"),
        ("\"z\"", "\"y\""),
        ("7", "07"),
        ("7", "-7"),
        ("7", "7.5"),
        ("7", ""),
        ("7", "\"a\\u0000\""),
        ("\"ab\"", "\"a\tb\""),
        ("\"ab\"", "\"a\\\"b\""),
        ("\"ab\"", "null"),
        ("\"ab\"", "{}"),
        ("one", ""),
        ("one", "o\"ne"),
        ("one", "o\\xne"),
        ("one", "one\\"),
        ("one", "o\u{1}ne"),
        ("\"one\"", "1"),
        ("\"one\"", "null"),
        ("22", "null"),
        ("22", "\"22\""),
        ("22", "2.0"),
        ("22", "99999999999999999999"),
        ("[{", "[[{"),
    ];
    for (from, to) in others {
        assert_eq!(read(&SAMPLE.replacen(from, to, 1)), None, "{to}");
    }
    for cut in 0..SAMPLE.len() {
        assert_eq!(read(&SAMPLE[..cut]), None, "cut at {cut}");
    }
}

#[test]
fn a_text_from_elsewhere_is_not_learnt() {
    let mut template = learnt();
    let unescaped = "one".to_owned();
    template.learn(SAMPLE, 4, &unescaped, &[], &[]);
    assert_eq!(template.read(SAMPLE), None);
}

#[test]
fn an_event_up_to_the_bound_is_learnt() {
    for (bytes, is_learnt) in [
        (SAMPLE_BYTES_MAX - 1, true),
        (SAMPLE_BYTES_MAX, true),
        (SAMPLE_BYTES_MAX + 1, false),
    ] {
        let pad = " ".repeat(bytes - SAMPLE.len());
        let json = format!("{SAMPLE}{pad}");
        let at = json.find("one").unwrap();
        let mut template = Template::default();
        template.learn(&json, 3, &json[at..at + 3], &[], &[]);
        assert_eq!(template.read(&json).is_some(), is_learnt, "{bytes}");
    }
}

//! The report of `rondo test` in JUnit's format.

use super::{Case, Verdict, changed, unreadable};
use crate::render::escape::xml;
use std::fmt::Write as _;
use std::time::Duration;

/// Returns the cases in the XML that JUnit's readers take: a changed session is a failure, one that
/// cannot be read an error.
pub(super) fn report(cases: &[Case]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let total: Duration = cases.iter().map(|case| case.took).sum();
    let _ = writeln!(
        text,
        "<testsuites>\n<testsuite name=\"rondo\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\">",
        cases.len(),
        changed(cases),
        unreadable(cases),
        total.as_secs_f64()
    );
    for case in cases {
        let (name, took) = (xml(&case.name), case.took.as_secs_f64());
        let head =
            format!("<testcase classname=\"rondo.replay\" name=\"{name}\" time=\"{took:.3}\"");
        let _ = match &case.verdict {
            Verdict::Same { .. } | Verdict::SameScript { .. } => writeln!(text, "{head}/>"),
            Verdict::Changed {
                summary,
                differences,
            } => writeln!(
                text,
                "{head}><failure message=\"{}\">{}</failure></testcase>",
                xml(summary),
                xml(&differences.join("\n"))
            ),
            Verdict::Unreadable(why) => {
                writeln!(text, "{head}><error message=\"{}\"/></testcase>", xml(why))
            }
        };
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

//! `rondo usage`: the usage of the recorded sessions, as a table or JSON.

use super::report::{current_dir, write_failed};
use crate::cli::{UsageArgs, UsageKey};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::clock::Clock;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use rondo_runtime::sanitize::cell;
use rondo_runtime::settings::Settings;
use rondo_runtime::usage::{UsageBy, UsageSum, usage};
use rondo_runtime::{sessions, values::TimeSpan};
use rondo_types::TimeMs;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use textwrap::core::display_width;

/// The heads of the columns; the first is that of the key.
const HEADS: [&str; 5] = ["REQUESTS", "INPUT", "CACHED", "OUTPUT", "USD"];
/// Blanks between two columns.
const GAP: usize = 2;

/// Runs the command.
///
/// # Errors
/// When the journal cannot be read.
pub(super) fn run(args: &UsageArgs, env: Env, output: &Output) -> Result<Exit> {
    let settings = Settings::load(env, current_dir()?, Layer::default(), output)?;
    let store = sessions::open_to_read(&settings)?;
    let sums = usage(&store, by(args.by), since(args.since))?;
    if args.json {
        output
            .json(&json_lines(args.by, &sums))
            .map_err(write_failed)?;
    } else {
        output
            .stdout(&table(args.by, &sums))
            .map_err(write_failed)?;
    }
    Ok(Exit::Answer)
}

fn by(key: UsageKey) -> UsageBy {
    match key {
        UsageKey::Day => UsageBy::Day,
        UsageKey::Model => UsageBy::Model,
        UsageKey::Project => UsageBy::Project,
        UsageKey::Session => UsageBy::Session,
    }
}

fn since(span: Option<TimeSpan>) -> TimeMs {
    span.map_or(TimeMs(0), |span| Clock::system().now().before(span.0))
}

fn head(key: UsageKey) -> &'static str {
    match key {
        UsageKey::Day => "DAY",
        UsageKey::Model => "MODEL",
        UsageKey::Project => "PROJECT",
        UsageKey::Session => "SESSION",
    }
}

fn table(key: UsageKey, sums: &BTreeMap<String, UsageSum>) -> String {
    let total = sums
        .values()
        .copied()
        .fold(UsageSum::default(), UsageSum::plus);
    let mut rows = vec![row(head(key), HEADS.map(str::to_owned))];
    rows.extend(sums.iter().map(|(key, sum)| row(&cell(key), figures(sum))));
    if sums.len() != 1 {
        rows.push(row("total", figures(&total)));
    }
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = display_width(cell).max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
            let blanks = width.saturating_sub(display_width(cell));
            // The key is to the left, and figures to the right.
            let _ = match n {
                0 => write!(line, "{cell}{:blanks$}", ""),
                _ => write!(line, "{:blanks$}{cell}", "", blanks = blanks + GAP),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if total.uncounted > 0 {
        let _ = writeln!(
            text,
            "The tokens or the price of {} requests are not known.",
            total.uncounted
        );
    }
    text
}

fn row(key: &str, figures: [String; 5]) -> [String; 6] {
    let [requests, input, cached, output, usd] = figures;
    [key.to_owned(), requests, input, cached, output, usd]
}

fn figures(sum: &UsageSum) -> [String; 5] {
    [
        sum.requests.to_string(),
        sum.usage.input.to_string(),
        sum.usage.cache_read.to_string(),
        sum.usage.output.to_string(),
        format!("{:.4}", sum.cost.usd()),
    ]
}

/// Returns an object a line.
fn json_lines(key: UsageKey, sums: &BTreeMap<String, UsageSum>) -> String {
    let mut text = String::new();
    for (name, sum) in sums {
        let line = json!({
            head(key).to_lowercase(): name,
            "requests": sum.requests,
            "input": sum.usage.input,
            "output": sum.usage.output,
            "reasoning": sum.usage.reasoning,
            "cache_read": sum.usage.cache_read,
            "cache_write": sum.usage.cache_write,
            "cost_usd": sum.cost.usd(),
            "uncounted": sum.uncounted,
        });
        let _ = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_types::{NanoUsd, Usage};

    fn sum(requests: u64, uncounted: u64) -> UsageSum {
        UsageSum {
            requests,
            usage: Usage {
                input: 1200,
                output: 30,
                ..Usage::default()
            },
            cost: NanoUsd::from_usd(0.25),
            uncounted,
        }
    }

    #[test]
    fn figures_stand_below_their_heads_and_a_total_below_more_than_one() {
        let sums = BTreeMap::from([
            ("2026-11-23".to_owned(), sum(1, 0)),
            ("2026-11-24".to_owned(), sum(12, 1)),
        ]);
        assert_eq!(
            table(UsageKey::Day, &sums),
            "DAY         REQUESTS  INPUT  CACHED  OUTPUT     USD\n\
             2026-11-23         1   1200       0      30  0.2500\n\
             2026-11-24        12   1200       0      30  0.2500\n\
             total             13   2400       0      60  0.5000\n\
             The tokens or the price of 1 requests are not known.\n"
        );
        let one = BTreeMap::from([("a\u{1b}[2J".to_owned(), sum(1, 0))]);
        let shown = table(UsageKey::Model, &one);
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(!shown.contains('\u{1b}'));
    }
}

//! Cost of the journal, next to a bare `fdatasync` on the same disk.

use anyhow::{Context, Result, bail};
use rondo_tool_support::workspace;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Runs the example `journal` and renders its figures in Markdown.
///
/// # Errors
/// When it cannot be built or fails.
pub(crate) fn measure(example: Option<&Path>) -> Result<String> {
    let build = || workspace::release_example("rondo-journal", "journal");
    let example = super::built(example, build)?;
    let dir = tempfile::tempdir_in(workspace::output_dir()?)?;
    let output = Command::new(example)
        .arg("measure")
        .arg(dir.path())
        .output()
        .context("failed to start the example")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    Ok(render(&figures))
}

fn render(figures: &Value) -> String {
    let figures = Figures(figures);
    let mut rows = vec![
        row("one `fdatasync` after 4 kB", ms(figures.sync()), ""),
        row("of these a second", whole(figures.rate()), ""),
    ];
    let crowds = ["1 session", "100 sessions", "1,000 sessions"];
    for (at, crowd) in crowds.iter().enumerate() {
        rows.extend(figures.crowd(at, crowd));
    }
    let bytes = figures.shown("/appends/2/bytes_per_record", 0);
    rows.push(row("bytes on disk for a record of 600", bytes, ""));
    rows.push(row("journaling a step of one call", figures.step(), "<= 3"));
    rows.extend(figures.opening());
    table(&rows)
}

struct Figures<'a>(&'a Value);

impl Figures<'_> {
    fn number(&self, path: &str) -> Option<f64> {
        self.0.pointer(path).and_then(Value::as_f64)
    }

    fn shown(&self, path: &str, digits: usize) -> String {
        let number = self.number(path);
        number.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    }

    fn sync(&self) -> Option<f64> {
        mean(self.number("/raw_sync_ms/0"), self.number("/raw_sync_ms/1"))
    }

    fn rate(&self) -> Option<f64> {
        mean(
            self.number("/raw_syncs_per_s/0"),
            self.number("/raw_syncs_per_s/1"),
        )
    }

    fn crowd(&self, at: usize, crowd: &str) -> [Row; 2] {
        let per_s = format!("/appends/{at}/per_s");
        let times = over(self.number(&per_s), self.rate());
        let rate = format!("{} ({times} of the bare ones)", self.shown(&per_s, 0));
        let p99 = self.shown(&format!("/appends/{at}/p99_ms"), 1);
        let name = format!("until an append is durable, 99 in 100, {crowd}");
        [
            row(&format!("durable appends a second, {crowd}"), rate, ""),
            row(&name, format!("{p99} ms"), ""),
        ]
    }

    fn step(&self) -> String {
        let kept = self.number("/steps/kept_ms");
        let step = kept.zip(self.number("/steps/bare_ms"));
        let step = step.map(|(kept, bare)| kept - bare);
        format!("{} ({} `fdatasync`)", ms(step), over(step, self.sync()))
    }

    fn opening(&self) -> [Row; 4] {
        let bytes = self.number("/opening/large_bytes");
        let size = bytes.map_or("-".to_owned(), |bytes| format!("{:.1} GB", bytes / 1e9));
        let peak = self.number("/opening/large/peak_kib");
        let peak = peak.map_or("-".to_owned(), |kib| format!("{:.0} MB", kib * 1.024e-3));
        let ms = |path| format!("{} ms", self.shown(path, 1));
        let took = format!("{} s", self.shown("/opening/large/took_s", 1));
        [
            row(
                "opening 10,000 records from the first",
                ms("/opening/cold_ms"),
                "< 250 ms",
            ),
            row(
                "opening them from a snapshot",
                ms("/opening/snapshot_ms"),
                "< 5 ms",
            ),
            row(&format!("memory to open {size}"), peak, "< 100 MB"),
            row("time to open that, from the first record", took, ""),
        ]
    }
}

type Row = [String; 3];

fn row(figure: &str, value: String, aim: &str) -> Row {
    [figure.to_owned(), value, aim.to_owned()]
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from("| figure | value | aim |\n|---|---|---|\n");
    for [figure, value, aim] in rows {
        let _ = writeln!(table, "| {figure} | {value} | {aim} |");
    }
    table
}

fn mean(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| f64::midpoint(one, other))
}

fn ms(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |it| format!("{it:.2} ms"))
}

fn whole(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |it| format!("{it:.0}"))
}

fn over(ours: Option<f64>, base: Option<f64>) -> String {
    let both = ours.zip(base).filter(|(_, base)| *base > 0.0);
    both.map_or("-".to_owned(), |(ours, base)| format!("{:.2}", ours / base))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_shown_next_to_the_bare_ones_and_missing_ones_as_a_dash() {
        let figures = json!({
            "raw_sync_ms": [4.0, 6.0],
            "raw_syncs_per_s": [150.0, 250.0],
            "appends": [{ "per_s": 100.0, "p99_ms": 12.34 }],
            "steps": { "kept_ms": 11.0, "bare_ms": 1.0 },
        });
        let table = render(&figures);
        assert!(
            table.contains("| durable appends a second, 1 session | 100 (0.50 of the bare ones) |")
        );
        assert!(
            table
                .contains("| journaling a step of one call | 10.00 ms (2.00 `fdatasync`) | <= 3 |")
        );
        assert!(table.contains("1,000 sessions | - (- of the bare ones)"));
        assert!(table.lines().all(|line| line.matches('|').count() == 4));
    }
}

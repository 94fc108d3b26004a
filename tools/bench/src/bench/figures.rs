//! Measured figures, and their table.

use super::program::Crowd;
use super::server::Exchange;
use rondo_tool_support::stats::{self, Samples};
use std::time::Duration;

/// Steps to either side that count for the figure of one step.
const AROUND: usize = 5;

/// Everything that the rounds measured.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) version: Samples,
    pub(crate) cold_start: Samples,
    pub(crate) cold_peak_kib: Vec<u64>,
    pub(crate) cold_own_kib: Vec<u64>,
    pub(crate) short: Steps,
    pub(crate) ask: Steps,
    pub(crate) kept: Steps,
    pub(crate) raw_short: Steps,
    pub(crate) long: Steps,
    pub(crate) raw_long: Steps,
    pub(crate) exec: Steps,
    pub(crate) raw_exec: Steps,
    pub(crate) crowd: Samples,
    pub(crate) raw_crowd: Samples,
    pub(crate) crowd_peak_kib: Vec<u64>,
}

/// The steps of the conversations of one kind.
#[derive(Default)]
pub(crate) struct Steps {
    /// From the end of a reply to the next request.
    gap: Samples,
    at_10: Samples,
    at_100: Samples,
    at_200: Samples,
    cpu: Samples,
}

impl Steps {
    /// Adds a conversation; without a processor time, that of the watched process counts.
    pub(crate) fn add(&mut self, exchanges: &[Exchange], cpu: Option<Duration>) {
        let gaps = gaps(exchanges);
        for (step, samples) in [
            (10, &mut self.at_10),
            (100, &mut self.at_100),
            (200, &mut self.at_200),
        ] {
            let near = gaps.iter().skip(step - AROUND - 1).take(2 * AROUND + 1);
            samples.extend(near.copied().filter(|_| gaps.len() >= step));
        }
        let used = cpu.or_else(|| {
            let last = exchanges.last()?.cpu?;
            Some(last.saturating_sub(exchanges.first()?.cpu?))
        });
        let steps = u32::try_from(gaps.len()).unwrap_or(u32::MAX).max(1);
        self.cpu.extend(used.map(|used| used / steps));
        self.gap.extend(gaps);
    }
}

impl Figures {
    pub(crate) fn add_crowd(&mut self, crowd: &Crowd) {
        self.crowd.extend([crowd.wall]);
        self.crowd_peak_kib.extend(crowd.peak_kib);
    }

    /// Renders all figures as a table in Markdown.
    pub(crate) fn render(&self, requests: u32) -> String {
        let header = [
            "figure",
            "median",
            "range",
            "n",
            "raw client",
            "ratio",
            "aim",
        ];
        let rule = header.map(|_| "---".to_owned());
        let lines = [header.map(str::to_owned), rule]
            .into_iter()
            .chain(self.start_rows())
            .chain(self.step_rows())
            .chain(self.crowd_rows(requests));
        lines
            .map(|cells| format!("| {} |\n", cells.join(" | ")))
            .collect()
    }

    fn start_rows(&self) -> [[String; 7]; 4] {
        let none = Samples::default();
        let (version, cold) = (&self.version, &self.cold_start);
        [
            row("process start to end, `--version`", version, &none, ""),
            row("cold start to the first request", cold, &none, "< 8 ms"),
            memory("peak memory by then", &self.cold_peak_kib, "< 12 MB"),
            memory("of it not the program's file", &self.cold_own_kib, ""),
        ]
    }

    fn step_rows(&self) -> [[String; 7]; 11] {
        let (short, raw_short) = (&self.short, &self.raw_short);
        let (long, raw_long) = (&self.long, &self.raw_long);
        let (exec, raw_exec) = (&self.exec.gap, &self.raw_exec.gap);
        [
            row(
                "step gap, turn of 20 steps",
                &short.gap,
                &raw_short.gap,
                "<= 5x",
            ),
            row(
                "CPU a step, turn of 20 steps",
                &short.cpu,
                &raw_short.cpu,
                "",
            ),
            row(
                "step gap, turn of 200 steps",
                &long.gap,
                &raw_long.gap,
                "<= 5x",
            ),
            row(
                "CPU a step, turn of 200 steps",
                &long.cpu,
                &raw_long.cpu,
                "",
            ),
            row("step gap at step 10", &long.at_10, &raw_long.at_10, ""),
            row("step gap at step 100", &long.at_100, &raw_long.at_100, ""),
            row("step gap at step 200", &long.at_200, &raw_long.at_200, ""),
            row(
                "step 200, next to step 10",
                &long.at_200,
                &long.at_10,
                "<= 1.5x",
            ),
            row(
                "step gap of `rondo ask`, which reads a file and shows it",
                &self.ask.gap,
                &raw_short.gap,
                "",
            ),
            row(
                "the same kept durably, next to not kept",
                &self.kept.gap,
                &self.ask.gap,
                "",
            ),
            row(
                "step gap with `exec`, next to `bash -c`",
                exec,
                raw_exec,
                "",
            ),
        ]
    }

    fn crowd_rows(&self, requests: u32) -> [[String; 7]; 3] {
        let (ours, raw) = (&self.crowd, &self.raw_crowd);
        let name = "1,000 conversations of 3 calls at once";
        [
            row(name, ours, raw, ""),
            rate("requests a second in them", requests, ours, raw),
            memory("peak memory in them", &self.crowd_peak_kib, "<= 64 MB"),
        ]
    }
}

/// Returns the times from the end of each reply to the next request.
pub(crate) fn gaps(exchanges: &[Exchange]) -> Vec<Duration> {
    exchanges
        .iter()
        .zip(exchanges.iter().skip(1))
        .map(|(before, after)| after.arrived.saturating_duration_since(before.answered))
        .collect()
}

fn row(name: &str, samples: &Samples, base: &Samples, aim: &str) -> [String; 7] {
    [
        name.to_owned(),
        format!("{} ms", samples.median_ms()),
        samples.range_ms(),
        samples.count().to_string(),
        base.median_ms(),
        stats::ratio(samples, base),
        aim.to_owned(),
    ]
}

fn memory(name: &str, peaks: &[u64], aim: &str) -> [String; 7] {
    let shown = |kib: Option<&u64>| kib.map_or("-".to_owned(), |kib| format!("{:.1}", mb(*kib)));
    let mut sorted = peaks.to_vec();
    sorted.sort_unstable();
    [
        name.to_owned(),
        format!("{} MB", shown(sorted.get(sorted.len() / 2))),
        format!("{}-{}", shown(sorted.first()), shown(sorted.last())),
        sorted.len().to_string(),
        "-".to_owned(),
        "-".to_owned(),
        aim.to_owned(),
    ]
}

fn rate(name: &str, requests: u32, wall: &Samples, raw: &Samples) -> [String; 7] {
    let per_second = |samples: &Samples| {
        let wall = samples.median().filter(|wall| !wall.is_zero());
        wall.map_or("-".to_owned(), |wall| {
            format!("{:.0}", f64::from(requests) / wall.as_secs_f64())
        })
    };
    [
        name.to_owned(),
        per_second(wall),
        "-".to_owned(),
        wall.count().to_string(),
        per_second(raw),
        stats::ratio(raw, wall),
        ">= 10,000".to_owned(),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "a size to show, far below 2^53")]
fn mb(kib: u64) -> f64 {
    kib as f64 * 1.024 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn exchanges(count: u64) -> Vec<Exchange> {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        (0..count)
            .map(|step| Exchange {
                arrived: at(step * 10 + step),
                answered: at(step * 10 + step),
                peak_kib: None,
                own_kib: None,
                cpu: Some(Duration::from_millis(step * 2)),
            })
            .collect()
    }

    #[test]
    fn a_step_has_its_gap_and_its_share_of_the_processor() {
        let mut steps = Steps::default();
        steps.add(&exchanges(21), None);
        assert_eq!(
            (steps.gap.count(), steps.gap.median_ms().as_str()),
            (20, "11.000")
        );
        assert_eq!((steps.at_10.count(), steps.at_100.count()), (11, 0));
        assert_eq!(steps.cpu.median_ms(), "2.000");
    }

    #[test]
    fn the_table_has_a_cell_for_each_column_even_without_figures() {
        let table = Figures::default().render(4000);
        assert!(table.lines().all(|line| line.matches('|').count() == 8));
    }
}

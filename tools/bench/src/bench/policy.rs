//! How long the gate takes to judge a command.

use anyhow::{Context, Result, bail};
use rondo_tool_support::{table, workspace};
use std::process::Stdio;

/// Runs the benchmark `judge` of rondo-policy and renders its figures as a table.
///
/// # Errors
/// When it cannot be built or run.
pub(super) fn measure() -> Result<String> {
    let mut command = workspace::cargo();
    command
        .args(["bench", "--quiet", "-p", "rondo-policy", "--bench", "judge"])
        .stderr(Stdio::inherit());
    let output = command.output().context("failed to start cargo")?;
    if !output.status.success() {
        bail!("the benchmark `judge` ended with {}", output.status);
    }
    render(&String::from_utf8_lossy(&output.stdout))
}

fn render(printed: &str) -> Result<String> {
    let rows: Vec<[String; 5]> = printed.lines().map(row).collect::<Result<_>>()?;
    let header = ["judging", "median", "99 of 100", "slowest", "peak memory"];
    Ok(table::render(header, &rows))
}

fn row(line: &str) -> Result<[String; 5]> {
    let mut fields = line.split('\t');
    let what = fields.next().unwrap_or_default().to_owned();
    let figures: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    let [median, most, slowest, kib] = figures[..] else {
        bail!("the benchmark printed `{line}`");
    };
    let time = |ns: f64| format!("{:.3} ms", ns / 1e6);
    Ok([
        what,
        time(median),
        time(most),
        time(slowest),
        format!("{:.1} MB", kib / 1024.0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_a_row_of_times_and_memory() {
        let row = row("a\t50000\t1000000\t2000000\t2048").unwrap();
        assert_eq!(row, ["a", "0.050 ms", "1.000 ms", "2.000 ms", "2.0 MB"]);
        assert!(super::row("a\t1").is_err());
    }
}

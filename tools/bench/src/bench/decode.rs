//! How fast replies are decoded, next to copying the same bytes and to parsing them as JSON.

use anyhow::{Context, Result, bail};
use rondo_tool_support::{table, workspace};
use std::process::Stdio;

/// Bytes for each nanosecond, in MB/s.
const MB_PER_S: f64 = 1e3;

/// Output of the benchmark of the codecs for one dialect.
#[derive(Debug, PartialEq)]
struct Speed {
    dialect: String,
    bytes: f64,
    /// Nanoseconds of a round of decoding: the median and the least.
    median_ns: f64,
    least_ns: f64,
    copy_ns: f64,
    parse_ns: f64,
}

/// Runs the benchmark `decode` of rondo-wire and renders its figures as a table.
///
/// # Errors
/// When it cannot be built or run.
pub(super) fn measure() -> Result<String> {
    let mut command = workspace::cargo();
    command
        .args(["bench", "--quiet", "-p", "rondo-wire", "--bench", "decode"])
        .stderr(Stdio::inherit());
    let output = command.output().context("failed to start cargo")?;
    if !output.status.success() {
        bail!("the benchmark `decode` ended with {}", output.status);
    }
    render(&String::from_utf8_lossy(&output.stdout))
}

fn render(printed: &str) -> Result<String> {
    let rows: Vec<[String; 6]> = printed
        .lines()
        .map(|line| Ok(read(line)?.row()))
        .collect::<Result<_>>()?;
    let header = [
        "decoding",
        "median MB/s",
        "fastest MB/s",
        "serde_json MB/s",
        "over serde_json",
        "of a copy",
    ];
    Ok(table::render(header, &rows))
}

fn read(line: &str) -> Result<Speed> {
    let mut fields = line.split('\t');
    let dialect = fields.next().unwrap_or_default().to_owned();
    let figures: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    let [bytes, median_ns, least_ns, copy_ns, parse_ns] = figures[..] else {
        bail!("the benchmark printed `{line}`");
    };
    Ok(Speed {
        dialect,
        bytes,
        median_ns,
        least_ns,
        copy_ns,
        parse_ns,
    })
}

impl Speed {
    fn row(&self) -> [String; 6] {
        let speed = |ns: f64| format!("{:.0}", self.bytes / ns * MB_PER_S);
        [
            self.dialect.clone(),
            speed(self.median_ns),
            speed(self.least_ns),
            speed(self.parse_ns),
            format!("{:.2}", self.parse_ns / self.least_ns),
            format!("1/{:.0}", self.least_ns / self.copy_ns),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_a_row_of_speeds_and_ratios() {
        let speed = read("gemini\t1000\t5000\t4000\t10\t8000").unwrap();
        let row = ["gemini", "200", "250", "125", "2.00", "1/400"];
        assert_eq!(speed.row(), row);
        assert!(read("gemini\t1000").is_err());
    }
}

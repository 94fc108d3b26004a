//! Cost of the sandbox for a command.

use anyhow::{Context, Result, bail};
use rondo_tool_support::{table, workspace};
use std::process::Stdio;

/// Runs the benchmark `enter` of rondo-sandbox and renders its figures as a table.
///
/// # Errors
/// When it cannot be built or run, as where the system enforces no sandbox.
pub(super) fn measure() -> Result<String> {
    let mut command = workspace::cargo();
    command
        .args([
            "bench",
            "--quiet",
            "-p",
            "rondo-sandbox",
            "--bench",
            "enter",
        ])
        .stderr(Stdio::inherit());
    let output = command.output().context("failed to start cargo")?;
    if !output.status.success() {
        bail!("the benchmark `enter` ended with {}", output.status);
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<[String; 5]> = printed.lines().map(row).collect::<Result<_>>()?;
    let header = [
        "`true` in the sandbox",
        "median",
        "without",
        "more",
        "fastest, more",
    ];
    Ok(table::render(header, &rows))
}

fn row(line: &str) -> Result<[String; 5]> {
    let mut fields = line.split('\t');
    let mode = fields.next().unwrap_or_default().to_owned();
    let figures: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    let [median, least, bare_median, bare_least] = figures[..] else {
        bail!("the benchmark printed `{line}`");
    };
    let time = |ns: f64| format!("{:.2} ms", ns / 1e6);
    Ok([
        mode,
        time(median),
        time(bare_median),
        time(median - bare_median),
        time(least - bare_least),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_become_a_row_of_differences() {
        let row = super::row("read-only\t2000000\t1500000\t700000\t600000").unwrap();
        assert_eq!(
            row,
            ["read-only", "2.00 ms", "0.70 ms", "1.30 ms", "0.90 ms"]
        );
        assert!(super::row("read-only\t1").is_err());
    }
}

//! Cost of running a command under a supervisor.

use anyhow::{Context, Result, bail};
use rondo_tool_support::{table, workspace};
use std::process::Stdio;

/// Runs the benchmark `call` of rondo-exec and renders its figures as a table.
///
/// # Errors
/// When it cannot be built or run.
pub(super) fn measure() -> Result<String> {
    let mut command = workspace::cargo();
    command
        .args(["bench", "--quiet", "-p", "rondo-exec", "--bench", "call"])
        .stderr(Stdio::inherit());
    let output = command.output().context("failed to start cargo")?;
    if !output.status.success() {
        bail!("the benchmark `call` ended with {}", output.status);
    }
    rendered(&String::from_utf8_lossy(&output.stdout))
}

fn rendered(printed: &str) -> Result<String> {
    let of = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(name));
        let line = line.and_then(|line| line.strip_prefix('\t'));
        line.with_context(|| format!("the benchmark printed no `{name}`: {printed}"))
    };
    let header = ["", "median", "fastest", "processor, all processes"];
    let (bare, call) = (of("bare")?, of("call")?);
    let rows = [
        row("`/bin/sh -c true` on a terminal", bare)?,
        row("`exec` of `true`", call)?,
        times(bare, call)?,
        row("`/bin/sh -c true`, 10 ms after another", of("bare, later")?)?,
        row("`exec` of `true`, likewise", of("call, later")?)?,
        row("likewise, as what only looks", of("looking, later")?)?,
        row("likewise, with `workspace-write`", of("writing, later")?)?,
    ];
    let running: f64 = of("running")?.parse()?;
    let running = running / 1024.0;
    Ok(format!(
        "{}\nWhile it runs, a call's supervisor and guard have {running:.0} KiB to themselves.\n",
        table::render(header, &rows)
    ))
}

fn row(name: &str, line: &str) -> Result<[String; 4]> {
    let [median, fastest, processor] = figures(line)?;
    let time =
        |ns: Option<f64>| ns.map_or("not counted".to_owned(), |ns| format!("{:.2} ms", ns / 1e6));
    Ok([
        name.to_owned(),
        time(median),
        time(fastest),
        time(processor),
    ])
}

fn times(bare: &str, call: &str) -> Result<[String; 4]> {
    let (bare, call) = (figures(bare)?, figures(call)?);
    let [median, fastest, processor] = [0, 1, 2].map(|at: usize| {
        let pair = call
            .get(at)
            .copied()
            .flatten()
            .zip(bare.get(at).copied().flatten());
        pair.map_or("-".to_owned(), |(call, bare)| format!("{:.1}", call / bare))
    });
    Ok(["times as much".to_owned(), median, fastest, processor])
}

/// Figures that the system does not count are dashes.
fn figures(line: &str) -> Result<[Option<f64>; 3]> {
    let numbers: Vec<Option<f64>> = line.split('\t').map(|it| it.parse().ok()).collect();
    match numbers[..] {
        [median @ Some(_), fastest @ Some(_), processor] => Ok([median, fastest, processor]),
        _ => bail!("the benchmark printed `{line}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::rendered;
    use std::fmt::Write as _;

    #[test]
    fn figures_become_a_table_with_their_ratio() {
        let mut printed = "bare\t1000000\t800000\t-\ncall\t2500000\t2000000\t-\n".to_owned();
        for name in ["bare", "call", "looking", "writing"] {
            writeln!(printed, "{name}, later\t1600000\t1500000\t-").unwrap();
        }
        printed.push_str("running\t270336\n");
        let table = rendered(&printed).unwrap();
        assert!(table.contains("2.50 ms"), "{table}");
        assert_eq!(table.matches(" 2.5 ").count(), 2, "{table}");
        assert!(table.contains("264 KiB"), "{table}");
        assert!(rendered("bare\t1\n").is_err());
        assert!(rendered(&printed.replace("2500000", "x")).is_err());
    }
}

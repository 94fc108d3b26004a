//! Cost of starting a script, and of calling a tool of it.

use super::program::Program;
use anyhow::{Context, Result, bail};
use rondo_tool_support::stats::Samples;
use rondo_tool_support::{table, workspace};
use std::process::Stdio;

/// Starts of each kind, one after the other; the first one is not counted.
const STARTS: usize = 100;

/// Starts scripts with the binary, runs the benchmark `tool` of rondo-script, and renders two tables.
///
/// # Errors
/// When something cannot be built or run.
pub(super) fn measure(program: &Program) -> Result<String> {
    let starts = starts(program)?;
    let mut command = workspace::cargo();
    command
        .args(["bench", "--quiet", "-p", "rondo-script", "--bench", "tool"])
        .stderr(Stdio::inherit());
    let output = command.output().context("failed to start cargo")?;
    if !output.status.success() {
        bail!("the benchmark `tool` ended with {}", output.status);
    }
    let calls = calls(&String::from_utf8_lossy(&output.stdout))?;
    Ok(format!("{starts}\n{calls}"))
}

fn starts(program: &Program) -> Result<String> {
    let (mut version, mut script) = (Samples::default(), Samples::default());
    for round in 0..=STARTS {
        let measured = (program.version()?, program.script()?);
        if round > 0 {
            version.extend([measured.0]);
            script.extend([measured.1]);
        }
    }
    let row = |name: &str, samples: &Samples| {
        [
            name.to_owned(),
            format!("{} ms", samples.median_ms()),
            format!("{} ms", samples.range_ms()),
        ]
    };
    let rows = [
        row("`rondo --version`", &version),
        row("`rondo run` of a script that prints a line", &script),
    ];
    let header = ["process start to end", "median", "least to greatest"];
    Ok(table::render(header, &rows))
}

fn calls(printed: &str) -> Result<String> {
    let of = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(name));
        let line = line.and_then(|line| line.strip_prefix('\t'));
        let line = line.with_context(|| format!("the benchmark printed no `{name}`: {printed}"))?;
        figures(line)
    };
    let (lua, rust) = (of("lua")?, of("rust")?);
    let ([lua_median, lua_least], [rust_median, rust_least]) = (lua, rust);
    let into_lua = [lua_median - rust_median, lua_least - rust_least];
    let rows = [
        row("a call of a tool in Lua, all in all", lua),
        row("the same in Rust", rust),
        row("the way into Lua and back: the difference", into_lua),
        row(
            "a script without calls, in a process that runs",
            of("start")?,
        ),
    ];
    let header = ["processor time", "median", "least"];
    Ok(table::render(header, &rows))
}

fn row(name: &str, nanoseconds: [f64; 2]) -> [String; 3] {
    let [median, least] = nanoseconds.map(|it| format!("{:.1} us", it / 1e3));
    [name.to_owned(), median, least]
}

fn figures(line: &str) -> Result<[f64; 2]> {
    let numbers: Vec<f64> = line.split('\t').map(str::parse).collect::<Result<_, _>>()?;
    let numbers = numbers.try_into();
    numbers.map_err(|_| anyhow::anyhow!("the benchmark printed `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn figures_become_a_table_with_what_lua_adds() {
        let printed = "lua\t60000\t50000\nrust\t48500\t40000\nstart\t900000\t800000\n";
        let table = calls(printed).unwrap();
        assert!(
            table.contains("11.5 us") && table.contains("10.0 us"),
            "{table}"
        );
        assert!(table.contains("900.0 us"), "{table}");
        assert!(calls("lua\t1\t1\n").is_err());
        assert!(calls(&printed.replace("48500", "x")).is_err());
    }
}

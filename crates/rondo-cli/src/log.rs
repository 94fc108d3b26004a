//! The output of `-v`, on standard error, which never contains messages or results.
//!
//! `-v` follows a turn (requests, calls, retries), `-vv` adds details (verdicts, repairs, connections), `-vvv`
//! everything that Rondo and its libraries log, except for the library that would log commands.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::{Output, Stderr};
use rondo_runtime::env::Env;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Where a library exchanges codes for tokens.
const SIGN_IN: &str = "rmcp::transport::auth";
/// Names what is logged, such as `rondo_core=trace,rondo_http=debug`; it comes before `-v`.
const VARIABLE: &str = "RONDO_LOG";
/// All our crates begin with it.
const OURS: &str = "rondo";

/// Starts the log, where there is to be one.
pub(crate) fn start(verbose: u8, env: &Env) -> Result<()> {
    let Some(wanted) = wanted(verbose, env)? else {
        return Ok(());
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| Stderr)
        .with_ansi(Output::detect(env, None, false).stderr_color)
        .with_filter(wanted);
    tracing_subscriber::registry().with(lines).init();
    Ok(())
}

fn wanted(verbose: u8, env: &Env) -> Result<Option<Targets>> {
    if let Some(named) = env.get(VARIABLE) {
        let named: Result<Targets, _> = named.parse().map_err(|err| {
            CliError::new(
                Exit::Config,
                format_args!("the variable `{VARIABLE}` is invalid: `{named}`: {err}"),
            )
        });
        return named.map(without_secrets).map(Some);
    }
    let (ours, others) = match verbose {
        0 => return Ok(None),
        1 => (LevelFilter::INFO, LevelFilter::WARN),
        2 => (LevelFilter::DEBUG, LevelFilter::WARN),
        _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    let targets = Targets::new().with_default(others).with_target(OURS, ours);
    Ok(Some(without_secrets(targets)))
}

/// Leaves out what a library writes with codes and tokens in it.
fn without_secrets(targets: Targets) -> Targets {
    targets.with_target(SIGN_IN, LevelFilter::OFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn each_flag_shows_more_and_the_variable_comes_first() {
        let shown = |verbose, env: &Env, level| {
            let targets = wanted(verbose, env).unwrap();
            targets.is_some_and(|it| it.would_enable("rondo_core::driver", &level))
        };
        let none = Env::default();
        assert!(!shown(0, &none, Level::ERROR));
        assert!(shown(1, &none, Level::INFO) && !shown(1, &none, Level::DEBUG));
        assert!(shown(2, &none, Level::DEBUG) && !shown(2, &none, Level::TRACE));
        assert!(shown(3, &none, Level::TRACE));
        let all = wanted(0, &Env::of(&[(VARIABLE, "trace")]))
            .unwrap()
            .unwrap();
        assert!(all.would_enable("rmcp::service", &Level::TRACE));
        assert!(!all.would_enable("rmcp::transport::auth", &Level::ERROR));
        let named = Env::of(&[(VARIABLE, "rondo_core=debug")]);
        assert!(shown(0, &named, Level::DEBUG) && !shown(3, &named, Level::TRACE));
        assert!(wanted(0, &Env::of(&[(VARIABLE, "rondo=loud")])).is_err());
    }
}

//! The output of `-v`, on standard error, which never contains messages or results.
//!
//! `-v` follows a turn (requests, calls, retries), `-vv` adds details (verdicts, repairs, connections), `-vvv`
//! everything that Rondo and its libraries log, except for the library that would log commands.

use crate::cli::LogFormat;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::{Output, Stderr};
use rondo_runtime::env::Env;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Target of the library that exchanges codes for tokens.
const SIGN_IN: &str = "rmcp::transport::auth";
/// Names what is logged, such as `rondo_core=trace,rondo_http=debug`; it comes before `-v`.
const VARIABLE: &str = "RONDO_LOG";
/// All our crates begin with it.
const OURS: &str = "rondo";

/// Filter and format of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogOptions {
    /// How often `-v` was given.
    pub(crate) verbose: u8,
    /// Logs warnings without `-v`.
    pub(crate) warns: bool,
    /// How its lines are written.
    pub(crate) format: LogFormat,
}

/// Starts the log, if it is wanted.
pub(crate) fn start(logged: LogOptions, env: &Env) -> Result<()> {
    let Some(wanted) = wanted(logged, env)? else {
        return Ok(());
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Stderr);
    let lines = match logged.format {
        LogFormat::Text => lines
            .with_ansi(Output::detect(env, None, false).stderr_color)
            .boxed(),
        LogFormat::Json => lines.with_ansi(false).json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(wanted))
        .init();
    Ok(())
}

fn wanted(logged: LogOptions, env: &Env) -> Result<Option<Targets>> {
    if let Some(named) = env.get(VARIABLE) {
        let named: Result<Targets, _> = named.parse().map_err(|err| {
            CliError::new(
                Exit::Config,
                format_args!("the variable `{VARIABLE}` is invalid: `{named}`: {err}"),
            )
        });
        return named.map(without_secrets).map(Some);
    }
    let (ours, others) = match logged.verbose {
        0 if logged.warns => (LevelFilter::WARN, LevelFilter::ERROR),
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
            let logged = LogOptions {
                verbose,
                ..LogOptions::default()
            };
            let targets = wanted(logged, env).unwrap();
            targets.is_some_and(|it| it.would_enable("rondo_core::driver", &level))
        };
        let none = Env::default();
        assert!(!shown(0, &none, Level::ERROR));
        assert!(shown(1, &none, Level::INFO) && !shown(1, &none, Level::DEBUG));
        assert!(shown(2, &none, Level::DEBUG) && !shown(2, &none, Level::TRACE));
        assert!(shown(3, &none, Level::TRACE));
        let quiet = LogOptions::default();
        let all = wanted(quiet, &Env::of(&[(VARIABLE, "trace")]))
            .unwrap()
            .unwrap();
        assert!(all.would_enable("rmcp::service", &Level::TRACE));
        assert!(!all.would_enable("rmcp::transport::auth", &Level::ERROR));
        let named = Env::of(&[(VARIABLE, "rondo_core=debug")]);
        assert!(shown(0, &named, Level::DEBUG) && !shown(3, &named, Level::TRACE));
        assert!(wanted(quiet, &Env::of(&[(VARIABLE, "rondo=loud")])).is_err());
        let gateway = LogOptions {
            warns: true,
            ..quiet
        };
        let gateway = wanted(gateway, &none).unwrap().unwrap();
        assert!(gateway.would_enable("rondo_hub::states", &Level::WARN));
        assert!(!gateway.would_enable("rondo_hub::hub", &Level::INFO));
    }
}

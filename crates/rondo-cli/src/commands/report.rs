//! Output and errors that all commands have in common.

use crate::cli::{ColorChoice, OutputFormat};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::early_result;
use rondo_core::clock::Clock;
use rondo_runtime::Layer;
use rondo_runtime::env::Env;
use std::io;
use std::path::{Path, PathBuf};

/// Prints an error and returns how the process ends.
pub(crate) fn report(error: &CliError, output: &Output) -> Exit {
    let exit = exit_of(error);
    if exit != Exit::PipeClosed {
        output.error(error);
    }
    exit
}

/// Returns how the process ends by an error.
pub(crate) fn exit_of(error: &CliError) -> Exit {
    match is_broken_pipe(error) {
        true => Exit::PipeClosed,
        false => error.exit,
    }
}

/// Returns the directory the process was started in.
pub(crate) fn current_dir() -> Result<PathBuf> {
    std::env::current_dir().map_err(|err| {
        // Of a directory that is gone, the system does not tell the name.
        let named = std::env::var_os("PWD").map(PathBuf::from);
        let lost = named.filter(|it| it.is_absolute() && !it.is_dir());
        let context = match lost {
            Some(directory) => gone(&directory),
            None => "failed to find the current directory".to_owned(),
        };
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
            .hint("`cd` to a directory that exists")
    })
}

/// Describes a missing working directory.
pub(crate) fn gone(directory: &Path) -> String {
    format!("the directory `{}` no longer exists", directory.display())
}

/// Turns a failure to write to standard output into an error.
pub(crate) fn write_failed(err: io::Error) -> CliError {
    let context = "failed to write to standard output";
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}

/// Prints the `result` line of a run that failed before its turn, if one is expected.
pub(crate) fn print_early_result(error: &CliError, format: OutputFormat, output: &Output) {
    if format != OutputFormat::Text {
        let at = Clock::system().now();
        let _ = output.json(&early_result(error, at));
    }
}

/// Returns the output of a command under its settings.
pub(crate) fn output_of(values: &Layer, env: &Env, flag: Option<ColorChoice>) -> Output {
    Output::detect(env, flag.or(values.color), values.quiet.unwrap_or(false))
}

fn is_broken_pipe(error: &CliError) -> bool {
    error
        .error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|err| err.kind() == io::ErrorKind::BrokenPipe)
}

//! The `rondo` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: the same binary reads documents, which may be made to do harm.
    rondo_runtime::web::run_if_requested();
    // It is also the supervisor of the commands it starts.
    rondo_exec::supervisor::run_if_requested();
    rondo_exec::move_environment();
    rondo_exec::hide_environment();
    rondo_exec::survive_large_files();
    // One thread does most of the work: a heap of its own costs each of the others more than it is worth.
    rondo_exec::bound_heaps(2);
    ExitCode::from(rondo_cli::run(std::env::args_os().collect()))
}

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
    // One thread does most of the work, and a heap of its own costs each other one more than to wait for it.
    rondo_exec::bound_heaps(1);
    ExitCode::from(rondo_cli::run(std::env::args_os().collect()))
}

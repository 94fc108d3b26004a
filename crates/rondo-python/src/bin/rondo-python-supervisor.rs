//! The supervisor as a program of its own, for programs that cannot call the hook in their `main`.

fn main() -> std::process::ExitCode {
    rondo_launch::run_if_requested(&[]);
    std::process::ExitCode::from(2)
}

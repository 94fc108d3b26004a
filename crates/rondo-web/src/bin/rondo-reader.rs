//! The process that reads documents as a program of its own, for programs that cannot call the hook in their `main`.

fn main() -> std::process::ExitCode {
    rondo_web::reader::run_if_requested();
    std::process::ExitCode::from(2)
}

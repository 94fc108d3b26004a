//! This program, started once more: for work that continues when the terminal it was asked for at is gone.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, Stdio};

/// Starts this program with other arguments. Its standard output is a pipe, the other two streams are this process's;
/// it leaves the terminal by itself.
///
/// # Errors
/// When the program is gone, or the system starts no more processes.
pub fn start_again(arguments: impl IntoIterator<Item = OsString>) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
}

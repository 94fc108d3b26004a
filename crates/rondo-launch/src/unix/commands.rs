//! Programs that run commands, and the way they are started.

use super::{
    BASH_PATHS, MARK_VARIABLE, Pty, die_with_supervisor, give_way, marks, own_session, pid,
};
use crate::pipe::write_all;
use crate::protocol::{CallSpec, ProcessSpec};
use crate::simple::Simple;
use rondo_sandbox::Protection;
use rustix::io::FdFlags;
use rustix::process::Pid;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The bound on one argument of a program on Linux, in bytes, with the zero at its end.
const ARGUMENT_BYTES_MAX: usize = 128 << 10;

/// Starts `bash -c`, or the program itself if there is a list of words, in its own session with the terminal as its
/// controlling one.
///
/// Forks, so only the small supervisor may call it.
///
/// `mark` is in the environment of everything that the command starts, beside the `variables`. Returns its process,
/// and what to restore when it has ended.
pub(crate) fn spawn_command(
    spec: &CallSpec,
    variables: &[(OsString, OsString)],
    pty: &Pty,
    mark: &str,
) -> io::Result<(Pid, Protection)> {
    if let Some(command) = without_shell(spec, variables)? {
        let started = spawn_on_terminal(command, spec, variables, pty, mark);
        // A file that cannot be executed, such as a script without an interpreter line, is left to the shell.
        if started.is_ok() || spec.argv.is_some() {
            return started;
        }
    }
    spawn_on_terminal(in_shell(spec, variables)?, spec, variables, pty, mark)
}

/// Returns the command as a program, if it needs no shell.
///
/// # Errors
/// When it is a list of words whose first leads to no program.
pub(crate) fn without_shell(
    spec: &CallSpec,
    variables: &[(OsString, OsString)],
) -> io::Result<Option<Command>> {
    let simple = match &spec.argv {
        Some(argv) => Some(Simple::of_words(argv, variables, &spec.directory)?),
        None => Simple::of(&spec.command, variables, &spec.directory),
    };
    Ok(simple.map(|it| it.command(variables, &spec.directory)))
}

/// Returns the command as a shell's.
///
/// # Errors
/// When there is no shell.
pub(crate) fn in_shell(spec: &CallSpec, variables: &[(OsString, OsString)]) -> io::Result<Command> {
    let bash = BASH_PATHS
        .iter()
        .find(|path| Path::new(path).exists())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "`bash` is not installed"))?;
    let mut shell = Command::new(bash);
    shell.arg("-c");
    match spec.command.len() < ARGUMENT_BYTES_MAX {
        true => shell.arg(&spec.command),
        false => read_from_memory(&mut shell, &spec.command)?,
    };
    shell
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value)));
    Ok(shell)
}

/// Makes the shell read a command from a file in memory.
#[cfg(target_os = "linux")]
fn read_from_memory<'a>(shell: &'a mut Command, command: &str) -> io::Result<&'a mut Command> {
    use std::os::fd::AsRawFd as _;
    let memory = rustix::fs::memfd_create("command", rustix::fs::MemfdFlags::CLOEXEC)?;
    write_all(&memory, command.as_bytes())?;
    let number = memory.as_raw_fd();
    let line = format!("\\builtin eval \"$(</dev/fd/{number})\" {number}<&-");
    let inherit = move || Ok(rustix::io::fcntl_setfd(&memory, FdFlags::empty())?);
    #[expect(
        unsafe_code,
        reason = "a descriptor is only handed on between fork and exec"
    )]
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; the closure makes one system call.
    unsafe {
        shell.pre_exec(inherit);
    }
    Ok(shell.arg(line))
}

/// Passes the command as it is: other systems have no bound for one argument.
#[cfg(not(target_os = "linux"))]
fn read_from_memory<'a>(shell: &'a mut Command, command: &str) -> io::Result<&'a mut Command> {
    Ok(shell.arg(command))
}

/// Gives a command what it has wherever it is started: its directory, its mark, and a terminal for its output.
pub(crate) fn put_on_terminal(
    command: &mut Command,
    spec: &CallSpec,
    variables: &[(OsString, OsString)],
    terminal: &OwnedFd,
    mark: &str,
) -> io::Result<()> {
    command
        .current_dir(&spec.directory)
        .env(MARK_VARIABLE, marks(variables, mark))
        .stdin(Stdio::null())
        .stdout(terminal.try_clone()?)
        .stderr(terminal.try_clone()?);
    Ok(())
}

/// Starts what runs a command in its own session, on the terminal.
fn spawn_on_terminal(
    mut shell: Command,
    spec: &CallSpec,
    variables: &[(OsString, OsString)],
    pty: &Pty,
    mark: &str,
) -> io::Result<(Pid, Protection)> {
    put_on_terminal(&mut shell, spec, variables, &pty.slave, mark)?;
    give_way_before_exec(&mut shell);
    // First, since entering it would undo that the command ends with its supervisor.
    let sandbox = spec.sandbox.as_ref();
    let protection = sandbox.map(|it| rondo_sandbox::confine(&mut shell, it));
    let protection = protection.transpose()?.unwrap_or_default();
    own_session(&mut shell);
    let child = shell.spawn()?;
    let leader =
        pid(child.id()).ok_or_else(|| io::Error::other("the kernel gave no process id"))?;
    Ok((leader, protection))
}

/// Makes the kernel end a command before others if memory is short.
#[expect(
    unsafe_code,
    reason = "a process can only give way itself, between fork and exec"
)]
fn give_way_before_exec(command: &mut Command) {
    let work = || {
        give_way();
        Ok(())
    };
    // SAFETY: the closure opens and writes a file, and may allocate, which the C library allows after a fork; the small
    // supervisor has one thread.
    unsafe { command.pre_exec(work) };
}

/// Starts a program in its own session, with those standard streams.
///
/// Forks, so only the small supervisor may call it.
///
/// `mark` is in the environment of everything that it starts, beside the `variables`. Everything in its sandbox is killed
/// when the protection is dropped. Nothing is put back: the program may run for days, in which others change the same files.
pub(crate) fn spawn_process(
    spec: &ProcessSpec,
    variables: &[(OsString, OsString)],
    streams: [OwnedFd; 3],
    mark: &str,
) -> io::Result<(Pid, Protection)> {
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.arguments)
        .current_dir(&spec.directory)
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env(MARK_VARIABLE, marks(variables, mark))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    // First, since entering it would undo that the process ends with its supervisor.
    let sandbox = spec.sandbox.as_ref();
    let protection = sandbox.map(|it| rondo_sandbox::confine(&mut command, it));
    let protection = protection.transpose()?.unwrap_or_default();
    lead_session(&mut command);
    let child = command.spawn()?;
    let process =
        pid(child.id()).ok_or_else(|| io::Error::other("the kernel gave no process id"))?;
    Ok((process, protection))
}

/// Gives a command a session without a terminal.
///
/// Makes the command fork, so only the small supervisor may call it.
#[expect(
    unsafe_code,
    reason = "a session can only be made between fork and exec"
)]
fn lead_session(command: &mut Command) {
    let lead = || {
        rustix::process::setsid()?;
        die_with_supervisor();
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; the closure makes
    // two system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(lead) };
}

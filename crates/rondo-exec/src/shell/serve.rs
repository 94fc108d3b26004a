//! The supervisor of a shell: one loop over its file descriptors.

use super::jobs::Ending;
use super::marks::{Mark, MarkKind, Piece, Scanner};
use super::protocol::{Exit, Family, Frames, FromSupervisor, ShellAtPrompt, Spec, ToSupervisor};
use super::report::{REPORT_BYTES_MAX, last_of, parse};
use super::runtime_dir::RuntimeDir;
use super::unix;
use rondo_launch::{Assignment, Role, send_last, start_reaper};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

/// Input that bash reads at its prompt. `&& :` keeps `set -e` and traps out of it, and its output under `set -x` is
/// not wanted.
const BASH_TRIGGER: &[u8] =
    b" { __rondo_read && :; } 2> /dev/null; \\builtin eval \"$__rondo_line\"\n";
const ZSH_TRIGGER: &[u8] =
    b" __rondo_read && :; __rondo_before && :; \\builtin eval \"$__rondo_line\"; __rondo_keep && :\n";
/// How much is read at once, in bytes.
const READ_BYTES: usize = 16 << 10;
/// The bound on output that the agent has not taken, in bytes. While a command runs, the terminal
/// is not read beyond it; at the prompt, more is dropped.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// The bound on input that the shell has not taken, in bytes; orders are not read beyond it.
const TYPED_BYTES_MAX: usize = 64 << 10;
/// How long the end of a command waits for its prompt, which comes after the shell's word on jobs.
/// The prompt is not seen if the user has sent the shell's own messages elsewhere.
const PROMPT_MAX: Duration = Duration::from_millis(250);
/// How long output of what stays is taken once the shell has ended.
const DRAIN_MAX: Duration = Duration::from_millis(250);
/// Stands for the exit code of a shell whose end was not seen.
const LOST_CODE: i32 = 255;
/// How often the processes that must end are looked for.
const ENDING_EVERY: Duration = Duration::from_millis(10);

/// A shell's supervisor.
pub(crate) const ROLE: Role = Role {
    name: "shell",
    descriptors: 0,
    serve,
};

/// Serves one shell from its specification to its end.
fn serve(mut given: Assignment) -> io::Result<i32> {
    let spec: Spec = given.spec()?;
    rustix::process::setsid()?;
    if !given.is_to_go()? {
        return Ok(0);
    }
    supervise(&spec, given).map(|()| 0)
}

fn supervise(spec: &Spec, given: Assignment) -> io::Result<()> {
    let Assignment {
        control: orders,
        frames: news,
        variables,
        said,
        // Open until this process ends.
        life: _life,
        ..
    } = given;
    let mut frames = Frames::default();
    frames.push(&said);
    let zdotdir = variables.iter().find(|(name, _)| name == "ZDOTDIR");
    let own_files = zdotdir.map(|(_, value)| value.as_os_str());
    let runtime_dir = RuntimeDir::make(&spec.state_dir, spec.family, own_files)?;
    let pty = unix::open_terminal(spec.size)?;
    let leader = unix::spawn(command(spec, &variables, &runtime_dir), &pty)?;
    let slave = unix::reopen(&pty)?;
    let reaped = start_reaper(leader)?.report;
    for fd in [&orders, &news, &pty.master] {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    Server {
        scanner: Scanner::new(&runtime_dir.nonce),
        is_read: false,
        is_echo_off: false,
        trigger: trigger(spec.family),
        family: spec.family,
        runtime_dir,
        leader,
        master: Some(pty.master),
        slave,
        reaped: Some(reaped),
        orders: Some(orders),
        news: Some(news),
        frames,
        unsent: Vec::new(),
        typed: Vec::new(),
        early: Vec::new(),
        line: Vec::new(),
        given: Vec::new(),
        report: Vec::new(),
        phase: Phase::Running { seq: 0 },
        jobs: Vec::new(),
        prompt_at: None,
        at_prompt: None,
        exit: None,
    }
    .run()
}

fn trigger(family: Family) -> &'static [u8] {
    match family {
        Family::Bash => BASH_TRIGGER,
        Family::Zsh => ZSH_TRIGGER,
    }
}

fn command(spec: &Spec, variables: &[(OsString, OsString)], runtime_dir: &RuntimeDir) -> Command {
    let mut shell = Command::new(&spec.program);
    shell
        .current_dir(&spec.directory)
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value)));
    match spec.family {
        Family::Bash => {
            let start_file = runtime_dir.path().join("bashrc");
            shell
                .arg("--noediting")
                .arg("--rcfile")
                .arg(start_file)
                .arg("-i");
        }
        Family::Zsh => {
            shell.args(["-i", "+Z"]).env("ZDOTDIR", runtime_dir.path());
        }
    }
    shell
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// At the prompt.
    Idle,
    /// The line was handed over; the shell has not begun it.
    Given { seq: u64 },
    /// The command runs, or with 0 the start files.
    Running { seq: u64 },
    /// The command is over; its prompt is to come.
    Over { seq: u64, until: Instant },
}

struct Server {
    scanner: Scanner,
    /// Set once the shell has read its input.
    is_read: bool,
    /// Set if the terminal hides typed input for us.
    is_echo_off: bool,
    runtime_dir: RuntimeDir,
    /// Input that makes the shell read its next line.
    trigger: &'static [u8],
    family: Family,
    leader: Pid,
    master: Option<OwnedFd>,
    slave: OwnedFd,
    reaped: Option<OwnedFd>,
    orders: Option<OwnedFd>,
    news: Option<OwnedFd>,
    frames: Frames,
    unsent: Vec<u8>,
    typed: Vec<u8>,
    /// Output from before the command had begun.
    early: Vec<u8>,
    line: Vec<u8>,
    /// The next line for the shell, as it is sent.
    given: Vec<u8>,
    report: Vec<u8>,
    phase: Phase,
    jobs: Vec<i32>,
    prompt_at: Option<u64>,
    /// Message to send once the prompt has come.
    at_prompt: Option<ShellAtPrompt>,
    exit: Option<Exit>,
}

/// Use of a file descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Reaped,
    ToSupervisor,
    FromSupervisor,
    Terminal,
    Report,
    Line,
}

impl Server {
    fn run(mut self) -> io::Result<()> {
        // Obeys the orders that came with the specification.
        self.obey_all();
        while self.exit.is_none() && self.orders.is_some() && self.news.is_some() {
            for (source, flags) in self.wait()? {
                self.serve_one(source, flags);
            }
            if let Phase::Over { until, .. } = self.phase
                && Instant::now() >= until
            {
                self.be_idle();
            }
        }
        self.end()
    }

    fn wait(&self) -> io::Result<Vec<(Source, PollFlags)>> {
        let takes = |is_so: bool, flags| if is_so { flags } else { PollFlags::empty() };
        let reads_terminal = self.unsent.len() < UNSENT_BYTES_MAX || self.phase == Phase::Idle;
        let terminal =
            takes(reads_terminal, PollFlags::IN) | takes(!self.typed.is_empty(), PollFlags::OUT);
        // Without flags, an agent that is gone is still noticed.
        let orders = takes(
            self.typed.len().max(self.early.len()) < TYPED_BYTES_MAX,
            PollFlags::IN,
        );
        let all = [
            (Source::Reaped, self.reaped.as_ref(), PollFlags::IN),
            (Source::ToSupervisor, self.orders.as_ref(), orders),
            (
                Source::FromSupervisor,
                self.news.as_ref(),
                takes(!self.unsent.is_empty(), PollFlags::OUT),
            ),
            (Source::Report, Some(&self.runtime_dir.state), PollFlags::IN),
            (
                Source::Terminal,
                self.master.as_ref().filter(|_| !terminal.is_empty()),
                terminal,
            ),
            (
                Source::Line,
                Some(&self.runtime_dir.line).filter(|_| !self.line.is_empty()),
                PollFlags::OUT,
            ),
        ];
        poll(&all, self.patience())
    }

    fn patience(&self) -> Option<Duration> {
        match self.phase {
            Phase::Over { until, .. } => Some(until.saturating_duration_since(Instant::now())),
            Phase::Idle | Phase::Given { .. } | Phase::Running { .. } => None,
        }
    }

    fn serve_one(&mut self, source: Source, flags: PollFlags) {
        match source {
            Source::Reaped => self.take_reaped(),
            Source::ToSupervisor => self.take_orders(),
            Source::FromSupervisor => self.send(),
            Source::Report => self.take_report(),
            Source::Line => give(&self.runtime_dir.line, &mut self.line),
            Source::Terminal => {
                if let Some(master) = self.master.as_ref()
                    && flags.contains(PollFlags::OUT)
                {
                    give(master, &mut self.typed);
                }
                if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.take_output();
                }
            }
        }
    }

    fn take_reaped(&mut self) {
        let mut bytes = [0; 64];
        match self
            .reaped
            .as_ref()
            .map(|fd| rustix::io::read(fd, &mut bytes))
        {
            Some(Err(Errno::INTR)) | None => {}
            Some(Ok(length)) if length > 0 => {
                let report = bytes.get(..length).unwrap_or_default();
                if let Some((code, signal)) = report.split_first_chunk() {
                    let signal = String::from_utf8_lossy(signal).into_owned();
                    self.exit = Some(Exit {
                        code: i32::from_be_bytes(*code),
                        signal: (!signal.is_empty()).then_some(signal),
                    });
                }
            }
            Some(_) => self.reaped = None,
        }
    }

    fn take_orders(&mut self) {
        let mut buffer = [0; READ_BYTES];
        let read = self
            .orders
            .as_ref()
            .map(|fd| rustix::io::read(fd, &mut buffer));
        match read {
            Some(Err(Errno::AGAIN | Errno::INTR)) | None => return,
            Some(Ok(length)) if length > 0 => {
                self.frames.push(buffer.get(..length).unwrap_or_default());
            }
            Some(_) => self.orders = None,
        }
        self.obey_all();
    }

    fn obey_all(&mut self) {
        loop {
            match self.frames.next() {
                Ok(Some((kind, payload))) => {
                    if let Some(order) = ToSupervisor::decode(kind, &payload) {
                        self.obey(order);
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    self.orders = None;
                    return;
                }
            }
        }
    }

    fn obey(&mut self, order: ToSupervisor) {
        match (order, self.phase) {
            (ToSupervisor::Run { seq, line }, Phase::Idle) => self.give_line(seq, &line),
            (ToSupervisor::Run { .. }, _) | (ToSupervisor::Input(_), Phase::Idle) => {}
            (ToSupervisor::Input(bytes), Phase::Over { .. }) => {
                if let Some(at) = self.at_prompt.as_mut() {
                    at.unread.extend(bytes);
                }
            }
            // An interrupt would hit the shell while it reads the line.
            (ToSupervisor::Input(bytes), Phase::Given { .. }) => self.early.extend(bytes),
            (ToSupervisor::Input(bytes), Phase::Running { .. }) => self.type_in(&bytes),
            (ToSupervisor::Resize(size), _) => {
                if let Some(master) = &self.master {
                    unix::resize(master, size);
                }
            }
            (ToSupervisor::Interrupt, Phase::Given { .. }) => {
                self.early = vec![unix::interrupt_byte(&self.slave)];
            }
            (ToSupervisor::Interrupt, Phase::Running { .. }) => {
                self.typed.clear();
                self.type_in(&[unix::interrupt_byte(&self.slave)]);
            }
            (ToSupervisor::Interrupt, Phase::Idle | Phase::Over { .. }) => {}
            (ToSupervisor::End, _) => self.orders = None,
        }
    }

    fn type_in(&mut self, bytes: &[u8]) {
        self.typed.extend_from_slice(bytes);
        if let Some(master) = &self.master {
            give(master, &mut self.typed);
        }
    }

    fn give_line(&mut self, seq: u64, line: &[u8]) {
        let head = format!("l:{}", self.runtime_dir.nonce);
        let seq_text = seq.to_string();
        self.given = self
            .family
            .lines(&[head.as_bytes(), seq_text.as_bytes(), line]);
        self.phase = Phase::Given { seq };
        self.make_it_read();
    }

    /// Types what makes the shell read. That must not be seen, and to take its echo out of what jobs
    /// write in the middle of it is not possible, so there is none until the shell says that it reads.
    fn make_it_read(&mut self) {
        self.is_read = false;
        self.is_echo_off |= unix::set_echo(&self.slave, false);
        self.type_in(self.trigger);
    }

    fn hand_over(&mut self) {
        self.show_echo();
        if !std::mem::replace(&mut self.is_read, true) {
            self.line.extend_from_slice(&self.given);
            give(&self.runtime_dir.line, &mut self.line);
        }
    }

    fn show_echo(&mut self) {
        if std::mem::take(&mut self.is_echo_off) {
            unix::set_echo(&self.slave, true);
        }
    }

    /// An interrupt that came late for the last command has taken the shell from its prompt, and what
    /// was given with it. The shell waits for our answer, so nothing of it is read meanwhile.
    fn give_again(&mut self, seq: u64) {
        self.typed.clear();
        let _ = unix::take_unread(&self.slave);
        self.acknowledge(seq);
        self.make_it_read();
    }

    fn take_report(&mut self) {
        let mut buffer = [0; READ_BYTES];
        while let Ok(length) = rustix::io::read(&self.runtime_dir.state, &mut buffer) {
            let room = REPORT_BYTES_MAX.saturating_sub(self.report.len());
            let bytes = buffer.get(..length.min(room)).unwrap_or_default();
            self.report.extend_from_slice(bytes);
            if length == 0 {
                return;
            }
        }
    }

    fn take_output(&mut self) {
        let mut buffer = [0; READ_BYTES];
        let read = self
            .master
            .as_ref()
            .map(|fd| rustix::io::read(fd, &mut buffer));
        match read {
            Some(Err(Errno::AGAIN | Errno::INTR)) | None => {}
            Some(Ok(length)) if length > 0 => {
                for piece in self.scanner.feed(buffer.get(..length).unwrap_or_default()) {
                    match piece {
                        Piece::Output(bytes) => self.pass_on(bytes),
                        Piece::Mark(mark) => self.take_mark(mark),
                    }
                }
            }
            // EIO: no process holds the shell's end any more, not even this one.
            Some(_) => self.master = None,
        }
    }

    fn pass_on(&mut self, bytes: Vec<u8>) {
        let has_room = self.phase != Phase::Idle || self.unsent.len() < UNSENT_BYTES_MAX;
        if !bytes.is_empty() && has_room {
            self.tell(&FromSupervisor::Output(bytes));
        }
    }

    fn take_mark(&mut self, mark: Mark) {
        match (mark.kind, self.phase) {
            (MarkKind::Began, Phase::Given { seq }) if mark.seq == seq => {
                self.phase = Phase::Running { seq };
                self.given = Vec::new();
                let early = std::mem::take(&mut self.early);
                self.type_in(&early);
            }
            (MarkKind::Over, Phase::Given { seq } | Phase::Running { seq }) if mark.seq == seq => {
                self.show_echo();
                self.at_prompt = Some(self.command_over(mark));
                self.phase = Phase::Over {
                    seq,
                    until: Instant::now() + PROMPT_MAX,
                };
                self.acknowledge(seq);
            }
            (MarkKind::Reads, Phase::Given { .. }) => self.hand_over(),
            (MarkKind::Over, Phase::Given { .. }) => self.give_again(mark.seq),
            // It came again: its hook was interrupted, or our answer was late.
            (MarkKind::Over, _) => self.acknowledge(mark.seq),
            (MarkKind::Prompt, Phase::Over { seq, .. }) if mark.seq == seq => {
                self.be_idle();
            }
            (MarkKind::Reads | MarkKind::Began | MarkKind::Prompt, _) => {}
        }
    }

    fn command_over(&mut self, mark: Mark) -> ShellAtPrompt {
        self.take_report();
        let all = std::mem::take(&mut self.report);
        let report = last_of(&all, &self.runtime_dir.nonce).unwrap_or_default();
        self.jobs = parse(report).map(|report| report.jobs).unwrap_or_default();
        self.prompt_at = unix::now_in_ticks();
        let mut unread = unix::take_unread(&self.slave);
        unread.append(&mut self.typed);
        unread.append(&mut self.early);
        ShellAtPrompt {
            seq: mark.seq,
            status: mark.status,
            unread,
            report: report.to_vec(),
        }
    }

    fn acknowledge(&mut self, seq: u64) {
        let seen = format!("k:{}:{seq}", self.runtime_dir.nonce);
        self.line.extend(self.family.lines(&[seen.as_bytes()]));
        give(&self.runtime_dir.line, &mut self.line);
    }

    fn be_idle(&mut self) {
        self.phase = Phase::Idle;
        if let Some(at) = self.at_prompt.take() {
            self.tell(&FromSupervisor::Prompt(Box::new(at)));
        }
    }

    fn tell(&mut self, news: &FromSupervisor) {
        if self.news.is_none() {
            return;
        }
        self.unsent.extend(news.encode());
        self.send();
    }

    fn send(&mut self) {
        if let Some(news) = self.news.as_ref()
            && !give_or_lose(news, &mut self.unsent)
        {
            self.news = None;
        }
    }

    /// Ends the remaining processes, and says how the shell ended.
    fn end(mut self) -> io::Result<()> {
        let mut ending = Ending::new(self.leader, self.exit.is_some(), self.master.as_ref());
        let mut drained_by = Instant::now() + DRAIN_MAX;
        let mut is_quiet = false;
        while ending.goes_on(&self.jobs, self.prompt_at, self.exit.is_some())
            || !(is_quiet || Instant::now() >= drained_by)
        {
            let had_exited = self.exit.is_some();
            is_quiet = !self.wait_ending()?;
            if !had_exited && self.exit.is_some() {
                drained_by = Instant::now() + DRAIN_MAX;
            }
        }
        let rest = self.scanner.finish();
        self.pass_on(rest);
        let lost = Exit {
            code: LOST_CODE,
            signal: None,
        };
        let exit = self.exit.take().unwrap_or(lost);
        self.tell(&FromSupervisor::Exited(exit));
        match self.news.take() {
            Some(news) => send_last(&news, &self.unsent),
            None => Ok(()),
        }
    }

    /// Takes output and the shell's status for a moment; returns whether there was output.
    fn wait_ending(&mut self) -> io::Result<bool> {
        let has_room = self.unsent.len() < UNSENT_BYTES_MAX || self.news.is_none();
        let watched = [
            (
                Source::Terminal,
                self.master.as_ref().filter(|_| has_room),
                PollFlags::IN,
            ),
            (Source::Reaped, self.reaped.as_ref(), PollFlags::IN),
            (
                Source::FromSupervisor,
                self.news.as_ref().filter(|_| !has_room),
                PollFlags::OUT,
            ),
        ];
        let ready = poll(&watched, Some(ENDING_EVERY))?;
        for (source, flags) in &ready {
            self.serve_one(*source, *flags);
        }
        Ok(ready.iter().any(|(source, _)| *source != Source::Reaped))
    }
}

/// Waits until one of the sources is ready.
fn poll(
    sources: &[(Source, Option<&OwnedFd>, PollFlags)],
    patience: Option<Duration>,
) -> io::Result<Vec<(Source, PollFlags)>> {
    let watched = sources
        .iter()
        .filter_map(|(source, fd, flags)| Some((*source, (*fd)?, *flags)));
    let watched: Vec<_> = watched.collect();
    let fds = watched
        .iter()
        .map(|(_, fd, flags)| PollFd::new(*fd, *flags));
    let mut fds: Vec<_> = fds.collect();
    let timeout = patience.map(rondo_launch::unix::timespec);
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(err) => return Err(err.into()),
    }
    let ready = watched.iter().zip(&fds);
    let ready = ready.map(|((source, _, _), fd)| (*source, fd.revents()));
    Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
}

/// Writes what fits now; what cannot be written stays.
fn give(to: &OwnedFd, bytes: &mut Vec<u8>) {
    give_or_lose(to, bytes);
}

/// Writes what fits now and returns false if no reader is left.
fn give_or_lose(to: &OwnedFd, bytes: &mut Vec<u8>) -> bool {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => drop(bytes.drain(..written.min(bytes.len()))),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}

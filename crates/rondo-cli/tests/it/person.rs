//! A person at a terminal: keys go in, and what is on the screen comes out.

use crate::harness::TestEnv;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::termios::tcgetattr;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::time::timeout;

/// How long a person waits for something to show before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u16 = 40;
const COLUMNS: u16 = 100;
/// Lines above the screen that are still looked at.
const SCROLLBACK: usize = 20_000;

/// Ends an answer, a line, a word.
pub(crate) const ENTER: &str = "\r";
pub(crate) const TAB: &str = "\t";
pub(crate) const F2: &str = "\x1bOQ";
pub(crate) const SHIFT_TAB: &str = "\x1b[Z";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const ESC: &str = "\x1b";
pub(crate) const CTRL_Z: &str = "\x1a";
pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";

/// A terminal, the process on it, and its screen.
pub(crate) struct Person {
    keys: OwnedWritePty,
    /// The terminal once more, for what the kernel knows of it.
    terminal: OwnedFd,
    output: OwnedReadPty,
    screen: vt100::Parser<Answers>,
    child: Child,
    root: String,
    /// Everything that was written to the terminal.
    written: Vec<u8>,
}

/// Answers of a terminal by itself: the position of its cursor, when asked.
#[derive(Default)]
struct Answers {
    due: Vec<u8>,
    /// Latest content of the clipboard.
    clipboard: String,
    /// Titles and other words to what is around the terminal.
    told: Vec<String>,
    /// The color of its ground, if it tells that.
    ground: Option<String>,
    /// How often it was asked for that color.
    asked_ground: usize,
    /// How often kitty's keyboard protocol was switched on and not off again.
    keyboards: usize,
    /// How often it was saved what keys with Alt send, and not restored again.
    saved_metas: usize,
}

/// The modes of xterm that have it send an escape before a key with Alt.
const META: &[&[u16]] = &[&[1036], &[1039]];

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        sign: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        kind: char,
    ) {
        if kind == 'n' && params == [&[6]] {
            let (row, column) = screen.cursor_position();
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            self.due.extend(answer.into_bytes());
        }
        match (sign, kind) {
            (Some(b'>'), 'u') => self.keyboards += 1,
            (Some(b'<'), 'u') => self.keyboards -= 1,
            (Some(b'?'), 's') if params == META => self.saved_metas += 1,
            (Some(b'?'), 'r') if params == META => self.saved_metas -= 1,
            _ => {}
        }
        if kind == 'c' {
            self.due.extend(b"\x1b[?62;22c");
        }
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.told.push(String::from_utf8_lossy(title).into_owned());
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        // The screen asks this at its start, and again if it was answered.
        let is_asked = matches!(params, [b"11", b"?"]);
        if is_asked && (self.asked_ground == 0 || self.ground.is_some()) {
            self.asked_ground += 1;
            let ground = self.ground.iter();
            let answer = ground.map(|it| format!("\x1b]11;rgb:{it}\x1b\\"));
            return self.due.extend(answer.flat_map(String::into_bytes));
        }
        let params = params.iter().map(|it| String::from_utf8_lossy(it));
        self.told.push(params.collect::<Vec<_>>().join(";"));
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        let bytes = STANDARD.decode(data).unwrap();
        self.clipboard = String::from_utf8(bytes).unwrap();
    }
}

impl Person {
    /// Starts `rondo` on a terminal.
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Self {
        Self::start_as(env, env!("CARGO_BIN_EXE_rondo"), args)
    }

    /// Starts `rondo` on a terminal that is so wide from the beginning.
    pub(crate) fn start_wide(env: &TestEnv, columns: u16, args: &[&str]) -> Self {
        Self::start_sized(env, env!("CARGO_BIN_EXE_rondo"), args, columns)
    }

    /// Starts any program on a terminal.
    pub(crate) fn start_as(env: &TestEnv, program: &str, args: &[&str]) -> Self {
        Self::start_sized(env, program, args, COLUMNS)
    }

    fn start_sized(env: &TestEnv, program: &str, args: &[&str], columns: u16) -> Self {
        let (pty, pts) = pty_process::open().unwrap();
        pty.resize(Size::new(ROWS, columns)).unwrap();
        let plain = env.command(args);
        let plain = plain.as_std();
        let set = plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        let term = plain.get_envs().find(|it| it.0 == "TERM");
        let term = term.and_then(|it| it.1.map(ToOwned::to_owned));
        let child = pty_process::Command::new(program)
            .args(plain.get_args())
            .env_clear()
            .envs(set)
            .env("TERM", term.unwrap_or_else(|| "xterm-256color".into()))
            .current_dir(env.project())
            .kill_on_drop(true)
            .spawn(pts)
            .unwrap();
        let terminal = fcntl_dupfd_cloexec(&pty, 0).unwrap();
        let (output, keys) = pty.into_split();
        let size = |cells| NonZeroU16::new(cells).unwrap();
        Self {
            keys,
            terminal,
            output,
            screen: vt100::Parser::new_with_callbacks(
                size(ROWS),
                size(columns),
                SCROLLBACK,
                Answers::default(),
            ),
            child,
            root: env.project().parent().unwrap().display().to_string(),
            written: Vec::new(),
        }
    }

    /// Gives the terminal a ground of this color, such as `ff/ff/ff`, which it tells when it is asked.
    pub(crate) fn set_ground(&mut self, colour: &str) {
        self.screen.callbacks_mut().ground = Some(colour.to_owned());
    }

    /// Returns whether keys are asked for in kitty's protocol.
    pub(crate) fn has_kitty_keys(&self) -> bool {
        self.screen.callbacks().keyboards > 0
    }

    /// Returns whether it is saved what keys with Alt sent before.
    pub(crate) fn has_saved_meta(&self) -> bool {
        self.screen.callbacks().saved_metas > 0
    }

    /// Presses keys.
    pub(crate) async fn press(&mut self, keys: &str) {
        self.press_bytes(keys.as_bytes()).await;
    }

    /// Sends bytes as a keyboard does.
    pub(crate) async fn press_bytes(&mut self, bytes: &[u8]) {
        let mut left = bytes;
        while !left.is_empty() {
            let mut piece = [0; 8192];
            tokio::select! {
                wrote = self.keys.write(left) => left = &left[wrote.unwrap()..],
                read = self.output.read(&mut piece) => {
                    let read = read.unwrap();
                    self.shown(&piece[..read]).await;
                }
            }
        }
    }

    /// Types a line, looks at it, and enters it.
    pub(crate) async fn enter(&mut self, line: &str) {
        self.press(line).await;
        self.until(line, |it| it.typed().ends_with(line)).await;
        self.press(ENTER).await;
    }

    /// Waits until something is on the screen or above it; it may be broken at its blanks.
    pub(crate) async fn sees(&mut self, text: &str) {
        self.until(text, |it| {
            let all = it.all();
            all.contains(text) || all.replace('\n', " ").contains(text)
        })
        .await;
    }

    /// Waits until something is on the screen.
    pub(crate) async fn shows(&mut self, text: &str) {
        self.until(text, |it| it.screen().contains(text)).await;
    }

    /// Waits until something is on the screen so many times.
    pub(crate) async fn shows_times(&mut self, text: &str, times: usize) {
        let is_there = |it: &mut Self| it.screen().matches(text).count() == times;
        self.until(text, is_there).await;
    }

    /// Waits until something is on the screen no more.
    pub(crate) async fn shows_no_more(&mut self, text: &str) {
        self.until(text, |it| !it.screen().contains(text)).await;
    }

    /// Waits until something is below something else that is there.
    pub(crate) async fn sees_below(&mut self, above: &str, text: &str) {
        let is_below = |it: &mut Self| {
            let all = it.all();
            let parts = all.rsplit_once(above);
            parts.is_some_and(|(_, below)| below.contains(text))
        };
        self.until(text, is_below).await;
    }

    /// Waits for an empty prompt of that mode.
    pub(crate) async fn prompt(&mut self, mode: &str) {
        let begin = format!("{mode} ");
        self.until(mode, |it| {
            let typed = it.typed();
            typed.starts_with(&begin)
                && [" › ", " $ ", " >>> "]
                    .iter()
                    .any(|mark| typed.ends_with(mark))
        })
        .await;
    }

    /// Waits until the text before the cursor ends so.
    pub(crate) async fn types_behind(&mut self, end: &str) {
        self.until(end, |it| it.typed().ends_with(end)).await;
    }

    /// Returns whether nothing comes from the program for so long.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        timeout(time, self.read()).await.is_err()
    }

    /// Waits until a program has the whole screen.
    pub(crate) async fn is_alternate(&mut self) {
        let is_alternate = |it: &mut Self| it.screen.screen().alternate_screen();
        self.until("the alternate screen", is_alternate).await;
    }

    /// Waits until no program has the whole screen.
    pub(crate) async fn is_not_alternate(&mut self) {
        let is_plain = |it: &mut Self| !it.screen.screen().alternate_screen();
        self.until("the plain screen", is_plain).await;
    }

    /// Returns how the terminal is set, by the kernel and by what was written to it: a program that borrows it
    /// gives it back so.
    pub(crate) fn settings(&self) -> String {
        let kernel = tcgetattr(&self.terminal).unwrap();
        let screen = self.screen.screen();
        let modes = screen.input_mode_formatted() + &screen.attributes_formatted();
        let (is_alternate, is_hidden) = (screen.alternate_screen(), screen.hide_cursor());
        format!(
            "{:?} {:?} {:?} {:?}, {modes:?}, alternate {is_alternate}, hidden {is_hidden}",
            kernel.input_modes, kernel.output_modes, kernel.control_modes, kernel.local_modes
        )
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.keys.resize(Size::new(rows, columns)).unwrap();
        let size = |cells| NonZeroU16::new(cells).unwrap();
        self.screen.screen_mut().set_size(size(rows), size(columns));
    }

    /// Waits for the end and returns the exit code.
    pub(crate) async fn code(&mut self) -> Option<i32> {
        let ended = timeout(PATIENCE, async {
            while self.read().await {}
            self.child.wait().await.unwrap().code()
        });
        match ended.await {
            Ok(code) => code,
            Err(_) => panic!("it does not end; on the screen:\n{}", self.all()),
        }
    }

    /// Returns the id of the process.
    pub(crate) fn process(&self) -> i32 {
        i32::try_from(self.child.id().unwrap()).unwrap()
    }

    /// Returns everything that was written to the terminal.
    pub(crate) fn written(&self) -> &[u8] {
        &self.written
    }

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        self.screen.screen().contents()
    }

    /// Returns the text that was put on the clipboard last.
    pub(crate) fn clipboard(&self) -> &str {
        &self.screen.callbacks().clipboard
    }

    /// Returns the titles and other words to what is around the terminal.
    pub(crate) fn told(&self) -> &[String] {
        &self.screen.callbacks().told
    }

    /// Returns the color of the last character of a text that is on the screen.
    pub(crate) fn color_of(&self, text: &str) -> vt100::Color {
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        let mut rows = screen.rows(0, columns.get()).zip(0..);
        let (line, row) = rows.find(|(line, _)| line.contains(text)).unwrap();
        let (before, _) = line.split_once(text).unwrap();
        let column = before.chars().count() + text.chars().count() - 1;
        let cell = screen.cell(row, u16::try_from(column).unwrap());
        cell.unwrap().fgcolor()
    }

    /// Waits until the last character of a text has a color.
    pub(crate) async fn colors(&mut self, text: &str, colour: vt100::Color) {
        self.until(text, |it| it.color_of(text) == colour).await;
    }

    /// Returns the lines of the screen that the terminal broke because they were wider than it.
    pub(crate) fn broken_lines(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        let rows = screen.rows(0, columns.get()).zip(0..);
        rows.filter(|(_, row)| screen.row_wrapped(*row))
            .map(|(line, _)| line)
            .collect()
    }

    /// Returns all that is on the screen and above it.
    pub(crate) fn all(&mut self) -> String {
        let screen = self.screen.screen_mut();
        let (rows, columns) = screen.size();
        let above = screen.scrollback_len();
        let mut text = String::new();
        let mut from = above;
        while from > 0 {
            screen.set_scrollback(from);
            let take = from.min(usize::from(rows.get()));
            let lines = screen.rows(0, columns.get()).take(take);
            text.extend(lines.flat_map(|line| [line, "\n".to_owned()]));
            from -= take;
        }
        screen.set_scrollback(0);
        text += &screen.contents();
        text.replace(&self.root, "[ROOT]")
    }

    /// Returns the text before the cursor, on its line.
    fn typed(&self) -> String {
        let screen = self.screen.screen();
        let (row, column) = screen.cursor_position();
        let mut text = String::new();
        for at in 0..column {
            let cell = screen.cell(row, at).unwrap();
            match cell.contents() {
                "" if cell.is_wide_continuation() => {}
                "" => text.push(' '),
                shown => text.push_str(shown),
            }
        }
        text
    }

    async fn until(&mut self, what: &str, is_there: impl Fn(&mut Self) -> bool) {
        let looking = timeout(PATIENCE, async {
            while !is_there(self) {
                if !self.read().await {
                    return false;
                }
            }
            true
        });
        let is_seen = looking.await.unwrap_or(false);
        assert!(
            is_seen,
            "`{what}` does not show; on the screen:\n{}",
            self.all()
        );
    }

    /// Returns whether there was something.
    async fn read(&mut self) -> bool {
        let mut piece = [0; 8192];
        match self.output.read(&mut piece).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.shown(&piece[..read]).await;
                true
            }
        }
    }

    async fn shown(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        self.screen.process(bytes);
        let answers = std::mem::take(&mut self.screen.callbacks_mut().due);
        self.keys.write_all(&answers).await.unwrap();
    }
}

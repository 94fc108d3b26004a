//! The loop between the terminal, the session and the screen's state.
//!
//! It draws where something changed, at most sixty times a second and only while the terminal takes frames. Where
//! nothing happens it waits for all of them at once, without a timer.
//!
//! # Layout
//! - `completion`: finds names for the pane's prompt.
//! - `effects`: does what the screen wants done; `handover`: lends the terminal to another program.
//! - `shell`: the shell, and the way between its terminal and the pane; `python`: the same of the live Python session.
//! - `commands`: slash commands and their replies.
//! - `sessions`: other sessions, and how the one that is shown continues.
//! - `attention`: calls a person who looks elsewhere; `notes`: notes of the runtime.

mod attention;
mod commands;
mod completion;
mod effects;
mod handover;
mod notes;
mod python;
mod sessions;
mod shell;
mod submissions;

pub use notes::Notes;

use crate::app::{App, AppOptions, Effect};
use crate::options::{Colours, Notify, Options};
use crate::prompt::history::{self, TypedLines};
use crate::prompt::reply::{CommandContext, Reply};
use crate::prompt::run_mode::RunMode;
use crate::prompt::slash::Command;
use crate::terminal::Input;
use crate::terminal::ground::{self, GROUND, TerminalReply};
use crate::terminal::keyboard::Keyboard;
use crate::terminal::modes::Modes;
use crate::terminal::painter::Painter;
use crate::terminal::unix::{SignalRequest, SignalStreams as Signals};
use crate::terminal::writer::Writer;
use crossterm::event::Event;
use effects::{EffectResult, RESULTS_MAX};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join};
use python::PythonLink;
use ratatui_core::layout::Rect;
use rondo_core::clock::Clock;
use rondo_runtime::cells::{KeptShell, TerminalEvent};
use rondo_runtime::error::{Result, SetupError, SetupErrorKind};
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::service::{
    Attendance, CellEvent, LentPython, SessionHandle, SessionService, Subscription, Update,
    UpdateBody,
};
use rondo_runtime::settings::Settings;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::{Layer, parking, secrets, spec};
use rondo_types::{EventBody, Message, SessionId, TimeMs};
use shell::ShellLink;
use std::fs::File;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use submissions::Submissions;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The time between two frames at least.
const FRAME: Duration = Duration::from_millis(16);
/// The time between two turns of the spinner, and between two seconds if nothing is to move.
const TURN: Duration = Duration::from_millis(125);
const SECOND: Duration = Duration::from_secs(1);
/// Updates and keys that are taken before a frame is drawn.
const AT_ONCE_MAX: usize = 512;
/// How long the terminal may take for what is on its way when the screen is left.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a turn may take to stop when the screen is left.
const STOP: Duration = Duration::from_secs(5);

/// Program that opens the screen.
pub trait Program: Send + Sync + 'static {
    /// Builds the message of a typed text, with the files that it names. `note` is called for each name of a file that
    /// does not exist.
    ///
    /// # Errors
    /// When a file cannot be attached.
    fn message(&self, text: &str, directory: &Path, note: &dyn Fn(&str)) -> Result<Message>;

    /// Opens a draft in the user's editor, and returns it.
    ///
    /// # Errors
    /// When there is no editor, or it fails.
    fn edit(&self, draft: &str) -> Result<String>;

    /// Returns the slash commands and keys that the user added.
    fn added(&self) -> UserAdditions {
        UserAdditions::default()
    }

    /// Carries out a slash command.
    fn slash(
        &self,
        command: Command,
        rest: String,
        context: CommandContext,
    ) -> BoxFuture<'static, Result<Reply>>;

    /// Does what a slash command says that the user added.
    fn command(&self, _name: String, _rest: String) -> BoxFuture<'static, Result<AddedReply>> {
        Box::pin(async { Ok(AddedReply::Nothing) })
    }

    /// Puts a text on the clipboard of the user's desktop, if there is one.
    fn copy(&self, _text: String) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// Saves an image of that clipboard in a file that lives as long as the program, and returns its path; `None` if
    /// there is no image.
    fn clipboard_image(&self) -> BoxFuture<'static, Result<Option<PathBuf>>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns whether a file is an image that can be attached.
    fn is_image(&self, path: &Path) -> bool;

    /// Shows a text in the user's pager.
    ///
    /// # Errors
    /// When there is no pager, or it fails.
    fn page(&self, text: &str) -> Result<()>;
}

/// The user's additions to the screen.
#[derive(Debug, Clone, Default)]
pub struct UserAdditions {
    /// Slash commands: their names without the slash, and what they do.
    pub commands: Vec<(String, String)>,
    /// Keys, such as `ctrl-g`, `alt-x` or `f5`, and the lines that they enter. In the input they come
    /// before the screen's own, but for `?` on an empty one and the key after Ctrl-X; one of a single character is none.
    pub keys: Vec<(String, String)>,
}

/// Request of a slash command of the user's to the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedReply {
    /// No request.
    Nothing,
    /// Show a text.
    Show(String),
    /// Ask the agent.
    Ask(String),
}

/// Parameters for opening a screen.
pub struct Opening {
    /// All sessions.
    pub service: SessionService,
    /// The session that is shown.
    pub session: SessionHandle,
    /// Effective settings.
    pub settings: Settings,
    /// Settings of the screen.
    pub options: Options,
    /// The program's own parts.
    pub program: Arc<dyn Program>,
    /// Notes of the runtime; the same as the runtime was built with.
    pub notes: Arc<Notes>,
    /// First message, as if it had been typed.
    pub first: Option<String>,
    /// Shell and interpreter in which a person's own cells ran before.
    pub kept: KeptSessions,
}

/// Shell and interpreter of a person's own cells. They outlive a screen.
#[derive(Debug, Clone, Default)]
pub struct KeptSessions {
    /// The shell, once it was started.
    pub shell: Option<Arc<KeptShell>>,
    /// The live Python session, once there was one.
    pub python: Option<Arc<LentPython>>,
}

/// How the screen was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenEnd {
    /// By the user.
    Quit,
    /// To continue with the session at the line prompt.
    Inline,
    /// By `SIGTERM` or `SIGHUP`, or as the terminal was gone.
    Terminated,
}

/// State when the screen was left.
#[derive(Debug, Clone)]
pub struct ScreenResult {
    /// How it was left.
    pub ended: ScreenEnd,
    /// The session that was shown last.
    pub session: SessionId,
    /// Mode of approval.
    pub run_mode: RunMode,
    /// Shell and interpreter of a person's own cells.
    pub kept: KeptSessions,
}

/// Opens the screen, and returns when it was left. To be called within a runtime of tokio, with standard input and
/// output at a terminal.
///
/// # Errors
/// When the terminal cannot be set.
pub async fn open(opening: Opening) -> Result<ScreenResult> {
    let (mut runner, first) = Runner::start(opening)?;
    runner.act(first).await;
    let ended = runner.until_the_end().await;
    let kept = KeptSessions {
        shell: runner.session.take_shell(),
        python: runner.session.take_python(),
    };
    runner.close(ended).await;
    Ok(ScreenResult {
        ended,
        session: runner.session.id().clone(),
        run_mode: runner.app.run_mode(),
        kept,
    })
}

struct Runner {
    app: App,
    service: SessionService,
    session: SessionHandle,
    settings: Settings,
    program: Arc<dyn Program>,
    notes: Arc<Notes>,
    updates: Subscription,
    /// Waits for answers to the session's questions in place.
    attendance: Option<Attendance>,
    /// Set while some events from before the session was shown are not known yet.
    is_behind: bool,
    /// A note about the session, which is below all that.
    note_below: Option<String>,
    /// None while another program reads them.
    keys: Option<Keyboard>,
    /// Set if the terminal tells its background when asked.
    tells_ground: bool,
    told: Signals,
    modes: Modes,
    writer: Writer,
    painter: Painter,
    clock: Clock,
    done: (Sender<EffectResult>, Receiver<EffectResult>),
    submissions: Submissions,
    area: Rect,
    /// Set if the terminal must be asked again for its background.
    asks_ground: bool,
    /// Set if the terminal's title was set, and if it says that a person is wanted.
    has_title: bool,
    is_title_marked: bool,
    /// Set if something changed since the last frame.
    is_stale: bool,
    last_frame: TimeMs,
    last_turn: TimeMs,
    ended: Option<ScreenEnd>,
    /// Settings chosen for the sessions of this screen.
    chosen: Layer,
    /// The model of the settings that the screen was opened with, which new sessions ask.
    configured: Option<String>,
    /// The model that `/model` chose for the session that is shown.
    named: Option<String>,
    shell: ShellLink,
    python: PythonLink,
}

/// Event that woke the loop.
enum Wakeup {
    Asked(SignalRequest),
    Key(Option<io::Result<Input>>),
    Update(Box<Result<Option<Update>>>),
    Done(Option<EffectResult>),
    Shell(TerminalEvent),
    Notes,
    Frame,
    Turn,
}

impl Runner {
    fn start(opening: Opening) -> Result<(Self, Vec<Effect>)> {
        let Opening {
            service,
            session,
            settings,
            mut options,
            program,
            notes,
            first,
            kept,
        } = opening;
        let told = Signals::listen().map_err(no_terminal)?;
        let out = rustix::io::dup(io::stdout()).map_err(|err| no_terminal(err.into()))?;
        let writer = Writer::start(File::from(out)).map_err(no_terminal)?;
        let (width, height) = crossterm::terminal::size().map_err(no_terminal)?;
        let clock = Clock::system();
        let now = clock.now();
        let modes =
            Modes::open(options.mouse, options.notify == Notify::Title).map_err(no_terminal)?;
        let heard = ask_terminal(&mut options)?;
        let mut app = app_of(&settings, options, program.added(), now);
        let updates = session.subscribe_to_latest();
        let attendance = Some(session.attend());
        let effects = app.begin(first.as_deref());
        // It may have been typed for something else, so only the user enters it.
        app.set_draft(heard.typed.trim_end_matches(['\r', '\n']));
        let done = mpsc::channel(RESULTS_MAX);
        let submissions = Submissions::start(&program, &service, done.0.clone());
        let configured = settings.values.model.clone();
        let mut runner = Self {
            configured,
            named: None,
            app,
            service,
            session,
            attendance,
            settings,
            program,
            notes,
            updates,
            is_behind: true,
            note_below: None,
            keys: Some(Keyboard::listen(heard.rest).map_err(no_terminal)?),
            tells_ground: heard.is_light.is_some(),
            told,
            modes,
            writer,
            painter: Painter::new(heard.has_wide_signs),
            clock,
            done,
            submissions,
            area: Rect::new(0, 0, width, height),
            asks_ground: false,
            has_title: false,
            is_title_marked: false,
            is_stale: true,
            last_frame: TimeMs(0),
            last_turn: now,
            ended: None,
            chosen: Layer::default(),
            shell: ShellLink::default(),
            python: PythonLink::default(),
        };
        runner.keep_model();
        runner.show_place();
        runner.go_on_in(kept);
        Ok((runner, effects))
    }

    async fn until_the_end(&mut self) -> ScreenEnd {
        loop {
            if let Some(ended) = self.ended {
                return ended;
            }
            if self.writer.has_failed() {
                return ScreenEnd::Terminated;
            }
            let woken = self.woken().await;
            self.wake(woken).await;
            self.draw_if_due();
        }
    }

    async fn woken(&mut self) -> Wakeup {
        let now = self.clock.now();
        let is_free = self.writer.is_free();
        let frame_in = FRAME.saturating_sub(now.since(self.last_frame));
        let is_still = self.app.options.is_still;
        let turn = if is_still { SECOND } else { TURN };
        let turn_in = turn.saturating_sub(now.since(self.last_turn));
        let arms_in = self
            .app
            .arms_at()
            .filter(|it| *it > now)
            .map(|it| it.since(now));
        tokio::select! {
            biased;
            asked = self.told.next() => Wakeup::Asked(asked),
            key = next_key(&mut self.keys) => Wakeup::Key(key),
            done = self.done.1.recv() => Wakeup::Done(done),
            () = self.writer.freed(), if self.is_stale && !is_free => Wakeup::Frame,
            () = tokio::time::sleep(frame_in), if self.is_stale && is_free => Wakeup::Frame,
            update = next_update(&mut self.updates, self.is_behind) => Wakeup::Update(Box::new(update)),
            event = self.shell.next() => Wakeup::Shell(event),
            () = self.notes.changed() => Wakeup::Notes,
            () = tokio::time::sleep(turn_in), if self.app.moves() => Wakeup::Turn,
            () = until(arms_in) => Wakeup::Turn,
        }
    }

    async fn wake(&mut self, woken: Wakeup) {
        match woken {
            Wakeup::Asked(SignalRequest::Terminate | SignalRequest::HangUp) => {
                self.ended = Some(ScreenEnd::Terminated)
            }
            Wakeup::Asked(SignalRequest::Interrupt) => self.cancel(),
            Wakeup::Asked(SignalRequest::Stop) => self.suspend().await,
            Wakeup::Asked(SignalRequest::Resize) => self.fit_terminal(),
            Wakeup::Key(Some(Ok(input))) => self.keys(input).await,
            // The terminal is gone.
            Wakeup::Key(_) => self.ended = Some(ScreenEnd::Terminated),
            Wakeup::Update(update) => match update.transpose() {
                Some(update) => self.updates(update),
                None => self.caught_up().await,
            },
            Wakeup::Done(Some(EffectResult::Earlier(id, read))) => {
                self.take_earlier(&id, read).await
            }
            Wakeup::Done(Some(EffectResult::Replied(reply))) => {
                let effects = self.replied(*reply).await;
                self.act(effects).await;
            }
            Wakeup::Done(Some(done)) => self.take(done),
            // The loop has a sender of its own.
            Wakeup::Done(None) => {}
            Wakeup::Shell(event) => self.shell_events(event),
            Wakeup::Notes => {
                for note in self.notes.take() {
                    self.app.note(&note);
                }
                self.app.set_progress(self.notes.latest_progress());
                self.is_stale = true;
            }
            Wakeup::Frame => {}
            Wakeup::Turn => {
                let now = self.clock.now();
                self.app.tick(now);
                self.last_turn = now;
                self.is_stale = true;
            }
        }
    }

    /// Takes a key, and those that came with it.
    async fn keys(&mut self, first: Input) {
        let mut next = Some(first);
        for _ in 0..AT_ONCE_MAX {
            let Some(input) = next.take() else {
                break;
            };
            self.input(input).await;
            if self.ended.is_some() {
                return;
            }
            next = self.keys.as_mut().and_then(Keyboard::at_once);
        }
        if let Some(input) = next {
            // The next input has its turn after a frame.
            self.input(input).await;
        }
        self.say_what_esc_does();
    }

    /// Draws for the terminal's size from now on.
    pub(super) fn fit_terminal(&mut self) {
        if let Ok((width, height)) = crossterm::terminal::size() {
            self.area = Rect::new(0, 0, width, height);
        }
        self.is_stale = true;
    }

    /// Waits longer for an escape while it would stop what runs.
    fn say_what_esc_does(&self) {
        if let Some(keys) = &self.keys {
            keys.set_esc_stops(self.app.esc_stops());
        }
    }

    async fn input(&mut self, input: Input) {
        let event = match input {
            Input::Event(event) => event,
            Input::Ground(is_light) => return self.show_on_ground(is_light),
        };
        if event == Event::FocusGained {
            self.asks_ground = true;
        }
        let now = self.clock.now();
        let effects = self.app.event(event, now);
        self.is_stale = true;
        if !effects.is_empty() {
            self.act(effects).await;
        }
    }

    /// Takes the colors for another ground.
    fn show_on_ground(&mut self, is_light: bool) {
        let colours = on_ground(is_light, self.app.options.has_true_colours);
        self.is_stale |= self.app.set_colours(colours);
    }

    /// A turn whose end is not among what happened runs elsewhere, or its process was killed.
    async fn caught_up(&mut self) {
        self.is_behind = false;
        if let Some(note) = self.note_below.take() {
            self.app.note(&note);
            self.is_stale = true;
        }
        // Earlier events notify no one.
        let _ = self.app.take_notice();
        if !self.app.is_in_turn() {
            return;
        }
        match self.session.is_cut_off().await {
            Ok(true) => self.app.cut_off(),
            Ok(false) => {}
            Err(error) => self.failed(&error),
        }
        self.is_stale = true;
    }

    /// Takes an update, and those that came with it.
    fn updates(&mut self, first: Result<Update>) {
        let mut next = Some(first);
        let began = self.clock.now();
        for _ in 0..AT_ONCE_MAX {
            let Some(update) = next.take() else {
                break;
            };
            let now = self.clock.now();
            match update {
                Ok(update) => self.hear(update.body, now),
                Err(error) => self.app.error(&error.line(), error.hint.as_deref()),
            }
            self.is_stale = true;
            if now.since(began) >= FRAME {
                return;
            }
            next = self.updates.next().now_or_never();
        }
        if let Some(Ok(update)) = next {
            let now = self.clock.now();
            self.hear(update.body, now);
        }
    }

    /// Takes an update; with a failure, the model that failed, for what helps.
    fn hear(&mut self, body: UpdateBody, now: TimeMs) {
        let may_change_branch = match &body {
            UpdateBody::Turn { event } => matches!(event.body, EventBody::Result(_)),
            UpdateBody::Cell { event } => matches!(event, CellEvent::Ended { .. }),
            _ => false,
        };
        if matches!(body, UpdateBody::Cell { .. }) {
            self.catch_up_with_shell();
        }
        if let UpdateBody::Turn { event } = &body
            && let EventBody::Result(result) = &event.body
            && result.error.is_some()
        {
            let model = result.model.as_deref();
            let target = model.and_then(|it| ModelTarget::known(it, &self.settings));
            self.app.set_target(target);
        }
        self.app.update(body, now);
        if may_change_branch {
            self.show_place();
        }
    }

    fn draw_if_due(&mut self) {
        let now = self.clock.now();
        let is_due = now.since(self.last_frame) >= FRAME;
        if self.is_stale && is_due && self.writer.is_free() && self.ended.is_none() {
            self.draw(now);
        }
    }

    fn draw(&mut self, now: TimeMs) {
        let drawing = self.app.draw(self.area);
        let painted = self
            .painter
            .paint(drawing.buffer, drawing.caret, drawing.moved);
        match painted {
            Ok(mut bytes) => {
                let asks = std::mem::take(&mut self.asks_ground) && self.tells_ground;
                if asks && self.app.options.asks_ground {
                    bytes.extend_from_slice(GROUND);
                }
                bytes.extend(self.attention());
                self.writer.write(bytes);
            }
            Err(err) => tracing::info!(%err, "a frame could not be drawn"),
        }
        self.fit_shell();
        self.fit_python();
        self.app.was_shown(now);
        self.say_what_esc_does();
        self.is_stale = false;
        self.last_frame = now;
        self.read_earlier();
        self.look_at_file();
    }

    /// Leaves the screen, stops what runs, and prints what was not printed yet.
    async fn close(&mut self, ended: ScreenEnd) {
        match self.writer.settle(SETTLE).await {
            true => {
                self.modes.leave();
                self.print_rest();
            }
            false => self.modes.abandon(),
        }
        if self.app.is_in_turn() || self.app.is_preparing() {
            // A turn that cannot be stopped in time is resumed when the session is opened next.
            let _ = self.session.cancel().await;
        }
        // A turn that asks is parked then. No other one begins: the service is notified first.
        let attendance = self.attendance.take();
        let leave = async { drop(attendance) };
        let patience = match ended {
            ScreenEnd::Quit | ScreenEnd::Inline => STOP,
            ScreenEnd::Terminated => SETTLE,
        };
        let closed = join(self.service.close(), leave);
        let _ = tokio::time::timeout(patience, closed).await;
    }
}

/// Waits for the next update; `None` once all earlier events were received.
async fn next_update(updates: &mut Subscription, is_behind: bool) -> Result<Option<Update>> {
    match is_behind {
        true => updates.next_of_past().await,
        false => updates.next().await.map(Some),
    }
}

/// Builds the state of a screen.
fn app_of(settings: &Settings, options: Options, added: UserAdditions, now: TimeMs) -> App {
    let (model, profile, context_max) = answers(settings);
    App::new(AppOptions {
        options,
        model,
        profile,
        context_max,
        actor: parking::user(&settings.env),
        history: typed_before(settings),
        secrets: secrets::of_env(settings),
        run_mode: RunMode::of(&settings.values),
        added,
        now,
    })
}

/// Returns the model that answers, or why there is none, the profile, and how much the model's context holds.
fn answers(settings: &Settings) -> (String, String, Option<u64>) {
    match ModelTarget::make(settings) {
        Ok(target) => (
            target.full_name(),
            spec::profile_name(&target, settings).to_owned(),
            target.facts.context_tokens,
        ),
        Err(error) => (error.to_string(), settings.profile_name().to_owned(), None),
    }
}

/// Asks the terminal what it is, if it may answer, and takes the colors for its ground.
fn ask_terminal(options: &mut Options) -> Result<TerminalReply> {
    if !options.may_ask {
        return Ok(TerminalReply::default());
    }
    let heard = ground::ask(options.asks_ground).map_err(no_terminal)?;
    if let Some(is_light) = heard.is_light {
        options.colours = on_ground(is_light, options.has_true_colours);
    }
    Ok(heard)
}

fn on_ground(is_light: bool, has_true_colours: bool) -> Colours {
    match (is_light, has_true_colours) {
        (true, true) => Colours::Light,
        (false, true) => Colours::Dark,
        (true, false) => Colours::SixteenOnLight,
        (false, false) => Colours::Sixteen,
    }
}

fn typed_before(settings: &Settings) -> TypedLines {
    let file = settings.paths.state.join(history::FILE);
    let is_kept = settings.values.ephemeral != Some(true);
    TypedLines::read(is_kept.then_some(file), KeyNames::of(settings))
}

async fn next_key(keys: &mut Option<Keyboard>) -> Option<io::Result<Input>> {
    match keys {
        Some(keys) => keys.next().await,
        None => pending().await,
    }
}

async fn until(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => pending().await,
    }
}

fn no_terminal(err: io::Error) -> SetupError {
    SetupError::because(SetupErrorKind::Other, "failed to set the terminal", err)
}

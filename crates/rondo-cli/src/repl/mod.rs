//! `rondo repl`: one prompt for the agent, a shell and Python.
//!
//! # Layout
//! - `mode`: the meaning of a line in each mode; `editor`: the line editor.
//! - `slash`: slash commands.
//! - `talk`, `turn`: the session with the agent, and its turns; `host`: what the prompt brings to them.
//! - `keyboard`, `unix`: the keyboard while a turn runs.
//! - `approver`, `question`: questions about calls.
//! - `python`, `shell`: Python mode and shell mode; `jobs`: output of background jobs.
//! - `exports`: exported keys.
//! - `chosen`: the session to start with.
//! - `cells`, `restore`: recorded cells, and those of an earlier interpreter; `interpreters`: the interpreters of sessions.
//! - `place`: the directory and branch in the prompt.
//!
//! Slow parts are started when they are first needed, so that the prompt appears at once.

mod approver;
mod cells;
mod chosen;
mod editor;
mod exports;
mod host;
mod interpreters;
mod jobs;
mod keyboard;
mod mode;
mod place;
mod python;
mod question;
mod restore;
mod shell;
mod slash;
mod talk;
mod turn;
mod unix;

use crate::approver::TerminalApprover;
use crate::cli::{AskArgs, ColorChoice, ReplArgs};
use crate::commands::ask::working_directory;
use crate::commands::report::{gone, output_of, write_failed};
use crate::error::{CliError, Result};
use crate::exit::{Exit, Stop};
use crate::interactive::{FrontEndEnd, Handover};
use crate::output::{Output, SharedOutput};
use crate::show_turn::Signals;
use crate::slash::session::taken;
use editor::{Editor, EditorSettings, Face, Names, PromptInput, Shared};
use jobs::LateOutput;
use mode::{Line, Mode};
use rondo_runtime::env::Env;
use rondo_runtime::secrets::KeyNames;
use rondo_runtime::service::LentPython;
use rondo_runtime::settings::Settings;
use rondo_runtime::spec::TurnSpec;
use rondo_runtime::target::ModelTarget;
use rondo_runtime::values::EditKeys;
use rondo_runtime::{Runtime, SessionOptions};
use rondo_runtime::{models, profiles, providers, sessions};
use rondo_script::Init;
use rondo_tui::KeptSessions;
use rondo_tui::prompt::reply::FailedCell;
use rondo_tui::prompt::run_mode::RunMode;
use rondo_tui::prompt::slash::{Command, is_name};
use shell::{AS_BEFORE, LastCommand, RunningShell, Sharing};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use talk::{LineSession, Opening};
use tokio::task::spawn_blocking;
use turn::TurnEnd;
use unix::Terminal;

/// The note for users who typed no command, and so may not know where they are.
const WHERE_YOU_ARE: &str =
    "Tab switches between agent, shell and Python; `/help` lists commands and keys; Ctrl-D leaves";
/// The same for a terminal that can only print.
const WHERE_YOU_ARE_WITHOUT_KEYS: &str =
    "`/mode` switches between agent, shell and Python; `/help` lists the commands; Ctrl-D leaves";

/// What helps where the directory is gone.
pub(crate) const GO_ELSEWHERE: &str =
    "`!cd DIR` (in shell mode `cd DIR`) takes shell, Python and agent to another";

/// What comes after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The prompt.
    Prompt,
    /// The end.
    Leave(Exit),
}

/// A prompt, and all that it knows.
struct Repl {
    talk: LineSession,
    /// Away while a line is read, on a thread that may wait for it.
    editor: Option<Editor>,
    shared: Shared,
    home: Option<PathBuf>,
    /// Lines that are entered before the user types one.
    queue: VecDeque<String>,
    /// What threads in Python printed and is not shown yet.
    late: LateOutput,
    shell: Option<RunningShell>,
    /// Of the last command.
    exit_code: i32,
    /// The cell that failed last, until one does not.
    failed_cell: Option<FailedCell>,
    /// The last command of shell mode, until the agent has read it.
    last_command: Option<LastCommand>,
    /// Who would answer, as the prompt shows it, and how much fits their context.
    answers: Option<(String, Option<u64>)>,
    /// Whether what ran in Python is run again before anything else.
    restores: bool,
    /// Whether the command line says where to work.
    names_directory: bool,
    /// Whether the directory was gone at the last prompt.
    is_lost: bool,
    /// What `init.lua` adds.
    init: Option<Arc<Init>>,
    /// What runs without asking at the beginning.
    began_as: RunMode,
    /// Where the full screen is to go on.
    goes_on: Option<Handover>,
}

/// Runs the command.
///
/// # Errors
/// When there is no terminal, the settings make no sense, or the session that is named cannot be had.
pub(crate) fn run(
    runtime: &tokio::runtime::Runtime,
    args: ReplArgs,
    before: Option<KeptSessions>,
    env: Env,
    color: Option<ColorChoice>,
    early: &Output,
) -> Result<FrontEndEnd> {
    // What was kept from the full screen is taken over before anything runs.
    let _on = runtime.enter();
    let mode = args.mode.map_or(Mode::Agent, Mode::from);
    let restores = args.restore_python;
    let first = args.prompt.join(" ");
    let implied = args.implied;
    let args = AskArgs {
        turn: args.turn,
        ..AskArgs::default()
    };
    let options = SessionOptions {
        directory: working_directory(args.turn.directory.as_deref())?,
        is_directory_named: args.turn.directory.is_some(),
    };
    let notices = SharedOutput::new(*early);
    let parts = Runtime::new(env, args.layer(), Arc::clone(&notices) as _);
    parts.ask_about_folders(TerminalApprover::for_folders(parts.env(), early));
    let opening = chosen::find(&parts, &args, &options)?;
    let settings = &opening.settings;
    let output = output_of(&settings.values, &settings.env, color);
    notices.set(output);
    if !(output.stdout_terminal && output.stderr_terminal) {
        return Err(no_terminal());
    }
    let terminal = Terminal::find().map_err(|_| no_terminal())?;
    check_who_answers(settings, &output)?;
    if implied {
        output.note(match output.stderr_erases {
            true => WHERE_YOU_ARE,
            false => WHERE_YOU_ARE_WITHOUT_KEYS,
        });
    }
    let own = opening.own_directory(&options);
    let init = Init::load(&parts, settings, &(Arc::clone(&notices) as _))?.map(Arc::new);
    if let Some(init) = &init {
        parts.extend(init.extensions());
    }
    let mut repl = Repl::new(opening, output, terminal, mode, init)?;
    repl.names_directory = options.is_directory_named;
    repl.queue((!first.trim().is_empty()).then_some(first));
    if let Some(own) = own {
        repl.tell_directory(&own, args.turn.session.is_some());
    }
    repl.go_on_in(before.unwrap_or_default());
    repl.tell_session(restores)?;
    let exit = runtime.block_on(repl.until_the_end())?;
    Ok(match repl.goes_on.take() {
        Some(goes_on) => FrontEndEnd::Other(goes_on),
        None => FrontEndEnd::For(exit),
    })
}

fn failed(err: io::Error, context: &'static str) -> CliError {
    CliError::caused(Exit::Error, anyhow::Error::new(err).context(context))
}

/// Checks that the model can do what the profile needs. Without a model, there are a shell and
/// Python still.
fn check_who_answers(settings: &Settings, output: &Output) -> Result<()> {
    match ModelTarget::make(settings) {
        Ok(_) => {
            TurnSpec::of(settings, output)?;
            Ok(())
        }
        Err(_) => Ok(()),
    }
}

fn no_terminal() -> CliError {
    CliError::new(Exit::Usage, "there is no terminal to work at")
        .hint("`rondo ask` answers one question without one")
}

impl Repl {
    fn new(
        opening: Opening,
        output: Output,
        terminal: Terminal,
        mode: Mode,
        init: Option<Arc<Init>>,
    ) -> Result<Self> {
        let settings = &opening.settings;
        let shared = Shared::new(mode);
        shared.set_directory(settings.directory.clone());
        let home = settings.env.text("HOME").map(PathBuf::from);
        let history = settings.paths.state.join(rondo_tui::prompt::history::FILE);
        let kept = settings.values.ephemeral != Some(true);
        let editor = EditorSettings {
            keys: settings.values.edit_keys.unwrap_or(EditKeys::Emacs),
            history: kept.then_some(history),
            key_names: KeyNames::of(settings),
            output,
            names: names(settings, home.clone()),
            own_keys: init.as_ref().map_or_else(Vec::new, |it| it.keys().to_vec()),
        };
        let began_as = RunMode::of(&settings.values);
        Ok(Self {
            editor: Some(Editor::new(editor, shared.clone())),
            talk: LineSession::open(opening, output, terminal, shared.clone())?,
            shared,
            home,
            queue: VecDeque::new(),
            shell: None,
            late: LateOutput::default(),
            exit_code: 0,
            failed_cell: None,
            last_command: None,
            answers: None,
            restores: false,
            names_directory: false,
            is_lost: false,
            init,
            began_as,
            goes_on: None,
        })
    }

    /// Goes on in what the user's own commands and cells ran in before, and where that is.
    fn go_on_in(&mut self, kept: KeptSessions) {
        if let Some(python) = kept.python {
            let own = LentPython::new(Arc::clone(python.session()));
            let own = own.with_presence(python.take_presence());
            self.talk.use_python(Arc::new(own));
        }
        if let Some(shell) = kept.shell {
            if let Some(workdir) = shell.workdir().cloned() {
                self.talk.workdir = workdir.clone();
                self.set_directory(workdir.directory());
            }
            self.talk.hide(shell.secrets().reveal().iter().cloned());
            self.shell = Some(RunningShell::of(shell, &self.talk.output));
        }
    }

    /// Returns what the user's own commands and cells run in, for the full screen.
    pub(super) fn take_kept(&mut self) -> KeptSessions {
        let shell = self.shell.take().map(RunningShell::kept);
        if let Some(shell) = &shell {
            shell.hide(self.talk.all_secrets().reveal().iter().cloned());
        }
        let python = self.talk.python.take();
        KeptSessions { shell, python }
    }

    /// Says that the prompt begins in the directory of the session that it goes on with.
    fn tell_directory(&self, own: &Path, is_session_named: bool) {
        let directory = place::shown(own, self.home.as_deref());
        let note = match is_session_named {
            true => format!("the session's directory is {directory}"),
            false => format!("no session began here: going on with the latest one, in {directory}"),
        };
        self.talk.output.note(&note);
    }

    /// Says which session the prompt begins with, where it goes on with one, and has its Python cells run
    /// again first where the command line says so.
    fn tell_session(&mut self, restores: bool) -> Result<()> {
        self.restores = restores;
        match self.talk.handle.info()? {
            Some(info) => {
                self.talk.output.note(&taken(&info));
                self.note_session()?;
            }
            None if restores => {
                let message = "`--restore-python` goes with `-c` or `--session`";
                return Err(CliError::new(Exit::Usage, message));
            }
            None => return Ok(()),
        }
        match restores {
            true => Ok(()),
            false => self.tell_cells(),
        }
    }

    /// Says what is special about the recorded session at the prompt.
    fn note_session(&self) -> Result<()> {
        let Some(info) = self.talk.handle.info()? else {
            return Ok(());
        };
        let output = self.talk.output;
        sessions::note_lost_end(&info, &output);
        // If the mailbox cannot be read, the next question says so.
        let mail = self.talk.handle.store().mail(&info.id).unwrap_or_default();
        let waiting = mail.iter().filter(|it| it.body.is_message()).count();
        if waiting > 0 {
            let what = match waiting {
                1 => "1 queued message is".to_owned(),
                count => format!("{count} queued messages are"),
            };
            output.note(&format!("{what} asked first"));
        }
        Ok(())
    }

    async fn until_the_end(&mut self) -> Result<Exit> {
        self.set_mode(self.mode());
        if self.restores
            && let Err(error) = self.command(Command::Restore, "").await
        {
            self.talk.output.error(&error);
        }
        let exit = self.lines().await;
        self.shell = None;
        self.talk.end().await;
        exit
    }

    /// Reads lines and does what they say, until the user leaves.
    async fn lines(&mut self) -> Result<Exit> {
        let mut signals = Signals::listen();
        loop {
            self.tell_of_lost_directory();
            let after = match self.queue.pop_front() {
                Some(line) => {
                    let echo = format!("{}{line}\n", self.face().echo());
                    self.print(&echo)?;
                    self.enter(&line).await
                }
                None => match self.read(&mut signals).await? {
                    PromptInput::Line(line) => self.enter(&line).await,
                    PromptInput::TurnWheel => {
                        self.set_mode(self.mode().next());
                        Ok(After::Prompt)
                    }
                    PromptInput::NextRunMode => {
                        self.next_run_mode();
                        Ok(After::Prompt)
                    }
                    PromptInput::Dropped => Ok(After::Prompt),
                    PromptInput::End => Ok(After::Leave(Exit::Answer)),
                    PromptInput::Told(stop) => Ok(After::Leave(Exit::of_stop(stop))),
                },
            };
            match after {
                Ok(After::Prompt) => {}
                Ok(After::Leave(exit)) => return Ok(exit),
                Err(error) => self.talk.output.error(&error),
            }
        }
    }

    /// Reads a line on a thread of its own, since what runs in the background goes on meanwhile.
    async fn read(&mut self, signals: &mut Signals) -> Result<PromptInput> {
        let face = self.face();
        let Some(mut editor) = self.editor.take() else {
            return Ok(PromptInput::End);
        };
        self.talk.output.styled(AS_BEFORE).map_err(write_failed)?;
        let above = editor.above();
        let jobs = self.shell.as_mut();
        let mut threads = self.talk.late_output();
        let color = self.talk.output.stdout_color;
        let late = &mut self.late;
        let telling = async {
            let of_jobs = async {
                if let Some(kept) = jobs {
                    kept.tell_of_jobs(&above).await;
                }
            };
            let of_threads = async {
                if let Some(output) = &mut threads {
                    late.tell(async || output.recv().await, color, &above).await;
                }
            };
            tokio::join!(of_jobs, of_threads);
            std::future::pending::<Infallible>().await
        };
        let reading = spawn_blocking(move || {
            let typed = editor.read(&face);
            (editor, typed)
        });
        let lost = |err| failed(err, "failed to read from the terminal");
        let typed = tokio::select! {
            biased;
            stop = terminated(signals) => {
                self.talk.terminal.restore();
                Ok(PromptInput::Told(stop))
            }
            read = reading => {
                let (editor, typed) = read.map_err(|err| lost(io::Error::other(err)))?;
                self.editor = Some(editor);
                typed.map_err(lost)
            }
            never = telling => match never {},
        };
        while let Some(bytes) = threads.as_mut().and_then(|it| it.try_recv().ok()) {
            self.late.add(&bytes);
        }
        let rest = String::from_utf8_lossy(&self.late.take()).into_owned();
        self.print(&rest)?;
        typed
    }

    async fn enter(&mut self, line: &str) -> Result<After> {
        let is_export = self.is_misplaced_export(line);
        match self.mode().parse_line(line, is_name) {
            Line::Ask(command) | Line::Python(command) if is_export => {
                unless_told(self.run_command(command, Sharing::Never)).await
            }
            Line::Empty => Ok(After::Prompt),
            Line::Slash { name, rest } => self.slash(name, rest).await,
            Line::Ask(question) => {
                if self.mode() == Mode::Shell {
                    self.attach_last_command();
                }
                let over = self.talk.ask(question).await?;
                Ok(self.turn_over(over))
            }
            Line::Python(code) => unless_told(self.run_cell(code)).await,
            Line::Run { command, shared } => {
                let sharing = self.sharing(command, shared);
                unless_told(self.run_command(command, sharing)).await
            }
        }
    }

    /// A line that begins with a blank is the user's alone, as in the shell's own history.
    fn sharing(&self, command: &str, shared: bool) -> Sharing {
        match self.mode() {
            _ if shared => Sharing::WithNext,
            Mode::Shell if !command.starts_with(char::is_whitespace) => Sharing::WhenAsked,
            Mode::Agent | Mode::Shell | Mode::Python => Sharing::Never,
        }
    }

    /// Takes what a turn leaves for the prompt.
    fn turn_over(&mut self, over: TurnEnd) -> After {
        self.queue(over.undelivered);
        self.typed_ahead(&over.typed);
        match over.stopped_by {
            Some(Stop::Terminate) => After::Leave(Exit::Terminated),
            Some(Stop::PipeClosed) => After::Leave(Exit::PipeClosed),
            Some(Stop::Interrupt) | None => After::Prompt,
        }
    }

    /// Has the next line begin with what was typed before there was a prompt for it. It may
    /// have been typed for something else, so only the user enters it.
    fn typed_ahead(&mut self, text: &str) {
        let text = rondo_runtime::sanitize::plain(&text.replace('\r', "\n"));
        if let Some(editor) = &mut self.editor {
            editor.begin_with(text.trim_end_matches('\n'));
        }
    }

    /// Has lines entered before the user types one.
    fn queue(&mut self, lines: impl IntoIterator<Item = String>) {
        self.queue.extend(lines);
    }

    fn mode(&self) -> Mode {
        self.shared.mode()
    }

    /// Changes the mode, and has what it needs start in the background.
    fn set_mode(&mut self, mode: Mode) {
        self.shared.set_mode(mode);
        let started = match mode {
            Mode::Agent => Ok(()),
            Mode::Shell => self.shell().map(drop),
            Mode::Python => self.talk.python().map(drop),
        };
        if let Err(error) = started {
            self.talk.output.error(&error);
        }
    }

    /// Changes what runs without asking, from the next question on.
    fn next_run_mode(&mut self) {
        let values = &mut self.talk.settings.values;
        let next = RunMode::of(values).next();
        next.layer().put_over(values);
        self.talk.output.note(next.explained());
    }

    fn set_directory(&mut self, directory: PathBuf) {
        self.shared.set_directory(directory.clone());
        self.talk.set_directory(directory);
    }

    /// Says once that the directory is gone: its removal may not have been meant.
    fn tell_of_lost_directory(&mut self) {
        let directory = &self.talk.settings.directory;
        let was_told = std::mem::replace(&mut self.is_lost, !directory.is_dir());
        if self.is_lost && !was_told {
            let note = format!("{}; {GO_ELSEWHERE}", gone(directory));
            self.talk.output.note(&note);
        }
    }

    fn print(&self, text: &str) -> Result<()> {
        let text = rondo_runtime::sanitize::plain(text);
        self.talk.output.stdout(&text).map_err(write_failed)
    }

    /// Prints words of ours, which may be broken at blanks.
    fn tell(&self, text: &str) -> Result<()> {
        let columns = self.talk.output.columns();
        self.print(&crate::render::wrapped(text, columns))
    }

    fn face(&mut self) -> Face {
        let settings = &self.talk.settings;
        let (model, context) = self.answers.get_or_insert_with(|| answers(settings));
        let used = self.talk.context_tokens;
        Face {
            mode: self.shared.mode(),
            run_mode: RunMode::of(&settings.values),
            exit_code: self.exit_code,
            directory: place::shown(&settings.directory, self.home.as_deref()),
            branch: rondo_runtime::terminal::branch(&settings.directory),
            model: model.clone(),
            context_percent: used
                .zip(*context)
                .and_then(|(used, fits)| used.saturating_mul(100).checked_div(fits)),
        }
    }

    /// Has the prompt look anew at who answers.
    fn forget_face(&mut self) {
        self.answers = None;
    }
}

/// Does something, and drops it when the process is told to end. Turns hear that themselves.
async fn unless_told(work: impl Future<Output = Result<After>>) -> Result<After> {
    let mut signals = Signals::listen();
    tokio::select! {
        biased;
        stop = terminated(&mut signals) => Ok(After::Leave(Exit::of_stop(stop))),
        done = work => done,
    }
}

/// Waits for what ends the process; an interrupt from elsewhere ends no prompt.
async fn terminated(signals: &mut Signals) -> Stop {
    loop {
        let stop = signals.next().await;
        if stop == Stop::Terminate {
            return stop;
        }
    }
}

/// Returns the model that would answer and its context. A model that cannot be had is reported at the first
/// question.
fn answers(settings: &Settings) -> (String, Option<u64>) {
    match ModelTarget::make(settings) {
        Ok(target) => (target.full_name(), target.facts.context_tokens),
        Err(_) => ("no model".to_owned(), None),
    }
}

fn names(settings: &Settings, home: Option<PathBuf>) -> Names {
    let (of_models, of_profiles) = (settings.clone(), settings.clone());
    Names {
        models: Box::new(move || {
            let providers = providers::Providers::load(&of_models.values.providers);
            let mut names = models::names(&of_models.values.models);
            for (name, provider) in providers.iter().flat_map(|it| it.iter()) {
                let model = provider.default_model.as_ref();
                names.extend(model.map(|model| format!("{name}/{model}")));
            }
            names.into_iter().collect()
        }),
        profiles: Box::new(move || profiles::names(&of_profiles).into_iter().collect()),
        home,
        path: settings.env.text("PATH"),
    }
}

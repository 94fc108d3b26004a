//! Opens the full-screen interface, which is what `rondo` without arguments does at a terminal.

use crate::approver::TerminalApprover;
use crate::cli::{AskArgs, ColorChoice, ReplArgs};
use crate::commands::ask::{AskMode, source, working_directory};
use crate::commands::{clipboard, editor, report::output_of};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::interactive::{FrontEndEnd, Handover};
use crate::output::{Output, SharedOutput};
use crate::slash::{self, MemoryChoice};
use crate::user_input;
use rondo_runtime::env::Env;
use rondo_runtime::error::{SetupError, SetupErrorKind};
use rondo_runtime::secrets;
use rondo_runtime::service::SessionService;
use rondo_runtime::settings::Settings;
use rondo_runtime::values::{
    EditKeys, MotionChoice, MouseChoice, NotifyChoice, PrintChoice, ScreenChoice, ThemeChoice,
};
use rondo_runtime::{NoNotices, Runtime, SessionOptions};
use rondo_script::{Init, InitAction};
use rondo_tui::prompt::reply::{CommandContext, Reply};
use rondo_tui::prompt::run_mode::RunMode;
use rondo_tui::prompt::slash::Command;
use rondo_tui::{
    AddedReply, BoxFuture, Colours, ExitOutput, KeptSessions, Mouse, Notes, Notify, Opening,
    Options, Program, ScreenEnd, UserAdditions,
};
use rondo_types::Message;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::NamedTempFile;

/// Images of the clipboard that are attached in one screen.
const IMAGES_MAX: usize = 64;

/// Returns whether the full screen is opened for these arguments: it was not asked for the line prompt, nothing is
/// logged to the terminal, and the terminal can show it.
pub(crate) fn opens(args: &ReplArgs, env: &Env, verbose: u8) -> bool {
    let is_for_lines = !args.implied || args.mode.is_some() || args.restore_python || verbose > 0;
    if is_for_lines {
        return false;
    }
    let Ok(directory) = working_directory(args.turn.directory.as_deref()) else {
        return false;
    };
    // The part that opens reports errors in them.
    let settings = Settings::load(env.clone(), directory, layer(args), &NoNotices);
    let choice = settings.ok().and_then(|it| it.values.tui_screen);
    match choice.unwrap_or(ScreenChoice::Auto) {
        ScreenChoice::Full => true,
        ScreenChoice::Inline => false,
        ScreenChoice::Auto => env.get("TERM").is_some_and(|it| it != "dumb"),
    }
}

fn layer(args: &ReplArgs) -> rondo_runtime::Layer {
    asked(args).layer()
}

fn asked(args: &ReplArgs) -> AskArgs {
    AskArgs {
        turn: args.turn.clone(),
        ..AskArgs::default()
    }
}

/// Opens the screen, and returns when it was left. If it follows the line prompt, it continues in what was kept from
/// there, and what was said before in the session is in the terminal's scrollback already.
///
/// # Errors
/// When the settings are invalid, the named session cannot be opened, or the terminal cannot be set.
pub(crate) fn run(
    runtime: &tokio::runtime::Runtime,
    args: ReplArgs,
    before: Option<KeptSessions>,
    env: Env,
    color: Option<ColorChoice>,
    early: &Output,
) -> Result<FrontEndEnd> {
    runtime.block_on(open(args, before, env, color, early))
}

async fn open(
    args: ReplArgs,
    before: Option<KeptSessions>,
    env: Env,
    color: Option<ColorChoice>,
    early: &Output,
) -> Result<FrontEndEnd> {
    let first = args.prompt.join(" ");
    let args = asked(&args);
    let options = SessionOptions {
        directory: working_directory(args.turn.directory.as_deref())?,
        is_directory_named: args.turn.directory.is_some(),
    };
    let names_directory = options.is_directory_named;
    let notes = Notes::new(SharedOutput::new(*early));
    let runtime = Runtime::new(env.clone(), args.layer(), Arc::clone(&notes) as _);
    // Until the screen is open.
    runtime.ask_about_folders(TerminalApprover::for_folders(&env, early));
    let settings = runtime.settings(options.directory.clone())?;
    let output = output_of(&settings.values, &env, color);
    let init = Init::load(&runtime, &settings, &(Arc::clone(&notes) as _))?.map(Arc::new);
    if let Some(init) = &init {
        runtime.extend(init.extensions());
    }
    let own = runtime.clone();
    let memory = MemoryChoice::default();
    let service = SessionService::open(runtime, options.directory.clone(), memory.clone())?;
    let session = service
        .open_session(&source(&args, AskMode::Ask), options)
        .await?;
    let program = ScreenProgram {
        env,
        servers: settings.mcp.names(),
        init,
        images: Arc::default(),
        memory,
        names_directory,
    };
    own.ask_about_folders(None);
    notes.collect();
    let began_as = RunMode::of(&settings.values);
    let is_ephemeral = settings.values.ephemeral == Some(true);
    let opening = Opening {
        options: Options {
            is_continued: before.is_some(),
            ..screen_options(&settings, &output)
        },
        service,
        session,
        settings,
        program: Arc::new(program),
        notes,
        first: Some(first).filter(|it| !it.trim().is_empty()),
        kept: before.unwrap_or_default(),
    };
    let kept = opening.service.clone();
    let left = rondo_tui::open(opening).await?;
    // Nothing is recorded of a session in which nothing was said.
    let is_kept = kept.preview(&left.session, 0).await.is_ok();
    if left.ended == ScreenEnd::Quit && is_kept && !is_ephemeral {
        output.note("continue with `rondo -c`");
    }
    Ok(how_left(left, is_kept, began_as))
}

/// Returns how the user continues after leaving the screen.
fn how_left(left: rondo_tui::ScreenResult, is_kept: bool, began_as: RunMode) -> FrontEndEnd {
    match left.ended {
        ScreenEnd::Quit => FrontEndEnd::For(Exit::Answer),
        ScreenEnd::Terminated => FrontEndEnd::For(Exit::Terminated),
        ScreenEnd::Inline => FrontEndEnd::Other(Handover {
            session: is_kept.then(|| left.session.to_string()),
            run_mode: Some(left.run_mode).filter(|it| *it != began_as),
            kept: left.kept,
        }),
    }
}

fn screen_options(settings: &Settings, output: &Output) -> Options {
    let values = &settings.values;
    let theme = values.tui_theme.unwrap_or(ThemeChoice::Auto);
    Options {
        mouse: match values.tui_mouse.unwrap_or(MouseChoice::On) {
            MouseChoice::On => Mouse::On,
            MouseChoice::Wheel => Mouse::Wheel,
            MouseChoice::Off => Mouse::Off,
        },
        colours: match output.stdout_color {
            true => colours(theme, &settings.env),
            false => Colours::None,
        },
        may_ask: may_answer(&settings.env),
        asks_ground: output.stdout_color && asks_ground(theme, &settings.env),
        has_true_colours: has_true_colours(&settings.env),
        is_still: values.tui_motion == Some(MotionChoice::Off),
        at_exit: match values.tui_print.unwrap_or(PrintChoice::All) {
            PrintChoice::All => ExitOutput::All,
            PrintChoice::Last => ExitOutput::Last,
            PrintChoice::None => ExitOutput::None,
        },
        notify: notify(values.tui_notify, &settings.env),
        is_continued: false,
        has_vi_keys: values.edit_keys == Some(EditKeys::Vi),
    }
}

/// True colors are used if the terminal says that it has them, and which ground it has.
fn colours(theme: ThemeChoice, env: &Env) -> Colours {
    match theme {
        ThemeChoice::Dark => Colours::Dark,
        ThemeChoice::Light => Colours::Light,
        ThemeChoice::Auto if has_true_colours(env) => match ground(env) {
            Some(true) => Colours::Light,
            Some(false) => Colours::Dark,
            None => Colours::Sixteen,
        },
        ThemeChoice::Auto if ground(env) == Some(true) => Colours::SixteenOnLight,
        ThemeChoice::Auto | ThemeChoice::Terminal => Colours::Sixteen,
    }
}

/// Notes on the desktop are asked for as the terminal takes them.
fn notify(choice: Option<NotifyChoice>, env: &Env) -> Notify {
    match choice.unwrap_or(NotifyChoice::Off) {
        NotifyChoice::Off => Notify::Off,
        NotifyChoice::Title => Notify::Title,
        NotifyChoice::Bell => Notify::Bell,
        NotifyChoice::Desktop => {
            let term = env.get("TERM").unwrap_or_default();
            let is_777 = term.starts_with("rxvt") || term.starts_with("foot");
            match is_777 || env.get("VTE_VERSION").is_some() {
                true => Notify::Osc777,
                false => Notify::Osc9,
            }
        }
    }
}

fn has_true_colours(env: &Env) -> bool {
    matches!(env.get("COLORTERM"), Some("truecolor" | "24bit"))
}

/// Returns whether the terminal must be asked for its ground: no variable tells.
fn asks_ground(theme: ThemeChoice, env: &Env) -> bool {
    theme == ThemeChoice::Auto && ground(env).is_none() && may_answer(env)
}

/// Returns whether the terminal answers questions: the console of Linux and dumb terminals answer nothing.
fn may_answer(env: &Env) -> bool {
    !matches!(env.get("TERM"), None | Some("dumb" | "linux"))
}

/// Returns whether the terminal's ground is light, if `COLORFGBG` says so: `foreground;background`.
fn ground(env: &Env) -> Option<bool> {
    let (_, background) = env.get("COLORFGBG")?.rsplit_once(';')?;
    match background.parse::<u8>().ok()? {
        7 | 9..=15 => Some(true),
        0..=6 | 8 => Some(false),
        _ => None,
    }
}

/// Parts of the program for its screen.
struct ScreenProgram {
    env: Env,
    servers: Vec<String>,
    /// Additions of `init.lua`.
    init: Option<Arc<Init>>,
    images: Arc<Images>,
    /// The choice of `/memory`.
    memory: MemoryChoice,
    /// Set if the command line names the directory.
    names_directory: bool,
}

impl Program for ScreenProgram {
    fn message(
        &self,
        text: &str,
        directory: &Path,
        note: &dyn Fn(&str),
    ) -> rondo_runtime::error::Result<Message> {
        user_input::of_text(text, directory, &self.servers, note).map_err(for_screen)
    }

    fn edit(&self, draft: &str) -> rondo_runtime::error::Result<String> {
        editor::edit_text(&self.env, draft).map_err(for_screen)
    }

    fn added(&self) -> UserAdditions {
        let Some(init) = &self.init else {
            return UserAdditions::default();
        };
        let commands = init.commands().into_iter();
        let keys = init.keys().iter();
        UserAdditions {
            commands: commands.map(|it| (it.name, it.description)).collect(),
            keys: keys.map(|it| (it.key.clone(), it.line.clone())).collect(),
        }
    }

    fn slash(
        &self,
        command: Command,
        rest: String,
        context: CommandContext,
    ) -> BoxFuture<'static, rondo_runtime::error::Result<Reply>> {
        let (memory, names_directory) = (self.memory.clone(), self.names_directory);
        let added = self.added().commands;
        Box::pin(async move {
            let host = slash::Host {
                secrets: secrets::of_env(&context.settings),
                memory,
                names_directory,
                added,
            };
            let context = slash::Context::read(command, context, host).await;
            let reply = slash::run(command, rest, context.map_err(for_screen)?).await;
            reply.map_err(for_screen)
        })
    }

    fn command(
        &self,
        name: String,
        rest: String,
    ) -> BoxFuture<'static, rondo_runtime::error::Result<AddedReply>> {
        let init = self.init.clone();
        Box::pin(async move {
            let Some(init) = init else {
                return Ok(AddedReply::Nothing);
            };
            match init.command(&name, &rest).await {
                Some(Ok(InitAction::Show(text))) => Ok(AddedReply::Show(text)),
                Some(Ok(InitAction::Ask(question))) => Ok(AddedReply::Ask(question)),
                Some(Ok(InitAction::Nothing)) | None => Ok(AddedReply::Nothing),
                Some(Err(why)) => {
                    let message = format!("`/{name}` of `init.lua` failed: {why}");
                    Err(SetupError::new(SetupErrorKind::Other, message))
                }
            }
        })
    }

    fn copy(&self, text: String) -> BoxFuture<'static, ()> {
        let env = self.env.clone();
        Box::pin(async move {
            // The terminal has it, too; if neither takes it, there is nothing else to try.
            let _ = clipboard::copy(&env, &text).await;
        })
    }

    fn clipboard_image(&self) -> BoxFuture<'static, rondo_runtime::error::Result<Option<PathBuf>>> {
        let (env, images) = (self.env.clone(), Arc::clone(&self.images));
        Box::pin(async move {
            let image = clipboard::image(&env).await.map_err(for_screen)?;
            image.map(|it| images.keep(&it)).transpose()
        })
    }

    fn is_image(&self, path: &Path) -> bool {
        user_input::is_image(path)
    }

    fn page(&self, text: &str) -> rondo_runtime::error::Result<()> {
        editor::page(&self.env, text).map_err(for_screen)
    }
}

/// Images of the clipboard, in files that are removed with it.
#[derive(Default)]
struct Images {
    files: Mutex<Vec<NamedTempFile>>,
}

impl Images {
    fn keep(&self, image: &[u8]) -> rondo_runtime::error::Result<PathBuf> {
        let failed = |err| {
            let context = "failed to keep the clipboard's image in a file";
            SetupError::because(SetupErrorKind::Other, context, err)
        };
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= IMAGES_MAX {
            let message = format!("more than {IMAGES_MAX} images of the clipboard were attached");
            return Err(SetupError::new(SetupErrorKind::Input, message));
        }
        let mut file = tempfile::Builder::new()
            .prefix("clipboard-")
            .suffix(".png")
            .tempfile()
            .map_err(failed)?;
        file.write_all(image).map_err(failed)?;
        let path = file.path().to_owned();
        files.push(file);
        Ok(path)
    }
}

fn for_screen(error: CliError) -> SetupError {
    let shown = SetupError::new(SetupErrorKind::Input, error.line());
    match error.hint {
        Some(hint) => shown.hint(hint),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_colours_need_a_terminal_that_has_them_and_tells_its_ground() {
        let colours = |env: &[(&str, &str)]| colours(ThemeChoice::Auto, &Env::of(env));
        let (true_colours, dark) = (("COLORTERM", "truecolor"), ("COLORFGBG", "15;0"));
        assert_eq!(colours(&[true_colours, dark]), Colours::Dark);
        assert_eq!(
            colours(&[true_colours, ("COLORFGBG", "0;default;15")]),
            Colours::Light
        );
        assert_eq!(colours(&[true_colours]), Colours::Sixteen);
        assert_eq!(colours(&[dark]), Colours::Sixteen);
        assert_eq!(colours(&[("COLORFGBG", "0;15")]), Colours::SixteenOnLight);
    }

    #[test]
    fn the_terminal_is_asked_for_its_ground_where_it_may_answer_and_nothing_else_tells() {
        let asks = |env: &[(&str, &str)]| asks_ground(ThemeChoice::Auto, &Env::of(env));
        let (true_colours, term) = (("COLORTERM", "truecolor"), ("TERM", "xterm-256color"));
        assert!(asks(&[true_colours, term]));
        assert!(asks(&[term]));
        assert!(!asks(&[true_colours, ("TERM", "dumb")]));
        assert!(!asks(&[true_colours, term, ("COLORFGBG", "15;0")]));
        let env = Env::of(&[true_colours, term]);
        assert!(!asks_ground(ThemeChoice::Terminal, &env));
    }
}

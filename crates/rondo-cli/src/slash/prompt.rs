//! The prompt itself: its mode, lines that are entered, jobs, the terminal, the clipboard, the other prompt.

use super::session::panel;
use super::{Context, wrong};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::terminal_context;
use rondo_tui::code_blocks;
use rondo_tui::prompt::reply::{Change, Panel, Reply, ReplyText};
use rondo_tui::prompt::slash;
use rondo_types::units::counted;
use std::io::Read as _;

/// The bound on a file whose lines are entered, in bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

pub(super) fn help(context: &Context) -> Reply {
    let text = slash::help(&context.added) + context.prompt.keys;
    Reply {
        shown: ReplyText::Words(text.trim_end().to_owned()),
        change: None,
    }
}

pub(super) fn mode(name: &str, context: &Context) -> Result<Reply> {
    let mode = context.prompt.mode.choose(name)?;
    Ok(Reply::change(Change::Mode(mode)))
}

pub(super) fn run(file: &str, context: &Context) -> Result<Reply> {
    if file.is_empty() {
        return Err(wrong("`/run` takes a file"));
    }
    let path = context.settings.directory.join(file);
    let mut text = String::new();
    let read = rondo_runtime::files::open_regular(&path)
        .and_then(|file| file.take(SCRIPT_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|err| {
        let context = format!("failed to read `{file}`");
        CliError::caused(Exit::Input, anyhow::Error::new(err).context(context))
    })?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(str::to_owned).collect();
    Ok(Reply::change(Change::Enter(lines)))
}

pub(super) fn explain(context: &Context) -> Result<Reply> {
    let Some(failed) = &context.prompt.failed else {
        return Err(wrong("no command and no cell has failed here"));
    };
    Ok(Reply::change(Change::Ask {
        text: format!(
            "Why did `{}` fail, and how can it be put right?",
            failed.line
        ),
        details: failed.details.clone(),
    }))
}

/// Stops the turn or the cell that runs, or a job of the shell: the one of that number, or the current one.
pub(super) fn stop(job: &str, context: &Context) -> Result<Reply> {
    let prompt = &context.prompt;
    if job.is_empty() && (prompt.is_busy || prompt.runs_own) {
        return Ok(Reply::change(Change::Cancel));
    }
    if job.is_empty() && !prompt.has_shell {
        return Ok(Reply::words("nothing runs"));
    }
    Ok(Reply::change(Change::Run(kill(job)?)))
}

fn kill(job: &str) -> Result<String> {
    let number = job.trim_start_matches('%');
    if !number.chars().all(|c| c.is_ascii_digit()) {
        return Err(wrong("`/stop` takes the number of a job").hint("`/ps` shows them"));
    }
    let job = if number.is_empty() { "%" } else { number };
    Ok(format!("kill %{job}"))
}

pub(super) fn terminal(_rest: &str, context: &Context) -> Result<Reply> {
    let (seen, settings) = (context.prompt.terminal.clone(), &context.settings);
    let known = terminal_context::with_surroundings(seen, &settings.directory, &settings.env);
    Ok(panel(Panel::Attach, &context.secrets.text(known.text())))
}

/// Copies the last answer, or a block of code in it.
pub(super) fn copy(number: &str, context: &Context) -> Result<Reply> {
    let answer = context
        .totals
        .latest()
        .map(|turn| match turn.built_answer() {
            Some(built) => built.to_owned(),
            None => turn.last_said(),
        });
    let Some(answer) = answer.filter(|it| !it.is_empty()) else {
        return Err(wrong("there is nothing to copy"));
    };
    if number.is_empty() {
        return Ok(Reply::change(Change::Copy(answer)));
    }
    let mut blocks = code_blocks(&answer);
    let at = number
        .parse::<usize>()
        .ok()
        .and_then(|it| it.checked_sub(1));
    match at.filter(|at| *at < blocks.len()) {
        Some(at) => Ok(Reply::change(Change::Copy(blocks.swap_remove(at)))),
        None => {
            let blocks = counted(blocks.len(), "block");
            Err(wrong(format!("the last answer has {blocks} of code")))
        }
    }
}

pub(super) fn other_prompt(context: &Context) -> Result<Reply> {
    if context.prompt.runs_own {
        return Err(wrong(
            "a command or a cell is still running: wait for it to end",
        ));
    }
    Ok(Reply::change(Change::OtherPrompt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_stopped_by_its_number_or_else_the_current_one() {
        assert_eq!(kill("").unwrap(), "kill %%");
        assert_eq!(kill("2").unwrap(), "kill %2");
        assert_eq!(kill("%2").unwrap(), "kill %2");
        assert!(kill("2; rm x").is_err());
    }
}

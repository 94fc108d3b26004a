//! `rondo session rm` and `prune`.

use crate::cli::PruneArgs;
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::clock::Clock;
use rondo_core::session_store::{SessionInfo, StoreError};
use rondo_core::storage::{Report, Retention, Store};
use rondo_runtime::calls;
use rondo_runtime::memory;
use rondo_runtime::paths::Paths;
use rondo_runtime::sanitize::cell;
use rondo_runtime::sessions;
use rondo_types::TimeMs;
use rondo_types::units::counted;
use rustix::termios::isatty;
use std::fmt::Write as _;
use std::io::{self, BufRead as _};

/// Removes sessions, after asking.
///
/// # Errors
/// When one is not there, in use or a parent of others, or when there was no user to ask.
pub(super) fn remove(
    store: &Store,
    paths: &Paths,
    names: &[String],
    yes: bool,
    output: &Output,
) -> Result<String> {
    let infos: Vec<SessionInfo> = names
        .iter()
        .map(|name| sessions::find(store, name))
        .collect::<Result<_, _>>()?;
    if !yes && !confirmed(&infos, output)? {
        return Ok("nothing was removed\n".to_owned());
    }
    let mut text = String::new();
    for info in infos {
        store.remove(&info.id)?;
        calls::forget(paths, &info.id);
        memory::forget_chat(paths, &info.id);
        let _ = writeln!(text, "removed {}", info.id);
    }
    if !text.is_empty() {
        give_back(store, output)?;
    }
    Ok(text)
}

fn give_back(store: &Store, output: &Output) -> Result<()> {
    if !store.vacuum()? {
        output.note(
            "the disk is too full to make the journal's file smaller; make some room elsewhere and \
             remove another session",
        );
    }
    Ok(())
}

fn confirmed(infos: &[SessionInfo], output: &Output) -> Result<bool> {
    if !isatty(io::stdin()) {
        let message = "cannot ask for confirmation without a terminal";
        return Err(CliError::new(Exit::ApprovalNeeded, message)
            .hint("pass `--yes` to remove without asking"));
    }
    for info in infos {
        output.stderr(&format!(
            "{}  {}\n",
            cell(info.id.as_str()),
            cell(&info.title)
        ));
    }
    output.stderr("Remove permanently? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes what is too old or too much.
///
/// # Errors
/// When the disk fails.
pub(super) fn prune(
    store: &Store,
    paths: &Paths,
    args: &PruneArgs,
    output: &Output,
) -> Result<String> {
    let now = Clock::system().now();
    let before = args.older_than.map(|age| {
        let age = u64::try_from(age.0.as_millis()).unwrap_or(u64::MAX);
        TimeMs(now.0.saturating_sub(age))
    });
    let retention = Retention {
        before,
        keep_bytes: args.keep_bytes,
    };
    let mut left = store.surplus(&retention)?;
    let mut text = String::new();
    if args.dry_run {
        for info in &left {
            let _ = writeln!(text, "would remove {}  {}", info.id, cell(&info.title));
        }
        return Ok(text);
    }
    // A parent can go once its forks are gone.
    loop {
        let count = left.len();
        let mut kept = Vec::new();
        for info in left {
            match store.remove(&info.id) {
                Ok(()) => {
                    calls::forget(paths, &info.id);
                    memory::forget_chat(paths, &info.id);
                    let _ = writeln!(text, "removed {}  {}", info.id, cell(&info.title));
                }
                Err(StoreError::HasForks { .. }) => kept.push(info),
                Err(StoreError::InUse { .. } | StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if kept.len() == count || kept.is_empty() {
            break;
        }
        left = kept;
    }
    if !text.is_empty() {
        give_back(store, output)?;
    }
    Ok(text)
}

/// Describes the result of a check.
pub(super) fn verdict(report: &Report) -> String {
    let mut text = format!("{}: {} sound records", report.session, report.sound);
    if let Some(defect) = &report.defect {
        let _ = write!(
            text,
            ", record {} is damaged: {}",
            defect.seq.0, defect.reason
        );
    }
    if report.mended > 0 {
        let _ = write!(text, "; {} restored", counted(report.mended, "record"));
    }
    for cut in &report.cut {
        match cut.session == report.session {
            true => text.push_str("; cut off"),
            false => {
                let _ = write!(text, "; its fork `{}` cut off there", cut.session);
            }
        }
        if let Some(saved) = &cut.saved {
            let _ = write!(text, ", and saved in `{}`", saved.display());
        }
    }
    text.push('\n');
    text
}

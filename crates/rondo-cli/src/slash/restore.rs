//! `/restore`: runs the cells of an earlier interpreter again in the current one.

use super::{Context, python, wrong};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use rondo_python::{NotRestored, Restoration};
use rondo_runtime::service::SortedCells;
use rondo_runtime::sessions::KeptCell;
use rondo_tui::prompt::reply::Reply;
use rondo_types::text::first_line;
use rondo_types::units::counted;
use std::fmt::Write as _;

/// Cells that are listed as not restored; more are counted.
const LISTED_MAX: usize = 50;
/// Characters of a cell's first line that such a list shows.
const LINE_CHARS_MAX: usize = 48;
/// And of what is said of it.
const WHY_CHARS_MAX: usize = 160;

/// Runs the session's cells again that are not in the interpreter, or those that are named by their numbers, whatever is known
/// of them.
///
/// # Errors
/// When there is no such cell, or they cannot be run.
pub(super) async fn restore(rest: &str, context: &Context) -> Result<Reply> {
    let named = numbers(rest)?;
    let session = &context.session;
    let refused = match session.info()? {
        _ if session.store().is_in_memory() => Some("this session is not recorded"),
        None => Some("the session has no cells yet"),
        Some(_) => None,
    };
    if let Some(message) = refused {
        return Err(CliError::new(Exit::NoSession, message));
    }
    let started = python::session(context)?.ensure_started().await;
    started.map_err(python::failed)?;
    let SortedCells { here, elsewhere } = session.sorted_cells()?;
    let ran_here = here.len();
    let cells = match named.is_empty() {
        true => elsewhere,
        false => chosen(&named, here, elsewhere)?,
    };
    if cells.is_empty() {
        let text = "every cell of the session is in this interpreter";
        return Ok(Reply::words(text));
    }
    let before = match named.is_empty() && ran_here > 0 {
        true => {
            let ran = counted(ran_here, "Python cell");
            format!("{ran} already ran here; the cells run again come after that\n")
        }
        false => String::new(),
    };
    let secrets = context.secrets.clone();
    let done = session
        .repeat_cells(&cells, !named.is_empty(), secrets)
        .await?;
    Ok(Reply::words(format!("{before}{}", report(&cells, &done))))
}

/// Returns the cells of these numbers, in the order in which they ran.
fn chosen(named: &[u32], here: Vec<KeptCell>, elsewhere: Vec<KeptCell>) -> Result<Vec<KeptCell>> {
    let mut all: Vec<KeptCell> = here.into_iter().chain(elsewhere).collect();
    all.retain(|it| named.contains(&it.cell.number));
    all.sort_by_key(|it| it.seq);
    let known = |number: &&u32| all.iter().any(|it| it.cell.number == **number);
    match named.iter().find(|number| !known(number)) {
        Some(unknown) => Err(wrong(format!("the session has no cell {unknown} that ran"))),
        None => Ok(all),
    }
}

/// Returns the result.
pub(crate) fn report(cells: &[KeptCell], done: &Restoration) -> String {
    let (ran, all) = (done.repeated.len(), cells.len());
    let stopped = match (done.is_lost, done.is_stopped) {
        (true, _) => "; the interpreter was lost meanwhile, and their variables with it",
        (false, true) => "; it was stopped there",
        (false, false) => "",
    };
    let listed = listed(cells, &done.not_restored);
    let text = format!("{ran} of {all} ran again{stopped}\n{listed}");
    text.trim_end().to_owned()
}

fn numbers(rest: &str) -> Result<Vec<u32>> {
    let parse = |word: &str| {
        word.parse().map_err(|_| {
            let message = format!("`{word}` is not the number of a cell");
            CliError::new(Exit::Usage, message).hint("`/restore` without one runs them all again")
        })
    };
    rest.split_whitespace().map(parse).collect()
}

fn listed(cells: &[KeptCell], missed: &[NotRestored]) -> String {
    let mut text = String::new();
    if missed.is_empty() {
        return text;
    }
    text.push_str("not restored:\n");
    for missed in missed.iter().take(LISTED_MAX) {
        let number = missed.number;
        let cell = cells.iter().find(|it| it.cell.number == number);
        let code = cell.map_or("", |it| it.cell.code.trim());
        let line = first_line(code, LINE_CHARS_MAX);
        let why = first_line(&missed.why.to_string(), WHY_CHARS_MAX);
        let _ = writeln!(text, "  {number}  {line}\n     {why}");
    }
    let more = missed.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    if missed.iter().any(|it| it.why.can_be_forced()) {
        text.push_str("`/restore NUMBER` runs one of them anyway.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::Seq;
    use rondo_python::{RecordedCell, RestoreFailure};

    #[test]
    fn what_was_not_restored_is_listed_by_number_and_first_line() {
        let cell = |number: u32, code: &str| KeptCell {
            seq: Seq(number.into()),
            cell: RecordedCell {
                number,
                code: code.to_owned(),
                changed: None,
                ending: None,
                has_read_input: false,
                timeout: None,
            },
        };
        let cells = [cell(1, "x = 1"), cell(2, "for n in x:\n    send(n)")];
        assert_eq!(listed(&cells, &[]), "");
        let missed = |why| [NotRestored { number: 2, why }];
        let text = listed(&cells, &missed(RestoreFailure::NotReached));
        let expected =
            "not restored:\n  2  for n in x:…\n     not run: this was stopped before it\n";
        assert_eq!(text, expected);
        let text = listed(&cells, &missed(RestoreFailure::EndNotRecorded));
        assert!(text.ends_with("`/restore NUMBER` runs one of them anyway.\n"));
        let many = vec![missed(RestoreFailure::NotReached)[0].clone(); LISTED_MAX + 3];
        assert!(listed(&cells, &many).ends_with("  and 3 more\n"));
    }

    #[test]
    fn cells_are_named_by_numbers() {
        assert!(numbers("").unwrap().is_empty());
        assert_eq!(numbers(" 3 12").unwrap(), [3, 12]);
        assert!(numbers("x").is_err());
    }
}

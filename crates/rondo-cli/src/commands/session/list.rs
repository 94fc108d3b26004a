//! `rondo session list`: a table, or JSON.

use crate::render::{fitting, shortened_to};
use rondo_core::clock::Clock;
use rondo_core::session_store::{SessionInfo, SessionState};
use rondo_core::storage::Store;
use rondo_runtime::sanitize::cell;
use rondo_types::units::rough;
use rondo_types::{StopReason, TimeMs};
use serde_json::json;
use std::fmt::Write as _;
use textwrap::core::display_width;

/// Columns that a title and a directory have at least; if there are fewer, directories are left out.
const PART_COLUMNS_MIN: usize = 10;
/// Columns of a directory at most; its end says more than its beginning.
const DIRECTORY_COLUMNS_MAX: usize = 30;
/// The heads of the columns, of which the last two share what the others leave.
const HEADS: [&str; 4] = ["ID", "WRITTEN", "STATE", "TURNS"];
const DIRECTORY: &str = "DIRECTORY";
const TITLE: &str = "TITLE";
/// Blanks between two columns.
const GAP: usize = 2;

/// Returns one line for each session, none wider than the terminal. Without the width of one, nothing is
/// shortened.
pub(crate) fn table(store: &Store, sessions: &[SessionInfo], columns: Option<usize>) -> String {
    lines(sessions, columns, |it| last_end(store, it))
}

/// How the last turn of a session ended. A session that is damaged is listed all the same.
fn last_end(store: &Store, it: &SessionInfo) -> Option<StopReason> {
    match it.state {
        SessionState::Done => store.last_end(&it.id).ok().flatten(),
        SessionState::Running | SessionState::CutOff | SessionState::Parked => None,
    }
}

fn lines(
    sessions: &[SessionInfo],
    columns: Option<usize>,
    end: impl Fn(&SessionInfo) -> Option<StopReason>,
) -> String {
    let now = Clock::system().now();
    let heads = Row {
        cells: HEADS.map(str::to_owned),
        directory: DIRECTORY.to_owned(),
        title: TITLE.to_owned(),
    };
    let rows = sessions.iter().map(|it| row(it, end(it), now));
    let rows: Vec<Row> = std::iter::once(heads).chain(rows).collect();
    let mut widths = [0; HEADS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = display_width(cell).max(*width);
        }
    }
    let used = widths.iter().map(|width| width + GAP).sum();
    let directory = directory_columns(&rows, columns.map(|columns| columns.saturating_sub(used)));
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.cells.iter().zip(widths) {
            pad(&mut line, cell, width);
        }
        if let Some(width) = directory {
            pad(&mut line, &tail_of(&row.directory, width), width);
        }
        line.push_str(&row.title);
        let line = columns.map_or_else(|| line.clone(), |columns| shortened_to(&line, columns));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Returns how wide directories are shown, beside titles that share `left` with them; `None` if that is
/// too little for both.
fn directory_columns(rows: &[Row], left: Option<usize>) -> Option<usize> {
    let widest = |of: fn(&Row) -> &str| rows.iter().map(|it| display_width(of(it))).max();
    let directory = widest(|it| &it.directory).unwrap_or_default();
    let title = widest(|it| &it.title).unwrap_or_default();
    let Some(left) = left else {
        return Some(directory);
    };
    let left = left.saturating_sub(GAP);
    let shown = left.saturating_sub(title).max(left / 2);
    let shown = shown.min(DIRECTORY_COLUMNS_MAX).min(directory);
    (left >= 2 * PART_COLUMNS_MIN).then_some(shown)
}

fn pad(line: &mut String, cell: &str, width: usize) {
    let blanks = width.saturating_sub(display_width(cell)) + GAP;
    let _ = write!(line, "{cell}{:blanks$}", "");
}

/// Returns an object a line.
pub(super) fn json(store: &Store, sessions: &[SessionInfo]) -> String {
    let mut text = String::new();
    for it in sessions {
        let line = json!({
            "id": it.id,
            "created_ms": it.created,
            "updated_ms": it.updated,
            "state": state(it.state).replace(' ', "_"),
            "stop_reason": last_end(store, it),
            "turns": it.turns,
            "records": it.head,
            "directory": it.directory,
            "title": it.title,
            "imported": it.imported,
            "child_of": it.id.parent(),
            "forked_from": it.parent.as_ref().map(|(parent, _)| parent),
        });
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A session's line before it is laid out.
struct Row {
    /// Cells below each of [`HEADS`].
    cells: [String; HEADS.len()],
    directory: String,
    title: String,
}

fn row(it: &SessionInfo, end: Option<StopReason>, now: TimeMs) -> Row {
    Row {
        cells: [
            match it.id.parent() {
                Some(_) => format!("└ {}", cell(it.id.as_str())),
                None => cell(it.id.as_str()),
            },
            ago(now.since(it.updated).as_secs()),
            end.map_or_else(|| state(it.state), outcome).to_owned(),
            it.turns.to_string(),
        ],
        directory: cell(&it.directory),
        title: cell(&it.title),
    }
}

fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Done => "done",
        SessionState::Running => "running",
        SessionState::CutOff => "cut off",
        SessionState::Parked => "parked",
    }
}

/// Returns the state of a turn, in a word or two.
fn outcome(end: StopReason) -> &'static str {
    match end {
        StopReason::Complete => "answered",
        StopReason::MaxSteps
        | StopReason::MaxToolCalls
        | StopReason::MaxTokens
        | StopReason::MaxCost
        | StopReason::BudgetSpent => "at a limit",
        StopReason::Deadline | StopReason::StepTimeout => "timed out",
        StopReason::Refused => "refused",
        StopReason::Cancelled | StopReason::Intercepted => "stopped",
        StopReason::InvalidResponse | StopReason::NoProgress | StopReason::Error => "failed",
    }
}

fn ago(seconds: u64) -> String {
    format!("{} ago", rough(seconds))
}

/// Returns the end of a directory if the whole is wider than that.
fn tail_of(directory: &str, columns: usize) -> String {
    if display_width(directory) <= columns {
        return directory.to_owned();
    }
    let kept = fitting(directory.chars().rev(), columns);
    format!("…{}", kept.chars().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::Seq;
    use rondo_core::shown::{is_hidden, is_ordinary};
    use rondo_types::SessionId;

    fn info(id: &str, title: &str, state: SessionState) -> SessionInfo {
        SessionInfo {
            id: SessionId::new(id),
            created: TimeMs(1),
            updated: TimeMs(u64::MAX),
            head: Seq(7),
            parent: None,
            title: title.to_owned(),
            directory: "/a/very/long/path/to/some/project/of/mine".to_owned(),
            turns: 2,
            state,
            imported: false,
            lost_end: false,
        }
    }

    /// Returns the words of each line, a blank between two.
    fn words(text: &str) -> Vec<String> {
        let lines = text
            .lines()
            .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect()
    }

    fn sessions() -> [SessionInfo; 2] {
        let title = "what is in the file that I wrote yesterday";
        [
            info("s-1a2040b629a-1f9c", title, SessionState::Done),
            info("s-22", "四つの日本語の題", SessionState::CutOff),
        ]
    }

    fn ends(it: &SessionInfo) -> Option<StopReason> {
        (it.id.as_str() != "s-22").then_some(StopReason::MaxSteps)
    }

    #[test]
    fn a_table_fits_the_terminal() {
        for (columns, expected) in [
            (
                100,
                [
                    "ID WRITTEN STATE TURNS DIRECTORY TITLE",
                    "s-1a2040b629a-1f9c 0 s ago at a limit 2 …/to/some/project/of/mine what is in the file that…",
                    "s-22 0 s ago cut off 2 …/to/some/project/of/mine 四つの日本語の題",
                ],
            ),
            (
                80,
                [
                    "ID WRITTEN STATE TURNS DIRECTORY TITLE",
                    "s-1a2040b629a-1f9c 0 s ago at a limit 2 …roject/of/mine what is in the…",
                    "s-22 0 s ago cut off 2 …roject/of/mine 四つの日本語の…",
                ],
            ),
            (
                60,
                [
                    "ID WRITTEN STATE TURNS TITLE",
                    "s-1a2040b629a-1f9c 0 s ago at a limit 2 what is in…",
                    "s-22 0 s ago cut off 2 四つの日本…",
                ],
            ),
        ] {
            let shown = lines(&sessions(), Some(columns), ends);
            let widest = shown.lines().map(display_width).max();
            assert!(widest <= Some(columns), "{columns}: {shown}");
            assert_eq!(words(&shown), expected, "{columns}");
        }
    }

    #[test]
    fn no_line_is_wider_than_any_terminal() {
        for columns in 1..200 {
            let shown = lines(&sessions(), Some(columns), ends);
            let widest = shown.lines().map(display_width).max();
            assert!(widest <= Some(columns), "{columns}: {shown}");
        }
    }

    #[test]
    fn a_table_for_no_terminal_is_whole() {
        let directory = "/a/very/long/path/to/some/project/of/mine";
        assert_eq!(
            words(&lines(&sessions(), None, ends)),
            [
                "ID WRITTEN STATE TURNS DIRECTORY TITLE".to_owned(),
                format!(
                    "s-1a2040b629a-1f9c 0 s ago at a limit 2 {directory} what is in the file that I wrote yesterday"
                ),
                format!("s-22 0 s ago cut off 2 {directory} 四つの日本語の題"),
            ]
        );
    }

    #[test]
    fn what_an_imported_session_says_of_itself_cannot_steer_the_terminal() {
        let hostile = "a\u{1b}]52;c;ZXZpbA==\u{7}b\u{1b}[2J\u{9b}31m\nc\rd\u{202e}e\u{200b}";
        let mut it = info(hostile, hostile, SessionState::Done);
        it.directory = hostile.to_owned();
        let shown = lines(&[it], Some(200), |_| None);
        let row = shown.lines().nth(1).unwrap();
        assert_eq!(shown.lines().count(), 2);
        assert_eq!(row.matches("ab c de").count(), 3, "{row:?}");
        let is_left = |c| is_hidden(c) && !is_ordinary(c);
        assert!(!row.contains(is_left), "{row:?}");
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let told = [5, 65, 7_300, 200_000].map(ago);
        assert_eq!(told, ["5 s ago", "1 min ago", "2 h ago", "2 d ago"]);
    }
}

//! `rondo session list`: a table, or JSON.

use crate::render::sanitize::cell;
use rondo_core::clock::Clock;
use rondo_journal::{SessionInfo, SessionState, Store};
use rondo_types::{StopReason, TimeMs};
use serde_json::json;
use std::fmt::Write as _;

/// Columns that a title gets at least.
const TITLE_COLUMNS_MIN: usize = 20;
/// Columns of a directory at most; its end says more than its beginning.
const DIRECTORY_COLUMNS_MAX: usize = 30;

/// Returns one line for each session, cut to the terminal.
pub(crate) fn table(store: &Store, sessions: &[SessionInfo], columns: usize) -> String {
    lines(sessions, columns, |it| end(store, it))
}

/// How the last turn of a session ended. A session that is damaged is listed all the same.
fn end(store: &Store, it: &SessionInfo) -> Option<StopReason> {
    match it.state {
        SessionState::Done => store.last_end(&it.id).ok().flatten(),
        SessionState::Running | SessionState::CutOff => None,
    }
}

fn lines(
    sessions: &[SessionInfo],
    columns: usize,
    end: impl Fn(&SessionInfo) -> Option<StopReason>,
) -> String {
    let now = Clock::system().now();
    let rows: Vec<[String; 5]> = sessions.iter().map(|it| row(it, end(it), now)).collect();
    let heads = ["ID", "WRITTEN", "STATE", "TURNS", "DIRECTORY"].map(str::to_owned);
    let mut widths = heads.clone().map(|head| head.len());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let used: usize = widths.iter().map(|width| width + 2).sum();
    let left = columns.saturating_sub(used).max(TITLE_COLUMNS_MIN);
    let titles: Vec<String> = sessions.iter().map(|it| cell(&it.title)).collect();
    let titles = titles.iter().map(String::as_str);
    let mut text = String::new();
    let all = std::iter::once((&heads, "TITLE")).chain(rows.iter().zip(titles));
    for (cells, title) in all {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        line.push_str(&cut(title, left));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
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
            "stop_reason": end(store, it),
            "turns": it.turns,
            "records": it.head,
            "directory": it.directory,
            "title": it.title,
            "imported": it.imported,
            "forked_from": it.parent.as_ref().map(|(parent, _)| parent),
        });
        let _ = writeln!(text, "{line}");
    }
    text
}

fn row(it: &SessionInfo, end: Option<StopReason>, now: TimeMs) -> [String; 5] {
    [
        cell(it.id.as_str()),
        ago(now.since(it.updated).as_secs()),
        end.map_or_else(|| state(it.state), outcome).to_owned(),
        it.turns.to_string(),
        end_of(&cell(&it.directory)),
    ]
}

fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Done => "done",
        SessionState::Running => "running",
        SessionState::CutOff => "cut off",
    }
}

/// Returns what became of a turn, in a word or two.
fn outcome(end: StopReason) -> &'static str {
    match end {
        StopReason::Complete => "answered",
        StopReason::MaxSteps
        | StopReason::MaxToolCalls
        | StopReason::MaxTokens
        | StopReason::MaxCost => "at a limit",
        StopReason::Deadline | StopReason::StepTimeout => "timed out",
        StopReason::Refused => "refused",
        StopReason::Cancelled => "stopped",
        StopReason::InvalidResponse | StopReason::NoProgress | StopReason::Error => "failed",
    }
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

fn end_of(directory: &str) -> String {
    let count = directory.chars().count();
    if count <= DIRECTORY_COLUMNS_MAX {
        return directory.to_owned();
    }
    let kept = directory.chars().skip(count - DIRECTORY_COLUMNS_MAX + 1);
    format!("…{}", kept.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondo_core::ports::Seq;
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

    #[test]
    fn a_table_fits_the_terminal() {
        let sessions = [
            info(
                "s-1",
                "what is in the file that I wrote yesterday",
                SessionState::Done,
            ),
            info("s-22", "short", SessionState::CutOff),
        ];
        let ends = |it: &SessionInfo| (it.id.as_str() == "s-1").then_some(StopReason::MaxSteps);
        let shown = lines(&sessions, 80, ends);
        let squeeze = |text: &str| {
            let lines = text
                .lines()
                .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
            lines.collect::<Vec<_>>()
        };
        assert_eq!(
            squeeze(&shown),
            [
                "ID WRITTEN STATE TURNS DIRECTORY TITLE",
                "s-1 0 s ago at a limit 2 …/path/to/some/project/of/mine what is in the file…",
                "s-22 0 s ago cut off 2 …/path/to/some/project/of/mine short",
            ]
        );
    }

    #[test]
    fn what_an_imported_session_says_of_itself_cannot_steer_the_terminal() {
        let hostile = "a\u{1b}]52;c;ZXZpbA==\u{7}b\u{1b}[2J\u{9b}31m\nc\rd\u{202e}e\u{200b}";
        let mut it = info(hostile, hostile, SessionState::Done);
        it.directory = hostile.to_owned();
        let shown = lines(&[it], 200, |_| None);
        let row = shown.lines().nth(1).unwrap();
        assert_eq!(shown.lines().count(), 2);
        assert_eq!(row.matches("ab c de").count(), 3, "{row:?}");
        assert!(!row.contains(rondo_core::shown::is_hidden), "{row:?}");
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let told = [5, 65, 7_300, 200_000].map(ago);
        assert_eq!(told, ["5 s ago", "1 min ago", "2 h ago", "2 d ago"]);
    }
}

//! Tests: the Python cells of a session, sorted by where they ran.

use super::*;
use rondo_types::{Recovery, ToolErrorCode};
use serde_json::json;

fn cell(code: &str) -> RecordBody {
    let code = code.to_owned();
    RecordBody::CellStarted {
        code,
        changed: None,
    }
}

fn finished(ending: CellEnding, is_restarted: bool) -> RecordBody {
    RecordBody::CellFinished {
        ending,
        stdout: String::new(),
        stderr: String::new(),
        duration_ms: 1,
        is_restarted,
        has_read_input: false,
    }
}

fn returned(value: Option<&str>) -> CellEnding {
    let value_repr = value.map(str::to_owned);
    CellEnding::Returned { value_repr }
}

fn called(id: &str, name: &str, arguments: Value) -> RecordBody {
    RecordBody::ToolStarted {
        call_id: CallId::new(id),
        name: name.to_owned(),
        arguments,
        recovery: Recovery::AtMostOnce,
        idempotency_key: String::new(),
        evidence: None,
    }
}

fn ended(id: &str, outcome: ToolOutcome) -> RecordBody {
    RecordBody::ToolFinished {
        call_id: CallId::new(id),
        outcome,
        duration_ms: 1,
    }
}

fn of(bodies: Vec<RecordBody>) -> Cells {
    let mut cells = Cells::default();
    for (seq, body) in (1..).zip(bodies) {
        cells.take(Seq(seq), body);
    }
    cells
}

fn told(cells: &Cells) -> Vec<(u64, u32, &str, Option<CellEnding>)> {
    let all = cells.kept.iter().map(|KeptCell { seq, cell }| {
        let ending = cell.ending.clone();
        (seq.0, cell.number, cell.code.as_str(), ending)
    });
    all.collect()
}

#[test]
fn cells_of_the_person_and_the_agent_are_numbered_in_their_order() {
    let cells = of(vec![
        cell("x = 1"),
        finished(returned(None), false),
        called("a", "run_code", json!({"code": "y = x"})),
        called("b", "exec", json!({"command": "ls"})),
        ended("b", ToolOutcome::json(json!({}))),
        ended("a", ToolOutcome::json(json!({"value_repr": null}))),
        called("c", "eval_expr", json!({"expr": "y"})),
        ended("c", ToolOutcome::json(json!({"value_repr": "1"}))),
        cell("x / 0"),
        cell("x + 1"),
        finished(returned(Some("2")), false),
    ]);
    let expected = [
        (1, 1, "x = 1", Some(returned(None))),
        (3, 2, "y = x", Some(returned(None))),
        (7, 3, "y", Some(returned(Some("1")))),
        (9, 4, "x / 0", None),
        (10, 5, "x + 1", Some(returned(Some("2")))),
    ];
    assert_eq!(told(&cells), expected);
    assert_eq!((cells.lost_at, cells.left_out), (Seq(0), 0));
}

#[test]
fn a_call_that_was_in_doubt_stays_so_though_the_model_was_told_that_it_failed() {
    let cells = of(vec![
        called("a", "run_code", json!({"code": "y = 1"})),
        ended("a", ToolOutcome::error(ToolErrorCode::InDoubt, "in doubt")),
    ]);
    assert_eq!(told(&cells), [(1, 1, "y = 1", None)]);
}

#[test]
fn what_was_refused_did_not_run_and_a_loss_is_noted() {
    let lost = CellEnding::Lost {
        message: "it ended".to_owned(),
    };
    let cells = of(vec![
        called("a", "run_code", json!({"code": "y = 1"})),
        ended("a", ToolOutcome::error(ToolErrorCode::InvalidArgs, "no")),
        cell("os._exit(1)"),
        finished(lost, false),
    ]);
    assert!(!cells.kept[0].may_have_run() && cells.kept[1].may_have_run());
    assert_eq!(cells.lost_at, Seq(4));
    let cells = of(vec![
        cell("1"),
        finished(returned(Some("1")), false),
        cell("2"),
        finished(returned(Some("2")), true),
    ]);
    assert_eq!(cells.lost_at, Seq(2));
}

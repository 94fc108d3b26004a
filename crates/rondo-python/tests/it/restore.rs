//! Earlier code is run again.

use crate::fixture::{call, cell, repr, run, session, settings};
use rondo_core::redact::Secrets;
use rondo_python::{
    Capability, CellEnd, CellEnding, CellLimits, CodeChange, RecordedCell, Restoration,
    RestoreFailure, RestoreOptions, Session, Stop, ending_of, is_after_loss,
};
use rondo_types::ToolOutcome;
use std::time::Duration;

fn recorded(number: u32, code: &str, ending: Option<CellEnding>) -> RecordedCell {
    RecordedCell {
        number,
        code: code.to_owned(),
        changed: None,
        ending,
        has_read_input: false,
        timeout: None,
    }
}

fn value(repr: &str) -> Option<CellEnding> {
    let value_repr = (repr != "None").then(|| repr.to_owned());
    Some(CellEnding::Returned { value_repr })
}

fn raised(exc_type: &str, message: &str) -> Option<CellEnding> {
    Some(CellEnding::Raised {
        exc_type: exc_type.to_owned(),
        message: message.to_owned(),
    })
}

/// Runs code and records it, as a prompt does.
async fn ran(session: &Session, number: u32, code: &str) -> RecordedCell {
    let CellEnd {
        value_repr,
        exception,
        ..
    } = cell(session, code).await.unwrap();
    let ending = match exception {
        Some(it) => raised(&it.exc_type, &it.message),
        None => Some(CellEnding::Returned { value_repr }),
    };
    recorded(number, code, ending)
}

async fn restored(session: &Session, cells: &[RecordedCell]) -> Restoration {
    let options = RestoreOptions::default();
    session.restore(cells, &options).await.unwrap()
}

fn whys(restoration: &Restoration) -> Vec<(u32, String)> {
    let all = restoration.not_restored.iter();
    all.map(|it| (it.number, it.why.to_string())).collect()
}

#[tokio::test]
async fn variables_functions_and_imports_are_there_again_and_their_output_is_not_shown() {
    let first = session();
    let mut cells = Vec::new();
    for (number, code) in (1..).zip([
        "import math\nx = 6",
        "def f(n):\n    return n * x\n",
        "print('shown once'); y = f(7)",
        "y",
        "object()",
        "_ is not None",
    ]) {
        cells.push(ran(&first, number, code).await);
    }
    let other = session();
    let done = restored(&other, &cells).await;
    assert_eq!(done.not_restored, []);
    assert_eq!(done.repeated, [1, 2, 3, 4, 5, 6]);
    assert!(!done.is_stopped && !done.is_lost);
    assert_eq!(
        repr(&other, "(x, y, f(1), math.floor(2.5))").await,
        "(6, 42, 6, 2)"
    );
    // What it wrote while it was restored is not the next cell's.
    assert_eq!(run(&other, "print('mine')").await.stdout, "mine\n");
    // Both continue by themselves.
    run(&first, "x = 'first'").await;
    assert_eq!(repr(&other, "x").await, "6");
}

#[tokio::test]
async fn what_differs_failed_or_was_in_doubt_is_listed_and_the_rest_runs() {
    let folder = tempfile::tempdir().unwrap();
    let touch = |name: &str| format!("open({:?}, 'w').close()", folder.path().join(name));
    let cells = [
        recorded(1, "a = 1", value("None")),
        recorded(2, &touch("doubt"), None),
        recorded(3, &touch("stopped"), Some(CellEnding::Interrupted)),
        recorded(
            4,
            "import os; os._exit(3)",
            Some(CellEnding::Lost {
                message: "it ended".to_owned(),
            }),
        ),
        recorded(
            5,
            &touch("never"),
            Some(CellEnding::NotRun {
                message: "there was no interpreter".to_owned(),
            }),
        ),
        recorded(
            6,
            "b = 2; 1 / 0",
            raised("ZeroDivisionError", "division by zero"),
        ),
        recorded(7, "1 + 1", value("3")),
        recorded(8, "{}['k']", value("1")),
        recorded(9, "c = 3; [][0]", raised("KeyError", "'k'")),
        recorded(10, "a", raised("NameError", "name 'a' is not defined")),
        RecordedCell {
            changed: Some(CodeChange::Cut),
            ..recorded(11, &touch("cut"), value("None"))
        },
        RecordedCell {
            changed: Some(CodeChange::Redacted),
            ..recorded(12, &touch("redacted"), value("None"))
        },
        recorded(13, "d = a + b + c", value("None")),
    ];
    let session = session();
    let done = restored(&session, &cells).await;
    let expected = [
        (
            2,
            "not run: its end is not recorded, so what it did is unknown",
        ),
        (3, "not run: it was stopped then, before its end"),
        (4, "not run: it ended the interpreter then"),
        (6, "raised ZeroDivisionError: division by zero, then as now"),
        (7, "is 2 (then: 3)"),
        (8, "raised KeyError: 'k' (then: nothing was raised)"),
        (
            9,
            "raised IndexError: list index out of range (then: KeyError: 'k')",
        ),
        (
            10,
            "raised NameError: name 'a' is not defined then, and nothing now",
        ),
        (11, "not run: it was too long to be kept whole"),
        (12, "not run: it held a key, which is not kept"),
    ];
    assert_eq!(
        whys(&done),
        expected.map(|(number, why)| (number, why.to_owned()))
    );
    assert_eq!(done.repeated, [1, 6, 7, 8, 9, 10, 13]);
    assert_eq!(repr(&session, "d").await, "6");
    let touched = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(touched, 0);
}

#[tokio::test]
async fn what_is_in_doubt_runs_where_that_is_asked_for() {
    let cells = [
        recorded(1, "a = 1", None),
        recorded(2, "b = 2", Some(CellEnding::Interrupted)),
        recorded(3, "c = e", None),
    ];
    let options = RestoreOptions {
        force: true,
        ..RestoreOptions::default()
    };
    let session = session();
    let done = session.restore(&cells, &options).await.unwrap();
    assert_eq!(done.repeated, [1, 2, 3]);
    let why = "raised NameError: name 'e' is not defined (then: its end is not known)";
    assert_eq!(whys(&done), [(3, why.to_owned())]);
    assert_eq!(repr(&session, "a + b").await, "3");
}

#[tokio::test]
async fn values_are_compared_without_addresses_and_as_they_were_kept() {
    let secret = "k-1234567890";
    let cells = [
        recorded(1, "class A: pass", value("None")),
        recorded(
            2,
            "[A(), A()]",
            value("[<__main__.A object at 0x7f01>, <__main__.A object at 0x7f02>]"),
        ),
        recorded(3, "'k-' + '1234567890'", value("'[redacted]'")),
    ];
    let session = session();
    let options = RestoreOptions {
        secrets: Secrets::new([secret.to_owned()]),
        ..RestoreOptions::default()
    };
    let done = session.restore(&cells, &options).await.unwrap();
    assert_eq!(done.not_restored, []);
}

#[tokio::test]
async fn a_cell_that_is_over_its_time_is_listed_and_the_next_one_runs() {
    let slow = RecordedCell {
        timeout: Some(Duration::from_millis(50)),
        ..recorded(1, "x = 1\nwhile True: pass", value("None"))
    };
    let session = session();
    let done = restored(&session, &[slow, recorded(2, "y = x + 1", value("None"))]).await;
    let [missed] = &done.not_restored[..] else {
        panic!("{done:?}")
    };
    assert_eq!(
        (missed.number, &missed.why),
        (1, &RestoreFailure::Stopped(Stop::Deadline))
    );
    assert!(!done.is_stopped);
    assert_eq!(repr(&session, "y").await, "2");
}

#[tokio::test]
async fn it_is_stopped_in_the_middle_and_says_how_far_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let endless = format!("open({begun:?}, 'w').close()\nwhile True: pass");
    let cells = [
        recorded(1, "x = 1", value("None")),
        recorded(2, &endless, value("None")),
        recorded(3, "x = 3", value("None")),
    ];
    let (session, options) = (session(), RestoreOptions::default());
    let stop = async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        options.stop.cancel();
    };
    let (done, ()) = tokio::join!(session.restore(&cells, &options), stop);
    let done = done.unwrap();
    assert!(done.is_stopped && !done.is_lost);
    assert_eq!(done.repeated, [1, 2]);
    let all: Vec<_> = done.not_restored.iter().map(|it| &it.why).collect();
    assert_eq!(
        all,
        [
            &RestoreFailure::Stopped(Stop::Cancelled),
            &RestoreFailure::NotReached
        ]
    );
    assert_eq!(repr(&session, "x").await, "1");
}

#[tokio::test]
async fn a_cell_that_ends_the_interpreter_now_ends_the_restoring() {
    let cells = [
        recorded(1, "x = 1", value("None")),
        recorded(2, "import os; os._exit(3)", value("None")),
        recorded(3, "y = 1", value("None")),
    ];
    let session = session();
    let done = restored(&session, &cells).await;
    assert!(done.is_lost);
    let lost = "the Python interpreter ended with exit code 3: nothing is restored";
    assert_eq!(
        whys(&done),
        [
            (2, lost.to_owned()),
            (3, RestoreFailure::NotReached.to_string())
        ]
    );
    assert_eq!(repr(&session, "'x' in globals()").await, "False");
}

#[tokio::test]
async fn a_loss_that_nobody_was_told_of_keeps_no_cell_from_running() {
    let session = session();
    let end = run(&session, "import os; os.getpid()").await;
    let process: i32 = end.value_repr.unwrap().parse().unwrap();
    let mut kill = std::process::Command::new("kill");
    let killed = kill.args(["-9", &process.to_string()]).status();
    assert!(killed.unwrap().success());
    crate::fixture::gone(&process.to_string()).await;
    let done = restored(&session, &[recorded(1, "x = 1", value("None"))]).await;
    assert_eq!(
        (done.repeated.as_slice(), done.not_restored.as_slice()),
        (&[1][..], &[][..])
    );
    assert_eq!(session.global_names().await.unwrap(), ["x"]);
}

#[tokio::test]
async fn what_a_model_was_told_of_its_code_is_read_back() {
    let session = session();
    let mut outcomes = Vec::new();
    for code in ["1 + 1", "None", "1 / 0", "import os; os._exit(3)", "x = 1"] {
        let arguments = serde_json::json!({ "code": code });
        outcomes.push(call(&session, Capability::RunCode, arguments).await);
    }
    let endings: Vec<_> = outcomes.iter().map(ending_of).collect();
    let lost = CellEnding::Lost {
        message: "the Python interpreter ended with exit code 3".to_owned(),
    };
    let zero = raised("ZeroDivisionError", "division by zero");
    let none = value("None");
    assert_eq!(
        endings,
        [value("2"), none.clone(), zero, Some(lost), none.clone()]
    );
    let after_loss: Vec<_> = outcomes.iter().map(is_after_loss).collect();
    assert_eq!(after_loss, [false, false, false, false, true]);
    assert_eq!(session.interpreters_started(), 2);
    let evaluated = call(
        &session,
        Capability::EvalExpr,
        serde_json::json!({"expr": "None"}),
    );
    assert_eq!(ending_of(&evaluated.await), none);
    let until = CellLimits {
        timeout: Some(Duration::from_millis(50)),
        ..CellLimits::default()
    };
    let arguments = serde_json::json!({"code": "while True: pass"});
    let late = session.call(Capability::RunCode, &arguments, until).await;
    assert_eq!(ending_of(&late), Some(CellEnding::Interrupted));
    let refused = rondo_types::ToolErrorCode::Denied;
    assert_eq!(ending_of(&ToolOutcome::error(refused, "no")), None);
}

#[tokio::test]
async fn where_there_is_no_interpreter_nothing_has_run() {
    let mut settings = settings();
    settings.program = "/nowhere/python3".into();
    let session = Session::new(settings);
    let cells = [recorded(1, "x = 1", value("None"))];
    let options = RestoreOptions::default();
    assert!(session.restore(&cells, &options).await.is_err());
}

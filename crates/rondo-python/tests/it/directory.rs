//! Working directory of an interpreter, while it changes.

use crate::fixture::{call, cell, failed, repr, run, session, settings};
use rondo_python::{Capability, Session, SessionError};
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Two directories, by their real paths.
fn two() -> (TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| {
        let directory = root.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(&directory).unwrap();
        directory
    });
    (root, first, second)
}

fn session_in(directory: &Path) -> Session {
    let mut settings = settings();
    settings.directory = directory.to_owned();
    Session::new(settings)
}

fn go_to(session: &Session, directory: &Path) {
    session.go_to(session.settings().program.clone(), directory.to_owned());
}

async fn place(session: &Session) -> PathBuf {
    let end = run(session, "__import__('os').getcwd()").await;
    PathBuf::from(end.value_repr.unwrap().trim_matches('\''))
}

#[tokio::test]
async fn an_interpreter_goes_along_and_keeps_its_variables_and_says_nothing() {
    let (_root, first, second) = two();
    std::fs::write(second.join("beside.py"), "x = 5").unwrap();
    let session = session_in(&first);
    run(&session, "x = 1; names = None; _ = 2").await;
    assert_eq!(place(&session).await, first);
    run(&session, "names = list(globals())").await;
    go_to(&session, &second);
    let end = run(&session, "sorted(names) == sorted(globals())").await;
    let shown = (end.value_repr.as_deref(), end.stdout, end.stderr);
    assert_eq!(shown, (Some("True"), String::new(), String::new()));
    assert_eq!(place(&session).await, second);
    assert_eq!(repr(&session, "x").await, "1");
    run(&session, "import beside").await;
    assert_eq!(session.interpreters_started(), 1);
}

#[tokio::test]
async fn code_that_goes_elsewhere_stays_there_until_the_session_is_sent_on() {
    let (_root, first, second) = two();
    let session = session_in(&first);
    run(&session, "import os; os.chdir('/')").await;
    go_to(&session, &first);
    assert_eq!(place(&session).await, Path::new("/"));
    go_to(&session, &second);
    assert_eq!(place(&session).await, second);
}

#[tokio::test]
async fn what_replaces_the_function_does_not_hold_the_session_back() {
    let (_root, first, second) = two();
    let session = session_in(&first);
    run(
        &session,
        "import os; real = os.getcwd\nos.chdir = os.getcwd = None",
    )
    .await;
    go_to(&session, &second);
    let shown = repr(&session, "real()").await;
    assert_eq!(shown, format!("'{}'", second.display()));
}

#[tokio::test]
async fn nothing_runs_in_the_place_of_a_directory_that_is_gone() {
    let (_root, first, second) = two();
    let session = session_in(&first);
    run(&session, "x = 1").await;
    std::fs::remove_dir(&second).unwrap();
    go_to(&session, &second);
    let refused = cell(&session, "x = 2").await.unwrap_err();
    let is_told =
        matches!(&refused, SessionError::Directory { directory, .. } if *directory == second);
    assert!(is_told, "{refused:?}");
    let error = failed(call(&session, Capability::RunCode, json!({"code": "x = 3"})).await);
    let told = format!("Python cannot work in `{}`: ", second.display());
    assert!(error.message.starts_with(&told), "{error:?}");
    go_to(&session, &first);
    assert_eq!(repr(&session, "x").await, "1");
}

#[tokio::test]
async fn an_interpreter_starts_in_the_directory_of_then_and_blames_no_program() {
    let (_root, first, second) = two();
    std::fs::remove_dir(&first).unwrap();
    let session = session_in(&first);
    let refused = cell(&session, "1").await.unwrap_err();
    let is_told =
        matches!(&refused, SessionError::Directory { directory, .. } if *directory == first);
    assert!(is_told, "{refused:?}");
    go_to(&session, &second);
    assert_eq!(place(&session).await, second);
    let lost = cell(&session, "import os; os._exit(3)").await.unwrap_err();
    assert!(matches!(lost, SessionError::Lost(_)), "{lost:?}");
    std::fs::create_dir(&first).unwrap();
    go_to(&session, &first);
    assert_eq!(place(&session).await, first);
}

#[tokio::test]
async fn a_cell_that_runs_is_left_where_it_is() {
    let (_root, first, second) = two();
    let session = session();
    go_to(&session, &first);
    let (begun, mut begins) = tokio::sync::mpsc::channel(1);
    let live = rondo_python::LiveOutput::new(move |_, _| _ = begun.try_send(()));
    let code = "import os, sys\nprint('begun', flush=True)\nwhile not os.path.exists('go'): pass\nos.getcwd()";
    let running = session.run_cell(code, live, rondo_python::CellLimits::default());
    let beside = async {
        begins.recv().await;
        go_to(&session, &second);
        std::fs::write(first.join("go"), "").unwrap();
    };
    let (end, ()) = tokio::join!(running, beside);
    let shown = format!("'{}'", first.display());
    assert_eq!(end.unwrap().value_repr, Some(shown));
    assert_eq!(place(&session).await, second);
}

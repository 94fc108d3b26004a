//! Cells at a prompt.

use crate::fixture::{cell, repr, run, session};
use rondo_python::{CellLimits, Completeness, LiveOutput, OutputStream};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn a_cell_has_the_value_of_its_last_expression_and_keeps_its_names() {
    let session = session();
    let end = run(&session, "x = [1, 2]\nfor y in x:\n    pass\n\nx").await;
    assert_eq!(end.value_repr.as_deref(), Some("[1, 2]"));
    assert!(!end.truncated && !end.is_restarted);
    assert_eq!(run(&session, "x.append(3)").await.value_repr, None);
    assert_eq!(
        run(&session, "'text'").await.value_repr.as_deref(),
        Some("'text'")
    );
    assert_eq!(
        run(&session, "_ * 2").await.value_repr.as_deref(),
        Some("'texttext'")
    );
    assert_eq!(run(&session, "# nothing").await.value_repr, None);
    assert_eq!(
        run(&session, "from __future__ import annotations")
            .await
            .value_repr,
        None
    );
    run(&session, "def f(x: nowhere): pass").await;
    assert_eq!(
        repr(&session, "(x, y, __name__)").await,
        "([1, 2, 3], 2, '__main__')"
    );
}

#[tokio::test]
async fn code_may_await_outside_of_functions_and_tasks_stay() {
    let session = session();
    let code = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x\ntask = asyncio.ensure_future(f(5))\nawait f(4)";
    assert_eq!(run(&session, code).await.value_repr.as_deref(), Some("4"));
    assert_eq!(
        run(&session, "await task").await.value_repr.as_deref(),
        Some("5")
    );
    assert_eq!(
        run(&session, "asyncio.run(f(6))")
            .await
            .value_repr
            .as_deref(),
        Some("6")
    );
    assert_eq!(
        run(&session, "await f(7)").await.value_repr.as_deref(),
        Some("7")
    );
}

/// Python 3.11 and later point at it.
#[tokio::test]
async fn a_traceback_points_at_what_failed() {
    let session = session();
    let end = cell(&session, "x = [1/0]").await.unwrap();
    let raised = end.exception.unwrap();
    let told = raised.traceback;
    let points = told.contains('^');
    assert!(
        !points || told.contains("\n    x = [1/0]\n         ~^~\n"),
        "{told}"
    );
}

#[tokio::test]
async fn what_a_cell_raises_is_told_with_its_own_lines() {
    let session = session();
    let end = cell(&session, "def f():\n    raise ValueError('no')\nf()")
        .await
        .unwrap();
    let raised = end.exception.unwrap();
    assert_eq!(
        (raised.exc_type.as_str(), raised.message.as_str()),
        ("ValueError", "no")
    );
    let lines = [
        "line 3, in <module>\n    f()",
        "line 2, in f\n    raise ValueError('no')",
    ];
    for line in lines {
        assert!(raised.traceback.contains(line), "{}", raised.traceback);
    }
    assert!(
        !raised.traceback.contains("<rondo>"),
        "{}",
        raised.traceback
    );
    for (code, exc_type) in [
        ("x y", "SyntaxError"),
        ("exit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ] {
        let end = cell(&session, code).await.unwrap();
        assert_eq!(end.exception.unwrap().exc_type, exc_type);
        assert_eq!(end.stopped, None);
    }
    assert_eq!(repr(&session, "f.__name__").await, "'f'");
}

#[tokio::test]
async fn output_is_shown_as_it_comes_and_kept_with_its_stream() {
    let session = session();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    let live = LiveOutput::new(move |stream, text| shown.lock().unwrap().push((stream, text)));
    let code = "import os, subprocess, sys\nprint('by print')\nos.write(1, b'by write\\n')\nsubprocess.run(['echo', 'by a child'])\nprint('error', file=sys.stderr)";
    let end = session
        .run_cell(code, live, CellLimits::default())
        .await
        .unwrap();
    assert_eq!(end.stdout, "by print\nby write\nby a child\n");
    assert_eq!(end.stderr, "error\n");
    let of = |wanted: OutputStream| -> String {
        let seen = seen.lock().unwrap();
        let texts = seen.iter().filter(|(stream, _)| *stream == wanted);
        texts.map(|(_, text)| text.as_str()).collect()
    };
    assert_eq!(
        (of(OutputStream::Stdout), of(OutputStream::Stderr)),
        (end.stdout, end.stderr)
    );
}

#[tokio::test]
async fn what_is_written_between_cells_stands_in_the_next_one() {
    let session = session();
    let code = "import threading\ndone, go = threading.Event(), threading.Event()\ndef late():\n    go.wait()\n    print('late')\n    done.set()\nthreading.Thread(target=late).start()";
    assert_eq!(run(&session, code).await.stdout, "");
    let during = run(&session, "go.set()").await.stdout;
    let after = run(&session, "done.wait()").await.stdout;
    assert_eq!(during + &after, "late\n");
}

#[tokio::test]
async fn standard_input_is_empty() {
    let session = session();
    let end = cell(&session, "input('name? ')").await.unwrap();
    assert_eq!(end.exception.unwrap().exc_type, "EOFError");
    assert_eq!(end.stdout, "name? ");
}

#[tokio::test]
async fn a_cell_says_whether_it_needs_more_lines() {
    use Completeness::{Complete, Incomplete, Invalid};
    let session = session();
    for (code, expected) in [
        ("x = 1", Complete),
        ("", Complete),
        ("await f()", Complete),
        ("if x:", Incomplete),
        ("if x:\n    y", Incomplete),
        ("if x:\n    y\n", Complete),
        ("f(1,", Incomplete),
        ("s = '''a", Incomplete),
        ("x y", Invalid),
        ("f(]", Invalid),
    ] {
        assert_eq!(
            session.is_complete(code).await.unwrap(),
            expected,
            "{code:?}"
        );
    }
}

#[tokio::test]
async fn names_and_attributes_are_completed() {
    let session = session();
    run(&session, "counter = 5\nimport os\nclass A:\n    def __getattr__(self, name): raise RuntimeError\na = A()").await;
    let complete = async |text: &str| session.complete(text).await.unwrap();
    assert_eq!(complete("print(coun").await, ["counter"]);
    assert_eq!(complete("os.path.isa").await, ["os.path.isabs"]);
    assert!(complete("whi").await.contains(&"while".to_owned()));
    assert!(complete("a.b.").await.is_empty());
    assert!(complete("f().").await.is_empty());
    assert!(complete("nowhere.x").await.is_empty());
    let hidden = complete("os.__na").await;
    assert_eq!(hidden, ["os.__name__"]);
    run(&session, "for i in range(300): globals()[f'many{i}'] = i").await;
    assert_eq!(complete("many").await.len(), 256);
}

#[tokio::test]
async fn a_session_does_not_see_the_helper() {
    let session = session();
    let value = run(&session, "import sys, __main__\n(sorted(n for n in globals() if n != '__builtins__'), __main__.__dict__ is globals(), sys.argv)").await;
    let expected = "(['__doc__', '__loader__', '__main__', '__name__', '__package__', '__spec__', 'sys'], True, [''])";
    assert_eq!(value.value_repr.as_deref(), Some(expected));
    assert_eq!(
        repr(&session, "__import__('threading').active_count()").await,
        "1"
    );
}

//! Code that breaks what it can reach.

use crate::fixture::{call, cell, cell_within, failed, look, repr, run, session, settings};
use rondo_python::{Capability, CellLimits, Session, SessionError, Stop};
use rondo_types::ToolErrorCode;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn an_object_that_cannot_be_told_is_a_result() {
    let session = session();
    run(
        &session,
        "class A:\n    def __repr__(self): raise ValueError('no repr')\na = A()",
    )
    .await;
    let error = failed(call(&session, Capability::GetRepr, json!({"expr": "a"})).await);
    assert_eq!(error.code, ToolErrorCode::PythonException);
    assert_eq!(error.message, "ValueError: no repr");
    let told = look(&session, Capability::Inspect, "a").await;
    assert_eq!(told["repr"], json!({"error": "ValueError"}));
    assert_eq!(told["type"]["name"], "A");
    let end = cell(&session, "a").await.unwrap();
    assert_eq!(end.exception.unwrap().message, "no repr");
}

#[tokio::test]
async fn a_repr_that_hangs_is_interrupted() {
    let session = session();
    run(
        &session,
        "class A:\n    def __repr__(self):\n        while True: pass\na = A()\nx = 5",
    )
    .await;
    let until = CellLimits {
        timeout: Some(Duration::from_millis(50)),
        ..CellLimits::default()
    };
    let args = json!({"expr": "a"});
    let error = failed(session.call(Capability::GetRepr, &args, until).await);
    assert_eq!(error.code, ToolErrorCode::Timeout);
    assert!(
        error.message.contains("keeps its variables"),
        "{}",
        error.message
    );
    let end = cell_within(&session, "a", 50).await.unwrap();
    assert_eq!(end.stopped, Some(Stop::Deadline));
    assert_eq!(repr(&session, "x").await, "5");
}

#[tokio::test]
async fn strings_exceptions_and_classes_that_lie_do_no_harm() {
    let session = session();
    let code = r"
class S(str):
    def __len__(self): return -5
    def __getitem__(self, at): raise RuntimeError
    def startswith(self, *args): raise RuntimeError
    def encode(self, *args): raise RuntimeError
class A:
    def __repr__(self): return S('odd')
    def __dir__(self): return [S('member')]
    __doc__ = S('doc')
class M(type):
    __name__ = __module__ = property(lambda cls: 1 / 0)
class B(metaclass=M): pass
class E(Exception):
    def __str__(self): raise RuntimeError('no text')
a, b, lone = A(), B(), '\ud800'
globals()[S('odd_name')] = 1
globals()[5] = 6
";
    run(&session, code).await;
    assert_eq!(repr(&session, "a").await, "odd");
    let members = look(&session, Capability::GetDir, "a").await;
    assert_eq!(members["members"], json!(["member"]));
    assert_eq!(look(&session, Capability::GetDoc, "a").await["doc"], "doc");
    assert_eq!(look(&session, Capability::GetType, "b").await["name"], "B");
    assert_eq!(
        look(&session, Capability::EvalExpr, "lone").await["value_repr"],
        r"'\ud800'"
    );
    assert_eq!(
        look(&session, Capability::EvalExpr, "print(lone)").await["stdout"],
        "\\ud800\n"
    );
    let end = cell(&session, "raise E").await.unwrap();
    let raised = end.exception.unwrap();
    assert_eq!(
        (raised.exc_type.as_str(), raised.message.as_str()),
        ("E", "<E whose text cannot be told>")
    );
    let globals = call(&session, Capability::ListGlobals, json!({})).await;
    assert!(globals.is_ok(), "{globals:?}");
}

#[tokio::test]
async fn builtins_modules_and_streams_may_be_replaced() {
    let session = session();
    let code = "import builtins, json, os, signal, sys, traceback\nx = [1, 2]\n\
                for name in ('len', 'isinstance', 'str', 'repr', 'type', 'print', 'dict', 'open', 'compile', 'eval', 'BaseException', 'getattr'):\n    setattr(builtins, name, None)\n\
                json.dumps = json.loads = os.read = os.write = traceback.format_exception = signal.signal = None\n\
                sys.stdout = sys.stderr = None\nsys.modules.clear()\nprint = None";
    run(&session, code).await;
    assert_eq!(repr(&session, "x").await, "[1, 2]");
    let error = failed(call(&session, Capability::EvalExpr, json!({"expr": "1 / 0"})).await);
    assert_eq!(error.message, "ZeroDivisionError: division by zero");
    let traceback = error.details["traceback"].as_str().unwrap();
    assert!(traceback.contains("line 1, in <module>"), "{traceback}");
    let end = cell_within(&session, "while True: pass", 50).await.unwrap();
    assert_eq!(end.stopped, Some(Stop::Deadline));
    assert_eq!(
        run(&session, "x").await.value_repr.as_deref(),
        Some("[1, 2]")
    );
}

#[tokio::test]
async fn closed_streams_are_opened_again() {
    let session = session();
    for code in [
        "import sys\nsys.stdout.close()",
        "import os\nos.close(1)\nos.close(2)",
    ] {
        run(&session, code).await;
        let end = run(
            &session,
            "import sys\nprint('out')\nprint('err', file=sys.stderr)",
        )
        .await;
        assert_eq!(
            (end.stdout.as_str(), end.stderr.as_str()),
            ("out\n", "err\n"),
            "{code}"
        );
    }
    // What is replaced on purpose stays so.
    run(
        &session,
        "import io\nsys.stdout = io.StringIO()\nprint('kept')",
    )
    .await;
    assert_eq!(repr(&session, "sys.stdout.getvalue()").await, "'kept\\n'");
}

#[tokio::test]
async fn closing_descriptors_in_bulk_does_no_harm_and_closing_all_is_told() {
    let session = session();
    run(&session, "import os\nx = 5\nos.closerange(0, 64)").await;
    assert_eq!(run(&session, "print(x)").await.stdout, "5\n");
    let Err(SessionError::Lost(loss)) = cell(&session, "os.closerange(0, 4096)").await else {
        panic!("the session goes on")
    };
    assert_eq!(loss.stopped, None);
    let end = run(&session, "'x' in globals()").await;
    assert_eq!(
        (end.value_repr.as_deref(), end.is_restarted),
        (Some("False"), true)
    );
}

#[tokio::test]
async fn children_inherit_no_descriptor_of_ours() {
    let session = session();
    let code = r"
import os, subprocess
def link(name):
    try: return os.readlink('/proc/self/fd/' + name)
    except OSError: return None
names = os.listdir('/proc/self/fd')
own = {link(name) for name in names if link(name) and not os.get_inheritable(int(name))}
own -= {link('0'), link('1'), link('2')}
script = 'for f in /proc/self/fd/*; do readlink $f; done'
child = subprocess.run(['sh', '-c', script], close_fds=False, capture_output=True, text=True)
(len(own), own & set(child.stdout.split()))
";
    let end = run(&session, code).await;
    // The channel and the leash.
    assert_eq!(end.value_repr.as_deref(), Some("(2, set())"));
}

#[tokio::test]
async fn a_forked_child_ends_where_the_cell_does_and_answers_nothing() {
    let session = session();
    let code = "import os, sys\nx = 1\npid = os.fork()\nif pid == 0:\n    x = 2\n    print('from the child')\nelse:\n    os.waitpid(pid, 0)\n    x = 3";
    let end = run(&session, code).await;
    assert!(end.stdout.contains("from the child\n"), "{}", end.stdout);
    assert_eq!(repr(&session, "x").await, "3");
    let pool = "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    total = sum(pool.map(abs, [-1, -2, -3]))\ntotal";
    assert_eq!(run(&session, pool).await.value_repr.as_deref(), Some("6"));
}

#[tokio::test]
async fn a_gigabyte_of_output_keeps_its_ends_and_takes_no_memory() {
    let session = session();
    let code = "import os\nprint('first')\nblock = b'x' * (1 << 20)\nfor _ in range(1024):\n    os.write(1, block)\nprint('last')";
    let end = run(&session, code).await;
    assert!(end.stdout.starts_with("first\nxxx") && end.stdout.ends_with("xxxlast\n"));
    assert!(end.stdout.len() < 51_000, "{}", end.stdout.len());
    assert!(end.stdout.contains("bytes left out"));
    assert_eq!(run(&session, "print('next')").await.stdout, "next\n");
}

#[tokio::test]
async fn output_within_its_bound_is_whole_and_past_it_cut() {
    let mut settings = settings();
    settings.output_bytes_max = 100;
    let session = Session::new(settings);
    for (length, is_whole) in [(99, true), (100, true), (101, false)] {
        let code = format!("import sys\n_ = sys.stdout.write('y' * {length})");
        let end = run(&session, &code).await;
        assert_eq!(end.stdout == "y".repeat(length), is_whole, "{}", end.stdout);
    }
}

#[tokio::test]
async fn modules_of_the_working_directory_are_the_users_and_not_the_helpers() {
    let folder = tempfile::tempdir().unwrap();
    let names = "ast asyncio codeop inspect json keyword linecache sitecustomize tokenize traceback types \
                 usercustomize _colorize _suggestions";
    for name in names.split(' ') {
        let code = "raise RuntimeError('a module of the user')";
        std::fs::write(folder.path().join(format!("{name}.py")), code).unwrap();
    }
    std::fs::write(folder.path().join("mine.py"), "value = 5").unwrap();
    let mut settings = settings();
    settings.directory = folder.path().to_owned();
    let session = Session::new(settings);
    assert_eq!(
        run(&session, "import mine\nmine.value")
            .await
            .value_repr
            .as_deref(),
        Some("5")
    );
    assert_eq!(
        look(&session, Capability::GetDoc, "mine").await["doc"],
        json!(null)
    );
    assert!(session.is_complete("x").await.is_ok());
    // The place in a long line is found with a module that `traceback` imports when it needs it.
    let end = cell(&session, "x = 5\nx + (x / 0) + x").await.unwrap();
    let raised = end.exception.unwrap();
    assert!(
        raised
            .traceback
            .ends_with("\nZeroDivisionError: division by zero\n")
    );
    assert!(
        !raised.traceback.contains("a module of the user"),
        "{}",
        raised.traceback
    );
    let awaited = run(&session, "async def f(): return 6\nawait f()").await;
    assert_eq!(awaited.value_repr.as_deref(), Some("6"));
}

#[tokio::test]
async fn deep_recursion_and_long_code_are_results() {
    let session = session();
    let end = cell(&session, "def f(): return f()\nf()").await.unwrap();
    assert_eq!(end.exception.unwrap().exc_type, "RecursionError");
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    let end = cell(&session, &deep).await.unwrap();
    assert!(end.exception.is_some());
    let error = cell(&session, &"x".repeat(5 << 20)).await.unwrap_err();
    assert!(matches!(error, SessionError::TooLong { .. }), "{error}");
    assert_eq!(repr(&session, "1").await, "1");
}

//! Cells at a terminal.

use crate::fixture::{call, cell, run, settings};
use rondo_python::{
    Capability, CellEnd, CellLimits, CellTerminal, LiveOutput, Session, TerminalSize,
};
use rondo_types::ToolOutcome;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, mpsc, watch};

fn session() -> Session {
    let mut settings = settings();
    settings.has_terminal = true;
    Session::new(settings)
}

/// Runs a cell, and types each text once the output so far ends as said.
async fn at_terminal(session: &Session, code: &str, types: &[(&str, &str)]) -> CellEnd {
    let (typed, keys) = mpsc::channel(16);
    let size = TerminalSize {
        rows: 11,
        columns: 77,
    };
    let (_size, size) = watch::channel(size);
    let (seen, mut output) = mpsc::unbounded_channel();
    let live = LiveOutput::new(move |_, text| drop(seen.send(text)));
    let terminal = CellTerminal {
        keys,
        size,
        interrupted: Arc::new(Notify::new()),
    };
    let typing = async {
        let mut shown = String::new();
        for (behind, keys) in types {
            while !shown.ends_with(behind) {
                shown.push_str(&output.recv().await.unwrap());
            }
            shown.clear();
            typed.send(keys.as_bytes().to_vec()).await.unwrap();
        }
    };
    let running = session.run_cell_at_terminal(code, live, CellLimits::default(), terminal);
    let (end, ()) = tokio::join!(running, typing);
    end.unwrap()
}

#[tokio::test]
async fn a_cell_reads_what_is_typed_by_every_way_that_python_has() {
    let session = session();
    let end = at_terminal(&session, "name = input('name? ')", &[("name? ", "Ada\r")]).await;
    assert_eq!((end.exception, end.has_read_input), (None, true));
    assert_eq!(run(&session, "name").await.value_repr.unwrap(), "'Ada'");

    let code = "import sys\nprint('?', end='', flush=True); line = sys.stdin.readline()";
    at_terminal(&session, code, &[("?", "one\r")]).await;
    assert_eq!(run(&session, "line").await.value_repr.unwrap(), r"'one\n'");

    let code = "print('?', end='', flush=True); lines = [line for line in sys.stdin]";
    at_terminal(&session, code, &[("?", "a\rb\r\x04")]).await;
    let lines = run(&session, "lines").await.value_repr.unwrap();
    assert_eq!(lines, r"['a\n', 'b\n']");

    let code = "import getpass\nsecret = getpass.getpass('secret: ')";
    let end = at_terminal(&session, code, &[("secret: ", "s3\r")]).await;
    assert!(!end.stdout.contains("s3"), "{}", end.stdout);
    assert_eq!(run(&session, "secret").await.value_repr.unwrap(), "'s3'");

    let code = "import subprocess\nsaid = subprocess.run(['head', '-n1'], stdout=-1).stdout";
    at_terminal(&session, code, &[("", "to a program\r")]).await;
    let said = run(&session, "said").await.value_repr.unwrap();
    assert_eq!(said, r"b'to a program\n'");
}

#[tokio::test]
async fn an_end_of_file_and_an_interrupt_are_exceptions_and_the_next_cell_reads_again() {
    let session = session();
    let end = at_terminal(&session, "input('? ')", &[("? ", "\x04")]).await;
    assert_eq!(end.exception.unwrap().exc_type, "EOFError");
    // Also if it comes just before the line editor begins to wait.
    let end = at_terminal(&session, "input('? ')", &[("? ", "\x03")]).await;
    assert_eq!(end.exception.unwrap().exc_type, "KeyboardInterrupt");
    let code = "import sys\nprint('?', end='', flush=True); sys.stdin.readline()";
    let end = at_terminal(&session, code, &[("?", "half\x03")]).await;
    assert_eq!(end.exception.unwrap().exc_type, "KeyboardInterrupt");
    let end = at_terminal(&session, "input('? ')", &[("? ", "whole\r")]).await;
    assert_eq!(end.value_repr.unwrap(), "'whole'");
}

#[tokio::test]
async fn the_debugger_has_its_prompt() {
    let session = session();
    let code = "def f(n):\n    breakpoint()\n    return n + 1\nm = f(1)";
    let types = [("(Pdb) ", "!n = 41\r"), ("(Pdb) ", "c\r")];
    let end = at_terminal(&session, code, &types).await;
    assert_eq!(end.exception, None);
    assert!(end.stdout.contains("-> return n + 1"), "{}", end.stdout);
    assert_eq!(run(&session, "m").await.value_repr.unwrap(), "42");
}

#[tokio::test]
async fn output_is_whole_in_its_order_and_as_for_a_terminal_of_that_size() {
    let session = session();
    let code = "import os, sys\nfor n in range(300):\n    print(n)\n    print(n, file=sys.stderr)\n    os.write(1, b'.')\nprint(sys.stdin.isatty(), sys.stdout.isatty(), os.get_terminal_size())";
    let end = at_terminal(&session, code, &[]).await;
    let mut expected: String = (0..300).map(|n| format!("{n}\n{n}\n.")).collect();
    expected += "True True os.terminal_size(columns=77, lines=11)\n";
    assert_eq!(end.stdout, expected);
    assert_eq!((end.stderr.as_str(), end.has_read_input), ("", false));
}

#[tokio::test]
async fn what_is_typed_and_not_read_comes_back() {
    let session = session();
    let code = "import time\nprint('!', end='', flush=True)\nwhile not done(): time.sleep(0.01)";
    // Done once the kernel has what was typed, which it echoes.
    run(&session, "import termios, fcntl, array, sys\ndef done():\n    count = array.array('i', [0])\n    fcntl.ioctl(1, termios.FIONREAD, count)\n    return count[0] > 0").await;
    let end = at_terminal(&session, code, &[("!", "x = 1\ry")]).await;
    let unread = String::from_utf8(end.unread_input).unwrap();
    assert_eq!((unread.as_str(), end.has_read_input), ("x = 1\ny", false));
}

#[tokio::test]
async fn code_of_an_agent_and_cells_without_a_terminal_have_no_input() {
    let session = session();
    at_terminal(&session, "input('? ')", &[("? ", "x\r")]).await;
    let end = cell(&session, "input()").await.unwrap();
    assert_eq!(end.exception.unwrap().exc_type, "EOFError");
    let told = call(&session, Capability::RunCode, json!({"code": "input()"})).await;
    let ToolOutcome::Error(error) = told else {
        panic!("{told:?}");
    };
    assert_eq!(error.message, "EOFError: EOF when reading a line");
    let end = run(&session, "import sys; print(1); print(2, file=sys.stderr)").await;
    assert_eq!((end.stdout.as_str(), end.stderr.as_str()), ("1\n", "2\n"));
    let end = run(&session, "sys.stdin.isatty() or sys.stdout.isatty()").await;
    assert_eq!(end.value_repr.unwrap(), "False");
}

#[tokio::test]
async fn only_a_cell_that_calls_exit_itself_leaves() {
    let session = session();
    for code in [
        "exit()",
        "quit(3)",
        "import sys; sys.exit('why')",
        "raise SystemExit",
    ] {
        let end = at_terminal(&session, code, &[]).await;
        assert!(end.leaves, "{code}");
        assert_eq!(end.exception.unwrap().exc_type, "SystemExit");
        assert_eq!(end.stdout, if code.contains("why") { "why\n" } else { "" });
    }
    let code = "def main(): sys.exit(2)\nmain()";
    let end = at_terminal(&session, code, &[]).await;
    assert_eq!(
        (end.leaves, end.exception.unwrap().exc_type.as_str()),
        (false, "SystemExit")
    );
    // `exit` closes standard input.
    let end = at_terminal(&session, "input('? ')", &[("? ", "x\r")]).await;
    assert_eq!(end.value_repr.unwrap(), "'x'");
}

#[tokio::test]
async fn an_interrupt_reaches_code_that_runs_and_a_line_that_is_edited() {
    let session = session();
    let told = Arc::new(AtomicUsize::new(0));
    for (code, keys) in [("while True: pass", "\x03"), ("input('! ')", "\x03")] {
        let (typed, keys_rx) = mpsc::channel(16);
        let size = TerminalSize {
            rows: 24,
            columns: 80,
        };
        let (_size, size) = watch::channel(size);
        let interrupted = Arc::new(Notify::new());
        let terminal = CellTerminal {
            keys: keys_rx,
            size,
            interrupted: Arc::clone(&interrupted),
        };
        let code = format!("print('> ', end='', flush=True)\n{code}");
        let live = LiveOutput::new(move |_, text| {
            // The line editor's prompt comes after the other one.
            if text.contains('!') || text.contains('>') && !keys.is_empty() {
                let _ = typed.try_send(keys.as_bytes().to_vec());
            }
        });
        let counted = Arc::clone(&told);
        let counting = async move {
            interrupted.notified().await;
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<()>().await;
        };
        let end = tokio::select! {
            end = session.run_cell_at_terminal(&code, live, CellLimits::default(), terminal) => end,
            () = counting => unreachable!(),
        };
        let exception = end.unwrap().exception.unwrap();
        assert_eq!(exception.exc_type, "KeyboardInterrupt", "{exception:?}");
    }
    assert!(told.load(Ordering::Relaxed) >= 1);
}

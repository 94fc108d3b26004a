//! One owner at a time.

use crate::fixture::{call, cell, found, repr, run, session};
use rondo_python::{Capability, CellLimits, LiveOutput, SessionError, Stop};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn who_came_first_is_served_first() {
    let session = session();
    run(&session, "order = []").await;
    let calls = (0..20).map(|at| {
        let expr = json!({ "expr": format!("order.append({at})") });
        let session = &session;
        async move { found(call(session, Capability::EvalExpr, expr).await) }
    });
    futures_joined(calls.collect()).await;
    let expected = format!("{:?}", (0..20).collect::<Vec<_>>());
    assert_eq!(repr(&session, "order").await, expected);
}

/// Polls all of them, in their order.
async fn futures_joined<F: Future>(futures: Vec<F>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        match futures.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

#[tokio::test]
async fn who_waits_may_go_and_is_not_served() {
    let session = session();
    run(&session, "x = 5\ndone = False").await;
    let (begun, mut begins) = tokio::sync::mpsc::channel(1);
    let live = LiveOutput::new(move |_, _| _ = begun.try_send(()));
    let first = session.run_cell(
        "print('begun', flush=True)\nwhile True: pass",
        live,
        CellLimits::default(),
    );
    let beside = async {
        begins.recv().await;
        let waiting = cell(&session, "done = True");
        tokio::select! {
            biased;
            end = waiting => panic!("{end:?}"),
            () = std::future::ready(()) => {}
        }
        let cancel = CancellationToken::new();
        cancel.cancel();
        let until = CellLimits {
            cancel,
            ..CellLimits::default()
        };
        let cancelled = session.run_cell("done = True", LiveOutput::discard(), until);
        session.interrupt();
        cancelled.await
    };
    let (end, cancelled) = tokio::join!(first, beside);
    assert_eq!(
        end.unwrap().exception.unwrap().exc_type,
        "KeyboardInterrupt"
    );
    assert!(
        matches!(cancelled, Err(SessionError::NotRun(Stop::Cancelled))),
        "{cancelled:?}"
    );
    assert_eq!(repr(&session, "(x, done)").await, "(5, False)");
}

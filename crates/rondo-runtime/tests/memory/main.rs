//! Memory that listeners cost which never read, counted by the allocator. A test binary of its own with one test, as
//! the count covers the whole process.
#![expect(
    clippy::unwrap_used,
    reason = "the functions around the test fail like the test does"
)]

use async_trait::async_trait;
use peak_alloc::PeakAlloc;
use rondo_core::session::Delivery;
use rondo_core::{Tool, ToolInvocation};
use rondo_runtime::error::Result;
use rondo_runtime::service::{
    AskedTurn, Cursor, RING_BYTES_MAX, RINGS_BYTES_MAX, SessionHost, SessionService, Subscription,
    UpdateBody,
};
use rondo_runtime::{Env, Layer, NoNotices, Runtime, SessionOptions, TurnBuilder};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, openai};
use rondo_types::{EventBody, Message, ToolOutcome, ToolSpec};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const LONG: Duration = Duration::from_secs(120);
/// Memory of a turn beside what is counted: its history, the journal's pages, a piece on its way.
const FIXED_BYTES: usize = 16 << 20;

/// Takes the place of the tool that runs commands, and writes so many pieces of so many bytes.
struct Flood {
    pieces: usize,
    piece_bytes: usize,
}

#[async_trait]
impl Tool for Flood {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "exec".to_owned(),
            parameters: json!({"type": "object"}),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        for _ in 0..self.pieces {
            invocation.output.push("x".repeat(self.piece_bytes));
            // The turn's listener, which is the session's actor, takes it meanwhile.
            for _ in 0..4 {
                yield_now().await;
            }
        }
        ToolOutcome::text("done")
    }
}

struct FloodHost {
    pieces: usize,
    piece_bytes: usize,
}

#[async_trait]
impl SessionHost for FloodHost {
    async fn turn(&self, _: &AskedTurn<'_>, builder: &mut TurnBuilder) -> Result<()> {
        builder.tools = vec![Arc::new(Flood {
            pieces: self.pieces,
            piece_bytes: self.piece_bytes,
        })];
        Ok(())
    }
}

fn replies(turns: usize) -> Vec<Response> {
    let turn = [
        ReplyScript::calls([CallScript::new("c", "exec", &json!({}))]),
        ReplyScript::text(["Done."]),
    ];
    let all = std::iter::repeat_n(turn, turns).flatten();
    all.map(|it| openai::streamed(&it.usage(1, 1))).collect()
}

fn service(home: &tempfile::TempDir, server: &Server, host: FloodHost) -> SessionService {
    let env = Env::of(&[
        ("RONDO_HOME", home.path().to_str().unwrap()),
        ("RONDO_MODEL", "local/any"),
        ("RONDO_BASE_URL", &server.url("/v1")),
    ]);
    let flags = Layer {
        yolo: Some(true),
        ..Layer::default()
    };
    let runtime = Runtime::new(env, flags, Arc::new(NoNotices));
    SessionService::open(runtime, home.path().to_owned(), host).unwrap()
}

/// Listens to the end of a turn in which so much was written, and returns the bytes of live output that were heard,
/// and those that were missed. Missed ones are reported after what the records hold.
async fn rest(listener: &mut Subscription, written: u64) -> (u64, u64) {
    let (mut heard, mut missed) = (0, 0);
    let mut is_over = false;
    while !is_over || heard + missed < written {
        let update = timeout(LONG, listener.next()).await.unwrap().unwrap();
        match update.body {
            UpdateBody::Missed { bytes } => missed += bytes,
            UpdateBody::Turn { event } => match event.body {
                EventBody::ToolOutputDelta { text, .. } => heard += text.len() as u64,
                EventBody::DeltasDropped { .. } => panic!("the actor does not keep up"),
                EventBody::Result(_) => is_over = true,
                _ => {}
            },
            _ => {}
        }
    }
    (heard, missed)
}

/// Runs a turn in each of so many sessions, one after another, with two listeners that heard it begin and
/// do not read meanwhile. Returns
/// the most memory that this took, and what the listeners hear then.
async fn flooded(sessions: usize, host: FloodHost) -> (usize, Vec<(u64, u64)>) {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(replies(sessions)).await;
    let written = (host.pieces * host.piece_bytes) as u64;
    let service = service(&home, &server, host);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut all = Vec::new();
    for _ in 0..sessions {
        let session = service.new_session(SessionOptions::in_directory(home.path()));
        let mut listeners = [(), ()].map(|()| session.subscribe(Cursor::START));
        let message = Message::user("Go.");
        session.submit(message, Delivery::Queue).await.unwrap();
        for listener in &mut listeners {
            let began = timeout(LONG, listener.next()).await.unwrap().unwrap();
            assert!(!matches!(began.body, UpdateBody::Missed { .. }));
        }
        // It waits for the turn, and begins no other.
        while server.requests().len() < 2 * (all.len() + 1) {
            yield_now().await;
        }
        session.close().await;
        all.push(listeners);
    }
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    let mut told = Vec::new();
    for [one, other] in &mut all {
        let heard = rest(one, written).await;
        assert_eq!(rest(other, written).await, heard);
        told.push(heard);
    }
    (peak, told)
}

#[tokio::test]
async fn listeners_that_never_read_cost_bounded_memory_and_hear_how_much_they_missed() {
    // 100 MiB, of which the ring holds the end.
    let host = FloodHost {
        pieces: 1_600,
        piece_bytes: 64 << 10,
    };
    let (peak, told) = flooded(1, host).await;
    assert!(peak <= RING_BYTES_MAX + FIXED_BYTES, "{peak}");
    let [(heard, missed)] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(heard + missed, 100 << 20);
    // One piece that is larger than the ring.
    let host = FloodHost {
        pieces: 1,
        piece_bytes: 12 << 20,
    };
    let (_, told) = flooded(1, host).await;
    assert_eq!(told, [(0, 12 << 20)]);
    // Rings that each are within their bound, and together are not: the first ones give up what they hold.
    let host = FloodHost {
        pieces: 112,
        piece_bytes: 64 << 10,
    };
    let (peak, told) = flooded(12, host).await;
    assert!(peak <= RINGS_BYTES_MAX + FIXED_BYTES, "{peak}");
    assert!(told.iter().all(|it| it.0 + it.1 == 7 << 20), "{told:?}");
    let ends = (told.first(), told.last());
    assert_eq!(ends, (Some(&(0, 7 << 20)), Some(&(7 << 20, 0))));
}

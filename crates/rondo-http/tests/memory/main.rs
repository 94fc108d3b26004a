//! Memory of a request that waits for its server, counted by the allocator. A test binary of its own with one test, as
//! the count covers the whole process.

use futures_util::StreamExt as _;
use peak_alloc::PeakAlloc;
use rondo_core::Model as _;
use rondo_http::{Endpoint, HttpModel, ModelCard};
use rondo_types::{Message, ModelRequest, Sampling, ToolChoice};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const REQUESTS: usize = 200;
/// Bytes of a request under way beside its message: two sockets of the runtime, that of the server here among them, the
/// exchange and its decoder, and 26 KB of hyper's.
const EACH_BYTES_MAX: usize = 32 * 1024;

fn request() -> Arc<ModelRequest> {
    Arc::new(ModelRequest {
        model: "m".to_owned(),
        system: Vec::new().into(),
        messages: vec![Arc::new(Message::user("hi"))],
        tools: Arc::new(Vec::new()),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        response_schema: None,
    })
}

#[tokio::test]
async fn a_request_that_waits_for_its_server_holds_no_more_than_hyper_needs() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let model = HttpModel::new(
        &Endpoint::new("local", "openai-chat", url),
        ModelCard::new("m"),
    )
    .unwrap();
    let (mut streams, mut connections) = (Vec::new(), Vec::new());
    let mut before = 0;
    for number in 0..=REQUESTS {
        let mut stream = model.stream(request());
        let accepted = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            while connection.read_u8().await.unwrap() != b'\n' {}
            connection
        };
        let connection = tokio::select! {
            event = stream.next() => panic!("nothing was answered: {event:?}"),
            connection = accepted => connection,
        };
        streams.push(stream);
        connections.push(connection);
        // The first one has things set up that all share.
        if number == 0 {
            before = ALLOCATOR.current_usage();
        }
    }
    let each = ALLOCATOR.current_usage().saturating_sub(before) / REQUESTS;
    assert!(each <= EACH_BYTES_MAX, "{each} bytes each");
}

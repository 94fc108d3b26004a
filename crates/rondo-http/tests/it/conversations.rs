use crate::support::{Timers, drive, model, openai, request};
use rondo_core::Model;
use rondo_testkit::{ReplyScript, Script, Server, openai as wire};
use rondo_types::{Message, ModelRequest};
use rondo_wire::{Target, dialect};
use std::sync::Arc;

#[tokio::test]
async fn a_growing_conversation_is_sent_whole_and_with_its_length() {
    let reply = ReplyScript::text(["go on"]);
    let server = Server::start(Script::repeat(wire::streamed(&reply))).await;
    let model = model(&openai(&server));
    let mut messages = Vec::new();
    for index in 0..8 {
        let text = format!("{index} {}", "long ".repeat(4000));
        messages.push(Arc::new(Message::user(text)));
        let asked = ModelRequest {
            messages: messages.clone(),
            ..request()
        };
        let stream = model.stream(Arc::new(asked.clone()));
        drive(stream, Timers::default()).await.end.unwrap();

        let sent = server.request(index).await;
        let target = Target::new(model.info().origin);
        let afresh = dialect("openai-chat").unwrap().encode(&asked, &target);
        let length = afresh.body.len().to_string();
        assert_eq!(sent.header("content-length"), Some(length.as_str()));
        assert!(sent.body == afresh.body, "request {index}");
    }
    assert_eq!(server.connections(), 1);
}

//! The host that other programs drive by lines of JSON.

use crate::service::{World, text};
use rondo_runtime::service::{NoHost, SessionService};
use rondo_runtime::{Layer, NoNotices, Runtime};
use rondo_testkit::{CallScript, ReplyScript, openai};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};

#[path = "../../examples/json_lines.rs"]
#[expect(dead_code, reason = "the test opens the service")]
mod host;

fn service(world: &World) -> SessionService {
    let env = crate::env(&world.home, &world.server);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    SessionService::open(runtime, world.project.path().to_owned(), NoHost).unwrap()
}

/// A program that drives a host.
struct Program {
    input: tokio::io::WriteHalf<tokio::io::DuplexStream>,
    output: tokio::io::Lines<BufReader<tokio::io::ReadHalf<tokio::io::DuplexStream>>>,
    /// Updates that came before a reply that was waited for.
    updates: Vec<Value>,
}

impl Program {
    async fn line(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn reply(&mut self, request: Value) -> Value {
        self.input
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        loop {
            let line = self.line().await;
            if line.get("update").is_none() {
                return line;
            }
            self.updates.push(line);
        }
    }

    /// Returns the first update with an event of a kind, of those that were not looked at.
    async fn event(&mut self, kind: &str) -> Value {
        loop {
            let update = match self.updates.is_empty() {
                true => self.line().await,
                false => self.updates.remove(0),
            };
            if update.pointer("/event/type").is_some_and(|it| it == kind) {
                return update;
            }
        }
    }
}

#[tokio::test]
async fn a_program_submits_answers_listens_forks_lists_and_cancels_by_lines_of_json() {
    let write = CallScript::new("c", "write_file", &json!({"path": "note", "content": "hi"}));
    let call = openai::streamed(&ReplyScript::calls([write.clone()]).usage(1, 1));
    let again = openai::streamed(&ReplyScript::calls([write]).usage(1, 1));
    let world = World::new([call, text(&["Written."]), again, text(&["Never."])]).await;
    let service = service(&world);
    let (mine, theirs) = duplex(1 << 16);
    let (read, write) = split(theirs);
    let serving = host::serve(&service, world.project.path(), BufReader::new(read), write);
    let (read, input) = split(mine);
    let mut program = Program {
        input,
        output: BufReader::new(read).lines(),
        updates: Vec::new(),
    };
    let drives = async {
        let begun = program
            .reply(json!({"do": "submit", "text": "Write a note."}))
            .await;
        let session = begun["reply"]["session"].clone();
        let listens = json!({"do": "listen", "session": session});
        assert_eq!(program.reply(listens).await, json!({"reply": null}));
        let parked = program.event("parked").await;
        let question = parked["event"]["questions"][0]["id"].clone();
        let answer = json!({
            "do": "answer", "session": session, "question": question, "value": {"answer": "approve"}
        });
        assert_eq!(program.reply(answer.clone()).await, json!({"reply": null}));
        let result = program.event("result").await;
        assert_eq!(result["event"]["text"], "Written.", "{result}");
        assert_eq!(result["session"], session);
        let nothing = program.reply(answer).await;
        assert_eq!(nothing["error"], "there is no such question");

        let copy = program
            .reply(json!({"do": "fork", "session": session}))
            .await;
        let copy = copy["reply"]["session"].clone();
        let listed = program.reply(json!({"do": "list"})).await;
        let listed = listed["reply"].as_array().unwrap();
        let ids: Vec<&Value> = listed.iter().map(|it| &it["session"]).collect();
        assert!(ids.contains(&&session) && ids.contains(&&copy), "{ids:?}");

        let again = json!({"do": "submit", "session": copy, "text": "Again."});
        program.reply(again).await;
        let cursor = json!({"do": "listen", "session": copy, "cursor": "1.99.0.0.0"});
        program.reply(cursor).await;
        program.event("parked").await;
        program
            .reply(json!({"do": "cancel", "session": copy}))
            .await;
        let result = program.event("result").await;
        assert_eq!(result["event"]["stop_reason"], "cancelled", "{result}");

        let wrong = program.reply(json!({"do": "sing"})).await;
        assert_eq!(wrong["error"], "no such request");
        drop(program);
    };
    tokio::join!(serving, drives);
    let note = world.project.path().join("note");
    assert_eq!(std::fs::read_to_string(note).unwrap(), "hi");
}

#[test]
fn the_host_that_is_driven_by_lines_has_at_most_120_lines_of_code() {
    let host = include_str!("../../examples/json_lines.rs").lines();
    let code = host.filter(|it| !it.is_empty() && !it.trim_start().starts_with("//"));
    assert!(code.count() <= 120);
}

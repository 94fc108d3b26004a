//! Tasks of the victims.

use rondo_testkit::{CallScript, Recorded, ReplyScript, Response, openai};
use serde_json::{Value, json};
use std::path::Path;

/// The last answer of every scenario.
pub(crate) const ANSWER: [&str; 5] = ["all ", "of ", "it ", "is ", "done"];

/// A turn: its replies with calls, in order, before the answer.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Vec<(&'static str, Value)>>,
}

/// Returns all of them.
pub(crate) fn all() -> Vec<Scenario> {
    vec![serial(), batch(), failing(), slow(), outside()]
}

/// One call after another, each with an effect of its own.
fn serial() -> Scenario {
    let edit = json!({"path": "old", "old_string": "two", "new_string": "2"});
    let steps = [
        ("exec", json!({"command": effect("serial-1")})),
        ("write_file", json!({"path": "new", "content": "new\n"})),
        ("edit_file", edit),
        ("exec", json!({"command": effect("serial-2")})),
    ];
    Scenario {
        name: "serial",
        steps: steps.into_iter().map(|call| vec![call]).collect(),
    }
}

/// Several calls in one reply: those that only read run side by side, the others are barriers.
fn batch() -> Scenario {
    let calls = vec![
        ("read_file", json!({"path": "old"})),
        ("list_files", json!({"path": "."})),
        ("search_files", json!({"pattern": "three"})),
        ("exec", json!({"command": effect("batch-1")})),
        ("write_file", json!({"path": "old", "content": "written\n"})),
        ("read_file", json!({"path": "old"})),
    ];
    Scenario {
        name: "batch",
        steps: vec![calls],
    }
}

/// Calls that fail, each in its own way.
fn failing() -> Scenario {
    let wrong = json!({"path": "old", "old_string": "nowhere", "new_string": ""});
    Scenario {
        name: "failing",
        steps: vec![
            vec![("exec", json!({"command": effect("failing-1") + "; exit 3"}))],
            vec![("edit_file", wrong), ("read_file", json!({"path": "gone"}))],
            vec![
                ("write_file", json!({"path": "dir", "content": ""})),
                ("nothing", json!({})),
            ],
        ],
    }
}

/// A command that is under way for a while, and leaves something running.
fn slow() -> Scenario {
    let command = "echo slow-1 >> ../effects; echo begun; sleep 0.2; echo slow-2 >> ../effects; \
                   sleep 100 & echo ended";
    Scenario {
        name: "slow",
        steps: vec![vec![("exec", json!({"command": command}))]],
    }
}

/// Tools of other classes.
fn outside() -> Scenario {
    Scenario {
        name: "outside",
        steps: vec![
            vec![("put", json!({"token": "put-1"}))],
            vec![("send", json!({"token": "send-1"}))],
        ],
    }
}

/// A command whose effect is one line.
fn effect(token: &str) -> String {
    format!("echo {token}; echo {token} >> ../effects")
}

impl Scenario {
    /// Makes the directory that the tools work in.
    pub(crate) fn prepare(work: &Path) {
        std::fs::create_dir_all(work.join("dir")).unwrap();
        std::fs::write(work.join("old"), "one\ntwo\nthree\n").unwrap();
    }

    /// Answers as a provider does that knows nothing but the request.
    pub(crate) fn answer(&self, request: &Recorded) -> Response {
        let reply = match self.steps.get(step_of(&request.json())) {
            Some(calls) => {
                let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
                    CallScript::new(&format!("call-{index}"), name, arguments)
                };
                ReplyScript::calls(calls.iter().enumerate().map(call)).saying("next")
            }
            None => ReplyScript::text(ANSWER),
        };
        openai::streamed(&reply.usage(10, 5))
    }
}

/// Returns the step that a request is for, from 0.
pub(crate) fn step_of(request: &Value) -> usize {
    let messages = request["messages"].as_array().unwrap();
    let of_model = |message: &&Value| message["role"] == "assistant";
    messages.iter().filter(of_model).count()
}

//! Tasks of a victim.

use crate::random::Random;
use rondo_testkit::{CallScript, Recorded, ReplyScript, Response, openai};
use serde_json::{Value, json};

/// How long each command may run, in seconds.
pub(crate) const TIMEOUT_SECONDS: u64 = 5;
/// The answer of every turn.
pub(crate) const ANSWER: &str = "all of it is done";

/// A turn: the calls of each of its steps. Each leaves its tokens in a file outside of the workspace.
pub(crate) struct ScriptedTurn {
    steps: Vec<Vec<Call>>,
}

struct Call {
    id: String,
    name: &'static str,
    arguments: Value,
}

/// Commands, whose tokens stand for `T`. Processes that they leave running are never waited for.
const COMMANDS: [&str; 9] = [
    "echo T >> ../effects",
    "echo T >> ../effects; sleep 0.2; echo Tb >> ../effects",
    "sleep 0.1; echo T >> ../effects; exit 3",
    "echo T >> ../effects; setsid -f sleep 600; sleep 0.1",
    "trap '' TERM HUP; echo T >> ../effects; (trap '' TERM HUP; sleep 600) & sleep 0.2",
    "echo T >> ../effects; nohup sleep 600 > /dev/null 2>&1 & sleep 0.1; echo Tb >> ../effects",
    "echo T >> ../effects; seq 30000; sleep 0.1",
    "(sleep 0.1; echo T >> ../effects) & wait; sleep 600",
    "echo T >> ../effects; for i in 1 2 3 4 5; do sleep 0.05; echo $i; done",
];
/// Of those, the ones that only their time ends; they get little.
const ENDLESS: &str = "wait; sleep 600";

impl ScriptedTurn {
    pub(crate) fn random(random: &mut Random) -> Self {
        let steps = 1 + random.below(4);
        let steps = (0..steps).map(|step| {
            let calls = 1 + random.below(3);
            (0..calls)
                .map(|call| Call::random(random, step, call))
                .collect()
        });
        Self {
            steps: steps.collect(),
        }
    }

    /// Returns whether a call leaves its first token when it is done.
    pub(crate) fn has_effect(&self, id: &str) -> bool {
        let mut calls = self.steps.iter().flatten();
        calls.any(|call| call.id == id && call.name == "exec")
    }

    /// Answers a request by how much of the turn it holds.
    pub(crate) fn answer(&self, request: &Recorded) -> Response {
        let json = request.json();
        let messages = json.get("messages").and_then(Value::as_array);
        let of_model = |it: &&Value| it.get("role").is_some_and(|role| role == "assistant");
        let step = messages.map_or(0, |all| all.iter().filter(of_model).count());
        let reply = match self.steps.get(step) {
            Some(calls) => ReplyScript::calls(
                calls
                    .iter()
                    .map(|it| CallScript::new(&it.id, it.name, &it.arguments)),
            ),
            None => ReplyScript::text([ANSWER]),
        };
        openai::streamed(&reply.usage(10, 5))
    }
}

impl Call {
    fn random(random: &mut Random, step: u64, call: u64) -> Self {
        let id = format!("call-{step}-{call}");
        if random.one_in(5) {
            let path = format!("file-{step}-{call}");
            return Self {
                arguments: json!({ "path": path, "content": id }),
                name: "write_file",
                id,
            };
        }
        let command = random.pick(&COMMANDS).copied().unwrap_or_default();
        let timeout = match command.ends_with(ENDLESS) {
            true => 1,
            false => TIMEOUT_SECONDS,
        };
        // `T` alone and `Tb` are the only words in upper case but for the signals' names.
        let command = command.replace("echo T", &format!("echo {id}"));
        Self {
            id,
            name: "exec",
            arguments: json!({ "command": command, "timeout": timeout }),
        }
    }
}

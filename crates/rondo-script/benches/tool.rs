//! Cost of a call of a tool in Lua, next to one in Rust that does the same.
//!
//! Both are called in turns of a script against a scripted server in this process: 1,000 calls a round, 25 in each
//! reply, one round of each kind after the other. What is not the tool's own costs both alike. Prints lines of a name
//! and figures, separated by tabs: of `lua` and `rust` the nanoseconds of the processor for each call with all that is
//! around it, and of `start` those until a script without calls has ended; each the median and the least of the rounds.
//! `cargo xtask bench --script` makes a table of it.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark talks on the terminal and fails like a test does"
)]

use async_trait::async_trait;
use rondo_core::ports::{
    GateRequest, QuestionReply, ToolInvocation, ToolScope, ToolSource, Verdict,
};
use rondo_core::{Approver, Gate, Tool};
use rondo_runtime::script::ScriptSession;
use rondo_runtime::{Env, Extensions, Layer, NoNotices, Runtime};
use rondo_script::{Script, ScriptHost, StdinRead, UserQuestion};
use rondo_testkit::{CallScript, Recorded, ReplyScript, Response, Server, openai};
use rondo_types::{Effects, Question, ToolHints, ToolOutcome, ToolSpec, TurnEvent};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Rounds of each kind; the first one is not counted.
const ROUNDS: usize = 12;
/// Calls of a round.
const CALLS: u32 = TURNS * CALLS_A_TURN;
/// Scripts without calls in a round, since the system counts in steps of milliseconds.
const STARTS: u32 = 50;
const TURNS: u32 = 40;
const CALLS_A_TURN: u32 = 25;
/// Statistics of this thread; the first field is nanoseconds on a processor, see proc(5).
const SCHEDULED: &str = "/proc/thread-self/schedstat";

/// Asks for calls of the tool that the first argument names, in so many turns of so many calls as the others say.
const ASKS: &str = r#"
local add = rondo.tool {
  name = "lua",
  parameters = { a = "integer", b = "integer" },
  read_only = true,
  run = function(given) return { sum = given.a + given.b } end,
}
local agent = rondo.agent { tools = { add } }
for _ = 1, tonumber(rondo.args[2]) do
  local c = rondo.args[1] | agent
  assert(c.tool_calls == tonumber(rondo.args[3]), c.text)
end
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = Server::start(rondo_testkit::Script::answering(answer)).await;
    let bench = Bench::new(&server);
    let kinds = [
        ("lua", ASKS, 1, CALLS),
        ("rust", ASKS, 1, CALLS),
        ("start", "", STARTS, STARTS),
    ];
    let mut figures = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (figures, (kind, source, runs, _)) in figures.iter_mut().zip(kinds) {
            figures.push(bench.round(kind, source, runs).await);
        }
    }
    for (mut figures, (kind, _, _, count)) in figures.into_iter().zip(kinds) {
        figures.remove(0);
        figures.sort_unstable();
        let [median, least] =
            [figures[figures.len() / 2], figures[0]].map(|it| it / u64::from(count));
        println!("{kind}\t{median}\t{least}");
    }
}

/// Asks for calls, and answers once their results are there.
fn answer(request: &Recorded) -> Response {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "tool" {
        return openai::streamed(&ReplyScript::text(["Done."]));
    }
    let tool = last["content"].as_str().unwrap();
    let calls = (0..CALLS_A_TURN).map(|n| {
        let arguments = json!({ "a": n, "b": 1 });
        CallScript::new(&format!("call_{n}"), tool, &arguments)
    });
    openai::streamed(&ReplyScript::calls(calls))
}

struct Bench {
    runtime: Runtime,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new(server: &Server) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        let env = Env::of(&[("HOME", home), ("OPENAI_API_KEY", "bench")]);
        let flags = Layer {
            model: Some("openai/bench".to_owned()),
            base_url: Some(server.url("/v1")),
            ephemeral: Some(true),
            ..Layer::default()
        };
        let runtime = Runtime::new(env, flags, Arc::new(NoNotices));
        runtime.extend(Extensions {
            tool_sources: vec![Arc::new(InRust)],
            ..Extensions::default()
        });
        Self { runtime, directory }
    }

    /// Runs a script so many times, and returns the nanoseconds of the processor that it took.
    async fn round(&self, argument: &str, source: &str, runs: u32) -> u64 {
        let begun = processor();
        for _ in 0..runs {
            self.run(argument, source).await;
        }
        processor() - begun
    }

    async fn run(&self, argument: &str, source: &str) {
        let settings = self.runtime.settings(self.directory.path().to_owned());
        let session = ScriptSession::new(self.runtime.clone(), settings.unwrap());
        let script = Script {
            name: "bench.lua".to_owned(),
            source: source.to_owned(),
            directory: PathBuf::new(),
            arguments: vec![
                argument.to_owned(),
                TURNS.to_string(),
                CALLS_A_TURN.to_string(),
            ],
            seed: 1,
        };
        let cancel = CancellationToken::new();
        let ended = rondo_script::run(script, session, None, Arc::new(Host), &cancel).await;
        assert_eq!(ended.result.unwrap(), 0);
    }
}

fn processor() -> u64 {
    let scheduled = std::fs::read_to_string(SCHEDULED).unwrap();
    let nanoseconds = scheduled.split_whitespace().next().unwrap();
    nanoseconds.parse().unwrap()
}

/// Offers the tool in Rust, and is it.
#[derive(Clone)]
struct InRust;

impl ToolSource for InRust {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(Self)]
    }

    fn generation(&self) -> u64 {
        0
    }
}

#[async_trait]
impl Tool for InRust {
    fn spec(&self) -> ToolSpec {
        let integer = json!({ "type": "integer" });
        ToolSpec {
            name: "rust".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": { "a": integer, "b": integer },
                "required": ["a", "b"],
            }),
            effects: Effects::ReadOnly,
            hints: ToolHints::looks_only(),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let number = |name: &str| invocation.arguments.get(name).and_then(Value::as_i64);
        let (a, b) = (number("a").unwrap(), number("b").unwrap());
        ToolOutcome::json(json!({ "sum": a + b }))
    }
}

/// Allows all calls, and shows nothing.
struct Host;

#[async_trait]
impl ScriptHost for Host {
    fn stdout(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn stderr(&self, _: &[u8]) {}

    async fn stdin(&self, _: StdinRead, _: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    async fn ask(&self, _: &UserQuestion) -> Result<String, String> {
        Err("no user is available".to_owned())
    }

    fn approver(&self) -> Arc<dyn Approver> {
        Arc::new(Self)
    }

    fn gate(&self) -> Option<Arc<dyn Gate>> {
        Some(Arc::new(Self))
    }

    fn event(&self, _: &str, _: &TurnEvent) {}
}

#[async_trait]
impl Approver for Host {
    async fn ask(&self, question: &Question) -> QuestionReply {
        QuestionReply::approved(question, "ada")
    }
}

#[async_trait]
impl Gate for Host {
    async fn check(&self, _: &GateRequest) -> Verdict {
        Verdict::Allow
    }
}

//! Turns against servers that answer with whatever the seed says.

use crate::support::{Bench, Ran, bodies, echo, endless};
use bytes::Bytes;
use rondo::Limits;
use rondo_testkit::{
    CallScript, Dice, ReplyScript, Response, Script, Server, faults, gemini, openai,
};
use serde_json::json;
use std::time::Duration;

/// Turns of each dialect.
const SEEDS: u64 = 60;
/// Responses of a script; turns of the profile used here make fewer requests.
const RESPONSES: usize = 40;

/// Faults that a seed stands for: the seed is all that is needed to repeat a failure.
struct Chaos(Dice);

impl Chaos {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.roll(bound)
    }

    fn call(&mut self, place: u64) -> CallScript {
        let name = ["look", "other", "dig", "missing", "look"][self.below(5) as usize];
        let arguments = [
            "{}",
            r#"{"at":1}"#,
            "null",
            r#"{"at": "#,
            "[1]",
            "",
            r#"{"at":1,}"#,
        ];
        let arguments = arguments[self.below(7) as usize];
        let id = format!("c{place}");
        let id = (self.below(4) > 0).then_some(id.as_str());
        CallScript::raw(id, name, arguments)
    }

    fn reply(&mut self) -> ReplyScript {
        let count = self.below(4);
        let mut reply = ReplyScript::calls((0..count).map(|place| self.call(place)));
        for _ in 0..self.below(3) {
            reply = reply.saying(["Grüße ", "\u{200b}", "plain "][self.below(3) as usize]);
        }
        if self.below(3) == 0 {
            reply = reply.thinking("hm");
        }
        if self.below(2) == 0 {
            reply = reply.usage(self.below(1_000), self.below(1_000));
        }
        let finishes = [
            "stop",
            "length",
            "content_filter",
            "tool_calls",
            "SAFETY",
            "MAX_TOKENS",
        ];
        match finishes.get(self.below(12) as usize) {
            Some(finish) => reply.finish(finish),
            None => reply,
        }
    }

    fn response(&mut self, wire: Wire) -> Response {
        let reply = self.reply();
        let mut frames = wire.frames(&reply);
        match self.below(12) {
            0 => faults::html_error(502),
            1 => faults::rate_limited(None),
            2 | 3 => {
                frames.truncate(self.below(frames.len() as u64 + 1) as usize);
                match self.below(3) {
                    0 => faults::cut_after(frames),
                    1 => faults::stall_after(frames),
                    _ => faults::truncated(frames),
                }
            }
            4 => Response::text(200, "not the protocol"),
            5 | 6 => wire.whole(&reply),
            7 => wire.streamed(&reply).byte_by_byte(),
            _ => wire.streamed(&reply),
        }
    }
}

#[derive(Clone, Copy)]
enum Wire {
    OpenAi,
    Gemini,
}

impl Wire {
    fn frames(self, reply: &ReplyScript) -> Vec<Bytes> {
        match self {
            Self::OpenAi => openai::frames(reply),
            Self::Gemini => gemini::frames(reply),
        }
    }

    fn whole(self, reply: &ReplyScript) -> Response {
        match self {
            Self::OpenAi => openai::whole(reply),
            Self::Gemini => gemini::whole(reply),
        }
    }

    fn streamed(self, reply: &ReplyScript) -> Response {
        match self {
            Self::OpenAi => openai::streamed(reply),
            Self::Gemini => gemini::streamed(reply),
        }
    }

    fn bench(self, server: &Server) -> Bench {
        let mut bench = match self {
            Self::OpenAi => Bench::chat("default", server),
            Self::Gemini => Bench::gemini(server).streaming(),
        };
        bench.profile = rondo::profiles::builtin("default").unwrap();
        bench.limits(brief)
    }
}

fn brief(limits: &mut Limits) {
    limits.max_steps = 6;
    limits.max_tool_calls_per_step = Some(2);
    limits.first_byte_timeout = Some(Duration::from_millis(50));
    limits.idle_timeout = Some(Duration::from_millis(50));
    limits.tool_timeout = Some(Duration::from_millis(5));
    limits.retry.base = Duration::from_millis(1);
    limits.retry.max_retries = 2;
}

async fn ask(wire: Wire, seed: u64) -> (Server, Ran) {
    let mut dice = Chaos(Dice::new(seed));
    let responses: Vec<Response> = (0..RESPONSES).map(|_| dice.response(wire)).collect();
    let server = Server::start(Script::from(responses)).await;
    let cancel_at = dice.below(16);
    let bench = wire
        .bench(&server)
        .tools([echo("look").shared(), echo("other"), endless("dig")]);
    let ran = bench
        .ask_beside("q", async |user| {
            if cancel_at < 5 {
                user.sees_many(cancel_at as usize * 3).await;
                user.handle.cancel();
            }
        })
        .await;
    (server, ran)
}

async fn check(wire: Wire) {
    for seed in 0..SEEDS {
        let (server, ran) = ask(wire, seed).await;
        let sent = bodies(&server);
        let shown = json!({"seed": seed, "outcome": &ran.outcome});
        // What holds of every turn is asserted where turns are run and bodies are read.
        assert!(ran.outcome.steps <= 6, "{shown:#}");
        assert!(sent.len() <= 6 * 3, "{shown:#}");
        assert!(!ran.outcome.text.is_empty(), "{shown:#}");
        let unmarked = ran
            .results()
            .iter()
            .filter(|(code, text)| code.is_some() && text.is_empty())
            .count();
        assert_eq!(unmarked, 0, "{shown:#}");
    }
}

#[tokio::test]
async fn openai_turns_end_whatever_the_server_does() {
    check(Wire::OpenAi).await;
}

#[tokio::test]
async fn gemini_turns_end_whatever_the_server_does() {
    check(Wire::Gemini).await;
}

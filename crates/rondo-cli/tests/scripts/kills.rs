//! A script of 20 calls that is killed at random points: nothing is repeated, and it says the same in the end.
//!
//! `RONDO_KILL_POINTS` is how many points are tried, `RONDO_KILL_SEED` chooses others.

use crate::harness::{calls, says};
use crate::world::{World, messages};
use rondo_testkit::{Dice, Recorded, Response, Script, Server, openai};
use serde_json::json;
use std::time::{Duration, Instant};

/// Points of an ordinary run.
const POINTS: u32 = 12;

/// Four turns with a tool each, twelve commands and files, and four branches.
const TWENTY: &str = r#"
local noted = {}
local note = rondo.tool { name = "note", parameters = { word = "string" }, read_only = true, run = function(given)
  noted[#noted + 1] = given.word
  rondo.exec("echo tool " .. given.word .. " >> effects")
  return "noted " .. given.word
end }
local agent = rondo.agent { tools = { note } }
local c
for i = 1, 4 do
  rondo.exec("echo before " .. i .. " >> effects")
  c = c and c | "Question " .. i or "Question " .. i | agent
  rondo.files.append("effects", "after " .. i .. "\n")
end
local branches = {}
for i = 1, 4 do
  branches[i] = function()
    return rondo.exec("echo branch " .. i .. " >> effects; echo " .. i).stdout:sub(1, 1) .. math.random(1000)
  end
end
local r = rondo.parallel(branches)
for i = 1, 4 do rondo.exec({ "sh", "-c", "echo last " .. i .. " >> effects" }) end
print(c.text, table.concat(noted, ","), #c.messages, r[1]:sub(1, 1), r[4]:sub(1, 1))
"#;

/// Answers by what is asked: a call of the tool, and then an answer.
fn answer(request: &Recorded) -> Response {
    let body = request.json();
    let last = messages(&body).last().unwrap();
    let text = last["content"].as_str().unwrap();
    match last["role"].as_str() {
        Some("tool") => openai::streamed(&says(&format!("You {text}."))),
        _ => {
            let word = text.rsplit(' ').next().unwrap();
            openai::streamed(&calls("note", &json!({ "word": word })))
        }
    }
}

async fn world() -> World {
    World::new(TWENTY, Server::start(Script::answering(answer)).await)
}

fn effects(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.env.project().join("effects")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn number(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test]
async fn a_script_that_is_killed_at_random_points_repeats_nothing_and_says_the_same() {
    let whole = world().await;
    let begun = Instant::now();
    let expected = whole.run(&[]).await;
    let took = begun.elapsed();
    assert_eq!(expected.code, Some(0), "{expected:?}");
    let (said, done) = (expected.stdout.clone(), effects(&whole));
    assert_eq!(said, "You noted 4.\t1,2,3,4\t16\t1\t4\n");
    assert_eq!(done.len(), 20);
    let seed = number("RONDO_KILL_SEED").unwrap_or(1);
    let mut dice = Dice::new(seed.into());
    let mut cut_off = 0;
    for point in 0..number("RONDO_KILL_POINTS").unwrap_or(POINTS) {
        let world = world().await;
        let url = world.server.url("/v1");
        let args = ["run", "-m", "openai/test", "--base-url", &url, "s.lua"];
        let mut child = world.env.command(&args).spawn().unwrap();
        let share = u32::try_from(dice.roll(1000)).unwrap();
        let wait = took.mul_f64(f64::from(share) / 1000.0);
        let ended = tokio::time::timeout(wait.max(Duration::from_millis(1)), child.wait()).await;
        let case = format!("seed {seed}, point {point}, killed after {wait:?}");
        if ended.is_err() {
            child.start_kill().unwrap();
            child.wait().await.unwrap();
            cut_off += 1;
        }
        let mut shown = world.run(&["--resume"]).await;
        if shown.code == Some(45) {
            // It was killed before its first call.
            shown = world.run(&[]).await;
        }
        assert_eq!(
            (shown.stdout.as_str(), shown.code),
            (said.as_str(), Some(0)),
            "{case}: {shown:?}"
        );
        assert_eq!(effects(&world), done, "{case}");
        // What was asked when it was killed is asked again.
        let requests = world.requests().len();
        assert!((8..=9).contains(&requests), "{case}: {requests} requests");
    }
    assert!(cut_off > 0);
}

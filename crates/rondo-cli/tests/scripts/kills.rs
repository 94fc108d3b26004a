//! A script of 20 calls that is killed at random points: nothing is repeated, and it says the same in the end.
//!
//! `cargo xtask kill --scripts 100` tries so many points and shows the counts. `RONDO_KILL_POINTS` is how many points
//! are tried, `RONDO_KILL_SEED` chooses others.

use crate::harness::{calls, says};
use crate::world::{World, messages};
use rondo_testkit::{Dice, Recorded, Response, Script, Server, openai};
use serde_json::json;
use std::time::{Duration, Instant};

/// The exit code if there is no session to continue with.
const NO_SESSION: i32 = 45;
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

/// Results of all points.
#[derive(Default)]
struct Tally {
    points: u32,
    kills: u32,
    /// Killed before its first call, so that there was nothing to continue with.
    begun_anew: u32,
    /// Requests whose reply was not recorded when the script was killed, which were made again.
    asked_again: usize,
    /// Commands, files and answered requests that were made more than once.
    repeated: usize,
    /// Ends that are not those of a script that nothing kills, each with its point.
    differing: Vec<String>,
}

impl Tally {
    fn told(&self, seed: u32) -> String {
        format!(
            "seed {seed}, {} points: {} kills, {} of them before the first call; {} requests asked again whose reply \
             was lost; {} calls repeated; {} results that differ",
            self.points,
            self.kills,
            self.begun_anew,
            self.asked_again,
            self.repeated,
            self.differing.len(),
        )
    }
}

/// A script that nothing kills.
struct Whole {
    took: Duration,
    said: String,
    effects: Vec<String>,
    requests: usize,
}

impl Whole {
    async fn run() -> Self {
        let world = world().await;
        let begun = Instant::now();
        let shown = world.run(&[]).await;
        let took = begun.elapsed();
        assert_eq!(shown.code, Some(0), "{shown:?}");
        Self {
            took,
            said: shown.stdout,
            effects: effects(&world),
            requests: world.requests().len(),
        }
    }

    /// Kills another one at a share of its time, has it continue, and counts.
    async fn kill_another(&self, share: f64, tally: &mut Tally) {
        tally.points += 1;
        let world = world().await;
        let url = world.server.url("/v1");
        let args = ["run", "-m", "openai/test", "--base-url", &url, "s.lua"];
        let mut child = world.env.command(&args).spawn().unwrap();
        let wait = self.took.mul_f64(share).max(Duration::from_millis(1));
        if tokio::time::timeout(wait, child.wait()).await.is_err() {
            child.start_kill().unwrap();
            child.wait().await.unwrap();
            tally.kills += 1;
        }
        let mut shown = world.run(&["--resume"]).await;
        if shown.code == Some(NO_SESSION) {
            tally.begun_anew += 1;
            shown = world.run(&[]).await;
        }
        let mut done = effects(&world);
        let all = done.len();
        done.dedup();
        tally.repeated += all - done.len();
        // The request that was under way is asked again: its reply was not recorded.
        let again = world.requests().len().saturating_sub(self.requests);
        tally.asked_again += again.min(1);
        tally.repeated += again.saturating_sub(1);
        let is_same = shown.code == Some(0) && shown.stdout == self.said && done == self.effects;
        if !is_same {
            let point = format!("point {} after {wait:?}: {shown:?}", tally.points);
            tally.differing.push(point);
        }
    }
}

#[tokio::test]
async fn a_script_that_is_killed_at_random_points_repeats_nothing_and_says_the_same() {
    let whole = Whole::run().await;
    assert_eq!(whole.said, "You noted 4.\t1,2,3,4\t16\t1\t4\n");
    assert_eq!((whole.effects.len(), whole.requests), (20, 8));
    let seed = number("RONDO_KILL_SEED").unwrap_or(1);
    let mut dice = Dice::new(seed.into());
    let mut tally = Tally::default();
    for _ in 0..number("RONDO_KILL_POINTS").unwrap_or(POINTS) {
        let share = u32::try_from(dice.roll(1000)).unwrap();
        whole
            .kill_another(f64::from(share) / 1000.0, &mut tally)
            .await;
    }
    println!("{}", tally.told(seed));
    assert!(tally.kills > 0);
    assert_eq!(
        (tally.repeated, &tally.differing),
        (0, &Vec::new()),
        "{}",
        tally.told(seed)
    );
}

//! Keys, and who else on the machine can read them.

use crate::calls::{last_result, waiting};
use crate::harness::{TestEnv, ask_args, calls, says, serve};
use rondo_testkit::{ReplyScript, Response, Script, Server, faults, openai};
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long processes are waited for: no slow machine reaches it.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

const OWN: &str = "sk-own-key-0123456789";
const TEAM: &str = "team-key-0123456789";
const HEADER: &str = "header-key-0123456789";
const MIRROR: &str = "mirrored-key-0123456789";

fn env() -> TestEnv {
    let env = TestEnv::new()
        .var("OPENAI_API_KEY", OWN)
        .var("TEAM_LLM", TEAM)
        .var("TEAM_HEADER", HEADER)
        .var("MIRROR_TOKEN", MIRROR)
        // Nothing tells that it holds a key.
        .var("ADDRESS", &format!("https://{TEAM}@host/"));
    env.user_config(
        "[providers.team]\ndialect = 'openai-chat'\nbase_url = 'http://127.0.0.1:9/v1'\n\
         api_key_env = 'TEAM_LLM'\nheaders_env = { X-Team = 'TEAM_HEADER' }\n",
    );
    env
}

/// Answers with these, and then never again.
async fn stalling(replies: Vec<ReplyScript>) -> Server {
    let mut responses: Vec<Response> = replies.iter().map(openai::whole).collect();
    responses.push(faults::zero_byte_stall());
    Server::start(Script::from(responses)).await
}

/// Returns the process and all below it.
fn family(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<_> = ids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(one) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, parent)| *parent == one);
        found.extend(children.map(|(child, _)| *child));
        next += 1;
    }
    found
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// Waits until so many processes are there: a program that a shell starts comes after what the shell
/// printed.
async fn grown(of: u32, processes: usize) -> Vec<u32> {
    let until = Instant::now() + PATIENCE;
    loop {
        let family = family(of);
        if family.len() == processes || Instant::now() >= until {
            return family;
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Waits until a program is among the processes: the interpreter comes behind those that start and watch it.
async fn grown_by(of: u32, program: &str) -> Vec<u32> {
    let until = Instant::now() + PATIENCE;
    loop {
        let family = family(of);
        let is_there = |pid: &u32| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.starts_with(program)
        };
        if family.iter().any(is_there) {
            return family;
        }
        assert!(
            Instant::now() < until,
            "there is no `{program}`: {family:?}"
        );
        sleep(LOOK_EVERY).await;
    }
}

/// Looks for keys in all that the kernel shows of the process and of those below it, which are as many
/// as said.
async fn check(of: u32, processes: usize) {
    let family = grown(of, processes).await;
    assert_eq!(family.len(), processes, "{family:?}");
    check_all(&family);
}

fn check_all(family: &[u32]) {
    for pid in family {
        for file in ["environ", "cmdline"] {
            // Who may not read it finds no key in it.
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            for key in [OWN, TEAM, HEADER, MIRROR] {
                assert!(!text.contains(key), "{pid} {file}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn no_key_is_in_an_environment_that_others_can_read_while_a_server_is_asked() {
    let env = env();
    for (provider, key, header) in [("team", TEAM, Some(HEADER)), ("openai", OWN, None)] {
        let server = stalling(Vec::new()).await;
        let (model, url) = (format!("{provider}/test"), server.url("/v1"));
        let args = ["ask", "-m", &model, "--base-url", &url, "x"];
        let child = env.command(&args).spawn().unwrap();
        let request = server.request(0).await;
        let authorization = format!("Bearer {key}");
        assert_eq!(request.header("authorization"), Some(&*authorization));
        assert_eq!(request.header("x-team"), header);
        check(child.id().unwrap(), 1).await;
    }
}

#[tokio::test]
async fn no_key_is_in_an_environment_that_others_can_read_while_a_command_runs() {
    let env = env();
    let (child, _server) = waiting(&env).await;
    // The agent, its keeper, the guard, the supervisor, bash and `cat`.
    check(child.id().unwrap(), 6).await;
}

#[tokio::test]
async fn no_key_is_in_an_environment_that_others_can_read_while_python_is_there() {
    let server = stalling(vec![calls("eval_expr", &json!({"expr": "6 * 7"}))]).await;
    let url = server.url("/v1");
    let args = ask_args(&url, &["--profile", "python", "x"]);
    let env = env();
    let child = env.command(&args).spawn().unwrap();
    let request = server.request(1).await;
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {OWN}"))
    );
    check_all(&grown_by(child.id().unwrap(), "python").await);
}

/// Text that is printed backwards is not a key to any search for it.
#[tokio::test]
async fn a_command_reads_no_key_from_the_environments_of_other_processes() {
    // Of no other test, whose processes are there too.
    let key = "backwards-0123456789";
    let command = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | rev | grep -aoE '9876543210-[a-z]*'";
    let server = serve(vec![
        calls("exec", &json!({ "command": command })),
        says("done"),
    ])
    .await;
    let env = TestEnv::new().var("OPENAI_API_KEY", key);
    let shown = env.ask(&server, &["--yolo", "x"]).await;
    shown.check("done\n", "", 0);
    let printed = last_result(&server)["stdout"].to_string();
    assert!(!printed.contains("9876543210-sdrawkcab"), "{printed}");
}
